// SPDX-License-Identifier: Apache-2.0
//! `isthmus @guard`: what a machine's own `mpiexec` starts in place of a process of the job (see [`isthmus_wire::guard`]).
//!
//! The guard is the process of the other MPI's job as far as its `mpiexec` knows; the program is the guard's child and inherits what
//! that MPI left in the environment and in open descriptors. A guard ends with its child, and the child dies with its guard.

use isthmus_sched::fork::{STATUS_NOT_EXECUTABLE, TRAMPOLINE};
use isthmus_stage::content::hex;
use isthmus_wire::grid::Exit;
use isthmus_wire::guard::{MOST_DESCRIPTORS, ORDERS_BYTES, Orders, encode_ended};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;
use std::ffi::OsString;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// First argument that makes the `isthmus` binary call [`run`].
pub const GUARD: &str = "@guard";

/// Name of the agent's socket for guards, and of that for processes.
pub(crate) const SOCKET: &str = "g";
const RENDEZVOUS: &str = "r";

/// Variables in which launchers tell a process its rank.
const RANKS: [&str; 6] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "PALS_RANKID",
    "MPI_RANK",
];

/// Guards the process of `isthmus @guard DIRECTORY NAME PROGRAM ARGUMENT…`. `Ok`: the exit status; an error is the message
/// and exit status.
pub fn run(arguments: impl Iterator<Item = OsString>) -> Result<u8, (String, u8)> {
    let failed = |text: String| (text, STATUS_NOT_EXECUTABLE);
    let mut arguments = arguments;
    let (Some(directory), Some(name), Some(program)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(failed("this command is for isthmus itself".to_owned()));
    };
    let rank = rank().ok_or_else(|| {
        failed(format!(
            "the machine's own mpiexec does not tell its processes their rank: none of the variables {} is set",
            RANKS.join(", ")
        ))
    })?;
    let words: Vec<OsString> = [name, program].into_iter().chain(arguments).collect();
    guard(&PathBuf::from(directory), rank, &words)
        .map_err(|error| failed(format!("cannot start rank {rank} of the machine's own MPI: {error}")))
}

fn rank() -> Option<u32> {
    RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

fn guard(directory: &Path, rank: u32, words: &[OsString]) -> io::Result<u8> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut agent = UnixStream::connect(directory.join(SOCKET))?;
    agent.write_all(&rank.to_le_bytes())?;
    let mut orders = [0; ORDERS_BYTES];
    agent.read_exact(&mut orders)?;
    let orders = Orders::decode(&orders);
    let mut child = start(directory, rank, &orders, words)?;
    introduce(&agent, &mut child)?;
    let exit = exit_of(child.wait()?);
    agent.write_all(&encode_ended(exit))?;
    // The agent closes: it has taken note, so whatever the other mpiexec makes of our end comes later.
    let _ = agent.read(&mut [0]);
    // How processes end concerns the job, and the agent has been told. Only a violent death is one for the other MPI too.
    Ok(match exit {
        Exit::Status(_) => 0,
        Exit::Signal(_) => exit.shell_status() as u8,
    })
}

fn start(directory: &Path, rank: u32, orders: &Orders, words: &[OsString]) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg(TRAMPOLINE)
        .arg(std::process::id().to_string())
        .args(words)
        .env("ISTHMUS_RENDEZVOUS", directory.join(RENDEZVOUS))
        .env("ISTHMUS_TOKEN", hex(&orders.token))
        .env("ISTHMUS_INDEX", rank.to_string())
        .process_group(0)
        .stdin(if orders.input { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn()
}

/// Tells the agent who the child is and hands its pipes over.
fn introduce(agent: &UnixStream, child: &mut Child) -> io::Result<()> {
    let pid = child.id().to_le_bytes();
    let (output, error, input) = (child.stdout.take(), child.stderr.take(), child.stdin.take());
    let pipes: Vec<BorrowedFd<'_>> = [
        output.as_ref().map(AsFd::as_fd),
        error.as_ref().map(AsFd::as_fd),
        input.as_ref().map(AsFd::as_fd),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&pipes));
    sendmsg(agent, &[IoSlice::new(&pid)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Status(code as u32),
        (None, signal) => Exit::Signal(signal.unwrap_or(0) as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_without_a_launcher_says_what_is_missing() {
        assert!(RANKS.iter().all(|name| std::env::var_os(name).is_none()));
        let words = ["/nowhere", "a", "/bin/true"].map(OsString::from);
        let (text, _) = run(words.into_iter()).unwrap_err();
        assert!(text.contains("PMI_RANK"), "{text}");
    }
}
