// SPDX-License-Identifier: Apache-2.0
//! Split collective operations: a file has one at a time (MPI 5.0 section 14.4.5).

use std::sync::{Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::world::World;
use isthmus_engine::Request;

/// An operation that was begun, by the name of its functions: `read_all` and the like.
#[derive(Debug)]
struct Split {
    name: &'static str,
    request: Request,
}

/// What the program has begun with a file and is still to be ended.
#[derive(Debug, Default)]
pub struct Splits {
    /// The split operation, if one was begun.
    active: Mutex<Option<Split>>,
    /// Collective operations that could not begin here, of which the others hear: the program has no request for them.
    refused: Mutex<Vec<Request>>,
}

impl Splits {
    fn active(&self) -> MutexGuard<'_, Option<Split>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets an operation that could not begin here tell the others so.
    pub(crate) fn refuse(&self, world: &World, request: Request) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|request| world.engine().lock().core.take(*request).is_none());
        refused.push(request);
    }

    /// Returns when all others have been told.
    pub(crate) fn settle(&self, world: &World) {
        let refused = std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner));
        for request in refused {
            // The program knows the error.
            let _ = world.wait(request);
        }
    }

    /// Whether the file can be closed: nothing that the program has begun is still to be ended.
    pub(crate) fn have_ended(&self) -> Result<()> {
        match &*self.active() {
            Some(active) => fail!(
                abi::MPI_ERR_OTHER,
                "the split collective operation {} has not ended; end it before the file is closed",
                active.name
            ),
            None => Ok(()),
        }
    }

    /// Whether one can be begun.
    pub(crate) fn is_free(&self) -> Result<()> {
        match &*self.active() {
            Some(active) => fail!(
                abi::MPI_ERR_OTHER,
                "the split collective operation {} has not ended; a file has one at a time",
                active.name
            ),
            None => Ok(()),
        }
    }

    /// One was begun.
    pub(crate) fn begin(&self, name: &'static str, request: Request) {
        *self.active() = Some(Split { name, request });
    }

    /// MPI_File_…_end: the request to wait for.
    pub fn end(&self, name: &'static str) -> Result<Request> {
        let mut split = self.active();
        match &*split {
            Some(active) if active.name == name => {
                let request = active.request;
                *split = None;
                Ok(request)
            }
            Some(active) => fail!(
                abi::MPI_ERR_OTHER,
                "the split collective operation that was begun is {}, and not {name}",
                active.name
            ),
            None => fail!(
                abi::MPI_ERR_OTHER,
                "no split collective operation was begun; MPI_File_{name}_begin does that"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_split_operation_which_ends_under_its_name() {
        let splits = Splits::default();
        assert!(splits.have_ended().is_ok() && splits.is_free().is_ok());
        let none = splits.end("read_all").unwrap_err();
        assert!(none.to_string().contains("MPI_File_read_all_begin"), "{none}");
    }
}
