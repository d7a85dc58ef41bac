// SPDX-License-Identifier: Apache-2.0
//! Operations that are started again and again.

use std::sync::Arc;

use isthmus_engine::Request;

use super::Prepared;
use super::planned::{Among, Planned, acting};
use crate::comm::Comm;
use crate::error::Result;
use crate::world::World;

/// An operation that is started again and again (MPI 5.0 section 6.13).
#[derive(Debug)]
pub struct Persistent {
    planned: Planned,
    comm: Arc<Comm>,
    /// All members make their persistent operations in the same order but may start them in any, so each has a number
    /// of its own.
    sequence: u32,
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
        let (channel, what) = (acting(&comm).channel(), planned.call.operation);
        world.engine().lock().turns(channel).take_to_make(what);
        Ok(Self {
            planned,
            comm,
            sequence,
        })
    }

    /// Starts this process's part once more; it must not be active.
    pub fn start(&self, world: &World) -> Result<Request> {
        let operation = world.operation(self.planned.call.operation);
        let request = self
            .planned
            .clone()
            .start_as(world, &self.comm, self.sequence, operation, None)?;
        let channel = acting(&self.comm).channel();
        world.engine().lock().turns(channel).watch(request);
        Ok(request)
    }
}
