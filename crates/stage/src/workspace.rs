// SPDX-License-Identifier: Apache-2.0
//! The directory of a subjob at a site: filled before its start, read after its end, removed.
//!
//! ```text
//!  <cache>/isthmus/jobs/job-<random>/lock     locked as long as the service lives
//!                                   /files    what the subjob finds: ISTHMUS_FILES
//! ```
//! Inputs are links to read-only files of the cache. Nothing of what the launcher says leaves the directory, and nothing outside of it is read:
//! no part of a path may be a link that a program made.

use crate::guarded::Guarded;
use crate::local;
use crate::store::{StageError, Store, failed};
use isthmus_wire::service::{Entry, Placed};
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Such a directory; removed when dropped.
#[derive(Debug)]
pub struct Workspace {
    guarded: Guarded,
}

impl Workspace {
    /// A new one below this cache, after removing what killed services left.
    pub fn create(cache: &Path) -> Result<Self, StageError> {
        let guarded = Guarded::in_cache(cache).map_err(failed("create a directory in", cache))?;
        let workspace = Self { guarded };
        let files = workspace.path();
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&files)
            .map_err(failed("create", &files))?;
        Ok(workspace)
    }

    /// Where the subjob's files are.
    pub fn path(&self) -> PathBuf {
        self.guarded.path().join("files")
    }

    /// Puts a file of the cache here.
    pub fn link(&self, store: &Store, placed: &Placed) -> Result<(), StageError> {
        let target = self.inside(&placed.path)?;
        let found = store.find(&placed.hash, &placed.name, placed.size)?;
        let source = found.ok_or_else(|| failed("find", Path::new(&placed.name))(io::ErrorKind::NotFound.into()))?;
        if let Some(parent) = Path::new(&placed.path).parent().filter(|p| !p.as_os_str().is_empty()) {
            self.make_directory(&parent.to_string_lossy())?;
        }
        std::os::unix::fs::symlink(source, &target).map_err(failed("create", &target))
    }

    /// Makes a directory and those above it.
    pub fn make_directory(&self, path: &str) -> Result<(), StageError> {
        let target = self.inside(path)?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&target)
            .map_err(failed("create", &target))
    }

    /// What is here. Links are listed as such.
    pub fn list(&self) -> io::Result<Vec<Entry>> {
        local::walk(&self.path(), false)
    }

    /// Opens a file, which must be one, and no link on the way to it.
    pub fn open(&self, path: &str) -> Result<fs::File, StageError> {
        let target = self.inside(path)?;
        let open = || -> io::Result<fs::File> {
            let directory = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut at: OwnedFd = openat(CWD, self.path(), directory, Mode::empty())?;
            let mut parts = path.split('/').peekable();
            while let Some(part) = parts.next() {
                let last = parts.peek().is_none();
                // A pipe that a program made must not make us wait.
                let flags = if last {
                    OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC
                } else {
                    directory
                };
                at = openat(&at, part, flags, Mode::empty())?;
            }
            let file = fs::File::from(at);
            match file.metadata()?.is_file() {
                true => Ok(file),
                false => Err(io::Error::other("it is no file")),
            }
        };
        open().map_err(failed("read", &target))
    }

    fn inside(&self, path: &str) -> Result<PathBuf, StageError> {
        let odd = |part: &str| matches!(part, "" | "." | "..") || part.contains('\0') || part.len() > 255;
        if path.len() > 4096 || path.split('/').any(odd) {
            return Err(StageError::Name(path.to_owned()));
        }
        Ok(self.path().join(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content;
    use std::io::Read;

    #[test]
    fn inputs_are_links_and_nothing_leads_out() {
        let cache = tempfile::tempdir().unwrap();
        let store = Store::open(cache.path()).unwrap();
        let workspace = Workspace::create(cache.path()).unwrap();
        let bytes = b"content";
        let manifest = content::manifest(&mut &bytes[..]).unwrap();
        let mut partial = store.receive_pieces(manifest.clone(), "in").unwrap();
        partial.write(0, bytes).unwrap();
        partial.finish().unwrap();
        let placed = |path: &str| Placed {
            hash: manifest.hash,
            name: "in".into(),
            size: 7,
            path: path.into(),
            executable: false,
        };
        workspace.link(&store, &placed("a/b/in")).unwrap();
        assert_eq!(fs::read(workspace.path().join("a/b/in")).unwrap(), bytes);
        for path in ["../x", "/etc/x", "a//b", "", "a/../../x", "a/\0"] {
            assert!(workspace.link(&store, &placed(path)).is_err(), "{path}");
            assert!(workspace.make_directory(path).is_err(), "{path}");
            assert!(workspace.open(path).is_err(), "{path}");
        }
        fs::write(workspace.path().join("out"), "result").unwrap();
        let mut text = String::new();
        workspace.open("out").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "result");
        std::os::unix::fs::symlink("/etc", workspace.path().join("etc")).unwrap();
        assert!(workspace.open("etc/passwd").is_err());
        assert!(workspace.open("a/b/in").is_err(), "what was an input is not given back");
        let path = workspace.path();
        drop(workspace);
        assert!(!path.exists());
    }
}
