// SPDX-License-Identifier: Apache-2.0
//! How plans are written down.
//!
//! Algorithms append actions to a [`Script`]. The script finds by itself which earlier steps a new one must wait for:
//! those that wrote what it reads or writes, and those that read what it writes. Algorithms whose steps touch no data
//! (barrier), or many disjoint blocks (pairwise exchange), say so themselves with [`Script::push`].
//!
//! Long messages are cut into pieces; the steps of a piece are written when the executor asks for them ([`Script::pieces`]).

use crate::step::{Action, After, Buffer, Plan, Rank, Slice, Step, StepId};

/// What a message of a plan is for: the low bits of its slot, so that messages of different phases between
/// the same two processes cannot be confused. The high bits count pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Towards the leader or root.
    Up = 0,
    /// Away from the leader or root.
    Down = 1,
    /// Between leaders.
    Exchange = 2,
    /// Between leaders, second half of an exchange.
    Share = 3,
    /// Counts ahead of data.
    Counts = 4,
}

const KINDS: u64 = 8;
/// Pieces before slots repeat; far more than an executor's window holds.
const PIECES: u64 = 65536 / KINDS;

/// A part of a long message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    number: u64,
    /// First unit.
    pub(crate) from: u64,
    /// Number of units.
    pub(crate) length: u64,
    /// Which share of the scratch memory it uses.
    pub(crate) lane: u64,
}

impl Piece {
    /// A message that is not cut.
    pub(crate) const fn whole(length: u64) -> Self {
        Self {
            number: 0,
            from: 0,
            length,
            lane: 0,
        }
    }
    /// One of several messages for the same purpose between the same processes.
    pub(crate) const fn numbered(number: u64) -> Self {
        Self {
            number,
            from: 0,
            length: 0,
            lane: 0,
        }
    }
    /// Slot of its messages.
    pub(crate) fn slot(&self, kind: Kind) -> u16 {
        (self.number % PIECES * KINDS + kind as u64) as u16
    }
    /// Its part of a buffer.
    pub(crate) fn of(&self, buffer: Buffer) -> Slice {
        Slice {
            buffer,
            offset: self.from,
            length: self.length,
        }
    }
}

/// How a long message is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Units in all.
    pub(crate) total: u64,
    /// Units of a piece.
    pub(crate) piece: u64,
    /// Pieces that may be under way at a time where scratch memory is needed.
    pub(crate) lanes: u64,
}

impl Cut {
    /// Number of pieces, at least 1.
    pub(crate) fn pieces(&self) -> u64 {
        self.total.div_ceil(self.piece.max(1)).max(1)
    }

    fn piece(&self, number: u64) -> Piece {
        let from = number * self.piece;
        Piece {
            number,
            from,
            length: self.piece.min(self.total - from),
            lane: number % self.lanes,
        }
    }

    /// Scratch memory with `spares` places for a piece in each lane.
    pub(crate) fn pool(&self, script: &mut Script, spares: u64) -> Pool {
        let piece = self.piece.min(self.total);
        let lanes = self.lanes.min(self.pieces());
        Pool {
            buffer: script.memory(spares * piece * lanes),
            piece,
            spares,
        }
    }
}

/// Scratch memory in places of one piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    buffer: Buffer,
    piece: u64,
    spares: u64,
}

impl Pool {
    /// Place `index` of a piece's lane, as long as the piece.
    pub(crate) fn place(&self, piece: &Piece, index: usize) -> Slice {
        let offset = (piece.lane * self.spares + index as u64) * self.piece;
        Slice {
            buffer: self.buffer,
            offset,
            length: piece.length,
        }
    }
}

impl Pool {
    /// `count` places of a piece's lane without gaps between them. A pool is used either so or with [`Pool::place`].
    pub(crate) fn row(&self, piece: &Piece, first: u64, count: u64) -> Slice {
        Slice {
            buffer: self.buffer,
            offset: piece.lane * self.spares * self.piece + first * piece.length,
            length: count * piece.length,
        }
    }
}

type Filler = Box<dyn FnMut(&mut Script) -> bool + Send>;

/// A plan: written by algorithms, read by executors.
#[derive(Default)]
pub(crate) struct Script {
    /// Steps not yet given out, and before them those that later ones may have to wait for.
    steps: Vec<Step>,
    /// What each of them touches.
    touches: Vec<Touch>,
    /// Number of the first of them.
    base: StepId,
    given: usize,
    scratch: Vec<u64>,
    filler: Option<Filler>,
}

impl Script {
    /// Asks for scratch memory.
    pub(crate) fn memory(&mut self, units: u64) -> Buffer {
        if units == 0 {
            return Slice::NOTHING.buffer;
        }
        self.scratch.push(units);
        Buffer::Scratch(self.scratch.len() as u8 - 1)
    }

    /// Appends a step that waits for the given ones.
    pub(crate) fn push(&mut self, action: Action, after: After) -> StepId {
        if self.steps.capacity() == 0 {
            self.steps.reserve(8);
            self.touches.reserve(8);
        }
        self.touches.push(Touch::of(&action));
        self.steps.push(Step { action, after });
        self.base + self.steps.len() as StepId - 1
    }

    /// Appends a step that waits for those it conflicts with.
    fn add(&mut self, action: Action) -> StepId {
        let after = self.conflicts(&action);
        self.push(action, after)
    }

    /// Sends.
    pub(crate) fn send(&mut self, to: Rank, data: Slice, slot: u16) -> StepId {
        self.add(Action::Send {
            to,
            data: data.or_nothing(),
            slot,
        })
    }

    /// Receives.
    pub(crate) fn receive(&mut self, from: Rank, data: Slice, slot: u16) -> StepId {
        self.add(Action::Receive {
            from,
            data: data.or_nothing(),
            slot,
        })
    }

    /// target = operand ∘ target if the operand is left, else target ∘ operand.
    pub(crate) fn reduce(&mut self, operand: Slice, target: Slice, operand_is_left: bool) {
        if target.length > 0 {
            self.add(Action::Reduce {
                operand,
                target,
                operand_is_left,
            });
        }
    }

    /// Copies, unless there is nothing to do.
    pub(crate) fn copy(&mut self, from: Slice, to: Slice) {
        if from != to && to.length > 0 {
            self.add(Action::Copy { from, to });
        }
    }

    /// Copies what no other step of the plan touches: many small copies need no search for conflicts.
    pub(crate) fn copy_apart(&mut self, from: Slice, to: Slice) {
        if to.length > 0 {
            self.push(Action::Copy { from, to }, After::NONE);
        }
    }

    /// A step that does nothing but wait for others: one name for many.
    pub(crate) fn join(&mut self, steps: After) -> After {
        if steps.len() < 2 {
            return steps;
        }
        let nothing = Slice {
            buffer: Buffer::Recv,
            offset: 0,
            length: 0,
        };
        let id = self.push(
            Action::Copy {
                from: nothing,
                to: nothing,
            },
            steps,
        );
        After::from_iter([id])
    }

    /// Finishes the plan with the steps that `body` writes for each piece of a long message: at
    /// once if there is one piece, else when the executor gets there.
    pub(crate) fn pieces(mut self, cut: Cut, mut body: impl FnMut(&mut Self, Piece) + Send + 'static) -> Box<dyn Plan> {
        let count = cut.pieces();
        if count == 1 {
            body(&mut self, cut.piece(0));
            return Box::new(self);
        }
        let mut number = 0;
        let mut starts = vec![self.base; cut.lanes as usize];
        self.filler = Some(Box::new(move |script| {
            script.next_piece(&cut, &mut number, &mut starts, &mut body)
        }));
        Box::new(self)
    }

    /// Writes the steps of the next piece; false after the last one. Scratch memory is used again after `lanes` pieces:
    /// conflicts reach back that far and no farther, so older steps are forgotten.
    fn next_piece(
        &mut self,
        cut: &Cut,
        number: &mut u64,
        starts: &mut [StepId],
        body: &mut impl FnMut(&mut Self, Piece),
    ) -> bool {
        let lane = (*number % cut.lanes) as usize;
        self.forget(starts[lane]);
        starts[lane] = self.base + self.steps.len() as StepId;
        body(self, cut.piece(*number));
        *number += 1;
        *number < cut.pieces()
    }

    /// Forgets the steps before one.
    fn forget(&mut self, before: StepId) {
        let gone = ((before - self.base) as usize).min(self.given);
        self.steps.drain(..gone);
        self.touches.drain(..gone);
        self.base += gone as StepId;
        self.given -= gone;
    }

    /// Earlier steps that an action must wait for. Those that the found ones already wait for are left out where that is seen.
    fn conflicts(&self, action: &Action) -> After {
        let mut open = Touch::of(action);
        let mut after = After::NONE;
        for (i, old) in self.touches.iter().enumerate().rev() {
            if open.is_empty() {
                break;
            }
            if !open.conflicts(old) {
                continue;
            }
            let id = self.base + i as StepId;
            if !after
                .iter()
                .any(|&f| self.steps[(f - self.base) as usize].after.contains(&id))
            {
                after.append(id);
            }
            open.settle(old);
        }
        after
    }

    /// Sends the same data to several processes.
    pub(crate) fn send_all(&mut self, to: impl Iterator<Item = Rank>, data: Slice, slot: u16) {
        let data = data.or_nothing();
        let mut after = None;
        for to in to {
            let action = Action::Send { to, data, slot };
            let after = match &after {
                Some(after) => Clone::clone(after),
                None => {
                    let all = self.conflicts(&action);
                    let all = if all.len() > After::INLINE { self.join(all) } else { all };
                    after.insert(all).clone()
                }
            };
            self.push(action, after);
        }
    }
}

impl Plan for Script {
    fn scratch(&self) -> &[u64] {
        &self.scratch
    }

    fn next_step(&mut self) -> Option<Step> {
        while self.given == self.steps.len() {
            let mut filler = self.filler.take()?;
            if filler(self) {
                self.filler = Some(filler);
            }
        }
        self.given += 1;
        Some(self.steps[self.given - 1].clone())
    }
}

/// What an action reads and writes. A reduction's target counts as written: whoever conflicts with the reading
/// conflicts with the writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    read: Extent,
    write: Extent,
}

impl Touch {
    /// Of one action.
    #[inline]
    pub(crate) fn of(action: &Action) -> Self {
        let (read, write) = match action {
            Action::Send { data, .. } => (Extent::of(data), Extent::NONE),
            Action::Receive { data, .. } => (Extent::NONE, Extent::of(data)),
            Action::Reduce { operand, target, .. } => (Extent::of(operand), Extent::of(target)),
            Action::Copy { from, to } => (Extent::of(from), Extent::of(to)),
        };
        Self { read, write }
    }

    /// True if the two may not run at the same time or in the other order.
    #[inline]
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        self.write.meets(&other.write) || self.write.meets(&other.read) || self.read.meets(&other.write)
    }

    /// True if nothing is touched.
    #[inline]
    fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }

    /// Forgets what an earlier step has written whole: whatever came before that and conflicts there, that step has waited for.
    #[inline]
    fn settle(&mut self, earlier: &Self) {
        if self.read.lies_in(&earlier.write) {
            self.read = Extent::NONE;
        }
        if self.write.lies_in(&earlier.write) {
            self.write = Extent::NONE;
        }
    }
}

/// A slice, ready for comparisons.
#[derive(Clone, Copy, Debug)]
struct Extent {
    buffer: u32,
    start: u64,
    end: u64,
}

impl Extent {
    const NONE: Self = Self {
        buffer: 0,
        start: 0,
        end: 0,
    };

    #[inline]
    fn of(slice: &Slice) -> Self {
        let buffer = match slice.buffer {
            Buffer::Send => 0,
            Buffer::Recv => 1,
            Buffer::Scratch(i) => 2 + u32::from(i),
        };
        Self {
            buffer,
            start: slice.offset,
            end: slice.offset + slice.length,
        }
    }

    /// True if the two have a unit in common.
    #[inline]
    fn meets(&self, other: &Self) -> bool {
        self.buffer == other.buffer && self.start.max(other.start) < self.end.min(other.end)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    #[inline]
    fn lies_in(&self, other: &Self) -> bool {
        self.buffer == other.buffer && self.start >= other.start && self.end <= other.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(buffer: Buffer, offset: u64, length: u64) -> Slice {
        Slice { buffer, offset, length }
    }

    #[test]
    fn steps_wait_for_those_they_conflict_with_and_no_others() {
        let mut script = Script::default();
        let (a, b) = (slice(Buffer::Recv, 0, 4), slice(Buffer::Recv, 4, 4));
        script.receive(1, a, 0);
        script.receive(2, b, 0);
        script.reduce(a, b, true);
        script.send(3, slice(Buffer::Recv, 6, 1), 0);
        script.receive(1, b, 1);
        script.send(1, slice(Buffer::Send, 0, 8), 0);
        let after: Vec<Vec<StepId>> = std::iter::from_fn(|| script.next_step())
            .map(|s| s.after.to_vec())
            .collect();
        // The last receive waits for the reduction through the send that read its result.
        assert_eq!(after, [vec![], vec![], vec![1, 0], vec![2], vec![3], vec![]]);
    }

    #[test]
    fn a_pipelined_gigabyte_is_never_in_memory_as_a_whole() {
        let cut = Cut {
            total: 1 << 30,
            piece: 1 << 16,
            lanes: 4,
        };
        let mut script = Script::default();
        let pool = cut.pool(&mut script, 1);
        let mut body = move |script: &mut Script, piece: Piece| {
            script.receive(1, pool.place(&piece, 0), piece.slot(Kind::Up));
            script.reduce(pool.place(&piece, 0), piece.of(Buffer::Recv), false);
        };
        let mut number = 0;
        let mut most = 0;
        let mut starts = vec![0; cut.lanes as usize];
        while number < cut.pieces() {
            script.next_piece(&cut, &mut number, &mut starts, &mut body);
            script.given = script.steps.len();
            most = most.max(script.steps.len());
        }
        assert_eq!(script.base as usize + script.steps.len(), 2 << 14);
        assert!(most <= 10, "{most} steps at a time");
        // A place is written again only after it was read.
        assert!(script.steps.iter().skip(8).all(|s| !s.after.is_empty()));
    }
}
