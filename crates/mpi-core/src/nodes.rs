// SPDX-License-Identifier: Apache-2.0
//! By what members of a communicator over several nodes take steps of its blocking collective operations together:
//! memory of each node, or, in jobs of vendor MPIs, communicators of these.
//!
//! The first member on each node takes two slabs of memory; those of a job make two communicators. Plans are made
//! without communication, so all members must know whether everybody has got his own: they tell each other in an
//! agreement of all. That costs a trip over all links, so it comes only with the third operation that would take such
//! steps; the first ones, and communicators that are used no more than that, go by messages alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_engine::{Channel, NativeComm, NodeMembers, Peer, StepsBy};
use isthmus_schedule::Steps;

use crate::comm::Comm;
use crate::comm::nodes::{Agreed, Keeps};
use crate::error::{Error, Result};
use crate::internal::{self, Side};
use crate::slabs::Use;
use crate::world::World;

/// Operations that go by messages before members agree.
const BEFORE: u32 = 2;
/// In place of a slab: there was none left.
const NONE: u32 = u32::MAX;
/// Of messages among those of a job before they make communicators; no other beside the communicator has it.
const TAG: i32 = i32::MAX;

/// Whether an operation that would take such steps can; collective.
pub(crate) fn may_take_steps(world: &World, comm: &Comm, steps: Steps) -> Result<bool> {
    let Some(agreement) = comm.nodes.of(steps) else {
        return Ok(false);
    };
    if agreement.agreed.get().is_none() {
        if agreement.calls.fetch_add(1, Ordering::Relaxed) < BEFORE {
            return Ok(false);
        }
        let agreed = match steps {
            Steps::Jobs => agree_on_jobs(world, comm)?,
            Steps::None | Steps::Nodes => {
                let ranks = comm.network(world).node(comm.rank());
                agree_on_nodes(world, comm, &ranks)?
            }
        };
        agreement.agreed.get_or_init(|| agreed.map(Box::new));
    }
    Ok(comm.nodes.channel(steps).is_some())
}

/// Memory for the members with these ranks, if everybody gets what he asks for; whoever is alone asks for nothing.
fn agree_on_nodes(world: &World, comm: &Comm, ranks: &[u32]) -> Result<Option<Agreed>> {
    let first = ranks.first().copied().unwrap_or(0);
    let in_use = |slabs: [u32; 2]| -> Vec<Use> {
        let taken = slabs.into_iter().filter(|&slab| slab != NONE);
        taken.map(|slab| Use::of(slab, world.slabs())).collect()
    };
    let (mut slabs, mut uses) = ([0; 2], Vec::new());
    let mut engine = world.engine().lock();
    world.slabs().give_back(&mut engine);
    if ranks.len() > 1 && first == comm.rank() {
        slabs = [0; 2].map(|_: u32| engine.slabs().take(ranks.len() as u32).unwrap_or(NONE));
        // From here on they are in use: if the others cannot be told, they are given back.
        uses = in_use(slabs);
    }
    drop(engine);
    let mine: Vec<u8> = slabs.into_iter().flat_map(u32::to_le_bytes).collect();
    let all = internal::gather_equal(world, comm, &mine)?;
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(NONE, |b| u32::from_le_bytes(*b));
    let all: Vec<u32> = all.chunks_exact(4).map(word).collect();
    let slabs = all.get(2 * first as usize..).and_then(|rest| rest.first_chunk::<2>());
    let Some(&slabs) = slabs.filter(|_| ranks.len() > 1) else {
        return Ok((!all.contains(&NONE)).then(|| agreed(comm, ranks, None, Keeps::default())));
    };
    if first != comm.rank() {
        uses = in_use(slabs);
    }
    let keeps = Keeps {
        _slabs: uses,
        ..Keeps::default()
    };
    if all.contains(&NONE) {
        return Ok(None);
    }
    let mut engine = world.engine().lock();
    slabs.into_iter().for_each(|slab| engine.slabs().open(slab));
    Ok(Some(agreed(comm, ranks, Some(StepsBy::Memory(slabs)), keeps)))
}

/// Communicators of vendor MPIs for their jobs, and memory for nodes elsewhere.
fn agree_on_jobs(world: &World, comm: &Comm) -> Result<Option<Agreed>> {
    let network = comm.network(world);
    let ranks = network.of_steps(Steps::Jobs).node(comm.rank());
    let in_job = ranks.len() > 1 && world.is_in_vendor_job();
    let memory = agree_on_nodes(world, comm, if in_job { &[] } else { &ranks })?;
    let mut comms = Vec::new();
    if in_job && memory.is_some() {
        comms = make_natively(world, comm, &ranks)?;
    }
    let made = !in_job || comms.len() == 2;
    let all = internal::gather_equal(world, comm, &[u8::from(made)])?;
    if all.contains(&0) {
        return Ok(None);
    }
    if !in_job {
        return Ok(memory);
    }
    let by = match comms.as_slice() {
        [up, down] => Some(StepsBy::Native([up.name(), down.name()])),
        _ => None,
    };
    let keeps = Keeps {
        _comms: comms,
        ..Keeps::default()
    };
    Ok(Some(agreed(comm, &ranks, by, keeps)))
}

/// Two communicators of the vendor MPI for members with these ranks, who are all of its job; fewer: it cannot have
/// them.
fn make_natively(world: &World, comm: &Comm, ranks: &[u32]) -> Result<Vec<NativeComm>> {
    let peers: Vec<Peer> = ranks.iter().map(|&rank| comm.channel().members.peer(rank)).collect();
    if !world.is_one_vendor_job(&peers) {
        return Ok(Vec::new());
    }
    // Making them blocks, and nothing but that MPI moves then: nobody else may be needed by who has not come that
    // far.
    let me = ranks.iter().position(|&rank| rank == comm.rank()).unwrap_or(0);
    Side::of(comm, TAG).meet(world, ranks, me)?;
    let mut comms = Vec::new();
    for _ in 0..2 {
        let tag = comm.channel().context.number() as i32 & i32::MAX;
        let made = world.engine().lock().underneath().create(&peers, tag);
        comms.extend(made.map_err(|error| Error::from(&error))?);
    }
    Ok(comms)
}

fn agreed(comm: &Comm, ranks: &[u32], by: Option<StepsBy>, keeps: Keeps) -> Agreed {
    let me = ranks.iter().position(|&rank| rank == comm.rank()).unwrap_or(0) as u32;
    let node = by.map(|by| {
        Arc::new(NodeMembers {
            ranks: ranks.into(),
            me,
            by,
        })
    });
    Agreed {
        channel: Channel {
            node,
            ..comm.channel().clone()
        },
        _keeps: keeps,
    }
}
