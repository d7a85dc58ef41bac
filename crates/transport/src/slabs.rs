// SPDX-License-Identifier: Apache-2.0
//! Where groups of processes meet that share memory: collective operations without messages.
//!
//! A group has a *place*: memory in which rounds are held. A *round* has a cell for each member, and is used
//! like this:
//!
//! ```text
//!  who gives something                            who takes something
//!  waits until the round is free
//!  calls `give` and writes its cell
//!  says that its cells `arrive`                   waits until the cells that it needs `have_arrived`, reads them
//!  `leave`                                        `leave`
//! ```
//! Every member leaves every round once, so a round is free when all have left the one before in the same memory. Who
//! only takes need not wait for that: what it waits for cannot have happened before. Rounds are numbered by those who
//! hold them, in each [`CellSize`] from 0 on; a member may be in several at once, in any order.
//!
//! What a member gives may also be an [offer](SharedSlabs::offer) of memory of its own, out of which others copy
//! ([`SharedSlabs::fetch`]), or a [target](SharedSlabs::offer_target) to which they write ([`SharedSlabs::store`]),
//! for as long as they have agreed on. Who cannot wait for that [withdraws](SharedSlabs::withdraw).
//!
//! Any memory may be offered to be copied: whoever copies too late has other bytes than it wants, and does no harm.
//! Whoever writes too late would, so targets are memory of the user, which stays until its operation is complete by the
//! promise of whoever made it. The library's has no such promise, and lives and is used by its own rules:
//!
//! ```compile_fail,E0308
//! # use isthmus_datatype::raw::OwnMemory;
//! # use isthmus_transport::slabs::{OFFER, SharedSlabs};
//! fn offered(slabs: &dyn SharedSlabs) -> [u8; OFFER] {
//!     let own = OwnMemory::new(0, 8);
//!     slabs.offer_target(&own.memory(), 8) // others would write to it when it is gone
//! }
//! ```
//! ```
//! # use isthmus_datatype::raw::OwnMemory;
//! # use isthmus_transport::slabs::{OFFER, SharedSlabs};
//! fn offered(slabs: &dyn SharedSlabs) -> Option<[u8; OFFER]> {
//!     let own = OwnMemory::new(0, 8);
//!     own.memory().of_user().map(|target| slabs.offer_target(&target, 8))
//! }
//! ```
//!
//! Cells are borrowed, so nobody has one when this process may have left the round, or when the memory is gone:
//!
//! ```compile_fail,E0499
//! # use isthmus_transport::slabs::{SharedSlabs, Round, Slab};
//! fn late(slabs: &mut dyn SharedSlabs, slab: &Slab, round: Round) {
//!     let mut cell = slabs.give(slab, round, 0, 8).expect("memory");
//!     slabs.arrive(slab, round, 0..1);
//!     cell.write(0, &[1; 8]); // others are reading it
//! }
//! ```
//! ```compile_fail,E0502
//! # use isthmus_transport::slabs::{SharedSlabs, Round, Slab};
//! fn late(slabs: &mut dyn SharedSlabs, slab: &Slab, round: Round) -> [u8; 8] {
//!     let ((given, _), mut bytes) = (slabs.given(slab, round, 0, 8), [0; 8]);
//!     slabs.leave(slab, round);
//!     given.read(0, &mut bytes); // others may be writing it
//!     bytes
//! }
//! ```
//! In the other order both compile:
//!
//! ```
//! # use isthmus_transport::slabs::{SharedSlabs, Round, Slab};
//! fn in_time(slabs: &mut dyn SharedSlabs, slab: &Slab, rounds: [Round; 2]) -> [u8; 8] {
//!     let mut cell = slabs.give(slab, rounds[0], 0, 8).expect("memory");
//!     cell.write(0, &[1; 8]);
//!     slabs.arrive(slab, rounds[0], 0..1);
//!     let ((given, _), mut bytes) = (slabs.given(slab, rounds[1], 0, 8), [0; 8]);
//!     given.read(0, &mut bytes);
//!     slabs.leave(slab, rounds[1]);
//!     bytes
//! }
//! ```
//!
//! A group's operations at a place are its *steps*, counted from 0. Each member notes what it takes each step for: if
//! they do not agree, some may wait for what never comes, and [`SharedSlabs::disagreements`] say so. What a member
//! gives bears the stamp of the step for which it does, so nobody takes it for another.
//!
//! Nothing blocks. Somebody who waits for a round and wants to sleep calls [`SharedSlabs::watch`] after
//! [`Transport::arm`](crate::Transport::arm) and looks once more; whoever makes a round go on after that wakes it.

use std::marker::PhantomData;
use std::ops::Range;

use isthmus_datatype::raw::{ReadMemory, UserMemory, WriteMemory};

use crate::{Peer, SendError};

/// The memory of a group, as one of its members sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slab {
    /// Which of the transport's pieces of memory.
    pub number: u32,
    /// Number of members.
    pub members: u32,
    /// Which of them this process is.
    pub me: u32,
}

/// Rounds with little memory, of which many can be under way, and others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellSize {
    /// Cells of eight bytes, of each member several in a cache line: for rounds in which one member gives to others.
    Word,
    /// Small cells.
    Short,
    /// Cells of some kilobytes at most.
    Middle,
    /// Large cells, of which few can be under way.
    Long,
}

impl CellSize {
    /// How many sizes there are.
    pub const COUNT: usize = 4;
}

/// What a member has used of a slab: only that has to be made ready for the next group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Steps that it has noted.
    pub steps: u64,
    /// Rounds of each size.
    pub rounds: [u64; CellSize::COUNT],
}

/// A round in a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Round {
    /// In which memory.
    pub size: CellSize,
    /// Counted from 0 in each size.
    pub number: u64,
    /// What [`SharedSlabs::note`] gave for the step whose round it is. Members that take a step for something else may
    /// count rounds differently from then on: what is given with another stamp never arrives.
    pub stamp: u32,
}

/// What a member takes a step for; all members must take it for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Which operation, by the caller's numbers.
    pub what: u8,
    /// The root, or 0.
    pub root: u32,
    /// What a reduction computes, below 32 by the caller's numbers; 0: nothing, or nothing that has a number.
    pub operator: u8,
    /// Bytes of a block; memory may keep its lower 33 bits only.
    pub block: u64,
}

/// What a user can do where there is no memory for what processes of a node share: the end of an error.
pub const ENLARGE: &str =
    "; enlarge the memory file system (mount -o remount,size=..., or --shm-size of the container)";

/// How a member is at odds with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// It takes a step for something else.
    Other {
        /// Which member.
        member: u32,
        /// Which step.
        step: u64,
        /// What this member takes the step for, and what the other one does.
        claims: [Claim; 2],
    },
    /// It has [given up](SharedSlabs::give_up).
    GaveUp {
        /// Which member.
        member: u32,
        /// There was no memory for what the group shares, there or at a member that had given up before.
        no_memory: bool,
    },
}

/// Bytes of an [offer](SharedSlabs::offer).
pub const OFFER: usize = 16;

/// A cell that this member is about to write. Nothing else can be done with the memory of groups meanwhile, so the cell
/// is this member's for as long as there is such a value.
#[derive(Debug)]
pub struct Giving<'a> {
    memory: WriteMemory,
    lent: PhantomData<&'a mut ()>,
}

impl Giving<'_> {
    /// For transports.
    #[inline]
    pub fn new(memory: WriteMemory) -> Self {
        let lent = PhantomData;
        Self { memory, lent }
    }

    /// As [`WriteMemory::write`].
    #[inline]
    pub fn write(&mut self, at: isize, data: &[u8]) {
        self.memory.write(at, data);
    }

    /// As [`WriteMemory::copy`].
    #[inline]
    pub fn copy(&mut self, at: isize, source: &ReadMemory, from: isize, length: usize) {
        self.memory.copy(at, source, from, length);
    }

    /// As [`WriteMemory::with_mut`].
    #[inline]
    pub fn with_mut<R>(&mut self, at: isize, length: usize, change: impl FnOnce(&mut [u8]) -> R) -> R {
        self.memory.with_mut(at, length, change)
    }
}

/// What a member has given. Meanwhile this process cannot leave the round, so nobody writes there.
#[derive(Debug)]
pub struct Given<'a> {
    memory: ReadMemory,
    lent: PhantomData<&'a ()>,
}

impl Given<'_> {
    /// For transports, and for what a member would give itself.
    #[inline]
    pub fn new(memory: ReadMemory) -> Self {
        let lent = PhantomData;
        Self { memory, lent }
    }

    /// As [`ReadMemory::part`].
    #[inline]
    #[must_use]
    pub fn part(&self, at: isize, length: usize) -> Self {
        Self::new(self.memory.part(at, length))
    }

    /// As [`ReadMemory::read`].
    #[inline]
    pub fn read(&self, at: isize, out: &mut [u8]) {
        self.memory.read(at, out);
    }

    /// As [`ReadMemory::with`].
    #[inline(always)]
    pub fn with<R>(&self, at: isize, length: usize, look: impl FnOnce(&[u8]) -> R) -> R {
        self.memory.with(at, length, look)
    }

    /// As [`WriteMemory::copy`]: to the beginning of other memory, or somewhere in it.
    #[inline]
    pub fn copy_to(&self, from: isize, to: &mut WriteMemory, at: isize, length: usize) {
        to.copy(at, &self.memory, from, length);
    }

    /// As [`WriteMemory::combine`], with this as the operand.
    #[inline]
    pub fn combine_into(&self, length: usize, result: &mut WriteMemory, change: impl FnOnce(&[u8], &mut [u8])) {
        result.combine(length, &self.memory, change);
    }
}

/// A part of what a member gives, and where it goes.
#[derive(Debug)]
pub struct Part<'a> {
    /// Bytes before it.
    pub from: usize,
    /// Its bytes.
    pub length: usize,
    /// The memory.
    pub into: &'a mut WriteMemory,
    /// Bytes from the memory's origin to its place.
    pub at: usize,
}

/// What members have given in a round.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    slabs: &'a dyn SharedSlabs,
    slab: Slab,
    round: Round,
}

impl<'a> Source<'a> {
    /// A round in a slab.
    #[inline]
    pub fn new(slabs: &'a dyn SharedSlabs, slab: Slab, round: Round) -> Self {
        Self { slabs, slab, round }
    }

    /// See [`SharedSlabs::given`].
    #[inline]
    pub fn given(&self, cell: u32, bytes: usize) -> (Given<'a>, u64) {
        self.slabs.given(&self.slab, self.round, cell, bytes)
    }
}

/// Shared memory of groups. See the module.
pub trait SharedSlabs {
    /// Whether this process meets this one there: messages between them may go another way. Everybody is near to
    /// itself.
    fn is_near(&self, peer: Peer) -> bool;

    /// Memory for a group all of whose members use this transport with each other, and nobody's until it was given back
    /// by so many members. `None`: there is none left. One member takes it and tells the others.
    fn take_slab(&mut self, members: u32) -> Option<u32>;

    /// Before this process holds the first round in a slab that was taken for a group that it belongs to.
    fn open_slab(&mut self, number: u32);

    /// This process uses the memory no longer, of which it has used so much.
    fn give_back_slab(&mut self, number: u32, used: Used);

    /// Bytes that a cell of a group of so many members holds: 8 in the size of words, at least 64 in others.
    fn cell_bytes(&self, members: u32, size: CellSize) -> usize;

    /// Bytes of all cells together, for the only giver of a round: it gives them as cell 0.
    fn round_bytes(&self, members: u32, size: CellSize) -> usize;

    /// This member has come to its `step`th step at a place and takes it for this. The stamp of the step's rounds,
    /// which is the same at members that take it for the same, whatever the bytes of a block are.
    fn note(&mut self, slab: &Slab, step: u64, claim: Claim) -> u32;

    /// How members are at odds with this one in a step or in those before it, the earliest first; one can have given
    /// up as well. Those whose notes of a step are gone already, or still to come, are believed.
    fn disagreements(&self, slab: &Slab, step: u64) -> Vec<Disagreement>;

    /// This member takes no further step at a place: the others will wait in vain, and are woken to see that.
    /// `no_memory`: because there was none for what the group shares, here or at another member.
    fn give_up(&mut self, slab: &Slab, no_memory: bool);

    /// Whether a member may give in this round.
    fn is_free(&mut self, slab: &Slab, round: Round) -> bool;

    /// A cell for `bytes` that this member is about to write, its own or, if it is the only giver, any; fails if there
    /// is no memory.
    fn give(&mut self, slab: &Slab, round: Round, cell: u32, bytes: usize) -> Result<Giving<'_>, SendError>;

    /// The same for a member that looks at what others have given in the round `from` meanwhile. The two rounds must
    /// have memory of their own.
    fn give_from(
        &mut self,
        slab: &Slab,
        from: Round,
        round: Round,
        cell: u32,
        bytes: usize,
    ) -> Result<(Source<'_>, Giving<'_>), SendError>;

    /// In a round of words or a short one, at once what takes several calls else: if this member may give, it gives
    /// this and has arrived, and `leaves`: it has left, because it takes nothing. False: it must come again. Not more
    /// than [`cell_bytes`](SharedSlabs::cell_bytes).
    fn give_at_once(
        &mut self,
        slab: &Slab,
        round: Round,
        cell: u32,
        memory: Option<&ReadMemory>,
        bytes: usize,
        leaves: bool,
    ) -> bool;

    /// The same for the only giver of a round, which takes nothing: it gives each other member what `block` says, in
    /// the cell of that member, and has left.
    fn give_each_at_once(&mut self, slab: &Slab, round: Round, block: &mut dyn FnMut(u32) -> ReadMemory) -> bool;

    /// What a member who has arrived has given: up to `bytes`, and how many it said that it gives.
    fn given(&self, slab: &Slab, round: Round, cell: u32, bytes: usize) -> (Given<'_>, u64);

    /// At once what takes several calls else: if a member has arrived, and has said that it gives so many `bytes`, this
    /// part of them is copied to its place. What it has said; `None`: it has not arrived.
    fn take_at_once(&self, slab: &Slab, round: Round, cell: u32, bytes: usize, part: Part<'_>) -> Option<u64>;

    /// Marks a cell that this member is giving: what that means is the callers' affair. The mark goes with the round.
    /// Not in rounds of words.
    fn mark(&mut self, slab: &Slab, round: Round, cell: u32);

    /// Whether the cell of a member who has arrived is marked.
    fn is_marked(&self, slab: &Slab, round: Round, cell: u32) -> bool;

    /// What this member gives in these cells is there.
    fn arrive(&mut self, slab: &Slab, round: Round, cells: Range<u32>);

    /// How many of these cells have arrived, up to the first that has not.
    fn have_arrived(&self, slab: &Slab, round: Round, cells: Range<u32>) -> u32;

    /// This member neither reads nor writes the round's memory any more. (Others may learn that some rounds later.)
    fn leave(&mut self, slab: &Slab, round: Round);

    /// Leaves a round, if this process is not still to leave rounds long before it. False: it is.
    fn leave_soon(&mut self, slab: &Slab, round: Round) -> bool;

    /// Leaves rounds from this one on, up to so many; how many. Less than all where this process is still to leave
    /// rounds long before them.
    fn leave_some(&mut self, slab: &Slab, first: Round, count: u64) -> u64;

    /// This member leaves a round in which it gives nothing, although others may wait for that; they can
    /// [see](SharedSlabs::has_left) it. False: it must leave rounds long before this one first.
    fn pass(&mut self, slab: &Slab, round: Round) -> bool;

    /// Whether a member is known to have left a round. If its cell had not arrived by then, it never will.
    fn has_left(&self, slab: &Slab, round: Round, member: u32) -> bool;

    /// What another member needs to [`fetch`](SharedSlabs::fetch) any of so many bytes of this process's memory.
    fn offer(&self, memory: &ReadMemory, length: u64) -> [u8; OFFER];

    /// What another member needs to [`store`](SharedSlabs::store) to any of so many bytes of this process's memory.
    fn offer_target(&self, memory: &UserMemory, length: u64) -> [u8; OFFER];

    /// Copies so many bytes, `offset` bytes behind the first, of what that process has offered and still leaves alone.
    /// False: the system does not let this process, or that memory is not of a kind that can be copied; some bytes may
    /// have been.
    fn fetch(&mut self, peer: Peer, offer: &[u8; OFFER], offset: u64, into: WriteMemory, length: u64) -> bool;

    /// Writes all of this memory, `offset` bytes behind the first of the target that member `owner` of a slab, which is
    /// that peer and not this process, has offered. False: the system does not let this process, that memory is not of
    /// a kind that can be written, or the owner has [withdrawn](SharedSlabs::withdraw) it; some bytes may have been
    /// written.
    fn store(
        &mut self,
        slab: &Slab,
        owner: u32,
        peer: Peer,
        offer: &[u8; OFFER],
        offset: u64,
        from: ReadMemory,
    ) -> bool;

    /// This member takes part no longer, and has its memory back when this returns: nobody writes to what it has
    /// offered at this place any more. Waits for those who do now.
    fn withdraw(&mut self, slab: &Slab);

    /// Bytes that the cache holds which a core has for itself.
    fn cache_bytes(&self) -> u64;

    /// From now until [`Transport::disarm`](crate::Transport::disarm) whatever happens at the place wakes this process.
    fn watch(&mut self, slab: &Slab);
}
