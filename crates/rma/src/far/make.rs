// SPDX-License-Identifier: Apache-2.0
//! Making a window with members on several nodes: each node shares its own memory, and its words.

use std::sync::Arc;

use isthmus_core::comm::Comm;
use isthmus_core::comm::create;
use isthmus_core::error::Result;
use isthmus_core::world::World;
use isthmus_datatype::Representation;
use isthmus_engine::{Peer, with_machine, with_port};
use isthmus_wire::frame::protocol;

use super::desk::Desk;
use super::{Far, refuse};

/// How the members represent data; empty: all as this process.
fn forms(world: &World, comm: &Comm) -> Box<[Representation]> {
    let mut engine = world.engine().lock();
    let members = comm.group().members().iter();
    let forms: Box<[Representation]> = with_port(&mut engine, protocol::RMA, |port| {
        members.map(|&peer: &Peer| port.representation(peer)).collect()
    });
    match forms.iter().all(|&form| form == Representation::LOCAL) {
        true => Box::default(),
        false => forms,
    }
}

/// Frames about windows are taken from now on.
fn register(world: &World) {
    let mut engine = world.engine().lock();
    if with_machine(&mut engine, protocol::RMA, |_: &mut Desk, _| ()).is_none() {
        engine.register(protocol::RMA, Box::new(Desk::default()));
    }
    if engine.underneath().is_there() {
        // A process that blocks in the machine's own MPI would take no frames.
        engine.underneath().mix();
    }
}

fn far(near: Box<[bool]>, node: &Arc<Comm>, forms: Box<[Representation]>) -> Far {
    Far {
        near,
        node: node.clone(),
        forms,
        sent: Default::default(),
    }
}

/// What a process knows of the members of a window, and a communicator of those on its node; collective.
pub(crate) fn make(world: &World, comm: &Comm) -> Result<(Far, Arc<Comm>)> {
    register(world);
    let near: Box<[bool]> = {
        let mut engine = world.engine().lock();
        let members = comm.group().members().iter();
        let me = comm.rank() as usize;
        let near = members.enumerate();
        near.map(|(rank, &peer)| rank == me || engine.frames().are_shared_with([peer]))
            .collect()
    };
    let first = near.iter().position(|&near| near).unwrap_or(0);
    let node = create::split(world, comm, Some(first as i32), 0)?;
    let Some(node) = node.filter(|node| node.size() as usize == near.iter().filter(|&&near| near).count()) else {
        return refuse(
            &comm.describe(),
            "do not agree on who shares memory; this is a bug in Isthmus",
        );
    };
    Ok((far(near, &node, forms(world, comm)), node))
}

/// The same where processes of the node must not reach each other's memory: each is on a node of its own; collective
/// over those of the node.
pub(crate) fn apart(world: &World, comm: &Comm, node: &Comm) -> Result<(Far, Arc<Comm>)> {
    register(world);
    let Some(alone) = create::split(world, node, Some(node.rank() as i32), 0)? else {
        return refuse(
            &comm.describe(),
            "one has no communicator of its own; this is a bug in Isthmus",
        );
    };
    let near = (0..comm.size()).map(|rank| rank == comm.rank()).collect();
    Ok((far(near, &alone, forms(world, comm)), alone))
}

impl Far {
    pub(crate) fn near(&self) -> impl Iterator<Item = usize> {
        let all = self.near.iter().enumerate();
        all.filter_map(|(rank, &near)| near.then_some(rank))
    }
}

/// The window's frames are heard from now on, or not any more.
pub(crate) fn open(window: &Arc<crate::window::Window>) {
    with_machine(
        &mut window.world.engine().lock(),
        protocol::RMA,
        |desk: &mut Desk, _| {
            desk.open(window);
        },
    );
    window.world.engine().watch();
}
