// SPDX-License-Identifier: Apache-2.0
//! In which order the data of a datatype lie in memory. That follows from its description: a vector of 2^24 blocks
//! costs as much as one of two.

use crate::Datatype;
use crate::layout::{Body, Layout, Nest, Placed, Rows};

/// How the runs of a datatype follow each other, in the order of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Least offset of a byte from the origin.
    pub least: i64,
    /// No run begins before the one in front of it.
    pub rises: bool,
    /// Each run begins where all in front of it have ended, or behind that: no byte is there twice.
    pub apart: bool,
    /// Where the first run and the last one begin.
    first: i64,
    last: i64,
    /// Behind the last byte.
    end: i64,
}

impl Course {
    /// How the runs of a datatype follow each other; `None`: it has no data.
    pub fn of(datatype: &Datatype) -> Option<Self> {
        datatype.layout().and_then(of_placed)
    }

    fn run(at: i64, length: u64) -> Self {
        Self {
            least: at,
            rises: true,
            apart: true,
            first: at,
            last: at,
            end: at.saturating_add_unsigned(length),
        }
    }

    fn moved(self, by: i64) -> Self {
        Self {
            least: self.least.saturating_add(by),
            first: self.first.saturating_add(by),
            last: self.last.saturating_add(by),
            end: self.end.saturating_add(by),
            ..self
        }
    }

    /// That, and behind it in the stream the other.
    fn then(self, next: Self) -> Self {
        Self {
            least: self.least.min(next.least),
            rises: self.rises && next.rises && next.first >= self.last,
            // What is apart begins with its least byte.
            apart: self.apart && next.apart && next.first >= self.end,
            first: self.first,
            last: next.last,
            end: self.end.max(next.end),
        }
    }

    /// That again and again. From one to the next everything is as from the first to the second.
    fn times(self, count: u64, stride: i64) -> Self {
        if count < 2 {
            return self;
        }
        let steps = i64::try_from(count - 1).unwrap_or(i64::MAX);
        let two = self.then(self.moved(stride));
        let last = self.moved(steps.saturating_mul(stride));
        Self {
            least: self.least.min(last.least),
            last: last.last,
            end: self.end.max(last.end),
            ..two
        }
    }
}

fn of_placed(placed: &Placed) -> Option<Course> {
    of_layout(&placed.layout).map(|course| course.moved(placed.offset))
}

fn of_layout(layout: &Layout) -> Option<Course> {
    match layout {
        Layout::Run { length } => Some(Course::run(0, *length)),
        Layout::Strided { count, stride, length } => Some(Course::run(0, *length).times(*count, *stride)),
        Layout::Repeat { count, stride, nest } => of_nest(nest).map(|course| course.times(*count, *stride)),
    }
}

fn of_nest(nest: &Nest) -> Option<Course> {
    match &nest.body {
        Body::Rows(rows) => of_rows(rows),
        Body::Sequence(parts) => {
            let parts = parts.iter().filter_map(|part| of_placed(&part.placed));
            parts.reduce(Course::then)
        }
    }
}

fn of_rows(rows: &Rows) -> Option<Course> {
    let runs = rows.offsets.iter().enumerate();
    let runs = runs.map(|(i, offset)| Course::run(*offset, rows.start(i + 1) - rows.start(i)));
    runs.reduce(Course::then)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Course;
    use crate::{Basic, Datatype};

    /// Least offset, whether it rises, whether it is apart: run by run.
    fn told(datatype: &Datatype) -> (i64, bool, bool) {
        let (mut least, mut start, mut end) = (i64::MAX, i64::MIN, i64::MIN);
        let (mut rises, mut apart) = (true, true);
        datatype.runs(0, datatype.size(), &mut |at, length| {
            rises &= at >= start;
            apart &= at >= end;
            (least, start, end) = (least.min(at), at, end.max(at + length as i64));
        });
        (least, rises, apart)
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_runs(
            blocks in prop::collection::vec((0_i64..4, -6_i64..12), 1..5),
            count in 1_i64..5,
            stride in -9_i64..20,
            again in 1_i64..4,
            step in -40_i64..90,
        ) {
            let (lengths, offsets): (Vec<i64>, Vec<i64>) = blocks.into_iter().unzip();
            let byte = Datatype::of(Basic::Byte);
            let one = Datatype::hindexed(&lengths, &offsets, &byte).unwrap();
            let rows = Datatype::hvector(count, 1, stride, &one).unwrap();
            let all = Datatype::hvector(again, 1, step, &rows).unwrap();
            match Course::of(&all) {
                Some(course) => prop_assert_eq!((course.least, course.rises, course.apart), told(&all)),
                None => prop_assert_eq!(all.size(), 0),
            }
        }
    }
}
