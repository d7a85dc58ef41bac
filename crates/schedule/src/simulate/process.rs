// SPDX-License-Identifier: Apache-2.0
//! One process: the window of its plan, and until when it is busy.

use super::outcome::NONE;
use crate::step::{Action, Plan, Step, StepId};
use std::collections::VecDeque;

/// A step in the window.
struct State {
    action: Action,
    /// Incomplete steps that it waits for.
    waits: u32,
    done: bool,
    dependents: Vec<StepId>,
}

pub(super) struct Process {
    plan: Option<Box<dyn Plan>>,
    base: StepId,
    window: VecDeque<State>,
    room: usize,
    /// Busy until then.
    free_at: u64,
    /// Record of what it is busy with.
    last: u32,
}

impl Process {
    pub(super) fn new(plan: Box<dyn Plan>) -> Self {
        Self {
            room: plan.window(),
            plan: Some(plan),
            base: 0,
            window: VecDeque::new(),
            free_at: 0,
            last: NONE,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.plan.is_none() && self.window.is_empty()
    }

    pub(super) fn action(&self, step: StepId) -> Action {
        self.window[(step - self.base) as usize].action
    }

    /// Learns steps while the window has room, and reports those that can run at once.
    pub(super) fn fill(&mut self, ready: &mut Vec<StepId>) {
        while self.window.len() < self.room {
            let Some(plan) = &mut self.plan else { return };
            match plan.next_step() {
                Some(step) => self.learn(&step, ready),
                None => self.plan = None,
            }
        }
    }

    fn learn(&mut self, step: &Step, ready: &mut Vec<StepId>) {
        let number = self.base + self.window.len() as StepId;
        let mut waits = 0;
        for &before in step.after.iter().filter(|&&b| b >= self.base) {
            let earlier = &mut self.window[(before - self.base) as usize];
            if !earlier.done {
                earlier.dependents.push(number);
                waits += 1;
            }
        }
        if waits == 0 {
            ready.push(number);
        }
        self.window.push_back(State {
            action: step.action,
            waits,
            done: false,
            dependents: Vec::new(),
        });
    }

    /// A step is complete. Reports those that can run now.
    pub(super) fn complete(&mut self, step: StepId, ready: &mut Vec<StepId>) {
        let state = &mut self.window[(step - self.base) as usize];
        state.done = true;
        for dependent in std::mem::take(&mut state.dependents) {
            let state = &mut self.window[(dependent - self.base) as usize];
            state.waits -= 1;
            if state.waits == 0 {
                ready.push(dependent);
            }
        }
        while self.window.front().is_some_and(|s| s.done) {
            self.window.pop_front();
            self.base += 1;
        }
        self.fill(ready);
        if self.window.is_empty() {
            // Most processes are over long before the last one.
            self.window = VecDeque::new();
        }
    }

    /// Occupies the process for `cost` from `now` on, or from when it is free. Gives begin and end, and what decided the begin: `cause`, or what
    /// the process was busy with. `record` is that of the new occupation.
    pub(super) fn occupy(&mut self, now: u64, cost: u64, cause: u32, record: u32) -> (u64, u64, u32) {
        let cause = if self.free_at > now { self.last } else { cause };
        let begin = now.max(self.free_at);
        self.free_at = begin.saturating_add(cost);
        self.last = record;
        (begin, self.free_at, cause)
    }
}
