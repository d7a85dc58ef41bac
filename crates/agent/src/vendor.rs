// SPDX-License-Identifier: Apache-2.0
//! A subjob on the machine's own MPI: its `mpiexec` starts guards (see [`crate::guard`]), which start the processes.

use crate::event::Event;
use crate::guard::{self, GUARD};
use crate::processes::{self, Pipes};
use crate::program::Refusal;
use isthmus_sched::fork::{self, Template};
use isthmus_wire::grid::{Exit, Input};
use isthmus_wire::guard::{ENDED_BYTES, MOST_DESCRIPTORS, Orders, decode_ended};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::Child;
use tokio::sync::mpsc;

/// Most bytes of what the MPI's `mpiexec` says that are kept for an error.
const SAID: usize = 2048;
/// A program may be `mpiexec` or have a suffix of its family.
const LAUNCHERS: [&str; 3] = ["mpiexec", "mpirun", "srun"];

/// The machine's own MPI: its commands and the adaptor to it.
#[derive(Debug)]
pub(crate) struct Tools {
    mpiexec: PathBuf,
    adaptor: PathBuf,
}

/// The machine's own `mpiexec` with a job of ours.
#[derive(Debug)]
pub(crate) struct Launcher {
    pid: u32,
    /// Its process has ended.
    pub(crate) ended: bool,
}

impl Launcher {
    /// Sends a signal to it and its group.
    pub(crate) fn signal(&self, signal: u32) {
        if !self.ended {
            fork::signal_group(self.pid, signal);
        }
    }
}

impl Tools {
    /// Finds the MPI that the user named by its `mpiexec` or its `mpicc`, and builds the adaptor to it unless it is there.
    pub(crate) fn prepare(named: &str, path: Option<OsString>, own: &Path, cache: &Path) -> Result<Self, Refusal> {
        let path = path.unwrap_or_default();
        let (mpiexec, mpicc) = commands(named, &path, own)?;
        let adaptors = cache.join("adaptors");
        std::fs::create_dir_all(&adaptors)
            .map_err(|error| Refusal::new(format!("cannot make directory '{}': {error}", adaptors.display()), ""))?;
        let adaptor = isthmus_vendor::build(&mpicc.to_string_lossy(), &adaptors).map_err(|error| {
            Refusal::new(
                format!("there is no adaptor to the machine's own MPI: {error}"),
                "install its compiler wrapper and headers, name another MPI, or run without it",
            )
        })?;
        Ok(Self {
            mpiexec,
            adaptor: adaptor.path,
        })
    }

    /// Starts the guards of `tokens.len()` processes. `directory` has the sockets.
    pub(crate) fn start(
        &self,
        template: &Template,
        directory: &Path,
        tokens: Vec<[u8; 16]>,
        input: Input,
        events: &mpsc::Sender<Event>,
    ) -> io::Result<Launcher> {
        let listener = UnixListener::bind(directory.join(guard::SOCKET))?;
        let count = tokens.len();
        let orders: Vec<Orders> = tokens
            .into_iter()
            .enumerate()
            .map(|(rank, token)| Orders {
                token,
                input: input == Input::All || input == Input::One(u32::try_from(rank).unwrap_or(u32::MAX)),
            })
            .collect();
        tokio::spawn(welcome(listener, orders.into(), events.clone()));
        let child = fork::spawn(
            &self.command(template, directory, count),
            &[],
            &fork::StandardInput::Empty,
        )?;
        let pid = child
            .id()
            .ok_or_else(|| io::Error::other("mpiexec ended before it began"))?;
        tokio::spawn(watch(child, pid, events.clone()));
        Ok(Launcher { pid, ended: false })
    }

    fn command(&self, template: &Template, directory: &Path, count: usize) -> Template {
        let mut arguments = vec!["-n".to_owned(), count.to_string()];
        // All families know these words.
        for (option, name) in [("-bind-to", "ISTHMUS_BIND_TO"), ("-map-by", "ISTHMUS_MAP_BY")] {
            let value = template.environment.iter().rev().find(|(n, _)| n == name);
            if let Some((_, value)) = value {
                arguments.extend([option.to_owned(), value.to_string_lossy().into_owned()]);
            }
        }
        arguments.extend(
            [
                &template.trampoline,
                Path::new(GUARD),
                directory,
                Path::new(&template.name),
                &template.program,
            ]
            .map(|word: &Path| word.to_string_lossy().into_owned()),
        );
        arguments.extend(template.arguments.iter().cloned());
        let mut environment = vec![("ISTHMUS_VENDOR".to_owned(), self.adaptor.clone().into_os_string())];
        environment.extend(habits());
        environment.extend(template.environment.iter().cloned());
        Template {
            program: self.mpiexec.clone(),
            name: self.mpiexec.to_string_lossy().into_owned(),
            arguments,
            environment,
            ..template.clone()
        }
    }
}

/// What Open MPI has to be told. How many processes a machine gets is the user's decision and has been made; plug-ins that call MPI
/// functions by name would find ours.
fn habits() -> Vec<(String, OsString)> {
    let mut all = vec![
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
        ("OMPI_MCA_io", "^romio321"),
        ("OMPI_MCA_fcoll", "^two_phase"),
    ];
    if rustix::process::geteuid().is_root() {
        all.extend([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    }
    // What the user has set already is right.
    all.retain(|(name, _)| std::env::var_os(name).is_none());
    all.into_iter().map(|(n, v)| (n.to_owned(), v.into())).collect()
}

/// `mpiexec` and `mpicc` of the MPI that is named by either; they lie in one directory and have names that are alike.
fn commands(named: &str, path: &OsStr, own: &Path) -> Result<(PathBuf, PathBuf), Refusal> {
    let found = find(named, path, own).ok_or_else(|| {
        Refusal::new(
            format!("the subjob wants the machine's own MPI, but there is no '{named}'"),
            "install an MPI there, name its mpiexec with its directory, or run without it",
        )
    })?;
    let name = found.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = |name: &str| {
        let sibling = found.with_file_name(name);
        is_executable(&sibling).then_some(sibling)
    };
    let missing = |what: &str| {
        Refusal::new(
            format!("there is no {what} beside '{}'", found.display()),
            "an adaptor to the machine's own MPI needs its compiler wrapper (Debian: libmpich-dev or libopenmpi-dev)",
        )
    };
    if let Some(family) = name.strip_prefix("mpicc") {
        let family = family.trim_end_matches("_abi");
        let mpiexec = ["mpiexec", "mpirun"]
            .iter()
            .find_map(|n| beside(&format!("{n}{family}")));
        return Ok((mpiexec.ok_or_else(|| missing("mpiexec"))?, found));
    }
    let family = LAUNCHERS.iter().find_map(|launcher| name.strip_prefix(launcher));
    let mpicc = family.and_then(|family| beside(&format!("mpicc{family}")));
    // A scheduler's launcher is no part of an MPI: whatever is compiled with by default.
    let mpicc = mpicc.or_else(|| find("mpicc", path, own).filter(|_| name.starts_with("srun")));
    Ok((found.clone(), mpicc.ok_or_else(|| missing("mpicc"))?))
}

/// A command by its name. Ours have the same names and are passed over.
fn find(named: &str, path: &OsStr, own: &Path) -> Option<PathBuf> {
    let own = own.canonicalize().ok();
    let other = |file: &PathBuf| is_executable(file) && file.canonicalize().ok() != own;
    if named.contains('/') {
        return Some(PathBuf::from(named)).filter(other);
    }
    std::env::split_paths(path).map(|place| place.join(named)).find(other)
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Lets guards in.
async fn welcome(listener: UnixListener, orders: Arc<[Orders]>, events: mpsc::Sender<Event>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&orders), events.clone()));
            }
            // Out of descriptors, most likely: leave others time to close some.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    }
}

/// Serves one guard; its end before it said how its process ended is a violent one.
async fn serve(mut stream: UnixStream, orders: Arc<[Orders]>, events: mpsc::Sender<Event>) {
    let mut rank = [0; 4];
    if !stream
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
        || stream.read_exact(&mut rank).await.is_err()
    {
        return;
    }
    let index = u32::from_le_bytes(rank);
    let Some(orders) = orders.get(index as usize) else {
        return;
    };
    if stream.write_all(&orders.encode()).await.is_err() {
        return;
    }
    let Ok((pid, pipes)) = introduced(&stream).await else {
        return;
    };
    let (noted, note) = tokio::sync::oneshot::channel();
    let (told, exit) = tokio::sync::oneshot::channel();
    let guarded = Event::Guarded {
        index,
        pid,
        pipes,
        exit,
        noted,
    };
    if events.send(guarded).await.is_err() {
        return;
    }
    let mut ended = [0; ENDED_BYTES];
    let read = stream.read_exact(&mut ended).await;
    let exit = read.ok().and_then(|_| decode_ended(&ended));
    let _ = told.send(exit.unwrap_or(processes::KILLED));
    let _ = note.await;
}

/// The pid of a guard's process and its pipes.
async fn introduced(stream: &UnixStream) -> io::Result<(u32, Pipes)> {
    let mut pid = [0; 4];
    let fds = stream
        .async_io(Interest::READABLE, || receive(stream, &mut pid))
        .await?;
    let mut fds = fds.into_iter();
    let (Some(output), Some(error)) = (fds.next(), fds.next()) else {
        return Err(io::Error::other("a guard without pipes"));
    };
    let pipes = Pipes {
        output,
        error,
        input: fds.next(),
    };
    Ok((u32::from_le_bytes(pid), pipes))
}

fn receive(stream: &UnixStream, pid: &mut [u8; 4]) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(
        stream,
        &mut [IoSliceMut::new(pid)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if message.bytes != pid.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok(fds)
}

/// Waits for the end of `mpiexec`.
async fn watch(mut child: Child, pid: u32, events: mpsc::Sender<Event>) {
    let (output, error) = (child.stdout.take(), child.stderr.take());
    let listening = tokio::spawn(async move { tokio::join!(listen(output), listen(error)) });
    let exit = match child.wait().await {
        Ok(status) => processes::exit_of(status),
        Err(_) => processes::KILLED,
    };
    fork::signal_group(pid, 9);
    let heard = tokio::time::timeout(processes::PIPE_LINGERS, listening).await;
    let said = match heard {
        Ok(Ok((output, error))) => format!("{error}\n{output}").trim().to_owned(),
        _ => String::new(),
    };
    let _ = events.send(Event::LauncherEnded { exit, said }).await;
}

/// What a launcher says, cut: it speaks of failures only.
async fn listen(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let (Some(mut pipe), mut said, mut buffer) = (pipe, Vec::new(), [0; 4096]) else {
        return String::new();
    };
    while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
        let room = SAID.saturating_sub(said.len());
        said.extend_from_slice(&buffer[..n.min(room)]);
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// What is wrong when `mpiexec` ends before all processes have begun.
pub(crate) fn failure(exit: Exit, said: &str) -> Refusal {
    let how = match exit {
        Exit::Status(status) => format!("exit status {status}"),
        Exit::Signal(signal) => format!("signal {signal}"),
    };
    let said = if said.is_empty() { "nothing" } else { said };
    Refusal::new(
        format!("the machine's own mpiexec ended ({how}) before all processes were started; it said: {said}"),
        "try it there by hand: mpiexec -n 2 hostname",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn commands_of_one_mpi_lie_together() {
        let directory = std::env::temp_dir().join(format!("isthmus-agent-vendor-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for name in [
            "mpiexec",
            "mpicc",
            "mpicc_abi",
            "mpiexec.x",
            "mpicc.x",
            "mpirun.y",
            "isthmus",
        ] {
            let file = directory.join(name);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let own = directory.join("isthmus");
        let names = |named: &str| {
            let (mpiexec, mpicc) = commands(named, directory.as_os_str(), &own).map_err(|r| r.reason)?;
            let name = |p: PathBuf| p.file_name().unwrap().to_string_lossy().into_owned();
            Ok::<_, String>((name(mpiexec), name(mpicc)))
        };
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(names("mpiexec"), pair("mpiexec", "mpicc"));
        assert_eq!(names("mpiexec.x"), pair("mpiexec.x", "mpicc.x"));
        assert_eq!(names("mpicc_abi"), pair("mpiexec", "mpicc_abi"));
        assert!(names("mpirun.y").unwrap_err().contains("no mpicc beside"));
        assert!(names("mpiexec.z").unwrap_err().contains("there is no 'mpiexec.z'"));
        assert!(names("isthmus").is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
