// SPDX-License-Identifier: Apache-2.0
//! Going through a range of the packed stream: from a compiled type map to copies of runs.

use crate::layout::{Body, Layout, Nest, Placed};

/// What is done with the runs of a range, in stream order. Offsets are relative to the origin of the memory.
pub(crate) trait Mover {
    /// `length` bytes at `at`.
    fn run(&mut self, at: i64, length: usize);

    /// `count` runs of `length` bytes, `stride` apart.
    fn strided(&mut self, at: i64, stride: i64, count: usize, length: usize) {
        for i in 0..count as i64 {
            self.run(at + i * stride, length);
        }
    }

    /// Runs of `length` bytes at `at` plus each offset.
    fn blocks(&mut self, at: i64, offsets: &[i64], length: usize) {
        for offset in offsets {
            self.run(at + offset, length);
        }
    }
}

/// Gives `mover` the runs of bytes `skip .. skip + take` of the stream. The range must lie within it.
pub(crate) fn walk(placed: &Placed, at: i64, skip: u64, take: u64, mover: &mut impl Mover) {
    if take == 0 {
        return;
    }
    let at = at + placed.offset;
    match &placed.layout {
        Layout::Run { .. } => mover.run(at + skip as i64, take as usize),
        &Layout::Strided { stride, length, .. } => strided(at, stride, length, skip, take, mover),
        Layout::Repeat { count: 1, nest, .. } => walk_nest(nest, at, skip, take, mover),
        Layout::Repeat { stride, nest, .. } => {
            let (mut index, mut skip, mut take) = (skip / nest.size, skip % nest.size, take);
            while take > 0 {
                let part = take.min(nest.size - skip);
                walk_nest(nest, at + index as i64 * stride, skip, part, mover);
                take -= part;
                skip = 0;
                index += 1;
            }
        }
    }
}

/// Splits a range of equal blocks into the rest of one, whole ones, and the beginning of one.
struct Split {
    /// Block with the first byte.
    first: u64,
    /// Bytes of it to leave out and to take; (0, 0) if the range begins at a boundary with a whole block.
    head: (u64, u64),
    /// Whole blocks after that.
    whole: u64,
    /// Bytes of the block after those.
    tail: u64,
}

impl Split {
    fn new(length: u64, skip: u64, take: u64) -> Self {
        let (first, inside) = (skip / length, skip % length);
        let head = if inside == 0 { 0 } else { take.min(length - inside) };
        let rest = take - head;
        Self { first, head: (inside, head), whole: rest / length, tail: rest % length }
    }
}

fn strided(at: i64, stride: i64, length: u64, skip: u64, take: u64, mover: &mut impl Mover) {
    let split = Split::new(length, skip, take);
    let mut at = at + split.first as i64 * stride;
    if split.head.1 > 0 {
        mover.run(at + split.head.0 as i64, split.head.1 as usize);
        at = at.wrapping_add(stride);
    }
    if split.whole > 0 {
        mover.strided(at, stride, split.whole as usize, length as usize);
        at = at.wrapping_add((split.whole as i64).wrapping_mul(stride));
    }
    if split.tail > 0 {
        mover.run(at, split.tail as usize);
    }
}

fn blocks(at: i64, offsets: &[i64], length: u64, skip: u64, take: u64, mover: &mut impl Mover) {
    let split = Split::new(length, skip, take);
    let mut next = split.first as usize;
    if split.head.1 > 0 {
        mover.run(at + offsets[next] + split.head.0 as i64, split.head.1 as usize);
        next += 1;
    }
    let end = next + split.whole as usize;
    if split.whole > 0 {
        mover.blocks(at, &offsets[next..end], length as usize);
    }
    if split.tail > 0 {
        mover.run(at + offsets[end], split.tail as usize);
    }
}

fn walk_nest(nest: &Nest, at: i64, skip: u64, take: u64, mover: &mut impl Mover) {
    match &nest.body {
        Body::Blocks { offsets, length } => blocks(at, offsets, *length, skip, take, mover),
        Body::Runs { offsets, starts } => {
            let end = skip + take;
            let first = starts.partition_point(|&start| start <= skip) - 1;
            for (offset, bounds) in offsets[first..].iter().zip(starts[first..].windows(2)) {
                if bounds[0] >= end {
                    break;
                }
                let from = bounds[0].max(skip);
                let length = bounds[1].min(end) - from;
                mover.run(at + offset + (from - bounds[0]) as i64, length as usize);
            }
        }
        Body::Sequence(parts) => {
            let end = skip + take;
            let first = parts.partition_point(|part| part.start <= skip) - 1;
            for part in &parts[first..] {
                if part.start >= end {
                    break;
                }
                let from = part.start.max(skip);
                let length = (part.start + part.placed.layout.size()).min(end) - from;
                walk(&part.placed, at, from - part.start, length, mover);
            }
        }
    }
}
