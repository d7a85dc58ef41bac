// SPDX-License-Identifier: Apache-2.0
//! Blocking operations in shared memory whose blocks fit into one cell that is not a long one: one round, and neither
//! plan nor binding nor, if the others come while this process polls, a request. What most collective operations of a
//! node are; all others take [`CellCollective`].

use std::ops::Range;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{CellSize, Claim, Given, Part, Round, SharedSlabs, Slab};

use crate::base::binding::{BoundBuffer, Reducer, Sides};
use crate::base::block::Block;
use crate::groups::barrier;
use crate::groups::cell_collective;
use crate::groups::cut::{contributors, gives_others, place_among_others};
use crate::groups::state::Groups;
use crate::groups::words::{NO_STEP, SETS_UP};
use crate::groups::{Begin, CellCollective, Cut, Numbers, Whose};
use crate::p2p::Core;
use crate::{Channel, EngineError, Operation, Request};

/// An operation of contiguous blocks.
pub struct Short {
    /// Barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall, scan, exscan or reduce_scatter_block.
    pub what: What,
    /// The root, or 0.
    pub root: u32,
    /// Bytes of a block.
    pub block: u64,
    /// What this member gives: its block, or (scatter, alltoall, reduce_scatter_block) one for each member.
    pub give: Option<ReadMemory>,
    /// Where the result goes: a block or one of each member.
    pub take: Option<WriteMemory>,
    /// Of reductions: the operation, which the library computes, and bytes of an element.
    /// Then a number for what it computes, the same at all members, below 32; 0: there is none.
    pub reducer: Option<(Reducer, u64, u8)>,
}

impl Short {
    /// Whether it computes.
    #[inline(always)]
    pub fn reduces(&self) -> bool {
        self.what.reduces()
    }

    fn operator(&self) -> u8 {
        self.reducer.as_ref().map_or(0, |(.., operator)| *operator)
    }

    fn unit(&self) -> u64 {
        self.reducer.as_ref().map_or(1, |(_, unit, _)| *unit)
    }

    /// Bytes in the cell of a member that gives, which cell that is, and the cells that this member waits for.
    fn given(&self, slab: &Slab) -> (usize, u32, Range<u32>) {
        let (block, me) = (self.block as usize, slab.me);
        match self.what {
            What::Bcast => (block, 0, 0..1),
            What::Scatter => (block, me, me..me + 1),
            what if gives_others(what) => (block * (slab.members as usize - 1), me, 0..slab.members),
            _ => (block, me, contributors(self.what, slab)),
        }
    }

    #[inline]
    fn claim(&self, whose: Whose) -> Claim {
        let (root, block) = match whose {
            Whose::Library => (SETS_UP, NO_STEP),
            Whose::Program => (self.root, self.block),
        };
        Claim {
            what: self.what as u8,
            root,
            operator: self.operator(),
            block,
        }
    }

    fn gives(&self, slab: &Slab) -> bool {
        match self.what {
            What::Bcast | What::Scatter => slab.me == self.root,
            // Nobody else takes what its root has.
            What::Gather | What::Reduce => slab.me != self.root,
            _ => true,
        }
    }

    /// Whether a member takes what it gives itself out of its own buffer: then its cell is for the others alone.
    #[inline]
    fn has_own(&self) -> bool {
        !matches!(self.what, What::Bcast | What::Scatter | What::Barrier)
    }

    /// Whether what comes is moved to its place as it comes.
    #[inline]
    fn moves(&self) -> bool {
        self.reducer.is_none() && self.take.is_some()
    }

    /// Where the block for a member begins that another gives, in the cell of that or in its own buffer.
    #[inline]
    fn block_in(&self, cell: u32, slab: &Slab) -> usize {
        let number = match gives_others(self.what) {
            false => return 0,
            true if cell == slab.me => cell,
            true => place_among_others(slab.me, cell),
        };
        number as usize * self.block as usize
    }

    /// Gives what it gives, if that is possible now; who waits for nothing has left the round then.
    #[inline]
    fn give(
        &self,
        slabs: &mut dyn SharedSlabs,
        slab: &Slab,
        round: Round,
        cell: u32,
        bytes: usize,
    ) -> Result<bool, EngineError> {
        let leaves = !self.waits(slab);
        // What goes into the cell: all that is given, or what is before the own block and behind it.
        let (first, rest) = match &self.give {
            Some(all) if gives_others(self.what) => {
                let own = slab.me as usize * self.block as usize;
                (own, Some(all.shifted((own + self.block as usize) as isize)))
            }
            _ => (bytes, None),
        };
        if self.what == What::Scatter && round.size != CellSize::Middle {
            return Ok(self.give_each_at_once(slabs, slab, round));
        }
        let in_one_go = round.size != CellSize::Middle;
        if in_one_go && (first == 0 || first == bytes) {
            let memory = if first < bytes {
                rest.as_ref()
            } else {
                self.give.as_ref()
            };
            return Ok(slabs.give_at_once(slab, round, cell, memory, bytes, leaves));
        }
        if !slabs.is_free(slab, round) {
            return Ok(false);
        }
        if self.what == What::Scatter {
            self.give_each(slabs, slab, round)?;
        } else if let Some(all) = &self.give {
            let mut to = slabs
                .give(slab, round, cell, bytes)
                .map_err(cell_collective::no_memory)?;
            to.copy(0, all, 0, first);
            if let Some(rest) = &rest {
                to.copy(first as isize, rest, 0, bytes - first);
            }
            slabs.arrive(slab, round, cell..cell + 1);
        } else {
            slabs.arrive(slab, round, cell..cell + 1);
        }
        if leaves {
            slabs.leave(slab, round);
        }
        Ok(true)
    }

    /// Gives a block in the cell of each other member, and itself its own, and leaves the round: the root of a scatter.
    #[inline]
    fn give_each_at_once(&self, slabs: &mut dyn SharedSlabs, slab: &Slab, round: Round) -> bool {
        let bytes = self.block as usize;
        let at = |member: u32| member as isize * bytes as isize;
        let Some(all) = &self.give else { return true };
        if !slabs.give_each_at_once(slab, round, &mut |member| all.part(at(member), bytes)) {
            return false;
        }
        // The others come first, who wait.
        if let Some(take) = &self.take {
            take.clone().copy(0, all, at(slab.me), bytes);
        }
        true
    }

    /// The same in middle cells, without leaving.
    fn give_each(&self, slabs: &mut dyn SharedSlabs, slab: &Slab, round: Round) -> Result<(), EngineError> {
        let (bytes, me) = (self.block as usize, slab.me);
        let at = |member: u32| member as isize * bytes as isize;
        let Some(all) = &self.give else { return Ok(()) };
        for member in (0..slab.members).filter(|&member| member != me) {
            let mut cell = slabs
                .give(slab, round, member, bytes)
                .map_err(cell_collective::no_memory)?;
            cell.copy(0, all, at(member), bytes);
        }
        slabs.arrive(slab, round, 0..me);
        slabs.arrive(slab, round, me + 1..slab.members);
        if let Some(take) = &self.take {
            take.clone().copy(0, all, at(me), bytes);
        }
        Ok(())
    }

    fn waits(&self, slab: &Slab) -> bool {
        match self.what {
            What::Barrier => true,
            // Its root has its block itself.
            What::Scatter => slab.me != self.root,
            _ => self.take.is_some(),
        }
    }

    /// Moves what a member gives, in a cell of so many bytes, to its place. How many that member said; `None`: it has
    /// not come.
    #[inline]
    fn move_one(&self, slabs: &dyn SharedSlabs, slab: &Slab, round: Round, bytes: usize, cell: u32) -> Option<u64> {
        let (block, from) = (self.block as usize, self.block_in(cell, slab));
        // One block, or where that of each goes.
        let at = match self.what {
            What::Alltoall | What::Gather | What::Allgather => cell as usize * block,
            _ => 0,
        };
        let mut memory = self.take.clone()?;
        if let Some(own) = self.give.as_ref().filter(|_| cell == slab.me && self.has_own()) {
            memory.copy(at as isize, own, from as isize, block);
            return Some(bytes as u64);
        }
        let part = Part {
            from,
            length: block,
            into: &mut memory,
            at,
        };
        slabs.take_at_once(slab, round, cell, bytes, part)
    }

    /// Everything that is waited for has arrived: computes with what these cells have, so many bytes each.
    #[inline]
    fn compute(&self, slabs: &dyn SharedSlabs, slab: &Slab, round: Round, bytes: usize, cells: Range<u32>) -> Taken {
        let (Some(memory), Some((reducer, unit, _))) = (&self.take, &self.reducer) else {
            return Ok(());
        };
        let (mut memory, block) = (memory.clone(), self.block as usize);
        let mut mistake = None;
        // What this member takes of a cell, and where in it that is.
        let mut given = |cell: u32| {
            let place = self.block_in(cell, slab) as isize;
            if let Some(own) = self.give.as_ref().filter(|_| cell == slab.me && self.has_own()) {
                return Some((Given::new(own.clone()), place));
            }
            let (data, said) = slabs.given(slab, round, cell, bytes);
            if said == bytes as u64 {
                return Some((data, place));
            }
            mistake.get_or_insert_with(|| cell_collective::wrong_length(cell, said, bytes as u64));
            None
        };
        // A division of 64 bits takes as long as all else here.
        let elements = match *unit {
            8 => self.block / 8,
            unit => self.block / unit,
        };
        let mut rest = cells;
        // The first one is copied: in place it may be where the result comes.
        if rest.start == 0 {
            if let Some((data, from)) = rest.next().and_then(&mut given) {
                data.copy_to(from, &mut memory, 0, block);
            }
        }
        memory.with_mut(0, block, |result| {
            for cell in rest {
                if let Some((data, from)) = given(cell) {
                    data.with(from, block, |data| reducer(data, result, elements, false));
                }
            }
        });
        mistake.map_or(Ok(()), Err)
    }

    /// The buffers of the same operation as one that goes on.
    fn sides(&self, slab: &Slab) -> Sides {
        let blocks = |all: bool| if all { u64::from(slab.members) } else { 1 };
        let all_give = matches!(self.what, What::Scatter | What::Alltoall | What::ReduceScatterBlock);
        let all_take = matches!(self.what, What::Gather | What::Allgather | What::Alltoall);
        let unit = self.unit();
        let give = self
            .give
            .clone()
            .map(|memory| Block::plain(memory, None, self.block * blocks(all_give)));
        let take = self
            .take
            .clone()
            .map(|memory| Block::plain(memory.reading(), Some(memory), self.block * blocks(all_take)));
        Sides {
            give: give.map(|block| (BoundBuffer::one(block), 0)),
            take: take.map(|block| (BoundBuffer::one(block), 0)),
            unit,
            reducer: self.reducer.as_ref().map(|(reducer, ..)| reducer.clone()),
            operator: self.operator(),
            computes: None,
        }
    }
}

/// An error: a member has given another length.
type Taken = Result<(), EngineError>;

/// A member in the only round of an operation.
struct Visit<'a> {
    short: &'a Short,
    slab: &'a Slab,
    /// Number of the step, and its round.
    step: u64,
    round: Round,
    /// It gives when all others have.
    comes_last: bool,
    /// It gives something, and has.
    gives: bool,
    given: bool,
    waits: bool,
    /// Bytes of what it gives, in which cell, and the cells that it waits for.
    bytes: usize,
    cell: u32,
    cells: Range<u32>,
    /// Of those the first that is not known to be there; of what is moved, that has not been.
    seen: u32,
    /// A member has given another length.
    mistake: Option<EngineError>,
}

impl<'a> Visit<'a> {
    // (Each of these has one caller, which then keeps what is asked here in registers.)
    #[inline(always)]
    fn new(short: &'a Short, slab: &'a Slab, (step, round): (u64, Round), comes_last: bool) -> Self {
        let (bytes, cell, cells) = short.given(slab);
        Self {
            short,
            slab,
            step,
            round,
            comes_last,
            gives: short.gives(slab),
            given: false,
            waits: short.waits(slab),
            bytes,
            cell,
            // Who comes last is the first one.
            seen: cells.start + u32::from(comes_last),
            cells,
            mistake: None,
        }
    }

    /// Does what can be done without waiting. True: everything that it waits for has arrived.
    #[inline(always)]
    fn advance(&mut self, slabs: &mut dyn SharedSlabs) -> Result<bool, EngineError> {
        if self.gives && !self.given {
            if self.comes_last && !self.have_come(slabs) {
                return Ok(false);
            }
            self.given = self.short.give(slabs, self.slab, self.round, self.cell, self.bytes)?;
            if !self.given {
                return Ok(false);
            }
        }
        Ok(!self.waits
            || match self.short.moves() {
                true => self.move_what_came(slabs),
                false => self.have_come(slabs),
            })
    }

    #[inline]
    fn have_come(&mut self, slabs: &dyn SharedSlabs) -> bool {
        while self.seen < self.cells.end {
            let (me, end) = (self.slab.me, self.cells.end);
            if self.seen == me && self.short.has_own() {
                self.seen += 1;
                continue;
            }
            let end = if self.seen < me { end.min(me) } else { end };
            self.seen += slabs.have_arrived(self.slab, self.round, self.seen..end);
            if self.seen < end {
                return false;
            }
        }
        true
    }

    /// True: all have come.
    #[inline]
    fn move_what_came(&mut self, slabs: &dyn SharedSlabs) -> bool {
        let (short, bytes) = (self.short, self.bytes as u64);
        while self.seen < self.cells.end {
            let cell = self.seen;
            let Some(said) = short.move_one(slabs, self.slab, self.round, self.bytes, cell) else {
                return false;
            };
            if said != bytes {
                let wrong = || cell_collective::wrong_length(cell, said, bytes);
                self.mistake.get_or_insert_with(wrong);
            }
            self.seen += 1;
        }
        true
    }

    /// What it has given was everything, and it has left the round with that.
    #[inline]
    fn leaves_at_once(&self) -> bool {
        self.gives && !self.waits
    }

    /// Everything that it waits for has arrived: takes what has not been moved, and leaves the round.
    #[inline(always)]
    fn end(&mut self, slabs: &mut dyn SharedSlabs) -> Taken {
        let cells = self.cells.clone();
        let taken = match self.mistake.take() {
            None => self.short.compute(slabs, self.slab, self.round, self.bytes, cells),
            Some(mistake) => Err(mistake),
        };
        slabs.leave(self.slab, self.round);
        taken
    }

    /// The same as a step that goes on in the general way.
    #[cold]
    fn under_way(&self, channel: &Channel, whose: Whose) -> CellCollective {
        let (short, size) = (self.short, self.round.size);
        let mut first = [0; CellSize::COUNT];
        first[size as usize] = self.round.number;
        let numbers = Numbers {
            step: self.step,
            first,
            stamp: self.round.stamp,
        };
        let begin = Begin {
            given: self.given,
            turn: None,
        };
        let mut meet = CellCollective::under_way(
            (short.what, short.root, short.block),
            *self.slab,
            channel.members.clone(),
            short.sides(self.slab),
            Cut::of_one_round(size, short.block),
            numbers,
            begin,
        );
        meet.context = channel.context;
        meet.past = self.comes_last;
        meet.whose = whose;
        meet
    }
}

impl Groups {
    /// Does it, looking for the others as often as `pause` allows, which is called between two looks; what is not over
    /// then has a request. `None`: it is not one for this way, and nothing was done. On a communicator of a machine's
    /// own MPI the other way is that MPI's, and all members must go the same: there nothing decides that only this
    /// process knows, and those who watch are told here (their end is the caller's to tell).
    pub(crate) fn short(
        &mut self,
        core: &mut Core,
        channel: &Channel,
        (operation, sequence): (Operation, u32),
        short: &Short,
        whose: Whose,
        mut pause: impl FnMut() -> bool,
    ) -> Option<Result<Option<Request>, EngineError>> {
        let (native, sets_up) = (channel.special.is_any(), whose == Whose::Library);
        let lost = core.state.has_losses() && core.state.has_lost(&channel.members);
        if sets_up && lost {
            return Some(Err(core.lost_of(&channel.members)?));
        }
        if !native && !sets_up && (core.state.tools().observes_plans() || lost) {
            return None;
        }
        let number = channel.slab?;
        let slab = Slab {
            number,
            members: channel.members.count(),
            me: channel.rank,
        };
        let begun = self.begun(number)?;
        let size = match begun.size(slab.members, short.what, short.block, short.unit()) {
            Some(known) => known,
            None => self.find_size(core, short, &slab),
        }?;
        // On a communicator of a machine's own MPI what does not fit into short cells is the affair of that.
        if native && size == CellSize::Middle {
            return None;
        }
        let begun = self.begun(number)?;
        if let Some(error) = begun.broken() {
            return (native || sets_up).then(|| Err(error.clone()));
        }
        let (step, first) = begun.begin_one(size);
        let tools = core.state.tools_mut();
        tools.called(operation);
        tools.plan_begins(channel.context.number(), operation, sequence);
        tools.begins(operation);
        let comes_last = barrier::comes_last(core, short.what, &slab);
        let slabs = self.slabs(core)?;
        let stamp = slabs.note(&slab, step, short.claim(whose));
        if lost {
            return Some(Err(self.lose(core, channel, &slab)));
        }
        let number = first;
        let round = Round { size, number, stamp };
        let mut visit = Visit::new(short, &slab, (step, round), comes_last);
        loop {
            match visit.advance(slabs) {
                Ok(true) if visit.leaves_at_once() => return Some(Ok(None)),
                Ok(true) => match visit.end(slabs) {
                    Ok(()) => return Some(Ok(None)),
                    Err(mistake) => {
                        let meet = visit.under_way(channel, whose);
                        return Some(Err(self.after_mistake(core, &meet, mistake)));
                    }
                },
                Ok(false) if pause() => {}
                Ok(false) => break,
                Err(error) => return Some(Err(self.give_up(core, &slab, error))),
            }
        }
        let meet = visit.under_way(channel, whose);
        let index = self.go_on_with(core, meet);
        Some(Ok(Some(core.state.requests().name(index))))
    }

    /// The size of the cells for such a block, which is remembered.
    #[cold]
    fn find_size(&mut self, core: &mut Core, short: &Short, slab: &Slab) -> Option<CellSize> {
        let (slabs, unit) = (self.slabs(core)?, short.unit());
        let size = Cut::new(slabs, short.what, slab.members, short.block, unit, true).one_round();
        let begun = self.begun(slab.number)?;
        begun.remember(slab.members, short.what, short.block, unit, size);
        size
    }

    /// Somebody is lost without whom nothing is possible any more.
    #[cold]
    fn lose(&mut self, core: &mut Core, channel: &Channel, slab: &Slab) -> EngineError {
        let nobody = EngineError::Plan {
            what: "a loss that nobody knows of",
        };
        let error = core.lost_of(&channel.members).unwrap_or(nobody);
        self.give_up(core, slab, error)
    }
}
