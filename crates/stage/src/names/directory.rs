// SPDX-License-Identifier: Apache-2.0
//! Names that jobs of the user on this machine have published for each other: a private directory in the user's cache.
//!
//! | file | what |
//! |---|---|
//! | `owners/ID` | locked as long as its owner lives: a launcher, or a program without one |
//! | `HASH` | a name, and the port that it stands for ([`isthmus_wire::published`]) |
//!
//! Nothing runs here: a name whose owner's lock is free is stale. It is given to nobody, and goes when somebody sees
//! it.

use crate::content::hex;
use crate::{cache, guarded};
use isthmus_wire::published::{MAX_FILE, Published};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most names that are listed.
const MOST: usize = 10_000;

/// Directories below the user's cache: of names, and of worlds that are put together by hand.
const NAMES: &str = "names";
const WORLDS: &str = "worlds";

/// Why a name was not published.
#[derive(Debug)]
pub(super) enum Refused {
    /// Somebody else has it.
    Taken(Box<Published>),
    /// There is no place for names, or it cannot be used.
    NoPlace(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::NoPlace(error)
    }
}

/// Who publishes names: they are good as long as this value lives.
#[derive(Debug)]
pub(super) struct Owner {
    place: NamesDirectory,
    id: String,
    job: String,
    _lock: File,
}

impl Owner {
    /// Begins to publish; `job`: for people.
    ///
    /// # Errors
    /// There is no place for names.
    pub(super) fn begin(job: &str) -> io::Result<Self> {
        Self::begin_at(NamesDirectory::of_user(NAMES)?, job)
    }

    fn begin_at(place: NamesDirectory, job: &str) -> io::Result<Self> {
        let _turn = place.turn()?;
        let id = hex(&guarded::random::<16>()?);
        let lock = private().create_new(true).open(place.lock_of(&id))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        place.sweep();
        Ok(Self {
            id,
            job: job.chars().take(64).collect(),
            _lock: lock,
            place: place.clone(),
        })
    }

    /// From now on the name stands for this port.
    ///
    /// # Errors
    /// Somebody has published it, or it cannot be written down.
    pub(super) fn publish(&self, name: &str, port: &str) -> Result<(), Refused> {
        let _turn = self.place.turn()?;
        if let Some(known) = self.place.good(name)? {
            return Err(Refused::Taken(Box::new(known)));
        }
        let published = Published {
            name: name.to_owned(),
            port: port.to_owned(),
            owner: self.id.clone(),
            job: self.job.clone(),
            since: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        };
        let path = self.place.file_of(name);
        let new = path.with_extension("new");
        let _ = fs::remove_file(&new);
        private().create_new(true).open(&new)?.write_all(&published.encode())?;
        Ok(fs::rename(new, path)?)
    }

    /// From now on it stands for nothing. False: this owner has not published it for that port.
    ///
    /// # Errors
    /// The place cannot be used.
    pub(super) fn unpublish(&self, name: &str, port: &str) -> io::Result<bool> {
        let _turn = self.place.turn()?;
        let own = |known: &Published| known.owner == self.id && known.port == port;
        match self.place.good(name)?.filter(own) {
            Some(_) => fs::remove_file(self.place.file_of(name)).map(|()| true),
            None => Ok(false),
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _turn = self.place.turn();
        for (path, published) in self.place.files() {
            if published.is_some_and(|published| published.owner == self.id) {
                let _ = fs::remove_file(path);
            }
        }
        // What is left of them is stale.
        let _ = fs::remove_file(self.place.lock_of(&self.id));
    }
}

/// A world of which parts wait for others here, as long as this value lives.
#[derive(Debug)]
pub struct Announced(#[expect(dead_code, reason = "it holds the lock")] Owner);

/// Tells other launchers of the user that parts of a world wait here, and the ticket with which to join them; or gives
/// the ticket of whoever was first.
///
/// # Errors
/// There is no place for that, or it cannot be used.
pub fn announce(world: &str, ticket: &str) -> io::Result<Result<Announced, String>> {
    announce_at(NamesDirectory::of_user(WORLDS)?, world, ticket)
}

fn announce_at(place: NamesDirectory, world: &str, ticket: &str) -> io::Result<Result<Announced, String>> {
    let owner = Owner::begin_at(place, world)?;
    match owner.publish(world, ticket) {
        Ok(()) => Ok(Ok(Announced(owner))),
        Err(Refused::Taken(known)) => Ok(Err(known.port)),
        Err(Refused::NoPlace(error)) => Err(error),
    }
}

/// The port that a name stands for, and whose it is.
///
/// # Errors
/// There is no place for names, or it cannot be used.
pub(super) fn look_up(name: &str) -> io::Result<Option<Published>> {
    NamesDirectory::of_user(NAMES)?.good(name)
}

/// All names, in order. Those that are stale are removed.
///
/// # Errors
/// There is no place for names, or it cannot be used.
pub fn all() -> io::Result<Vec<Published>> {
    list(NAMES)
}

/// All worlds of which parts wait for others, in order; their ports are tickets. Those that are stale are removed.
///
/// # Errors
/// There is no place for them, or it cannot be used.
pub fn worlds() -> io::Result<Vec<Published>> {
    list(WORLDS)
}

fn list(kind: &str) -> io::Result<Vec<Published>> {
    list_in(cache::directory().map_err(io::Error::other)?.join(kind))
}

fn list_in(base: PathBuf) -> io::Result<Vec<Published>> {
    // Who only looks makes no directory, and needs none that can be made.
    if fs::symlink_metadata(&base).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let place = NamesDirectory::at(base)?;
    let _turn = place.turn()?;
    Ok(place.sweep())
}

/// The directory.
#[derive(Clone, Debug)]
struct NamesDirectory(PathBuf);

impl NamesDirectory {
    fn of_user(kind: &str) -> io::Result<Self> {
        let base = cache::directory().map_err(io::Error::other)?.join(kind);
        Self::at(base)
    }

    /// Makes it if it is not there. What others can get at is none.
    fn at(base: PathBuf) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", base.display()));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(base.join("owners"))
            .map_err(named)?;
        let found = fs::symlink_metadata(&base)?;
        let own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
        if !own || found.mode() & 0o077 != 0 {
            let path = base.display();
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{path} must be a directory of yours that nobody else can use (chmod 700 {path})"),
            ));
        }
        Ok(Self(base))
    }

    /// Whoever changes something takes turns with others.
    fn turn(&self) -> io::Result<File> {
        let directory = File::open(&self.0)?;
        flock(&directory, FlockOperation::LockExclusive)?;
        Ok(directory)
    }

    fn file_of(&self, name: &str) -> PathBuf {
        self.0.join(hex(&Sha256::digest(name.as_bytes())))
    }

    fn lock_of(&self, owner: &str) -> PathBuf {
        self.0.join("owners").join(owner)
    }

    fn lives(&self, owner: &str) -> bool {
        let lock = File::open(self.lock_of(owner));
        lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
    }

    /// A name whose owner lives.
    fn good(&self, name: &str) -> io::Result<Option<Published>> {
        let known = read(&self.file_of(name))?;
        Ok(known.filter(|known| known.name == name && self.lives(&known.owner)))
    }

    /// Files of names, and what stands in those that are sound.
    fn files(&self) -> Vec<(PathBuf, Option<Published>)> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten().take(MOST);
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        files
            .map(|entry| (entry.path(), read(&entry.path()).ok().flatten()))
            .collect()
    }

    /// Removes what is stale; gives the rest.
    fn sweep(&self) -> Vec<Published> {
        for entry in fs::read_dir(self.0.join("owners")).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|owner| !self.lives(owner)) {
                let _ = fs::remove_file(entry.path());
            }
        }
        let mut good = Vec::new();
        for (path, published) in self.files() {
            match published.filter(|published| self.lives(&published.owner)) {
                Some(published) => good.push(published),
                None => drop(fs::remove_file(path)),
            }
        }
        good.sort_by(|a, b| a.name.cmp(&b.name));
        good
    }
}

/// What stands in a file; nothing: there is none, or it is damaged.
fn read(path: &Path) -> io::Result<Option<Published>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Published::decode(&bytes).ok())
}

fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn place() -> (tempfile::TempDir, NamesDirectory) {
        let directory = tempfile::tempdir().unwrap();
        let place = NamesDirectory::at(directory.path().join("names")).unwrap();
        (directory, place)
    }

    fn port(place: &NamesDirectory, name: &str) -> Option<String> {
        place.good(name).unwrap().map(|known| known.port)
    }

    #[test]
    fn where_nothing_was_ever_published_there_are_no_names() {
        let home = tempfile::tempdir().unwrap();
        let base = home.path().join("names");
        assert_eq!(list_in(base.clone()).unwrap().len(), 0);
        assert!(!base.exists(), "looking makes nothing");
        std::os::unix::fs::symlink("/nowhere", &base).unwrap();
        let refused = list_in(base.clone()).unwrap_err().to_string();
        assert!(refused.contains(&*base.to_string_lossy()), "who is to blame: {refused}");
    }

    #[test]
    fn a_name_is_good_as_long_as_its_owner_lives() {
        let (_directory, place) = place();
        let first = Owner::begin_at(place.clone(), "one").unwrap();
        let second = Owner::begin_at(place.clone(), "two").unwrap();
        first.publish("ocean/../x", "p").unwrap();
        assert_eq!(port(&place, "ocean/../x").as_deref(), Some("p"));
        let Err(Refused::Taken(known)) = second.publish("ocean/../x", "q") else {
            panic!("two have it");
        };
        assert_eq!((known.job.as_str(), known.port.as_str()), ("one", "p"));
        assert!(!second.unpublish("ocean/../x", "p").unwrap());
        assert!(!first.unpublish("ocean/../x", "q").unwrap());
        assert!(first.unpublish("ocean/../x", "p").unwrap());
        assert_eq!(port(&place, "ocean/../x"), None);
        first.publish("a", "p").unwrap();
        drop(first);
        assert_eq!(port(&place, "a"), None);
        second.publish("a", "q").unwrap();
        assert_eq!(place.sweep().len(), 1);
    }

    #[test]
    fn of_two_parts_that_come_the_first_one_gathers() {
        let (_directory, place) = place();
        let first = announce_at(place.clone(), "ocean", "t1").unwrap().unwrap();
        assert_eq!(announce_at(place.clone(), "ocean", "t2").unwrap().unwrap_err(), "t1");
        assert!(announce_at(place.clone(), "sea", "t3").unwrap().is_ok());
        drop(first);
        assert!(announce_at(place, "ocean", "t4").unwrap().is_ok());
    }

    #[test]
    fn names_of_the_dead_and_damaged_files_are_noticed() {
        let (_directory, place) = place();
        let owner = Owner::begin_at(place.clone(), "one").unwrap();
        owner.publish("a", "p").unwrap();
        owner.publish("b", "p").unwrap();
        // As after SIGKILL: the files stay, the lock is free.
        let left = fs::read(place.file_of("a")).unwrap();
        drop(owner);
        fs::write(place.file_of("a"), &left).unwrap();
        fs::write(place.file_of("b"), b"\x01nonsense").unwrap();
        assert_eq!((port(&place, "a"), port(&place, "b")), (None, None));
        let next = Owner::begin_at(place.clone(), "two").unwrap();
        assert!(!place.file_of("a").exists() && !place.file_of("b").exists());
        // A file under the wrong name is not that name.
        next.publish("c", "p").unwrap();
        fs::copy(place.file_of("c"), place.file_of("d")).unwrap();
        assert_eq!((port(&place, "c").as_deref(), port(&place, "d")), (Some("p"), None));
    }

    #[test]
    fn a_place_that_others_can_use_is_none() {
        let (directory, place) = place();
        assert_eq!(fs::metadata(&place.0).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&place.0, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = NamesDirectory::at(directory.path().join("names")).unwrap_err();
        assert!(refused.to_string().contains("chmod 700"), "{refused}");
    }
}
