// SPDX-License-Identifier: Apache-2.0
//! Memory that a program asks for (MPI_Alloc_mem) and may make windows of. Other processes of the node can map it, so
//! that operations on it go by load and store, as on memory that windows bring.

use std::sync::Arc;

use isthmus_core::world::World;
use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::SharedMemory;

/// Most bytes. Systems have large pages for memory of one process, and a copy of much data does not feel a system call.
const LARGEST: usize = 64 << 20;

/// See the module.
pub struct Shareable {
    number: u64,
    memory: Arc<dyn SharedMemory>,
}

/// Memory of this process, as others of the node find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The number of what it lies in; never 0.
    pub(crate) number: u64,
    /// Bytes of that before it.
    pub(crate) skip: u64,
}

/// What is known of the part of another process of this node that may be mapped here.
pub(crate) enum Mapping {
    /// So many operations went there.
    Used(u32),
    Mapped {
        memory: WriteMemory,
        /// It is there as long as this.
        _piece: Arc<dyn SharedMemory>,
    },
    /// It cannot be.
    Apart,
}

impl Shareable {
    /// So many bytes, all zero; `None`: nobody is there to share them with, or memory for that is scarce.
    pub fn new(world: &World, bytes: usize) -> Option<Self> {
        let mut engine = world.engine().lock();
        let sharing = engine.slabs().sharing()?;
        if bytes > LARGEST || bytes as u64 > sharing.spare() {
            return None;
        }
        let (number, memory) = sharing.make(0, bytes).ok()?;
        Some(Self { number, memory })
    }

    /// Where it begins.
    pub fn address(&self) -> usize {
        self.memory.address()
    }

    /// Where bytes of it lie; `None`: they are not all of it.
    pub fn location(&self, address: usize, bytes: u64) -> Option<Location> {
        let skip = address.checked_sub(self.address())? as u64;
        let end = skip.checked_add(bytes)?;
        let number = self.number;
        (end <= self.memory.bytes() as u64).then_some(Location { number, skip })
    }

    /// Gives it back. Whoever has mapped it keeps what it has.
    pub fn release(self, world: &World) {
        if let Some(sharing) = world.engine().lock().slabs().sharing() {
            sharing.unname(self.number);
        }
    }
}
