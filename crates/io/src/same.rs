// SPDX-License-Identifier: Apache-2.0
//! Whether what two processes have open is the very same file: on one kernel by device and inode, on others by a nonce,
//! a time of change that the opener gives the file while it is being opened.

use std::fs::File as SystemFile;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Timespec, Timestamps, futimens};

/// What all need to know of what one has opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// 1: open.
    open: u64,
    /// Kernel.
    boot: u64,
    device: u64,
    inode: u64,
    /// Time of change, seconds.
    changed: i64,
}

impl Identity {
    /// Length of what `encode` makes.
    pub(crate) const BYTES: usize = 40;

    pub(crate) fn of(file: Option<&SystemFile>) -> Self {
        let Some(known) = file.and_then(|file| file.metadata().ok()) else {
            return Self::default();
        };
        Self {
            open: 1,
            boot: boot(),
            device: known.dev(),
            inode: known.ino(),
            changed: known.mtime(),
        }
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        let words = [self.open, self.boot, self.device, self.inode, self.changed as u64];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Whether another process has the same file open as the opener. `nonce`: 0 if there is none.
    pub(crate) fn is_same(opener: &[u8], other: &[u8], nonce: u64) -> bool {
        let word = |bytes: &[u8], i: usize| crate::group::word(bytes.get(8 * i..).unwrap_or_default());
        let alike = |i| word(opener, i) == word(other, i);
        let kernel = word(opener, 1) != 0 && alike(1);
        word(other, 0) == 1 && alike(3) && (kernel && alike(2) || !kernel && nonce != 0 && word(other, 4) == nonce)
    }
}

/// A number for the kernel that runs here: equal for processes on one, by its random name; 0: not known.
fn boot() -> u64 {
    let Ok(name) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
        return 0;
    };
    let digits: String = name.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

/// A time of change that no file has by chance: some second of the years 2001 to 2020.
fn nonce() -> u64 {
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    1_000_000_000 + random % 600_000_000
}

/// Gives a file a time of change; its former one.
fn mark(file: &SystemFile, seconds: i64, nanoseconds: i64) -> io::Result<(i64, i64)> {
    let before = file.metadata()?;
    let keep = Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_OMIT,
    };
    let last_modification = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds as _,
    };
    futimens(
        file,
        &Timestamps {
            last_access: keep,
            last_modification,
        },
    )?;
    Ok((before.mtime(), before.mtime_nsec()))
}

/// A file that the opener has open, as it is until all have looked for it.
pub(crate) struct First {
    file: SystemFile,
    /// The nonce and the time of change before.
    marked: Option<(u64, (i64, i64))>,
}

impl First {
    /// `marks`: processes with another kernel look for the file.
    pub(crate) fn new(file: SystemFile, marks: bool) -> Self {
        let wished = marks.then(nonce);
        let marked = wished.and_then(|nonce| Some((nonce, mark(&file, nonce as i64, 0).ok()?)));
        Self { file, marked }
    }

    pub(crate) fn file(&self) -> &SystemFile {
        &self.file
    }

    /// 0: there is none.
    pub(crate) fn nonce(&self) -> u64 {
        self.marked.map_or(0, |marked| marked.0)
    }

    /// The file as everybody shall have it. Who has written since has given it a time of its own.
    pub(crate) fn settle(self) -> SystemFile {
        if let Some((nonce, (seconds, nanoseconds))) = self.marked {
            let untouched = |known: std::fs::Metadata| known.mtime() == nonce as i64 && known.mtime_nsec() == 0;
            if self.file.metadata().is_ok_and(untouched) {
                // It has succeeded a moment ago; that it should fail now harms nobody but a time.
                let _ = mark(&self.file, seconds, nanoseconds);
            }
        }
        self.file
    }
}
