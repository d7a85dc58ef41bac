// SPDX-License-Identifier: Apache-2.0
//! Peers: processes as the tables of one process name them.

use std::fmt;

/// A process that this one may talk to: a dense index into this process's own tables, given when it first hears of
/// the other. It is no rank, means nothing to other processes and is on no wire. Peers of the process's first world
/// are numbered as its ranks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Peer(u32);

impl Peer {
    /// No peer: where a table has room for one and there is none.
    pub const NONE: Self = Self(u32::MAX);

    /// The peer with this number.
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The peers from this one on, as many as there are numbers.
    pub fn and_following(self, count: u32) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        (0..count).map(move |at| self.plus(at))
    }

    /// The first so many peers.
    pub fn first(count: u32) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        Self(0).and_following(count)
    }

    /// Its number, for counters and records.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Its place in a table of all peers.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The one so many numbers on. A number that no peer has is in no table.
    #[inline]
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// Its place in a table that begins with `first`: behind its end if the peer comes before.
    #[inline]
    pub const fn index_from(self, first: Self) -> usize {
        self.0.wrapping_sub(first.0) as usize
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_places_in_tables() {
        let first = Peer::new(3);
        assert_eq!(
            first.and_following(2).collect::<Vec<_>>(),
            [Peer::new(3), Peer::new(4)],
            "in order"
        );
        assert_eq!(Peer::new(5).index_from(first), 2);
        assert!(Peer::new(2).index_from(first) > 1 << 30, "before the table: in none");
        assert_eq!(Peer::first(2).last(), Some(Peer::new(1)));
    }
}
