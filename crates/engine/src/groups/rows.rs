// SPDX-License-Identifier: Apache-2.0
//! Operations of blocks that may differ in length, where groups share memory: each block that is short enough goes
//! through cells, and a member waits only for those that it takes.
//!
//! Who gives a block and who takes it both know its length, and often nobody else does. So every such operation has one
//! round of short cells and one of middle ones, whatever its blocks are, and the length of a block alone says where it
//! is:
//!
//! ```text
//!                 of one block                              of several
//!  short cell     as many bytes as it has; all of the       slots: bytes of the block (u32, native) | the block,
//!                 cell: its length (u64, native), it is     if it fits
//!                 in a message
//!  middle cell    instead of the short one: as many         slots without lengths, for blocks that do not fit there
//!                 bytes as it has
//!  messages       blocks that do not fit there either: the caller's affair
//!  in place       long blocks of a gatherv (`written`) and
//!                 of a scatterv, alltoallv or alltoallw (`fetched`)
//! ```
//! [`Slabs::long_blocks`](crate::Slabs::long_blocks) says which these are. A cell of an alltoallv has a slot for
//! each other member, that of any other operation one. The root of a scatterv gives the cells of all others, in every
//! other operation each member gives its own.

mod beginning;
mod fetched;
pub(crate) mod slots;
mod usual;
mod written;

use isthmus_datatype::raw::ReadMemory;
use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{CellSize, Given, Round, SharedSlabs, Slab};

use crate::EngineError;
use crate::base::mistake::{no_memory, wrong_length};
use crate::groups::data::{Arithmetic, Data, Side, Unequal};
use crate::groups::rows::fetched::Fetching;
use crate::groups::rows::slots::{LENGTH, Slots};
use crate::groups::strays::Stray;

/// Such an operation while it goes on.
pub(crate) struct Rows<D> {
    step: Unequal,
    data: D,
    slots: Slots,
    /// The short round and the middle one.
    rounds: [Round; 2],
    /// What is still to be given in them.
    gives: [bool; 2],
    /// It has a block that it is still to write to the root's memory.
    writes: bool,
    /// Long blocks that are read from the memory of others.
    fetching: Fetching,
    /// A member may have a block for this one of which this one knows nothing.
    unaware: bool,
    /// It gives itself a block that does not go through cells, and has not yet: others come first, who wait.
    keeps: bool,
    /// The next member whose block is to be taken.
    next: u32,
    /// That member has gone on without giving one.
    silent: bool,
    left: [bool; 2],
    /// Messages that go with a block by one of its two lengths only.
    strays: Vec<Stray>,
}

impl<D> std::fmt::Debug for Rows<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "blocks of {} members taken", self.next)
    }
}

/// What there is of a member's block.
enum Found<'a> {
    /// It is still to come.
    Missing,
    /// Nothing is to be taken here.
    Nothing,
    /// The member says that it has another length.
    Wrong(u64),
    Block(Given<'a>),
}

/// Bytes of a number in a cell.
#[inline]
fn read<const N: usize>(memory: &Given<'_>, at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    memory.read(at as isize, &mut bytes);
    bytes
}

/// A length as it is said in front of a block.
fn said(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl<D: Data> Rows<D> {
    /// Copies what this process gives itself.
    fn copy_own(&self, slab: &Slab) {
        let length = |side| self.data.length(side, slab.me);
        let bytes = length(Side::Send).min(length(Side::Receive));
        self.data.keep(slab.me, bytes as usize);
    }

    /// Whether a block of so many bytes is moved straight from memory to memory.
    fn is_long(&self, slab: &Slab, bytes: u64) -> bool {
        let from = self.slots.moved(self.step.what, slab.members);
        from.is_some_and(|from| bytes >= from)
    }

    /// Those of them whose blocks go through cells.
    fn others(&self, slab: &Slab) -> impl Iterator<Item = u32> {
        let (apart, me) = (self.step.is_apart() || self.step.what == What::Scatterv, slab.me);
        self.step.receivers(slab.members).filter(move |&to| !apart || to != me)
    }

    /// The block that it gives in a slot: of which buffer, and its number.
    fn source(&self, slab: &Slab, to: u32) -> (Side, u32) {
        match self.step.what {
            What::Scatterv | What::Alltoallv | What::Alltoallw => (Side::Send, to),
            What::Allgatherv if self.step.in_place => (Side::Receive, slab.me),
            What::ReduceScatter if self.step.in_place => (Side::Receive, 0),
            _ => (Side::Send, 0),
        }
    }

    /// Bytes of what it gives in a slot.
    fn given(&self, slab: &Slab, to: u32) -> u64 {
        match self.step.what {
            What::Scatterv | What::Alltoallv | What::Alltoallw if to == slab.me => 0,
            _ => {
                let (side, block) = self.source(slab, to);
                self.data.length(side, block)
            }
        }
    }

    /// Bytes of what it takes of a member.
    fn taken(&self, slab: &Slab, from: u32) -> u64 {
        let (me, root) = (slab.me, self.step.root);
        match self.step.what {
            What::Gatherv if me != root || from == me => 0,
            What::Scatterv if me == root || from != root => 0,
            What::Alltoallv | What::Alltoallw if from == me => 0,
            What::Allgatherv if self.step.in_place && from == me => 0,
            What::ReduceScatter if self.step.own.1 == 0 => 0,
            What::ReduceScatter => {
                let (side, block) = self.source(slab, 0);
                self.data.length(side, block)
            }
            _ => self.data.length(Side::Receive, from),
        }
    }

    /// The cell in which a member's block is, and which slot of it is for this process.
    fn cell(&self, slab: &Slab, from: u32) -> (u32, usize) {
        match self.step.what {
            What::Scatterv => (slab.me, 0),
            _ => (from, self.step.slot(from, slab.me)),
        }
    }

    /// Messages that go with a block by one of its two lengths only, of an operation that is over.
    #[cold]
    pub(crate) fn take_strays(&mut self) -> Vec<Stray> {
        std::mem::take(&mut self.strays)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left == [true; 2] && !self.keeps
    }

    /// Whether anything can be done now.
    pub(crate) fn can_advance(&self, slabs: &mut dyn SharedSlabs, slab: &Slab) -> bool {
        let [short, middle] = self.rounds;
        match self.gives {
            [true, _] => slabs.is_free(slab, short),
            _ if self.fetching.is_pending() => Fetching::can_fetch(self, slabs, slab),
            [_, true] => slabs.is_free(slab, middle),
            _ if self.writes => self.have_places_come(slabs, slab),
            _ if self.next < slab.members => !matches!(self.look(slabs, slab, self.next), Found::Missing),
            // What keeps one that has taken all, and knows all, is an earlier step of this process.
            _ => !self.fetching.knows_all() && Fetching::can_hear(self, slabs, slab),
        }
    }

    /// Looks whether the member whose block comes next has gone on without giving one. True: that is a mistake, and the
    /// operation goes on.
    pub(crate) fn waits_in_vain(&mut self, slabs: &dyn SharedSlabs, slab: &Slab) -> bool {
        if !self.gives[0] && self.fetching.is_pending() {
            return Fetching::fetches_in_vain(self, slabs, slab);
        }
        if self.gives == [false; 2] && self.writes {
            // In this order: a root that says where blocks go leaves after that.
            self.silent = slabs.has_left(slab, self.rounds[0], self.step.root) && !self.have_places_come(slabs, slab);
        } else if self.gives == [false; 2] && self.next < slab.members {
            let (round, (cell, _)) = (self.rounds[0], self.cell(slab, self.next));
            let gave_nothing = |round| slabs.have_arrived(slab, round, cell..cell + 1) == 0;
            // In this order: it leaves after it has given.
            self.silent = slabs.has_left(slab, round, self.next) && self.rounds.into_iter().all(gave_nothing);
        } else if self.gives == [false; 2] && !self.fetching.knows_all() {
            return Fetching::fetches_in_vain(self, slabs, slab);
        }
        self.silent
    }

    /// Does what can be done without waiting; true if anything was. `mistake`: a member gave another length than this
    /// one expects.
    pub(crate) fn advance(
        &mut self,
        slabs: &mut dyn SharedSlabs,
        slab: &Slab,
        mistake: &mut Option<EngineError>,
    ) -> Result<bool, EngineError> {
        let mut any = false;
        for size in 0..2 {
            if size == 1 && self.writes {
                if !self.write_own(slabs, slab) {
                    return Ok(any);
                }
                any = true;
            }
            if size == 1 && self.fetching.is_pending() {
                any |= Fetching::fetch(self, slabs, slab);
                if self.fetching.is_pending() {
                    if std::mem::take(&mut self.keeps) {
                        self.copy_own(slab);
                        any = true;
                    }
                    return Ok(any);
                }
            }
            if self.gives[size] {
                if let Some(memory) = self.in_one_go(slab, size) {
                    if !self.give_at_once(slabs, slab, &memory) {
                        return Ok(any);
                    }
                    any = true;
                    continue;
                }
                if !slabs.is_free(slab, self.rounds[size]) {
                    return Ok(any);
                }
                self.give(slabs, slab, size)?;
                self.gives[size] = false;
                any = true;
            }
        }
        if std::mem::take(&mut self.keeps) {
            self.copy_own(slab);
            any = true;
        }
        while self.next < slab.members {
            match self.look(slabs, slab, self.next) {
                Found::Missing => return Ok(any),
                Found::Nothing => {
                    let nothing = self.step.is_apart() && self.next != slab.me && self.taken(slab, self.next) == 0;
                    self.unaware |= nothing;
                }
                Found::Wrong(said) => {
                    let expected = self.taken(slab, self.next);
                    match self.step.what {
                        What::Gatherv => self.has_found_another_length(slabs, slab, said),
                        _ => Fetching::refuses_length(self, slabs, slab, said),
                    }
                    self.note_stray(slabs, slab, said, expected);
                    mistake.get_or_insert_with(|| wrong_length(self.next, said, expected));
                }
                Found::Block(data) => self.take(slab, &data, self.taken(slab, self.next))?,
            }
            (self.next, self.silent) = (self.next + 1, false);
            any = true;
        }
        if self.gives[1] {
            return Ok(any);
        }
        if !self.fetching.knows_all() {
            any |= Fetching::hear(self, slabs, slab);
            if !self.fetching.knows_all() {
                return Ok(any);
            }
        }
        Ok(self.leave(slabs, slab) || any)
    }

    /// Leaves the rounds, as far as that is possible now. True if any was left.
    #[inline]
    fn leave(&mut self, slabs: &mut dyn SharedSlabs, slab: &Slab) -> bool {
        let mut any = false;
        for (size, (left, round)) in self.left.iter_mut().zip(self.rounds).enumerate() {
            let may_leave = || match self.unaware && size == 0 {
                true => slabs.pass(slab, round),
                false => slabs.leave_soon(slab, round),
            };
            if !*left && { may_leave }() {
                (*left, any) = (true, true);
            }
        }
        any
    }

    /// What goes into the short cell as it is.
    #[inline]
    fn in_one_go(&self, slab: &Slab, size: usize) -> Option<ReadMemory> {
        if size > 0 || self.slots.count() > 1 || self.step.what == What::Scatterv {
            return None;
        }
        let to = self
            .step
            .receivers(slab.members)
            .find(|&to| to != slab.me || !self.step.is_apart())?;
        self.short_piece(slab, to)
    }

    /// What it gives a member, if that is the only block of a short cell and lies in one piece.
    #[inline]
    fn short_piece(&self, slab: &Slab, to: u32) -> Option<ReadMemory> {
        let (side, block) = self.source(slab, to);
        let length = self.data.length(side, block);
        (self.slots.size(length) == Some(CellSize::Short)).then(|| self.data.whole(side, block, length))?
    }

    /// Gives that, if it is possible now, and leaves the round if it takes nothing there.
    #[inline]
    fn give_at_once(&mut self, slabs: &mut dyn SharedSlabs, slab: &Slab, memory: &ReadMemory) -> bool {
        let leaves = self.step.what == What::Gatherv;
        let (_, bytes) = memory.window();
        let given = slabs.give_at_once(slab, self.rounds[0], slab.me, Some(memory), bytes as usize, leaves);
        (self.gives[0], self.left[0]) = (!given, given && leaves);
        given
    }

    /// Gives everything that goes in a round.
    fn give(&self, slabs: &mut dyn SharedSlabs, slab: &Slab, size: usize) -> Result<(), EngineError> {
        if size == 1 && (self.give_words(slabs, slab)? || Fetching::give_outcomes(self, slabs, slab)?) {
            return Ok(());
        }
        if self.step.what != What::Scatterv {
            let cell = slab.me;
            self.give_cell(slabs, slab, size, cell, self.step.receivers(slab.members))?;
            slabs.arrive(slab, self.rounds[size], cell..cell + 1);
            return Ok(());
        }
        for to in self.step.receivers(slab.members).filter(|&to| to != slab.me) {
            if size == 0 {
                if let Some(memory) = self.short_piece(slab, to) {
                    let (_, bytes) = memory.window();
                    // The round is free, so this is possible.
                    slabs.give_at_once(slab, self.rounds[0], to, Some(&memory), bytes as usize, false);
                    continue;
                }
            }
            let is_middle = self.slots.size(self.given(slab, to)) == Some(CellSize::Middle);
            if is_middle == (size == 1) {
                self.give_cell(slabs, slab, size, to, to..to + 1)?;
                slabs.arrive(slab, self.rounds[size], to..to + 1);
            }
        }
        Ok(())
    }

    fn give_cell(
        &self,
        slabs: &mut dyn SharedSlabs,
        slab: &Slab,
        size: usize,
        cell: u32,
        receivers: std::ops::Range<u32>,
    ) -> Result<(), EngineError> {
        let others = receivers.filter(|&to| !self.step.is_apart() || to != slab.me);
        if size == 0 && self.slots.count() == 1 {
            return others.take(1).try_for_each(|to| self.give_one(slabs, slab, cell, to));
        }
        if self.slots.count() == 1 {
            return others
                .take(1)
                .try_for_each(|to| self.give_middle(slabs, slab, cell, to));
        }
        let slot = if size == 0 {
            self.slots.short()
        } else {
            self.slots.middle()
        };
        let here = if size == 0 { CellSize::Short } else { CellSize::Middle };
        let all = slot * self.slots.count();
        let offers: Vec<_> = if size == 0 {
            let offer = |to| Some((to, Fetching::offer_for(self, slabs, slab, to, self.given(slab, to))?));
            others.clone().filter_map(offer).collect()
        } else {
            Vec::new()
        };
        let mut memory = slabs.give(slab, self.rounds[size], cell, all).map_err(no_memory)?;
        for to in others {
            let length = self.given(slab, to);
            let mut at = self.step.slot(slab.me, to) * slot;
            if size == 0 {
                memory.write(at as isize, &said(length).to_ne_bytes());
                at += LENGTH;
            }
            if length > 0 && self.slots.size(length) == Some(here) {
                let (side, block) = self.source(slab, to);
                self.data.fill(side, block, &mut memory, at);
            } else if size == 1 {
                memory.write(at as isize, &[self.fetching.outcome(to)]);
            } else if let Some((_, offer)) = offers.iter().find(|(of, _)| *of == to) {
                memory.write(at as isize, offer);
            }
        }
        Ok(())
    }

    /// Gives the only block of a short cell, or says how long it is.
    fn give_one(&self, slabs: &mut dyn SharedSlabs, slab: &Slab, cell: u32, to: u32) -> Result<(), EngineError> {
        let (round, length) = (self.rounds[0], self.given(slab, to));
        let is_here = self.slots.size(length) == Some(CellSize::Short);
        let bytes = if is_here { length as usize } else { self.slots.short() };
        let offer = if is_here {
            None
        } else {
            Fetching::offer_for(self, slabs, slab, to, length)
        };
        let mut memory = slabs.give(slab, round, cell, bytes).map_err(no_memory)?;
        if !is_here {
            memory.write(0, &length.to_ne_bytes());
            if let Some(offer) = offer {
                memory.write(size_of::<u64>() as isize, &offer);
            }
        } else if length > 0 {
            let (side, block) = self.source(slab, to);
            self.data.fill(side, block, &mut memory, 0);
        }
        Ok(())
    }

    /// Gives the only block of a middle cell.
    fn give_middle(&self, slabs: &mut dyn SharedSlabs, slab: &Slab, cell: u32, to: u32) -> Result<(), EngineError> {
        let (length, (side, block)) = (self.given(slab, to) as usize, self.source(slab, to));
        let mut memory = slabs.give(slab, self.rounds[1], cell, length).map_err(no_memory)?;
        self.data.fill(side, block, &mut memory, 0);
        Ok(())
    }

    /// Looks for what a member gives.
    #[inline]
    fn look<'a>(&self, slabs: &'a dyn SharedSlabs, slab: &Slab, from: u32) -> Found<'a> {
        let length = self.taken(slab, from);
        if length == 0 {
            return Found::Nothing;
        }
        let (cell, slot) = self.cell(slab, from);
        if self.slots.count() == 1 {
            return self.look_at_one(slabs, slab, cell, length);
        }
        let arrived = |round| slabs.have_arrived(slab, round, cell..cell + 1) == 1;
        if !arrived(self.rounds[0]) {
            return if self.silent { Found::Wrong(0) } else { Found::Missing };
        }
        let all = self.slots.short() * self.slots.count();
        let (memory, _) = slabs.given(slab, self.rounds[0], cell, all);
        let at = slot * self.slots.short();
        let says = u32::from_ne_bytes(read(&memory, at));
        if says != said(length) {
            // One of another length never comes in the other round.
            return Found::Wrong(says.into());
        }
        match self.slots.size(length) {
            Some(CellSize::Short) => Found::Block(memory.part((at + LENGTH) as isize, length as usize)),
            Some(_) if !arrived(self.rounds[1]) => Found::Missing,
            Some(_) => {
                let all = self.slots.middle() * self.slots.count();
                let (memory, _) = slabs.given(slab, self.rounds[1], cell, all);
                Found::Block(memory.part((slot * self.slots.middle()) as isize, length as usize))
            }
            None => Found::Nothing,
        }
    }

    /// The same where each cell has one block: it is in the short cell or in the middle one.
    #[inline]
    fn look_at_one<'a>(&self, slabs: &'a dyn SharedSlabs, slab: &Slab, cell: u32, length: u64) -> Found<'a> {
        let size = self.slots.size(length);
        let here = usize::from(size == Some(CellSize::Middle));
        let arrived = |at: usize| slabs.have_arrived(slab, self.rounds[at], cell..cell + 1) == 1;
        let is_word = |at: usize| at == 1 && slabs.given(slab, self.rounds[1], cell, 1).1 == 1;
        let at = match arrived(here) {
            // What its owner says of another block is not the block.
            true if is_word(here) => 0,
            true => here,
            false if arrived(1 - here) => match here == 0 && arrived(here) {
                // Its owner has said how long it is, and then that one is moved, between the two looks.
                true => here,
                false => 1 - here,
            },
            false if self.silent => return Found::Wrong(0),
            false => return Found::Missing,
        };
        let room = [self.slots.short(), self.slots.middle()][at];
        let (memory, bytes) = slabs.given(slab, self.rounds[at], cell, room);
        let is_elsewhere = at == 0 && bytes == room as u64;
        let says = if is_elsewhere {
            u64::from_ne_bytes(read(&memory, 0))
        } else {
            bytes
        };
        match size {
            _ if says != length || at != here => Found::Wrong(says),
            Some(_) => Found::Block(memory.part(0, length as usize)),
            None if self.step.what == What::Gatherv && self.is_long(slab, length) => {
                self.look_for_outcome(slabs, slab, cell)
            }
            None => Found::Nothing,
        }
    }

    /// Takes the next member's block, of so many bytes.
    #[inline]
    fn take(&self, slab: &Slab, data: &Given<'_>, bytes: u64) -> Result<(), EngineError> {
        match self.data.computes() {
            Some(computes) => self.combine(self.next, data, computes),
            None => {
                let block = if self.step.what == What::Scatterv {
                    slab.me
                } else {
                    self.next
                };
                self.data.put(block, data, bytes as usize);
                Ok(())
            }
        }
    }

    /// Adds the own part of what a member contributes to a reduce_scatter.
    fn combine(&self, member: u32, data: &Given<'_>, computes: &Arithmetic) -> Result<(), EngineError> {
        let (reducer, unit) = computes.parts();
        let (before, own) = self.step.own;
        let bytes = (own * unit) as usize;
        let outside = EngineError::Plan {
            what: "a reduction whose result does not lie in one piece",
        };
        let mut result = self.data.result(bytes).ok_or(outside)?;
        let operand = data.part((before * unit) as isize, bytes);
        if member == 0 {
            operand.copy_to(0, &mut result, 0, bytes);
        } else {
            operand.combine_into(bytes, &mut result, |operand, result| {
                reducer(operand, result, own, false)
            });
        }
        Ok(())
    }
}
