// SPDX-License-Identifier: Apache-2.0
//! Going on after processes have failed: what other libraries call ULFM (User Level Failure Mitigation).
//!
//! * this file: who has failed, and what of that the program has acknowledged;
//! * `revoke`: a communicator on which nothing is possible any more, at all members;
//! * `agreement`: members agree on a number, whoever fails meanwhile;
//! * `shrink`: on a communicator of those that are left;
//! * `errands`: what launchers of several jobs say to each other goes by their processes.
//!
//! Who has failed, the coordinator decides ([`isthmus_engine::losses`]), so all processes agree on that.

use std::sync::Arc;

use isthmus_engine::{Peer, acknowledge, acknowledged, losses};

use crate::comm::Comm;
use crate::group::Group;
use crate::world::World;

mod agreement;
mod errands;
mod revoke;
mod shrink;

pub use crate::asker::Asker;
pub use crate::comm::usable;
pub use agreement::{agree, agree_later};
pub use revoke::revoke;
pub(crate) use revoke::{end_here, part};
pub use shrink::{shrink, shrink_later};

/// By whom members agree; `None`: the program was started without a launcher.
pub fn set_asker(world: &Arc<World>, asker: Option<Arc<dyn Asker>>) {
    let own = Arc::downgrade(world);
    let has_met = move |meeting, peer| {
        let Some(world) = own.upgrade() else { return false };
        let all = world.abroad().meetings.all();
        let mut found = all.iter().filter(|known| known.id() == meeting);
        found.any(|known| known.group().rank_of(peer).is_some())
    };
    world.carrying.begin(world.engine(), has_met, asker.clone());
    _ = asker.map(|asker| world.asker.set(asker));
}

/// Members of a communicator (of both groups) that have failed, in the order in which this process has learnt of it,
/// each with how many losses it knew of then.
fn failed(world: &World, comm: &Comm) -> Vec<(Peer, usize)> {
    if let Some(asker) = world.asker.get() {
        asker.hear(&mut world.engine().lock());
    }
    let engine = world.engine().lock();
    let everybody = comm.everybody().group();
    let all = losses(&engine.core).iter().copied().zip(1..);
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
    let known = acknowledged(&world.engine().lock().core, comm.context());
    group_of(failed.into_iter().take_while(|(_, at)| *at <= known))
}

/// MPIX_Comm_ack_failed: the first so many of those that have failed are acknowledged, all if there are fewer. How many
/// are.
pub fn acknowledge_failed(world: &World, comm: &Comm, most: usize) -> usize {
    let failed = failed(world, comm);
    let mut engine = world.engine().lock();
    if let Some((_, at)) = failed.get(..most.min(failed.len())).and_then(<[_]>::last) {
        acknowledge(&mut engine.core, comm.context(), comm.user().acknowledged(), *at);
    }
    let known = acknowledged(&engine.core, comm.context());
    failed.iter().take_while(|(_, at)| *at <= known).count()
}
