// SPDX-License-Identifier: Apache-2.0
//! Calling handlers: by a thread of the program that is inside MPI, or by the keeper. One at a time, requests of one
//! process in their order, those of several processes in turn.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_core::world::World;
use isthmus_engine::{Caller, Peer, with_port};
use isthmus_wire::frame::protocol;
use isthmus_wire::rma::Failure;

use crate::call::Call;
use crate::origin::{Ready, Work};
use crate::state::{Desk, Out};

/// Calls what is due. True if anything was done.
pub(crate) fn run(desk: &Arc<Desk>, world: &World, caller: Caller) -> bool {
    let callbacks = world.engine().callbacks();
    {
        let mut state = desk.lock();
        callbacks.set_due(false);
        if state.running.is_some() {
            // Whoever it is looks again before it ends.
            return false;
        }
        state.running = Some((std::thread::current().id(), 0));
    }
    let mut any = false;
    loop {
        let mut state = desk.lock();
        let Some((peer, ready)) = state.next(caller) else {
            state.running = None;
            let rest = state.has_work(Caller::Program);
            callbacks.set_due(rest);
            drop(state);
            if caller == Caller::Keeper && (any || rest) {
                world.engine().wake();
            }
            return any;
        };
        if let (Some(Work::Call { handler, .. }), Some(running)) = (&ready.work, &mut state.running) {
            running.1 = handler.number;
        }
        drop(state);
        do_one(desk, world, peer, ready);
        any = true;
        if caller == Caller::Program {
            send_out(desk, world);
        }
    }
}

fn do_one(desk: &Arc<Desk>, world: &World, peer: Peer, mut ready: Ready) {
    let calls = matches!(ready.work, Some(Work::Call { .. }));
    let outcome = match ready.work.take() {
        Some(Work::Call { handler, target, data }) => {
            let mut call = Call {
                source: peer,
                data,
                target,
                is_awaited: ready.question != 0,
                reply: None,
            };
            // What was removed meanwhile is not called any more.
            let known = desk.lock().handlers.get(handler.number).is_ok();
            match handler.function.as_ref().filter(|_| known) {
                Some(function) => {
                    function(&mut call);
                    Ok(call.reply.unwrap_or_default())
                }
                None => Err(Failure {
                    class: abi::MPI_ERR_NAME as u32,
                    text: format!(
                        "rank {} in MPI_COMM_WORLD has unregistered its handler \"{}\" meanwhile",
                        world.rank(),
                        handler.name
                    ),
                }),
            }
        }
        _ => Ok(Vec::new()),
    };
    let mut state = desk.lock();
    if let Some(running) = &mut state.running {
        running.1 = 0;
    }
    state.ran += u64::from(calls);
    desk.leave(&mut state, Out::Ended { peer, ready, outcome });
}

pub(crate) fn send_out(desk: &Desk, world: &World) {
    let mut engine = world.engine().lock();
    desk.send_out(&mut engine.core);
    // What leaves later is on its way now.
    with_port(&mut engine, protocol::REQUESTS, |_| ());
}
