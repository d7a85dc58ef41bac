// SPDX-License-Identifier: Apache-2.0
//! How a collective operation goes: one question, asked once for each operation.
//!
//! All members of a communicator must find the same answer without asking each other, so it depends only on what all of
//! them know: the communicator, whether the operation blocks, which one it is, sizes that are arguments at all members,
//! and the kind of reduction. It never depends on where data lie in memory, or on what this process alone does besides.

use isthmus_engine::{NativeOperation, Request};
use isthmus_schedule::step::Together;
use isthmus_schedule::{self as schedule, Blocks, Operation, Steps};

use super::prepared::Form;
use super::quick::{leave_out, run_natively};
use super::unequal::InCells;
use crate::comm::Comm;
use crate::error::Result;
use crate::nodes::may_take_steps;
use crate::planned::{Planned, Role, Turn, acting};
use crate::world::World;

/// The answer.
pub(super) enum Execution {
    /// No data move and nobody waits for anybody: nothing.
    Done,
    /// Nothing here, while others may have a part: along a topology, where each pair knows the lengths of its own, and
    /// in the root's group of an intercommunicator, where only the root knows.
    NoPart,
    /// One step of all members in memory that they share, without a plan.
    SharedMemory(Together),
    /// Blocks that may differ in length, in cells of such memory.
    Cells(InCells),
    /// An operation of the vendor MPI.
    Vendor(Box<NativeOperation>),
    /// A plan, in which some members may take steps together.
    Plan(Steps),
}

impl Planned {
    /// How it goes.
    pub(super) fn way(&self, world: &World, comm: &Comm, form: Form) -> Result<Execution> {
        if self.is_empty(comm) {
            return Ok(Execution::Done);
        }
        if self.has_no_part(comm) {
            return Ok(Execution::NoPart);
        }
        // One that only begins goes to the vendor MPI first: while it is under way, others may take turns in memory.
        if form == Form::Nonblocking {
            if let Some(native) = self.natively(comm) {
                return Ok(Execution::Vendor(Box::new(native)));
            }
        }
        if let Some(step) = self.step_together(world, acting(comm)) {
            return Ok(Execution::SharedMemory(step));
        }
        if let Some(cells) = self.in_cells(world, acting(comm)) {
            return Ok(Execution::Cells(cells));
        }
        if form != Form::Blocking {
            return Ok(Execution::Plan(Steps::None));
        }
        if let Some(native) = self.natively(comm) {
            return Ok(Execution::Vendor(Box::new(native)));
        }
        Ok(Execution::Plan(self.steps_together(world, comm)?))
    }

    /// Does this process's part and waits for its end.
    pub(super) fn run(mut self, world: &World, comm: &Comm) -> Result<()> {
        self.in_turn(comm);
        match self.way(world, comm, Form::Blocking)? {
            Execution::Done => {
                leave_out(world, acting(comm), self.call.operation, true);
                Ok(())
            }
            Execution::NoPart => {
                leave_out(world, acting(comm), self.call.operation, false);
                Ok(())
            }
            Execution::SharedMemory(step) => self.run_in_memory(world, comm, &step),
            Execution::Cells(cells) => self.run_in_cells(world, acting(comm), cells),
            Execution::Vendor(native) => self.run_there(world, comm, *native),
            Execution::Plan(steps) => self.run_plan(world, comm, steps),
        }
    }

    /// Begins this process's part: its request, if it is not over. All members call their collective operations in the
    /// same order.
    pub(super) fn start(mut self, world: &World, comm: &Comm) -> Result<Option<Request>> {
        self.in_turn(comm);
        match self.way(world, comm, Form::Nonblocking)? {
            Execution::Done => {
                leave_out(world, acting(comm), self.call.operation, true);
                Ok(None)
            }
            Execution::NoPart => {
                leave_out(world, acting(comm), self.call.operation, false);
                Ok(None)
            }
            Execution::SharedMemory(step) => match self.start_in_memory(world, acting(comm), &step) {
                Some(begun) => Ok(begun),
                // A tool watches plans, so it is one; it has the same step.
                None => self.start_plan(world, comm).map(Some),
            },
            Execution::Cells(cells) => {
                let acting = acting(comm);
                self.start_in_cells(world, acting.channel(), acting.next_sequence(), &cells, None)
            }
            Execution::Vendor(native) => Ok(Some(self.start_there(world, comm, *native))),
            Execution::Plan(_) => self.start_plan(world, comm).map(Some),
        }
    }

    /// As an operation that all members start in the same order as their others: it may be done in memory that they
    /// share.
    fn in_turn(&mut self, comm: &Comm) {
        if acting(comm).channel().slab.is_some() {
            self.turn = Turn::Program;
        }
        self.call.together = self.turn == Turn::Program && self.binding.is_dense();
    }

    /// Whether no data move and nobody waits for anybody: then no member has a part in it. All members find the same,
    /// because the sizes are those of all blocks, and alike at all members or known to all.
    fn is_empty(&self, comm: &Comm) -> bool {
        self.moves_nothing() && !self.has_bystanders(comm)
    }

    /// Whether this process gives nothing and takes nothing, while others may do so or cannot tell that nobody does.
    fn has_no_part(&self, comm: &Comm) -> bool {
        let (blocks, receive_blocks) = (&self.call.blocks, &self.call.receive_blocks);
        match self.call.operation.is_neighborhood() {
            true => blocks.largest() == 0 && receive_blocks.largest() == 0,
            false => self.moves_nothing() && self.has_bystanders(comm),
        }
    }

    /// Whether members may have given MPI_PROC_NULL as root. To them sizes are no arguments: an operation of no data is
    /// to them as any other, so it is one of the communicator's to the others too.
    fn has_bystanders(&self, comm: &Comm) -> bool {
        comm.joint().is_some() && self.call.operation.is_rooted()
    }

    /// Whether there are no data, as far as sizes tell that are those of all blocks.
    fn moves_nothing(&self) -> bool {
        use Operation as O;
        let empty = |blocks: &Blocks| matches!(blocks, Blocks::Equal(0));
        let all_empty = |blocks: &Blocks| match blocks {
            Blocks::Known(sums) => sums.last() == Some(&0),
            blocks => empty(blocks),
        };
        let (blocks, receive_blocks) = (&self.call.blocks, &self.call.receive_blocks);
        match (&self.role, self.call.operation) {
            (Role::Bystander, _) | (_, O::Barrier) => false,
            (_, O::Allgather | O::Alltoall) => empty(blocks) && empty(receive_blocks),
            (Role::Member, O::ReduceScatter | O::Allgatherv) => all_empty(blocks) && all_empty(receive_blocks),
            (_, O::Bcast | O::Gather | O::Scatter | O::Reduce | O::Allreduce) => empty(blocks),
            (_, O::ReduceScatterBlock | O::Scan | O::Exscan) => empty(blocks),
            _ => false,
        }
    }

    /// The one step of a blocking operation in shared memory. Where members have a vendor MPI too, longer blocks go
    /// there.
    fn step_together(&self, world: &World, comm: &Comm) -> Option<Together> {
        if !self.call.together || !matches!(self.role, Role::Member) || comm.common_form(world).is_some() {
            return None;
        }
        if comm.is_native() && !(comm.blocks_natively() && world.overrides().is_empty()) {
            return None;
        }
        let step = schedule::together(&self.call, world.overrides(), comm.size(), comm.rank())?;
        let is_enough = || {
            let mut engine = world.engine().lock();
            engine
                .slabs()
                .are_enough_when_short(comm.channel(), &step, &self.binding)
        };
        let goes_there = comm.is_native() && !is_enough();
        (!goes_there).then_some(step)
    }

    /// As an operation of the vendor MPI, if the communicator is one of that.
    fn natively(&self, comm: &Comm) -> Option<NativeOperation> {
        if !comm.is_native() || comm.joint().is_some() {
            return None;
        }
        NativeOperation::new(&self.call, &self.binding, (comm.rank(), comm.size()))
    }

    /// Which members take steps of its plan together.
    fn steps_together(&self, world: &World, comm: &Comm) -> Result<Steps> {
        let may = comm.joint().is_none()
            && matches!(self.role, Role::Member)
            && self.binding.is_dense()
            && comm.common_form(world).is_none();
        if !may {
            return Ok(Steps::None);
        }
        let reduces = matches!(self.call.operation, Operation::Reduce | Operation::Allreduce);
        let units = match self.call.blocks {
            Blocks::Equal(units) => units,
            _ => 0,
        };
        let natively = self.binding.is_for_native_steps(reduces, units);
        let steps = |natively| schedule::steps_together(&self.call, &comm.network(world), natively);
        let wanted = steps(natively);
        if wanted == Steps::None || may_take_steps(world, comm, wanted)? {
            return Ok(wanted);
        }
        // Jobs that cannot may have nodes that can.
        let other = if wanted == Steps::Jobs {
            steps(false)
        } else {
            Steps::None
        };
        let can = other != Steps::None && may_take_steps(world, comm, other)?;
        Ok(if can { other } else { Steps::None })
    }
}

/// What becomes of an answer.
impl Planned {
    fn run_in_memory(self, world: &World, comm: &Comm, step: &Together) -> Result<()> {
        let acting = acting(comm);
        let (operation, sequence) = (world.operation(self.call.operation), acting.sequence());
        let call = world.engine().group(acting.channel(), operation, sequence);
        match call.together(step, &self.binding) {
            Some(done) => {
                acting.next_sequence();
                done.map_err(|error| (&error).into())
            }
            // A tool watches plans, so it is one; it has the same step.
            None => self.run_plan(world, comm, Steps::None),
        }
    }

    /// `None`: a tool watches plans.
    fn start_in_memory(&self, world: &World, acting: &Comm, step: &Together) -> Option<Option<Request>> {
        let operation = world.operation(self.call.operation);
        let call = world.engine().group(acting.channel(), operation, acting.sequence());
        let begun = call.start_together(step, &self.binding)?;
        acting.next_sequence();
        Some(begun)
    }

    fn run_there(self, world: &World, comm: &Comm, native: NativeOperation) -> Result<()> {
        if comm.blocks_natively() {
            return native.run(|collective| run_natively(world, comm, self.call.operation, collective));
        }
        let request = self.start_there(world, comm, native);
        world.wait(request).map(drop)
    }

    fn start_there(&self, world: &World, comm: &Comm, native: NativeOperation) -> Request {
        let (operation, sequence) = (world.operation(self.call.operation), comm.next_sequence());
        let mut engine = world.engine().lock();
        engine.start_natively(comm.channel(), operation, sequence, native)
    }

    fn run_plan(mut self, world: &World, comm: &Comm, steps: Steps) -> Result<()> {
        self.steps = steps;
        self.call.nodes = steps != Steps::None;
        world.wait(self.start_plan(world, comm)?).map(drop)
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

    fn start_plan(self, world: &World, comm: &Comm) -> Result<Request> {
        self.note_choice(world, comm);
        let operation = world.operation(self.call.operation);
        self.start_as(world, comm, acting(comm).next_sequence(), operation, None)
    }
}
