// SPDX-License-Identifier: Apache-2.0
//! Memory that a vendor MPI uses: during a call, or until a request is complete.

use std::mem::ManuallyDrop;
use std::ops::Range;

use isthmus_datatype::raw::{Exposed, ReadMemory, WriteMemory};
use isthmus_transport::native::{General, Kind, UnequalBlocks};

use crate::comm::Comm;

/// A send, receive or collective operation under way. It keeps the memory that the vendor uses; one that is dropped
/// before [`Vendor::test`](crate::Vendor::test) has said that it is complete keeps that for good.
#[derive(Debug)]
#[must_use]
pub struct Request {
    pub(crate) name: u64,
    pub(crate) kept: Kept,
}

/// What an MPI uses until somebody knows that it does no longer, and [says](Self::release) so. Dropped before that, the
/// memory stays for good, and nobody touches it: that MPI may still write there.
#[derive(Debug, Default)]
pub(crate) struct Kept(ManuallyDrop<Used>);

#[derive(Debug, Default)]
#[expect(dead_code, reason = "held only")]
enum Used {
    /// Nothing, or what the user has promised to keep.
    #[default]
    Nothing,
    Read(Exposed<ReadMemory>),
    Written(Exposed<WriteMemory>),
    Operation(Box<Operands>),
}

impl Kept {
    #[inline(always)]
    pub(crate) fn read(memory: Exposed<ReadMemory>) -> Self {
        Self::if_needed(memory.is_library(), || Used::Read(memory))
    }

    #[inline(always)]
    pub(crate) fn written(memory: Exposed<WriteMemory>) -> Self {
        Self::if_needed(memory.is_library(), || Used::Written(memory))
    }

    pub(crate) fn operation(operands: Operands) -> Self {
        Self::if_needed(operands.is_needed(), || Used::Operation(Box::new(operands)))
    }

    #[inline(always)]
    fn if_needed(needed: bool, used: impl FnOnce() -> Used) -> Self {
        Self(ManuallyDrop::new(if needed { used() } else { Used::Nothing }))
    }

    /// Whether there is anything to keep.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        !matches!(*self.0, Used::Nothing)
    }

    /// The MPI has done with it.
    pub(crate) fn release(self) {
        drop(ManuallyDrop::into_inner(self.0));
    }
}

/// What a collective operation uses.
#[derive(Debug)]
pub(crate) struct Operands {
    given: Option<Exposed<ReadMemory>>,
    taken: Option<Exposed<WriteMemory>>,
    rows: [UnequalBlocks; 2],
}

impl Operands {
    /// What an operation uses on a communicator. Panics where it is described for another communicator, or where memory
    /// is shorter than the operation needs: these are bugs of ours.
    pub(crate) fn of(general: &General, comm: &Comm) -> Self {
        assert!(
            (general.rank, general.members) == (comm.rank, comm.members),
            "an operation of another communicator"
        );
        let spans = spans(general);
        // The root of a bcast only reads: others may as well.
        let is_read = general.kind == Kind::Bcast && general.rank == general.root;
        let sent = general.into.as_ref().filter(|_| is_read).map(WriteMemory::reading);
        let (from, given) = match is_read {
            true => (sent.as_ref(), &spans.taken),
            false => (general.from.as_ref(), &spans.given),
        };
        let into = general.into.as_ref().filter(|_| !is_read);
        let taken = if is_read { 0..0 } else { spans.taken.clone() };
        assert!(
            (from.is_some() || given.is_empty()) && (into.is_some() || taken.is_empty()),
            "an operation without its memory"
        );
        let length = |span: &Range<isize>| span.end.abs_diff(span.start);
        // Blocks of the user's may lie anywhere, each with the promise of whoever made it; the memory is that of one.
        let apart = matches!(
            general.kind,
            Kind::Gatherv | Kind::Scatterv | Kind::Allgatherv | Kind::Alltoallv
        );
        let is_one_of_many = |is_of_user: bool, (low, high): (isize, isize)| apart && is_of_user && low < high;
        Self {
            given: from
                .filter(|m| !given.is_empty() && !is_one_of_many(m.is_of_user(), m.window()))
                .map(|m| m.exposed(given.start, length(given))),
            taken: into
                .filter(|m| !taken.is_empty() && !is_one_of_many(m.is_of_user(), m.window()))
                .map(|m| m.exposed(taken.start, length(&taken))),
            rows: [general.given.clone(), general.taken.clone()],
        }
    }

    fn is_needed(&self) -> bool {
        let [given, taken] = &self.rows;
        let rows = [&given.sizes, &given.places, &taken.sizes, &taken.places];
        self.given.as_ref().is_some_and(Exposed::is_library)
            || self.taken.as_ref().is_some_and(Exposed::is_library)
            || rows.into_iter().any(|row| !row.is_empty())
    }
}

/// Bytes that an operation reads and writes, relative to the origins of its memory.
#[derive(Debug, PartialEq, Eq)]
struct Spans {
    given: Range<isize>,
    taken: Range<isize>,
}

fn spans(general: &General) -> Spans {
    let &General {
        kind,
        root,
        rank,
        members,
        in_place,
        count,
        ..
    } = general;
    let (is_root, width) = (
        rank == root,
        general.reduction.map_or(1, |(element, _)| element.width()),
    );
    let blocks = |number: u32| {
        let bytes = count
            .checked_mul(width)
            .and_then(|bytes| bytes.checked_mul(number.into()));
        0..bytes
            .and_then(|bytes| isize::try_from(bytes).ok())
            .expect("blocks beyond all memory")
    };
    let (one, all, nothing) = (blocks(1), blocks(members), 0..0);
    // What is in place is neither read nor written elsewhere.
    let unless_in_place = |span: &Range<isize>| if in_place { 0..0 } else { span.clone() };
    let if_root = |span: Range<isize>| if is_root { span } else { 0..0 };
    let (given, taken) = match kind {
        Kind::Barrier => (nothing.clone(), nothing),
        Kind::Bcast => (nothing, one),
        Kind::Gather => (unless_in_place(&one), if_root(all)),
        Kind::Scatter => (if_root(all), unless_in_place(&one)),
        Kind::Allgather => (unless_in_place(&one), all),
        Kind::Alltoall => (unless_in_place(&all), all),
        Kind::Reduce => (unless_in_place(&one), if_root(one)),
        Kind::Allreduce | Kind::Scan | Kind::Exscan => (unless_in_place(&one), one),
        Kind::ReduceScatterBlock => (unless_in_place(&all), if in_place { all } else { one }),
        Kind::ReduceScatter => {
            let sizes = &general.taken.sizes;
            assert!(sizes.len() == members as usize, "blocks of another number of members");
            let bytes = |elements: i64| elements.checked_mul(width as i64).filter(|bytes| *bytes >= 0);
            let total = sizes.iter().try_fold(0_i64, |sum, size| sum.checked_add(bytes(*size)?));
            let total = 0..total.expect("blocks beyond all memory") as isize;
            let own = 0..bytes(sizes[rank as usize]).unwrap_or(0) as isize;
            (unless_in_place(&total), if in_place { total } else { own })
        }
        // Rows of those who are not the root are read, too, if they have any.
        Kind::Gatherv => (unless_in_place(&one), row(&general.taken, members, is_root)),
        Kind::Scatterv => (row(&general.given, members, is_root), unless_in_place(&one)),
        Kind::Allgatherv => {
            let fits = |number: &i64| i32::try_from(*number).is_ok();
            let UnequalBlocks { sizes, places } = &general.taken;
            assert!(
                sizes.iter().chain(places.iter()).all(fits),
                "blocks that are too far apart"
            );
            (unless_in_place(&one), row(&general.taken, members, true))
        }
        Kind::Alltoallv => (row(&general.given, members, true), row(&general.taken, members, true)),
    };
    Spans { given, taken }
}

/// From the first byte of unequal blocks to the end of the last. Those that are not needed may be missing.
fn row(blocks: &UnequalBlocks, members: u32, needed: bool) -> Range<isize> {
    let UnequalBlocks { sizes, places } = blocks;
    let there = [sizes.len(), places.len()];
    assert!(
        there == [members as usize; 2] || (!needed && there == [0; 2]),
        "blocks of another number of members"
    );
    let mut span: Option<Range<i64>> = None;
    for (&size, &place) in sizes.iter().zip(places.iter()).filter(|(size, _)| **size != 0) {
        let end = place
            .checked_add(size)
            .filter(|_| size > 0)
            .expect("blocks beyond all memory");
        span = Some(span.map_or(place..end, |all| all.start.min(place)..all.end.max(end)));
    }
    span.map_or(0..0, |span| span.start as isize..span.end as isize)
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::raw::OwnMemory;
    use isthmus_transport::native::{Element, Operator};

    use super::*;

    fn general(kind: Kind, rank: u32) -> General {
        General {
            kind,
            root: 1,
            rank,
            members: 4,
            in_place: false,
            from: None,
            into: None,
            count: 10,
            reduction: None,
            given: UnequalBlocks::default(),
            taken: UnequalBlocks::default(),
        }
    }

    fn refused<R>(act: impl FnOnce() -> R) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err()
    }

    #[test]
    fn an_operation_uses_as_much_as_its_function_does() {
        let at = |kind, rank, in_place| {
            let Spans { given, taken } = spans(&General {
                in_place,
                ..general(kind, rank)
            });
            assert_eq!((given.start, taken.start), (0, 0));
            (given.end, taken.end)
        };
        assert_eq!(at(Kind::Barrier, 0, false), (0, 0));
        assert_eq!(at(Kind::Bcast, 0, false), (0, 10));
        assert_eq!(
            [at(Kind::Gather, 0, false), at(Kind::Gather, 1, false)],
            [(10, 0), (10, 40)]
        );
        assert_eq!(
            [at(Kind::Scatter, 0, false), at(Kind::Scatter, 1, true)],
            [(0, 10), (40, 0)]
        );
        assert_eq!(
            [at(Kind::Allgather, 0, false), at(Kind::Allgather, 0, true)],
            [(10, 40), (0, 40)]
        );
        assert_eq!(at(Kind::Alltoall, 0, false), (40, 40));

        let reducing = |kind, rank| {
            let reduction = Some((Element::Double, Operator::Sum));
            let mut general = General {
                reduction,
                ..general(kind, rank)
            };
            general.taken.sizes = [1, 2, 3, 4].into();
            let Spans { given, taken } = spans(&general);
            (given.end, taken.end)
        };
        assert_eq!(
            [reducing(Kind::Reduce, 0), reducing(Kind::Reduce, 1)],
            [(80, 0), (80, 80)]
        );
        assert_eq!(reducing(Kind::ReduceScatterBlock, 0), (320, 80));
        assert_eq!(reducing(Kind::ReduceScatter, 2), (80, 24));
    }

    #[test]
    fn unequal_blocks_lie_where_they_are_said_to() {
        let mut unequal = general(Kind::Alltoallv, 0);
        assert!(refused(|| spans(&unequal)), "no rows");
        unequal.given = UnequalBlocks {
            sizes: [3, 0, 5, 1].into(),
            places: [-8, 1 << 40, 16, 0].into(),
        };
        unequal.taken = UnequalBlocks {
            sizes: [0; 4].into(),
            places: [7; 4].into(),
        };
        assert_eq!(
            spans(&unequal),
            Spans {
                given: -8..21,
                taken: 0..0
            }
        );
        unequal.given.places = [0; 3].into();
        assert!(refused(|| spans(&unequal)), "too short");
        unequal.given = UnequalBlocks {
            sizes: [-1; 4].into(),
            places: [0; 4].into(),
        };
        assert!(refused(|| spans(&unequal)), "negative");
        let far = UnequalBlocks {
            sizes: [1; 4].into(),
            places: [1 << 32; 4].into(),
        };
        assert!(refused(|| spans(&General {
            taken: far,
            ..general(Kind::Allgatherv, 0)
        })));
    }

    #[test]
    fn what_is_too_short_or_of_others_is_refused() {
        let comm = Comm {
            name: 2,
            rank: 0,
            members: 4,
        };
        let own = OwnMemory::new(0, 40);
        let with = |bytes: usize| General {
            from: Some(own.reading().part(0, 0)),
            into: Some(own.memory().part(0, bytes)),
            in_place: true,
            ..general(Kind::Allgather, 0)
        };
        assert!(refused(|| Operands::of(&with(39), &comm)));
        assert!(refused(|| Operands::of(&General { into: None, ..with(40) }, &comm)));
        for other in [
            Comm {
                members: 5,
                ..comm.again()
            },
            Comm {
                rank: 1,
                ..comm.again()
            },
        ] {
            assert!(refused(|| Operands::of(&with(40), &other)));
        }
        drop(Operands::of(&with(40), &comm));
    }

    #[test]
    fn blocks_of_the_library_lie_in_the_memory_that_is_given() {
        let comm = Comm {
            name: 2,
            rank: 0,
            members: 4,
        };
        let (own, mut bytes) = (OwnMemory::new(0, 40), [0_u8; 8]);
        let gather = |into: &WriteMemory, far: i64| General {
            in_place: true,
            into: Some(into.clone()),
            taken: UnequalBlocks {
                sizes: [8; 4].into(),
                places: [0, 8, 16, far].into(),
            },
            ..general(Kind::Allgatherv, 0)
        };
        drop(Operands::of(&gather(&own.memory(), 32), &comm));
        assert!(refused(|| Operands::of(&gather(&own.memory(), 33), &comm)));
        assert!(refused(|| Operands::of(&gather(&WriteMemory::EMPTY, 32), &comm)));
        // SAFETY: it is not touched.
        let one = unsafe { WriteMemory::new(bytes.as_mut_ptr(), 0, 8) };
        drop(Operands::of(&gather(&one, 32), &comm));
    }

    #[test]
    fn memory_stays_until_it_is_released_and_nobody_touches_it() {
        let own = OwnMemory::new(0, 40);
        let kept = Kept::written(own.memory().exposed(0, 40));
        assert!(kept.is_there() && refused(|| own.memory().write(0, &[1])));
        kept.release();
        own.memory().write(0, &[1]);
        assert!(own.is_unshared());

        // A request that its owner forgets, or loses.
        _ = Kept::written(own.memory().exposed(0, 40));
        assert!(!own.is_unshared() && refused(|| own.memory().write(0, &[1])));
    }

    #[test]
    fn the_root_of_a_bcast_only_reads() {
        let (own, comm) = (
            OwnMemory::new(0, 10),
            Comm {
                name: 2,
                rank: 1,
                members: 4,
            },
        );
        let bcast = |rank| General {
            into: Some(own.memory()),
            ..general(Kind::Bcast, rank)
        };
        let used = Operands::of(&bcast(1), &comm);
        own.reading().with(0, 10, |_| ());
        assert!(refused(|| own.memory().write(0, &[1])));
        drop(used);
        let used = Operands::of(&bcast(0), &Comm { rank: 0, ..comm });
        assert!(refused(|| own.reading().with(0, 10, |_| ())));
        drop(used);
    }
}
