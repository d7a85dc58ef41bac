// SPDX-License-Identifier: Apache-2.0
//! An operation that goes by a plan: its call and buffers, among whom, and how the engine is given it.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_engine::{Binding, Channel, Next, Operation, Request};
use isthmus_schedule::step::Plan;
use isthmus_schedule::{self as schedule, Blocks, Call, CountsPhase, Neighbours, Network, Sides, Steps};

mod counts;

use counts::bind_counts;

use crate::comm::{Comm, usable};
use crate::error::Result;
use crate::fail;
use crate::remembered::Plans;
use crate::world::World;

/// A collective operation that is to be planned.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) call: Call,
    pub(crate) binding: Binding,
    pub(crate) role: Role,
    /// Among whom, if that is decided before the start.
    pub(crate) among: Option<Among>,
    /// Who takes steps together.
    pub(crate) steps: Steps,
    /// Whose turn it takes where the members meet.
    pub(crate) turn: Turn,
    /// What is remembered of it, if not with the communicator: what it was made with stays.
    pub(crate) plans: Option<Arc<Plans>>,
    /// The communicator's channel with memory of its own.
    pub(crate) own: Option<Channel>,
}

/// Whose operation it is that takes a turn where the members meet, which all start in the same order as their others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It takes none: there is no such place, or it may be started in any order.
    None,
    Program,
    /// Part of a call that makes a communicator or opens a file.
    Library,
}

/// What this process does in an operation.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// Its part of the plan.
    Member,
    /// The same, and before it its part in a counts phase, for which it knows this (see [`CountsPhase`], `Send`).
    Counted(Vec<u64>),
    /// Nothing: it is in the root's group of an intercommunicator.
    Bystander,
}

impl Planned {
    pub(crate) fn new(call: Call, binding: Binding, role: Role) -> Self {
        Self {
            call,
            binding,
            role,
            among: None,
            steps: Steps::None,
            turn: Turn::None,
            plans: None,
            own: None,
        }
    }

    /// A reduction whose order of association depends on ranks only: that order is ours alone.
    pub(crate) fn in_fixed_order(mut self) -> Self {
        self.call.fixed = true;
        self.binding = self.binding.computing(None);
        self
    }

    /// As a part of a call that makes a communicator or opens a file: whoever waits in vain is told who does something
    /// else.
    pub(crate) fn for_library(mut self, comm: &Comm) -> Self {
        if acting(comm).channel().slab.is_some() {
            self.turn = Turn::Library;
        }
        self
    }

    /// Starts it as operation number `sequence` of the communicator, counted as `operation`. `last` is called when an
    /// operation without a counts phase has ended.
    pub(crate) fn start_as(
        self,
        world: &World,
        comm: &Comm,
        sequence: u32,
        operation: Operation,
        last: Option<Next>,
    ) -> Result<Request> {
        let Self {
            call,
            binding,
            role,
            among,
            steps,
            turn,
            plans,
            own,
        } = self;
        let among = match among {
            Some(among) => among,
            None => Among::of(world, comm, call.operation)?.with_steps(steps),
        };
        let (comm, me) = (acting(comm), acting(comm).rank());
        usable(comm)?;
        let form = comm.common_form(world);
        let amount = amount_of(&call, &role, &among).filter(|_| form.is_none());
        let binding = binding.in_form(form).of_all(amount);
        let together = call.together && form.is_none();
        let call = Call { together, ..call };
        let call_operation = call.operation;
        let phase = match &role {
            Role::Counted(_) => among.counts_phase(&call, me),
            Role::Member | Role::Bystander => None,
        };
        let (plan, binding, next) = match (role, phase) {
            (Role::Bystander, _) => (schedule::nothing(), binding, last),
            (Role::Counted(known), Some(phase)) => {
                let (first, received) = bind_counts(&known, &phase)?;
                let at = phase.own;
                let next: Next = Box::new(move || {
                    let (mut call, mut binding) = (call, binding);
                    let own = call.blocks.clone();
                    received.give(&mut call);
                    if let Some((said, expected)) = told_otherwise(&call, &own, at) {
                        binding = binding.expecting(call.root, said, expected);
                    }
                    Some((among.plan(&call, me), binding))
                });
                (phase.plan, first.in_form(form), Some(next))
            }
            _ => {
                let plans = plans.as_deref().unwrap_or(&comm.remembered.plans);
                (plans.plan(&call, steps, || among.plan(&call, me)), binding, last)
            }
        };
        let mut engine = world.engine().lock();
        engine.core.called(operation);
        let channel = own.as_ref().or_else(|| comm.nodes.channel(steps));
        let channel = channel.unwrap_or_else(|| comm.channel());
        let before = engine.turns(channel).taken();
        let request = engine.start_plan(channel, operation, sequence, plan, binding, next);
        if engine.turns(channel).taken() == before {
            match turn {
                Turn::None => {}
                Turn::Program => engine.turns(channel).take_with(call_operation, request, amount),
                Turn::Library => engine.turns(channel).take_to_set_up(call_operation, request),
            }
        }
        Ok(request)
    }
}

/// The bytes of which all members must say the same number, if there is such a number. (Machines that represent data
/// differently may say different ones and mean the same.)
fn amount_of(call: &Call, role: &Role, among: &Among) -> Option<u64> {
    match (role, among) {
        (Role::Bystander, _) | (_, Among::Graph(_)) => None,
        (_, Among::Group(_)) => call.common_bytes(),
        (_, Among::Sides(_, sides)) => schedule::inter_common_bytes(call, sides),
    }
}

/// What the root of a scatterv says that it sends, and what this member expects, if that is not the same.
/// `at`: where its own size stands among those that it was told.
fn told_otherwise(call: &Call, own: &Blocks, at: usize) -> Option<(u64, u64)> {
    match (call.operation, own, &call.blocks) {
        (schedule::Operation::Scatterv, Blocks::Own(expected), Blocks::Subtree(sizes)) => {
            let said = *sizes.get(at)?;
            (said != *expected).then_some((said, *expected))
        }
        _ => None,
    }
}

/// The communicator whose ranks and messages plans use: both groups of an intercommunicator as one.
pub(crate) fn acting(comm: &Comm) -> &Comm {
    comm.joint().map_or(comm, |joint| &joint.comm)
}

/// Among whom an operation takes place.
#[derive(Clone, Debug)]
pub(crate) enum Among {
    Group(Arc<Network>),
    Sides(Arc<Network>, Sides),
    Graph(Arc<Neighbours>),
}

impl Among {
    pub(crate) fn of(world: &World, comm: &Comm, operation: schedule::Operation) -> Result<Self> {
        if operation.is_neighborhood() {
            return match comm.neighbours() {
                Some(neighbours) => Ok(Self::Graph(neighbours)),
                None => fail!(abi::MPI_ERR_TOPOLOGY, "{} has no process topology", comm.describe()),
            };
        }
        let Some(joint) = comm.joint() else {
            return Ok(Self::Group(comm.network(world)));
        };
        let sides = Sides {
            local: joint.local.clone(),
            remote: joint.remote.clone(),
        };
        Ok(Self::Sides(joint.comm.network(world), sides))
    }

    /// The same where these take steps together.
    pub(crate) fn with_steps(self, steps: Steps) -> Self {
        match self {
            Self::Group(network) => Self::Group(Arc::clone(network.of_steps(steps))),
            _ => self,
        }
    }

    fn plan(&self, call: &Call, me: u32) -> Box<dyn Plan> {
        match self {
            Self::Group(network) => schedule::plan(call, network, me),
            Self::Sides(network, sides) => schedule::inter_plan(call, network, sides, me),
            Self::Graph(neighbours) => schedule::neighbor_plan(call, neighbours, me),
        }
    }

    fn counts_phase(&self, call: &Call, me: u32) -> Option<CountsPhase> {
        match self {
            Self::Group(network) => schedule::counts_phase(call, network, me),
            Self::Sides(network, sides) => schedule::inter_counts_phase(call, network, sides, me),
            Self::Graph(_) => None,
        }
    }
}
