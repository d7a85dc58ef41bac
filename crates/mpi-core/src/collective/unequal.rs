// SPDX-License-Identifier: Apache-2.0
//! Operations of blocks that may differ in length, among processes that share memory: short blocks through cells there,
//! long ones in messages.
//!
//! Who gives a block and who takes it are often the only ones that know its length, so no decision of all depends on
//! it.

use isthmus_engine::{Channel, Pieces, Request, Unequal, Until};
use isthmus_schedule::{self as schedule, Blocks, Operation, Recorded};

use super::both::Both;
use super::prepared::{Form, Performed};
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
            self.have_nothing_to_do(world, step.what);
            self.next_sequence();
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
        let longest = world
            .engine()
            .lock()
            .slabs()
            .longest_block(comm.channel(), call.operation)?;
        let (size, me) = (comm.size(), comm.rank());
        let fits = match (call.operation, &call.blocks) {
            (O::ReduceScatter, blocks) => blocks.offset(size).saturating_mul(call.unit_bytes) <= longest,
            _ => true,
        };
        let own = match (call.operation, &call.blocks) {
            (O::ReduceScatter, blocks @ Blocks::Known(_)) => (blocks.offset(me), blocks.size(me)),
            _ => (0, 0),
        };
        fits.then(|| InCells {
            step: Unequal {
                what: call.operation,
                root: call.root,
                in_place: call.in_place,
                own,
            },
            passes: call.blocks.largest() == 0 && call.receive_blocks.largest() == 0,
            long: schedule::long_blocks(call, size, me, longest),
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
        let done = call.unequal_bound(cells.step, &self.binding, Until::Over);
        done.map_err(|error| Error::from(&error))?;
        match long {
            Some(request) => world.wait(request).map(drop),
            None => Ok(()),
        }
    }

    /// As operation number `sequence` of the communicator, in the memory of this channel: its request, if it is not
    /// over.
    pub(super) fn start_in_cells(
        &self,
        world: &World,
        channel: &Channel,
        sequence: u32,
        cells: &InCells,
    ) -> Result<Option<Request>> {
        if cells.passes {
            return Ok(pass(world, channel, sequence, cells.step).flatten());
        }
        let operation = world.operation(self.call.operation);
        let long = cells.long.as_ref();
        let long = long.map(|plan| self.start_long(world, channel, sequence, plan));
        let call = world.engine().group(channel, operation, sequence);
        let begun = call.unequal_bound(cells.step, &self.binding, Until::Begun);
        Ok(match (begun.map_err(|error| Error::from(&error))?, long) {
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
