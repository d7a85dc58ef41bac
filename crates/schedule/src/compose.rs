// SPDX-License-Identifier: Apache-2.0
//! Plans made of plans: stages one after the other, in each stage parts side by side, each part for some of the
//! processes.

use crate::step::{Action, After, Buffer, Plan, Rank, Slice, Step, StepId, WINDOW};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bits of a slot that a part has to itself; above them stands its number.
const SLOT_BITS: u32 = 14;
/// Ends of a stage that are gathered before one step waits for all of them.
const ENDS: usize = 32;

/// The processes of a part: rank in the whole by rank in the part.
#[derive(Clone, Debug)]
pub enum Members {
    /// All, under their ranks.
    All,
    /// Consecutive ranks from this one on.
    From(Rank),
    /// These.
    Listed(Arc<[Rank]>),
}

impl Members {
    fn rank(&self, member: Rank) -> Rank {
        match self {
            Self::All => member,
            Self::From(first) => first + member,
            Self::Listed(ranks) => ranks[member as usize],
        }
    }
}

/// A plan as part of a larger one.
pub struct SubPlan {
    /// Tells its messages from those of other parts: equal on its members, at most 3.
    pub number: u16,
    /// What it does.
    pub plan: Box<dyn Plan>,
    /// Who takes part.
    pub members: Members,
    /// Where its `Send` is.
    pub send: Slice,
    /// Where its `Recv` is.
    pub recv: Slice,
}

/// A part while its steps are being asked for.
struct Running {
    part: SubPlan,
    /// First scratch buffer.
    scratch: usize,
    /// Number in the whole of each of its steps.
    numbers: Vec<StepId>,
    ended: bool,
}

/// The larger plan.
#[derive(Default)]
pub struct Composite {
    scratch: Vec<u64>,
    stages: VecDeque<Vec<Running>>,
    /// Part of the stage whose turn it is.
    turn: usize,
    number: StepId,
    /// What every step of the stage waits for.
    entry: After,
    /// Steps of the stage that no later one waits for.
    ends: Vec<StepId>,
}

impl Composite {
    /// Asks for scratch memory that stages share.
    pub(crate) fn memory(&mut self, units: u64) -> Slice {
        if units == 0 {
            return Slice::NOTHING;
        }
        self.scratch.push(units);
        Slice {
            buffer: Buffer::Scratch(self.scratch.len() as u8 - 1),
            offset: 0,
            length: units,
        }
    }

    /// Appends a stage. What this process does in it begins when what it does in earlier ones is complete.
    pub fn stage(&mut self, parts: impl IntoIterator<Item = SubPlan>) {
        let mut running = Vec::new();
        for part in parts {
            let scratch = self.scratch.len();
            self.scratch.extend_from_slice(part.plan.scratch());
            running.push(Running {
                part,
                scratch,
                numbers: Vec::new(),
                ended: false,
            });
        }
        self.stages.push_back(running);
    }

    /// The next step of a part of the stage, in turn.
    fn next_of_stage(&mut self) -> Option<Step> {
        let stage = self.stages.front_mut()?;
        for _ in 0..stage.len() {
            self.turn = (self.turn + 1) % stage.len();
            let running = &mut stage[self.turn];
            if running.ended {
                continue;
            }
            match running.part.plan.next_step() {
                Some(step) => {
                    let step = running.place(step, &self.entry);
                    running.numbers.push(self.number);
                    return Some(step);
                }
                None => running.ended = true,
            }
        }
        None
    }

    fn give(&mut self, step: Step) -> Step {
        self.ends.retain(|end| !step.after.contains(end));
        self.ends.push(self.number);
        self.number += 1;
        step
    }

    /// A step that waits for all ends.
    fn join(&mut self) -> Step {
        let after = self.ends.iter().copied().collect();
        let action = Action::Copy {
            from: Slice::NOTHING,
            to: Slice::NOTHING,
        };
        self.give(Step { action, after })
    }
}

impl Running {
    /// A step of the part as a step of the whole.
    fn place(&self, step: Step, entry: &After) -> Step {
        let after = match step.after.is_empty() {
            true => entry.clone(),
            false => step.after.iter().map(|&id| self.numbers[id as usize]).collect(),
        };
        let data = |slice: Slice| self.slice(slice);
        let slot = |slot: u16| self.part.number << SLOT_BITS | slot & ((1 << SLOT_BITS) - 1);
        let rank = |member: Rank| self.part.members.rank(member);
        let action = match step.action {
            Action::Send { to, data: d, slot: s } => Action::Send {
                to: rank(to),
                data: data(d),
                slot: slot(s),
            },
            Action::Receive { from, data: d, slot: s } => Action::Receive {
                from: rank(from),
                data: data(d),
                slot: slot(s),
            },
            Action::Forward {
                from,
                to,
                most,
                slot: s,
            } => Action::Forward {
                from: rank(from),
                to: rank(to),
                most,
                slot: slot(s),
            },
            Action::Reduce {
                operand,
                target,
                operand_is_left,
            } => Action::Reduce {
                operand: data(operand),
                target: data(target),
                operand_is_left,
            },
            Action::Copy { from, to } => Action::Copy {
                from: data(from),
                to: data(to),
            },
            // Parts are planned for some of the processes, who have no memory of their own, or are the whole.
            Action::Together(together) => Action::Together(together),
        };
        Step { action, after }
    }

    fn slice(&self, slice: Slice) -> Slice {
        if slice.length == 0 {
            return Slice::NOTHING;
        }
        let (buffer, offset) = match slice.buffer {
            Buffer::Send => (self.part.send.buffer, self.part.send.offset),
            Buffer::Recv => (self.part.recv.buffer, self.part.recv.offset),
            Buffer::Scratch(i) => (Buffer::Scratch(self.scratch as u8 + i), 0),
        };
        Slice {
            buffer,
            offset: offset + slice.offset,
            length: slice.length,
        }
    }
}

impl Plan for Composite {
    fn scratch(&self) -> &[u64] {
        &self.scratch
    }

    fn ample_window(&self) -> usize {
        let plans = self.stages.iter().flatten().map(|running| &running.part.plan);
        plans.map(|plan| plan.ample_window()).max().unwrap_or(WINDOW)
    }

    fn forwards(&self) -> bool {
        let mut plans = self.stages.iter().flatten().map(|running| &running.part.plan);
        plans.any(|plan| plan.forwards())
    }

    fn next_step(&mut self) -> Option<Step> {
        loop {
            if self.ends.len() >= ENDS {
                return Some(self.join());
            }
            if let Some(step) = self.next_of_stage() {
                return Some(self.give(step));
            }
            // The stage is over: what remains of it is what the next one waits for.
            if self.stages.len() > 1 && self.ends.len() > After::INLINE {
                return Some(self.join());
            }
            self.stages.pop_front()?;
            if !self.ends.is_empty() {
                self.entry = self.ends.drain(..).collect();
            }
            self.turn = 0;
        }
    }
}
