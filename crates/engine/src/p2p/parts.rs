// SPDX-License-Identifier: Apache-2.0
//! What of a partitioned message may leave, and what has arrived.

use std::collections::VecDeque;

/// What of a partitioned message may leave.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Bytes of a partition.
    size: u64,
    marked: Vec<bool>,
    /// Partitions that are not ready yet.
    left: u32,
    /// Ready and not sent: first byte, end.
    ranges: VecDeque<(u64, u64)>,
    /// The receiver asked for data.
    cleared: bool,
}

/// Why a partition cannot be marked as ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotMarked {
    NoSuch,
    Before,
}

impl Ready {
    /// Of a message of so many bytes.
    pub(crate) fn new(length: u64, partitions: u32) -> Self {
        Self {
            size: length / u64::from(partitions.max(1)),
            marked: vec![false; partitions as usize],
            left: partitions,
            ranges: VecDeque::new(),
            cleared: false,
        }
    }

    /// The partition may leave. `length`: of the message.
    pub(crate) fn mark(&mut self, partition: u32, length: u64) -> Result<(), NotMarked> {
        let marked = self.marked.get_mut(partition as usize).ok_or(NotMarked::NoSuch)?;
        if std::mem::replace(marked, true) {
            return Err(NotMarked::Before);
        }
        self.left -= 1;
        let at = u64::from(partition) * self.size;
        let end = (at + self.size).min(length);
        match self.ranges.back_mut() {
            Some(last) if last.1 == at => last.1 = end,
            _ if at < end => self.ranges.push_back((at, end)),
            _ => {}
        }
        Ok(())
    }

    /// The receiver asks for data.
    pub(crate) fn clear(&mut self) {
        self.cleared = true;
    }

    pub(crate) fn are_cleared(&self) -> bool {
        self.cleared
    }

    pub(crate) fn are_all_marked(&self) -> bool {
        self.left == 0
    }

    /// First byte and end of what is ready and has not left.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    /// So many bytes of that have left.
    pub(crate) fn left(&mut self, length: u64) {
        let Some(first) = self.ranges.front_mut() else { return };
        first.0 += length;
        if first.0 == first.1 {
            self.ranges.pop_front();
        }
    }

    /// Forgets what the receiver has no room for.
    pub(crate) fn clip(&mut self, wanted: u64) {
        self.ranges.retain_mut(|range| {
            range.1 = range.1.min(wanted);
            range.0 < range.1
        });
    }
}

/// What of a partitioned message has arrived.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// The user's tag.
    tag: i32,
    /// Bytes of a partition.
    size: u64,
    /// Bytes of each that are there.
    got: Vec<u64>,
}

impl Arrivals {
    /// Of a message of so many bytes. `tag`: the user's.
    pub(crate) fn new(length: u64, partitions: u32, tag: i32) -> Self {
        Self {
            tag,
            size: length / u64::from(partitions.max(1)),
            got: vec![0; partitions as usize],
        }
    }

    /// The user's tag.
    pub(crate) fn tag(&self) -> i32 {
        self.tag
    }

    /// `bytes` bytes from `at` on are there.
    pub(crate) fn note(&mut self, at: u64, bytes: u64) {
        let (mut at, end) = (at, at + bytes);
        while at < end && self.size > 0 {
            let partition = at / self.size;
            let next = end.min((partition + 1) * self.size);
            if let Some(got) = self.got.get_mut(partition as usize) {
                *got += next - at;
            }
            at = next;
        }
    }

    /// Whether all of a partition is there.
    pub(crate) fn is_here(&self, partition: u32) -> bool {
        let got = self.got.get(partition as usize);
        self.size > 0 && got.is_some_and(|&got| got >= self.size)
    }
}
