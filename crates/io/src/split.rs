// SPDX-License-Identifier: Apache-2.0
//! Split collective operations: a file has one at a time (MPI 5.0 section 14.4.5).

use std::sync::{Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::Request;

/// An operation that was begun, by the name of its functions: `read_all` and the like.
#[derive(Debug)]
struct Split {
    name: &'static str,
    request: Request,
}

/// The split operation of a file, if one was begun.
#[derive(Debug, Default)]
pub struct Splits(Mutex<Option<Split>>);

impl Splits {
    fn active(&self) -> MutexGuard<'_, Option<Split>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the file can be closed: nothing that the program has begun is still to be ended.
    pub fn have_ended(&self) -> Result<()> {
        match &*self.active() {
            Some(active) => fail!(
                abi::MPI_ERR_OTHER,
                "the split collective operation {} has not ended; end it before the file is closed",
                active.name
            ),
            None => Ok(()),
        }
    }

    /// Begins one, which `start` starts.
    pub(crate) fn begin(&self, name: &'static str, start: impl FnOnce() -> Result<Request>) -> Result<()> {
        let mut split = self.active();
        if let Some(active) = &*split {
            fail!(
                abi::MPI_ERR_OTHER,
                "the split collective operation {} has not ended; a file has one at a time",
                active.name
            );
        }
        let request = start()?;
        *split = Some(Split { name, request });
        Ok(())
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
        assert!(splits.have_ended().is_ok());
        let failed = splits.begin("read_all", || fail!(abi::MPI_ERR_ACCESS, "no"));
        assert_eq!(failed.map_err(|error| error.class), Err(abi::MPI_ERR_ACCESS));
        assert!(splits.have_ended().is_ok(), "what did not start need not end");
        let none = splits.end("read_all").unwrap_err();
        assert!(none.to_string().contains("MPI_File_read_all_begin"), "{none}");
    }
}
