// SPDX-License-Identifier: Apache-2.0
//! Where a window keeps the words that its processes share, and the memory that it was given.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use isthmus_core::error::Result;
use isthmus_datatype::raw::{Promised, WriteMemory};
use isthmus_engine::SharedMemory;
use isthmus_lock::shared::{BlockLocks, ProcessLock};

use crate::locks::{self, Brought, Notice};

/// Values of memory that is the program's: whoever meets C makes them, and promises there what MPI asks of the program.
#[derive(Clone, Copy)]
pub struct ProgramMemory<'a> {
    /// So many bytes with this alignment, for a window of one process; whoever makes the window gives them back.
    pub allocate: &'a dyn Fn(usize, usize) -> Result<WriteMemory>,
    /// For what is mapped here, which the window keeps.
    pub mapped: Promised,
}

/// See the module.
pub(crate) enum Store {
    /// In memory of the node, with the number of all processes of the window.
    Node(Arc<dyn SharedMemory>, usize),
    /// Of the one process of the window here, from their first use on.
    Own(OnceLock<Box<[AtomicU64; locks::OWN]>>),
}

fn own_words(words: &OnceLock<Box<[AtomicU64; locks::OWN]>>) -> &[AtomicU64; locks::OWN] {
    words.get_or_init(|| Box::new([const { AtomicU64::new(0) }; locks::OWN]))
}

impl Store {
    /// For one process.
    pub(crate) fn own() -> Self {
        Self::Own(OnceLock::new())
    }

    /// The words of a process on this node.
    fn line(&self, rank: u32) -> &[AtomicU64] {
        match self {
            Self::Node(memory, processes) => locks::line(memory.words(), *processes, rank),
            Self::Own(words) => &own_words(words)[..locks::OWN - 1],
        }
    }

    /// The lock of a process on this node.
    pub(crate) fn lock(&self, rank: u32) -> ProcessLock<'_> {
        locks::of_process(self.line(rank))
    }

    /// What a process on this node says of the memory that it has attached.
    pub(crate) fn notice(&self, rank: u32) -> Notice<'_> {
        locks::notice(self.line(rank))
    }

    /// What a process on this node says of the memory that it has brought.
    pub(crate) fn brought(&self, rank: u32) -> Brought<'_> {
        locks::brought(self.line(rank))
    }

    /// How many fences a process on this node has come to the end of.
    pub(crate) fn fences(&self, rank: u32) -> &AtomicU64 {
        locks::fences(self.line(rank))
    }

    /// The locks of blocks.
    pub(crate) fn blocks(&self) -> BlockLocks<'_> {
        match self {
            Self::Node(memory, _) => locks::blocks_of_node(memory.words()),
            Self::Own(words) => locks::blocks_of_one(&own_words(words)[..]),
        }
    }

    /// Where the memory of all processes begins.
    pub(crate) fn start(&self) -> Option<usize> {
        match self {
            Self::Node(memory, _) => Some(memory.address()),
            Self::Own(_) => None,
        }
    }
}
