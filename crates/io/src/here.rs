// SPDX-License-Identifier: Apache-2.0
//! A file as this process has it: its name, its mode, the disk if that is reached, and errors that say which file it
//! is.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_wire::file::{Answer, MAX_PAYLOAD, What, decode_runs};
use rustix::fs::{FlockOperation, flock};

use crate::access::{self, Sieve};
use crate::allowed;
use crate::disk::{Own, read_all, write_all};
use crate::error::{self, Whose};
use crate::memory::{Source, Target};
use crate::mode::Mode;
use crate::name::Shown;
use crate::plain::again;
use crate::view::View;

/// See the module.
pub struct Here {
    path: Shown,
    /// Site where the file is.
    site: String,
    /// Whether errors name it: the job has several.
    names_site: bool,
    /// Of this process, for errors.
    rank: u32,
    mode: Mode,
    serves: Serves,
    /// `None`: this process does not reach the file; others do it for it.
    disk: Option<Arc<Own>>,
    atomic: AtomicBool,
    /// Between threads of this process, where the system's lock does not tell them apart.
    atoms: Mutex<()>,
}

/// Kept while an access in atomic mode lasts.
pub(crate) struct Atom<'a> {
    disk: &'a Own,
    _threads: MutexGuard<'a, ()>,
}

impl Drop for Atom<'_> {
    fn drop(&mut self) {
        let _ = flock(&**self.disk, FlockOperation::Unlock);
    }
}

/// What is known of a file when it has been opened.
pub(crate) struct Known {
    pub(crate) path: Shown,
    pub(crate) site: String,
    pub(crate) names_site: bool,
    pub(crate) rank: u32,
    pub(crate) mode: Mode,
    pub(crate) serves: Serves,
}

/// For whom this process uses a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serves {
    /// For itself and others of its site: it is in no directory that processes of other sites reach.
    Site,
    /// For all who have opened it.
    All,
    /// For processes of other sites only, as their guest.
    Others,
}

impl Here {
    pub(crate) fn new(known: Known, disk: Option<std::fs::File>) -> Self {
        Self {
            path: known.path,
            site: known.site,
            names_site: known.names_site,
            rank: known.rank,
            mode: known.mode,
            serves: known.serves,
            disk: disk.map(|file| Arc::new(Own::new(file))),
            atomic: AtomicBool::new(false),
            atoms: Mutex::new(()),
        }
    }

    pub(crate) fn path(&self) -> &Shown {
        &self.path
    }

    pub(crate) fn site(&self) -> &str {
        &self.site
    }

    /// The access mode that it was opened with.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether accesses that conflict are done one after the other.
    pub fn is_atomic(&self) -> bool {
        self.atomic.load(Ordering::Relaxed)
    }

    pub(crate) fn set_atomic(&self, atomic: bool) {
        self.atomic.store(atomic, Ordering::Relaxed);
    }

    /// Whether this process reaches the file.
    pub(crate) fn is_reached(&self) -> bool {
        self.disk.is_some()
    }

    /// The error of a process of another site that may not use it through this one.
    pub(crate) fn withheld(&self) -> Result<()> {
        match self.serves {
            Serves::Site => Err(allowed::outside("use", &self.path, self.whose())),
            Serves::All | Serves::Others => Ok(()),
        }
    }

    /// Calls of the system and bytes: of reading, of writing.
    pub(crate) fn moved(&self) -> [u64; 4] {
        self.disk.as_ref().map_or([0; 4], |disk| disk.moved())
    }

    /// This process and the file's site, for errors.
    fn whose(&self) -> Whose<'_> {
        Whose {
            rank: self.rank,
            site: self.names_site.then_some(&*self.site),
        }
    }

    /// A system error of an access.
    pub(crate) fn failed(&self, doing: &str, what: &io::Error) -> Error {
        error::error(doing, &self.path, self.whose(), what)
    }

    /// An error of this file with its name, this rank, and the site, if it does not have them.
    #[must_use]
    pub fn named(&self, error: Error) -> Error {
        error::named(error, &self.path, self.whose())
    }

    /// A message of another process that makes no sense.
    pub(crate) fn garbled(&self, what: &dyn std::fmt::Display) -> Error {
        self.named(Error::new(
            abi::MPI_ERR_INTERN,
            format!("a message about it makes no sense: {what}"),
        ))
    }

    /// The error of a process that is lost, or cannot be reached, while it accesses the file for this one. `before`:
    /// bytes that are certainly there.
    pub(crate) fn cut_off(&self, error: &Error, before: u64) -> Error {
        Error::named(
            error.class,
            format!(
                "rank {} cannot access {:?}, which is at site {}: {error}; {before} bytes of this access are certainly done, \
                 of what follows each block is old or new",
                self.rank, self.path, self.site
            ),
        )
    }

    /// The file as the system has it.
    fn disk(&self) -> Result<&Own> {
        match &self.disk {
            Some(disk) => Ok(disk),
            None => fail!(abi::MPI_ERR_INTERN, "this process does not reach it"),
        }
    }

    /// Bytes of the file at this moment.
    pub(crate) fn size(&self) -> Result<u64> {
        match self.disk()?.metadata() {
            Ok(known) => Ok(known.len()),
            Err(error) => Err(self.failed("find the size of", &error)),
        }
    }

    /// In atomic mode, the right to access the file: for all processes of all jobs, by the system's lock of the whole
    /// file.
    fn atom(&self, writes: bool) -> Result<Option<Atom<'_>>> {
        if !self.is_atomic() {
            return Ok(None);
        }
        // Readers of one process, too, come one after the other: they share its lock, and the first to end would give
        // it up for all.
        let threads = self.atoms.lock().unwrap_or_else(PoisonError::into_inner);
        let operation = match writes {
            true => FlockOperation::LockExclusive,
            false => FlockOperation::LockShared,
        };
        let disk = self.disk()?;
        lock(disk, operation).map_err(|error| self.failed("lock", &error))?;
        Ok(Some(Atom {
            disk,
            _threads: threads,
        }))
    }

    /// Does something to the file.
    pub(crate) fn change(&self, what: What, argument: u64) -> Result<()> {
        let disk = self.disk()?;
        let (doing, done) = match what {
            What::SetSize => ("set the size of", again(|| disk.set_len(argument))),
            What::Preallocate => ("preallocate", preallocate(disk, argument)),
            What::Sync => ("sync", again(|| disk.sync_all())),
            What::Atomic => return self.become_atomic(argument != 0),
            other => fail!(abi::MPI_ERR_INTERN, "{other:?} is nothing that is done to a file"),
        };
        done.map_err(|error| self.failed(doing, &error))
    }

    fn become_atomic(&self, atomic: bool) -> Result<()> {
        let disk = self.disk()?;
        let tried = match atomic {
            true => lock(disk, FlockOperation::LockShared).and_then(|()| lock(disk, FlockOperation::Unlock)),
            false => Ok(()),
        };
        tried.map_err(|error| {
            Error::named(
                abi::MPI_ERR_UNSUPPORTED_OPERATION,
                format!(
                    "atomic mode needs locks of the file system, and {}",
                    self.failed("lock", &error)
                ),
            )
        })?;
        self.set_atomic(atomic);
        Ok(())
    }

    /// What closing does to the file.
    pub(crate) fn delete_if_asked(&self) -> Result<()> {
        if !self.mode.has(abi::MPI_MODE_DELETE_ON_CLOSE) {
            return Ok(());
        }
        match self.serves {
            Serves::Others => {
                allowed::remove(&self.path).map_err(|refused| refused.told("delete", &self.path, self.whose()))
            }
            Serves::Site | Serves::All => {
                std::fs::remove_file(&*self.path).map_err(|error| self.failed("delete", &error))
            }
        }
    }

    /// Writes what a view shows from byte `at` of its stream on.
    pub(crate) fn write_view(&self, view: &View, at: u64, source: &mut Source) -> Result<()> {
        let (disk, _atom) = (self.disk()?, self.atom(true)?);
        match access::write(disk, view, at, source).error {
            None => Ok(()),
            Some(error) => Err(self.failed("write", &error)),
        }
    }

    /// The same for reading; gives the bytes in the representation of this process.
    pub(crate) fn read_view(&self, view: &View, at: u64, target: &mut Target, sieve: Sieve) -> Result<u64> {
        let (disk, atom) = (self.disk()?, self.atom(false)?);
        let moved = access::read(disk, view, at, target, sieve);
        // Functions of the program convert without it.
        drop(atom);
        match moved.error {
            None => target.finish(moved.bytes),
            Some(error) => Err(self.failed("read", &error)),
        }
    }

    /// Reads one piece of the file; of what lies behind its end nothing.
    pub(crate) fn read_piece(&self, place: u64, mut room: Vec<u8>) -> Result<Vec<u8>> {
        let (disk, _atom) = (self.disk()?, self.atom(false)?);
        let moved = read_all(disk, &mut room, place);
        if let Some(error) = moved.error {
            return Err(self.failed("read", &error));
        }
        room.truncate(moved.bytes as usize);
        Ok(room)
    }

    /// Writes pieces of the file in one access, as `each` gives them.
    pub(crate) fn write_pieces(
        &self,
        each: impl FnOnce(&mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let (disk, _atom) = (self.disk()?, self.atom(true)?);
        each(&mut |place, data| match write_all(disk, data, place).error {
            Some(error) => Err(self.failed("write", &error)),
            None => Ok(()),
        })
    }

    /// Answers a question: reads `number` runs that it names.
    pub(crate) fn read_runs(&self, number: u64, payload: &[u8]) -> Result<Answer> {
        let (runs, total, _) =
            decode_runs(payload, number as usize, MAX_PAYLOAD as u64).map_err(|error| self.garbled(&error))?;
        let (disk, _atom) = (self.disk()?, self.atom(false)?);
        let (mut data, mut done) = (vec![0; total as usize], 0);
        for (place, length) in runs {
            let moved = read_all(disk, &mut data[done..][..length as usize], place);
            done += moved.bytes as usize;
            if let Some(error) = moved.error {
                return Err(self.failed("read", &error));
            }
            if moved.bytes < length {
                break;
            }
        }
        data.truncate(done);
        Ok(Answer {
            bytes: done as u64,
            data,
            ..Answer::default()
        })
    }

    /// Answers a question: writes `number` runs that it names, with their data. Gives the bytes.
    pub(crate) fn write_runs(&self, number: u64, payload: &[u8]) -> Result<u64> {
        let (runs, total, mut data) =
            decode_runs(payload, number as usize, MAX_PAYLOAD as u64).map_err(|error| self.garbled(&error))?;
        if data.len() as u64 != total {
            return Err(self.garbled(&"data are missing"));
        }
        self.write_pieces(|write| {
            for (place, length) in runs {
                let (piece, rest) = data.split_at(length as usize);
                write(place, piece)?;
                data = rest;
            }
            Ok(())
        })?;
        Ok(total)
    }
}

fn lock(disk: &Own, operation: FlockOperation) -> io::Result<()> {
    loop {
        match flock(&**disk, operation) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Room on the disk. Where a file system cannot promise that it still makes the file so long.
fn preallocate(disk: &std::fs::File, size: u64) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    let flags = rustix::fs::FallocateFlags::empty();
    match again(|| Ok(rustix::fs::fallocate(disk, flags, 0, size)?)) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => match disk.metadata()?.len() < size {
            true => again(|| disk.set_len(size)),
            false => Ok(()),
        },
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::file::encode_runs;

    fn here(disk: Option<std::fs::File>) -> Here {
        let known = Known {
            path: Shown::given(b"data"),
            site: "lab".to_owned(),
            names_site: true,
            rank: 3,
            mode: Mode::new(abi::MPI_MODE_RDWR).unwrap(),
            serves: Serves::All,
        };
        Here::new(known, disk)
    }

    #[test]
    fn who_is_elsewhere_may_use_what_is_allowed_only() {
        for (serves, class) in [
            (Serves::Site, Err(abi::MPI_ERR_ACCESS)),
            (Serves::All, Ok(())),
            (Serves::Others, Ok(())),
        ] {
            let mut file = here(None);
            file.serves = serves;
            assert_eq!(file.withheld().map_err(|error| error.class), class, "{serves:?}");
        }
    }

    #[test]
    fn runs_are_written_and_read_up_to_the_end_of_the_file() {
        let file = here(Some(tempfile::tempfile().unwrap()));
        let runs = [(2, 3), (8, 2)];
        let mut payload = encode_runs(&runs);
        payload.extend(b"abcde");
        assert_eq!(file.write_runs(2, &payload), Ok(5));
        assert_eq!(file.size(), Ok(10));
        let answer = file.read_runs(2, &encode_runs(&[(0, 4), (9, 7)])).unwrap();
        assert_eq!((answer.bytes, &answer.data[..]), (5, &b"\0\0abe"[..]));
        assert_eq!(file.read_piece(8, vec![0; 9]), Ok(b"de".to_vec()));
        let short = file.write_runs(2, &payload[..payload.len() - 1]).unwrap_err();
        assert!(short.to_string().contains("data are missing"), "{short}");
        file.change(What::SetSize, 4).unwrap();
        assert_eq!(file.size(), Ok(4));
    }

    #[test]
    fn an_access_in_atomic_mode_gives_its_lock_back() {
        let file = here(Some(tempfile::tempfile().unwrap()));
        file.change(What::Atomic, 1).unwrap();
        assert!(file.is_atomic());
        for _ in 0..2 {
            assert!(file.atom(true).unwrap().is_some());
        }
        file.change(What::Atomic, 0).unwrap();
        assert!(file.atom(true).unwrap().is_none());
    }

    #[test]
    fn who_does_not_reach_the_file_says_which_file_and_where() {
        let file = here(None);
        let error = file.named(file.size().unwrap_err()).to_string();
        assert!(error.contains("rank 3, file \"data\" at site lab: "), "{error}");
        assert!(!file.is_reached() && file.change(What::Sync, 0).is_err());
        assert_eq!(file.moved(), [0; 4]);
    }
}
