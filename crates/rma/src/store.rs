// SPDX-License-Identifier: Apache-2.0
//! Where a window keeps the words that its processes share, and the memory that it was given.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::SharedMemory;

use crate::locks::{self, BlockLocks, Notice, ProcessLock};

/// See the module.
pub(crate) enum Store {
    /// In memory of the node.
    Node(Arc<dyn SharedMemory>),
    /// Of the one process of the window here.
    Own(Box<[AtomicU64; locks::OWN]>),
}

impl Store {
    /// For one process.
    pub(crate) fn own() -> Self {
        Self::Own(Box::new([const { AtomicU64::new(0) }; locks::OWN]))
    }

    /// The words, and where those of a process are. Of one process here there is one line.
    fn line(&self, rank: u32) -> (&[AtomicU64], u32) {
        match self {
            Self::Node(memory) => (memory.words(), rank),
            Self::Own(words) => (&words[..], 0),
        }
    }

    /// The lock of a process on this node.
    pub(crate) fn lock(&self, rank: u32) -> ProcessLock<'_> {
        let (words, at) = self.line(rank);
        locks::of_process(words, at)
    }

    /// What a process on this node says of the memory that it has attached.
    pub(crate) fn notice(&self, rank: u32) -> Notice<'_> {
        let (words, at) = self.line(rank);
        locks::notice(words, at)
    }

    /// How many fences a process on this node has come to the end of.
    pub(crate) fn fences(&self, rank: u32) -> &AtomicU64 {
        let (words, at) = self.line(rank);
        locks::fences(words, at)
    }

    /// The locks of blocks.
    pub(crate) fn blocks(&self) -> BlockLocks<'_> {
        match self {
            Self::Node(memory) => BlockLocks::of_node(memory.words()),
            Self::Own(words) => BlockLocks::of_one(&words[..]),
        }
    }

    /// The memory of all processes.
    pub(crate) fn memory(&self) -> Option<WriteMemory> {
        match self {
            Self::Node(memory) => Some(memory.memory()),
            Self::Own(_) => None,
        }
    }
}
