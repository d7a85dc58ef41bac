// SPDX-License-Identifier: Apache-2.0
//! A file as this process has it: its name, its mode, the disk if that is reached, and errors that say which file it
//! is.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_lock::within_size_limit;
use isthmus_wire::file::{Answer, MAX_PAYLOAD, What, decode_runs};

use crate::access::{self, Sieve};
use crate::allowed;
use crate::disk::{Counts, Own, read_all, write_all};
use crate::error::{self, Whose};
use crate::gate::{Gate, can_lock};
use crate::memory::{Source, Target};
use crate::mode::Mode;
use crate::name::Shown;
use crate::plain::again;
use crate::released;
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
    /// Whether this process reaches the file; if not others do it for it.
    is_reached: bool,
    /// `None`: it does not, or has closed the file.
    disk: Mutex<Option<Arc<Own>>>,
    counts: Counts,
    atomic: AtomicBool,
    /// Between accesses of this process in atomic mode.
    gate: Gate,
    /// Whether it was deleted, or that was tried.
    deleted: AtomicBool,
}

/// What is known of a file when it has been opened.
pub(crate) struct Particulars {
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
    pub(crate) fn new(known: Particulars, disk: Option<std::fs::File>) -> Self {
        let disk = disk.map(|file| Arc::new(Own::new(file)));
        Self {
            counts: disk.as_ref().map(|own| own.counts()).unwrap_or_default(),
            path: known.path,
            site: known.site,
            names_site: known.names_site,
            rank: known.rank,
            mode: known.mode,
            serves: known.serves,
            is_reached: disk.is_some(),
            disk: Mutex::new(disk),
            atomic: AtomicBool::new(false),
            gate: Gate::default(),
            deleted: AtomicBool::new(false),
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
        self.is_reached
    }

    /// Between accesses of this process in atomic mode.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
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
        self.counts.moved()
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

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Own>>> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file as the system has it.
    pub(crate) fn disk(&self) -> Result<Arc<Own>> {
        match &*self.slot() {
            Some(disk) => Ok(disk.clone()),
            None => fail!(abi::MPI_ERR_INTERN, "this process does not reach it"),
        }
    }

    /// Hears what closing will say of what was written, while the file is still open: file systems that tell it when a
    /// file is closed tell it for each descriptor.
    pub(crate) fn flush(&self) -> Result<()> {
        if !self.is_reached || !self.mode.writes() {
            return Ok(());
        }
        // Without another descriptor closing itself says it.
        match self.disk()?.try_clone() {
            Ok(second) => self.released(second),
            Err(_) => Ok(()),
        }
    }

    /// Closes it. An access that is under way, which is none of a right program, keeps it open.
    pub(crate) fn close(&self) -> Result<()> {
        match self.slot().take().and_then(Arc::into_inner) {
            Some(disk) => self.released(disk.into_file()),
            None => Ok(()),
        }
    }

    fn released(&self, file: std::fs::File) -> Result<()> {
        released::release(file).map_err(|error| self.failed("close", &error))
    }

    /// Bytes of the file at this moment.
    pub(crate) fn size(&self) -> Result<u64> {
        match self.disk()?.metadata() {
            Ok(known) => Ok(known.len()),
            Err(error) => Err(self.failed("find the size of", &error)),
        }
    }

    /// Does something to the file.
    pub(crate) fn change(&self, what: What, argument: u64) -> Result<()> {
        let disk = self.disk()?;
        let (doing, done) = match what {
            What::SetSize => ("set the size of", set_size(&disk, argument)),
            What::Preallocate => ("preallocate", preallocate(&disk, argument)),
            What::Sync => ("sync", again(|| disk.sync_all())),
            What::Atomic => return self.become_atomic(argument != 0),
            other => fail!(abi::MPI_ERR_INTERN, "{other:?} is nothing that is done to a file"),
        };
        done.map_err(|error| self.failed(doing, &error))
    }

    fn become_atomic(&self, atomic: bool) -> Result<()> {
        let tried = match atomic && !self.is_atomic() {
            true => can_lock(&*self.disk()?),
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

    /// What closing does to the file, once.
    pub(crate) fn delete_if_asked(&self) -> Result<()> {
        if !self.mode.has(abi::MPI_MODE_DELETE_ON_CLOSE) || self.deleted.swap(true, Ordering::Relaxed) {
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
        match access::write(&*self.disk()?, view, at, source).error {
            None => Ok(()),
            Some(error) => Err(self.failed("write", &error)),
        }
    }

    /// The same for reading; gives the bytes of the stream.
    pub(crate) fn read_view(&self, view: &View, at: u64, target: &mut Target, sieve: Sieve) -> Result<u64> {
        let moved = access::read(&*self.disk()?, view, at, target, sieve);
        match moved.error {
            None => Ok(moved.bytes),
            Some(error) => Err(self.failed("read", &error)),
        }
    }

    /// Reads pieces of the file, in order and apart, as one behind the other; of what lies behind its end nothing.
    pub(crate) fn read_pieces(&self, pieces: &[(u64, u64)]) -> Result<Vec<u8>> {
        let disk = self.disk()?;
        let total: u64 = pieces.iter().map(|piece| piece.1).sum();
        let (mut data, mut done) = (vec![0; total as usize], 0);
        for &(place, length) in pieces {
            let moved = read_all(&*disk, &mut data[done..][..length as usize], place);
            done += moved.bytes as usize;
            if let Some(error) = moved.error {
                return Err(self.failed("read", &error));
            }
            if moved.bytes < length {
                break;
            }
        }
        data.truncate(done);
        Ok(data)
    }

    /// Writes pieces of the file, as `each` gives them.
    pub(crate) fn write_pieces(
        &self,
        each: impl FnOnce(&mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let disk = self.disk()?;
        each(&mut |place, data| match write_all(&*disk, data, place).error {
            Some(error) => Err(self.failed("write", &error)),
            None => Ok(()),
        })
    }

    /// Answers a question: reads `number` runs that it names.
    pub(crate) fn read_runs(&self, number: u64, payload: &[u8]) -> Result<Answer> {
        let (runs, ..) =
            decode_runs(payload, number as usize, MAX_PAYLOAD as u64).map_err(|error| self.garbled(&error))?;
        let data = self.read_pieces(&runs)?;
        Ok(Answer {
            bytes: data.len() as u64,
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

/// Makes the file shorter, or longer where that is allowed.
fn set_size(disk: &std::fs::File, size: u64) -> io::Result<()> {
    if disk.metadata()?.len() < size {
        within_size_limit(size)?;
    }
    again(|| disk.set_len(size))
}

/// Room on the disk. Where a file system cannot promise that it still makes the file so long.
fn preallocate(disk: &std::fs::File, size: u64) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    if disk.metadata()?.len() < size {
        within_size_limit(size)?;
    }
    let flags = rustix::fs::FallocateFlags::empty();
    match again(|| Ok(rustix::fs::fallocate(disk, flags, 0, size)?)) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => match disk.metadata()?.len() < size {
            true => set_size(disk, size),
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
        let known = Particulars {
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
        assert_eq!(file.read_pieces(&[(2, 2), (8, 9)]), Ok(b"abde".to_vec()));
        let short = file.write_runs(2, &payload[..payload.len() - 1]).unwrap_err();
        assert!(short.to_string().contains("data are missing"), "{short}");
        file.change(What::SetSize, 4).unwrap();
        assert_eq!(file.size(), Ok(4));
    }

    #[test]
    fn what_close_says_is_heard_once_and_the_file_is_closed() {
        let file = here(Some(tempfile::tempfile().unwrap()));
        file.change(What::Atomic, 1).unwrap();
        assert!(file.is_atomic());
        assert_eq!((file.flush(), file.close(), file.close()), (Ok(()), Ok(()), Ok(())));
        assert!(file.is_reached() && file.size().is_err());
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
