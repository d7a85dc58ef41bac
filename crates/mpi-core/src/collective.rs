// SPDX-License-Identifier: Apache-2.0
//! Collective operations: a call and its buffers become a plan that the engine executes.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Binding, Block, BoundBuffer, Collective, NativeOperation, Next, Operation, Request, Short};
use isthmus_schedule::step::{Plan, Together};
use isthmus_schedule::{self as schedule, Blocks, Call, CountsPhase, Neighbours, Network, Sides, Steps};

use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::fail;
use crate::world::World;

/// A collective operation with its buffers: can be started; `None`: it has been done already. That is a case of its own because it is what most
/// operations inside a machine come to; the rest is too large to be handed through calls for nothing.
#[derive(Clone, Debug)]
pub struct Prepared(Option<Box<Planned>>);

/// A collective operation that is to be planned.
#[derive(Clone, Debug)]
struct Planned {
    call: Call,
    binding: Binding,
    role: Role,
    /// Among whom, if that is decided before the start.
    among: Option<Among>,
    /// Who takes steps together.
    steps: Steps,
    /// All members start it in the same order as their others, and share memory.
    turn: bool,
}

/// What this process does in an operation.
#[derive(Clone, Debug)]
enum Role {
    /// Its part of the plan.
    Member,
    /// The same, and before it its part in a counts phase, for which it knows this (see [`CountsPhase`], `Send`).
    Counted(Vec<u64>),
    /// Nothing: it is in the root's group of an intercommunicator.
    Bystander,
}

impl Prepared {
    /// An operation without a counts phase.
    pub fn new(call: Call, binding: Binding) -> Self {
        Self::of(call, binding, Role::Member)
    }

    /// An operation in which processes may act for others, to whom the sizes of the others' blocks travel first.
    pub fn with_counts(call: Call, binding: Binding, counts: Vec<u64>) -> Self {
        Self::of(call, binding, Role::Counted(counts))
    }

    /// An operation of others: this process gave MPI_PROC_NULL as root.
    pub fn bystander(operation: schedule::Operation) -> Self {
        Self::of(Call::new(operation, 0), Binding::nothing(), Role::Bystander)
    }

    /// An operation that the machine's own MPI has done ([`Comm::run_natively`]).
    #[inline]
    pub fn done() -> Self {
        Self(None)
    }

    /// Whether it is [`Prepared::done`].
    #[inline]
    pub fn is_done(&self) -> bool {
        self.0.is_none()
    }

    fn of(call: Call, binding: Binding, role: Role) -> Self {
        Self(Some(Box::new(Planned {
            call,
            binding,
            role,
            among: None,
            steps: Steps::None,
            turn: false,
        })))
    }

    /// What is to be planned: of one that has been done, nothing.
    fn planned(self) -> Planned {
        self.0.map_or_else(
            || Planned {
                call: Call::new(schedule::Operation::Barrier, 0),
                binding: Binding::nothing(),
                role: Role::Bystander,
                among: None,
                steps: Steps::None,
                turn: false,
            },
            |planned| *planned,
        )
    }

    /// Starts this process's part. All members call their collective operations in the same order.
    pub fn start(self, world: &World, comm: &Comm) -> Result<Request> {
        self.planned().start(world, comm)
    }

    /// Does this process's part and waits for its end.
    pub fn run(self, world: &World, comm: &Comm) -> Result<()> {
        self.planned().run(world, comm)
    }

    /// As [`Prepared::start`], counted as another operation than the one that moves the data. `last` is called when an operation
    /// without a counts phase has ended.
    pub(crate) fn start_as(
        self,
        world: &World,
        comm: &Comm,
        sequence: u32,
        operation: Operation,
        last: Option<Next>,
    ) -> Result<Request> {
        self.planned().start_as(world, comm, sequence, operation, last)
    }
}

impl Planned {
    /// As an operation of the machine's own MPI, if the communicator is one of that.
    fn natively(&self, comm: &Comm) -> Option<NativeOperation> {
        if !comm.is_native() || comm.joint().is_some() {
            return None;
        }
        NativeOperation::new(&self.call, &self.binding, (comm.rank(), comm.size()))
    }

    /// Whether no data move and nobody waits for anybody: then no member has a part in it. All members find the same, because
    /// the sizes are those of all blocks, and alike at all members or known to all.
    fn is_empty(&self) -> bool {
        use schedule::Operation as O;
        let empty = |blocks: &Blocks| matches!(blocks, Blocks::Equal(0));
        let all_empty = |blocks: &Blocks| match blocks {
            Blocks::Known(sums) => sums.last() == Some(&0),
            blocks => empty(blocks),
        };
        let Call {
            operation,
            blocks,
            receive_blocks,
            ..
        } = &self.call;
        match (&self.role, operation) {
            (Role::Bystander, _) | (_, O::Barrier) => false,
            (_, O::Allgather | O::Alltoall) => empty(blocks) && empty(receive_blocks),
            (Role::Member, O::ReduceScatter | O::Allgatherv) => all_empty(blocks) && all_empty(receive_blocks),
            (_, O::Bcast | O::Gather | O::Scatter | O::Reduce | O::Allreduce) => empty(blocks),
            (_, O::ReduceScatterBlock | O::Scan | O::Exscan) => empty(blocks),
            _ => false,
        }
    }

    fn start(mut self, world: &World, comm: &Comm) -> Result<Request> {
        let operation = world.operation(self.call.operation);
        if let Some(native) = self.natively(comm) {
            return Ok(comm.start_natively(world, operation, native));
        }
        self.in_turn(comm);
        self.note_choice(world, comm);
        self.start_as(world, comm, acting(comm).next_sequence(), operation, None)
    }

    /// For people who ask later what was chosen, and why.
    fn note_choice(&self, world: &World, comm: &Comm) {
        if comm.rank() == 0
            && comm.joint().is_none()
            && matches!(self.role, Role::Member)
            && !self.call.operation.is_neighborhood()
        {
            world.choices.note(&self.call, comm.network(world).of_steps(self.steps));
        }
    }

    fn run(mut self, world: &World, comm: &Comm) -> Result<()> {
        if self.is_empty() {
            let operation = world.operation(self.call.operation);
            let mut engine = world.engine().lock();
            engine.called(operation);
            engine.take_turn(acting(comm).channel(), self.call.operation);
            return Ok(());
        }
        if let Some(native) = self.natively(comm) {
            if comm.blocks_natively() {
                native.run(|collective| comm.run_natively(world, self.call.operation, collective))?;
                return Ok(());
            }
            let request = comm.start_natively(world, world.operation(self.call.operation), native);
            return world.wait(request).map(drop);
        }
        self.in_turn(comm);
        if let Some(step) = self.step_together(world, acting(comm)) {
            let operation = world.operation(self.call.operation);
            let channel = acting(comm).channel();
            if let Some(done) = world.engine().together(channel, operation, &step, &self.binding) {
                acting(comm).next_sequence();
                return done.map_err(|error| (&error).into());
            }
        }
        self.steps = self.steps_together(world, comm)?;
        self.call.nodes = self.steps != Steps::None;
        world.wait(self.start(world, comm)?).map(drop)
    }

    /// Which members take steps of it together: the same at all of them, who start their blocking operations in the same order.
    fn steps_together(&self, world: &World, comm: &Comm) -> Result<Steps> {
        let may = comm.joint().is_none()
            && matches!(self.role, Role::Member)
            && self.binding.is_dense()
            && comm.common_form(world).is_none();
        if !may {
            return Ok(Steps::None);
        }
        let reduces = matches!(
            self.call.operation,
            schedule::Operation::Reduce | schedule::Operation::Allreduce
        );
        let units = match self.call.blocks {
            Blocks::Equal(units) => units,
            _ => 0,
        };
        let natively = self.binding.is_for_native_steps(reduces, units);
        let steps = |natively| schedule::steps_together(&self.call, &comm.network(world), natively);
        let wanted = steps(natively);
        if wanted == Steps::None || comm.may_take_steps(world, wanted)? {
            return Ok(wanted);
        }
        // Jobs that cannot may have nodes that can.
        let other = if wanted == Steps::Jobs {
            steps(false)
        } else {
            Steps::None
        };
        let can = other != Steps::None && comm.may_take_steps(world, other)?;
        Ok(if can { other } else { Steps::None })
    }

    /// The one step of an operation in shared memory.
    fn step_together(&self, world: &World, comm: &Comm) -> Option<Together> {
        if !self.call.together || !matches!(self.role, Role::Member) || comm.common_form(world).is_some() {
            return None;
        }
        schedule::together(&self.call, world.overrides(), comm.size(), comm.rank())
    }

    /// As an operation that all members start in the same order as their others: it may be done in memory that they share.
    #[inline]
    fn in_turn(&mut self, comm: &Comm) {
        self.turn = acting(comm).channel().frame.is_some();
        self.call.together = self.turn && self.binding.is_dense();
    }

    fn start_as(
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
        } = self;
        let among = match among {
            Some(among) => among,
            None => Among::of(world, comm, call.operation)?.with_steps(steps),
        };
        let (comm, me) = (acting(comm), acting(comm).rank());
        let form = comm.common_form(world);
        let (binding, together) = (binding.in_form(form), call.together && form.is_none());
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
                let next: Next = Box::new(move || {
                    let mut call = call;
                    received.give(&mut call);
                    Some((among.plan(&call, me), binding))
                });
                (phase.plan, first.in_form(form), Some(next))
            }
            _ => (among.plan(&call, me), binding, last),
        };
        let mut engine = world.engine().lock();
        engine.called(operation);
        let channel = comm.channel_of_steps(steps).unwrap_or_else(|| comm.channel());
        let before = engine.turns_taken(channel);
        let request = engine.start_plan(channel, operation, sequence, plan, binding, next);
        if turn && engine.turns_taken(channel) == before {
            engine.take_turn_with(channel, call_operation, request);
        }
        Ok(request)
    }
}

impl Comm {
    /// A blocking operation of short contiguous blocks in shared memory, in place of [`Prepared::run`]; `None`: not one for this way.
    // An error in a box of its own: then what is returned fits into registers. Results in memory cost a short operation a tenth of its time.
    #[inline]
    pub fn run_short(&self, world: &World, short: &Short) -> Option<std::result::Result<(), Box<Error>>> {
        let operation = (world.operation(short.what), self.sequence());
        let done = world.engine().short(self.channel(), operation, short)?;
        self.next_sequence();
        Some(done.map_err(|error| Box::new((&error).into())))
    }

    /// [`Comm::run_natively`] where nothing stands in its way; `None`: nothing was done.
    #[inline(always)]
    pub fn run_at_once(
        &self,
        world: &World,
        operation: schedule::Operation,
        collective: &Collective<'_>,
    ) -> Option<Result<()>> {
        let operation = world.operation(operation);
        let done = world
            .engine()
            .collective_at_once(self.channel(), operation, collective)?;
        self.next_sequence();
        Some(done.map_err(|error| (&error).into()))
    }

    /// A blocking operation on a communicator that is one of the machine's own MPI ([`Comm::blocks_natively`]).
    #[inline]
    pub fn run_natively(
        &self,
        world: &World,
        operation: schedule::Operation,
        collective: &Collective<'_>,
    ) -> Result<()> {
        let (operation, sequence) = (world.operation(operation), self.next_sequence());
        let done = world
            .engine()
            .collective(self.channel(), operation, sequence, collective);
        done.map_err(|error| (&error).into())
    }
}

impl Comm {
    fn start_natively(&self, world: &World, operation: Operation, native: NativeOperation) -> Request {
        let (sequence, mut engine) = (self.next_sequence(), world.engine().lock());
        engine.start_natively(self.channel(), operation, sequence, native)
    }
}

/// The communicator whose ranks and messages plans use: both groups of an intercommunicator as one.
fn acting(comm: &Comm) -> &Comm {
    comm.joint().map_or(comm, |joint| &joint.comm)
}

/// Among whom an operation takes place.
#[derive(Clone, Debug)]
enum Among {
    Group(Arc<Network>),
    Sides(Arc<Network>, Sides),
    Graph(Arc<Neighbours>),
}

impl Among {
    fn of(world: &World, comm: &Comm, operation: schedule::Operation) -> Result<Self> {
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
    fn with_steps(self, steps: Steps) -> Self {
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

/// An operation that is started again and again (MPI 5.0 section 6.13).
#[derive(Debug)]
pub struct Persistent {
    planned: Planned,
    comm: Arc<Comm>,
    /// All members make their persistent operations in the same order but may start them in any, so each has a number of its own.
    sequence: u32,
}

impl Persistent {
    /// Collective: all members make their persistent operations on a communicator in the same order.
    ///
    /// What it is chosen by is decided here: the members may start it in another order than they agree on links.
    pub fn new(world: &World, prepared: Prepared, comm: Arc<Comm>) -> Result<Self> {
        let mut planned = prepared.planned();
        planned.among = Some(Among::of(world, &comm, planned.call.operation)?);
        let sequence = acting(&comm).next_persistent();
        Ok(Self {
            planned,
            comm,
            sequence,
        })
    }

    /// Starts this process's part once more; it must not be active.
    pub fn start(&self, world: &World) -> Result<Request> {
        let operation = world.operation(self.planned.call.operation);
        self.planned
            .clone()
            .start_as(world, &self.comm, self.sequence, operation, None)
    }
}

/// Where a counts phase puts what it has received.
struct CountsMemory {
    receive: OwnMemory,
    units: u64,
}

impl CountsMemory {
    /// Gives the call what has come.
    fn give(&self, call: &mut Call) {
        if self.units > 0 {
            let sizes = self.receive.content();
            let sizes = sizes.chunks_exact(8).filter_map(<[u8]>::first_chunk);
            call.learn(sizes.map(|b| u64::from_ne_bytes(*b)).collect::<Vec<u64>>());
        }
    }
}

fn bind_counts(known: &[u64], phase: &CountsPhase) -> Result<(Binding, CountsMemory)> {
    let given = if phase.send.is_empty() { known } else { &phase.send };
    let bytes: Vec<u8> = given.iter().flat_map(|c| c.to_ne_bytes()).collect();
    let send = OwnMemory::with(&bytes);
    let memory = CountsMemory {
        receive: OwnMemory::new(0, 8 * phase.receive as isize),
        units: phase.receive,
    };
    let count = Datatype::of(Basic::Uint64);
    let binding = Binding::elements(
        BoundBuffer::one(Block::own(&send, &count, given.len() as u64)?),
        BoundBuffer::one(Block::own(&memory.receive, &count, phase.receive)?),
        count,
        Arc::new(|operand: &[u8], sum: &mut [u8], _, _| add(operand, sum)),
    );
    Ok((binding.on_any_thread(), memory))
}

/// Adds counts.
fn add(operand: &[u8], sum: &mut [u8]) {
    for (sum, operand) in sum.chunks_exact_mut(8).zip(operand.chunks_exact(8)) {
        if let (Some(a), Some(b)) = (sum.first_chunk::<8>(), operand.first_chunk::<8>()) {
            let total = u64::from_ne_bytes(*a).wrapping_add(u64::from_ne_bytes(*b));
            sum.copy_from_slice(&total.to_ne_bytes());
        }
    }
}
