// SPDX-License-Identifier: Apache-2.0
//! Global pointers: which process they name, and how they look to people.

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::world::World;
use isthmus_core::{fail, joining};
use isthmus_engine::Peer;
use isthmus_wire::requests::{Pointer, Target, job_number};

/// What stands for a world, which all processes that are connected call alike.
fn number(world: &[u8; 16]) -> u64 {
    job_number(&format!("{:032x}", u128::from_be_bytes(*world)))
}

/// A pointer to a process, for any thread.
pub fn to_process(world: &World, peer: Peer) -> Result<Pointer> {
    let Some(name) = joining::name_of(world, peer) else {
        fail!(
            abi::MPI_ERR_RANK,
            "the process is of another job, with which this one is connected no more"
        );
    };
    let nowhere = Target {
        region: 0,
        address: 0,
        length: 0,
    };
    Ok(Pointer {
        job: number(&name.world),
        rank: name.rank,
        target: nowhere,
    })
}

/// The process that a pointer names, for any thread.
pub fn owner(world: &World, pointer: &Pointer) -> Result<Peer> {
    match joining::named(world, pointer.rank, |world| number(world) == pointer.job) {
        Some(peer) => Ok(peer),
        None => fail!(
            abi::MPI_ERR_RANK,
            argument("to"),
            "is {}, a process that this one does not know, or is connected with no more",
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
