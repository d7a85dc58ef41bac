// SPDX-License-Identifier: Apache-2.0
//! Making a window with members on several nodes: each node shares its own memory, and its words.

use std::sync::Arc;

use isthmus_core::comm::Comm;
use isthmus_core::world::{WindowCount, World, window_operation};
use isthmus_datatype::Representation;
use isthmus_engine::{Peer, with_machine, with_port};
use isthmus_wire::frame::protocol;

use super::desk::Desk;
use crate::window::Window;

/// Frames about windows are taken from now on. True: members of this one represent data differently.
pub(crate) fn take_frames(world: &World, comm: &Comm) -> bool {
    register(world);
    let mut engine = world.engine().lock();
    let mut members = comm.group().members().iter();
    with_port(&mut engine, protocol::RMA, |port| {
        members.any(|&peer: &Peer| port.representation(peer) != Representation::LOCAL)
    })
}

fn register(world: &World) {
    let mut engine = world.engine().lock();
    if with_machine(&mut engine, protocol::RMA, |_: &mut Desk, _| ()).is_none() {
        let counted = WindowCount::ALL.map(|what| window_operation(&mut engine, what));
        engine.register(protocol::RMA, Box::new(Desk::new(counted)));
    }
    if engine.underneath().is_there() {
        // A process that blocks in the machine's own MPI would take no frames.
        engine.underneath().mix();
    }
}

/// The window's frames are heard from now on, or not any more.
pub(crate) fn open(window: &Arc<Window>) {
    with_machine(
        &mut window.world.engine().lock(),
        protocol::RMA,
        |desk: &mut Desk, _| {
            desk.open(window);
        },
    );
    window.world.engine().watch();
}
