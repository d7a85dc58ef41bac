// SPDX-License-Identifier: Apache-2.0
//! Going through a range of the packed stream: from a compiled type map to copies of runs.

use std::ops::Range;

use crate::layout::{Body, Layout, Nest, Placed, Rows};

/// What is done with the runs of a range, in stream order. Offsets are relative to the origin of the memory.
pub(crate) trait Mover {
    /// `length` bytes at `at`.
    fn run(&mut self, at: i64, length: usize);

    /// `count` runs of `length` bytes, `stride` apart.
    fn strided(&mut self, at: i64, stride: i64, count: usize, length: usize) {
        for i in 0..count as i64 {
            self.run(step(at, i, stride), length);
        }
    }

    /// The runs `which` of the rows.
    fn rows(&mut self, at: i64, rows: &Rows, which: Range<usize>) {
        for i in which {
            self.run(
                at.wrapping_add(rows.offsets[i]),
                (rows.start(i + 1) - rows.start(i)) as usize,
            );
        }
    }

    /// `count` times all rows, `stride` apart.
    fn columns(&mut self, at: i64, stride: i64, count: usize, rows: &Rows) {
        for i in 0..count as i64 {
            self.rows(step(at, i, stride), rows, 0..rows.offsets.len());
        }
    }
}

/// Where number `index` of things begins that lie `stride` apart. Places on the way to a run are sums of displacements
/// of which the program gave only the last ones together, so they may leave the 64 bits; runs never do.
fn step(at: i64, index: i64, stride: i64) -> i64 {
    at.wrapping_add(index.wrapping_mul(stride))
}

/// Gives `mover` the runs of bytes `skip .. skip + take` of the stream. The range must lie within it.
pub(crate) fn walk(placed: &Placed, at: i64, skip: u64, take: u64, mover: &mut impl Mover) {
    if take == 0 {
        return;
    }
    let at = at.wrapping_add(placed.offset);
    match &placed.layout {
        Layout::Run { .. } => mover.run(at.wrapping_add(skip as i64), take as usize),
        &Layout::Strided { stride, length, .. } => strided(at, stride, length, skip, take, mover),
        Layout::Repeat { count: 1, nest, .. } => walk_nest(nest, at, skip, take, mover),
        Layout::Repeat { stride, nest, .. } => {
            let (mut index, mut skip, mut take) = (skip / nest.size, skip % nest.size, take);
            while take > 0 {
                if let (Body::Rows(rows), 0, 2..) = (&nest.body, skip, take / nest.size) {
                    let whole = take / nest.size;
                    mover.columns(step(at, index as i64, *stride), *stride, whole as usize, rows);
                    take -= whole * nest.size;
                    index += whole;
                    continue;
                }
                let part = take.min(nest.size - skip);
                walk_nest(nest, step(at, index as i64, *stride), skip, part, mover);
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
        Self {
            first,
            head: (inside, head),
            whole: rest / length,
            tail: rest % length,
        }
    }
}

fn strided(at: i64, stride: i64, length: u64, skip: u64, take: u64, mover: &mut impl Mover) {
    let split = Split::new(length, skip, take);
    let mut at = step(at, split.first as i64, stride);
    if split.head.1 > 0 {
        mover.run(at.wrapping_add(split.head.0 as i64), split.head.1 as usize);
        at = at.wrapping_add(stride);
    }
    if split.whole > 0 {
        mover.strided(at, stride, split.whole as usize, length as usize);
        at = step(at, split.whole as i64, stride);
    }
    if split.tail > 0 {
        mover.run(at, split.tail as usize);
    }
}

/// A part of rows: the rest of a run, whole ones, the beginning of one.
fn rows(at: i64, rows: &Rows, skip: u64, take: u64, mover: &mut impl Mover) {
    let end = skip + take;
    let (mut first, last) = (rows.find(skip), rows.find(end - 1));
    let piece = |i: usize, from: u64, to: u64, mover: &mut _| {
        Mover::run(
            mover,
            at.wrapping_add(rows.offsets[i])
                .wrapping_add((from - rows.start(i)) as i64),
            (to - from) as usize,
        );
    };
    if first == last {
        return piece(first, skip, end, mover);
    }
    if skip > rows.start(first) {
        piece(first, skip, rows.start(first + 1), mover);
        first += 1;
    }
    let whole = if end == rows.start(last + 1) { last + 1 } else { last };
    mover.rows(at, rows, first..whole);
    if whole == last {
        piece(last, rows.start(last), end, mover);
    }
}

fn walk_nest(nest: &Nest, at: i64, skip: u64, take: u64, mover: &mut impl Mover) {
    match &nest.body {
        Body::Rows(all) => rows(at, all, skip, take, mover),
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
