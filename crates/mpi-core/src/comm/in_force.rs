// SPDX-License-Identifier: Apache-2.0
//! What the schedules of a communicator are chosen by.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_schedule::Network;
use isthmus_topology::Known;

/// The links in force, and the network that is made of them.
#[derive(Default)]
pub(super) struct InForce(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// If they are not those of the world.
    links: Option<Arc<Known>>,
    /// Made of the links.
    network: Option<Arc<Network>>,
}

impl InForce {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The links, if they are not those of the world.
    pub(super) fn links(&self) -> Option<Arc<Known>> {
        self.kept().links.clone()
    }

    /// From now on these are in force.
    pub(super) fn set(&self, links: Option<Arc<Known>>) {
        *self.kept() = Kept { links, network: None };
    }

    /// The network, made of the links where there is none since they changed.
    pub(super) fn network(&self, make: impl FnOnce(Option<&Arc<Known>>) -> Arc<Network>) -> Arc<Network> {
        let mut kept = self.kept();
        let Kept { links, network } = &mut *kept;
        network.get_or_insert_with(|| make(links.as_ref())).clone()
    }
}
