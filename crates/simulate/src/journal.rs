// SPDX-License-Identifier: Apache-2.0
//! What is remembered of a simulation: all records, or those that a critical path may still go through.

use super::outcome::{NONE, Record};

/// Records. Each one's cause is an earlier one, so that paths are found from the end.
pub(super) struct Journal {
    records: Vec<Record>,
    limit: usize,
    /// Whether some have been forgotten.
    pub(super) partial: bool,
    /// Whether even those that paths go through are too many: nothing is kept.
    pub(super) closed: bool,
}

/// Where records have gone: their new numbers, [`NONE`] for those that are forgotten.
pub(super) struct Moved(Vec<u32>);

impl Journal {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            records: Vec::new(),
            limit: limit.min(NONE as usize / 2),
            partial: false,
            closed: false,
        }
    }

    /// Number of the next record.
    pub(super) fn next(&self) -> u32 {
        if self.closed { NONE } else { self.records.len() as u32 }
    }

    pub(super) fn keep(&mut self, record: Record) {
        if !self.closed {
            self.records.push(record);
        }
    }

    /// Whether it is time to forget some.
    pub(super) fn is_full(&self) -> bool {
        self.records.len() > self.limit
    }

    /// Which records paths may go through, if their ends are `marked` (one flag for each record).
    pub(super) fn marks(&self) -> Vec<bool> {
        vec![false; self.records.len()]
    }

    /// Forgets the records that no path from a marked one goes through. If too many are left, all.
    pub(super) fn forget(&mut self, mut marked: Vec<bool>) -> Moved {
        let mut left = 0;
        for i in (0..self.records.len()).rev() {
            if marked[i] {
                left += 1;
                if let Some(mark) = marked.get_mut(self.records[i].cause as usize) {
                    *mark = true;
                }
            }
        }
        self.partial = true;
        // With less than a quarter gained the next round would follow soon.
        self.closed = left > self.limit - self.limit / 4;
        let mut moved = Moved(vec![NONE; self.records.len()]);
        if self.closed {
            self.records = Vec::new();
            return moved;
        }
        let mut next = 0;
        for i in (0..self.records.len()).filter(|&i| marked[i]) {
            let record = self.records[i];
            self.records[next] = Record {
                cause: moved.of(record.cause),
                ..record
            };
            moved.0[i] = next as u32;
            next += 1;
        }
        self.records.truncate(next);
        moved
    }

    /// All records, if none has been forgotten, and the path that ends with one.
    pub(super) fn finish(self, last: u32, end: u64) -> (Vec<Record>, Vec<Record>) {
        let mut path = Vec::new();
        let (mut at, mut end) = (last, end);
        while let Some(&record) = self.records.get(at as usize) {
            path.push(Record { end, ..record });
            (at, end) = (record.cause, record.begin);
        }
        path.reverse();
        (if self.partial { Vec::new() } else { self.records }, path)
    }
}

impl Moved {
    /// New number of a record.
    pub(super) fn of(&self, record: u32) -> u32 {
        self.0.get(record as usize).copied().unwrap_or(NONE)
    }
}
