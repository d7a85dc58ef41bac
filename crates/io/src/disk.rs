// SPDX-License-Identifier: Apache-2.0
//! Reading and writing at offsets: all of it, or exactly how much before which error.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file as the system has it. A trait, so that tests can have one that fails.
pub trait Disk: Send + Sync {
    /// As `pread`.
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// As `pwrite`.
    fn write_some(&self, buffer: &[u8], offset: u64) -> io::Result<usize>;
}

impl Disk for File {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_at(buffer, offset)
    }

    fn write_some(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.write_at(buffer, offset)
    }
}

/// A file that is open here, with what has been done with it.
#[derive(Debug)]
pub(crate) struct Own {
    file: File,
    /// Calls of the system and bytes: of reading, of writing.
    moved: [[AtomicU64; 2]; 2],
}

impl Own {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            moved: Default::default(),
        }
    }

    /// Calls and bytes read, calls and bytes written.
    pub(crate) fn moved(&self) -> [u64; 4] {
        let [[a, b], [c, d]] = &self.moved;
        [a, b, c, d].map(|number| number.load(Ordering::Relaxed))
    }

    fn count(&self, writes: bool, done: io::Result<usize>) -> io::Result<usize> {
        let [calls, bytes] = &self.moved[usize::from(writes)];
        calls.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(done.as_ref().map_or(0, |bytes| *bytes as u64), Ordering::Relaxed);
        done
    }
}

impl std::ops::Deref for Own {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Disk for Own {
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.count(false, self.file.read_at(buffer, offset))
    }

    fn write_some(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.count(true, self.file.write_at(buffer, offset))
    }
}

/// How much was moved before it ended, and what ended it.
#[derive(Debug)]
pub struct Moved {
    /// Bytes that were certainly moved.
    pub bytes: u64,
    /// `None`: everything was moved, or the file ended.
    pub error: Option<io::Error>,
}

/// How often a file that asks to be tried again is tried again without having moved anything.
const VAIN_TRIES: u32 = 1 << 16;

/// How many of them are made at once. To give up the processor costs milliseconds where others want it.
const QUICK_TRIES: u32 = 16;

/// Whether an error asks for another try. `tries`: in a row.
fn tries_again(error: &io::Error, tries: &mut u32) -> bool {
    match error.kind() {
        io::ErrorKind::Interrupted => true,
        io::ErrorKind::WouldBlock => {
            *tries += 1;
            if *tries > QUICK_TRIES {
                std::thread::yield_now();
            }
            *tries < VAIN_TRIES
        }
        _ => false,
    }
}

/// Moves `length` bytes with calls that may move fewer. `some` gets the place in the buffer.
fn all(length: usize, mut some: impl FnMut(usize) -> io::Result<usize>, at_zero: fn() -> Option<io::Error>) -> Moved {
    let (mut done, mut tries) = (0, 0);
    while done < length {
        match some(done) {
            Ok(0) => {
                return Moved {
                    bytes: done as u64,
                    error: at_zero(),
                };
            }
            Ok(moved) => {
                done += moved;
                tries = 0;
            }
            Err(error) if tries_again(&error, &mut tries) => {}
            Err(error) => {
                return Moved {
                    bytes: done as u64,
                    error: Some(error),
                };
            }
        }
    }
    Moved {
        bytes: done as u64,
        error: None,
    }
}

/// Reads until the buffer is full, the file ends, or an error.
pub(crate) fn read_all(disk: &dyn Disk, buffer: &mut [u8], offset: u64) -> Moved {
    all(
        buffer.len(),
        |done| disk.read_some(&mut buffer[done..], offset + done as u64),
        || None,
    )
}

/// Writes everything, or as much as goes before an error.
pub(crate) fn write_all(disk: &dyn Disk, buffer: &[u8], offset: u64) -> Moved {
    all(
        buffer.len(),
        |done| disk.write_some(&buffer[done..], offset + done as u64),
        || Some(io::ErrorKind::WriteZero.into()),
    )
}
