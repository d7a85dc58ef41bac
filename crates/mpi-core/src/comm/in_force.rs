// SPDX-License-Identifier: Apache-2.0
//! What the schedules of a communicator are chosen by.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use isthmus_schedule::Network;
use isthmus_topology::LinkEstimates;

/// The links in force, and the network that is made of them.
#[derive(Default)]
pub(crate) struct InForce(Mutex<OwnAndCopies>);

#[derive(Default)]
struct OwnAndCopies {
    own: State,
    /// What its duplicates begin with, if that is something else: what the last one has heard. All members make
    /// duplicates in one order, so it is the same at all.
    copies: Option<Box<State>>,
}

#[derive(Clone, Default)]
struct State {
    /// If they are not those of the world.
    links: Option<Arc<LinkEstimates>>,
    /// Made of the links. Duplicates have it together with what they were made of, as long as their links are the same:
    /// it is most of what a communicator takes.
    network: Arc<OnceLock<Arc<Network>>>,
}

impl InForce {
    fn kept(&self) -> MutexGuard<'_, OwnAndCopies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The links, if they are not those of the world.
    pub(crate) fn links(&self) -> Option<Arc<LinkEstimates>> {
        self.kept().own.links.clone()
    }

    /// From now on these are in force.
    pub(crate) fn set(&self, links: Option<Arc<LinkEstimates>>) {
        let network = Arc::default();
        *self.kept() = OwnAndCopies {
            own: State { links, network },
            copies: None,
        };
    }

    /// The network, made of the links where there is none since they changed.
    pub(crate) fn network(&self, make: impl FnOnce(Option<&Arc<LinkEstimates>>) -> Arc<Network>) -> Arc<Network> {
        let State { links, network } = self.kept().own.clone();
        network.get_or_init(|| make(links.as_ref())).clone()
    }

    /// For a duplicate.
    pub(crate) fn of_copy(&self) -> Self {
        let kept = self.kept();
        let own = kept.copies.as_deref().unwrap_or(&kept.own).clone();
        Self(Mutex::new(OwnAndCopies { own, copies: None }))
    }

    /// A duplicate has heard news of the links: the next ones begin with them.
    pub(crate) fn heard_by(&self, copy: &Self) {
        let heard = copy.kept().own.clone();
        self.kept().copies = Some(Box::new(heard));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_one(one: &InForce, other: &InForce) -> bool {
        Arc::ptr_eq(&one.kept().own.network, &other.kept().own.network)
    }

    #[test]
    fn duplicates_have_one_network_as_long_as_their_links_are_the_same() {
        let original = InForce::default();
        let (first, second) = (original.of_copy(), original.of_copy());
        assert!(are_one(&original, &first) && are_one(&first, &second));
        second.set(Some(Arc::default()));
        assert!(!are_one(&original, &second) && are_one(&original, &first));
        original.heard_by(&second);
        let third = original.of_copy();
        assert!(are_one(&second, &third) && !are_one(&original, &third));
        assert!(original.links().is_none() && third.links().is_some());
        original.set(None);
        assert!(are_one(&original, &original.of_copy()));
    }
}
