// SPDX-License-Identifier: Apache-2.0
//! Where a window keeps the words that its processes share, and the memory that it was given.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::SharedMemory;

/// See the module.
pub(crate) enum Store {
    /// In memory of the node.
    Node(Arc<dyn SharedMemory>),
    /// Of a window of one process.
    Own(Box<[AtomicU64]>),
}

impl Store {
    /// For a window of one process.
    pub(crate) fn own(words: usize) -> Self {
        Self::Own((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        match self {
            Self::Node(memory) => memory.words(),
            Self::Own(words) => words,
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
