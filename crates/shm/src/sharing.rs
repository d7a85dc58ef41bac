// SPDX-License-Identifier: Apache-2.0
//! Memory of windows: files of their own beside the [segment](crate::segment), and the memory of other processes.
//!
//! ```text
//!  offset                     content
//!  0                          words, touched as atomics only
//!  (next multiple of 4096)    the program's bytes
//! ```
//! A file has its name from its making until all members have opened it: `window.<slot>.<number>` in the directory of
//! the segment, which the agent of the job removes however the job ends. All memory behind it is allocated before
//! anybody maps it, so that a full memory file system is an error and not a signal.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use isthmus_datatype::raw::{Promised, WriteMemory};
use isthmus_lock::within_size_limit;
use isthmus_transport::Peer;
use isthmus_transport::sharing::{Reach, Run, SharedMemory, Sharing, Unreached};
use rustix::fs::{FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::{ShmError, hint};
use crate::pull;
use crate::transport::ShmTransport;

const PAGE: usize = 4096;

const TOO_MUCH: &str = "are more than this machine can address";

/// Bits of the number of a piece; the rest is the slot of its maker.
const COUNT_BITS: u32 = 48;

/// Zeros that are written where a file system cannot allocate.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// What of a file is mapped.
#[derive(Clone, Copy)]
struct Extent {
    /// The first byte, a multiple of a page.
    first: u64,
    total: usize,
    words: u32,
    /// From there to the program's bytes.
    start: u32,
    bytes: usize,
}

/// A mapped file, or pages of one.
struct Piece {
    base: *mut u8,
    // Short ones: programs have thousands of windows.
    words: u32,
    start: u32,
    bytes: usize,
}

// SAFETY: the mapping is bound to no thread; its words are atomics, its bytes are the program's.
unsafe impl Send for Piece {}
// SAFETY: as for `Send`.
unsafe impl Sync for Piece {}

/// Bytes of the pages that so many take, behind others.
fn pages(start: usize, bytes: usize) -> Option<usize> {
    let total = start.checked_add(bytes)?.checked_next_multiple_of(PAGE)?.max(PAGE);
    i64::try_from(total).ok()?;
    Some(total)
}

impl Extent {
    /// All of a file. The error is for people.
    fn whole(words: usize, bytes: usize) -> Result<Self, String> {
        Self::sized(words, bytes).ok_or_else(|| format!("{words} words and {bytes} bytes {TOO_MUCH}"))
    }

    fn sized(words: usize, bytes: usize) -> Option<Self> {
        let start = words.checked_mul(8)?.checked_next_multiple_of(PAGE)?;
        Some(Self {
            first: 0,
            total: pages(start, bytes)?,
            words: u32::try_from(words).ok()?,
            start: u32::try_from(start).ok()?,
            bytes,
        })
    }

    /// The pages of a file without words in which `bytes` lie behind the first `skip`.
    fn part(skip: u64, bytes: usize) -> Result<Self, String> {
        let start = (skip % PAGE as u64) as usize;
        let all = bytes.checked_add(start).and_then(|bytes| Self::sized(0, bytes));
        let all = all.filter(|_| skip.checked_add(bytes as u64).is_some());
        let all = all.ok_or_else(|| format!("{bytes} bytes behind {skip} {TOO_MUCH}"))?;
        Ok(Self {
            first: skip - start as u64,
            start: start as u32,
            bytes,
            ..all
        })
    }
}

impl Piece {
    fn map(file: &OwnedFd, path: &Path, extent: Extent) -> Result<Arc<dyn SharedMemory>, String> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                extent.total,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                extent.first,
            )
        };
        let base = mapped.map_err(|error| system("map the memory of a window", path, error))?;
        Ok(Arc::new(Self {
            base: base.cast(),
            words: extent.words,
            start: extent.start,
            bytes: extent.bytes,
        }))
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let total = pages(self.start as usize, self.bytes).unwrap_or(PAGE);
        // SAFETY: the mapping is ours, as long as when it was made, and whoever got an address in it has let go of the
        // window.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), total) };
    }
}

impl SharedMemory for Piece {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping begins with so many words, page aligned, and everybody touches them as atomics only.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.words as usize) }
    }

    fn address(&self) -> usize {
        self.base.addr() + self.start as usize
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn memory(&self, _: Promised) -> WriteMemory {
        // SAFETY: inside the mapping; the rest is promised.
        unsafe { WriteMemory::new(self.base.wrapping_add(self.start as usize), 0, self.bytes as isize) }
    }
}

fn system(doing: &'static str, path: &Path, error: Errno) -> String {
    ShmError::System {
        doing,
        path: path.to_owned(),
        source: error.into(),
    }
    .to_string()
}

/// Makes sure that there is memory behind a file.
fn allocate(file: &OwnedFd, total: usize) -> Result<(), Errno> {
    within_size_limit(total as u64)?;
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, total as u64) {
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return write_zeros(file, total),
            other => return other,
        }
    }
}

/// The same for a file system that cannot be asked.
fn write_zeros(file: &OwnedFd, total: usize) -> Result<(), Errno> {
    let mut at = 0;
    while at < total {
        let length = ZEROS.len().min(total - at);
        match rustix::io::pwrite(file, &ZEROS[..length], at as u64) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => at += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens memory that another process has made.
fn open_file(path: &Path, bytes: usize, is_long_enough: impl FnOnce(u64) -> bool) -> Result<OwnedFd, String> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| system("open the memory of a window", path, error))?;
    let found = rustix::fs::fstat(&file).map_err(|error| system("examine the memory of a window", path, error))?;
    // Beyond the end of a file there is a signal.
    let is_it = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_uid == rustix::process::geteuid().as_raw()
        && is_long_enough(found.st_size as u64);
    if is_it {
        return Ok(file);
    }
    Err(format!(
        "{} is not the memory of a window of {bytes} bytes that this job has made",
        path.display()
    ))
}

impl ShmTransport {
    fn piece_path(&self, number: u64) -> PathBuf {
        let (slot, count) = (number >> COUNT_BITS, number & ((1 << COUNT_BITS) - 1));
        let directory = self.segment.path().parent().unwrap_or_else(|| Path::new("/"));
        directory.join(format!("window.{slot}.{count}"))
    }
}

impl Sharing for ShmTransport {
    fn make(&mut self, words: usize, bytes: usize) -> Result<(u64, Arc<dyn SharedMemory>), String> {
        let extent = Extent::whole(words, bytes)?;
        let total = extent.total;
        self.pieces += 1;
        let number = (self.slot as u64) << COUNT_BITS | self.pieces;
        let path = self.piece_path(number);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| system("create the file for the memory of a window", &path, error))?;
        let made = allocate(&file, total).map_err(|error| {
            let source = std::io::Error::from(error);
            format!(
                "no {total} bytes of memory that processes share in {}: {source}{}",
                path.parent().unwrap_or(&path).display(),
                hint(&source)
            )
        });
        let made = made.and_then(|()| Piece::map(&file, &path, extent));
        if made.is_err() {
            self.unname(number);
        }
        Ok((number, made?))
    }

    fn open(&mut self, number: u64, words: usize, bytes: usize) -> Result<Arc<dyn SharedMemory>, String> {
        let extent = Extent::whole(words, bytes)?;
        let path = self.piece_path(number);
        let file = open_file(&path, extent.total, |size| size == extent.total as u64)?;
        Piece::map(&file, &path, extent)
    }

    fn open_part(&mut self, number: u64, skip: u64, bytes: usize) -> Result<Arc<dyn SharedMemory>, String> {
        let extent = Extent::part(skip, bytes)?;
        let path = self.piece_path(number);
        let file = open_file(&path, bytes, |size| size >= skip + bytes as u64)?;
        Piece::map(&file, &path, extent)
    }

    fn spare(&self) -> u64 {
        let room = self.segment.path().parent().map(rustix::fs::statvfs);
        let bytes = |room: rustix::fs::StatVfs| {
            let [free, all] = [room.f_bavail, room.f_blocks].map(|blocks| blocks.saturating_mul(room.f_frsize));
            spare_of(free, all, self.links.len() as u64)
        };
        room.and_then(Result::ok).map_or(0, bytes)
    }

    fn unname(&mut self, number: u64) {
        // Who ends the job may have been faster.
        let _ = rustix::fs::unlink(self.piece_path(number));
    }

    fn reach(&mut self, peer: Peer) -> Result<Arc<dyn Reach>, Unreached> {
        let slot = self.slot_of(peer).map_err(|_| {
            Unreached::Refused(format!(
                "rank {peer} is not on this node, so its memory cannot be reached"
            ))
        })?;
        if slot == self.slot {
            let why = format!("rank {peer} is this process, which has its memory anyway");
            return Err(Unreached::Refused(why));
        }
        match self.source(slot) {
            Some(pid) => Ok(Arc::new(Process { pid, peer })),
            None => Err(refused(peer, "a first copy has failed")),
        }
    }
}

/// A process whose memory can be copied.
struct Process {
    pid: u32,
    peer: Peer,
}

fn refused(peer: Peer, why: impl std::fmt::Display) -> Unreached {
    Unreached::Refused(format!(
        "this process may not copy memory of rank {peer} on this node (process_vm_readv, process_vm_writev: {why}); a \
         container needs the capability SYS_PTRACE or a seccomp profile that allows both calls, or use windows that \
         MPI_Win_allocate makes"
    ))
}

impl Process {
    fn judge(&self, done: Result<(), Errno>) -> Result<(), Unreached> {
        let Self { pid, peer } = self;
        done.map_err(|error| match error {
            Errno::SRCH => Unreached::Gone(format!("rank {peer} on this node (process {pid}) has ended")),
            Errno::FAULT => Unreached::Nowhere(format!(
                "rank {peer} on this node (process {pid}) has no memory there that may be used so"
            )),
            error => refused(*peer, error),
        })
    }
}

impl Reach for Process {
    fn read(&self, runs: &[Run], into: &mut [u8]) -> Result<(), Unreached> {
        self.judge(pull::copy_runs(self.pid, runs, into))
    }

    fn write(&self, runs: &[Run], from: &[u8]) -> Result<(), Unreached> {
        self.judge(pull::write_runs(self.pid, runs, from))
    }
}

/// The part of each process in the bytes that are free, of which half of all stay for windows, and for the messages of
/// all jobs here.
fn spare_of(free: u64, all: u64, processes: u64) -> u64 {
    match processes {
        0 | 1 => 0,
        _ => free.saturating_sub(all / 2) / 2 / processes,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn ends(at: &Path) -> [ShmTransport; 2] {
        [0, 1].map(|slot| {
            ShmTransport::join(&at.join("segment"), at, "window", slot, 2, Peer::first(2).collect()).expect("joined")
        })
    }

    fn memory(piece: &dyn SharedMemory) -> WriteMemory {
        // SAFETY: the tests keep the piece, and have one thread.
        piece.memory(unsafe { Promised::by_program() })
    }

    fn windows(at: &Path) -> usize {
        let names = std::fs::read_dir(at).expect("a directory").flatten();
        names
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("window."))
            .count()
    }

    #[test]
    fn half_of_the_room_is_never_given_away() {
        const MIB: u64 = 1 << 20;
        assert_eq!(spare_of(64 * MIB, 64 * MIB, 2), 8 * MIB);
        assert_eq!(spare_of(33 * MIB, 64 * MIB, 2), MIB / 4);
        assert_eq!(spare_of(32 * MIB, 64 * MIB, 2), 0);
        assert_eq!(spare_of(64 * MIB, 64 * MIB, 1), 0, "nobody is there to share with");
    }

    #[test]
    fn a_piece_is_small() {
        // Programs have thousands of windows.
        assert!(size_of::<Piece>() <= 24);
    }

    #[test]
    fn what_one_process_writes_the_other_reads_and_no_name_stays() {
        let at = tempfile::tempdir().expect("a directory");
        let [mut first, mut second] = ends(at.path());
        let (number, made) = first.make(3, 10_000).expect("memory");
        assert_eq!(windows(at.path()), 1);
        let opened = second.open(number, 3, 10_000).expect("the same");
        first.unname(number);
        assert_eq!(windows(at.path()), 0);
        made.words()[2].store(7, Ordering::Relaxed);
        memory(&*made).write(9_990, b"0123456789");
        let mut found = [0; 10];
        memory(&*opened).reading().read(9_990, &mut found);
        assert_eq!((opened.words()[2].load(Ordering::Relaxed), &found), (7, b"0123456789"));
        assert!(second.open(number, 3, 10_000).is_err(), "it has no name any more");
    }

    #[test]
    fn memory_of_another_size_or_that_there_is_not_is_refused() {
        let at = tempfile::tempdir().expect("a directory");
        let [mut first, mut second] = ends(at.path());
        let (number, _made) = first.make(1, 100).expect("memory");
        let why = second.open(number, 1, 100_000).err().expect("refused");
        assert!(why.contains("is not the memory of a window"), "{why}");
        let why = first.make(1, usize::MAX - 5000).err().expect("refused");
        assert!(why.contains("more than this machine can address"), "{why}");
        assert_eq!(windows(at.path()), 1, "what was refused leaves nothing");
    }

    #[test]
    fn a_part_of_a_piece_is_mapped_wherever_it_begins_and_never_beyond_the_end() {
        let at = tempfile::tempdir().expect("a directory");
        let [mut first, mut second] = ends(at.path());
        let (number, made) = first.make(0, 10_000).expect("memory");
        for (skip, bytes) in [(0, 1), (5000, 100), (4096, 4096), (4095, 2), (9_999, 1)] {
            let part = second.open_part(number, skip, bytes).expect("a part");
            memory(&*part).write(bytes as isize - 1, &[skip as u8 | 1]);
            let mut found = [0];
            memory(&*made)
                .reading()
                .read(skip as isize + bytes as isize - 1, &mut found);
            assert_eq!(found, [skip as u8 | 1], "{skip} {bytes}");
        }
        for (skip, bytes) in [
            (0, 20_000),
            (12_000, 300),
            (u64::MAX, 1),
            (0, usize::MAX),
            (u64::MAX - 5000, 4096),
        ] {
            assert!(second.open_part(number, skip, bytes).is_err(), "{skip} {bytes}");
        }
    }

    #[test]
    fn more_than_the_file_system_has_is_an_error_that_says_so() {
        let at = tempfile::tempdir().expect("a directory");
        let [mut first, _] = ends(at.path());
        let why = first.make(1, 1 << 55).err().expect("refused");
        assert!(why.contains("bytes of memory that processes share"), "{why}");
        assert_eq!(windows(at.path()), 0);
    }
}
