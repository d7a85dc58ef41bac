// SPDX-License-Identifier: Apache-2.0
//! Long blocks that could not be moved straight between the memories of two members, and what whoever moves them must
//! know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use isthmus_transport::Peer;

use crate::Members;

/// Long blocks of this member that could not be moved straight from memory to memory: both members of each know it.
#[derive(Debug, Default)]
pub struct Unmoved {
    /// By those who take them.
    given: AtomicU64,
    /// By those who give them.
    taken: AtomicU64,
}

impl Unmoved {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        (self.given.load(Ordering::Relaxed) | self.taken.load(Ordering::Relaxed)) == 0
    }

    /// Whether the block that a member gives another, of which member `me` is one, is one of them.
    pub fn contains(&self, me: u32, giver: u32, taker: u32) -> bool {
        let (of, other) = if giver == me {
            (&self.given, taker)
        } else {
            (&self.taken, giver)
        };
        of.load(Ordering::Relaxed) & bit(other) != 0
    }
}

/// The bit of a member; none of one that has no such blocks.
pub(crate) fn bit(member: u32) -> u64 {
    1_u64.checked_shl(member).unwrap_or(0)
}

/// How long blocks are moved.
pub(crate) struct Moving {
    members: Members,
    unmoved: Arc<Unmoved>,
}

impl Moving {
    pub(crate) fn new(members: &Members, unmoved: &Arc<Unmoved>) -> Self {
        Self {
            members: members.clone(),
            unmoved: Arc::clone(unmoved),
        }
    }

    /// From or to whose memory.
    pub(crate) fn peer(&self, member: u32) -> Peer {
        self.members.peer(member)
    }

    /// What this member gives another could not be moved.
    pub(crate) fn fails_to(&self, taker: u32) {
        self.unmoved.given.fetch_or(bit(taker), Ordering::Relaxed);
    }

    /// What another gives this member could not be moved.
    pub(crate) fn fails_from(&self, giver: u32) {
        self.unmoved.taken.fetch_or(bit(giver), Ordering::Relaxed);
    }

    pub(crate) fn has_failed_to(&self, taker: u32) -> bool {
        self.unmoved.given.load(Ordering::Relaxed) & bit(taker) != 0
    }
}
