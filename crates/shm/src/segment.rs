// SPDX-License-Identifier: Apache-2.0
//! The file that the processes of a node share, and where things are in it.
//!
//! ```text
//!  offset                     content
//!  0        header, 4096 bytes: magic, layout version, job, slots, bytes per ring | joined counter | slabs in use
//!  4096     block of slot 0, 1024 bytes: bell | state, process id, probe, core | refusals | rings in use
//!  5120     block of slot 1 ...
//!  (next multiple of 4096 after the blocks)
//!           slab 0 (see `slabs`), slab 1, ...
//!           ring read by slot 0, written by slot 0
//!           ring read by slot 0, written by slot 1
//!           ...
//!           ring read by slot n-1, written by slot n-1
//! ```
//! A ring is [`Control`] (128 bytes) and then its data. Its size depends on the number of processes
//! ([`Geometry`]). Whoever comes first makes the file under a temporary name, complete with header, and links it to its
//! real name; the others find a complete file or none. Memory behind the blocks and the beginning of slab 0 is
//! allocated at once, memory behind a ring by its writer when it first gets there, so that a full memory file system is
//! an error and not a signal.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::assist::Desk;
use crate::bell::{Bell, WORDS};
use crate::error::ShmError;
use crate::ring::{Control, HEADER, HEADER_WORDS, LINE, Memory, longest_payload};
use crate::slabs::{Cells, InUse, SLABS, SlabHeader};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Most processes of one job on one node.
pub const MAX_PROCESSES: usize = 64 * WORDS;

const _: () = assert!(MAX_PROCESSES == isthmus_wire::boot::MAX_NODE_PROCESSES as usize);

const MAGIC: u64 = u64::from_le_bytes(*b"isthmshm");
/// Changes with every change of the layout.
const VERSION: u32 = 13;
const PAGE: usize = 4096;
const BLOCK_BYTES: usize = 1024;

/// Sizes that follow from the number of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    processes: usize,
    ring_bytes: usize,
    slab_bytes: usize,
    /// How many slabs there are.
    pub(crate) slabs: usize,
    /// Where the slabs begin.
    slabs_at: usize,
}

impl Geometry {
    /// For that many processes on the node, 1 to [`MAX_PROCESSES`].
    ///
    /// A ring as large as a core's second cache is best: data that one core has written leave its cache before the
    /// other one reads them, which is twice as fast as fetching them from there (measured). More processes get smaller
    /// rings, so that together they take no more memory than containers usually have (64 MiB for 16 processes, all
    /// pairs busy), and that the address space of the segment stays below 20 GiB.
    pub fn new(processes: usize) -> Option<Self> {
        let kib = match processes {
            1..=4 => 1024,
            5..=8 => 512,
            9..=16 => 256,
            17..=64 => 64,
            65..=256 => 32,
            257..=MAX_PROCESSES => 16,
            _ => return None,
        };
        Some(Self {
            processes,
            ring_bytes: kib * 1024,
            slab_bytes: Cells::most_bytes(processes),
            // Of many processes they take much address space.
            slabs: if processes > 256 { SLABS / 2 } else { SLABS },
            slabs_at: (PAGE + processes * BLOCK_BYTES).next_multiple_of(PAGE),
        })
    }

    /// Bytes of address space.
    pub fn total_bytes(&self) -> usize {
        self.rings_at() + self.processes * self.processes * self.ring_bytes
    }

    /// Longest payload of a frame: short enough that the receiver has much to do while the sender writes the next one.
    #[inline]
    pub fn frame_bytes(&self) -> usize {
        longest_payload(self.data_bytes()).min((self.ring_bytes / 16).max(16 * 1024))
    }

    pub(crate) fn processes(&self) -> usize {
        self.processes
    }

    fn data_bytes(&self) -> usize {
        self.ring_bytes - size_of::<Control>()
    }

    fn slab_at(&self, slab: usize) -> usize {
        self.slabs_at + slab * self.slab_bytes
    }

    fn rings_at(&self) -> usize {
        self.slab_at(self.slabs)
    }

    /// Bytes at the beginning that have memory from the beginning.
    fn reserved_bytes(&self) -> usize {
        self.slabs_at + Cells::of(self.processes).middle_start()
    }

    fn ring_at(&self, reader: usize, writer: usize) -> usize {
        self.rings_at() + (reader * self.processes + writer) * self.ring_bytes
    }
}

/// First page of the file.
#[repr(C)]
struct FileHeader {
    magic: u64,
    version: u32,
    processes: u32,
    ring_bytes: u64,
    job: u64,
    _constant: [u64; 12],
    /// Processes that have mapped the file.
    joined: AtomicU32,
    slabs: InUse,
}

/// What [`Block::state`] says.
pub(crate) const STATE_FREE: u32 = 0;
/// Someone has this slot and is writing its block.
const STATE_TAKEN: u32 = 1;
/// The block can be read.
pub(crate) const STATE_PRESENT: u32 = 2;
/// The process has closed its transport.
pub(crate) const STATE_LEFT: u32 = 3;

/// What a process tells about itself, and its bell.
#[repr(C, align(128))]
pub(crate) struct Block {
    pub(crate) bell: Bell,
    /// One of the `STATE_` values.
    pub(crate) state: AtomicU32,
    /// Process id, as the process sees it.
    pub(crate) pid: AtomicU32,
    /// Where in its memory the process keeps `probe`, to try a cross-memory copy.
    pub(crate) probe_address: AtomicU64,
    /// Random bytes to be found there: a process id can mean another process in another container.
    pub(crate) probe: [AtomicU64; 2],
    /// How often the process has said that handles of its memory are good no longer.
    pub(crate) revoked: AtomicU64,
    /// Core on which the process polls, counted from 1 (see `spread`).
    pub(crate) core: AtomicU32,
    /// The message that the process is copying together with its sender.
    pub(crate) desk: Desk,
    /// Bit s: slot s cannot copy out of this process's memory.
    pub(crate) refusals: [AtomicU64; WORDS],
    /// Bit s: slot s has written into its ring to this process. There may be no memory behind others, and looking there
    /// would make some.
    pub(crate) opened: [AtomicU64; WORDS],
    /// Bit s: slot s has given this process up. A word in a ring could not say so where there is no memory for the
    /// ring.
    pub(crate) given_up: [AtomicU64; WORDS],
}

const _: () = assert!(size_of::<Block>() <= BLOCK_BYTES && size_of::<FileHeader>() <= PAGE);

impl Block {
    /// Has `slot` found that it cannot copy out of this process's memory?
    pub(crate) fn bit_refused(&self, slot: usize) -> bool {
        self.refusals[slot / 64].load(Ordering::Relaxed) & (1 << (slot % 64)) != 0
    }

    /// `slot` has written into its ring to this process.
    pub(crate) fn open(&self, slot: usize) {
        self.opened[slot / 64].fetch_or(1 << (slot % 64), Ordering::AcqRel);
    }

    /// Has it?
    pub(crate) fn is_open(&self, slot: usize) -> bool {
        self.opened[slot / 64].load(Ordering::Acquire) & (1 << (slot % 64)) != 0
    }

    /// `slot` takes nothing from this process any more, and sends it nothing.
    pub(crate) fn give_up(&self, slot: usize) {
        self.given_up[slot / 64].fetch_or(1 << (slot % 64), Ordering::AcqRel);
    }

    /// Has `slot` given this process up?
    pub(crate) fn is_given_up(&self, slot: usize) -> bool {
        self.given_up[slot / 64].load(Ordering::Acquire) & (1 << (slot % 64)) != 0
    }

    /// `slot` cannot copy out of this process's memory.
    pub(crate) fn refuse(&self, slot: usize) {
        self.refusals[slot / 64].fetch_or(1 << (slot % 64), Ordering::Relaxed);
    }
}

/// The mapped file.
pub(crate) struct Segment {
    base: *mut u8,
    geometry: Geometry,
    file: OwnedFd,
    path: PathBuf,
}

// SAFETY: the mapping is not bound to a thread, and everything in it is reached through atomics or through
// the rings, whose sides are owned by values that are `Send` for the same reason.
unsafe impl Send for Segment {}

/// Where a slab begins; only [`Segment::slab_start`] makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlabStart(usize);

impl Segment {
    /// Opens or makes the segment of `job` at `path` and maps it.
    pub(crate) fn open(path: &Path, job: &str, slot: usize, geometry: Geometry) -> Result<Self, ShmError> {
        let file = match open_existing(path)? {
            Some(file) => file,
            None => create(path, job, slot, geometry)?,
        };
        check_file(&file, path, geometry)?;
        let length = geometry.total_bytes();
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let base = mapped.map_err(|e| system("map the shared memory file", path, e))?;
        let segment = Self {
            base: base.cast(),
            geometry,
            file,
            path: path.to_owned(),
        };
        segment.check_header(job)?;
        Ok(segment)
    }

    /// Takes the slot, fills in who we are, and counts this process in. The last one removes the name of the file.
    pub(crate) fn join(&self, slot: usize, pid: u32, probe_address: u64, probe: [u64; 2]) -> Result<(), ShmError> {
        let block = self.block(slot);
        let free = block
            .state
            .compare_exchange(STATE_FREE, STATE_TAKEN, Ordering::AcqRel, Ordering::Relaxed);
        if free.is_err() {
            return Err(ShmError::Taken {
                path: self.path.clone(),
                slot,
            });
        }
        block.pid.store(pid, Ordering::Relaxed);
        block.probe_address.store(probe_address, Ordering::Relaxed);
        for (word, value) in block.probe.iter().zip(probe) {
            word.store(value, Ordering::Relaxed);
        }
        block.state.store(STATE_PRESENT, Ordering::Release);
        let before = self.header().joined.fetch_add(1, Ordering::AcqRel);
        if before as usize + 1 == self.geometry.processes {
            match rustix::fs::unlink(&self.path) {
                // The agent may have been faster when the job is ending.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(e) => return Err(system("remove the name of the shared memory file", &self.path, e)),
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The block of a slot below the number of processes.
    #[inline]
    pub(crate) fn block(&self, slot: usize) -> &Block {
        assert!(slot < self.geometry.processes, "no such slot");
        let at = PAGE + slot * BLOCK_BYTES;
        // SAFETY: inside the mapping (the slot was checked).
        let block = unsafe { self.base.add(at) }.cast::<Block>();
        // SAFETY: aligned (page + multiple of 1024), all bytes are valid for a block of atomics, and it is only
        // touched through them (rule 2).
        unsafe { &*block }
    }

    /// The same, for who looks at it all the time. It must not be used after the segment is dropped.
    pub(crate) fn block_at(&self, slot: usize) -> BlockAt {
        BlockAt(std::ptr::from_ref(self.block(slot)))
    }

    /// The beginning of a slab of the segment.
    #[inline]
    pub(crate) fn slab(&self, slab: usize) -> &SlabHeader {
        // SAFETY: aligned (a multiple of a page), all bytes are valid for atomics, and it is only touched through them
        // (rule 2).
        unsafe { &*self.slab_memory(slab, 0, size_of::<SlabHeader>()).cast::<SlabHeader>() }
    }

    /// Which slabs are somebody's.
    pub(crate) fn slabs_in_use(&self) -> &InUse {
        &self.header().slabs
    }

    /// Where a slab of the segment begins.
    pub(crate) fn slab_start(&self, slab: usize) -> SlabStart {
        assert!(slab < self.geometry.slabs, "no such slab");
        SlabStart(self.geometry.slab_at(slab))
    }

    /// Where `length` bytes at `at` of a slab of this segment are.
    #[inline]
    pub(crate) fn in_slab(&self, start: SlabStart, at: usize, length: usize) -> *mut u8 {
        assert!(at + length <= self.geometry.slab_bytes, "outside the slab");
        // SAFETY: inside the mapping: it has all of each slab, a start is that of a slab, and the rest was just
        // checked.
        unsafe { self.base.add(start.0 + at) }
    }

    /// The same by the number of the slab.
    #[inline]
    pub(crate) fn slab_memory(&self, slab: usize, at: usize, length: usize) -> *mut u8 {
        self.in_slab(self.slab_start(slab), at, length)
    }

    /// Makes sure that there is memory behind `length` bytes at `at` of a slab.
    pub(crate) fn back_slab(&self, slab: usize, at: usize, length: usize) -> Result<(), Errno> {
        let start = (self.geometry.slab_at(slab) + at) as u64;
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), start, length as u64) {
            // Not a memory file system: then memory is not what can run out here.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(Errno::INTR) => self.back_slab(slab, at, length),
            Err(e) => Err(e),
        }
    }

    /// The memory of the ring from `writer` to `reader`. It must not be used after the segment is dropped.
    pub(crate) fn ring(&self, reader: usize, writer: usize) -> RingMemory {
        assert!(
            reader < self.geometry.processes && writer < self.geometry.processes,
            "no such slot"
        );
        let at = self.geometry.ring_at(reader, writer);
        // SAFETY: inside the mapping (the slots were checked).
        let control = unsafe { self.base.add(at) };
        RingMemory {
            control: control.cast(),
            capacity: self.geometry.data_bytes(),
            file: std::os::fd::AsRawFd::as_raw_fd(&self.file),
            file_offset: at as u64,
        }
    }

    fn header(&self) -> &FileHeader {
        // SAFETY: the mapping begins with the header, page aligned; its constant part does not change after the
        // file got its name (rule 4), the rest are atomics.
        unsafe { &*self.base.cast::<FileHeader>() }
    }

    fn check_header(&self, job: &str) -> Result<(), ShmError> {
        let header = self.header();
        let foreign = |what: String| {
            Err(ShmError::Foreign {
                path: self.path.clone(),
                what,
            })
        };
        if header.magic != MAGIC || header.version != VERSION {
            return foreign(format!(
                "layout version {} is expected, {} was found; all processes must use the same Isthmus",
                VERSION, header.version
            ));
        }
        if header.job != fingerprint(job) {
            return foreign("it belongs to another job".into());
        }
        let expected = (self.geometry.processes as u32, self.geometry.ring_bytes as u64);
        if (header.processes, header.ring_bytes) != expected {
            return foreign(format!(
                "it was made for {} processes, not {}",
                header.processes, expected.0
            ));
        }
        Ok(())
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and values that point into it are dropped before it (rule 1).
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.geometry.total_bytes()) };
    }
}

/// A block in the segment.
pub(crate) struct BlockAt(*const Block);

// SAFETY: see `Segment`.
unsafe impl Send for BlockAt {}

impl Deref for BlockAt {
    type Target = Block;

    #[inline(always)]
    fn deref(&self) -> &Block {
        // SAFETY: the segment outlives it (rule 1), and a block is atomics.
        unsafe { &*self.0 }
    }
}

/// A ring in the segment.
pub(crate) struct RingMemory {
    control: *mut Control,
    capacity: usize,
    file: i32,
    file_offset: u64,
}

// SAFETY: see `Segment`.
unsafe impl Send for RingMemory {}

impl RingMemory {
    #[inline]
    fn data(&self, at: usize) -> *mut u8 {
        debug_assert!(at <= self.capacity);
        // SAFETY: the data follow the control block inside the mapping, and `at` is at most the capacity.
        unsafe { self.control.cast::<u8>().add(size_of::<Control>() + at) }
    }
}

impl Memory for RingMemory {
    #[inline]
    fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    fn control(&self) -> &Control {
        // SAFETY: inside the mapping, aligned to a page, only atomics are touched.
        unsafe { &*self.control }
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at < self.capacity && at % LINE == 0);
        // SAFETY: inside the data and aligned to a line. While a word can be touched by both sides it is only touched
        // as an atomic: as part of a payload it belongs to one side (R1).
        unsafe { &*self.data(at).cast::<AtomicU64>() }
    }

    fn back(&self, from: usize, end: usize) -> Result<usize, i32> {
        let end_in_file = (size_of::<Control>() + end).next_multiple_of(PAGE);
        // Only what is new: a refused request takes back what is there but was never written.
        let from_in_file = if from == 0 { 0 } else { size_of::<Control>() + from };
        let (start, length) = (self.file_offset + from_in_file as u64, end_in_file - from_in_file);
        // SAFETY: the segment, which owns the descriptor, outlives its rings (rule 1).
        let file = unsafe { std::os::fd::BorrowedFd::borrow_raw(self.file) };
        match rustix::fs::fallocate(file, FallocateFlags::empty(), start, length as u64) {
            // Not a memory file system: then memory is not what can run out here.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(Errno::INTR) => return self.back(from, end),
            Err(e) => return Err(e.raw_os_error()),
        }
        Ok((end_in_file - size_of::<Control>()).min(self.capacity))
    }

    #[inline]
    unsafe fn write(&self, at: usize, header: &[u64; HEADER_WORDS], length: usize, fill: impl FnOnce(&mut [u8])) {
        // The first eight bytes are left alone: the reader may be loading them, as a word.
        for (number, word) in header.iter().enumerate().skip(1) {
            // SAFETY: the caller owns the record (R1), it lies inside the data, and lines are aligned to words.
            unsafe { self.data(at + 8 * number).cast::<u64>().write(*word) };
        }
        // SAFETY: as above; until the word is published nobody else touches the payload's bytes, and the reference ends
        // before.
        fill(unsafe { std::slice::from_raw_parts_mut(self.data(at + HEADER), length) });
    }

    #[inline]
    unsafe fn read<R>(&self, at: usize, length: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: the caller owns the record until it gives it back (R1, R5), so nobody writes it during the call.
        f(unsafe { std::slice::from_raw_parts(self.data(at), length) })
    }
}

fn system(doing: &'static str, path: &Path, error: Errno) -> ShmError {
    ShmError::System {
        doing,
        path: path.to_owned(),
        source: error.into(),
    }
}

fn open_existing(path: &Path) -> Result<Option<OwnedFd>, ShmError> {
    match rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(system("open the shared memory file", path, e)),
    }
}

/// Makes the file under a name of its own and gives it the real name; if another process was faster, takes that one's.
fn create(path: &Path, job: &str, slot: usize, geometry: Geometry) -> Result<OwnedFd, ShmError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{slot}"));
    let temporary = PathBuf::from(name);
    // Only this slot uses that name: a file that is there was left by a process killed right here.
    let _ = rustix::fs::unlink(&temporary);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&temporary, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|e| system("create the shared memory file", &temporary, e))?;
    let linked = fill(&file, &temporary, job, geometry).and_then(|()| {
        match rustix::fs::linkat(CWD, &temporary, CWD, path, AtFlags::empty()) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::EXIST) => Ok(None),
            Err(e) => Err(system("name the shared memory file", path, e)),
        }
    });
    let _ = rustix::fs::unlink(&temporary);
    match linked? {
        Some(file) => Ok(file),
        // It can only be gone again if all others have joined, and they cannot have without us.
        None => open_existing(path)?.ok_or_else(|| system("open the shared memory file", path, Errno::NOENT)),
    }
}

fn fill(file: &OwnedFd, path: &Path, job: &str, geometry: Geometry) -> Result<(), ShmError> {
    rustix::fs::ftruncate(file, geometry.total_bytes() as u64)
        .map_err(|e| system("size the shared memory file", path, e))?;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, geometry.reserved_bytes() as u64) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(e) => return Err(system("reserve memory for the shared memory file", path, e)),
    }
    let mut header = [0_u8; 32];
    header[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    header[12..16].copy_from_slice(&(geometry.processes as u32).to_ne_bytes());
    header[16..24].copy_from_slice(&(geometry.ring_bytes as u64).to_ne_bytes());
    header[24..].copy_from_slice(&fingerprint(job).to_ne_bytes());
    match rustix::io::pwrite(file, &header, 0) {
        Ok(32) => Ok(()),
        Ok(_) => Err(system("write to the shared memory file", path, Errno::NOSPC)),
        Err(e) => Err(system("write to the shared memory file", path, e)),
    }
}

fn check_file(file: &OwnedFd, path: &Path, geometry: Geometry) -> Result<(), ShmError> {
    let found = rustix::fs::fstat(file).map_err(|e| system("examine the shared memory file", path, e))?;
    let foreign = |what: String| {
        Err(ShmError::Foreign {
            path: path.to_owned(),
            what,
        })
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return foreign("it is not an ordinary file".into());
    }
    if found.st_uid != rustix::process::geteuid().as_raw() {
        return foreign(format!("it belongs to user {}", found.st_uid));
    }
    if found.st_size as u64 != geometry.total_bytes() as u64 {
        return foreign(format!(
            "it has {} bytes instead of {}",
            found.st_size,
            geometry.total_bytes()
        ));
    }
    Ok(())
}

/// FNV-1a of the job's name: tells jobs apart, protects nothing.
fn fingerprint(job: &str) -> u64 {
    job.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
