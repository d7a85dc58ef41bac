// SPDX-License-Identifier: Apache-2.0
//! Running commands of the system, for a bounded time and with bounded output.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Most bytes of output that are read.
const MAX_OUTPUT: u64 = 4 << 20;

/// Where a command is.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let is_program = |p: &PathBuf| rustix::fs::access(p, rustix::fs::Access::EXEC_OK).is_ok() && p.is_file();
    std::env::split_paths(&path).map(|d| d.join(name)).find(is_program)
}

/// What a command prints; `None` when there is no such command, it fails, or takes longer than `limit`.
pub(super) fn run(name: &str, arguments: &[&str], limit: Duration) -> Option<String> {
    let mut child = Command::new(find(name)?)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = output.take(MAX_OUTPUT).read_to_end(&mut bytes);
        bytes
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break Some(status),
            None if began.elapsed() > limit => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if status.is_none() {
        // With whatever it has started, which may hold the pipe.
        let group = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = child.wait();
    }
    let bytes = reading.join().ok()?;
    status
        .is_some_and(|s| s.success())
        .then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_bounded() {
        assert_eq!(run("echo", &["x"], Duration::from_secs(9)).as_deref(), Some("x\n"));
        assert_eq!(run("false", &[], Duration::from_secs(9)), None);
        assert_eq!(run("no-such-command", &[], Duration::from_secs(9)), None);
        assert_eq!(run("sh", &["-c", "sleep 100; echo"], Duration::from_millis(50)), None);
    }
}
