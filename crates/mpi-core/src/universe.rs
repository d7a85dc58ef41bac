// SPDX-License-Identifier: Apache-2.0
//! All worlds of a process: the one it was started in, and those of other jobs that it has joined. One engine serves
//! them all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_datatype::Representation;
use isthmus_engine::{Job, Newcomers, Peer, Shared};
use isthmus_wire::place::{Place, PlaceTable};

use crate::error::{Error, Result};
use crate::fail;
use crate::world::World;

/// The worlds of a process.
pub struct Universe {
    own: Arc<World>,
    /// Those that came later, in that order.
    joined: Mutex<Vec<Arc<World>>>,
}

/// A job that this process becomes a member of.
pub struct Invitation<'a> {
    /// Name of the job: no two have the same.
    pub job: &'a str,
    /// Own rank there.
    pub rank: u32,
    /// Where its processes are.
    pub places: Arc<PlaceTable>,
    /// By which transport each of them is reached ([`Shared::add_transport`]).
    pub routes: Vec<u8>,
}

impl Universe {
    /// Of the world in which the process was started.
    pub fn new(own: Arc<World>) -> Self {
        Self {
            own,
            joined: Mutex::default(),
        }
    }

    /// The world in which the process was started.
    #[inline]
    pub fn own(&self) -> &Arc<World> {
        &self.own
    }

    /// The engine of all of them.
    pub fn engine(&self) -> &Shared {
        self.own.engine()
    }

    fn joined(&self) -> MutexGuard<'_, Vec<Arc<World>>> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes a member of another job's world. All its processes do so; nobody waits for them here.
    pub fn join(&self, invitation: Invitation<'_>) -> Result<Arc<World>> {
        let Invitation {
            job: name,
            rank,
            places,
            routes,
        } = invitation;
        let size = places.places.len() as u32;
        if rank >= size {
            fail!(
                abi::MPI_ERR_INTERN,
                "the job {name} has {size} processes, and this one is to be rank {rank}"
            );
        }
        let mut joined = self.joined();
        let mut engine = self.engine().lock();
        let job = engine.processes().job(name);
        let first = engine.take_in(Newcomers {
            job,
            ranks: 0..size,
            contexts: job,
            me: Some(rank),
            routes,
            levels: levels(&places, rank),
            representations: representations(&places)?,
        });
        drop(engine);
        let first = first.map_err(|error| Error::from(&error))?;
        let world = World::of(job, first, rank, places, self.own.shared_engine().clone());
        let world = Arc::new(world);
        joined.push(world.clone());
        Ok(world)
    }

    /// The world that a process belongs to; `None`: this process is in no world with it.
    pub fn world_of(&self, peer: Peer) -> Option<Arc<World>> {
        let has = |world: &&Arc<World>| world.rank_of(peer).is_some();
        let joined = self.joined();
        let mut all = std::iter::once(&self.own).chain(joined.iter());
        all.find(has).cloned()
    }

    /// The world of a job.
    pub fn world(&self, job: Job) -> Option<Arc<World>> {
        let joined = self.joined();
        let mut all = std::iter::once(&self.own).chain(joined.iter());
        all.find(|world| world.job() == job).cloned()
    }
}

/// The highest level that each process shares with this one.
fn levels(places: &PlaceTable, me: u32) -> Vec<u8> {
    let topology = isthmus_topology::Topology::new(places);
    let level = |rank| topology.level_between(me, rank).index() as u8;
    (0..topology.size()).map(level).collect()
}

/// How the processes represent data; empty if all do as this one.
fn representations(places: &PlaceTable) -> Result<Vec<Representation>> {
    let own = Representation::LOCAL.encode();
    if places.places.iter().all(|place| place.representation.0 == own) {
        return Ok(Vec::new());
    }
    let decode = |place: &Place| {
        Representation::decode(place.representation.0).map_err(|error| {
            let host = places.nodes.get(place.node as usize).map_or("?", |node| &node.host);
            Error::new(
                abi::MPI_ERR_OTHER,
                format!(
                    "data of a process on {host} cannot be converted: {error}; use one version of Isthmus everywhere"
                ),
            )
        })
    };
    places.places.iter().map(decode).collect()
}
