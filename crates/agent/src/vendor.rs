// SPDX-License-Identifier: Apache-2.0
//! A subjob on the vendor MPI: its `mpiexec` starts guards (see [`crate::guard`]), which start the processes.

use crate::event::Event;
use crate::guard::GUARD;
use crate::pipes::Pipes;
use crate::processes;
use crate::program::{self, Length, Refusal};
use crate::template::{self, Templates};
use isthmus_sched::fork::{self, Template};
use isthmus_sched::launching;
use isthmus_wire::grid::{Exit, Input, LauncherEnd, Start};
use isthmus_wire::guard::{self, Answer, ENDED_BYTES, MAX_ANSWER, MAX_DESCRIPTORS, Orders, decode_ended};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Most bytes of what the MPI's `mpiexec` says that are kept for an error.
const SAID: usize = 2048;
/// A program may be `mpiexec` or have a suffix of its family.
const LAUNCHERS: [&str; 3] = ["mpiexec", "mpirun", "srun"];

/// The vendor MPI: its commands and the adaptor to it.
#[derive(Debug)]
struct Tools {
    mpiexec: PathBuf,
    adaptor: PathBuf,
}

/// What is ready for processes that the vendor MPI will start here.
#[derive(Debug)]
pub(crate) struct Underneath {
    tools: Tools,
    template: Template,
    /// Where guards come in.
    name: String,
    door: AbortHandle,
}

impl Drop for Underneath {
    fn drop(&mut self) {
        self.door.abort();
    }
}

/// What guards are told, by index, and who is to be told of them.
struct Door {
    /// Index within the subjob of the first process.
    first: u32,
    orders: Vec<Orders>,
    events: mpsc::Sender<Event>,
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
    /// Finds the MPI that the user named by its `mpiexec` or its `mpicc`, and builds the adaptor to it unless it is
    /// there.
    fn prepare(named: &str, path: &OsStr, own: &Path, cache: &Path) -> Result<Self, Refusal> {
        let (mpiexec, mpicc) = commands(named, path, own)?;
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
}

impl Underneath {
    /// Finds the MPI, where `path` says, and opens the door for the guards of the processes with these tokens.
    pub(crate) fn prepare(
        start: &Start,
        path: &OsStr,
        cache: &Path,
        mut templates: Templates,
        rendezvous: &Path,
        tokens: Vec<[u8; 16]>,
        events: &mpsc::Sender<Event>,
    ) -> Result<Self, Refusal> {
        // What starts the processes has the variables that are the same for all.
        let mut template = template::shared(start, &templates);
        let tools = Tools::prepare(&start.vendor, path, &template.trampoline, cache)?;
        let (habits, adaptor) = (habits(start.of > start.count), tools.adaptor.as_os_str());
        let name = isthmus_settings::VENDOR.name;
        templates.surround(&habits, name, adaptor);
        template.environment.splice(0..0, habits);
        template.environment.push((name.to_owned(), adaptor.to_owned()));
        let orders = orders(start, &templates, rendezvous, tokens);
        // Those of one program differ in numbers of fixed length only.
        let firsts = start
            .sections
            .iter()
            .filter_map(|section| orders.get(section.first as usize));
        if let Some(refusal) = firsts.filter_map(too_long).next() {
            return Err(refusal);
        }
        let door = Door {
            first: start.first,
            orders,
            events: events.clone(),
        };
        let name = guard::door(&start.job, start.subjob);
        let listener = listen(&name).map_err(|error| {
            let why = format!("cannot listen for the processes that the machine's own MPI starts ('@{name}'): {error}");
            Refusal::new(why, "several nodes of a subjob must not be on one host")
        })?;
        let door = tokio::spawn(welcome(listener, Arc::new(door))).abort_handle();
        Ok(Self {
            tools,
            template,
            name,
            door,
        })
    }

    /// Starts the guards of all `count` processes of the subjob, so many on each of these hosts; none: on this one.
    pub(crate) fn launch(
        &self,
        count: u32,
        hosts: &[(String, u32)],
        events: &mpsc::Sender<Event>,
    ) -> Result<Launcher, Refusal> {
        let command = self.command(count, hosts);
        let cannot = |error| {
            let what = "the machine's own mpiexec";
            program::not_started(what, &error, &command.arguments, &command.environment, "")
        };
        let child = fork::spawn(&command, &[], &fork::StandardInput::Empty).map_err(cannot)?;
        let ended = || cannot(io::Error::other("it ended before it began"));
        let pid = child.id().ok_or_else(ended)?;
        tokio::spawn(watch(child, pid, events.clone()));
        Ok(Launcher { pid, ended: false })
    }

    fn command(&self, count: u32, hosts: &[(String, u32)]) -> Template {
        let template = &self.template;
        let mut arguments = vec!["-n".to_owned(), count.to_string()];
        let (mut environment, mut hidden) = (template.environment.clone(), template.hidden.clone());
        if hosts.len() > 1 {
            let within = launching::within_allocation(hosts, |name| std::env::var(name).ok());
            // What the user has set is meant for it.
            let set = |hidden: &String| template.environment.iter().any(|(name, _)| name == hidden);
            hidden.extend(within.hidden.into_iter().filter(|name| !set(name)));
            environment.splice(
                0..0,
                within.environment.into_iter().map(|(n, v)| (n.to_owned(), v.into())),
            );
            arguments.extend(launching::placement(&self.tools.mpiexec, hosts));
        }
        // All families know these words.
        let last = |name: &str| template.environment.iter().rev().find(|(n, _)| n == name);
        for (option, word) in [
            ("-bind-to", isthmus_settings::BIND_TO),
            ("-map-by", isthmus_settings::MAP_BY),
        ] {
            if let Some(value) = word.read(|name| last(name).map(|(_, value)| value.clone())) {
                arguments.extend([option, value].map(str::to_owned));
            }
        }
        let guard = [template.trampoline.to_string_lossy().into_owned(), GUARD.to_owned()];
        arguments.extend(guard.into_iter().chain([self.name.clone()]));
        let mpiexec = self.tools.mpiexec.clone();
        Template {
            name: mpiexec.to_string_lossy().into_owned(),
            program: mpiexec,
            arguments,
            environment,
            hidden,
            ..template.clone()
        }
    }
}

/// What the guards of the processes with these tokens start.
fn orders(start: &Start, templates: &Templates, rendezvous: &Path, tokens: Vec<[u8; 16]>) -> Vec<Orders> {
    let bytes = |text: &OsStr| text.as_bytes().to_vec();
    let orders = |(index, token)| {
        let template = templates.of(index);
        let environment = template.environment.iter();
        let hidden = template.hidden.iter();
        Orders {
            token,
            index,
            input: start.input == Input::All || start.input == Input::One(index),
            rendezvous: bytes(rendezvous.as_os_str()),
            program: bytes(template.program.as_os_str()),
            name: template.name.clone(),
            arguments: template.arguments.clone(),
            environment: environment.map(|(name, value)| (name.clone(), bytes(value))).collect(),
            hidden: hidden
                .filter(|name| *name != isthmus_settings::VENDOR.name)
                .cloned()
                .collect(),
            directory: bytes(template.directory.as_os_str()),
        }
    };
    (0..).zip(tokens).map(orders).collect()
}

/// Orders that no guard takes, or no process: said before anything is started, once and not by every guard.
fn too_long(orders: &Orders) -> Option<Refusal> {
    let variables = orders.environment.iter().map(|(name, value)| (&**name, value.len()));
    let length = Length::of(&orders.arguments, variables);
    let bytes = Answer::Orders(Box::new(orders.clone())).encode().len() - 4;
    let why = if length.one_is_too_long() {
        "more than the system takes for one".to_owned()
    } else if bytes > MAX_ANSWER {
        format!("{bytes} bytes with what goes with them, of at most {MAX_ANSWER}")
    } else {
        return None;
    };
    Some(Refusal::new(
        format!("the machine's own MPI cannot start the program: {length}, {why}"),
        program::SHORTEN,
    ))
}

/// Listens under an abstract name, so that guards find the agent of their node without a directory that all nodes know.
fn listen(name: &str) -> io::Result<UnixListener> {
    let address = SocketAddr::from_abstract_name(name)?;
    let listener = std::os::unix::net::UnixListener::bind_addr(&address)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// What Open MPI has to be told. How many processes a node gets has been decided, of several nodes in all detail: with
/// more than there are processors Open MPI 5 would fill the first one with all of them. Plug-ins that call MPI
/// functions by name would find ours.
fn habits(several: bool) -> Vec<(String, OsString)> {
    let mapping = if several { "slot" } else { ":oversubscribe" };
    let mut all = vec![
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("PRTE_MCA_rmaps_default_mapping_policy", mapping),
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

/// Longest time from a connection to the rank of who made it.
const RANK_TIME: Duration = Duration::from_secs(10);

/// Lets guards in.
async fn welcome(listener: UnixListener, door: Arc<Door>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&door)));
            }
            // Out of descriptors, most likely: leave others time to close some.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Serves one guard; its end before it said how its process ended is a violent one.
async fn serve(mut stream: UnixStream, door: Arc<Door>) {
    let mut rank = [0; 4];
    let own = rustix::process::geteuid().as_raw();
    if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
        || !matches!(
            tokio::time::timeout(RANK_TIME, stream.read_exact(&mut rank)).await,
            Ok(Ok(_))
        )
    {
        return;
    }
    let rank = u32::from_le_bytes(rank);
    let index = rank.wrapping_sub(door.first);
    let Some(orders) = door.orders.get(index as usize) else {
        let refusal = misplaced(rank, door.first, door.orders.len() as u32);
        let _ = stream
            .write_all(&Answer::Refused(refusal.reason.clone()).encode())
            .await;
        let _ = door.events.send(Event::Misplaced(refusal)).await;
        return;
    };
    let answer = Answer::Orders(Box::new(orders.clone()));
    if stream.write_all(&answer.encode()).await.is_err() {
        return;
    }
    let events = &door.events;
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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
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
    let listening = tokio::spawn(async move { tokio::join!(hear(output), hear(error)) });
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
    let _ = events.send(Event::LauncherEnded(LauncherEnd { exit, said })).await;
}

/// What a launcher says, cut: it speaks of failures only.
async fn hear(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let (Some(mut pipe), mut said, mut buffer) = (pipe, Vec::new(), [0; 4096]) else {
        return String::new();
    };
    while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
        let room = SAID.saturating_sub(said.len());
        said.extend_from_slice(&buffer[..n.min(room)]);
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// What is wrong when `mpiexec` starts a process where another node's is awaited. The agent awaits `count` processes
/// from `first` on.
fn misplaced(rank: u32, first: u32, count: u32) -> Refusal {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let last = (first + count).saturating_sub(1);
    Refusal::new(
        format!(
            "the machine's own mpiexec started its rank {rank} on {host}, where ranks {first} to {last} of the subjob are awaited"
        ),
        "ranks fill one node after the other: leave out what maps processes in another way (--map-by, variables of that MPI)",
    )
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
    fn orders_that_are_too_long_are_refused_before_anything_is_started() {
        let mut orders = Orders {
            token: [0; 16],
            index: 0,
            input: false,
            rendezvous: Vec::new(),
            program: Vec::new(),
            name: String::new(),
            arguments: Vec::new(),
            environment: vec![("GRID".to_owned(), vec![b'y'; 100_000]); 83],
            hidden: Vec::new(),
            directory: Vec::new(),
        };
        let bytes = |orders: &Orders| Answer::Orders(Box::new(orders.clone())).encode().len() - 4;
        // As long as they may be together; an argument has its length before it.
        let rest = MAX_ANSWER - bytes(&orders) - 4;
        orders.arguments.push("x".repeat(rest));
        assert_eq!((bytes(&orders), too_long(&orders)), (MAX_ANSWER, None));
        orders.arguments[0].push('x');
        let Refusal { reason, hint } = too_long(&orders).expect("refused");
        assert!(
            reason.contains("8388609 bytes with what goes with them, of at most 8388608"),
            "{reason}"
        );
        assert!(
            reason.contains("the longest of all is variable GRID with 100006"),
            "{reason}"
        );
        assert!(hint.contains("into a file"), "{hint}");
        // One alone.
        let most = 32 * rustix::param::page_size() - 1;
        orders.environment.clear();
        orders.arguments = vec!["-x".to_owned(), "x".repeat(most)];
        assert_eq!(too_long(&orders), None);
        orders.arguments[1].push('x');
        let Refusal { reason, .. } = too_long(&orders).expect("refused");
        assert!(reason.contains("the longest of all is argument 2 with"), "{reason}");
        assert!(reason.contains("more than the system takes for one"), "{reason}");
    }

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
