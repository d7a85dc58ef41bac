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
    /// Pieces with their lengths, by address; no two have bytes in common.
    pieces: BTreeMap<u64, (u64, WriteMemory)>,
    /// Addresses of pieces without any bytes.
    empty: Vec<u64>,
    /// What others read: address and length of each piece.
    table: Vec<[u64; 2]>,
}

impl Regions {
    /// Pieces that are attached.
    pub(crate) fn count(&self) -> usize {
        self.pieces.len() + self.empty.len()
    }

    /// Memory from the first address on in which all of these bytes lie.
    pub(crate) fn covering(&self, start: u64, end: u64) -> Option<WriteMemory> {
        let (first, (size, memory)) = self.pieces.range(..=start).next_back()?;
        let mut at = first.saturating_add(*size);
        if start > at || end < start {
            return None;
        }
        let mut all = memory.shifted((start - first) as isize);
        while at < end {
            let (size, more) = self.pieces.get(&at)?;
            all = all.joined(more)?;
            at = at.saturating_add(*size);
        }
        Some(all)
    }

    /// A piece, address and length, that has bytes in common with `size` bytes from `start` on.
    pub(crate) fn overlapping(&self, start: u64, size: u64) -> Option<(u64, u64)> {
        let end = start.saturating_add(size);
        let before = self.pieces.range(..=start).next_back();
        let mut near = before.into_iter().chain(self.pieces.range(start..).next());
        let has_common = |first: u64, length: u64| start.max(first) < end.min(first.saturating_add(length));
        near.find_map(|(&first, &(length, _))| has_common(first, length).then_some((first, length)))
    }

    /// Attaches a piece that has no bytes in common with any other. Others read of it from now on.
    pub(crate) fn insert(&mut self, notice: Notice<'_>, address: u64, size: u64, memory: WriteMemory) {
        if size == 0 {
            self.empty.push(address);
            return;
        }
        self.pieces.insert(address, (size, memory));
        let at = self.table.partition_point(|&[first, _]| first < address);
        self.change(notice, |table| table.insert(at, [address, size]));
    }

    /// Detaches the piece that begins there, if any does.
    pub(crate) fn remove(&mut self, notice: Notice<'_>, address: u64) -> bool {
        if self.pieces.remove(&address).is_some() {
            let at = self.table.partition_point(|&[first, _]| first < address);
            self.change(notice, |table| drop(table.drain(at..=at)));
            return true;
        }
        let empty = self.empty.iter().position(|&first| first == address);
        empty.map(|at| self.empty.swap_remove(at)).is_some()
    }

    /// Changes the table. Whoever reads it meanwhile reads it again.
    fn change(&mut self, notice: Notice<'_>, change: impl FnOnce(&mut Vec<[u64; 2]>)) {
        notice.version.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        change(&mut self.table);
        let address = self.table.as_ptr().expose_provenance() as u64;
        notice.address.store(address, Ordering::Relaxed);
        notice.length.store(2 * self.table.len() as u64, Ordering::Relaxed);
        notice.version.fetch_add(1, Ordering::Release);
    }
}

/// Whether bytes from `start` up to `end` all lie in pieces, which are in order.
pub(crate) fn covers(table: &[(u64, u64)], start: u64, end: u64) -> bool {
    if end < start {
        return false;
    }
    let mut at = start;
    let from = table.partition_point(|&(first, _)| first <= start);
    for &(first, size) in &table[from.saturating_sub(1)..] {
        if first > at {
            break;
        }
        at = at.max(first.saturating_add(size));
    }
    at >= end
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use isthmus_datatype::raw::OwnMemory;

    use super::*;

    #[test]
    fn pieces_that_touch_cover_what_lies_across_them() {
        let table = [(100, 50), (150, 10), (200, 8), (u64::MAX - 5, 100)];
        assert!(covers(&table, 100, 160) && covers(&table, 140, 160) && covers(&table, 200, 208));
        assert!(!covers(&table, 99, 101) && !covers(&table, 150, 161) && !covers(&table, 160, 161));
        assert!(
            !covers(&table, 1, 0) && !covers(&table, u64::MAX - 4, 2),
            "no bytes of a row"
        );
        assert!(!covers(&table, 300, 301) && !covers(&[], 0, 1) && covers(&[], 7, 7));
    }

    #[test]
    fn own_pieces_that_touch_are_one_and_gaps_are_found() {
        let own = OwnMemory::new(0, 64);
        let mut regions = Regions::default();
        let words: [AtomicU64; 3] = Default::default();
        let notice = Notice {
            version: &words[0],
            address: &words[1],
            length: &words[2],
        };
        // Memory of the library is not joined: who gives a window the memory of the program cannot tell its bounds.
        for (address, size) in [(164, 64), (100, 64), (164, 0)] {
            regions.insert(notice, address, size, own.memory());
        }
        let told = |regions: &Regions| {
            let words = [notice.version, notice.address, notice.length].map(|word| word.load(Ordering::Relaxed));
            assert_eq!(
                words[1..],
                [regions.table.as_ptr().addr() as u64, 2 * regions.table.len() as u64]
            );
            (words[0], regions.table.clone())
        };
        assert_eq!(told(&regions), (4, vec![[100, 64], [164, 64]]));
        let bytes = |start, end| regions.covering(start, end).map(|memory| memory.window());
        assert_eq!(regions.overlapping(163, 2), Some((100, 64)));
        assert_eq!(regions.overlapping(0, 101), Some((100, 64)));
        assert_eq!(regions.overlapping(120, 1), Some((100, 64)));
        for (start, size) in [(0, 100), (228, 10), (164, 0), (120, 0), (u64::MAX, 9)] {
            assert_eq!(regions.overlapping(start, size), None, "{start}");
        }
        assert_eq!(bytes(104, 164), Some((-4, 60)));
        assert_eq!((bytes(99, 101), bytes(170, 229), bytes(104, 170)), (None, None, None));
        assert_eq!((bytes(160, 150), bytes(u64::MAX, 2)), (None, None));
        assert!(regions.remove(notice, 164) && regions.remove(notice, 164) && !regions.remove(notice, 164));
        assert_eq!((told(&regions), regions.count()), ((6, vec![[100, 64]]), 1));
        assert!(!regions.remove(notice, 101) && regions.remove(notice, 100) && !regions.remove(notice, 0));
    }
}
