// SPDX-License-Identifier: Apache-2.0
//! What the agent says to a process that waits for something else: that others are gone.

use std::sync::{Arc, Mutex, PoisonError};

use isthmus_core::joining;
use isthmus_core::world::World;
use isthmus_engine::{Engine, Job, set_goes_on};
use isthmus_wire::boot::Gone;

use crate::BootError;
use crate::rendezvous::{Agent, Unasked};

/// From now on whoever waits inside MPI hears what the agent says without being asked.
pub(crate) fn listen(world: &Arc<World>, agent: &Arc<Mutex<Agent>>) -> Result<(), BootError> {
    let locked = agent.lock().unwrap_or_else(PoisonError::into_inner);
    let descriptor = locked
        .descriptor()
        .map_err(|e| BootError::System(format!("cannot duplicate a descriptor: {e}")))?;
    drop(locked);
    let (agent, own) = (Arc::downgrade(agent), Arc::downgrade(world));
    world.engine().listen(descriptor, move |engine| {
        let (Some(agent), Some(own)) = (agent.upgrade(), own.upgrade()) else {
            return false;
        };
        // Who has it asks the agent, and hears this too.
        let Ok(mut agent) = agent.try_lock() else { return true };
        hear(&own, engine, &mut agent).more
    });
    Ok(())
}

/// What the agent has said by now.
pub(crate) struct Heard {
    /// Whether it may say more.
    pub(crate) more: bool,
    /// Whether answers have come.
    pub(crate) answers: bool,
}

/// Hears what the agent has said by now.
pub(crate) fn hear(world: &World, engine: &mut Engine, agent: &mut Agent) -> Heard {
    let mut answers = false;
    loop {
        match agent.hear_unasked() {
            Unasked::Nothing => return Heard { more: true, answers },
            Unasked::Gone(gone) => lose(world, engine, &gone),
            Unasked::Answered => answers = true,
            Unasked::End => {}
            Unasked::Silence => return Heard { more: false, answers },
        }
    }
}

pub(crate) fn lose(world: &World, engine: &mut Engine, gone: &Gone) {
    if gone.goes_on {
        set_goes_on(&mut engine.core, true);
    }
    let ranks = gone.ranks(u32::MAX);
    let peers = match gone.is_own_world() {
        true => engine.core.processes().among(Job::OWN, ranks),
        false => {
            joining::note_death(world, gone.world, &gone.reason);
            joining::known(world, gone.world, &ranks)
        }
    };
    engine.lose_peers(peers, &gone.reason);
}
