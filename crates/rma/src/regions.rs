// SPDX-License-Identifier: Apache-2.0
//! Memory that processes have attached to a window: a table for each, and the notice by which others find it.
//!
//! The notice has a version, odd while it changes. Whoever reads the table looks at the version before and after; the
//! table of an even version stays where it is until the version changes.

use std::collections::BTreeMap;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex};

use isthmus_datatype::raw::WriteMemory;

use crate::locks::Notice;

/// Most pieces of memory that a process has attached to a window: what others read of it has a bound.
pub(crate) const MOST: usize = 1 << 16;

/// Address and length of each piece, by address.
pub(crate) type Table = Arc<[(u64, u64)]>;

/// Of a window, at one process.
#[derive(Default)]
pub(crate) struct Attached {
    pub(crate) own: Mutex<Regions>,
    /// What is known of others: the version, and what it says.
    pub(crate) known: Mutex<BTreeMap<u32, (u64, Table)>>,
}

/// What this process has attached.
#[derive(Default)]
pub(crate) struct Regions {
    pub(crate) list: Vec<(u64, u64, WriteMemory)>,
    /// What others read: address and length of each piece.
    table: Box<[u64]>,
}

impl Regions {
    /// Memory from the first address on in which all of these bytes lie.
    pub(crate) fn covering(&self, start: u64, end: u64) -> Option<WriteMemory> {
        let longest = |at: u64| {
            let all = self
                .list
                .iter()
                .map(|(first, size, memory)| (*first, first.saturating_add(*size), memory));
            let there = all.filter(move |&(first, last, _)| first <= at && at <= last);
            there.max_by_key(|&(_, last, _)| last)
        };
        let (first, mut at, memory) = longest(start)?;
        let mut all = memory.shifted((start - first) as isize);
        while at < end {
            let (_, last, more) = longest(at)?;
            all = all.joined(more).filter(|_| last > at)?;
            at = last;
        }
        Some(all)
    }

    /// A piece, address and length, that has bytes in common with `size` bytes from `start` on.
    pub(crate) fn overlapping(&self, start: u64, size: u64) -> Option<(u64, u64)> {
        let end = start.saturating_add(size);
        let all = self.list.iter().map(|region| (region.0, region.1));
        let mut common = all.filter(|&(first, length)| start.max(first) < end.min(first.saturating_add(length)));
        common.next()
    }

    /// After a change: others read the new table from now on.
    pub(crate) fn publish(&mut self, notice: Notice<'_>) {
        let mut sorted: Vec<(u64, u64)> = self.list.iter().map(|region| (region.0, region.1)).collect();
        sorted.sort_unstable();
        let table: Box<[u64]> = sorted.into_iter().flat_map(|(at, size)| [at, size]).collect();
        notice.version.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        notice
            .address
            .store(table.as_ptr().expose_provenance() as u64, Ordering::Relaxed);
        notice.length.store(table.len() as u64, Ordering::Relaxed);
        self.table = table;
        notice.version.fetch_add(1, Ordering::Release);
    }
}

/// Whether bytes from `start` up to `end` all lie in pieces, which are in order.
pub(crate) fn covers(table: &[(u64, u64)], start: u64, end: u64) -> bool {
    let mut at = start;
    for &(first, size) in table {
        if first > at {
            break;
        }
        at = at.max(first.saturating_add(size));
    }
    at >= end
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::raw::OwnMemory;

    use super::*;

    #[test]
    fn pieces_that_touch_cover_what_lies_across_them() {
        let table = [(100, 50), (150, 10), (200, 8), (u64::MAX - 5, 100)];
        assert!(covers(&table, 100, 160) && covers(&table, 140, 160) && covers(&table, 200, 208));
        assert!(!covers(&table, 99, 101) && !covers(&table, 150, 161) && !covers(&table, 160, 161));
        assert!(!covers(&table, 300, 301) && !covers(&[], 0, 1) && covers(&[], 7, 7));
    }

    #[test]
    fn own_pieces_that_touch_are_one_and_gaps_are_found() {
        let own = OwnMemory::new(0, 64);
        let mut regions = Regions::default();
        // Memory of the library is not joined: who gives a window the memory of the program cannot tell its bounds.
        regions.list.push((100, 64, own.memory()));
        regions.list.push((164, 64, own.memory()));
        let bytes = |start, end| regions.covering(start, end).map(|memory| memory.window());
        assert_eq!(regions.overlapping(163, 2), Some((100, 64)));
        assert_eq!(regions.overlapping(0, 101), Some((100, 64)));
        assert_eq!(regions.overlapping(120, 1), Some((100, 64)));
        for (start, size) in [(0, 100), (228, 10), (164, 0), (120, 0), (u64::MAX, 9)] {
            assert_eq!(regions.overlapping(start, size), None, "{start}");
        }
        assert_eq!(bytes(104, 164), Some((-4, 60)));
        assert_eq!((bytes(99, 101), bytes(170, 229), bytes(104, 170)), (None, None, None));
    }
}
