// SPDX-License-Identifier: Apache-2.0
//! Starting processes by fork on this machine.
//!
//! Each process is started through the `isthmus` binary itself ([`TRAMPOLINE`]), which asks the kernel to
//! kill the process when the agent dies and then becomes the program. Each is the leader of a process
//! group of its own, so that what it starts can be ended with it.

use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// First argument that makes the `isthmus` binary call [`trampoline`].
pub const TRAMPOLINE: &str = "@exec";

/// Bytes of a script that the system looks at.
const LONGEST_FIRST_LINE: u64 = 256;
/// Exit status of a process whose program does not exist.
pub const STATUS_NOT_FOUND: u8 = 127;
/// Exit status of a process whose program cannot be executed.
pub const STATUS_NOT_EXECUTABLE: u8 = 126;

/// What every process of a subjob has in common.
#[derive(Clone, Debug)]
pub struct Template {
    /// The `isthmus` binary.
    pub trampoline: PathBuf,
    /// The program.
    pub program: PathBuf,
    /// What the program sees as its own name.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Variables to set.
    pub environment: Vec<(String, OsString)>,
    /// Variables to remove.
    pub hidden: Vec<String>,
    /// Working directory.
    pub directory: PathBuf,
}

/// Where the standard input of a process comes from.
#[derive(Clone, Debug)]
pub enum StandardInput {
    /// Nowhere: it is empty.
    Empty,
    /// The caller, who writes it.
    Piped,
    /// This file.
    File(PathBuf),
}

/// What a word is for the system.
fn os(text: &str) -> OsString {
    OsString::from_vec(isthmus_wire::word::to_bytes(text))
}

/// Starts one process with its own variables. Must be called on a thread that lives as long as the process:
/// the kernel kills the process when that thread ends.
pub fn spawn(template: &Template, own: &[(&str, String)], input: &StandardInput) -> io::Result<Child> {
    let mut command = std::process::Command::new(&template.trampoline);
    command
        .arg(TRAMPOLINE)
        .arg(std::process::id().to_string())
        .arg(os(&template.name))
        .arg(&template.program)
        .args(template.arguments.iter().map(|a| os(a)))
        .current_dir(&template.directory)
        .process_group(0);
    for name in &template.hidden {
        command.env_remove(name);
    }
    command.envs(template.environment.iter().map(|(n, v)| (n, v)));
    command.envs(own.iter().map(|(n, v)| (n, os(v))));
    let mut command = Command::from(command);
    command.stdin(match input {
        StandardInput::Empty => Stdio::null(),
        StandardInput::Piped => Stdio::piped(),
        StandardInput::File(path) => std::fs::File::open(path)?.into(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn()
}

/// Becomes the program of `isthmus @exec PARENT NAME PROGRAM ARGUMENT…`; returns the message and exit
/// status when that fails.
pub fn trampoline(arguments: impl Iterator<Item = OsString>) -> (String, u8) {
    let mut arguments = arguments;
    let parent = arguments.next().and_then(|a| a.to_str()?.parse::<i32>().ok());
    let (Some(parent), Some(name), Some(program)) = (parent, arguments.next(), arguments.next()) else {
        return ("this command is for isthmus itself".to_owned(), STATUS_NOT_EXECUTABLE);
    };
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return (
            format!("cannot tie the process to its agent: {error}"),
            STATUS_NOT_EXECUTABLE,
        );
    }
    // The agent may have died before the kernel was asked.
    if rustix::process::getppid().map(Pid::as_raw_pid) != Some(parent) {
        return ("the agent is gone".to_owned(), STATUS_NOT_EXECUTABLE);
    }
    if let Err(text) = bind() {
        return (text, STATUS_NOT_EXECUTABLE);
    }
    let mut command = std::process::Command::new(&program);
    let error = command
        .arg0(name)
        .args(arguments)
        .env_remove(isthmus_settings::PROCESSORS.name)
        .exec();
    let status = if error.kind() == io::ErrorKind::NotFound {
        STATUS_NOT_FOUND
    } else {
        STATUS_NOT_EXECUTABLE
    };
    (
        format!(
            "cannot execute '{}': {}",
            Path::new(&program).display(),
            explain(&error, Path::new(&program))
        ),
        status,
    )
}

/// Binds this process as `ISTHMUS_PROCESSORS` says, and tells what it is bound to if that is wanted.
fn bind() -> Result<(), String> {
    let list = isthmus_settings::PROCESSORS.read(std::env::var_os);
    if !list.is_empty() {
        let mut set = CpuSet::new();
        let numbers = list.iter().filter_map(|n| n.parse::<usize>().ok());
        numbers.filter(|&n| n < CpuSet::MAX_CPU).for_each(|n| set.set(n));
        sched_setaffinity(None, &set)
            .map_err(|error| format!("cannot bind the process to processors {}: {error}", list.join(",")))?;
    }
    if isthmus_settings::REPORT_BINDINGS.read(std::env::var_os) {
        let set =
            sched_getaffinity(None).map_err(|error| format!("cannot ask what the process is bound to: {error}"))?;
        let numbers = (0..CpuSet::MAX_CPU).filter(|&n| set.is_set(n)).map(|n| n.to_string());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let index = isthmus_settings::INDEX.read(std::env::var_os).unwrap_or_default();
        let list = numbers.collect::<Vec<_>>().join(",");
        // Who does not read it does not want it.
        let _ = writeln!(io::stderr(), "isthmus: process {index} on {host}: processors {list}");
    }
    Ok(())
}

fn explain(error: &io::Error, program: &Path) -> String {
    if error.kind() != io::ErrorKind::NotFound {
        return error.to_string();
    }
    match interpreter(program) {
        Some(name) if name.ends_with('\r') => format!(
            "it has the line ends of Windows, so that its interpreter would be '{}'; sed -i 's/\\r$//' mends it",
            name.escape_debug()
        ),
        Some(name) => format!("its interpreter '{}' does not exist", name.escape_debug()),
        None => "it or its interpreter does not exist".to_owned(),
    }
}

/// What the first line of a script names, as the system reads it.
fn interpreter(program: &Path) -> Option<String> {
    let mut begin = Vec::new();
    let file = std::fs::File::open(program).ok()?;
    file.take(LONGEST_FIRST_LINE).read_to_end(&mut begin).ok()?;
    let line = begin.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let is_blank = |b: &u8| *b == b' ' || *b == b'\t';
    let name = line.split(is_blank).find(|word| !word.is_empty())?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Sends a signal to a process and everything in its group. A group that is gone is no error.
pub fn signal_group(leader: u32, signal: u32) {
    let (Ok(leader), Ok(signal)) = (i32::try_from(leader), i32::try_from(signal)) else {
        return;
    };
    if let (Some(pid), Some(signal)) = (Pid::from_raw(leader), Signal::from_named_raw(signal)) {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// Kills every descendant that is left, also those that left their group, but not these children. The caller is a
/// subreaper.
///
/// Returns how many there were.
pub fn kill_strays(spared: &[u32]) -> usize {
    let mut killed = 0;
    // What a killed process started comes to us next, so look again until nothing is left, but not for ever:
    // a process in the middle of a disk access dies later.
    for _ in 0..100 {
        let mut strays = children_of_this_process();
        strays.retain(|pid| !u32::try_from(*pid).is_ok_and(|pid| spared.contains(&pid)));
        if strays.is_empty() {
            break;
        }
        for pid in strays.iter().filter_map(|raw| Pid::from_raw(*raw)) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            let reaped = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
            killed += usize::from(matches!(reaped, Ok(Some(_))));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    killed
}

fn children_of_this_process() -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let lists = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}
