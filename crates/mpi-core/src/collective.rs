// SPDX-License-Identifier: Apache-2.0
//! Collective operations: a call and its buffers become a plan that the engine executes.

use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Binding, Block, BoundBuffer, Next, Operation, Request};
use isthmus_schedule::{Blocks, Call, counts_phase, plan};

use crate::comm::Comm;
use crate::error::Result;
use crate::world::World;

/// Starts this process's part. All members call their collective operations in the same order.
pub fn start(world: &World, comm: &Comm, call: &Call, binding: Binding) -> Request {
    start_as(world, comm, call, binding, world.operation(call.operation))
}

/// As [`start`], counted as another operation than the one that moves the data.
pub(crate) fn start_as(world: &World, comm: &Comm, call: &Call, binding: Binding, operation: Operation) -> Request {
    let plan = plan(call, comm.shape(world), comm.rank());
    let mut engine = world.engine().lock();
    engine.called(operation);
    engine.start_plan(comm.channel(), operation, comm.next_sequence(), plan, binding, None)
}

/// As [`start`], for gatherv and scatterv: where processes act for others, the sizes of the others' blocks travel first.
/// `counts`: what this process knows, as [`isthmus_schedule::CountsPhase`] wants it for `Send`.
pub fn start_with_counts(
    world: &World,
    comm: &Comm,
    mut call: Call,
    binding: Binding,
    counts: &[u64],
) -> Result<Request> {
    let operation = call.operation;
    let (shape, rank) = (comm.shape(world).clone(), comm.rank());
    let Some(phase) = counts_phase(&call, &shape, rank) else {
        return Ok(start(world, comm, &call, binding));
    };
    let known: Vec<u8> = counts.iter().flat_map(|c| c.to_ne_bytes()).collect();
    let (send, receive) = (OwnMemory::with(&known), OwnMemory::new(0, 8 * phase.receive as isize));
    let (count, reducer) = (
        Datatype::of(Basic::Uint64),
        std::sync::Arc::new(|_: &[u8], _: &mut [u8], _, _| {}),
    );
    let first = Binding::elements(
        BoundBuffer::one(Block::own(&send, &count, counts.len() as u64)?),
        BoundBuffer::one(Block::own(&receive, &count, phase.receive)?),
        count,
        reducer,
    )
    .on_any_thread();
    let units = phase.receive;
    let next: Next = Box::new(move || {
        if units > 0 {
            let sizes = receive.content();
            let sizes = sizes.chunks_exact(8).filter_map(<[u8]>::first_chunk);
            call.blocks = Blocks::Subtree(sizes.map(|b| u64::from_ne_bytes(*b)).collect());
        }
        Some((plan(&call, &shape, rank), binding))
    });
    let operation = world.operation(operation);
    let mut engine = world.engine().lock();
    engine.called(operation);
    Ok(engine.start_plan(
        comm.channel(),
        operation,
        comm.next_sequence(),
        phase.plan,
        first,
        Some(next),
    ))
}
