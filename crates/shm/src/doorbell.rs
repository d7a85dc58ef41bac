// SPDX-License-Identifier: Apache-2.0
//! The named pipes that wake a sleeping process: `bell.<slot>` in the node's directory. In a meeting they have no
//! names, and are opened by way of the processes that have them ([`crate::brought`]).
//!
//! A process opens its own pipe when it joins, and those of others when it first has to wake them: they exist
//! then, because only a process that has made its pipe can sleep. All are opened for reading and
//! writing: so the owner never sees an end of file, and who rings at a process that has died gets no SIGPIPE.
//! One byte wakes; a full pipe is as good as a written one.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::brought::BellOf;
use crate::error::ShmError;

/// The pipes of the node, seen from one process.
pub(crate) struct Doorbells {
    pipes: Pipes,
    own: Arc<OwnedFd>,
    others: Vec<Option<OwnedFd>>,
}

/// Where pipes are.
enum Pipes {
    Directory(PathBuf),
    /// At processes, by slot.
    Processes(Vec<BellOf>),
}

impl Pipes {
    fn open(&self, slot: usize) -> rustix::io::Result<OwnedFd> {
        match self {
            Self::Directory(directory) => open(&path_of(directory, slot)),
            Self::Processes(all) => all.get(slot).ok_or(Errno::NOENT)?.open(),
        }
    }

    /// Why one cannot be rung.
    fn explain(&self, slot: usize, error: Errno) -> String {
        let path = match self {
            Self::Directory(directory) => path_of(directory, slot),
            Self::Processes(all) => all.get(slot).map(BellOf::path).unwrap_or_default(),
        };
        match (error, self) {
            (Errno::NOENT, Self::Directory(_)) => format!(
                "its doorbell {} is gone; the job is ending, or something cleans up that directory during the job",
                path.display()
            ),
            (other, _) => format!("its doorbell {} cannot be rung: {other}", path.display()),
        }
    }
}

impl Doorbells {
    /// Those of processes that have met.
    pub(crate) fn of(own: Arc<OwnedFd>, all: Vec<BellOf>) -> Self {
        Self {
            own,
            others: std::iter::repeat_with(|| None).take(all.len()).collect(),
            pipes: Pipes::Processes(all),
        }
    }

    /// Makes the pipe of `slot`.
    pub(crate) fn make(directory: &Path, slot: usize, processes: usize) -> Result<Self, ShmError> {
        let path = path_of(directory, slot);
        let system = |doing, e: Errno| ShmError::System {
            doing,
            path: path.clone(),
            source: e.into(),
        };
        match rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(system("make the doorbell", e)),
        }
        let own = open(&path).map_err(|e| system("open the doorbell", e))?;
        let kind = rustix::fs::fstat(&own)
            .map_err(|e| system("examine the doorbell", e))?
            .st_mode;
        if FileType::from_raw_mode(kind) != FileType::Fifo {
            return Err(ShmError::Foreign {
                path,
                what: "a doorbell must be a named pipe".into(),
            });
        }
        let others = std::iter::repeat_with(|| None).take(processes).collect();
        Ok(Self {
            pipes: Pipes::Directory(directory.to_owned()),
            own: Arc::new(own),
            others,
        })
    }

    /// Readable when someone has woken us.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    /// Takes out what was written to wake us. Bounded: more is left for the next time.
    pub(crate) fn drain(&self) -> usize {
        rustix::io::read(&*self.own, &mut [0_u8; 64]).unwrap_or(0)
    }

    /// Wakes `slot`. An error says why it cannot be woken, now or ever.
    #[cold]
    pub(crate) fn wake(&mut self, slot: usize) -> Result<(), String> {
        self.try_wake(slot).map_err(|e| self.pipes.explain(slot, e))
    }

    fn try_wake(&mut self, slot: usize) -> rustix::io::Result<()> {
        if self.others[slot].is_none() {
            let pipe = self.open_other(slot)?;
            self.others[slot] = Some(pipe);
        }
        let Some(pipe) = &self.others[slot] else { return Ok(()) };
        match rustix::io::write(pipe, &[1]) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(e) => Err(e),
        }
    }

    fn open_other(&mut self, slot: usize) -> rustix::io::Result<OwnedFd> {
        match self.pipes.open(slot) {
            // Out of descriptors: those of the others can be opened again when they are needed.
            Err(Errno::MFILE | Errno::NFILE) => {
                self.others.iter_mut().for_each(|other| *other = None);
                self.pipes.open(slot)
            }
            other => other,
        }
    }
}

fn path_of(directory: &Path, slot: usize) -> PathBuf {
    directory.join(format!("bell.{slot}"))
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(
        path,
        OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    )
}
