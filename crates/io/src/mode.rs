// SPDX-License-Identifier: Apache-2.0
//! Access modes (MPI 5.0 section 14.2.1).

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;

/// An access mode that makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(i32);

const ALL: i32 = abi::MPI_MODE_APPEND
    | abi::MPI_MODE_CREATE
    | abi::MPI_MODE_DELETE_ON_CLOSE
    | abi::MPI_MODE_EXCL
    | abi::MPI_MODE_RDONLY
    | abi::MPI_MODE_RDWR
    | abi::MPI_MODE_SEQUENTIAL
    | abi::MPI_MODE_UNIQUE_OPEN
    | abi::MPI_MODE_WRONLY;

impl Mode {
    pub(crate) fn new(amode: i32) -> Result<Self> {
        let mode = Self(amode);
        let ways = [abi::MPI_MODE_RDONLY, abi::MPI_MODE_WRONLY, abi::MPI_MODE_RDWR];
        let wrong = if amode & !ALL != 0 {
            Some("has bits that are not access modes")
        } else if ways.iter().filter(|way| mode.has(**way)).count() != 1 {
            Some("must have exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR")
        } else if mode.has(abi::MPI_MODE_RDONLY) && (mode.has(abi::MPI_MODE_CREATE) || mode.has(abi::MPI_MODE_EXCL)) {
            Some("has MPI_MODE_RDONLY together with MPI_MODE_CREATE or MPI_MODE_EXCL")
        } else if mode.has(abi::MPI_MODE_RDWR) && mode.has(abi::MPI_MODE_SEQUENTIAL) {
            Some("has MPI_MODE_RDWR together with MPI_MODE_SEQUENTIAL")
        } else {
            None
        };
        match wrong {
            Some(what) => fail!(abi::MPI_ERR_AMODE, argument("amode"), "is {amode:#x}, which {what}"),
            None => Ok(mode),
        }
    }

    pub(crate) fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }

    /// The same with one more.
    pub(crate) fn with(self, bit: i32) -> Self {
        Self(self.0 | bit)
    }

    /// As MPI_File_get_amode tells it.
    pub fn bits(self) -> i32 {
        self.0
    }

    pub(crate) fn reads(self) -> bool {
        !self.has(abi::MPI_MODE_WRONLY)
    }

    /// Whether only the shared pointer may be used.
    pub fn is_sequential(self) -> bool {
        self.has(abi::MPI_MODE_SEQUENTIAL)
    }

    /// Whether data may be written.
    pub fn writes(self) -> bool {
        !self.has(abi::MPI_MODE_RDONLY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_without_sense_are_refused() {
        let (create, excl, append) = (abi::MPI_MODE_CREATE, abi::MPI_MODE_EXCL, abi::MPI_MODE_APPEND);
        let (read, write, both) = (abi::MPI_MODE_RDONLY, abi::MPI_MODE_WRONLY, abi::MPI_MODE_RDWR);
        let wrong = [
            0,
            create,
            read | write,
            read | create,
            read | excl,
            both | abi::MPI_MODE_SEQUENTIAL,
            read | 1 << 20,
        ];
        for amode in wrong {
            assert_eq!(
                Mode::new(amode).map_err(|e| e.class),
                Err(abi::MPI_ERR_AMODE),
                "{amode:#x}"
            );
        }
        for amode in [
            read,
            write | create | excl,
            both | append,
            read | abi::MPI_MODE_SEQUENTIAL,
        ] {
            assert!(Mode::new(amode).is_ok(), "{amode:#x}");
        }
    }
}
