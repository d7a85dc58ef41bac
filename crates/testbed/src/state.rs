// SPDX-License-Identifier: Apache-2.0
//! The directory of a testbed: keys, homes, the control socket and who holds what.
//!
//! Everything else of a testbed disappears with its process. The directory is removed by an orderly end;
//! after a SIGKILL it stays without its lock, and the next start or `down --all` removes it.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ssh;

/// What a running testbed is, for other processes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Description {
    /// The process that holds everything.
    pub server: u32,
    /// Names of the sites.
    pub sites: Vec<String>,
    /// All hosts; the first is where commands run by default.
    pub hosts: Vec<HostDescription>,
    /// What is not available here, one sentence each.
    pub limits: Vec<String>,
}

/// What a host is, for other processes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct HostDescription {
    /// Its name.
    pub name: String,
    /// Its site.
    pub site: String,
    /// The machine that it is a node of.
    pub machine: String,
    /// Its IPv4 address, which it has unless its site has IPv6 only.
    pub address: Ipv4Addr,
    /// The address at which others reach it.
    pub reached: IpAddr,
    /// The process whose namespaces it lives in.
    pub holder: u32,
}

/// A testbed's own directory; removed when dropped.
#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    _lock: File,
}

impl StateDir {
    /// Makes the directory `name` below `root`; takes over one whose owner is dead.
    pub(crate) fn create(root: &Path, name: &str) -> Result<Self, Error> {
        check_name(name)?;
        let _turn = take_turn(root)?;
        let path = root.join(name);
        if path.exists() {
            remove_if_dead(&path)?;
        }
        ssh::private_dir(&path)?;
        let lock = File::create(path.join("lock")).map_err(Error::system("make the lock of a testbed"))?;
        // Waits at most for somebody who is just looking whether it is locked.
        flock(&lock, FlockOperation::LockExclusive).map_err(Error::call("lock a testbed"))?;
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn describe(&self, description: &Description) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(description).map_err(|e| Error::System {
            doing: "describe a testbed".to_owned(),
            source: e.into(),
        })?;
        // Written aside and renamed: readers see all of it or nothing.
        ssh::write(&self.path.join("description.new"), &text, 0o600)?;
        let renamed = fs::rename(self.path.join("description.new"), self.path.join("description.json"));
        renamed.map_err(Error::system("describe a testbed"))
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next sweep; the root goes with the last testbed.
        let _ = fs::remove_dir_all(&self.path);
        if let Some(root) = self.path.parent() {
            let _ = fs::remove_dir(root);
        }
    }
}

/// Reads the description of the testbed in `state`.
pub(crate) fn read(state: &Path) -> Result<Description, Error> {
    let path = state.join("description.json");
    let text = fs::read_to_string(&path).map_err(Error::system(format!("read {}", path.display())))?;
    serde_json::from_str(&text).map_err(|e| Error::System {
        doing: format!("read {}", path.display()),
        source: e.into(),
    })
}

/// Where testbeds of this user live: `/tmp/isthmus-testbed-UID`, or what ISTHMUS_TESTBED_ROOT says.
#[must_use]
pub fn default_root() -> PathBuf {
    if let Some(root) = isthmus_settings::TESTBED_ROOT.read(std::env::var_os) {
        return root;
    }
    // In a user namespace of our own making everybody is root: the name must not change with it.
    let user = isthmus_settings::TESTBED_USER.read(std::env::var_os);
    let user = user.unwrap_or_else(|| u64::from(rustix::process::getuid().as_raw()));
    PathBuf::from(format!("/tmp/isthmus-testbed-{user}"))
}

/// Names of the testbeds that run below `root`.
#[must_use]
pub fn running(root: &Path) -> Vec<String> {
    entries(root)
        .into_iter()
        .filter(|path| is_locked(path))
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect()
}

/// Removes what dead testbeds left below `root`; gives how many there were.
///
/// # Errors
/// [`Error::System`] when a directory cannot be removed.
pub fn sweep(root: &Path) -> Result<usize, Error> {
    if !root.exists() {
        return Ok(0);
    }
    let _turn = take_turn(root)?;
    let dead: Vec<_> = entries(root).into_iter().filter(|path| !is_locked(path)).collect();
    for path in &dead {
        fs::remove_dir_all(path).map_err(Error::system(format!("remove {}", path.display())))?;
    }
    Ok(dead.len())
}

/// The root, locked: a directory that is being made has no lock of its own yet and must not look dead.
fn take_turn(root: &Path) -> Result<File, Error> {
    loop {
        ssh::private_dir(root)?;
        check_owner(root)?;
        let doing = || format!("lock {}", root.display());
        let Ok(turn) = File::open(root) else { continue };
        flock(&turn, FlockOperation::LockExclusive).map_err(Error::call(doing()))?;
        // The last testbed removes the root: the one locked may no longer be the one there is.
        let locked = turn.metadata().map_err(Error::system(doing()))?.ino();
        if fs::metadata(root).is_ok_and(|now| now.ino() == locked) {
            return Ok(turn);
        }
    }
}

fn entries(root: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(root).map(|entries| entries.filter_map(|e| e.ok().map(|e| e.path())).collect());
    listing.unwrap_or_default()
}

/// Whether a living process holds the testbed in `path`.
fn is_locked(path: &Path) -> bool {
    let Ok(lock) = File::open(path.join("lock")) else {
        return false;
    };
    matches!(
        flock(&lock, FlockOperation::NonBlockingLockExclusive),
        Err(rustix::io::Errno::WOULDBLOCK)
    )
}

fn remove_if_dead(path: &Path) -> Result<(), Error> {
    if is_locked(path) {
        return Err(Error::System {
            doing: format!("make the testbed {}", path.display()),
            source: io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it is running; end it with `isthmus-testbed down` or choose another --name",
            ),
        });
    }
    fs::remove_dir_all(path).map_err(Error::system(format!("remove {}", path.display())))
}

/// `/tmp` is everybody's: a directory that somebody else made there is not ours to use.
fn check_owner(root: &Path) -> Result<(), Error> {
    let metadata = fs::symlink_metadata(root).map_err(Error::system(format!("look at {}", root.display())))?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_dir() && ours && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(Error::NotPermitted {
        doing: format!("use {}, which others own or may enter", root.display()),
        hint: "remove it, or set ISTHMUS_TESTBED_ROOT to a directory of your own".to_owned(),
    })
}

fn check_name(name: &str) -> Result<(), Error> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= 32 && name.chars().all(good) {
        return Ok(());
    }
    Err(Error::Topology {
        what: format!("\"{name}\" is not a name for a testbed"),
        hint: "up to 32 letters, digits, - and _".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("isthmus-state-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_living_testbed_keeps_its_directory_and_a_dead_one_does_not() {
        let root = root("alive");
        let bed = StateDir::create(&root, "one").unwrap();
        fs::create_dir(root.join("dead")).unwrap();
        assert_eq!(running(&root), ["one"]);
        assert!(
            StateDir::create(&root, "one")
                .unwrap_err()
                .to_string()
                .contains("running")
        );
        assert_eq!(sweep(&root).unwrap(), 1);
        drop(bed);
        assert!(running(&root).is_empty());
        assert!(!root.exists(), "the root goes with the last testbed");
    }

    #[test]
    fn names_cannot_leave_the_root() {
        let root = root("names");
        for name in ["", "..", "a/b", "a b"] {
            assert!(StateDir::create(&root, name).is_err(), "{name}");
        }
    }
}
