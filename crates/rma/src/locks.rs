// SPDX-License-Identifier: Apache-2.0
//! Where locks lie in words that all processes of a window share.
//!
//! ```text
//!  words                  content
//!  8 for each process     its lock: tickets, write, read | its attached memory: version, address, length; or in the
//!                        place of these the piece of shared memory in which lies what it has brought, its address, and
//!                        what of the piece is before it | counts of those who want it (`isthmus_lock`) |
//!                        fences that it has ended
//!  8 for each 64 members  a byte for each of them that wants or has the lock of the process
//!  8 for each of 64       who changes elements of a block: rank + 1, or 0 | unused
//! ```
//! Each is a cache line of its own. A process that is alone on its node has one line for itself, and a word with a bit
//! for each block.
//!
//! The lock of a process is that of MPI_Win_lock ([`ProcessLock`]).
//!
//! **Elements** are changed by accumulate and its kin under the locks of the blocks that they lie in, whichever way
//! they reach them: that is what makes them atomic.

use std::sync::atomic::AtomicU64;

use isthmus_lock::shared::{BlockLocks, EACH, LINE, ProcessLock};

/// Locks of blocks.
const BLOCK_LOCKS: u32 = 64;
/// Bytes of a block.
const BLOCK: u64 = 4096;

/// Words of a process that is alone on its node.
pub(crate) const OWN: usize = LINE + 1;

/// Words of one of so many processes.
fn stride(processes: usize) -> usize {
    LINE + processes.div_ceil(EACH).next_multiple_of(LINE)
}

/// Words of a window of so many processes.
pub(crate) fn words(processes: usize) -> usize {
    stride(processes) * processes + LINE * BLOCK_LOCKS as usize
}

/// What is known of the memory that a process has attached: see `attach`.
#[derive(Clone, Copy)]
pub(crate) struct Notice<'a> {
    pub(crate) version: &'a AtomicU64,
    pub(crate) address: &'a AtomicU64,
    pub(crate) length: &'a AtomicU64,
}

/// The words of process `rank`, which there is, of so many.
pub(crate) fn line(words: &[AtomicU64], processes: usize, rank: u32) -> &[AtomicU64] {
    let stride = stride(processes);
    &words[stride * rank as usize..][..stride]
}

/// The lock in the words of a process.
pub(crate) fn of_process(line: &[AtomicU64]) -> ProcessLock<'_> {
    ProcessLock::new([&line[0], &line[1], &line[2]], &line[6], &line[LINE..])
}

/// The notice in the words of a process.
pub(crate) fn notice(line: &[AtomicU64]) -> Notice<'_> {
    Notice {
        version: &line[3],
        address: &line[4],
        length: &line[5],
    }
}

/// The memory that a process has brought when the window was made.
#[derive(Clone, Copy)]
pub(crate) struct Brought<'a> {
    /// Where it begins there.
    pub(crate) begins: &'a AtomicU64,
    /// The number of the piece of shared memory in which it lies; 0: in none.
    pub(crate) piece: &'a AtomicU64,
    /// Bytes of the piece before it.
    pub(crate) skip: &'a AtomicU64,
}

/// What a process says of memory that it has brought, in its words: those of a window to which nothing can be attached
/// have room for it.
pub(crate) fn brought(line: &[AtomicU64]) -> Brought<'_> {
    Brought {
        begins: &line[4],
        piece: &line[3],
        skip: &line[5],
    }
}

/// How many fences a process has come to the end of, in its words.
pub(crate) fn fences(line: &[AtomicU64]) -> &AtomicU64 {
    &line[7]
}

/// The locks of the blocks of process `rank` from byte `start` up to `end`: a bit for each.
pub(crate) fn blocks(rank: u32, start: u64, end: u64) -> u64 {
    if start >= end {
        return 0;
    }
    let (first, last) = (start / BLOCK, (end - 1) / BLOCK);
    if last - first >= u64::from(BLOCK_LOCKS) - 1 {
        return u64::MAX;
    }
    // Neighbouring processes begin at different locks.
    let offset = u64::from(rank).wrapping_mul(17);
    (first..=last).fold(0, |all, block| {
        all | 1 << (block.wrapping_add(offset) % u64::from(BLOCK_LOCKS))
    })
}

/// The locks of blocks among all words of a node.
pub(crate) fn blocks_of_node(words: &[AtomicU64]) -> BlockLocks<'_> {
    BlockLocks::Lines(&words[words.len().saturating_sub(LINE * BLOCK_LOCKS as usize)..])
}

/// The same among those of a process that is alone.
pub(crate) fn blocks_of_one(words: &[AtomicU64]) -> BlockLocks<'_> {
    BlockLocks::Bits(&words[LINE])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn blocks_have_locks_of_their_own_and_long_ranges_all() {
        assert_eq!(blocks(0, 5, 5), 0);
        assert_eq!(blocks(0, 0, 4096), 1);
        assert_eq!(blocks(0, 4095, 4097), 3);
        assert_eq!(blocks(0, 63 * 4096, 65 * 4096), 1 << 63 | 1);
        assert_eq!(blocks(0, 10, 64 * 4096), u64::MAX);
        assert_eq!(blocks(9, 0, u64::MAX), u64::MAX);
        assert_ne!(blocks(0, 0, 1), blocks(1, 0, 1));
    }

    #[test]
    fn locks_of_blocks_lie_behind_those_of_processes() {
        let words: Vec<_> = (0..words(3)).map(|_| AtomicU64::new(0)).collect();
        let locks = blocks_of_node(&words);
        assert!((0..100).any(|_| locks.enter(7, 1)) && (0..100).any(|_| locks.enter(63, 2)));
        let used = words.iter().position(|word| word.load(Ordering::Relaxed) != 0);
        assert_eq!(used, Some(3 * stride(3) + 7 * LINE));
        assert_eq!(words[words.len() - LINE].load(Ordering::Relaxed), 3);
    }
}
