// SPDX-License-Identifier: Apache-2.0
//! One process of a run: its memory and its window of incomplete steps.

use super::Fault;
use super::token::Value;
use crate::script::Touch;
use crate::step::{Action, Buffer, Plan, Slice, Step, StepId};
use std::collections::BTreeMap;

/// The user's buffers of one process. A missing buffer is `None`; a unit without a value has not been written.
#[derive(Clone, Debug)]
pub(crate) struct Memory<V> {
    pub(crate) send: Option<Vec<Option<V>>>,
    pub(crate) recv: Option<Vec<Option<V>>>,
}

pub(crate) struct Process<V> {
    plan: Box<dyn Plan>,
    pub(crate) memory: Memory<V>,
    scratch: Vec<Vec<Option<V>>>,
    window: usize,
    /// Incomplete steps, and whether they have been started.
    incomplete: BTreeMap<StepId, (Step, bool)>,
    fetched: StepId,
    ended: bool,
    /// Of each step, the processes whose entry into the call it has been caused by.
    causes: Vec<u64>,
}

impl<V: Value> Process<V> {
    pub(crate) fn new(plan: Box<dyn Plan>, memory: Memory<V>, window: usize) -> Self {
        let scratch = plan.scratch().iter().map(|&n| vec![None; n as usize]).collect();
        Self { plan, memory, scratch, window, incomplete: BTreeMap::new(), fetched: 0, ended: false, causes: Vec::new() }
    }

    /// True when all steps are complete.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.incomplete.is_empty()
    }

    /// Fills the window and gives the steps that have become ready; they count as started.
    pub(crate) fn ready(&mut self) -> Result<Vec<StepId>, Fault> {
        while !self.ended && self.incomplete.len() < self.window {
            let Some(step) = self.plan.next_step() else {
                self.ended = true;
                break;
            };
            let id = self.fetched;
            self.examine(id, &step)?;
            self.causes.push(step.after.iter().fold(0, |all, &a| all | self.causes[a as usize]));
            self.incomplete.insert(id, (step, false));
            self.fetched += 1;
        }
        let waits = |step: &Step| step.after.iter().any(|a| self.incomplete.contains_key(a));
        let ready: Vec<StepId> =
            self.incomplete.iter().filter(|(_, (step, started))| !started && !waits(step)).map(|(&id, _)| id).collect();
        for id in &ready {
            if let Some((_, started)) = self.incomplete.get_mut(id) {
                *started = true;
            }
        }
        Ok(ready)
    }

    /// A new step may only wait for earlier ones, and must be ordered after every incomplete one that it conflicts with.
    fn examine(&self, id: StepId, step: &Step) -> Result<(), Fault> {
        if let Some(later) = step.after.iter().find(|&&a| a >= id) {
            return Err(Fault::new(format!("waits for step {later}")));
        }
        let touch = Touch::of(&step.action);
        let mut ordered = None;
        for (&other, (earlier, _)) in &self.incomplete {
            let data = touch.conflicts(&Touch::of(&earlier.action));
            if !data && !same_message(&step.action, &earlier.action) {
                continue;
            }
            let ordered = ordered.get_or_insert_with(|| self.ancestors(step));
            if !ordered.contains(&other) {
                return Err(Fault::new(format!("{:?} races with step {other}, {:?}", step.action, earlier.action)));
            }
        }
        Ok(())
    }

    fn ancestors(&self, step: &Step) -> std::collections::BTreeSet<StepId> {
        let mut seen = std::collections::BTreeSet::new();
        let mut open: Vec<StepId> = step.after.to_vec();
        while let Some(id) = open.pop() {
            if let (Some((step, _)), true) = (self.incomplete.get(&id), seen.insert(id)) {
                open.extend(step.after.iter());
            }
        }
        seen
    }

    pub(crate) fn action(&self, id: StepId) -> Action {
        self.incomplete[&id].0.action
    }

    pub(crate) fn complete(&mut self, id: StepId) {
        self.incomplete.remove(&id);
    }

    /// Processes that had to enter the call before a step could begin, given that the process itself has.
    pub(crate) fn causes(&self, id: StepId, rank: u32) -> u64 {
        let waited = self.incomplete.get(&id).map_or(0, |(s, _)| s.after.iter().fold(0, |all, &a| all | self.causes[a as usize]));
        self.causes[id as usize] | waited | 1 << rank
    }

    pub(crate) fn add_causes(&mut self, id: StepId, causes: u64) {
        self.causes[id as usize] |= causes;
    }

    /// Processes that had to enter the call before this one could leave it.
    pub(crate) fn all_causes(&self, rank: u32) -> u64 {
        self.causes.iter().fold(1 << rank, |all, c| all | c)
    }

    /// Carries out a copy or a reduction.
    pub(crate) fn compute(&mut self, action: &Action, commutative: bool) -> Result<(), Fault> {
        match *action {
            Action::Copy { from, to } => {
                let values = self.read(from)?;
                self.write(to, values)
            }
            Action::Reduce { operand, target, operand_is_left } => {
                let (a, b) = (self.read(operand)?, self.read(target)?);
                if a.len() != b.len() {
                    return Err(Fault::new("operands have different lengths"));
                }
                let pair = |(a, b): (V, V)| {
                    if operand_is_left { V::combine(&a, &b, commutative) } else { V::combine(&b, &a, commutative) }
                };
                let values = a.into_iter().zip(b).map(pair).collect::<Result<_, _>>()?;
                self.write(target, values)
            }
            Action::Send { .. } | Action::Receive { .. } => Ok(()),
        }
    }

    pub(crate) fn read(&self, slice: Slice) -> Result<Vec<V>, Fault> {
        if slice.length == 0 {
            return Ok(Vec::new());
        }
        let whole = match slice.buffer {
            Buffer::Send => self.memory.send.as_ref(),
            Buffer::Recv => self.memory.recv.as_ref(),
            Buffer::Scratch(i) => self.scratch.get(usize::from(i)),
        };
        let units = whole.and_then(|w| w.get(slice.offset as usize..(slice.offset + slice.length) as usize));
        let units = units.ok_or_else(|| Fault::new(format!("{slice:?} is outside memory")))?;
        let all = units.iter().cloned().collect::<Option<_>>();
        all.ok_or_else(|| Fault::new(format!("{slice:?} is read before it is written")))
    }

    pub(crate) fn write(&mut self, slice: Slice, values: Vec<V>) -> Result<(), Fault> {
        if slice.length != values.len() as u64 {
            return Err(Fault::new(format!("{} units arrive in {slice:?}", values.len())));
        }
        if slice.length == 0 {
            return Ok(());
        }
        let whole = match slice.buffer {
            Buffer::Send => return Err(Fault::new("the user's input is written")),
            Buffer::Recv => self.memory.recv.as_mut(),
            Buffer::Scratch(i) => self.scratch.get_mut(usize::from(i)),
        };
        let units = whole.and_then(|w| w.get_mut(slice.offset as usize..(slice.offset + slice.length) as usize));
        let units = units.ok_or_else(|| Fault::new(format!("{slice:?} is outside memory")))?;
        for (unit, value) in units.iter_mut().zip(values) {
            *unit = Some(value);
        }
        Ok(())
    }
}

/// Two messages whose order would decide which is which.
fn same_message(a: &Action, b: &Action) -> bool {
    match (a, b) {
        (Action::Send { to: p, slot: s, .. }, Action::Send { to: q, slot: t, .. }) => (p, s) == (q, t),
        (Action::Receive { from: p, slot: s, .. }, Action::Receive { from: q, slot: t, .. }) => (p, s) == (q, t),
        _ => false,
    }
}
