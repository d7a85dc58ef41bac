// SPDX-License-Identifier: Apache-2.0
//! Files that are open here for processes elsewhere: how many there may be, and for whom.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use rustix::process::{Resource, getrlimit};

use crate::task::Driver;

/// Open files of this process where the system sets no limit, or does not say.
const USUAL: u64 = 1024;
/// Of the files that this process may have open, one in so many may be for others, and one in so many for one of them:
/// the program needs some itself.
const ALL: u64 = 2;
const EACH: u64 = 8;

/// The files.
#[derive(Default)]
pub(crate) struct Guests(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// By whom, and in which context.
    open: Vec<(u32, u32)>,
    /// Services that nobody drives yet.
    coming: Vec<(OpenFile, Driver)>,
}

/// A file that is open for others, or being opened; its end makes room for another one.
pub(crate) struct OpenFile {
    guests: Arc<Guests>,
    /// By whom, and in which context.
    file: (u32, u32),
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let open = &mut self.guests.lock().open;
        let at = open.iter().position(|file| *file == self.file);
        at.map(|at| open.swap_remove(at));
    }
}

impl Guests {
    /// A panic elsewhere leaves no list half written.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for a file that this process, by its number here, opens for others.
    pub(crate) fn place(self: &Arc<Self>, by: u32, context: u32) -> Result<OpenFile> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(USUAL);
        self.place_of(by, context, limit)
    }

    fn place_of(self: &Arc<Self>, by: u32, context: u32, limit: u64) -> Result<OpenFile> {
        let open = &mut self.lock().open;
        let theirs = open.iter().filter(|(rank, _)| *rank == by).count() as u64;
        if open.contains(&(by, context)) {
            fail!(abi::MPI_ERR_INTERN, "it is open for the same processes already")
        }
        if theirs >= limit / EACH || open.len() as u64 >= limit / ALL {
            fail!(
                abi::MPI_ERR_NO_MEM,
                "for other sites {} files are open there, {theirs} of them by the process that asks, and a process may have {limit} open: close \
                 some, or raise the limit there (ulimit -n)",
                open.len()
            )
        }
        open.push((by, context));
        Ok(OpenFile {
            guests: self.clone(),
            file: (by, context),
        })
    }

    /// It is open, and served from now on.
    pub(crate) fn begin(&self, place: OpenFile, service: Driver) {
        self.lock().coming.push((place, service));
    }

    /// Services that nobody drives yet.
    pub(crate) fn coming(&self) -> Vec<(OpenFile, Driver)> {
        std::mem::take(&mut self.lock().coming)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_does_not_use_up_the_files_of_others() {
        let guests = Arc::new(Guests::default());
        let mut open: Vec<OpenFile> = (0..8).map(|i| guests.place_of(1, 16 + 2 * i, 64).unwrap()).collect();
        assert!(guests.place_of(1, 100, 64).is_err(), "an eighth for one");
        for by in 2..5 {
            open.extend((0..8).map(|i| guests.place_of(by, 16 + 2 * i, 64).unwrap()));
        }
        assert!(guests.place_of(5, 16, 64).is_err(), "half for all");
        open.clear();
        let first = guests.place_of(1, 16, 64).unwrap();
        assert!(guests.place_of(1, 16, 64).is_err(), "not twice in one context");
        drop(first);
        assert!(guests.place_of(1, 16, 64).is_ok());
    }
}
