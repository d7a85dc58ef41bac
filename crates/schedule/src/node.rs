// SPDX-License-Identifier: Apache-2.0
//! What the processes of each node do together in its memory, in operations over several nodes, and what those of a job
//! of a vendor MPI do together with that MPI.
//!
//! Where the innermost tier is that of nodes, [`Form::Together`] takes the place of its trees: one step of all
//! processes of a node instead of messages. In a [network of whole jobs](Network::with_whole_jobs) the innermost tier
//! is that of these jobs (and of single nodes elsewhere), and a step is a collective operation of the MPI of the job.
//! On the way up they combine their contributions, or put their blocks together, and one of them, who acts for the node
//! ([`Seat`](crate::tree::Seat)), has the result and goes on with the outer tiers; on the way down he gives, and the
//! others take.
//! Everything else of a plan is as with messages.
//!
//! The steps of a direction begin in the same order at all processes of a node, since each waits for the one before it.
//! Those of the other direction do not: the pieces of a long message go up while earlier ones are on their way through
//! the wide area.

use crate::choose::{self, Question};
use crate::form::Form;
use crate::script::Script;
use crate::step::{Action, After, Circle, Rank, Slice, StepId, Together};
use crate::strategy::Strategy;
use crate::tree::Family;
use crate::{Blocks, Call, Crossings, Network, Operation, Steps, in_order};
use isthmus_topology::Level;
use std::ops::Range;
use std::sync::Arc;

/// Who takes steps together in a call, if they may ([`Call::nodes`]): the same on all members. `natively`: whether the
/// MPIs of machines can do what it does.
pub fn steps_together(call: &Call, network: &Arc<Network>, natively: bool) -> Steps {
    let has_data = call.operation == Operation::Barrier || !matches!(call.blocks, Blocks::Equal(0));
    let jobs = network.with_whole_jobs().filter(|_| natively);
    let takes = |network: &Network| network.takes_steps(call.operation);
    if !has_data || call.fixed || !(takes(network) || jobs.is_some_and(|jobs| takes(jobs))) {
        return Steps::None;
    }
    let call = Call {
        nodes: true,
        ..call.clone()
    };
    let messages = choose::strategy(&call, in_order(&call, network));
    if jobs.is_some_and(|jobs| takes_jobs(&call, jobs, &messages)) {
        return Steps::Jobs;
    }
    match messages.meets_on_nodes() {
        true => Steps::Nodes,
        false => Steps::None,
    }
}

/// Whether those of jobs of vendor MPIs take steps together in a call: where an override says so, and, with jobs
/// over several nodes, where it costs no more than the way without. What moves inside a node alone we move as well as
/// any.
fn takes_jobs(call: &Call, network: &Arc<Network>, without: &Strategy) -> bool {
    let Some(said) = considers_jobs(call, network) else {
        return false;
    };
    let with = choose::strategy(call, in_order(call, network));
    with.meets_on_nodes() && (said == Said::Together || with.cost.total() <= without.cost.total())
}

/// What was said of such steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Nothing,
    Together,
}

/// Whether they come into question, in a network of whole jobs, and why. `None`: they do not.
pub(crate) fn considers_jobs(call: &Call, network: &Arc<Network>) -> Option<Said> {
    if !network.takes_steps(call.operation) {
        return None;
    }
    let question = Question::of(call, network);
    let said = network
        .overrides()
        .about(call.operation, Some(Level::Vendor), question.bytes());
    if said.name.is_some_and(|name| name == crate::form::TOGETHER) {
        return Some(Said::Together);
    }
    network.jobs().filter(|jobs| jobs.nodes > 1).map(|_| Said::Nothing)
}

impl Strategy {
    /// Whether processes of a node take steps together.
    pub(crate) fn meets_on_nodes(&self) -> bool {
        matches!(self.forms.last(), Some(Form::Together))
    }

    /// What crosses the levels, of all that would with trees everywhere: nothing inside nodes and jobs whose processes
    /// take steps together.
    pub(crate) fn crossing<What>(&self, network: &Network, all: Crossings<What>) -> Crossings<What> {
        match self.meets_on_nodes() {
            true => all.without_inside(network),
            false => all,
        }
    }
}

impl Family {
    /// Whether another process of the node acts for this one: then it has a part in the steps of the node and in
    /// nothing else.
    pub(crate) fn follows(&self) -> bool {
        self.seat.is_some_and(|seat| !seat.leads)
    }

    /// The step of the node, if it takes one, in which `give` of all processes is combined in `take` of the one who
    /// acts for them.
    pub(crate) fn combine(&self, script: &mut Script, give: Slice, take: Slice) {
        if let Some(seat) = self.seat {
            let take = if seat.leads { take } else { Slice::NOTHING };
            script.on_node(Circle::Up, Operation::Reduce, seat.leader, give, take);
        }
    }

    /// Puts the own block where those of others will be: with the step of the node in which the one who acts for it
    /// gets everybody's equal block, if it takes one, or by a copy. `at`: where he has the blocks of some positions.
    pub(crate) fn put_together(&self, script: &mut Script, own: Slice, at: impl Fn(Range<u32>) -> Slice) {
        let Some(seat) = self.seat else {
            return script.copy(own, at(self.position..self.position + 1));
        };
        let take = match seat.leads {
            true => at(seat.start..seat.end),
            false => Slice::NOTHING,
        };
        script.on_node(Circle::Up, Operation::Gather, seat.leader, own, take);
    }

    /// The step of the node, if it takes one, in which everybody gets a block of his; they are equal, of so many units.
    /// At the root of an operation in place the own block is there already: `own` is nothing.
    pub(crate) fn deal_out(&self, script: &mut Script, units: u64, own: Slice, at: impl Fn(Range<u32>) -> Slice) {
        if let Some(seat) = self.seat {
            let give = if seat.leads {
                at(seat.start..seat.end)
            } else {
                Slice::NOTHING
            };
            script.with_blocks(Circle::Down, Operation::Scatter, seat.leader, units, give, own);
        }
    }

    /// The step of the node, if it takes one, in which the others get what the one who acts for them has.
    pub(crate) fn spread(&self, script: &mut Script, data: Slice) {
        if let Some(seat) = self.seat {
            let (give, take) = match seat.leads {
                true => (data, Slice::NOTHING),
                false => (Slice::NOTHING, data),
            };
            script.on_node(Circle::Down, Operation::Bcast, seat.leader, give, take);
        }
    }
}

impl Script {
    /// A step of the processes of this node, after those of the same direction.
    fn on_node(&mut self, circle: Circle, what: Operation, root: Rank, give: Slice, take: Slice) {
        let block = match what {
            Operation::Gather => give.length,
            _ => give.length.max(take.length),
        };
        self.with_blocks(circle, what, root, block, give, take);
    }

    /// The same with blocks of so many units.
    fn with_blocks(&mut self, circle: Circle, what: Operation, root: Rank, block: u64, give: Slice, take: Slice) {
        let step = Together {
            circle,
            what,
            root,
            block,
            give: give.or_nothing(),
            take: take.or_nothing(),
        };
        let direction = usize::from(circle == Circle::Down);
        let step = self.add_after(Action::Together(step), self.met[direction]);
        self.met[direction] = Some(step);
    }

    /// A barrier of the processes of this node, after these steps.
    pub(crate) fn barrier_on_node(&mut self, circle: Circle, after: After) -> StepId {
        let step = Together {
            circle,
            what: Operation::Barrier,
            root: 0,
            block: 0,
            give: Slice::NOTHING,
            take: Slice::NOTHING,
        };
        self.push(Action::Together(step), after)
    }
}
