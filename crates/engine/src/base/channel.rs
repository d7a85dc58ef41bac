// SPDX-License-Identifier: Apache-2.0
//! Who talks to whom: what the engine needs to know of a communicator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use isthmus_protocol::matching::Context;
use isthmus_transport::Peer;

use crate::base::notes::Notes;

/// The processes that ranks name, in order of rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Peers `first .. first + count`: MPI_COMM_WORLD, MPI_COMM_SELF and many others need no table.
    Range {
        /// Peer of rank 0.
        first: Peer,
        /// Number of ranks.
        count: u32,
    },
    /// Peer of each rank.
    Table(Arc<[Peer]>),
}

impl Members {
    /// The tightest form of a list of peers.
    pub fn of(peers: &[Peer]) -> Self {
        let first = peers.first().copied().unwrap_or(Peer::NONE);
        let consecutive = peers.iter().enumerate().all(|(at, &peer)| peer.index_from(first) == at);
        if consecutive {
            Self::Range {
                first,
                count: peers.len() as u32,
            }
        } else {
            Self::Table(peers.into())
        }
    }

    /// Number of ranks.
    pub fn count(&self) -> u32 {
        match self {
            Self::Range { count, .. } => *count,
            Self::Table(peers) => peers.len() as u32,
        }
    }

    /// The peer with this rank, which must be below [`Members::count`] (the caller has checked the user's argument).
    #[inline]
    pub fn peer(&self, rank: u32) -> Peer {
        match self {
            Self::Range { first, count } => {
                debug_assert!(rank < *count, "rank outside the group");
                first.plus(rank)
            }
            Self::Table(peers) => peers[rank as usize],
        }
    }

    /// Whether this rank is the peer. Any number may be asked about.
    #[inline]
    pub fn names(&self, rank: u32, peer: Peer) -> bool {
        rank < self.count() && self.peer(rank) == peer
    }

    /// Whether the peer is a member. Time in proportion to the count at worst.
    pub fn contains(&self, peer: Peer) -> bool {
        match self {
            Self::Range { first, count } => peer.index_from(*first) < *count as usize,
            Self::Table(peers) => peers.contains(&peer),
        }
    }
}

/// The members of a group over several nodes who are on this process's node, or in its job of a vendor MPI.
#[derive(Debug)]
pub struct NodeMembers {
    /// Their ranks in the group, in order.
    pub ranks: Box<[u32]>,
    /// Which of them this process is.
    pub me: u32,
    /// By what they take steps together.
    pub by: StepsBy,
}

/// By what members take steps together: those towards who acts for them, and those away from him.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepsBy {
    /// Frames of memory of theirs.
    Memory([u32; 2]),
    /// Communicators of the vendor MPI ([`NativeComm::name`](crate::NativeComm::name)).
    Native([u64; 2]),
}

/// Why messages of a channel do not go the usual way: it is a communicator of a vendor MPI underneath, or it was
/// revoked. In one word, which is read anyway: that channels can be revoked costs the usual way nothing.
#[derive(Debug)]
pub struct Special(AtomicU64);

impl Special {
    /// No communicator of a vendor MPI has this name.
    const REVOKED: u64 = u64::MAX;

    /// They do.
    pub const fn none() -> Self {
        Self(AtomicU64::new(0))
    }

    /// It is this one of the vendor MPI ([`NativeComm::name`](crate::NativeComm::name)).
    pub const fn native(name: u64) -> Self {
        Self(AtomicU64::new(name))
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether they go another way.
    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.word() != 0
    }

    /// The name of the vendor MPI's communicator; 0: it is none.
    #[inline]
    pub fn name(&self) -> u64 {
        match self.word() {
            Self::REVOKED => 0,
            name => name,
        }
    }

    /// Whether it was revoked.
    #[inline]
    pub fn is_revoked(&self) -> bool {
        self.word() == Self::REVOKED
    }

    /// From now on it is revoked.
    pub fn revoke(&self) {
        self.0.store(Self::REVOKED, Ordering::Relaxed);
    }

    /// For a channel beside it, which is none of a vendor MPI.
    #[must_use]
    pub fn beside(&self) -> Self {
        match self.is_revoked() {
            true => self.clone(),
            false => Self::none(),
        }
    }
}

impl Clone for Special {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.word()))
    }
}

/// A communicator as the engine sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Context of point-to-point messages, of an even number; the next one carries collective operations.
    pub context: Context,
    /// Own rank: what receivers see as the source.
    pub rank: u32,
    /// The processes that destination and source ranks name: the group, or the remote group of an intercommunicator.
    pub members: Members,
    /// Memory that all members share on their node, if they do: a slab of the transport's.
    pub slab: Option<u32>,
    /// Those of them who share this process's node, or job of a vendor MPI, where plans may have steps that they
    /// take together.
    pub node: Option<Arc<NodeMembers>>,
    /// Why its messages do not go the usual way, if they do not.
    pub special: Special,
    /// What its operations in messages are compared by; `None`: they are not.
    pub notes: Option<Arc<Notes>>,
}
