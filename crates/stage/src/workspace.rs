// SPDX-License-Identifier: Apache-2.0
//! The directory of a subjob at a site: filled before its start, read after its end, removed.
//!
//! ```text
//!  <cache>/isthmus/jobs/job-<random>/lock     locked by everybody who uses it: the service, the agent
//!                                   /lease    for how many seconds it stays when nobody does; touched when they begin
//!                                   /files    what the subjob finds: ISTHMUS_FILES
//!                                   /scratch  path of a directory elsewhere that lives as long, if there is one
//! ```
//! It goes with the last of them, or when its lease is over: then whoever of us comes to the machine next removes it.
//! Inputs are links to read-only files of the cache. Nothing of what the launcher says leaves the directory, and
//! nothing outside of it is read: no part of a path may be a link that a program made.

use crate::error::{StageError, failed};
use crate::guarded;
use crate::local;
use crate::store::Store;
use crate::words;
use isthmus_wire::service::{Entry, Placed};
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the part that is the subjob's.
const FILES: &str = "files";

/// A part in such a directory. The last one that is dropped removes it, unless its lease is not over.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    lock: Option<fs::File>,
}

/// A directory that waits for somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its name, with which it can be entered.
    pub name: String,
    /// Bytes in it.
    pub size: u64,
    /// Since somebody used it.
    pub age: Duration,
}

impl Workspace {
    /// A new one below this cache, after removing what was left there.
    pub fn create(cache: &Path, lease: Duration) -> Result<Self, StageError> {
        let make = || {
            guarded::make(&guarded::jobs(cache)?, guarded::JOB, |path| {
                guarded::write_lease(path, lease)?;
                fs::DirBuilder::new().mode(0o700).create(path.join(FILES))
            })
        };
        let (path, lock) = make().map_err(failed("create a directory in", cache))?;
        Ok(Self { path, lock: Some(lock) })
    }

    /// One that was made before, by its name. Its lease begins anew. None: it is there no more.
    pub fn enter(cache: &Path, name: &str) -> Result<Option<Self>, StageError> {
        let random = name.strip_prefix(guarded::JOB).unwrap_or_default();
        if random.is_empty() || !random.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(StageError::Name(name.to_owned()));
        }
        let path = cache.join("jobs").join(name);
        let joined = guarded::join(&path).map_err(failed("lock", &path))?;
        let entered = joined.map(|lock| Self { path, lock: Some(lock) });
        if let Some(entered) = &entered {
            entered.renew();
        }
        Ok(entered)
    }

    /// The one that these are the files of, for somebody who uses them.
    pub fn of(files: &Path) -> Option<Self> {
        let path = files.parent()?.to_owned();
        let lock = guarded::join(&path).ok()??;
        Some(Self { path, lock: Some(lock) })
    }

    /// Removes those in this cache that nobody uses and whose lease is over.
    pub fn sweep(cache: &Path) {
        let _ = guarded::jobs(cache);
    }

    /// Those in this cache that nobody uses and whose lease is not over.
    pub fn left(cache: &Path) -> Vec<Left> {
        let jobs = fs::read_dir(cache.join("jobs"));
        let found = jobs.into_iter().flatten().flatten().filter_map(|entry| {
            let age = guarded::lease_age(&entry.path())?;
            let entries = local::walk(&entry.path().join(FILES), false).ok()?;
            Some(Left {
                name: entry.file_name().into_string().ok()?,
                size: entries.iter().map(|e| e.size).sum(),
                age,
            })
        });
        found
            .filter(|left| !guarded::is_owned(&cache.join("jobs").join(&left.name)))
            .collect()
    }

    /// Removes those.
    pub fn remove_left(cache: &Path) {
        for left in Self::left(cache) {
            let path = cache.join("jobs").join(left.name);
            if guarded::write_lease(&path, Duration::ZERO).is_ok() {
                guarded::remove_left(&path);
            }
        }
    }

    /// Its name, with which it can be entered.
    pub fn name(&self) -> &str {
        self.path.file_name().and_then(|n| n.to_str()).unwrap_or_default()
    }

    /// Where the subjob's files are.
    pub fn path(&self) -> PathBuf {
        self.path.join(FILES)
    }

    /// Its lease begins now.
    pub fn renew(&self) {
        guarded::renew_lease(&self.path);
    }

    /// Removes it, whoever uses it.
    pub fn remove(mut self) {
        self.lock = None;
        let _ = guarded::remove_all(&self.path);
    }

    /// Makes a directory below `base` that goes with this one.
    pub fn scratch(&self, base: &Path) -> Result<PathBuf, StageError> {
        // It was asked before, and the answer was lost.
        if let Some(made) = guarded::scratch(&self.path).filter(|made| made.parent() == Some(base) && made.is_dir()) {
            return Ok(made);
        }
        let random = guarded::random::<8>().map_err(failed("name a directory in", base))?;
        let path = base.join(format!("{}{}", guarded::SCRATCH, crate::content::hex(&random)));
        // First the note: nothing is made that nobody would remove.
        guarded::note_scratch(&self.path, &path).map_err(failed("note", &path))?;
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(failed("create", &path))?;
        Ok(path)
    }

    /// Puts a file of the cache here.
    pub fn link(&self, store: &Store, placed: &Placed) -> Result<(), StageError> {
        let target = self.inside(&placed.path)?;
        let found = store.find(&placed.hash, &placed.name, placed.size)?;
        let source = found.ok_or_else(|| failed("find", Path::new(&placed.name))(io::ErrorKind::NotFound.into()))?;
        if let Some(parent) = Path::new(&placed.path).parent().filter(|p| !p.as_os_str().is_empty()) {
            self.make_directory(&parent.to_string_lossy())?;
        }
        match std::os::unix::fs::symlink(&source, &target) {
            // It was asked before, and the answer was lost.
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists
                    && fs::read_link(&target).is_ok_and(|l| l == source) =>
            {
                Ok(())
            }
            linked => linked.map_err(failed("create", &target)),
        }
    }

    /// The files of the cache that are linked from here: where they are.
    pub fn links(&self) -> Vec<PathBuf> {
        links(&self.path())
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
                at = openat(&at, words::os(part), flags, Mode::empty())?;
            }
            let file = fs::File::from(at);
            match file.metadata()?.is_file() {
                true => Ok(file),
                false => Err(io::Error::other("it is not a file")),
            }
        };
        open().map_err(failed("read", &target))
    }

    fn inside(&self, path: &str) -> Result<PathBuf, StageError> {
        let odd = |part: &str| matches!(part, "" | "." | "..") || part.contains('\0') || words::os(part).len() > 255;
        if words::os(path).len() > 4096 || path.split('/').any(odd) {
            return Err(StageError::Name(path.to_owned()));
        }
        Ok(self.path().join(words::path(path)))
    }
}

/// Where the links below a directory lead that have been put there.
pub fn links(files: &Path) -> Vec<PathBuf> {
    let entries = local::walk(files, false).unwrap_or_default();
    let links = entries
        .iter()
        .filter_map(|e| fs::read_link(files.join(words::path(&e.path))).ok());
    links.collect()
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if self.lock.take().is_some() {
            guarded::remove_left(&self.path);
        }
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
        let workspace = Workspace::create(cache.path(), Duration::ZERO).unwrap();
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
        workspace.link(&store, &placed("a/b/in")).unwrap();
        assert_eq!(workspace.links().len(), 2, "the link to /etc is one too");
        let path = workspace.path();
        drop(workspace);
        assert!(!path.exists());
    }

    #[test]
    fn a_scratch_directory_goes_with_it() {
        let (cache, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let workspace = Workspace::create(cache.path(), Duration::from_secs(100)).unwrap();
        assert!(workspace.scratch(&scratch.path().join("missing")).is_err());
        let made = workspace.scratch(scratch.path()).unwrap();
        assert_eq!(workspace.scratch(scratch.path()).unwrap(), made);
        fs::write(made.join("large"), "data").unwrap();
        drop(workspace);
        assert!(made.exists(), "the lease is not over");
        Workspace::remove_left(cache.path());
        assert!(!made.exists() && scratch.path().exists());
    }

    #[test]
    fn it_lives_as_long_as_somebody_uses_it_or_its_lease() {
        let cache = tempfile::tempdir().unwrap();
        let enter = |name: &str| Workspace::enter(cache.path(), name).unwrap();
        let leased = Workspace::create(cache.path(), Duration::from_secs(100)).unwrap();
        let (name, path) = (leased.name().to_owned(), leased.path());
        assert_eq!(Workspace::left(cache.path()), []);
        drop(leased);
        assert!(path.exists());
        let left = Workspace::left(cache.path());
        assert!(left.len() == 1 && left[0].name == name && left[0].age < Duration::from_secs(50));
        // Others come and go.
        drop(Workspace::create(cache.path(), Duration::ZERO).unwrap());
        let again = enter(&name).expect("it waits");
        assert_eq!(again.path(), path);
        again.remove();
        assert!(!path.exists() && enter(&name).is_none());

        let service = Workspace::create(cache.path(), Duration::ZERO).unwrap();
        let (name, path) = (service.name().to_owned(), service.path());
        let agent = Workspace::of(&path).unwrap();
        drop(service);
        assert!(path.exists(), "somebody uses it");
        drop(enter(&name).unwrap());
        drop(agent);
        assert!(!path.exists() && Workspace::left(cache.path()).is_empty());

        drop(Workspace::create(cache.path(), Duration::from_secs(100)).unwrap());
        Workspace::remove_left(cache.path());
        assert_eq!(fs::read_dir(cache.path().join("jobs")).unwrap().count(), 0);
        for name in ["", "job-", "job-../x", "files"] {
            assert!(Workspace::enter(cache.path(), name).is_err(), "{name}");
        }
    }
}
