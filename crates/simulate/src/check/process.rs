// SPDX-License-Identifier: Apache-2.0
//! One process of a run: its memory and its window of incomplete steps.

use super::Fault;
use super::token::Value;
use isthmus_schedule::Touch;
use isthmus_schedule::step::{Action, Buffer, Plan, Rank, Slice, Step, StepId, WINDOW};
use isthmus_topology::Level;
use std::collections::BTreeMap;

/// To whom a message is handed on, and its slot.
type Onward = (Rank, u16);

/// The user's buffers of one process. A missing buffer is `None`; a unit without a value has not been written.
#[derive(Clone, Debug)]
pub(crate) struct Memory<V> {
    pub(crate) send: Option<Vec<Option<V>>>,
    pub(crate) recv: Option<Vec<Option<V>>>,
}

/// What something was caused by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cause {
    /// Processes that had entered the call.
    pub(crate) ranks: u64,
    /// Most messages of a level in one chain of causes.
    pub(crate) trips: [u32; Level::COUNT],
}

impl Cause {
    /// Caused by both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            ranks: self.ranks | other.ranks,
            trips: std::array::from_fn(|i| self.trips[i].max(other.trips[i])),
        }
    }

    /// Caused by a message that this has caused.
    pub(crate) fn message(mut self, level: Level) -> Self {
        self.trips[level.index()] += 1;
        self
    }
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
    /// Of each step.
    causes: Vec<Cause>,
    /// What has come and is to be handed on, by step.
    carried: BTreeMap<StepId, Vec<V>>,
}

impl<V: Value> Process<V> {
    pub(crate) fn new(plan: Box<dyn Plan>, memory: Memory<V>, window: usize) -> Self {
        let scratch = plan.scratch().iter().map(|&n| vec![None; n as usize]).collect();
        let window = if plan.window() > WINDOW { plan.window() } else { window };
        Self {
            plan,
            memory,
            scratch,
            window,
            incomplete: BTreeMap::new(),
            fetched: 0,
            ended: false,
            causes: Vec::new(),
            carried: BTreeMap::new(),
        }
    }

    /// True when all steps are complete.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.incomplete.is_empty()
    }

    /// Fills the window and gives the steps that have become ready; they count as started.
    pub(crate) fn ready(&mut self) -> Result<Vec<StepId>, Fault> {
        while !self.ended && self.fetched - self.first_incomplete() < self.window as StepId {
            let Some(step) = self.plan.next_step() else {
                self.ended = true;
                break;
            };
            let id = self.fetched;
            self.examine(id, &step)?;
            self.causes.push(Cause::default());
            self.incomplete.insert(id, (step, false));
            self.fetched += 1;
        }
        let waits = |step: &Step| step.after.iter().any(|a| self.incomplete.contains_key(a));
        let ready: Vec<StepId> = self
            .incomplete
            .iter()
            .filter(|(_, (step, started))| !started && !waits(step))
            .map(|(&id, _)| id)
            .collect();
        for id in &ready {
            if let Some((_, started)) = self.incomplete.get_mut(id) {
                *started = true;
            }
        }
        Ok(ready)
    }

    fn first_incomplete(&self) -> StepId {
        self.incomplete.first_key_value().map_or(self.fetched, |(&id, _)| id)
    }

    /// A new step may only wait for earlier ones, and must be ordered after every incomplete one that it conflicts
    /// with.
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
                return Err(Fault::new(format!(
                    "{:?} races with step {other}, {:?}",
                    step.action, earlier.action
                )));
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

    /// What had to happen before an incomplete step could begin.
    pub(crate) fn causes(&self, id: StepId, rank: u32) -> Cause {
        let after = self.incomplete[&id].0.after.iter();
        after.fold(
            Cause {
                ranks: 1 << rank,
                ..Cause::default()
            },
            |all, &a| all.and(self.causes[a as usize]),
        )
    }

    pub(crate) fn set_causes(&mut self, id: StepId, causes: Cause) {
        self.causes[id as usize] = causes;
    }

    /// What had to happen before the process could leave.
    pub(crate) fn all_causes(&self, rank: u32) -> Cause {
        self.causes.iter().fold(
            Cause {
                ranks: 1 << rank,
                ..Cause::default()
            },
            |all, &c| all.and(c),
        )
    }

    /// Carries out a copy or a reduction.
    pub(crate) fn compute(&mut self, action: &Action, commutative: bool) -> Result<(), Fault> {
        match *action {
            Action::Copy { from, to } => {
                let values = self.read(from)?;
                self.write(to, values)
            }
            Action::Reduce {
                operand,
                target,
                operand_is_left,
            } => {
                let (a, b) = (self.read(operand)?, self.read(target)?);
                if a.len() != b.len() {
                    return Err(Fault::new("operands have different lengths"));
                }
                let pair = |(a, b): (V, V)| {
                    if operand_is_left {
                        V::combine(&a, &b, commutative)
                    } else {
                        V::combine(&b, &a, commutative)
                    }
                };
                let values = a.into_iter().zip(b).map(pair).collect::<Result<_, _>>()?;
                self.write(target, values)
            }
            Action::Send { .. } | Action::Receive { .. } | Action::Forward { .. } | Action::Together(_) => Ok(()),
        }
    }

    /// What a step sends, and what it is caused by. The step is complete then.
    pub(crate) fn send(&mut self, id: StepId, rank: Rank) -> Result<(Vec<V>, Cause), Fault> {
        let (values, causes) = match (self.action(id), self.carried.remove(&id)) {
            (Action::Send { data, .. }, _) => (self.read(data)?, self.causes(id, rank)),
            (_, Some(values)) => (values, self.causes[id as usize]),
            (action, None) => unreachable!("{action:?} sends nothing"),
        };
        self.set_causes(id, causes);
        self.complete(id);
        Ok((values, causes))
    }

    /// A step receives a message. Gives to whom it is to be handed on; otherwise the step is complete.
    pub(crate) fn receive(
        &mut self,
        id: StepId,
        rank: Rank,
        values: Vec<V>,
        message: Cause,
    ) -> Result<Option<Onward>, Fault> {
        self.set_causes(id, self.causes(id, rank).and(message));
        match self.action(id) {
            Action::Receive { data, .. } => self.write(data, values)?,
            Action::Forward { to, most, slot, .. } => {
                if values.len() as u64 > most {
                    return Err(Fault::new(format!("{} units arrive, at most {most}", values.len())));
                }
                self.carried.insert(id, values);
                return Ok(Some((to, slot)));
            }
            action => unreachable!("{action:?} receives nothing"),
        }
        self.complete(id);
        Ok(None)
    }

    pub(crate) fn read(&self, slice: Slice) -> Result<Vec<V>, Fault> {
        if slice == Slice::NOTHING {
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
        if slice == Slice::NOTHING {
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
    let sent = |action: &Action| match *action {
        Action::Send { to, slot, .. } | Action::Forward { to, slot, .. } => Some((to, slot)),
        _ => None,
    };
    let received = |action: &Action| match *action {
        Action::Receive { from, slot, .. } | Action::Forward { from, slot, .. } => Some((from, slot)),
        _ => None,
    };
    let same = |a: Option<(Rank, u16)>, b| a.is_some() && a == b;
    same(sent(a), sent(b)) || same(received(a), received(b))
}
