// SPDX-License-Identifier: Apache-2.0
//! The vocabulary of plans.
//!
//! **Units.** Offsets and lengths count *units*; what a unit is, the binding of the engine decides: one byte of the
//! packed stream for operations that only move data, one element of the datatype for reductions.
//!
//! **Buffers of the collectives** (lengths in units; `n` = units of one block, `p` = processes):
//!
//! | operation | `Send` | `Recv` |
//! |---|---|---|
//! | barrier | – | – |
//! | bcast | – | the data, `n`, in and out |
//! | reduce | own contribution, `n` | result, `n`, at the root only |
//! | allreduce, scan, exscan | own contribution, `n` | result, `n` |
//! | gather(v) | own block | at the root: the blocks in rank order |
//! | scatter(v) | at the root: the blocks in rank order | own block |
//! | allgather(v) | own block | the blocks in rank order |
//! | alltoall(v) | blocks in order of destination | blocks in order of source |
//! | reduce_scatter(_block) | contribution, all blocks | own block |
//! | neighbor_allgather(v) | own block | blocks in order of sources |
//! | neighbor_alltoall(v, w) | blocks in order of destinations | blocks in order of sources |
//!
//! Between the two groups of an intercommunicator the blocks are those of the other group's ranks.
//!
//! With MPI_IN_PLACE the call says so ([`Call::in_place`](crate::Call::in_place)) and the plan names only the buffer
//! that there is: `Recv`, where the own contribution is found at its natural place (own block of gather, allgather; the
//! whole buffer of the others; reduce_scatter leaves its result at the start of it), or, at the root of a scatter,
//! `Send` alone. Plans never write into `Send`. At processes where the table has no buffer (`Recv` of a reduce off the
//! root; that of an exscan at rank 0, unless in place), plans name none. `Scratch(i)` is memory that the plan asks for
//! ([`Plan::scratch`]).

pub use isthmus_topology::Rank;

/// Name of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    /// The user's input.
    Send,
    /// The user's output.
    Recv,
    /// Memory of the plan; index into [`Plan::scratch`].
    Scratch(u8),
}

/// A range of a buffer, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Which buffer.
    pub buffer: Buffer,
    /// First unit.
    pub offset: u64,
    /// Number of units; may be 0 (a message without data is still a message).
    pub length: u64,
}

impl Slice {
    /// No data. Steps without data name this slice, also where there is no such buffer.
    pub const NOTHING: Self = Self {
        buffer: Buffer::Recv,
        offset: 0,
        length: 0,
    };

    /// The slice, or [`Slice::NOTHING`] if it is empty.
    pub(crate) fn or_nothing(self) -> Self {
        if self.length == 0 { Self::NOTHING } else { self }
    }
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends the slice. Messages between two ranks match by `slot`, and in order among equal slots.
    Send {
        /// Receiver.
        to: Rank,
        /// What.
        data: Slice,
        /// Small number that tells messages of one operation between the same two ranks apart, < 65536.
        slot: u16,
    },
    /// Receives into the slice, whose length is exactly that of the message.
    Receive {
        /// Sender.
        from: Rank,
        /// Where to.
        data: Slice,
        /// As in `Send`.
        slot: u16,
    },
    /// Receives a message of a length that this process does not know, and sends it on as it is, under the same slot.
    /// Only where units are bytes.
    Forward {
        /// Sender.
        from: Rank,
        /// Receiver.
        to: Rank,
        /// Units that it has at most.
        most: u64,
        /// As in `Send`, of both messages.
        slot: u16,
    },
    /// `target = left ∘ right`, where one of the two is `target` itself. Equal lengths.
    Reduce {
        /// The operand that is not `target`.
        operand: Slice,
        /// The other operand and the result.
        target: Slice,
        /// True: target = operand ∘ target. False: target = target ∘ operand. MPI's order of ranks needs it.
        operand_is_left: bool,
    },
    /// `to = from`. Equal lengths.
    Copy {
        /// Source.
        from: Slice,
        /// Target.
        to: Slice,
    },
    /// All processes of a circle do something together, without messages: in memory that they share, or with a
    /// vendor MPI.
    Together(Together),
}

/// Who takes a step together. The steps of each circle meet those of the other members in the order in which they begin
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Circle {
    /// All processes of the group.
    All,
    /// Those of this process's node or job ([`Network::node`](crate::Network::node)), under their places there as
    /// ranks: steps towards the one who acts for it.
    Up,
    /// The same members, steps away from him. Two circles, so that neither direction waits for the other.
    Down,
}

/// Something that all processes of a circle do together, each with a step of its own. The steps of a process meet those
/// of the others in the order in which they begin; they need no particular order among steps of other kinds. Equal on
/// all members but for `give` and `take`.
///
/// | what | `give` | `take` |
/// |---|---|---|
/// | barrier | – | – |
/// | bcast | at the root: the block | elsewhere: the block |
/// | reduce, gather | own block | at the root: the result; the blocks in order of rank |
/// | scatter | at the root: the blocks in order of rank | own block |
/// | allreduce, allgather | own block | the result; the blocks in order of rank |
/// | alltoall | blocks in order of destination | blocks in order of source |
/// | scan, exscan | own block | the result, but for rank 0 of an exscan |
/// | reduce_scatter_block | blocks in order of destination | own block of the result |
///
/// Reductions combine blocks in order of rank, from the left (a vendor MPI as it does). `give` and `take` may be
/// the same memory as far as the operation allows MPI_IN_PLACE; own blocks then travel with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Together {
    /// Who.
    pub circle: Circle,
    /// What: one of the operations of the table.
    pub what: crate::Operation,
    /// Root, where there is one: its rank in the circle.
    pub root: Rank,
    /// Units of one block.
    pub block: u64,
    /// What this process gives.
    pub give: Slice,
    /// What this process takes.
    pub take: Slice,
}

/// Number of a step: its place in the sequence that [`Plan::next_step`] gives, from 0.
pub type StepId = u32;

/// The steps that a step waits for. Reads as a slice; a few fit without allocation.
#[derive(Clone, Default)]
pub struct After {
    length: u32,
    inline: [StepId; Self::INLINE],
    /// All of them, once there are more than fit.
    #[expect(clippy::box_collection, reason = "steps are many and few of them spill")]
    spilled: Option<Box<Vec<StepId>>>,
}

impl After {
    /// How many fit without allocation.
    pub const INLINE: usize = 5;

    /// Waits for nothing.
    pub const NONE: Self = Self {
        length: 0,
        inline: [0; Self::INLINE],
        spilled: None,
    };

    /// Adds a step unless it is there.
    pub fn add(&mut self, step: StepId) {
        if !self.contains(&step) {
            self.append(step);
        }
    }

    /// Adds a step that is known not to be there.
    pub fn append(&mut self, step: StepId) {
        if let Some(all) = &mut self.spilled {
            all.push(step);
        } else if (self.length as usize) < Self::INLINE {
            self.inline[self.length as usize] = step;
            self.length += 1;
        } else {
            let mut all = self.inline.to_vec();
            all.push(step);
            self.spilled = Some(Box::new(all));
        }
    }
}

impl Extend<StepId> for After {
    fn extend<I: IntoIterator<Item = StepId>>(&mut self, steps: I) {
        steps.into_iter().for_each(|step| self.add(step));
    }
}

impl std::ops::Deref for After {
    type Target = [StepId];
    #[inline]
    fn deref(&self) -> &[StepId] {
        match &self.spilled {
            Some(all) => all,
            None => &self.inline[..self.length as usize],
        }
    }
}

impl FromIterator<StepId> for After {
    fn from_iter<I: IntoIterator<Item = StepId>>(steps: I) -> Self {
        let mut after = Self::NONE;
        steps.into_iter().for_each(|s| after.add(s));
        after
    }
}

impl PartialEq for After {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for After {}

impl std::fmt::Debug for After {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// Steps (all of them earlier ones) that must be complete before this one begins. A send is complete when
    /// its data may be overwritten, a receive when its data are there. Steps without a dependency between
    /// them may run at the same time or in any order.
    pub after: After,
}

/// One process's part of a collective operation, produced step by step.
///
/// A plan is lazy: the engine asks for the next step only while fewer than a bounded number of steps are incomplete, so
/// a pipelined gigabyte never becomes a million steps in memory. Plans must not need a window
/// wider than [`WINDOW`] to make progress: step `i` never waits for a message that a peer sends only after
/// receiving one of this plan's steps `> i + WINDOW`.
pub trait Plan: Send {
    /// Sizes of the scratch buffers, in units.
    fn scratch(&self) -> &[u64];
    /// The next step, or `None` at the end.
    fn next_step(&mut self) -> Option<Step>;
    /// Steps that an executor must be able to hold for this plan, if [`WINDOW`] is not enough: plans whose messages
    /// follow a graph that is the program's, where no order of steps is good for all.
    fn window(&self) -> usize {
        WINDOW
    }
    /// Steps with which slow links are never idle: executors hold so many if they can.
    fn ample_window(&self) -> usize {
        self.window()
    }
    /// How many pairs of processes use a link of the wide area in one direction at the same time: each does best to
    /// send at its share.
    fn sharers(&self) -> u32 {
        1
    }
    /// Whether there may be steps that hand on messages of unknown length ([`Action::Forward`]).
    fn forwards(&self) -> bool {
        false
    }
}

/// Steps that an executor must be able to hold, from the first incomplete one on.
pub const WINDOW: usize = 256;
