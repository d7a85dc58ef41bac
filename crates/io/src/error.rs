// SPDX-License-Identifier: Apache-2.0
//! What the system says about files, as error classes of MPI (MPI 5.0 section 14.7).

use std::io;
use std::path::Path;

use isthmus_abi::constants as abi;
use isthmus_core::error::Error;
use rustix::io::Errno;

/// The error class of a system error.
pub(crate) fn class_of(error: &io::Error) -> i32 {
    let Some(number) = error.raw_os_error() else {
        return abi::MPI_ERR_IO;
    };
    match Errno::from_raw_os_error(number) {
        Errno::NOENT => abi::MPI_ERR_NO_SUCH_FILE,
        Errno::EXIST => abi::MPI_ERR_FILE_EXISTS,
        Errno::ACCESS | Errno::PERM => abi::MPI_ERR_ACCESS,
        Errno::ROFS => abi::MPI_ERR_READ_ONLY,
        Errno::NOSPC => abi::MPI_ERR_NO_SPACE,
        Errno::DQUOT => abi::MPI_ERR_QUOTA,
        Errno::NAMETOOLONG | Errno::ISDIR | Errno::NOTDIR | Errno::LOOP | Errno::INVAL => abi::MPI_ERR_BAD_FILE,
        Errno::TXTBSY | Errno::BUSY => abi::MPI_ERR_FILE_IN_USE,
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => abi::MPI_ERR_NO_MEM,
        _ => abi::MPI_ERR_IO,
    }
}

/// A system error with what was being done with which file, by whom. Names are shown quoted, with escapes, because they
/// may hold anything.
pub(crate) fn error(doing: &str, path: &Path, rank: u32, error: &io::Error) -> Error {
    Error::new(class_of(error), format!("rank {rank} cannot {doing} {path:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_has_name_rank_and_reason() {
        let full = io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error());
        let error = error("write", Path::new("a\nb"), 3, &full);
        assert_eq!(error.class, abi::MPI_ERR_NO_SPACE);
        assert!(
            error
                .message
                .starts_with("rank 3 cannot write \"a\\nb\": No space left"),
            "{error}"
        );
    }
}
