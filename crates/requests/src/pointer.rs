// SPDX-License-Identifier: Apache-2.0
//! Global pointers: which process they name, and how they look to people.

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::world::World;
use isthmus_engine::{Job, Peer, Processes};
use isthmus_wire::requests::{Pointer, Target, job_number};

/// A pointer to a process.
pub(crate) fn to_peer(processes: &Processes, peer: Peer) -> Result<Pointer> {
    let known = processes.process(peer);
    let named = known.and_then(|process| Some((process, processes.job_name(process.job)?)));
    let Some((process, job)) = named else {
        fail!(abi::MPI_ERR_INTERN, "a process is in no job; this is a bug in Isthmus");
    };
    let nowhere = Target {
        region: 0,
        address: 0,
        length: 0,
    };
    Ok(Pointer {
        job: job_number(&job),
        rank: process.rank.0,
        target: nowhere,
    })
}

/// The process that a pointer names.
pub(crate) fn owner(world: &World, processes: &Processes, pointer: &Pointer) -> Result<Peer> {
    let names = |job| {
        processes
            .job_name(job)
            .is_some_and(|name| job_number(&name) == pointer.job)
    };
    if names(Job::OWN) && pointer.rank < world.size() {
        return Ok(world.peer(pointer.rank));
    }
    // Of another job that this process has met.
    let mut all = (0..processes.count()).map(Peer::new);
    let found = all.find(|&peer| {
        let process = processes.process(peer);
        process.is_some_and(|process| process.rank.0 == pointer.rank && names(process.job))
    });
    match found {
        Some(peer) => Ok(peer),
        None => fail!(
            abi::MPI_ERR_RANK,
            argument("to"),
            "is {}, a process that this one does not know",
            words(pointer)
        ),
    }
}

/// For people.
pub fn words(pointer: &Pointer) -> String {
    let Pointer { job, rank, target } = pointer;
    match target.region {
        0 => format!("rank {rank} of job {job:016x}"),
        region => format!(
            "{} bytes at {:#x} (memory {region}) of rank {rank} of job {job:016x}",
            target.length, target.address
        ),
    }
}
