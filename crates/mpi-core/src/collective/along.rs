// SPDX-License-Identifier: Apache-2.0
//! Operations along the edges of a topology about which nothing is unusual: each block lies in one piece, and no
//! argument is wrong. Those whose messages leave and come at once need no plan.

use std::sync::Arc;

use isthmus_engine::{Along, EngineError, Pieces};
use isthmus_schedule::{Done, Neighbours, Operation, neighbor_rest};

use super::{Form, Performed, Prepared, in_general};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::planned::Planned;
use crate::world::World;

/// Such an operation.
pub struct PlainAlong<P> {
    /// What is done.
    pub what: Operation,
    /// Where the blocks lie: those that are sent by destination, those that are received by source.
    pub pieces: P,
}

/// Does or starts an operation along a topology; collective. `plain` gives it where nothing is unusual, `general`
/// always.
#[inline]
pub fn perform_along<P: Pieces>(
    world: &World,
    comm: &Comm,
    form: Form,
    plain: impl FnOnce(&Neighbours) -> Option<PlainAlong<P>>,
    general: impl FnOnce() -> Result<Prepared>,
) -> Result<Performed> {
    let may = form == Form::Blocking
        && !world.unlike()
        && !comm.channel().special.is_any()
        && comm.joint().is_none()
        && comm.common_form(world).is_none();
    let Some(edges) = comm.neighbours().filter(|_| may) else {
        return in_general(world, comm, form, general()?);
    };
    let me = Some(comm.rank());
    let is_own = edges
        .sources
        .iter()
        .chain(&edges.destinations)
        .any(|edge| edge.rank == me);
    let Some(plain) = plain(&edges).filter(|_| !is_own) else {
        return in_general(world, comm, form, general()?);
    };
    let (operation, sequence) = (world.operation(plain.what), comm.sequence());
    let call = world.engine().group(comm.channel(), operation, sequence);
    match call.along(plain.what, &edges, &plain.pieces) {
        Along::General => in_general(world, comm, form, general()?),
        Along::Done(done) => {
            comm.next_sequence();
            done.map_err(|error| Error::from(&error))?;
            Ok(Performed::Done)
        }
        Along::Begun(done, mistake) => {
            let sequence = comm.next_sequence();
            general()?.0.go_on_along(world, comm, sequence, &edges, done)?;
            mistake.map_or(Ok(Performed::Done), |error: EngineError| Err(Error::from(&error)))
        }
    }
}

impl Planned {
    /// What is left of one that has begun, and the wait for its end.
    fn go_on_along(self, world: &World, comm: &Comm, sequence: u32, edges: &Arc<Neighbours>, done: Done) -> Result<()> {
        let (channel, plan) = (comm.channel(), neighbor_rest(&self.call, edges, comm.rank(), done));
        let request = {
            let mut engine = world.engine().lock();
            let operation = world.operation(self.call.operation);
            let request = engine.start_plan(channel, operation, sequence, plan, self.binding, None);
            engine.turns(channel).watch(request);
            request
        };
        world.wait(request).map(drop)
    }
}
