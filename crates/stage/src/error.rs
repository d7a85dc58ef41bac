// SPDX-License-Identifier: Apache-2.0
//! Why staging fails.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be staged.
#[derive(Debug)]
pub enum StageError {
    /// The name would leave the cache.
    Name(String),
    /// More bytes than [`MAX_FILE`], or than announced.
    TooLong,
    /// Content and announced hash differ.
    Corrupt,
    /// There is no room for it.
    Full {
        /// Bytes that it takes.
        size: u64,
        /// Bytes that are left, by the limit or on the disk.
        room: u64,
        /// What bounds it.
        bound: &'static str,
    },
    /// The operating system refused.
    Io {
        /// What was being done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl std::fmt::Display for StageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "'{name}' is not a file name"),
            Self::TooLong => f.write_str("the file is longer than announced or allowed"),
            Self::Corrupt => f.write_str("the file arrived damaged: its hash differs from the announced one"),
            Self::Full { size, room, bound } => {
                write!(f, "there is no room for {size} bytes, only for {room}: {bound}")
            }
            Self::Io { doing, path, error } => write!(f, "cannot {doing} '{}': {error}", path.display()),
        }
    }
}

impl std::error::Error for StageError {}

/// An error of the operating system while doing something with a path.
pub(crate) fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StageError {
    let path = path.to_owned();
    move |error| StageError::Io { doing, path, error }
}
