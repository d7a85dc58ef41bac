// SPDX-License-Identifier: Apache-2.0
//! Opening a file that processes of several sites open together. Each process opens for itself what it sees, as always;
//! but only what is allowed serves those of other sites that do not see it.

use std::fs::File as SystemFile;
use std::io;
use std::path::Path;

use isthmus_abi::constants as abi;
use rustix::io::Errno;

use crate::allowed::{self, Refused};
use crate::mode::Mode;
use crate::plain::open_here;

/// How often the opener looks whether a file is there that others make and delete.
const TRIES: u32 = 4;

/// A file that this process has open.
pub(crate) struct Had {
    pub(crate) file: SystemFile,
    pub(crate) known: Circumstances,
}

/// What is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Circumstances {
    /// Whether processes of other sites may use it through this one.
    pub(crate) is_allowed: bool,
    /// Whether it was made by this, as far as that is known.
    is_made: bool,
}

impl Circumstances {
    /// Nobody may use it after all: what was made for that goes, if nobody has written to it.
    pub(crate) fn undo(self, path: &Path) {
        if self.is_made && std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0) {
            // Who asked for it hears why it is not there.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Had {
    /// `first`: the opener; `outsiders`: whether processes of other sites open it too.
    pub(crate) fn open(path: &Path, mode: Mode, permissions: u32, first: bool, outsiders: bool) -> io::Result<Self> {
        let mut known = Circumstances::default();
        if outsiders {
            match allowed::open(path, mode, permissions, first) {
                Err(Refused::Outside) => {}
                Err(Refused::System(what)) => return Err(what),
                Ok(file) => {
                    known.is_allowed = true;
                    return Ok(Self { file, known });
                }
            }
        }
        let file = match first && outsiders && mode.has(abi::MPI_MODE_CREATE) {
            true => made(path, mode, permissions, &mut known.is_made)?,
            false => open_here(path, mode, permissions, first)?,
        };
        Ok(Self { file, known })
    }
}

/// Opens a file that is made if it is not there, and says whether it was.
fn made(path: &Path, mode: Mode, permissions: u32, is_made: &mut bool) -> io::Result<SystemFile> {
    let alone = mode.with(abi::MPI_MODE_EXCL);
    for _ in 0..TRIES {
        match open_here(path, alone, permissions, true) {
            Err(error) if is(&error, Errno::EXIST) && !mode.has(abi::MPI_MODE_EXCL) => {}
            opened => {
                *is_made = opened.is_ok();
                return opened;
            }
        }
        match open_here(path, mode, permissions, false) {
            Err(error) if is(&error, Errno::NOENT) => {}
            opened => return opened,
        }
    }
    // A link to nothing, most likely.
    open_here(path, mode, permissions, true)
}

fn is(error: &io::Error, number: Errno) -> bool {
    error.raw_os_error() == Some(number.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_in_vain_goes_and_what_was_there_stays() {
        let place = tempfile::tempdir().unwrap();
        let mode = Mode::new(abi::MPI_MODE_RDWR | abi::MPI_MODE_CREATE).unwrap();
        let open = |name: &str| Had::open(&place.path().join(name), mode, 0o600, true, true);
        for (name, made) in [("new", true), ("old", false), ("link", false)] {
            let path = place.path().join(name);
            match name {
                "old" => std::fs::write(&path, "").unwrap(),
                "link" => std::os::unix::fs::symlink("target", &path).unwrap(),
                _ => {}
            }
            let had = open(name).unwrap();
            assert_eq!((had.known.is_made, had.known.is_allowed), (made, false), "{name}");
            had.known.undo(&path);
            assert_eq!(path.exists(), !made, "{name}");
        }
        let full = place.path().join("full");
        let had = open("full").unwrap();
        std::fs::write(&full, "data").unwrap();
        had.known.undo(&full);
        assert!(full.exists(), "somebody has written to it");
        let alone = mode.with(abi::MPI_MODE_EXCL);
        assert!(Had::open(&full, alone, 0o600, true, true).is_err());
    }
}
