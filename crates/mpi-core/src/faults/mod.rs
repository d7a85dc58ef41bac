// SPDX-License-Identifier: Apache-2.0
//! Going on after processes have failed: what other libraries call ULFM (User Level Failure Mitigation).
//!
//! * this file: who has failed, and what of that the program has acknowledged;
//! * `revoke`: a communicator on which nothing is possible any more, at all members;
//! * `agreement`: members agree on a number, whoever fails meanwhile;
//! * `shrink`: on a communicator of those that are left.
//!
//! Who has failed, the coordinator decides ([`isthmus_engine::losses`]), so all processes agree on that.

use std::sync::{Arc, OnceLock};

use isthmus_abi::constants as abi;
use isthmus_engine::{Peer, Shared, acknowledge, acknowledged, losses, register_later};
use isthmus_wire::frame::protocol;

use crate::comm::Comm;
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::world::World;

mod agreement;
mod revoke;
mod shrink;

pub use agreement::{Asker, agree, agree_later};
pub(crate) use revoke::begins;
pub use revoke::revoke;
use revoke::{Revocable, Revoker};
pub use shrink::{shrink, shrink_later};

/// What it takes to go on after losses.
pub(crate) struct Faults {
    revocable: Arc<Revocable>,
    /// `None`: there is nobody to ask.
    asker: OnceLock<Arc<dyn Asker>>,
}

impl Faults {
    /// From now on this process hears that a communicator is revoked.
    pub(crate) fn new(engine: &Shared) -> Self {
        let revocable: Arc<Revocable> = Arc::default();
        let known = revocable.clone();
        register_later(&mut engine.lock(), protocol::REVOKE, move || {
            Box::new(Revoker::new(known))
        });
        Self {
            revocable,
            asker: OnceLock::new(),
        }
    }

    pub(crate) fn revocable(&self) -> &Arc<Revocable> {
        &self.revocable
    }
}

/// By whom members agree.
pub fn set_asker(world: &World, asker: Arc<dyn Asker>) {
    _ = world.faults().asker.set(asker);
}

/// Refuses what is not possible on a communicator that was revoked.
#[inline]
pub fn usable(comm: &Comm) -> Result<()> {
    match comm.is_revoked() {
        false => Ok(()),
        true => revoked(comm),
    }
}

#[cold]
fn revoked<T>(comm: &Comm) -> Result<T> {
    fail!(
        abi::MPIX_ERR_REVOKED,
        "{} was revoked (MPIX_Comm_revoke): nothing but MPIX_Comm_shrink, MPIX_Comm_agree, questions about it and MPI_Comm_free is \
         possible on it any more",
        comm.describe()
    )
}

/// Members of a communicator (of both groups) that have failed, in the order in which this process has learnt of it,
/// each with how many losses it knew of then.
fn failed(world: &World, comm: &Comm) -> Vec<(Peer, usize)> {
    if let Some(asker) = world.faults().asker.get() {
        asker.hear(&mut world.engine().lock());
    }
    let engine = world.engine().lock();
    let everybody = comm.everybody().group();
    let all = losses(&engine).iter().copied().zip(1..);
    all.filter(|(peer, _)| everybody.rank_of(*peer).is_some()).collect()
}

fn group_of(failed: impl Iterator<Item = (Peer, usize)>) -> Group {
    Group::new(failed.map(|(peer, _)| peer).collect::<Vec<_>>())
}

/// MPIX_Comm_get_failed: the members that have failed, each call's result the beginning of the next one's.
pub fn get_failed(world: &World, comm: &Comm) -> Group {
    group_of(failed(world, comm).into_iter())
}

/// MPIX_Comm_failure_get_acked: those of them that are acknowledged.
pub fn get_acknowledged(world: &World, comm: &Comm) -> Group {
    let failed = failed(world, comm);
    let known = acknowledged(&world.engine().lock(), comm.context());
    group_of(failed.into_iter().take_while(|(_, at)| *at <= known))
}

/// MPIX_Comm_ack_failed: the first so many of those that have failed are acknowledged, all if there are fewer. How many
/// are.
pub fn acknowledge_failed(world: &World, comm: &Comm, most: usize) -> usize {
    let failed = failed(world, comm);
    let mut engine = world.engine().lock();
    if let Some((_, at)) = failed.get(..most.min(failed.len())).and_then(<[_]>::last) {
        acknowledge(&mut engine, comm.context(), *at);
    }
    let known = acknowledged(&engine, comm.context());
    failed.iter().take_while(|(_, at)| *at <= known).count()
}
