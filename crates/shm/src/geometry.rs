// SPDX-License-Identifier: Apache-2.0
//! Sizes of a [segment](crate::segment), and where things are in it.

use crate::bell::WORDS;
use crate::ring::{Control, longest_payload};
use crate::slabs::{Cells, SLABS};

/// Most processes of one job on one node.
pub const MAX_PROCESSES: usize = 64 * WORDS;

const _: () = assert!(MAX_PROCESSES == isthmus_wire::boot::MAX_NODE_PROCESSES as usize);

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"isthmshm");
/// Changes with every change of the layout.
pub(crate) const VERSION: u32 = 15;
pub(crate) const PAGE: usize = 4096;
pub(crate) const BLOCK_BYTES: usize = 1024;

/// Sizes that follow from the number of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    processes: usize,
    ring_bytes: usize,
    pub(crate) slab_bytes: usize,
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

    /// The same for messages alone: there are no slabs.
    pub(crate) fn for_messages(processes: usize) -> Option<Self> {
        Some(Self {
            slabs: 0,
            ..Self::new(processes)?
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

    pub(crate) fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    pub(crate) fn data_bytes(&self) -> usize {
        self.ring_bytes - size_of::<Control>()
    }

    pub(crate) fn slab_at(&self, slab: usize) -> usize {
        self.slabs_at + slab * self.slab_bytes
    }

    pub(crate) fn rings_at(&self) -> usize {
        self.slab_at(self.slabs)
    }

    /// Bytes at the beginning that have memory from the beginning.
    pub(crate) fn reserved_bytes(&self) -> usize {
        match self.slabs {
            0 => self.slabs_at,
            _ => self.slabs_at + Cells::of(self.processes).middle_start(),
        }
    }

    pub(crate) fn ring_at(&self, reader: usize, writer: usize) -> usize {
        self.rings_at() + (reader * self.processes + writer) * self.ring_bytes
    }
}
