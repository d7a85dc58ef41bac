// SPDX-License-Identifier: Apache-2.0
//! `isthmus @sweep DIRECTORY…`: removes what an agent leaves when it is killed.
//!
//! It waits for the end of its standard input, which only its agent holds open, and does nothing else. An agent that
//! ends in good order ends it.

use isthmus_stage::{guarded, own};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// First argument that makes the `isthmus` binary call [`sweep`].
pub const SWEEPER: &str = "@sweep";
/// How often it is tried until the kernel has ended whoever held the directories, and the pause between.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// Starts one for these directories. Without it the next agent on the machine removes them.
pub(crate) fn start(binary: &Path, directories: &[&Path]) -> Option<Child> {
    let mut command = Command::new(own::found(binary));
    command.arg(SWEEPER).args(directories);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.process_group(0).spawn().ok()
}

/// Waits for the end of the agent, then removes these directories of its and others that nobody holds.
pub fn sweep(directories: impl Iterator<Item = OsString>) {
    let directories: Vec<PathBuf> = directories.map(PathBuf::from).collect();
    let mut rest = Vec::new();
    // Nothing comes but the end.
    let _ = std::io::stdin().lock().take(1).read_to_end(&mut rest);
    let user = rustix::process::getuid().as_raw();
    for _ in 0..ATTEMPTS {
        for base in directories.iter().filter(|d| d.exists()).filter_map(|d| d.parent()) {
            guarded::sweep(base, &format!("isthmus-{user}-"), user);
        }
        if !directories.iter().any(|d| d.exists()) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}
