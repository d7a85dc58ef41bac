// SPDX-License-Identifier: Apache-2.0
//! Operations that are started again and again.
//!
//! All members make their persistent operations in the same order but may start them in any, so they cannot take turns
//! in the memory where the communicator meets. One that would go through such memory gets some of its own while there
//! is enough; all others go by plans.

use std::sync::Arc;

use isthmus_engine::{Channel, Made, Request, revoke};
use isthmus_schedule::step::Together;

use super::prepared::{Form, Performed, Prepared};
use super::unequal::InCells;
use super::way::Execution;
use crate::comm::{Comm, usable};
use crate::error::Result;
use crate::planned::{Among, Planned, acting};
use crate::shared_slab::{For, agree as agree_on_slab};
use crate::slabs::Use;
use crate::world::World;

/// An operation that is started again and again (MPI 5.0 section 6.13).
#[derive(Debug)]
pub struct Persistent {
    planned: Planned,
    comm: Arc<Comm>,
    /// All members make their persistent operations in the same order, so each has a number of its own.
    sequence: u32,
    kept: EachStart,
}

/// How it goes whenever it is started: sizes and members stay.
#[derive(Debug)]
enum EachStart {
    /// This process gives nothing and takes nothing.
    Nothing,
    /// In memory of its own.
    Own(Own),
    Plan,
}

/// Memory in which the members of one operation meet.
#[derive(Debug)]
struct Own {
    channel: Channel,
    way: Meets,
    _slab: Use,
}

/// What they do there.
#[derive(Debug)]
enum Meets {
    Together(Together),
    /// Blocks that may differ in length.
    Cells(InCells),
}

impl Persistent {
    /// Collective: all members make their persistent operations on a communicator in the same order.
    ///
    /// What it is chosen by is decided here: the members may start it in another order than they agree on links.
    pub fn new(world: &World, prepared: Prepared, comm: Arc<Comm>) -> Result<Self> {
        let mut planned = *prepared.0;
        planned.plans = Some(Arc::default());
        planned.among = Some(Among::of(world, &comm, planned.call.operation)?);
        let sequence = acting(&comm).next_persistent();
        let made = Made {
            number: sequence,
            call: acting(&comm).next_sequence(),
        };
        let way = InOrder::of(world, &comm, &mut planned)?;
        let (channel, what) = (acting(&comm).channel(), planned.call.operation);
        let call = world.operations().making(what);
        // Who agrees on memory waits for the others, who see in this turn that they are to do so.
        let in_memory = matches!(way, InOrder::InMemory(_));
        world
            .engine()
            .lock()
            .turns(channel)
            .take_to_make(what, made, call, in_memory);
        let kept = EachStart::of(world, &comm, &mut planned, way)?;
        Ok(Self {
            planned,
            comm,
            sequence,
            kept,
        })
    }

    /// Starts this process's part once more; it must not be active.
    pub fn start(&self, world: &World) -> Result<Performed> {
        usable(&self.comm)?;
        let there = match &self.kept {
            EachStart::Nothing => {
                self.pass(world);
                return Ok(Performed::Done);
            }
            EachStart::Own(own) => self.start_there(world, own)?,
            EachStart::Plan => None,
        };
        let begun = match there {
            Some(begun) => begun,
            None => Some(self.start_plan(world)?),
        };
        if let Some(request) = begun {
            let channel = acting(&self.comm).channel();
            let mut engine = world.engine().lock();
            // Another thread may have heard it since: then nobody has ended this.
            if self.comm.is_revoked() {
                revoke(&mut engine, channel);
            }
            engine.turns(channel).watch(request);
        }
        Ok(Performed::of(begun))
    }

    /// This process has no part. Others may have one, and wait for it.
    fn pass(&self, world: &World) {
        let operation = world.operation(self.planned.call.operation);
        let mut engine = world.engine().lock();
        engine
            .turns(acting(&self.comm).channel())
            .pass(operation, self.sequence);
    }

    fn start_plan(&self, world: &World) -> Result<Request> {
        let operation = world.operation(self.planned.call.operation);
        let planned = self.planned.clone();
        planned.start_as(world, &self.comm, self.sequence, operation, None)
    }

    /// Its request, if it is not over. `None`: a tool watches plans, so it is one; it has the same step.
    fn start_there(&self, world: &World, own: &Own) -> Result<Option<Option<Request>>> {
        let (planned, channel) = (&self.planned, &own.channel);
        match &own.way {
            Meets::Together(step) => {
                let operation = world.operation(planned.call.operation);
                let call = world.engine().group(channel, operation, self.sequence);
                Ok(call.start_together(step, &planned.binding))
            }
            Meets::Cells(cells) => {
                let turns = Some(acting(&self.comm).channel());
                planned
                    .start_in_cells(world, channel, self.sequence, cells, turns)
                    .map(Some)
            }
        }
    }
}

/// How it would go if all members started it in the same order.
enum InOrder {
    Nothing,
    InMemory(Meets),
    Plan,
}

impl InOrder {
    /// It depends on what all members know.
    fn of(world: &World, comm: &Comm, planned: &mut Planned) -> Result<Self> {
        planned.call.together = comm.joint().is_none()
            && !comm.is_native()
            && comm.channel().slab.is_some()
            && !planned.call.operation.is_neighborhood()
            && planned.binding.is_dense();
        Ok(match planned.way(world, comm, Form::Persistent)? {
            Execution::Done | Execution::NoPart => Self::Nothing,
            Execution::SharedMemory(step) => Self::InMemory(Meets::Together(step)),
            Execution::Cells(cells) => Self::InMemory(Meets::Cells(cells)),
            Execution::Vendor(_) | Execution::Plan(_) => Self::Plan,
        })
    }
}

impl EachStart {
    /// Collective. One that would meet in memory if all started it in the same order gets some of its own.
    fn of(world: &World, comm: &Comm, planned: &mut Planned, in_order: InOrder) -> Result<Self> {
        let (way, own) = match in_order {
            InOrder::Nothing => return Ok(Self::Nothing),
            InOrder::InMemory(way) => (Some(way), agree_on_slab(world, comm, For::Operation, None)?),
            InOrder::Plan => (None, None),
        };
        let (Some(way), Some(own)) = (way, own) else {
            planned.call.together = false;
            return Ok(Self::Plan);
        };
        world.engine().lock().slabs().open(own.slab());
        let channel = Channel {
            slab: Some(own.slab()),
            ..comm.channel().clone()
        };
        planned.own = Some(channel.clone());
        Ok(Self::Own(Own {
            channel,
            way,
            _slab: own,
        }))
    }
}
