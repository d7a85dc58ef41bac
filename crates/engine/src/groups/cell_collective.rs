// SPDX-License-Identifier: Apache-2.0
//! Steps that all members of a group take together, in memory that they share: see [`Together`].
//!
//! Long blocks go in pieces, each in a round of its own, or in two for long reductions: in the first everybody gives
//! its contribution, in the second the part of the result that it has computed. A member gives as many pieces ahead as
//! there are free rounds.
//!
//! ```text
//!  given    pieces that this member has given            waits for the round to be free
//!  middle   pieces of which it has computed its part     waits for all contributions (long reductions)
//!  taken    pieces that it has taken                     waits for all
//! ```

use std::ops::Range;
use std::time::{Duration, Instant};

use isthmus_protocol::matching::Context;
use isthmus_protocol::ways::Turn;
use isthmus_schedule::Operation as What;
use isthmus_schedule::step::Together;
use isthmus_transport::slabs::{CellSize, Claim, Given, Giving, Round, SharedSlabs, Slab, Source};

use crate::base::binding::{BoundBuffer, Sides};
pub(crate) use crate::base::mistake::{no_memory, wrong_length};
use crate::groups::barrier;
use crate::groups::cut::{contributors, gives_others, place_among_others};
use crate::groups::data::{Bound, Unequal};
use crate::groups::parts;
use crate::groups::pulling;
use crate::groups::rows::Rows;
use crate::groups::tuning::Sample;
use crate::groups::words::{NO_STEP, SETS_UP};
use crate::groups::{Begin, CellCollective, Cut, Numbers, Phase, Pulling, Whose};
use crate::{EngineError, Members};

/// Looks in vain after which a member that never sleeps asks whether all agree.
pub(crate) const LOOKS: u32 = 4096;

/// Shortest results, bytes, that are worth writing past the caches: a core's own has less, and all have results.
const PAST_CACHES: u64 = 1 << 20;

/// What a step is said to have taken if somebody could not copy: longer than any other way.
const FAILED: Duration = Duration::from_secs(1);

impl std::fmt::Debug for CellCollective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, given, taken, .. } = self;
        write!(f, "{} with {given} pieces given and {taken} taken", what.name())
    }
}

impl CellCollective {
    pub(crate) fn new(
        step: &Together,
        slab: Slab,
        members: Members,
        sides: Sides,
        cut: Cut,
        numbers: Numbers,
        turn: Option<Turn>,
    ) -> Self {
        let block = step.block * sides.unit;
        Self::under_way(
            (step.what, step.root, block),
            slab,
            members,
            sides,
            cut,
            numbers,
            Begin { given: false, turn },
        )
    }

    /// A step that has begun. Operation, root, bytes of a block.
    pub(crate) fn under_way(
        (what, root, block): (What, u32, u64),
        slab: Slab,
        members: Members,
        sides: Sides,
        cut: Cut,
        numbers: Numbers,
        Begin { given, turn }: Begin,
    ) -> Self {
        let Sides {
            give,
            take,
            unit,
            reducer,
            operator,
            ..
        } = sides;
        let phase = match cut.pulls {
            true => Phase::Deciding(Pulling::new(what, &slab, root, numbers.round(CellSize::Short, 0), turn)),
            false => Phase::Cells,
        };
        Self {
            what,
            root,
            slab,
            members,
            node: None,
            context: Context::default(),
            give,
            take,
            block,
            unit,
            reducer,
            operator,
            cut,
            phase,
            past: false,
            timed: None,
            failed: false,
            late: Vec::new(),
            beside: None,
            numbers,
            vain: 0,
            disagrees: false,
            given: u64::from(given),
            middle: 0,
            taken: 0,
            seen: [(u64::MAX, 0); 2],
            mistake: None,
            called: None,
            reported: None,
            whose: Whose::Program,
        }
    }

    /// An operation of blocks that may differ in length.
    pub(crate) fn of_rows(
        step: Unequal,
        rows: Rows<Bound>,
        slab: Slab,
        members: Members,
        cut: Cut,
        numbers: Numbers,
    ) -> Self {
        let (what, begin) = ((step.what, step.root, 0), Begin::default());
        let meet = Self::under_way(what, slab, members, Sides::default(), cut, numbers, begin);
        Self {
            phase: Phase::Rows(Box::new(rows)),
            ..meet
        }
    }

    /// Bytes of a result that can be written past the caches.
    pub(crate) fn long_result(&self) -> Option<u64> {
        let blocks = match self.what {
            What::Gather | What::Allgather | What::Alltoall => u64::from(self.slab.members),
            _ => 1,
        };
        let bytes = self.block.saturating_mul(blocks);
        (bytes >= PAST_CACHES).then_some(bytes)
    }

    /// How long the step takes is to be found out.
    pub(crate) fn begin_timing(&mut self, sample: Sample) {
        self.timed = Some((Instant::now(), sample));
    }

    /// What was to be found out, when the step is over, and how many nanoseconds it took.
    pub(crate) fn sample(&mut self) -> Option<(Sample, u64)> {
        let (since, sample) = self.timed.take()?;
        let time = if self.failed { FAILED } else { since.elapsed() };
        Some((sample, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The cell, of those that this member takes, whose mark says that results are stored past the caches: one that the
    /// decider gives.
    fn telling(&self) -> u32 {
        match self.what {
            What::Scatter => self.slab.me,
            What::Reduce => self.root,
            _ => 0,
        }
    }

    /// Says in a cell that this member gives how results are stored, if it decides that.
    fn mark(&self, slabs: &mut dyn SharedSlabs, round: Round, cell: u32) {
        if self.past {
            slabs.mark(&self.slab, round, cell);
        }
    }

    /// Where this member sleeps while it waits.
    pub(crate) fn slab(&self) -> &Slab {
        &self.slab
    }

    /// The rank in the group of a member at the place.
    pub(crate) fn rank_of(&self, member: u32) -> u32 {
        let ranks = self.node.as_ref().map(|node| &node.ranks);
        ranks
            .and_then(|ranks| ranks.get(member as usize))
            .map_or(member, |&rank| rank)
    }

    /// What this member takes the step for.
    pub(crate) fn claim(&self) -> Claim {
        let (root, block) = match self.whose {
            Whose::Library => (SETS_UP, NO_STEP),
            Whose::Program => (self.root, self.block),
        };
        Claim {
            what: self.what as u8,
            root,
            operator: self.operator,
            block,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        match self.phase {
            Phase::Cells => self.is_through_cells(),
            Phase::Deciding(_) => false,
            Phase::Leaving(left) => left == self.cut.long_rounds(),
            Phase::Rows(ref rows) => rows.is_over(),
        }
    }

    pub(crate) fn is_through_cells(&self) -> bool {
        let done = |count| count == self.cut.pieces;
        (done(self.given) || !self.gives()) && done(self.taken)
    }

    /// Whether anything can be done now.
    pub(crate) fn can_advance(&mut self, slabs: &mut dyn SharedSlabs) -> bool {
        match &self.phase {
            Phase::Cells => self.can_use_cells(slabs),
            Phase::Deciding(_) => pulling::can_decide(self, slabs),
            // What keeps it is an earlier step of this process.
            Phase::Leaving(_) => false,
            Phase::Rows(rows) => rows.can_advance(slabs, &self.slab),
        }
    }

    pub(crate) fn can_use_cells(&mut self, slabs: &mut dyn SharedSlabs) -> bool {
        self.may_give(slabs) || self.may_combine(slabs) || self.may_take(slabs)
    }

    /// Does what can be done without waiting; true if anything was.
    pub(crate) fn advance(&mut self, slabs: &mut dyn SharedSlabs) -> Result<bool, EngineError> {
        let mut any = false;
        if matches!(self.phase, Phase::Deciding(_)) {
            if let Phase::Deciding(pulling) = std::mem::replace(&mut self.phase, Phase::Cells) {
                (self.phase, any) = pulling::decide(self, pulling, slabs)?;
            }
        }
        Ok(match &mut self.phase {
            Phase::Cells => self.through_cells(slabs)? || any,
            Phase::Deciding(_) => any,
            Phase::Rows(rows) => rows.advance(slabs, &self.slab, &mut self.mistake)?,
            &mut Phase::Leaving(before) => {
                let left = pulling::leave_rest(self, slabs, before);
                self.phase = Phase::Leaving(left);
                any || left > before
            }
        })
    }

    pub(crate) fn through_cells(&mut self, slabs: &mut dyn SharedSlabs) -> Result<bool, EngineError> {
        let mut any = false;
        loop {
            let mut moved = false;
            if self.may_give(slabs) {
                self.give_piece(slabs)?;
                moved = true;
            }
            if self.may_combine(slabs) {
                self.combine_piece(slabs)?;
                moved = true;
            }
            if self.may_take(slabs) {
                self.take_piece(slabs)?;
                moved = true;
            }
            if !moved {
                return Ok(any);
            }
            any = true;
        }
    }

    /// Whether one member alone gives.
    fn one_gives(&self) -> bool {
        matches!(self.what, What::Bcast | What::Scatter)
    }

    fn gives(&self) -> bool {
        match self.what {
            What::Bcast | What::Scatter => self.slab.me == self.root,
            // Its root gives itself its own block.
            What::Gather => self.slab.me != self.root,
            _ => true,
        }
    }

    /// Whether this member waits for what others give. (The root of a scatter gives itself its own block.)
    fn takes(&self) -> bool {
        match self.what {
            What::Barrier => true,
            What::Scatter => self.slab.me != self.root,
            _ => self.take.is_some(),
        }
    }

    /// The round of a piece: contributions, or (`result`) what was computed of them.
    pub(super) fn round(&self, piece: u64, result: bool) -> Round {
        let number = if self.cut.twice {
            2 * piece + u64::from(result)
        } else {
            piece
        };
        self.numbers.round(self.cut.size, number)
    }

    /// The round of long cells behind so many others of the step.
    pub(crate) fn long_round(&self, before: u64) -> Round {
        self.numbers.round(CellSize::Long, before)
    }

    /// Where a piece begins in its block, and its length.
    pub(super) fn range(&self, piece: u64) -> (u64, u64) {
        let from = piece * self.cut.piece;
        (from, self.cut.piece.min(self.block - from))
    }

    fn may_give(&mut self, slabs: &mut dyn SharedSlabs) -> bool {
        if self.given == self.cut.pieces || !self.gives() {
            return false;
        }
        let round = self.round(self.given, false);
        barrier::may_come(self, slabs, round) && slabs.is_free(&self.slab, round)
    }

    fn may_combine(&mut self, slabs: &mut dyn SharedSlabs) -> bool {
        self.cut.twice
            && self.middle < self.given
            && self.all_arrived(slabs, self.round(self.middle, false), 0)
            && slabs.is_free(&self.slab, self.round(self.middle, true))
    }

    /// Whether all contributors have arrived in a round. Those that had when this was last asked (for the same of both
    /// ends) are not looked at.
    fn all_arrived(&mut self, slabs: &dyn SharedSlabs, round: Round, end: usize) -> bool {
        let last = contributors(self.what, &self.slab).end;
        let (number, mut seen) = self.seen[end];
        if number != round.number {
            seen = 0;
        }
        while seen < last {
            if parts::is_there(self, seen) {
                seen += 1;
                continue;
            }
            let next = (seen..last)
                .find(|&member| parts::is_there(self, member))
                .unwrap_or(last);
            seen += slabs.have_arrived(&self.slab, round, seen..next);
            if seen < next {
                break;
            }
        }
        self.seen[end] = (round.number, seen);
        seen == last
    }

    fn may_take(&mut self, slabs: &dyn SharedSlabs) -> bool {
        let ready = match (self.gives(), self.cut.twice) {
            (_, true) => self.middle,
            (true, false) => self.given,
            (false, false) => self.cut.pieces,
        };
        if self.taken >= ready {
            return false;
        }
        let round = self.round(self.taken, true);
        if !self.takes() {
            true
        } else if self.one_gives() {
            let cell = if self.what == What::Scatter { self.slab.me } else { 0 };
            slabs.have_arrived(&self.slab, round, cell..cell + 1) == 1
        } else {
            self.all_arrived(slabs, round, 1)
        }
    }

    fn give_piece(&mut self, slabs: &mut dyn SharedSlabs) -> Result<(), EngineError> {
        let (from, length) = self.range(self.given);
        let (round, me, members) = (self.round(self.given, false), self.slab.me, self.slab.members);
        let slab = self.slab;
        if let Some((buffer, at)) = &self.give {
            let bytes = length as usize;
            let copy = |from: u64, cell: &mut Giving<'_>, to: usize| {
                cell.with_mut(to as isize, bytes, |cell| buffer.read(at + from, cell))
            };
            match self.what {
                What::Bcast => {
                    let mut cell = slabs.give(&slab, round, 0, bytes).map_err(no_memory)?;
                    copy(from, &mut cell, 0);
                    self.mark(slabs, round, 0);
                }
                What::Scatter => {
                    for member in (0..members).filter(|&member| member != me) {
                        let mut cell = slabs.give(&slab, round, member, bytes).map_err(no_memory)?;
                        copy(u64::from(member) * self.block + from, &mut cell, 0);
                        self.mark(slabs, round, member);
                    }
                    parts::keep_own(self, u64::from(me) * self.block, 0, from..from + length);
                }
                what if gives_others(what) => {
                    let all = bytes * (members as usize - 1);
                    let mut cell = slabs.give(&slab, round, me, all).map_err(no_memory)?;
                    for member in (0..members).filter(|&member| member != me) {
                        let source = u64::from(member) * self.block + from;
                        copy(source, &mut cell, place_among_others(member, me) as usize * bytes);
                    }
                    self.mark(slabs, round, me);
                }
                _ => {
                    let mut cell = slabs.give(&slab, round, me, bytes).map_err(no_memory)?;
                    copy(from, &mut cell, 0);
                    self.mark(slabs, round, me);
                }
            }
        }
        self.given += 1;
        match self.what {
            What::Bcast => slabs.arrive(&slab, round, 0..1),
            What::Scatter => {
                slabs.arrive(&slab, round, 0..me);
                slabs.arrive(&slab, round, me + 1..members);
            }
            _ => slabs.arrive(&slab, round, me..me + 1),
        }
        Ok(())
    }

    /// The part of a piece of so many bytes that a member computes: first byte and length.
    fn share(&self, member: u32, length: u64) -> (u64, u64) {
        let elements = length / self.unit;
        let start = |member: u32| elements * u64::from(member) / u64::from(self.slab.members) * self.unit;
        (start(member), start(member + 1) - start(member))
    }

    fn combine_piece(&mut self, slabs: &mut dyn SharedSlabs) -> Result<(), EngineError> {
        let (_, length) = self.range(self.middle);
        let (from, to) = (self.round(self.middle, false), self.round(self.middle, true));
        let (slab, (at, bytes)) = (self.slab, self.share(self.slab.me, length));
        let (source, mut cell) = slabs
            .give_from(&slab, from, to, slab.me, bytes as usize)
            .map_err(no_memory)?;
        cell.with_mut(0, bytes as usize, |result| {
            self.combine(&source, length, (at, bytes), result)
        })?;
        self.mark(slabs, to, slab.me);
        self.middle += 1;
        slabs.leave(&slab, from);
        slabs.arrive(&slab, to, slab.me..slab.me + 1);
        Ok(())
    }

    /// Combines bytes `at .. at + bytes` of all contributions to a piece of `length` bytes.
    fn combine(
        &mut self,
        source: &Source<'_>,
        length: u64,
        (at, bytes): (u64, u64),
        result: &mut [u8],
    ) -> Result<(), EngineError> {
        if bytes == 0 {
            return Ok(());
        }
        let Some(reducer) = self.reducer.clone() else {
            return Err(EngineError::Plan {
                what: "a reduction in an operation that only moves data",
            });
        };
        for member in contributors(self.what, &self.slab) {
            let Some(cell) = self.expected(source, member, length) else {
                continue;
            };
            if member == 0 {
                cell.read(at as isize, result);
            } else {
                let elements = bytes / self.unit;
                cell.with(at as isize, bytes as usize, |operand| {
                    reducer(operand, result, elements, false)
                });
            }
        }
        Ok(())
    }

    /// What a member has given, if it is as long as it must be.
    pub(super) fn expected<'a>(&mut self, source: &Source<'a>, member: u32, length: u64) -> Option<Given<'a>> {
        let (given, said) = source.given(member, length as usize);
        if said == length {
            return Some(given);
        }
        let member = self.rank_of(member);
        self.mistake.get_or_insert_with(|| wrong_length(member, said, length));
        None
    }

    fn take_piece(&mut self, slabs: &mut dyn SharedSlabs) -> Result<(), EngineError> {
        let piece = self.taken;
        let (from, length) = self.range(piece);
        let (round, slab) = (self.round(piece, true), self.slab);
        if let Some((buffer, at)) = self.take.clone().filter(|_| self.takes()) {
            let source = Source::new(slabs, slab, round);
            let at = at + from;
            let past = match self.what {
                // Who takes decides.
                What::Gather => self.past,
                _ => self.long_result().is_some() && slabs.is_marked(&slab, round, self.telling()),
            };
            match self.what {
                what if what.reduces() && !self.cut.twice => {
                    let outside = EngineError::Plan {
                        what: "a reduction whose result does not lie in one piece",
                    };
                    let mut memory = buffer.whole(at, length).ok_or(outside)?;
                    if what == What::ReduceScatterBlock {
                        parts::combine(self, &source, piece, &mut memory)?;
                    } else {
                        memory.with_mut(0, length as usize, |result| {
                            self.combine(&source, length, (0, length), result)
                        })?;
                    }
                }
                What::Reduce | What::Allreduce => {
                    for member in 0..slab.members {
                        let (start, bytes) = self.share(member, length);
                        if let Some(cell) = self.expected(&source, member, bytes) {
                            put(&buffer, at + start, &cell, 0..bytes, past);
                        }
                    }
                }
                What::Gather | What::Allgather => {
                    for member in 0..slab.members {
                        if parts::is_there(self, member) {
                            continue;
                        }
                        if let Some(cell) = self.expected(&source, member, length) {
                            let at = at + u64::from(member) * self.block;
                            put(&buffer, at, &cell, 0..length, past);
                        }
                    }
                    if self.what == What::Gather {
                        parts::keep_own(self, 0, u64::from(slab.me) * self.block, from..from + length);
                    }
                }
                What::Alltoall => {
                    let all = length * u64::from(slab.members - 1);
                    for member in (0..slab.members).filter(|&member| member != slab.me) {
                        if let Some(cell) = self.expected(&source, member, all) {
                            let at = at + u64::from(member) * self.block;
                            let mine = u64::from(place_among_others(slab.me, member)) * length;
                            put(&buffer, at, &cell, mine..mine + length, past);
                        }
                    }
                    let own = u64::from(slab.me) * self.block;
                    parts::keep_own(self, own, own, from..from + length);
                }
                _ => {
                    let cell = if self.what == What::Scatter { slab.me } else { 0 };
                    if let Some(cell) = self.expected(&source, cell, length) {
                        put(&buffer, at, &cell, 0..length, past);
                    }
                }
            }
        }
        self.taken += 1;
        slabs.leave(&slab, round);
        Ok(())
    }
}

/// Puts a part of the result, these bytes of what was given, in its place.
fn put(buffer: &BoundBuffer, at: u64, given: &Given<'_>, bytes: Range<u64>, past: bool) {
    given.with(
        bytes.start as isize,
        (bytes.end - bytes.start) as usize,
        |data| match past {
            true => buffer.write_past_caches(at, data),
            false => buffer.write(at, data),
        },
    );
}
