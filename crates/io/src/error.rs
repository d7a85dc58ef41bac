// SPDX-License-Identifier: Apache-2.0
//! What the system says about files, as error classes of MPI (MPI 5.0 section 14.7).

use std::io;

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Subject};
use rustix::io::Errno;

use crate::name::Shown;

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
        Errno::NOSPC | Errno::FBIG => abi::MPI_ERR_NO_SPACE,
        Errno::DQUOT => abi::MPI_ERR_QUOTA,
        Errno::NAMETOOLONG | Errno::ISDIR | Errno::NOTDIR | Errno::LOOP | Errno::INVAL => abi::MPI_ERR_BAD_FILE,
        // A pipe or a socket: it has no offsets, or nobody at its other end.
        Errno::SPIPE | Errno::NXIO | Errno::NODEV => abi::MPI_ERR_BAD_FILE,
        Errno::TXTBSY | Errno::BUSY => abi::MPI_ERR_FILE_IN_USE,
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => abi::MPI_ERR_NO_MEM,
        _ => abi::MPI_ERR_IO,
    }
}

/// Who cannot do something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose<'a> {
    pub(crate) rank: u32,
    /// Where the file is; `None`: the job has one site.
    pub(crate) site: Option<&'a str>,
}

impl std::fmt::Display for Whose<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.site {
            Some(site) => write!(f, " at site {site}"),
            None => Ok(()),
        }
    }
}

/// The one place where an error that does not name a file gets its name, the rank and the site: what all calls of the
/// chapter give is named.
pub(crate) fn named(error: Error, path: &Shown, whose: Whose<'_>) -> Error {
    match error.subject {
        Subject::Named => error,
        _ => Error::named(
            error.class,
            format!("rank {}, file {path:?}{whose}: {error}", whose.rank),
        ),
    }
}

/// A system error with what was being done with which file, where, by whom. Names are shown quoted, with escapes,
/// because they may hold anything.
pub(crate) fn error(doing: &str, path: &Shown, whose: Whose<'_>, error: &io::Error) -> Error {
    let rank = whose.rank;
    let hint = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::FBIG) => "; the limit on the size of files may be too low (ulimit -f)",
        _ => "",
    };
    Error::named(
        class_of(error),
        format!("rank {rank} cannot {doing} {path:?}{whose}: {error}{hint}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_has_a_class_of_its_own() {
        for (number, class) in [
            (Errno::NOENT, abi::MPI_ERR_NO_SUCH_FILE),
            (Errno::EXIST, abi::MPI_ERR_FILE_EXISTS),
            (Errno::ACCESS, abi::MPI_ERR_ACCESS),
            (Errno::ROFS, abi::MPI_ERR_READ_ONLY),
            (Errno::NOSPC, abi::MPI_ERR_NO_SPACE),
            (Errno::FBIG, abi::MPI_ERR_NO_SPACE),
            (Errno::DQUOT, abi::MPI_ERR_QUOTA),
            (Errno::ISDIR, abi::MPI_ERR_BAD_FILE),
            (Errno::TXTBSY, abi::MPI_ERR_FILE_IN_USE),
            (Errno::MFILE, abi::MPI_ERR_NO_MEM),
            (Errno::IO, abi::MPI_ERR_IO),
        ] {
            assert_eq!(class_of(&number.into()), class, "{number}");
        }
        assert_eq!(class_of(&io::ErrorKind::WriteZero.into()), abi::MPI_ERR_IO);
    }

    #[test]
    fn the_sentence_has_name_rank_and_reason() {
        let full = io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error());
        for (site, place) in [(None, ""), (Some("lab"), " at site lab")] {
            let error = error("write", &Shown("a\nb".into()), Whose { rank: 3, site }, &full);
            assert_eq!(error.class, abi::MPI_ERR_NO_SPACE);
            let expected = format!("rank 3 cannot write \"a\\nb\"{place}: No space left");
            assert!(error.message.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn an_error_is_named_once() {
        let (path, whose) = (
            Shown("a b".into()),
            Whose {
                rank: 3,
                site: Some("lab"),
            },
        );
        let error = Error::of_argument(abi::MPI_ERR_ARG, "offset", "is -1");
        let once = named(error, &path, whose);
        assert_eq!(
            once.to_string(),
            "rank 3, file \"a b\" at site lab: argument offset is -1"
        );
        assert_eq!(named(once.clone(), &path, Whose { rank: 4, site: None }), once);
    }
}
