// SPDX-License-Identifier: Apache-2.0
//! Blocking operations in shared memory whose blocks fit into one cell that is not a long one: one round, and neither
//! plan nor binding nor, if the others come while this process polls, a request. What most collective operations of a
//! node are; all others take [`CellCollective`].

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_schedule::Operation as What;
use isthmus_transport::meeting::{CellSize, Claim, Meeting, Round, Slab};

use crate::base::binding::{BoundBuffer, Reducer, Sides};
use crate::base::block::Block;
use crate::groups::barrier::{self, Barrier};
use crate::groups::cell_collective;
use crate::groups::cut::contributors;
use crate::groups::meeting::Groups;
use crate::groups::{Begin, CellCollective, Cut};
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
    pub reducer: Option<(Reducer, u64)>,
}

impl Short {
    /// Whether it computes.
    #[inline(always)]
    pub fn reduces(&self) -> bool {
        self.what.reduces()
    }

    fn unit(&self) -> u64 {
        self.reducer.as_ref().map_or(1, |(_, unit)| *unit)
    }

    /// Bytes in the cell of a member that gives, which cell that is, and the cells that this member waits for.
    fn given(&self, slab: &Slab) -> (usize, u32, std::ops::Range<u32>) {
        let (block, me) = (self.block as usize, slab.me);
        match self.what {
            What::Bcast => (block, 0, 0..1),
            What::Scatter => (block, me, me..me + 1),
            What::Alltoall | What::ReduceScatterBlock => (block * slab.members as usize, me, 0..slab.members),
            _ => (block, me, contributors(self.what, slab)),
        }
    }

    fn claim(&self) -> Claim {
        Claim {
            what: self.what as u8,
            root: self.root,
            block: self.block,
        }
    }

    fn gives(&self, slab: &Slab) -> bool {
        !matches!(self.what, What::Bcast | What::Scatter) || slab.me == self.root
    }

    /// Gives what it gives, if that is possible now; who waits for nothing has left the round then.
    #[inline]
    fn give(
        &self,
        meeting: &mut dyn Meeting,
        slab: &Slab,
        round: Round,
        cell: u32,
        bytes: usize,
    ) -> Result<bool, EngineError> {
        let leaves = !self.waits();
        if self.what != What::Scatter && round.size != CellSize::Middle {
            return Ok(meeting.give_at_once(slab, round, cell, self.give.as_ref(), bytes, leaves));
        }
        if !meeting.is_free(slab, round) {
            return Ok(false);
        }
        match self.what {
            What::Scatter => self.give_each(meeting, slab, round)?,
            _ => self.give_one(meeting, slab, round, cell, bytes)?,
        }
        if leaves {
            meeting.leave(slab, round);
        }
        Ok(true)
    }

    fn give_one(
        &self,
        meeting: &mut dyn Meeting,
        slab: &Slab,
        round: Round,
        cell: u32,
        bytes: usize,
    ) -> Result<(), EngineError> {
        if let Some(all) = &self.give {
            let mut to = meeting
                .give(slab, round, cell, bytes)
                .map_err(cell_collective::no_memory)?;
            to.copy(0, all, 0, bytes);
        }
        meeting.arrive(slab, round, cell..cell + 1);
        Ok(())
    }

    /// Gives a block in the cell of each member: the root of a scatter.
    fn give_each(&self, meeting: &mut dyn Meeting, slab: &Slab, round: Round) -> Result<(), EngineError> {
        let bytes = self.block as usize;
        if let Some(all) = &self.give {
            for member in 0..slab.members {
                let mut cell = meeting
                    .give(slab, round, member, bytes)
                    .map_err(cell_collective::no_memory)?;
                cell.copy(0, all, member as isize * bytes as isize, bytes);
            }
        }
        meeting.arrive(slab, round, 0..slab.members);
        Ok(())
    }

    fn waits(&self) -> bool {
        self.take.is_some() || self.what == What::Barrier
    }

    /// Everything that is waited for has arrived.
    fn take(&self, meeting: &dyn Meeting, slab: &Slab, round: Round) -> Result<(), EngineError> {
        let Some(mut memory) = self.take.clone() else {
            return Ok(());
        };
        let (bytes, _, cells) = self.given(slab);
        let (block, mut mistake) = (self.block as usize, None);
        for cell in cells {
            let (data, said) = meeting.given(slab, round, cell, bytes);
            if said != bytes as u64 {
                mistake.get_or_insert_with(|| cell_collective::wrong_length(cell, said, bytes as u64));
                continue;
            }
            let data = match self.what {
                What::ReduceScatterBlock => data.part(slab.me as isize * block as isize, block),
                _ => data,
            };
            match (&self.reducer, self.what) {
                (Some((reducer, unit)), _) if cell > 0 => {
                    memory.combine(block, &data, |data, result| {
                        reducer(data, result, self.block / unit, false)
                    });
                }
                (Some(_), _) | (None, What::Bcast | What::Scatter) => memory.copy(0, &data, 0, block),
                (None, what) => {
                    let from = if what == What::Alltoall {
                        slab.me as usize * block
                    } else {
                        0
                    };
                    memory.copy((cell as usize * block) as isize, &data, from as isize, block);
                }
            }
        }
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
            reducer: self.reducer.as_ref().map(|(reducer, _)| reducer.clone()),
            computes: None,
        }
    }
}

/// A member in the only round of an operation.
struct Visit<'a> {
    short: &'a Short,
    slab: &'a Slab,
    round: Round,
    /// If it is one whose end is told.
    barrier: Option<Barrier>,
    /// It gives something, and has.
    gives: bool,
    given: bool,
    waits: bool,
    /// Bytes of what it gives, in which cell, and the cells that it waits for.
    bytes: usize,
    cell: u32,
    cells: std::ops::Range<u32>,
    /// Of those the first that is not known to be there.
    seen: u32,
}

impl<'a> Visit<'a> {
    #[inline]
    fn new(short: &'a Short, slab: &'a Slab, round: Round, barrier: Option<Barrier>) -> Self {
        let (bytes, cell, cells) = short.given(slab);
        Self {
            short,
            slab,
            round,
            barrier,
            gives: short.gives(slab),
            given: false,
            waits: short.waits(),
            bytes,
            cell,
            seen: cells.start,
            cells,
        }
    }

    /// Does what can be done without waiting. True: everything that it waits for has arrived.
    #[inline]
    fn advance(&mut self, meeting: &mut dyn Meeting) -> Result<bool, EngineError> {
        if self.gives && !self.given {
            self.given = match &self.barrier {
                Some(barrier) if barrier.is_told_here() => barrier.arrive(meeting, self.slab)?,
                _ => self.short.give(meeting, self.slab, self.round, self.cell, self.bytes)?,
            };
            if !self.given {
                return Ok(false);
            }
        }
        if let Some(barrier) = &self.barrier {
            return Ok(barrier.has_come(meeting, self.slab, &mut self.seen) && barrier.end(meeting, self.slab));
        }
        if self.waits {
            self.seen += meeting.have_arrived(self.slab, self.round, self.seen..self.cells.end);
        }
        Ok(!self.waits || self.seen == self.cells.end)
    }

    /// What it has given was everything, and it has left the round with that.
    #[inline]
    fn leaves_at_once(&self) -> bool {
        self.gives && !self.waits
    }

    /// The same as a step that goes on in the general way.
    fn under_way(&self, channel: &Channel, cut: Cut, numbers: (u64, [u64; CellSize::COUNT])) -> CellCollective {
        let short = self.short;
        let mut meet = CellCollective::under_way(
            (short.what, short.root, short.block),
            *self.slab,
            channel.members.clone(),
            short.sides(self.slab),
            cut,
            numbers,
            Begin {
                given: self.given,
                turn: None,
            },
        );
        meet.context = channel.context;
        meet.past = self.barrier.as_ref().is_some_and(Barrier::is_told_here);
        meet
    }
}

/// Whether a block goes in one round, without long cells. On a communicator of a machine's own MPI what does not fit
/// into short ones is the affair of that.
#[inline]
fn is_one_round(cut: &Cut, native: bool) -> bool {
    match cut.size {
        CellSize::Word | CellSize::Short => true,
        CellSize::Middle => !native && !cut.twice,
        CellSize::Long => false,
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
        mut pause: impl FnMut() -> bool,
    ) -> Option<Result<Option<Request>, EngineError>> {
        let native = channel.special.is_any();
        let lost = core.state.has_losses() && core.state.has_lost(&channel.members);
        if !native && (core.state.tools().observes_plans() || lost) {
            return None;
        }
        let number = channel.slab?;
        let slab = Slab {
            number,
            members: channel.members.count(),
            me: channel.rank,
        };
        let tells = barrier::tells(core, short.what, &slab);
        let meeting = self.meeting(core)?;
        let begun = self.begun(number)?;
        let cut = Cut::new(meeting, short.what, slab.members, short.block, short.unit(), true);
        if !is_one_round(&cut, native) {
            return None;
        }
        if let Some(error) = begun.broken() {
            return native.then(|| Err(error.clone()));
        }
        let (step, first) = begun.begin(&cut);
        let round = Round {
            size: cut.size,
            number: first[cut.size as usize],
        };
        meeting.note(&slab, step, short.claim());
        let tools = core.state.tools_mut();
        tools.called(operation);
        tools.plan_begins(channel.context.number(), operation, sequence);
        tools.begins(operation);
        if let Some(error) = lost.then(|| core.lost_of(&channel.members)).flatten() {
            return Some(Err(self.give_up(core, &slab, error)));
        }
        let meeting = self.meeting(core)?;
        let mut visit = Visit::new(short, &slab, round, cut.told.then(|| Barrier::new(&first, tells)));
        loop {
            match visit.advance(meeting) {
                Ok(true) if visit.leaves_at_once() => return Some(Ok(None)),
                Ok(true) => {
                    let taken = short.take(meeting, &slab, round);
                    meeting.leave(&slab, round);
                    return Some(match taken {
                        Ok(()) => Ok(None),
                        Err(mistake) => {
                            let meet = visit.under_way(channel, cut, (step, first));
                            Err(self.after_mistake(core, &meet, mistake))
                        }
                    });
                }
                Ok(false) if pause() => {}
                Ok(false) => break,
                Err(error) => return Some(Err(self.give_up(core, &slab, error))),
            }
        }
        let index = self.go_on_with(core, visit.under_way(channel, cut, (step, first)));
        Some(Ok(Some(core.state.requests().name(index))))
    }
}
