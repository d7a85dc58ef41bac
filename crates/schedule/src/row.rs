// SPDX-License-Identifier: Apache-2.0
//! Where blocks stand in a row: in order of rank (the user's buffers) or of position (messages and scratch memory).

use crate::script::Script;
use crate::step::{Buffer, Rank, Slice};
use crate::{Blocks, Call};
use isthmus_topology::Shape;
use std::ops::Range;
use std::sync::Arc;

/// The blocks of consecutive positions, in order of position.
#[derive(Clone, Debug)]
pub(crate) enum BlockRow {
    /// Blocks of one size.
    Equal(u64),
    /// Sums of sizes from position `first` on.
    Sums {
        /// First position.
        first: u32,
        /// `sums[i]`: where the block of position `first + i` begins.
        sums: Arc<[u64]>,
    },
}

/// A buffer with blocks in order of position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByPosition {
    pub(crate) buffer: Buffer,
    /// The position with which it begins.
    pub(crate) origin: u32,
}

/// A buffer with blocks in order of rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByRank<'a> {
    pub(crate) buffer: Buffer,
    pub(crate) blocks: &'a Blocks,
}

impl BlockRow {
    /// Blocks of one size.
    pub(crate) fn equal(units: u64) -> Self {
        Self::Equal(units)
    }

    /// The row of all blocks of a call, or of those of the positions from `first` on as far as the call knows them.
    pub(crate) fn new(blocks: &Blocks, shape: &Shape, first: u32) -> Self {
        match blocks {
            Blocks::Equal(n) => Self::Equal(*n),
            Blocks::Known(sums) if shape.in_rank_order() => Self::Sums {
                first: 0,
                sums: Arc::clone(sums),
            },
            Blocks::Known(_) => Self::sums(0, (0..shape.size()).map(|p| blocks.size(shape.rank_at(p)))),
            Blocks::Own(n) => Self::sums(first, [*n]),
            Blocks::Subtree(sizes) => Self::sums(first, sizes.iter().copied()),
        }
    }

    /// Blocks of these sizes at consecutive positions.
    pub(crate) fn of_positions(first: u32, sizes: impl IntoIterator<Item = u64>) -> Self {
        Self::sums(first, sizes)
    }

    fn sums(first: u32, sizes: impl IntoIterator<Item = u64>) -> Self {
        let Blocks::Known(sums) = Blocks::known(sizes) else {
            unreachable!("sums are known")
        };
        Self::Sums { first, sums }
    }

    /// Where the block of a position begins, or the blocks before it end.
    pub(crate) fn at(&self, position: u32) -> u64 {
        match self {
            Self::Equal(n) => n * u64::from(position),
            Self::Sums { first, sums } => sums[(position - first) as usize],
        }
    }

    /// Units of a range of positions.
    pub(crate) fn length(&self, positions: Range<u32>) -> u64 {
        self.at(positions.end) - self.at(positions.start)
    }

    /// The blocks of a range of positions, in a buffer that begins with the block of position `origin`.
    pub(crate) fn slice(&self, buffer: Buffer, origin: u32, positions: Range<u32>) -> Slice {
        Slice {
            buffer,
            offset: self.at(positions.start) - self.at(origin),
            length: self.length(positions),
        }
    }

    /// A run of positions that hold consecutive ranks, in parts in which no block is left out of this row; those that
    /// are stand alone.
    fn whole_runs(
        &self,
        run: Range<u32>,
        rank: Rank,
        blocks: &Blocks,
    ) -> impl Iterator<Item = (Range<u32>, Rank)> + use<> {
        let whole = self.length(run.clone()) == blocks.offset(rank + (run.end - run.start)) - blocks.offset(rank);
        let step = if whole { (run.end - run.start).max(1) } else { 1 };
        let begins = (run.start..run.end).step_by(step as usize);
        begins.map(move |begin| (begin..(begin + step).min(run.end), rank + (begin - run.start)))
    }

    /// Whether the blocks of some positions follow each other in a buffer in order of rank, none left out.
    pub(crate) fn is_whole_run(&self, shape: &Shape, positions: Range<u32>, blocks: &Blocks) -> bool {
        let rank = shape.rank_at(positions.start);
        is_run(shape, positions.clone())
            && self.length(positions.clone())
                == blocks.offset(rank + (positions.end - positions.start)) - blocks.offset(rank)
    }

    /// Copies blocks from a buffer that has the row to where the call has them in the end, by rank.
    pub(crate) fn copy_to_ranks(
        &self,
        script: &mut Script,
        call: &Call,
        shape: &Shape,
        positions: Range<u32>,
        buffer: Buffer,
    ) {
        let to = ByRank {
            buffer: Buffer::Recv,
            blocks: &call.blocks,
        };
        self.permute(script, shape, positions, ByPosition { buffer, origin: 0 }, to, true);
    }

    /// Copies blocks from where the call has them at its begin, by rank, to a buffer that has the row.
    pub(crate) fn copy_from_ranks(
        &self,
        script: &mut Script,
        call: &Call,
        shape: &Shape,
        positions: Range<u32>,
        buffer: Buffer,
    ) {
        let from = ByRank {
            buffer: Buffer::Send,
            blocks: &call.blocks,
        };
        self.permute(script, shape, positions, ByPosition { buffer, origin: 0 }, from, false);
    }

    /// Copies the blocks of a range of positions between a buffer in order of position and one in order of rank: runs
    /// of consecutive ranks at a time.
    pub(crate) fn permute(
        &self,
        script: &mut Script,
        shape: &Shape,
        positions: Range<u32>,
        by_position: ByPosition,
        by_rank: ByRank<'_>,
        to_rank_order: bool,
    ) {
        for (run, rank) in runs(shape, positions).flat_map(|(run, rank)| self.whole_runs(run, rank, by_rank.blocks)) {
            let near = self.slice(by_position.buffer, by_position.origin, run);
            let far = Slice {
                buffer: by_rank.buffer,
                offset: by_rank.blocks.offset(rank),
                length: near.length,
            };
            if to_rank_order {
                script.copy(near, far)
            } else {
                script.copy(far, near)
            }
        }
    }
}

/// Maximal runs of positions that hold consecutive ranks, with their first ranks.
pub(crate) fn runs(shape: &Shape, positions: Range<u32>) -> impl Iterator<Item = (Range<u32>, Rank)> + use<'_> {
    let mut next = positions.start;
    std::iter::from_fn(move || {
        if next >= positions.end {
            return None;
        }
        let (start, rank) = (next, shape.rank_at(next));
        next = if shape.in_rank_order() {
            positions.end
        } else {
            start + 1
        };
        while next < positions.end && shape.rank_at(next) == rank + (next - start) {
            next += 1;
        }
        Some((start..next, rank))
    })
}

/// True if the ranks at these positions are consecutive.
pub(crate) fn is_run(shape: &Shape, positions: Range<u32>) -> bool {
    runs(shape, positions).nth(1).is_none()
}
