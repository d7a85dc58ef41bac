// SPDX-License-Identifier: Apache-2.0
//! One process: the window of its plan, and until when it is busy.
//!
//! A simulation holds the windows of all processes at once and touches one after the other: what counts is how many
//! bytes that is. A step takes 32 here. Receives that wait are found by looking through all of them: what arrives
//! belongs to one of the first.

use super::outcome::NONE;
use super::queue::{Busy, Moment};
use super::wires::LinkDirection;
use isthmus_schedule::Operation;
use isthmus_schedule::step::{Action, Plan, Rank, Step, StepId};
use std::collections::VecDeque;

/// What a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Send,
    Receive,
    /// A receive that becomes a send.
    Forward,
    Reduce,
    Copy,
    /// Something that all of a circle (as `peer` says) do together: as many units as the one gives or takes.
    Together,
    /// The same with a block of its own for each of the others.
    Blocks,
    /// As `Together`, and the units are combined with those of all others.
    Combine,
}

/// As much of an [`Action`] as takes time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) units: u64,
    /// The other process of a message.
    pub(super) peer: Rank,
    pub(super) slot: u16,
    pub(super) task: Task,
}

impl Work {
    fn of(action: &Action) -> Self {
        let work = |task, units, peer, slot| Self {
            units,
            peer,
            slot,
            task,
        };
        match *action {
            Action::Send { to, data, slot } => work(Task::Send, data.length, to, slot),
            Action::Receive { from, data, slot } => work(Task::Receive, data.length, from, slot),
            Action::Forward { from, slot, .. } => work(Task::Forward, 0, from, slot),
            Action::Reduce { target, .. } => work(Task::Reduce, target.length, 0, 0),
            Action::Copy { to, .. } => work(Task::Copy, to.length, 0, 0),
            Action::Together(together) => {
                let task = match together.what {
                    what if what.reduces() && together.take.length > 0 => Task::Combine,
                    Operation::Gather | Operation::Scatter => Task::Blocks,
                    _ => Task::Together,
                };
                let circle = together.circle as Rank;
                work(task, together.give.length.max(together.take.length), circle, 0)
            }
        }
    }
}

/// A step in the window.
struct State {
    work: Work,
    /// Incomplete steps that it waits for, or [`DONE`].
    waits: u32,
    /// The first two of those that wait for it, as distances; 0: none.
    near: [u16; 2],
    /// The last of the others, in `Process::edges`; [`NONE`].
    others: u32,
    /// To whom a message is handed on.
    onward: Rank,
}

/// Of `State::waits`: complete.
const DONE: u32 = u32::MAX;

/// A receive that waits for its message.
struct Posted {
    from: Rank,
    step: StepId,
    slot: u16,
}

/// A step that waits, and the edge of the one before it in its list.
struct Edge {
    step: StepId,
    next: u32,
}

pub(super) struct Process {
    /// Busy until then.
    free_at: u64,
    window: VecDeque<State>,
    /// Receives that wait, in the order in which they began to.
    posted: VecDeque<Posted>,
    base: StepId,
    room: u32,
    /// Record of what it is busy with.
    last: u32,
    /// First of the unused edges.
    unused: u32,
    edges: Vec<Edge>,
    plan: Option<Box<dyn Plan>>,
    /// The link out of it into its node.
    pub(super) lane: LinkDirection,
}

impl Process {
    pub(super) fn new(plan: Box<dyn Plan>) -> Self {
        Self {
            free_at: 0,
            window: VecDeque::new(),
            posted: VecDeque::new(),
            base: 0,
            room: u32::try_from(plan.ample_window()).unwrap_or(u32::MAX),
            last: NONE,
            unused: NONE,
            edges: Vec::new(),
            plan: Some(plan),
            lane: LinkDirection::new(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.plan.is_none() && self.window.is_empty()
    }

    pub(super) fn work(&self, step: StepId) -> Work {
        self.window[(step - self.base) as usize].work
    }

    /// A message of so many units has come that is to be handed on.
    pub(super) fn carry(&mut self, step: StepId, units: u64) {
        self.window[(step - self.base) as usize].work.units = units;
    }

    /// A message has been received that is to be handed on: the step becomes a send.
    pub(super) fn turn(&mut self, step: StepId) {
        let state = &mut self.window[(step - self.base) as usize];
        state.work.task = Task::Send;
        state.work.peer = state.onward;
    }

    /// Learns steps while the window has room, and reports those that can run at once.
    pub(super) fn fill(&mut self, ready: &mut Vec<StepId>) {
        while self.window.len() < self.room as usize {
            let Some(plan) = &mut self.plan else { return };
            match plan.next_step() {
                Some(step) => self.learn(&step, ready),
                None => self.plan = None,
            }
        }
    }

    fn learn(&mut self, step: &Step, ready: &mut Vec<StepId>) {
        let base = self.base;
        let number = base + self.window.len() as StepId;
        let mut waits = 0;
        for &before in step.after.iter().filter(|&&b| b >= base) {
            let place = (before - base) as usize;
            if self.window[place].waits != DONE {
                self.depend(place, number);
                waits += 1;
            }
        }
        if waits == 0 {
            ready.push(number);
        }
        self.window.push_back(State {
            work: Work::of(&step.action),
            waits,
            near: [0; 2],
            others: NONE,
            onward: match step.action {
                Action::Forward { to, .. } => to,
                _ => NONE,
            },
        });
    }

    /// A step waits for the one at this place.
    fn depend(&mut self, place: usize, step: StepId) {
        let distance = step - self.base - place as StepId;
        let state = &mut self.window[place];
        if state.others == NONE {
            if let (Some(free), Ok(distance)) = (state.near.iter_mut().find(|n| **n == 0), u16::try_from(distance)) {
                *free = distance;
                return;
            }
        }
        let next = state.others;
        self.window[place].others = self.edge(step, next);
    }

    fn edge(&mut self, step: StepId, next: u32) -> u32 {
        let edge = Edge { step, next };
        if self.unused == NONE {
            self.edges.push(edge);
            return self.edges.len() as u32 - 1;
        }
        let number = self.unused;
        self.unused = self.edges[number as usize].next;
        self.edges[number as usize] = edge;
        number
    }

    /// A step is complete. Reports those that can run now.
    pub(super) fn complete(&mut self, step: StepId, ready: &mut Vec<StepId>) {
        let state = &mut self.window[(step - self.base) as usize];
        state.waits = DONE;
        let (near, mut at) = (state.near, state.others);
        for distance in near.into_iter().filter(|&n| n > 0) {
            self.release(step + StepId::from(distance), ready);
        }
        let known = ready.len();
        while at != NONE {
            let Edge { step, next } = self.edges[at as usize];
            self.edges[at as usize].next = self.unused;
            self.unused = at;
            at = next;
            self.release(step, ready);
        }
        // That list has the last one first.
        ready[known..].reverse();
        while self.window.front().is_some_and(|s| s.waits == DONE) {
            self.window.pop_front();
            self.base += 1;
        }
        self.fill(ready);
        if self.window.is_empty() {
            // Most processes are over long before the last one.
            self.window = VecDeque::new();
            self.posted = VecDeque::new();
            self.edges = Vec::new();
            self.unused = NONE;
        }
    }

    /// A step waits for one step less.
    fn release(&mut self, step: StepId, ready: &mut Vec<StepId>) {
        let state = &mut self.window[(step - self.base) as usize];
        state.waits -= 1;
        if state.waits == 0 {
            ready.push(step);
        }
    }

    /// A receive waits for its message.
    pub(super) fn post(&mut self, from: Rank, slot: u16, step: StepId) {
        self.posted.push_back(Posted { from, step, slot });
    }

    /// A message arrives: the first receive that waits for it, which does not wait any more.
    pub(super) fn take(&mut self, from: Rank, slot: u16) -> Option<StepId> {
        let place = self.posted.iter().position(|p| p.from == from && p.slot == slot)?;
        self.posted.remove(place).map(|posted| posted.step)
    }

    /// Occupies the process for `cost` from `now` on, or from when it is free. `record` is that of the new occupation.
    pub(super) fn occupy(&mut self, now: Moment, cost: u64, record: u32) -> Busy {
        let cause = if self.free_at > now.time { self.last } else { now.cause };
        let begin = now.time.max(self.free_at);
        self.free_at = begin.saturating_add(cost);
        self.last = record;
        Busy {
            begin,
            end: self.free_at,
            cause,
        }
    }

    /// The record of what it was busy with last.
    pub(super) fn last(&mut self) -> &mut u32 {
        &mut self.last
    }
}
