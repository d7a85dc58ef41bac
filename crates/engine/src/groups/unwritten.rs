// SPDX-License-Identifier: Apache-2.0
//! Blocks of a gatherv that could not be written to the root's memory, and what whoever writes must know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use isthmus_transport::Peer;

/// Members of a gatherv whose blocks could not be written to the root's memory: known at the root, and each of them
/// knows it of itself.
#[derive(Debug, Default)]
pub struct Unwritten(AtomicU64);

impl Unwritten {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Whether a member is one of them.
    pub fn contains(&self, member: u32) -> bool {
        1_u64
            .checked_shl(member)
            .is_some_and(|bit| self.0.load(Ordering::Relaxed) & bit != 0)
    }

    fn insert(&self, member: u32) {
        let bit = 1_u64.checked_shl(member).unwrap_or(0);
        self.0.fetch_or(bit, Ordering::Relaxed);
    }
}

/// How the long blocks of a gatherv are written.
pub(crate) struct Writing {
    root: Peer,
    unwritten: Arc<Unwritten>,
}

impl Writing {
    pub(crate) fn new(root: Peer, unwritten: &Arc<Unwritten>) -> Self {
        Self {
            root,
            unwritten: Arc::clone(unwritten),
        }
    }

    /// To whose memory.
    pub(crate) fn root(&self) -> Peer {
        self.root
    }

    /// A member could not write its block.
    pub(crate) fn fails(&self, member: u32) {
        self.unwritten.insert(member);
    }

    pub(crate) fn has_failed(&self, member: u32) -> bool {
        self.unwritten.contains(member)
    }
}
