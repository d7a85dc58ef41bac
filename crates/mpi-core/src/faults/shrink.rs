// SPDX-License-Identifier: Apache-2.0
//! A communicator of those that are left. Its members and its contexts are in the answer to one question, so nobody
//! waits for a member that fails after it; such a one is a lost member of the new communicator, like any other.

use std::sync::{Arc, Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_engine::{Engine, EngineError, Request};
use isthmus_wire::agreeing::{Agreed, What, places};

use super::agreement::{Then, refused, start};
use crate::comm::{Blueprint, Comm, joined};
use crate::context::{self, Contexts, Numbers};
use crate::create::meet_if_near;
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::revocable::spread;
use crate::world::World;

/// What a new communicator is made of once it is known who is left.
struct Draft {
    blueprint: Blueprint,
    everybody: Group,
    /// Of an intercommunicator: places of the local group, and whether it is the low one.
    local: Option<(std::ops::Range<u32>, bool)>,
    taken: Numbers,
    contexts: Arc<Contexts>,
    name: String,
}

impl Draft {
    fn new(world: &World, comm: &Comm) -> Result<Self> {
        let Some(blueprint) = Blueprint::from(world, comm, comm.group().clone()) else {
            fail!(
                abi::MPI_ERR_INTERN,
                "the process is not a member of its own communicator"
            )
        };
        // Messages of the new one need progress of ours, also on top of a vendor MPI.
        world.engine().lock().underneath().mix();
        let contexts = joined::contexts(world, comm).clone();
        Ok(Self {
            blueprint,
            everybody: comm.everybody().group().clone(),
            local: comm.joint().map(|joint| (joint.local.clone(), joint.is_low())),
            taken: contexts.take(comm.joint().is_some()),
            contexts,
            name: comm.describe(),
        })
    }

    fn build(self, agreed: &Agreed) -> std::result::Result<Arc<Comm>, EngineError> {
        let numbers = agreed.contexts;
        if numbers != self.taken {
            self.contexts.give_back(self.taken);
        }
        let numbers = context::granted(numbers).map_err(|error| refused(&error.message))?;
        let lost: Vec<u32> = places(&agreed.lost).collect();
        let left = |range: std::ops::Range<u32>| {
            let ranks: Vec<u32> = range.filter(|place| lost.binary_search(place).is_err()).collect();
            self.everybody.pick(&ranks)
        };
        let all = 0..self.everybody.size() as u32;
        let (group, remote) = match &self.local {
            None => (left(all), None),
            Some((local, low)) => {
                let others = if *low { local.end..all.end } else { 0..local.start };
                (left(local.clone()), Some((left(others), *low)))
            }
        };
        let gone = || EngineError::Elsewhere {
            class: abi::MPIX_ERR_PROC_FAILED,
            text: format!("no process of the other group of {} is left", self.name).into(),
        };
        if remote.as_ref().is_some_and(|(remote, _)| remote.size() == 0) {
            return Err(gone());
        }
        let Some(rank) = group.rank_of(self.blueprint.me()) else {
            return Err(refused(
                "the launcher knows that this process has ended; please report this",
            ));
        };
        Ok(self.blueprint.of(group, rank, remote).build(numbers))
    }
}

/// MPIX_Comm_shrink: a communicator of the members that live, in the order of their ranks. All of them get the same.
pub fn shrink(world: &World, comm: &Comm) -> Result<Arc<Comm>> {
    let made = Arc::new(Mutex::new(None));
    let place = made.clone();
    let request = begin(world, comm, move |_, comm| {
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(comm);
    })?;
    world.wait(request)?;
    let made = made.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut comm) = made else {
        fail!(abi::MPI_ERR_INTERN, "the shrunk communicator is lacking")
    };
    if let Some(comm) = Arc::get_mut(&mut comm) {
        meet_if_near(world, comm);
    }
    world.revocable.begins(world.engine(), &comm);
    Ok(comm)
}

/// MPIX_Comm_ishrink: `then` gets the communicator when the request is complete. It must not use the engine.
pub fn shrink_later(world: &World, comm: &Comm, then: impl FnOnce(Arc<Comm>) + Send + 'static) -> Result<Request> {
    let revocable = world.revocable.clone();
    begin(world, comm, move |engine, comm| {
        for cause in revocable.register(&comm) {
            spread(&*comm, engine, &[], cause);
        }
        then(comm);
    })
}

fn begin(world: &World, comm: &Comm, then: impl FnOnce(&mut Engine, Arc<Comm>) + Send + 'static) -> Result<Request> {
    let draft = Draft::new(world, comm)?;
    let taken = draft.taken;
    let then: Then = Box::new(move |engine, answer| match answer {
        Ok(agreed) => draft.build(agreed).map(|comm| then(engine, comm)).err(),
        Err(why) => {
            draft.contexts.give_back(draft.taken);
            Some(refused(why))
        }
    });
    start(world, comm, What::Members, u32::MAX, taken, then)
}
