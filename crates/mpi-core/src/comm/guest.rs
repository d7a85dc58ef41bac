// SPDX-License-Identifier: Apache-2.0
//! Guests: processes that serve the members of a communicator and take part in nothing collective.

use std::sync::Arc;

use isthmus_engine::Peer;

use super::Comm;
use crate::context;
use crate::group::Group;

/// The same processes on a context beside theirs, and one more with the last rank: a guest, who serves the others and
/// takes part in nothing collective. Valid for as long as this communicator is. How the guest has it:
/// [`Whereabouts::of_guest`](super::Whereabouts::of_guest).
pub fn with_guest(comm: &Comm, guest: Peer) -> Arc<Comm> {
    let mut all = comm.group().members().to_vec();
    all.push(guest);
    let context = context::with_guest(comm.context());
    let mut with = Comm::new(Group::new(all), comm.rank(), context, "");
    with.joined.clone_from(&comm.joined);
    Arc::new(with)
}
