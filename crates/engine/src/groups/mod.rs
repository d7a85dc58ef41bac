// SPDX-License-Identifier: Apache-2.0
//! The machine of groups that share memory: steps that all members take together. What a member keeps of a step is
//! seen in this folder only.

pub(crate) mod barrier;
pub(crate) mod cell_collective;
pub(crate) mod collective_id;
mod copied_reductions;
pub(crate) mod cut;
pub(crate) mod data;
pub(crate) mod disagreement;
mod offers;
mod parts;
pub(crate) mod pulling;
pub(crate) mod rows;
pub(crate) mod short;
pub(crate) mod state;
pub(crate) mod strays;
pub(crate) mod tuning;
pub(crate) mod unequal;
pub(crate) mod unmoved;
pub(crate) mod words;

use std::sync::Arc;
use std::time::Instant;

use isthmus_datatype::raw::OwnMemory;
use isthmus_protocol::matching::Context;
use isthmus_protocol::ways;
use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{CellSize, Claim, Round, SharedSlabs, Slab};

use crate::base::binding::{Reducer, Side};
use crate::groups::collective_id::CollectiveId;
use crate::groups::data::Bound;
use crate::groups::rows::Rows;
use crate::groups::strays::Called;
use crate::groups::tuning::Sample;
use crate::{EngineError, Members, NodeMembers, Request};

/// What a member does in a step together.
pub(crate) struct CellCollective {
    what: What,
    root: u32,
    slab: Slab,
    /// The whole group: whoever is lost of it, the step waits in vain.
    members: Members,
    /// Those of the place, if they are only some of the group.
    node: Option<Arc<NodeMembers>>,
    /// The communicator's.
    context: Context,
    give: Option<Side>,
    take: Option<Side>,
    block: u64,
    /// Bytes of an element, and the reduction.
    unit: u64,
    reducer: Option<Reducer>,
    /// As others know it.
    operator: u8,
    cut: Cut,
    phase: Phase,
    /// At the member that decides how results are stored: past the caches. At the first member of a barrier: it comes
    /// last.
    past: bool,
    /// Since when it lasts, and what for that is to be found out.
    timed: Option<(Instant, Sample)>,
    /// Somebody could not copy.
    failed: bool,
    /// Of a gather at the root, in their order: the members whose blocks come through cells, where those of others are
    /// there already.
    late: Vec<u32>,
    /// Memory for what is combined with a result, if it was needed.
    beside: Option<OwnMemory>,
    numbers: Numbers,
    /// How often nothing could be done; the last look was the one before sleeping, and the members do not agree.
    vain: u32,
    disagrees: bool,
    given: u64,
    middle: u64,
    taken: u64,
    /// Of the rounds that are waited for in the middle and at the end: number, and members known to have arrived.
    seen: [(u64, u32); 2],
    /// A member gave another length than this one expects.
    mistake: Option<EngineError>,
    /// The operation and its number, of one of blocks that may differ in length.
    called: Option<Called>,
    /// It goes on after its call: the name by which tools hear of its end.
    reported: Option<CollectiveId>,
    whose: Whose,
}

/// Whose step it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Program,
    /// A part of a call that makes a communicator or opens a file: what has the same name and length does not go
    /// together with it.
    Library,
}

/// How a step goes on.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Through cells.
    Cells,
    /// By what the decider says.
    Deciding(Pulling),
    /// All is done without long rounds; so many of them are left.
    Leaving(u64),
    /// Blocks that may differ in length.
    Rows(Box<Rows<Bound>>),
}

/// A step that may be copied.
#[derive(Debug)]
pub(crate) struct Pulling {
    /// The round of the offers.
    offers: Round,
    decider: u32,
    /// What the decider wants, once it is known; at the decider from the beginning.
    turn: Option<ways::Turn>,
    offered: bool,
    /// Members whose blocks are still to be copied, the next one last.
    missing: Vec<u32>,
    /// Bytes of the result that are there, of a reduction: of the part that this member computes.
    reduced: u64,
    /// Of a reduction to one of two members: both compute a part.
    shared: bool,
    failed: bool,
    said: bool,
    /// The next member whose outcome is waited for, and the one behind the last.
    known: u32,
    heard: u32,
    /// Members that could not copy.
    others_failed: Vec<u32>,
}

/// How blocks are cut, and in which rounds they go; the same for all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    size: CellSize,
    /// Bytes of a piece.
    piece: u64,
    pieces: u64,
    /// Long reduction: two rounds for each piece.
    twice: bool,
    /// Members copy the blocks from each other, and need the rounds only if they cannot.
    pulls: bool,
    /// Blocks may differ in length: one round of middle cells beside that of short ones.
    rows: bool,
}

/// Where a step and its rounds are at its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    step: u64,
    /// Its first round in each size.
    first: [u64; CellSize::COUNT],
    /// Of its rounds.
    stamp: u32,
}

impl Numbers {
    /// Number of a step and of its first rounds, which the others can see from now on.
    #[inline]
    pub(crate) fn noted(
        slabs: &mut dyn SharedSlabs,
        slab: &Slab,
        (step, first): (u64, [u64; CellSize::COUNT]),
        claim: Claim,
    ) -> Self {
        let stamp = slabs.note(slab, step, claim);
        Self { step, first, stamp }
    }

    /// The round behind so many others of this size.
    #[inline]
    pub(crate) fn round(&self, size: CellSize, before: u64) -> Round {
        Round {
            size,
            number: self.first[size as usize] + before,
            stamp: self.stamp,
        }
    }
}

/// How a step begins here.
#[derive(Default)]
pub(crate) struct Begin {
    /// Its first piece has been given.
    given: bool,
    /// What this member wants, if it decides how the step goes.
    turn: Option<ways::Turn>,
}

/// Whose operation in messages takes a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taker {
    /// The program's, if it is waited for as this request; bytes, if all members must say the same number.
    Program(Option<(Request, Option<u64>)>),
    /// The program's; it is over at once, since no member has any data.
    Empty,
    /// The library's own, by which it makes a communicator or opens a file.
    Library(Request),
}

/// An operation in messages that is waited for, and its turn.
#[derive(Debug)]
pub(crate) struct Turn {
    request: Request,
    slab: Slab,
    step: u64,
    /// It was found to wait in vain.
    ends: bool,
}

/// An operation in messages whose members do not all take part, and what to say of it.
pub(crate) struct InVain {
    request: Request,
    slab: Slab,
    error: EngineError,
}

impl InVain {
    /// The operation, and what is to be said of it.
    pub(crate) fn into_error(self) -> (Request, EngineError) {
        (self.request, self.error)
    }
}
