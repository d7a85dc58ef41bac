// SPDX-License-Identifier: Apache-2.0
//! Waiting for what another process writes into a shared word: looks, then gives the processor away, then naps, with
//! progress of the engine all the while. Who waits for a process that is gone gets an error.

use std::cell::Cell;
use std::time::Duration;

use isthmus_core::comm::Comm;
use isthmus_core::error::Result;
use isthmus_core::world::World;
use isthmus_engine::{Engine, Members, with_port};
use isthmus_lock::shared::{BlockLocks, ProcessLock};
use isthmus_wire::frame::protocol;

/// Looks before anything else is done.
const LOOKS: u32 = 200;
/// Rounds with progress before naps.
const ROUNDS: u32 = 2000;
/// Length of naps.
const NAP: Duration = Duration::from_micros(100);

/// Waits until `look` finds something. Fails when a member of the communicator is gone.
pub(crate) fn until<T>(world: &World, comm: &Comm, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    match at_once(&mut look) {
        Some(found) => Ok(found),
        None => in_vain(world, comm, look, |_| true),
    }
}

/// The same for the lock of a process of the window on this node. What those who are lost had of it goes on to others;
/// it is an error if the process itself is lost, or nobody who lives will give it back.
pub(crate) fn for_lock<T>(
    world: &World,
    comm: &Comm,
    rank: u32,
    lock: ProcessLock<'_>,
    mut look: impl FnMut() -> Option<T>,
) -> Result<T> {
    if let Some(found) = at_once(&mut look) {
        return Ok(found);
    }
    let (me, mut futile) = (comm.rank(), 0);
    in_vain(world, comm, look, |lost| {
        let is_lost = |member: u32| lost.contains(&member);
        lock.recover(&is_lost);
        // Who leaves says so before it goes its steps.
        futile = if lock.is_used(me, &is_lost) { 0 } else { futile + 1 };
        is_lost(rank) || futile > ROUNDS
    })
}

/// Waits for the lock of a block, and takes it from whoever is lost.
pub(crate) fn for_block(world: &World, comm: &Comm, locks: BlockLocks<'_>, lock: u32) -> Result<()> {
    let (me, taken) = (comm.rank(), Cell::new(false));
    let mut look = || (taken.get() || locks.enter(lock, me)).then_some(());
    if let Some(found) = at_once(&mut look) {
        return Ok(found);
    }
    in_vain(world, comm, look, |lost| {
        taken.set(locks.take_over(lock, me, &|member| lost.contains(&member)));
        false
    })
}

fn at_once<T>(look: &mut impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..LOOKS {
        if let Some(found) = look() {
            return Some(found);
        }
        std::hint::spin_loop();
    }
    None
}

/// `is_over`: whether to give up, now that these members are gone.
#[cold]
fn in_vain<T>(
    world: &World,
    comm: &Comm,
    mut look: impl FnMut() -> Option<T>,
    mut is_over: impl FnMut(&[u32]) -> bool,
) -> Result<T> {
    let mut rounds = 0;
    loop {
        let lost = {
            let mut engine = world.engine().lock();
            engine.progress();
            let members = &comm.channel().members;
            engine
                .core
                .lost_of(members)
                .map(|error| (error, lost_among(&mut engine, members)))
        };
        let over = lost.filter(|(_, ranks)| is_over(ranks));
        // Whoever is gone may have left the word in order.
        if let Some(found) = look() {
            return Ok(found);
        }
        if let Some((lost, _)) = over {
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

fn lost_among(engine: &mut Engine, members: &Members) -> Vec<u32> {
    with_port(engine, protocol::RMA, |port| {
        let ranks = 0..members.count();
        ranks.filter(|&rank| port.loss(members.peer(rank)).is_some()).collect()
    })
}
