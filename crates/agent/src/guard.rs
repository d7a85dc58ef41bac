// SPDX-License-Identifier: Apache-2.0
//! `isthmus @guard`: what a machine's own `mpiexec` starts in place of a process of the job (see
//! [`isthmus_wire::guard`]).
//!
//! The guard is the process of the other MPI's job as far as its `mpiexec` knows; the program is the guard's child and
//! inherits what that MPI left in the environment and in open descriptors. A guard ends with its child, and the child
//! dies with its guard.

use crate::program::{Length, SHORTEN};
use isthmus_sched::fork::{self, STATUS_NOT_EXECUTABLE, TRAMPOLINE};
use isthmus_stage::content::hex;
use isthmus_stage::{own, words};
use isthmus_wire::grid::Exit;
use isthmus_wire::guard::{Answer, MAX_ANSWER, MAX_DESCRIPTORS, Orders, encode_ended};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// First argument that makes the `isthmus` binary call [`run`].
pub const GUARD: &str = "@guard";

/// Variables in which launchers tell a process its rank.
const RANKS: [&str; 6] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "PALS_RANKID",
    "MPI_RANK",
];

/// Guards the process of `isthmus @guard DOOR` ([`isthmus_wire::guard::door`]). `Ok`: the exit status; an error is the
/// message and exit status.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, (String, u8)> {
    let failed = |text: String| (text, STATUS_NOT_EXECUTABLE);
    let Some(door) = arguments.next() else {
        return Err(failed("this command is for isthmus itself".to_owned()));
    };
    let rank = rank().ok_or_else(|| {
        failed(format!(
            "the machine's own mpiexec does not tell its processes their rank: none of the variables {} is set",
            RANKS.join(", ")
        ))
    })?;
    guard(&door, rank).map_err(|error| failed(format!("cannot start rank {rank} of the machine's own MPI: {error}")))
}

fn rank() -> Option<u32> {
    RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

fn guard(door: &OsStr, rank: u32) -> io::Result<u8> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut agent = connect(door)?;
    agent.write_all(&rank.to_le_bytes())?;
    let orders = match answer(&mut agent)? {
        Answer::Orders(orders) => orders,
        Answer::Refused(why) => return Err(io::Error::other(why)),
    };
    let mut child = start(rank, &orders).map_err(|error| explain(error, &orders))?;
    introduce(&agent, &mut child)?;
    let (watched, ended) = (agent.try_clone()?, Arc::new(AtomicBool::new(false)));
    let (pid, over) = (child.id(), Arc::clone(&ended));
    // The agent says nothing more before it has heard how the process ended, so what comes earlier is its own end.
    std::thread::spawn(move || {
        let _ = (&watched).read(&mut [0]);
        if !over.load(Ordering::SeqCst) {
            fork::signal_group(pid, 9);
        }
    });
    let exit = child.wait();
    ended.store(true, Ordering::SeqCst);
    let exit = exit_of(exit?);
    agent.write_all(&encode_ended(exit))?;
    // The agent closes: it has taken note, so whatever the other mpiexec makes of our end comes later.
    let _ = agent.read(&mut [0]);
    // How processes end concerns the job, and the agent has been told. Only a violent death is one for the other MPI
    // too.
    Ok(match exit {
        Exit::Status(_) => 0,
        Exit::Signal(_) => exit.shell_status() as u8,
    })
}

/// To the agent on this node. Anybody can listen under an abstract name, so who does must be the same user.
fn connect(door: &OsStr) -> io::Result<UnixStream> {
    let agent = UnixStream::connect_addr(&SocketAddr::from_abstract_name(door.as_bytes())?).map_err(|error| {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let why = format!("no agent of the job awaits processes on {host} ({error})");
        io::Error::new(error.kind(), why)
    })?;
    let peer = sockopt::socket_peercred(&agent)?;
    if peer.uid != rustix::process::geteuid() {
        return Err(io::Error::other("who listens there is another user"));
    }
    Ok(agent)
}

fn answer(agent: &mut UnixStream) -> io::Result<Answer> {
    let mut length = [0; 4];
    agent.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_ANSWER {
        return Err(io::Error::other(format!(
            "the agent's answer has {length} bytes, at most {MAX_ANSWER} are right"
        )));
    }
    let mut body = vec![0; length];
    agent.read_exact(&mut body)?;
    Answer::decode(&body).map_err(io::Error::other)
}

fn start(rank: u32, orders: &Orders) -> io::Result<Child> {
    let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let mut command = Command::new(own::found(&std::env::current_exe()?));
    command
        .arg(TRAMPOLINE)
        .arg(std::process::id().to_string())
        .arg(words::os(&orders.name))
        .arg(text(&orders.program))
        .args(orders.arguments.iter().map(|a| words::os(a)))
        .current_dir(text(&orders.directory));
    for name in &orders.hidden {
        command.env_remove(name);
    }
    command
        .envs(orders.environment.iter().map(|(name, value)| (name, text(value))))
        .env(isthmus_settings::RENDEZVOUS.name, text(&orders.rendezvous))
        .env(isthmus_settings::TOKEN.name, hex(&orders.token))
        .env(isthmus_settings::INDEX.name, orders.index.to_string())
        .env(isthmus_settings::VENDOR_RANK.name, rank.to_string())
        .process_group(0)
        .stdin(if orders.input { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn()
}

/// What is wrong when the process cannot be started.
fn explain(error: io::Error, orders: &Orders) -> io::Error {
    if error.kind() != io::ErrorKind::ArgumentListTooLong {
        return error;
    }
    let variables = orders.environment.iter().map(|(name, value)| (&**name, value.len()));
    let length = Length::of(&orders.arguments, variables);
    let text = format!("{length}, which is more than the system takes; {SHORTEN}");
    io::Error::new(io::ErrorKind::ArgumentListTooLong, text)
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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
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
    fn an_answer_beyond_the_bound_is_refused() {
        let (mut agent, mut guard) = UnixStream::pair().unwrap();
        let length = u32::try_from(MAX_ANSWER + 1).unwrap();
        agent.write_all(&length.to_le_bytes()).unwrap();
        // Nothing of it has come, and nothing is waited for.
        let error = answer(&mut guard).unwrap_err().to_string();
        assert!(
            error.contains("8388609 bytes") && error.contains("at most 8388608"),
            "{error}"
        );
    }

    #[test]
    fn a_guard_without_a_launcher_says_what_is_missing() {
        assert!(RANKS.iter().all(|name| std::env::var_os(name).is_none()));
        let (text, _) = run(["nowhere"].map(OsString::from).into_iter()).unwrap_err();
        assert!(text.contains("PMI_RANK"), "{text}");
        let error = guard(OsStr::new("nowhere"), 0).unwrap_err();
        assert!(error.to_string().contains("no agent of the job awaits"), "{error}");
    }
}
