// SPDX-License-Identifier: Apache-2.0
//! Reading and writing at offsets: all of it, or exactly how much before which error.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use isthmus_lock::within_size_limit;

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
    counts: Counts,
}

/// What was done with a file, also when it is closed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(
    /// Calls of the system and bytes: of reading, of writing.
    Arc<[[AtomicU64; 2]; 2]>,
);

impl Counts {
    /// Calls and bytes read, calls and bytes written.
    pub(crate) fn moved(&self) -> [u64; 4] {
        let [[a, b], [c, d]] = &*self.0;
        [a, b, c, d].map(|number| number.load(Ordering::Relaxed))
    }
}

impl Own {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            counts: Counts::default(),
        }
    }

    /// Without what has been done with it.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// What has been done with it, from here on too.
    pub(crate) fn counts(&self) -> Counts {
        self.counts.clone()
    }

    fn count(&self, writes: bool, done: io::Result<usize>) -> io::Result<usize> {
        let [calls, bytes] = &self.counts.0[usize::from(writes)];
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
        // The system itself writes less where only the first byte is allowed.
        within_size_limit(offset.saturating_add(u64::from(!buffer.is_empty())))?;
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

/// Bytes of the file that one call of the system writes at most, and of which its places are multiples. Of what a
/// longer call writes Linux makes longer folios, and every later write of a few bytes goes through all blocks of its
/// folio: six times as long after calls of 16 MiB (docs/measured/files.md). Shorter calls take longer themselves.
const WRITTEN: u64 = 256 << 10;

/// How many of the `left` bytes one call writes at this place.
fn written_at_once(place: u64, left: usize) -> usize {
    left.min((WRITTEN - place % WRITTEN) as usize)
}

/// Writes everything, or as much as goes before an error.
pub(crate) fn write_all(disk: &dyn Disk, buffer: &[u8], offset: u64) -> Moved {
    all(
        buffer.len(),
        |done| {
            let (rest, place) = (&buffer[done..], offset + done as u64);
            disk.write_some(&rest[..written_at_once(place, rest.len())], place)
        },
        || Some(io::ErrorKind::WriteZero.into()),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Notes the calls, and writes a few bytes less than it is told.
    struct Noted(Mutex<Vec<(u64, usize)>>);

    impl Disk for Noted {
        fn read_some(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_some(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
            self.0.lock().expect("no panic").push((offset, buffer.len()));
            Ok(buffer.len().min(200_000))
        }
    }

    #[test]
    fn long_writes_go_in_pieces_that_keep_folios_short() {
        let disk = Noted(Mutex::default());
        let moved = write_all(&disk, &[0; 600_000], WRITTEN - 1000);
        assert_eq!((moved.bytes, moved.error.is_none()), (600_000, true));
        let end = WRITTEN - 1000 + 600_000;
        let expected = [
            (WRITTEN - 1000, 1000),
            (WRITTEN, 262_144),
            (WRITTEN + 200_000, 62_144),
            (2 * WRITTEN, 262_144),
            (2 * WRITTEN + 200_000, 62_144),
            (3 * WRITTEN, (end - 3 * WRITTEN) as usize),
        ];
        assert_eq!(*disk.0.lock().expect("no panic"), expected);
    }
}
