// SPDX-License-Identifier: Apache-2.0
//! Operations of blocks that may differ in length, among processes that share memory: short blocks through cells there,
//! long ones in messages.
//!
//! Who gives a block and who takes it are often the only ones that know its length, so no decision of all depends on
//! it.

use std::sync::Arc;

use isthmus_engine::{
    Activity, Channel, Completion, Engine, Operation as Counted, Pieces, Request, Unequal, Unmoved, Until,
};
use isthmus_schedule::{self as schedule, Blocks, Call, Operation, Recorded};

use super::both::{Both, end_beside, go_on_after};
use super::prepared::{Form, Performed};
use super::quick::leave_out;
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::planned::{Planned, Role};
use crate::world::World;

/// Such an operation about which nothing else is unusual.
pub struct PlainUnequal<P> {
    /// What is done.
    pub step: Unequal,
    /// Where the blocks lie.
    pub pieces: P,
}

impl Comm {
    /// Does or begins a plain operation in cells. `None`: it goes the general way, which is the same as far as others
    /// see.
    pub(super) fn perform_plain<P: Pieces>(
        &self,
        world: &World,
        form: Form,
        plain: &PlainUnequal<P>,
    ) -> Option<Result<Performed>> {
        let (step, pieces) = (plain.step, &plain.pieces);
        if plain.pieces.longest() == 0 {
            return self.perform_empty(world, form, step);
        }
        if step.what.reduces() && self.hints().is_fixed() {
            return None;
        }
        let until = match form {
            Form::Blocking => Until::Over,
            _ => Until::Begun,
        };
        let (operation, engine) = (world.operation(step.what), world.engine());
        let call = engine.group(self.channel(), operation, self.sequence());
        let done = call.unequal(step, pieces, until)?;
        self.next_sequence();
        Some(done.map(Performed::of).map_err(|error| Error::from(&error)))
    }
}

impl Comm {
    /// An operation in which this process neither gives nor takes anything, where all members share memory: it waits
    /// for nobody. `None`: it goes the general way at all members.
    pub(super) fn perform_empty(&self, world: &World, form: Form, step: Unequal) -> Option<Result<Performed>> {
        if matches!(step.what, Operation::Allgatherv | Operation::ReduceScatter) {
            // All know that nobody does.
            self.have_nothing_to_do(world, step.what);
            return Some(Ok(Performed::Done));
        }
        let passing = pass(world, self.channel(), self.sequence(), step);
        if passing.is_none() && matches!(step.what, Operation::Alltoallv | Operation::Alltoallw) {
            // Among so many members its blocks go in messages, of which this process has none.
            leave_out(world, self, step.what, false);
            return Some(Ok(Performed::Done));
        }
        let passing = passing?;
        self.next_sequence();
        Some(match (form, passing) {
            (Form::Blocking, Some(request)) => world.wait(request).map(|_| Performed::Done),
            (_, passing) => Ok(Performed::of(passing)),
        })
    }
}

/// Its request, if it is not over. `None`: it does not go in cells.
fn pass(world: &World, channel: &Channel, sequence: u32, step: Unequal) -> Option<Option<Request>> {
    let operation = world.operation(step.what);
    world.engine().group(channel, operation, sequence).pass(step)
}

/// How such an operation goes here.
#[derive(Debug)]
pub(super) struct InCells {
    step: Unequal,
    /// This process neither gives nor takes anything.
    passes: bool,
    /// Messages for blocks that are too long.
    long: Option<Recorded>,
    /// Some are so long that they are moved straight from memory to memory.
    moved: Option<Moved>,
}

/// Blocks of so many bytes and more are moved, here or by others.
#[derive(Clone, Copy, Debug)]
struct Moved {
    shortest: u64,
    size: u32,
    me: u32,
}

impl Moved {
    /// Messages for those that could not be moved.
    fn messages(self, call: &Call, unmoved: &Unmoved) -> Option<Recorded> {
        if unmoved.is_empty() {
            return None;
        }
        let is_left = |giver, taker, bytes| bytes >= self.shortest && unmoved.contains(self.me, giver, taker);
        schedule::long_blocks(call, self.size, self.me, is_left)
    }
}

impl Planned {
    /// `None`: it is not one, or it goes by messages at all members.
    pub(super) fn in_cells(&self, world: &World, comm: &Comm) -> Option<InCells> {
        use Operation as O;
        let call = &self.call;
        let may = call.together
            && !call.fixed
            && !comm.is_native()
            && !matches!(self.role, Role::Bystander)
            && comm.common_form(world).is_none()
            && world.overrides().is_empty();
        let is_one = match call.operation {
            O::Gatherv | O::Scatterv | O::Allgatherv | O::ReduceScatter => true,
            O::Alltoallv | O::Alltoallw => !call.in_place,
            _ => false,
        };
        if !may || !is_one {
            return None;
        }
        let sizes = world
            .engine()
            .lock()
            .slabs()
            .long_blocks(comm.channel(), call.operation)?;
        let (size, me) = (comm.size(), comm.rank());
        let fits = match (call.operation, &call.blocks) {
            (O::ReduceScatter, blocks) => blocks.offset(size).saturating_mul(call.unit_bytes) <= sizes.longest(),
            _ => true,
        };
        let own = match (call.operation, &call.blocks) {
            (O::ReduceScatter, blocks @ Blocks::Known(_)) => (blocks.offset(me), blocks.size(me)),
            _ => (0, 0),
        };
        let longest = call.blocks.largest().max(call.receive_blocks.largest());
        fits.then(|| InCells {
            step: Unequal {
                what: call.operation,
                root: call.root,
                in_place: call.in_place,
                own,
                operator: self.binding.operator(),
            },
            passes: call.blocks.largest() == 0 && call.receive_blocks.largest() == 0,
            long: schedule::long_blocks(call, size, me, |_, _, bytes| sizes.is_sent(bytes)),
            moved: sizes
                .moved()
                .filter(|&moved| longest.saturating_mul(call.unit_bytes) >= moved)
                .map(|shortest| Moved { shortest, size, me }),
        })
    }

    pub(super) fn run_in_cells(self, world: &World, comm: &Comm, cells: InCells) -> Result<()> {
        let (operation, sequence) = (world.operation(self.call.operation), comm.next_sequence());
        if cells.passes {
            let passing = pass(world, comm.channel(), sequence, cells.step).flatten();
            return passing.map_or(Ok(()), |request| world.wait(request).map(drop));
        }
        let long = cells
            .long
            .map(|plan| self.start_long(world, comm.channel(), sequence, &plan));
        let call = world.engine().group(comm.channel(), operation, sequence);
        let unmoved = cells.moved.map(|_| Arc::default());
        let done = call.unequal_bound(cells.step, &self.binding, unmoved.as_ref(), Until::Over);
        let left = cells.moved.zip(unmoved).filter(|_| go_on_after(done.as_ref().err()));
        if let Some(plan) = left.and_then(|(moved, unmoved)| moved.messages(&self.call, &unmoved)) {
            let request = self.start_long(world, comm.channel(), sequence, &plan);
            let received = world.wait(request);
            if done.is_ok() {
                received?;
            }
        }
        let received = long.map(|request| {
            let mut engine = world.engine().lock();
            match &done {
                // Its receivers may be in another operation.
                Ok(_) => engine.turns(comm.channel()).watch(request),
                Err(error) => end_beside(&mut engine, request, error),
            }
            drop(engine);
            world.wait(request)
        });
        done.map_err(|error| Error::from(&error))?;
        received.map_or(Ok(()), |received| received.map(drop))
    }

    /// As operation number `sequence` of the communicator, in the memory of this channel: its request, if it is not
    /// over. `turns`: of a persistent operation, where the members take turns; its messages alone do not tell that it
    /// waits in vain.
    pub(super) fn start_in_cells(
        &self,
        world: &World,
        channel: &Channel,
        sequence: u32,
        cells: &InCells,
        turns: Option<&Channel>,
    ) -> Result<Option<Request>> {
        if cells.passes {
            return Ok(pass(world, channel, sequence, cells.step).flatten());
        }
        let operation = world.operation(self.call.operation);
        let long = cells.long.as_ref();
        let long = long.map(|plan| self.start_long(world, channel, sequence, plan));
        let call = world.engine().group(channel, operation, sequence);
        let unmoved = cells.moved.map(|_| Arc::default());
        let begun = call.unequal_bound(cells.step, &self.binding, unmoved.as_ref(), Until::Begun);
        let begun = begun.map_err(|error| Error::from(&error))?;
        if let (Some(first), Some(turns)) = (begun, turns) {
            world.engine().lock().turns(turns).watch(first);
        }
        if let Some(long) = long {
            let turns = turns.unwrap_or(channel);
            world.engine().lock().turns(turns).watch(long);
        }
        let cells = match (begun, cells.moved.zip(unmoved)) {
            (Some(first), Some((moved, unmoved))) => {
                let rest = Rest {
                    first: Some(first),
                    rest: None,
                    over: Completion::default(),
                    moved,
                    unmoved,
                    planned: self.clone(),
                    channel: channel.clone(),
                    called: (operation, sequence),
                };
                Some(world.engine().lock().start_activity(Box::new(rest)))
            }
            (None, Some((moved, unmoved))) => {
                let plan = moved.messages(&self.call, &unmoved);
                plan.map(|plan| self.start_long(world, channel, sequence, &plan))
            }
            (begun, None) => begun,
        };
        Ok(match (cells, long) {
            (Some(short), Some(long)) => {
                let both = Box::new(Both::new([short, long]));
                Some(world.engine().lock().start_activity(both))
            }
            (short, long) => short.or(long),
        })
    }

    fn start_long(&self, world: &World, channel: &Channel, sequence: u32, plan: &Recorded) -> Request {
        let operation = world.operation(self.call.operation);
        let mut engine = world.engine().lock();
        engine.start_plan(channel, operation, sequence, plan.plan(), self.binding.clone(), None)
    }
}

/// An operation in cells that goes on, and behind it messages for blocks that could not be moved.
struct Rest {
    first: Option<Request>,
    rest: Option<Request>,
    /// What became of the first.
    over: Completion,
    moved: Moved,
    unmoved: Arc<Unmoved>,
    planned: Planned,
    channel: Channel,
    /// What is done, and its number.
    called: (Counted, u32),
}

impl Activity<Engine> for Rest {
    fn advance(&mut self, engine: &mut Engine) -> Option<Completion> {
        if let Some(first) = self.first {
            let over = engine.core.take(first)?;
            self.first = None;
            let plan = self.moved.messages(&self.planned.call, &self.unmoved);
            let Some(plan) = plan.filter(|_| go_on_after(over.error.as_ref())) else {
                return Some(over);
            };
            self.over = over;
            let (operation, sequence) = self.called;
            let binding = self.planned.binding.clone();
            self.rest = Some(engine.start_plan(&self.channel, operation, sequence, plan.plan(), binding, None));
        }
        let mut received = engine.core.take(self.rest?)?;
        received.error = self.over.error.take().or(received.error);
        Some(received)
    }
}
