// SPDX-License-Identifier: Apache-2.0
//! How plans are written down.
//!
//! Algorithms append actions to a [`Script`]. The script finds by itself which earlier steps a new one must wait for:
//! those that wrote what it reads or writes, and those that read what it writes. Algorithms whose steps touch no data
//! (barrier), or many disjoint blocks (pairwise exchange), say so themselves with [`Script::push`].
//!
//! Long messages are cut into pieces; the steps of a piece are written when the executor asks for them
//! ([`Script::pieces`]).

use crate::step::{Action, After, Buffer, Plan, Rank, Slice, Step, StepId, WINDOW};
use crate::touch::{Extent, Touch};
use std::collections::VecDeque;

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
    /// How many there are before it.
    pub(crate) number: u64,
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
    /// One of several messages for the same purpose between the same processes, each about this piece.
    pub(crate) const fn item(&self, index: u64, of: u64) -> Self {
        Self {
            number: self.number * of + index,
            ..*self
        }
    }
    /// Slot of its messages.
    pub(crate) const fn slot(&self, kind: Kind) -> u16 {
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
    /// Steps that the executor should hold, if that is more than it does anyway.
    pub(crate) window: usize,
    /// Pieces that are not alike.
    pub(crate) turns: Turns,
}

/// Lengths of pieces that come in turns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    /// Pieces of a turn; 0 if all pieces are alike.
    count: usize,
    /// Units of each of them.
    lengths: [u64; Self::MOST],
}

impl Turns {
    /// Most pieces of a turn.
    pub(crate) const MOST: usize = 4;

    /// Pieces of a turn with so many units.
    pub(crate) fn of(lengths: &[u64]) -> Self {
        let mut turns = Self {
            count: lengths.len().min(Self::MOST),
            ..Self::default()
        };
        turns
            .lengths
            .iter_mut()
            .zip(lengths)
            .for_each(|(own, &length)| *own = length);
        turns
    }

    fn units(&self) -> u64 {
        self.lengths.iter().sum()
    }
}

impl Cut {
    /// Number of pieces, at least 1.
    pub(crate) fn pieces(&self) -> u64 {
        match self.turns.count {
            0 => self.total.div_ceil(self.piece.max(1)).max(1),
            count => self.total.div_ceil(self.turns.units().max(1)).max(1) * count as u64,
        }
    }

    fn piece(&self, number: u64) -> Piece {
        let (from, most) = match self.turns.count as u64 {
            0 => (number * self.piece, self.piece),
            count => {
                let place = (number % count) as usize;
                let before: u64 = self.turns.lengths[..place].iter().sum();
                (number / count * self.turns.units() + before, self.turns.lengths[place])
            }
        };
        Piece {
            number,
            from,
            length: most.min(self.total.saturating_sub(from)),
            lane: number % self.lanes,
        }
    }
}

type Filler = Box<dyn FnMut(&mut Script) -> bool + Send>;

/// A plan: written by algorithms, read by executors.
#[derive(Default)]
pub(crate) struct Script {
    /// What steps not yet given out do.
    actions: VecDeque<Action>,
    /// What they wait for, and before them those that later ones may have to wait for.
    afters: VecDeque<After>,
    /// What each of these touches.
    touches: VecDeque<Touch>,
    /// Between which places buffers have been read or written, and written, by all steps so far.
    seen: [Touch; Self::SEEN],
    /// Number of the first of these.
    base: StepId,
    scratch: Vec<u64>,
    window: usize,
    /// Of a link; 0 is 1.
    sharers: u32,
    /// What all steps wait for that are written from here on.
    awaited: After,
    /// The last steps on the way up and down that this process has taken together with those of its node
    /// ([`node`](crate::node)).
    pub(crate) met: [Option<StepId>; 2],
    filler: Option<Filler>,
}

impl Script {
    /// Buffers of which it is known where they have been touched.
    const SEEN: usize = 5;

    /// Asks for scratch memory.
    pub(crate) fn memory(&mut self, units: u64) -> Buffer {
        if units == 0 {
            return Slice::NOTHING.buffer;
        }
        self.scratch.push(units);
        Buffer::Scratch(self.scratch.len() as u8 - 1)
    }

    /// Says that so many pairs of processes use a link of the wide area in one direction at the same time.
    pub(crate) fn share(&mut self, sharers: u32) {
        self.sharers = sharers;
    }

    /// Appends a step that waits for the given ones.
    pub(crate) fn push(&mut self, action: Action, after: After) -> StepId {
        if self.actions.capacity() == 0 {
            self.actions.reserve(8);
            self.afters.reserve(8);
            self.touches.reserve(8);
        }
        let touch = Touch::of(&action);
        self.see(&touch);
        self.touches.push_back(touch);
        self.actions.push_back(action);
        self.afters.push_back(after);
        self.end() - 1
    }

    fn see(&mut self, touch: &Touch) {
        for (extent, is_write) in [(&touch.read, false), (&touch.write, true)] {
            if let Some(seen) = self.seen.get_mut(extent.buffer()).filter(|_| !extent.is_empty()) {
                seen.read.cover(extent);
                if is_write {
                    seen.write.cover(extent);
                }
            }
        }
    }

    /// Forgets what no earlier step can conflict with, because it is where none has been.
    fn unseen(&self, touch: &mut Touch) {
        if self
            .seen
            .get(touch.read.buffer())
            .is_some_and(|seen| !seen.write.meets(&touch.read))
        {
            touch.read = Extent::NONE;
        }
        if self
            .seen
            .get(touch.write.buffer())
            .is_some_and(|seen| !seen.read.meets(&touch.write))
        {
            touch.write = Extent::NONE;
        }
    }

    /// Number of the next step that is written.
    fn end(&self) -> StepId {
        self.base + self.afters.len() as StepId
    }

    /// Appends a step that waits for those it conflicts with.
    fn add(&mut self, action: Action) -> StepId {
        self.add_after(action, None)
    }

    /// The same, and for one more.
    pub(crate) fn add_after(&mut self, action: Action, before: Option<StepId>) -> StepId {
        let mut after = self.conflicts(&action);
        after.extend(self.awaited.iter().copied().chain(before));
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

    /// Copies what the steps of all pieces read: conflicts with it would be forgotten after a while.
    pub(crate) fn copy_first(&mut self, from: Slice, to: Slice) {
        let copied = self.add(Action::Copy { from, to });
        self.awaited.add(copied);
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
        self.window = cut.window;
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
        starts[lane] = self.end();
        body(self, cut.piece(*number));
        if *number == 0 {
            // As much as all lanes and the next piece need: many plans may be in memory at a time.
            let all = self.afters.len() * cut.lanes.min(cut.pieces()) as usize;
            self.afters.reserve_exact(all);
            self.touches.reserve_exact(all);
        }
        *number += 1;
        *number < cut.pieces()
    }

    /// Forgets the steps before one.
    fn forget(&mut self, before: StepId) {
        let given = self.afters.len() - self.actions.len();
        let gone = ((before - self.base) as usize).min(given);
        self.afters.drain(..gone);
        self.touches.drain(..gone);
        self.base += gone as StepId;
    }

    /// Earlier steps that an action must wait for. Those that the found ones already wait for are left out where that
    /// is seen.
    fn conflicts(&self, action: &Action) -> After {
        let mut open = Touch::of(action);
        self.unseen(&mut open);
        let mut after = After::NONE;
        let (first, second) = self.touches.as_slices();
        for (touches, start) in [(second, first.len()), (first, 0)] {
            let mut end = touches.len();
            while let Some(place) = open.last_conflict(&touches[..end]) {
                let id = self.base + (start + place) as StepId;
                if !after
                    .iter()
                    .any(|&f| self.afters[(f - self.base) as usize].contains(&id))
                {
                    after.append(id);
                }
                open.settle(&touches[place]);
                end = place;
            }
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
        loop {
            let place = self.afters.len() - self.actions.len();
            if let Some(action) = self.actions.pop_front() {
                let after = self.afters[place].clone();
                return Some(Step { action, after });
            }
            let mut filler = self.filler.take()?;
            if filler(self) {
                self.filler = Some(filler);
            }
        }
    }

    fn ample_window(&self) -> usize {
        self.window.max(WINDOW)
    }

    fn sharers(&self) -> u32 {
        self.sharers.max(1)
    }

    fn forwards(&self) -> bool {
        self.actions.iter().any(|a| matches!(a, Action::Forward { .. }))
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
            window: 0,
            turns: Turns::default(),
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
            script.actions.clear();
            most = most.max(script.afters.len());
        }
        assert_eq!(script.end(), 2 << 14);
        assert!(most <= 10, "{most} steps at a time");
        // A place is written again only after it was read.
        assert!(script.afters.iter().skip(8).all(|after| !after.is_empty()));
    }
}
