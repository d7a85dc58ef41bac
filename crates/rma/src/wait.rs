// SPDX-License-Identifier: Apache-2.0
//! Waiting for what another process writes into a shared word: looks, then gives the processor away, then naps, with
//! progress of the engine all the while. Who waits for a process that is gone gets an error.

use std::time::Duration;

use isthmus_core::comm::Comm;
use isthmus_core::error::Result;
use isthmus_core::world::World;

/// Looks before anything else is done.
const LOOKS: u32 = 200;
/// Rounds with progress before naps.
const ROUNDS: u32 = 2000;
/// Length of naps.
const NAP: Duration = Duration::from_micros(100);

/// Waits until `look` finds something. Fails when a member of the communicator is gone.
pub(crate) fn until<T>(world: &World, comm: &Comm, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    for _ in 0..LOOKS {
        if let Some(found) = look() {
            return Ok(found);
        }
        std::hint::spin_loop();
    }
    in_vain(world, comm, look)
}

#[cold]
fn in_vain<T>(world: &World, comm: &Comm, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let mut rounds = 0;
    loop {
        let lost = {
            let mut engine = world.engine().lock();
            engine.progress();
            engine.lost_of(&comm.channel().members)
        };
        // Whoever is gone may have left the word in order.
        if let Some(found) = look() {
            return Ok(found);
        }
        if let Some(lost) = lost {
            return Err((&lost).into());
        }
        rounds += 1;
        if rounds > ROUNDS {
            world.engine().nap(NAP);
        } else {
            world.engine().idle();
        }
    }
}
