// SPDX-License-Identifier: Apache-2.0
//! Operations of blocks that may differ in length, where groups share memory: each block that is short enough goes
//! through cells, and a member waits only for those that it takes.
//!
//! Who gives a block and who takes it both know its length, and often nobody else does. So every such operation has one
//! round of short cells and one of middle ones, whatever its blocks are, and the length of a block alone says where it
//! is:
//!
//! ```text
//!  short cell     slots, one for each block of the cell: bytes of the block (u32, native) | the block, if it fits
//!  middle cell    slots without lengths, for blocks that do not fit there
//!  messages       blocks that do not fit there either: the caller's affair
//! ```
//! [`Frames::longest_block`](crate::Frames::longest_block) says which these are. A cell of an alltoallv has a slot for each member, that of any other operation one. The root of a scatterv gives the
//! cells of all others, in every other operation each member gives its own.

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_schedule::Operation as What;
use isthmus_transport::meeting::{Lane, Meeting, Place, Round};

use crate::base::binding::{Binding, Blocks, BoundBuffer, Reducer, Unit};
use crate::groups::mistake::{no_memory, wrong_length};
use crate::{EngineError, Operation};

/// Bytes of a length.
const LENGTH: usize = size_of::<u32>();
/// Shortest slot of a short cell that is of use.
const SLOT: usize = 2 * size_of::<u64>();

/// What a member does, as far as its buffers do not say it.
#[derive(Clone, Copy, Debug)]
pub struct Unequal {
    /// Gatherv, scatterv, allgatherv, alltoallv, alltoallw or reduce_scatter.
    pub what: What,
    /// The root, or 0.
    pub root: u32,
    /// Called with MPI_IN_PLACE; not alltoallv and alltoallw.
    pub in_place: bool,
    /// Of a reduce_scatter: units before the own block, and units of it.
    pub own: (u64, u64),
}

/// An operation as those who watch are told of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) context: u32,
    pub(crate) operation: Operation,
    pub(crate) sequence: u32,
}

/// Bytes of slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    count: usize,
    short: usize,
    middle: usize,
}

impl Slots {
    /// `None`: they would be too short.
    pub(crate) fn of(meeting: &dyn Meeting, what: What, members: u32) -> Option<Self> {
        let count = match what {
            What::Alltoallv | What::Alltoallw => members as usize,
            _ => 1,
        };
        let bytes = |lane| meeting.cell_bytes(members, lane) / count / LENGTH * LENGTH;
        let (short, middle) = (bytes(Lane::Short), bytes(Lane::Middle));
        (short >= SLOT).then_some(Self { count, short, middle })
    }

    /// Longest block that goes through cells.
    pub(crate) fn longest(&self) -> u64 {
        self.middle.max(self.short - LENGTH) as u64
    }

    /// Where a block of so many bytes goes; `None`: in a message.
    fn lane(&self, bytes: u64) -> Option<Lane> {
        match bytes {
            _ if bytes <= (self.short - LENGTH) as u64 => Some(Lane::Short),
            _ if bytes <= self.middle as u64 => Some(Lane::Middle),
            _ => None,
        }
    }
}

/// Such an operation while it goes on.
pub(crate) struct Rows {
    step: Unequal,
    send: BoundBuffer,
    receive: BoundBuffer,
    unit: u64,
    reducer: Option<Reducer>,
    slots: Slots,
    /// The short round and the middle one.
    rounds: [Round; 2],
    /// What is still to be given in them.
    gives: [bool; 2],
    /// The next member whose block is to be taken.
    next: u32,
    left: [bool; 2],
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "blocks of {} members taken", self.next)
    }
}

/// Where a block of a buffer begins, and its length.
fn block(buffer: &BoundBuffer, index: u32) -> (u64, u64) {
    match &buffer.blocks {
        Blocks::None => (0, 0),
        Blocks::One(block) => (0, block.length),
        Blocks::Many(blocks) => blocks
            .get(index as usize)
            .map_or((0, 0), |(start, block)| (*start, block.length)),
    }
}

impl Rows {
    pub(crate) fn new(step: Unequal, place: &Place, binding: &Binding, slots: Slots, rounds: [u64; 2]) -> Self {
        let reducer = match &binding.unit {
            Unit::Byte => None,
            Unit::Element { reducer, .. } => Some(reducer.clone()),
        };
        let round = |lane, number| Round { lane, number };
        let mut rows = Self {
            step,
            send: binding.send.clone(),
            receive: binding.receive.clone(),
            unit: binding.unit_bytes(),
            reducer,
            slots,
            rounds: [round(Lane::Short, rounds[0]), round(Lane::Middle, rounds[1])],
            gives: [false; 2],
            next: 0,
            left: [false; 2],
        };
        rows.gives[0] = match step.what {
            What::Gatherv => place.me != step.root,
            What::Scatterv => place.me == step.root,
            _ => true,
        };
        let is_middle = |to| rows.slots.lane(rows.given(place, to).1) == Some(Lane::Middle);
        rows.gives[1] = rows.gives[0] && rows.receivers(place).any(is_middle);
        rows.copy_own(place);
        rows
    }

    /// What this process gives itself, where that does not go through cells.
    fn copy_own(&self, place: &Place) {
        let root = place.me == self.step.root;
        let is_apart = match self.step.what {
            What::Gatherv | What::Scatterv => root && !self.step.in_place,
            What::Alltoallv | What::Alltoallw => true,
            _ => false,
        };
        if !is_apart {
            return;
        }
        let (from, gives) = block(&self.send, place.me);
        let (to, takes) = block(&self.receive, place.me);
        let length = gives.min(takes);
        match self.send.readable(from, length).filter(|_| length > 0) {
            Some(memory) => self.receive.write(to, memory.slice(0, length as usize)),
            None => {
                let mut bytes = vec![0; length as usize];
                self.send.read(from, &mut bytes);
                self.receive.write(to, &bytes);
            }
        }
    }

    /// For whom the slots are that this member gives.
    fn receivers(&self, place: &Place) -> std::ops::Range<u32> {
        match self.step.what {
            What::Scatterv | What::Alltoallv | What::Alltoallw => 0..place.members,
            _ => 0..1,
        }
    }

    /// The buffer from which it gives.
    fn source(&self) -> &BoundBuffer {
        let in_place = self.step.in_place && matches!(self.step.what, What::Allgatherv | What::ReduceScatter);
        if in_place { &self.receive } else { &self.send }
    }

    /// First byte and length of what it gives in a slot.
    fn given(&self, place: &Place, to: u32) -> (u64, u64) {
        match self.step.what {
            What::Scatterv | What::Alltoallv | What::Alltoallw if to == place.me => (0, 0),
            What::Scatterv | What::Alltoallv | What::Alltoallw => block(&self.send, to),
            What::Allgatherv if self.step.in_place => block(&self.receive, place.me),
            What::ReduceScatter => (0, self.source().length()),
            _ => block(&self.send, 0),
        }
    }

    /// First byte and length of what it takes of a member.
    fn taken(&self, place: &Place, from: u32) -> (u64, u64) {
        let (me, root) = (place.me, self.step.root);
        match self.step.what {
            What::Gatherv if me != root || from == me => (0, 0),
            What::Scatterv if me == root || from != root => (0, 0),
            What::Scatterv => block(&self.receive, 0),
            What::Alltoallv | What::Alltoallw if from == me => (0, 0),
            What::Allgatherv if self.step.in_place && from == me => (0, 0),
            What::ReduceScatter if self.step.own.1 == 0 => (0, 0),
            What::ReduceScatter => (0, self.source().length()),
            _ => block(&self.receive, from),
        }
    }

    /// The cell in which a member's block is, and which slot of it is for this process.
    fn cell(&self, place: &Place, from: u32) -> (u32, usize) {
        match self.step.what {
            What::Scatterv => (place.me, 0),
            What::Alltoallv | What::Alltoallw => (from, place.me as usize),
            _ => (from, 0),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left == [true; 2]
    }

    /// Whether anything can be done now.
    pub(crate) fn can_advance(&self, meeting: &mut dyn Meeting, place: &Place) -> bool {
        let mut lanes = self.gives.iter().zip(self.rounds);
        if let Some((_, round)) = lanes.find(|(gives, _)| **gives) {
            return meeting.is_free(place, round);
        }
        // What keeps one that has taken all is an earlier step of this process.
        self.next < place.members && self.is_there(meeting, place, self.next)
    }

    /// Does what can be done without waiting; true if anything was. `mistake`: a member gave another length than this
    /// one expects.
    pub(crate) fn advance(
        &mut self,
        meeting: &mut dyn Meeting,
        place: &Place,
        mistake: &mut Option<EngineError>,
    ) -> Result<bool, EngineError> {
        let mut any = false;
        for lane in 0..2 {
            if self.gives[lane] {
                if !meeting.is_free(place, self.rounds[lane]) {
                    return Ok(any);
                }
                self.give(meeting, place, lane)?;
                self.gives[lane] = false;
                any = true;
            }
        }
        while self.next < place.members {
            if !self.is_there(meeting, place, self.next) {
                return Ok(any);
            }
            self.take(meeting, place, mistake)?;
            self.next += 1;
            any = true;
        }
        for (left, round) in self.left.iter_mut().zip(self.rounds) {
            if !*left && meeting.leave_some(place, round, 1) == 1 {
                (*left, any) = (true, true);
            }
        }
        Ok(any)
    }

    /// Gives everything that goes in a round.
    fn give(&self, meeting: &mut dyn Meeting, place: &Place, lane: usize) -> Result<(), EngineError> {
        if self.step.what != What::Scatterv {
            let cell = place.me;
            self.give_cell(meeting, place, lane, cell, self.receivers(place))?;
            meeting.arrive(place, self.rounds[lane], cell..cell + 1);
            return Ok(());
        }
        for to in self.receivers(place).filter(|&to| to != place.me) {
            let goes = self.slots.lane(self.given(place, to).1) == Some(Lane::Middle);
            if lane == 0 || goes {
                self.give_cell(meeting, place, lane, to, to..to + 1)?;
                meeting.arrive(place, self.rounds[lane], to..to + 1);
            }
        }
        Ok(())
    }

    fn give_cell(
        &self,
        meeting: &mut dyn Meeting,
        place: &Place,
        lane: usize,
        cell: u32,
        receivers: std::ops::Range<u32>,
    ) -> Result<(), EngineError> {
        let slot = if lane == 0 { self.slots.short } else { self.slots.middle };
        let all = slot * self.slots.count;
        let mut memory = meeting.give(place, self.rounds[lane], cell, all).map_err(no_memory)?;
        let source = self.source();
        for (number, to) in receivers.enumerate() {
            let (from, length) = self.given(place, to);
            let goes = self.slots.lane(length);
            let mut at = number * slot;
            if lane == 0 {
                let said = u32::try_from(length).unwrap_or(u32::MAX);
                memory.write(at as isize, &said.to_ne_bytes());
                at += LENGTH;
            }
            let here = if lane == 0 { Lane::Short } else { Lane::Middle };
            if length > 0 && goes == Some(here) {
                fill(source, from, &mut memory, at, length as usize);
            }
        }
        Ok(())
    }

    /// Whether what it takes of a member is there, or nothing is to be waited for.
    fn is_there(&self, meeting: &dyn Meeting, place: &Place, from: u32) -> bool {
        let (_, length) = self.taken(place, from);
        if length == 0 {
            return true;
        }
        let (cell, _) = self.cell(place, from);
        let arrived = |round| meeting.have_arrived(place, round, cell..cell + 1) == 1;
        if !arrived(self.rounds[0]) {
            return false;
        }
        let is_right = self.said(meeting, place, from) == u32::try_from(length).unwrap_or(u32::MAX);
        // One of another length never comes in the other round.
        !is_right || self.slots.lane(length) != Some(Lane::Middle) || arrived(self.rounds[1])
    }

    /// Length of the block that a member says that it gives.
    fn said(&self, meeting: &dyn Meeting, place: &Place, from: u32) -> u32 {
        let (cell, slot) = self.cell(place, from);
        let (memory, _) = meeting.given(place, self.rounds[0], cell, self.slots.short * self.slots.count);
        let mut bytes = [0; LENGTH];
        memory.read((slot * self.slots.short) as isize, &mut bytes);
        u32::from_ne_bytes(bytes)
    }

    fn take(&self, meeting: &dyn Meeting, place: &Place, mistake: &mut Option<EngineError>) -> Result<(), EngineError> {
        let (member, (to, length)) = (self.next, self.taken(place, self.next));
        if length == 0 {
            return Ok(());
        }
        let said = self.said(meeting, place, member);
        if said != u32::try_from(length).unwrap_or(u32::MAX) {
            mistake.get_or_insert_with(|| wrong_length(member, said.into(), length));
            return Ok(());
        }
        let (cell, number) = self.cell(place, member);
        let (lane, slot, skip) = match self.slots.lane(length) {
            Some(Lane::Short) => (0, self.slots.short, LENGTH),
            Some(_) => (1, self.slots.middle, 0),
            None => return Ok(()),
        };
        let (memory, _) = meeting.given(place, self.rounds[lane], cell, slot * self.slots.count);
        let data = memory.part((number * slot + skip) as isize, length as usize);
        match &self.reducer {
            Some(reducer) => self.combine(member, &data, reducer),
            None => {
                self.receive.write(to, data.slice(0, length as usize));
                Ok(())
            }
        }
    }

    /// Adds the own part of what a member contributes to a reduce_scatter.
    fn combine(&self, member: u32, data: &ReadMemory, reducer: &Reducer) -> Result<(), EngineError> {
        let (before, own) = self.step.own;
        let bytes = (own * self.unit) as usize;
        let outside = EngineError::Plan {
            what: "a reduction whose result does not lie in one piece",
        };
        let mut result = self.receive.whole(0, bytes as u64).ok_or(outside)?;
        let operand = data.part((before * self.unit) as isize, bytes);
        if member == 0 {
            result.copy_short(&operand, bytes);
        } else {
            result.combine(bytes, &operand, |operand, result| reducer(operand, result, own, false));
        }
        Ok(())
    }
}

/// Copies bytes of a buffer into a cell.
fn fill(source: &BoundBuffer, from: u64, cell: &mut WriteMemory, at: usize, bytes: usize) {
    match source.readable(from, bytes as u64) {
        Some(memory) => cell.copy(at as isize, &memory, 0, bytes),
        None => cell.with(at as isize, bytes, |cell| source.read(from, cell)),
    }
}
