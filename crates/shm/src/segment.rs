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
use std::sync::Arc;

use isthmus_transport::slabs::ENLARGE;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::assist::Desk;
use crate::bell::{Bell, WORDS};
use crate::error::ShmError;
use crate::file::{check_file, create, fingerprint, open_existing, reserve, system};
use crate::geometry::{BLOCK_BYTES, Geometry, MAGIC, PAGE, VERSION};
use crate::ring::{Control, HEADER, HEADER_WORDS, LINE, Memory};
use crate::slabs::{InUse, SlabHeader};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

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

/// The mapped file, for as long as anybody has an address in it: each value that keeps one keeps this.
struct Mapping {
    base: *mut u8,
    bytes: usize,
    file: Arc<OwnedFd>,
}

// SAFETY: the mapping is not bound to a thread, and everything in it is reached through atomics or through the rings,
// whose sides are owned by values that are `Send` for the same reason.
unsafe impl Send for Mapping {}
// SAFETY: nothing in it is reached through this value.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(file: Arc<OwnedFd>, path: &Path, bytes: usize) -> Result<Self, ShmError> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &*file,
                0,
            )
        };
        let base = mapped.map_err(|e| system("map the shared memory file", path, e))?;
        Ok(Self {
            base: base.cast(),
            bytes,
            file,
        })
    }

    /// Makes sure that there is memory behind so many bytes of the file.
    fn back(&self, start: u64, length: u64) -> Result<(), Errno> {
        loop {
            match rustix::fs::fallocate(&*self.file, FallocateFlags::empty(), start, length) {
                // Not a memory file system: then memory is not what can run out here.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody has an address in it (rule 1).
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.bytes) };
    }
}

/// The segment, for the one who has joined it.
pub(crate) struct Segment {
    /// Where the mapping begins.
    base: *mut u8,
    geometry: Geometry,
    mapping: Arc<Mapping>,
    path: PathBuf,
    /// The file has its path as a name until all have joined.
    named: bool,
}

// SAFETY: see `Mapping`.
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
        let segment = Self::map(Arc::new(file), path, geometry, true)?;
        segment.check_header(job)?;
        Ok(segment)
    }

    /// Maps a file without a name that has been [made](crate::brought) and looked at; `path`: what it is called.
    pub(crate) fn of(file: Arc<OwnedFd>, path: &Path, geometry: Geometry) -> Result<Self, ShmError> {
        reserve(&file, path, geometry)?;
        Self::map(file, path, geometry, false)
    }

    fn map(file: Arc<OwnedFd>, path: &Path, geometry: Geometry, named: bool) -> Result<Self, ShmError> {
        let mapping = Arc::new(Mapping::new(file, path, geometry.total_bytes())?);
        Ok(Self {
            base: mapping.base,
            geometry,
            mapping,
            path: path.to_owned(),
            named,
        })
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
        if self.named && before as usize + 1 == self.geometry.processes() {
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

    /// What helps where there is no memory behind the file.
    pub(crate) fn hint(&self) -> &'static str {
        match self.named {
            true => ENLARGE,
            false => "; the machine, or what this job may have of it, has no memory left",
        }
    }

    /// The block of a slot below the number of processes.
    #[inline]
    pub(crate) fn block(&self, slot: usize) -> &Block {
        assert!(slot < self.geometry.processes(), "no such slot");
        let at = PAGE + slot * BLOCK_BYTES;
        // SAFETY: inside the mapping (the slot was checked).
        let block = unsafe { self.base.add(at) }.cast::<Block>();
        // SAFETY: aligned (page + multiple of 1024), all bytes are valid for a block of atomics, and it is only
        // touched through them (rule 2).
        unsafe { &*block }
    }

    /// The same, for who looks at it all the time.
    pub(crate) fn block_at(&self, slot: usize) -> BlockAt {
        BlockAt {
            block: std::ptr::from_ref(self.block(slot)),
            _mapping: self.mapping.clone(),
        }
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
        self.mapping
            .back((self.geometry.slab_at(slab) + at) as u64, length as u64)
    }

    /// The memory of the ring from `writer` to `reader`.
    pub(crate) fn ring(&self, reader: usize, writer: usize) -> RingMemory {
        assert!(
            reader < self.geometry.processes() && writer < self.geometry.processes(),
            "no such slot"
        );
        let at = self.geometry.ring_at(reader, writer);
        // SAFETY: inside the mapping (the slots were checked).
        let control = unsafe { self.base.add(at) };
        RingMemory {
            control: control.cast(),
            capacity: self.geometry.data_bytes(),
            file_offset: at as u64,
            mapping: self.mapping.clone(),
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
        let expected = (self.geometry.processes() as u32, self.geometry.ring_bytes() as u64);
        if (header.processes, header.ring_bytes) != expected {
            return foreign(format!(
                "it was made for {} processes, not {}",
                header.processes, expected.0
            ));
        }
        Ok(())
    }
}

/// A block in the segment.
pub(crate) struct BlockAt {
    block: *const Block,
    _mapping: Arc<Mapping>,
}

// SAFETY: see `Mapping`.
unsafe impl Send for BlockAt {}

impl Deref for BlockAt {
    type Target = Block;

    #[inline(always)]
    fn deref(&self) -> &Block {
        // SAFETY: the mapping is there (rule 1), and a block is atomics.
        unsafe { &*self.block }
    }
}

/// A ring in the segment.
pub(crate) struct RingMemory {
    control: *mut Control,
    capacity: usize,
    file_offset: u64,
    mapping: Arc<Mapping>,
}

// SAFETY: see `Mapping`.
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
    unsafe fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at < self.capacity && at % LINE == 0);
        // SAFETY: inside the data and aligned to a line, by the caller's promise. While a word can be touched by both
        // sides it is only touched as an atomic: as part of a payload it belongs to one side (R1).
        unsafe { &*self.data(at).cast::<AtomicU64>() }
    }

    fn back(&self, from: usize, end: usize) -> Result<usize, i32> {
        let end_in_file = (size_of::<Control>() + end).next_multiple_of(PAGE);
        // Only what is new: a refused request takes back what is there but was never written.
        let from_in_file = if from == 0 { 0 } else { size_of::<Control>() + from };
        let (start, length) = (self.file_offset + from_in_file as u64, end_in_file - from_in_file);
        self.mapping.back(start, length as u64).map_err(Errno::raw_os_error)?;
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
