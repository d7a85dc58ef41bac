// SPDX-License-Identifier: Apache-2.0
//! Who has come to which collective operation: counters in memory that the processes of a vendor's job on one node
//! share.
//!
//! A process that is blocked inside a collective operation of the vendor makes no progress for others. One with
//! anything pending therefore waits outside until all members have come, and then knows that the operation will end.
//!
//! ```text
//!  block of each process (by its place on the node)
//!      for each row (communicator)     u32, the number of operations that it has come to
//! ```
//! A communicator's row is named by its first member, out of rows that this process owns. What a process writes lies
//! together, apart from what others write: nearly always nobody looks, and then counting must not take a line away from
//! another core.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use isthmus_lock::within_size_limit;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Rows that each process owns. A communicator without one is not the vendor's.
const ROWS: u32 = 128;

/// The counters.
#[derive(Debug)]
pub(crate) struct Attendance {
    cells: *const AtomicU32,
    length: usize,
    own: u32,
    count: u32,
    /// Own rows that are in use.
    used: Vec<bool>,
}

// SAFETY: the memory is shared with other processes anyway; all access is atomic.
unsafe impl Send for Attendance {}

impl Attendance {
    /// Those in this file, which the first of the processes makes; `own`: place of this process among the `count` on
    /// this node.
    pub(crate) fn open(path: &Path, own: u32, count: u32) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let length = (ROWS as usize) * (count as usize) * (count as usize) * size_of::<AtomicU32>();
        within_size_limit(length as u64)?;
        // All make it equally long; what was never written is zero and takes no memory.
        file.set_len(length as u64)?;
        Ok(Self {
            cells: map(&file, length)?,
            length,
            own,
            count,
            used: vec![false; ROWS as usize],
        })
    }

    /// Place of this process on the node.
    pub(crate) fn own(&self) -> u32 {
        self.own
    }

    /// A row for a communicator whose first member this process is.
    pub(crate) fn take_row(&mut self) -> Option<u32> {
        let at = self.used.iter().position(|used| !used)?;
        self.used[at] = true;
        Some(self.own * ROWS + at as u32)
    }

    /// Gives a row back, if this process owns it.
    pub(crate) fn free_row(&mut self, row: u32) {
        if row / ROWS == self.own {
            self.used[(row % ROWS) as usize] = false;
        }
    }

    #[inline(always)]
    fn cell(&self, row: u32, column: u32) -> &AtomicU32 {
        assert!(row < ROWS * self.count && column < self.count, "no such counter");
        let at = column as usize * (ROWS * self.count) as usize + row as usize;
        // SAFETY: the memory has a block of all rows for each process; the index was checked.
        let cell = unsafe { self.cells.add(at) };
        // SAFETY: the memory lives as long as this value, and is only used atomically.
        unsafe { &*cell }
    }

    /// Begins to count at zero in a row.
    pub(crate) fn begin(&self, row: u32) {
        self.cell(row, self.own).store(0, Ordering::Release);
    }

    /// Comes to the next operation.
    #[inline(always)]
    pub(crate) fn come(&self, row: u32) {
        let own = self.cell(row, self.own);
        own.store(own.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Whether these have come as far as this process.
    pub(crate) fn have_come(&self, row: u32, columns: &[u32]) -> bool {
        let own = self.cell(row, self.own).load(Ordering::Relaxed);
        let behind = |&column: &u32| {
            let theirs = self.cell(row, column).load(Ordering::Acquire);
            (theirs.wrapping_sub(own) as i32) < 0
        };
        !columns.iter().any(behind)
    }
}

fn map(file: &File, length: usize) -> io::Result<*const AtomicU32> {
    // SAFETY: a new mapping that aliases nothing of this process.
    let address = unsafe {
        mmap(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            file,
            0,
        )
    }?;
    Ok(address.cast_const().cast())
}

impl Drop for Attendance {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no reference outlives it.
        let _ = unsafe { munmap(self.cells.cast_mut().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_missed_and_rows_are_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("attendance");
        let mut all: Vec<Attendance> = (0..3).map(|own| Attendance::open(&path, own, 3).unwrap()).collect();
        let row = all[1].take_row().unwrap();
        assert_eq!(row / ROWS, 1);
        all.iter().for_each(|a| a.begin(row));
        all[0].come(row);
        all[2].come(row);
        assert!(!all[0].have_come(row, &[0, 1, 2]) && all[0].have_come(row, &[0, 2]));
        all[1].come(row);
        all[1].come(row);
        assert!(all[0].have_come(row, &[0, 1, 2]) && !all[1].have_come(row, &[0, 1]));
        all[0].free_row(row);
        assert_ne!(all[1].take_row(), Some(row), "only its owner frees a row");
        all[1].free_row(row);
        assert_eq!(all[1].take_row(), Some(row));
        assert_eq!((2..200).map_while(|_| all[1].take_row()).count(), ROWS as usize - 2);
    }
}
