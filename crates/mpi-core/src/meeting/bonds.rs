// SPDX-License-Identifier: Apache-2.0
//! Who of a meeting is still connected (MPI 5.0 section 11.10.4): the members of every communicator that was not
//! disconnected. Members can leave one after the other, by disconnecting what they have with others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// How many communicators bind which members, by place and in order. Equal at all members that are in one: making,
/// freeing and disconnecting are collective.
#[derive(Default)]
pub(crate) struct Bonds(Mutex<FxHashMap<Vec<u32>, usize>>);

impl Bonds {
    fn all(&self) -> MutexGuard<'_, FxHashMap<Vec<u32>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, places: &[u32]) {
        *self.all().entry(places.to_vec()).or_default() += 1;
    }

    fn remove(&self, places: &[u32]) {
        let mut all = self.all();
        match all.get_mut(places) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = all.remove(places),
        }
    }

    /// Whether this process is connected with nobody by this meeting.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Whether a communicator binds all of these. All of them find the same.
    pub(crate) fn hold(&self, places: &[u32]) -> bool {
        let is_in = |all: &Vec<u32>| places.iter().all(|place| all.binary_search(place).is_ok());
        self.all().keys().any(is_in)
    }

    /// The groups that are part of no other one, in order. All members of one find it.
    pub(crate) fn widest(&self) -> Vec<Vec<u32>> {
        let mut all: Vec<Vec<u32>> = self.all().keys().cloned().collect();
        all.sort_by_key(|places| std::cmp::Reverse(places.len()));
        let mut widest: Vec<Vec<u32>> = Vec::new();
        for places in all {
            let is_in = |wide: &Vec<u32>| places.iter().all(|place| wide.binary_search(place).is_ok());
            if !widest.iter().any(is_in) {
                widest.push(places);
            }
        }
        widest.sort_unstable();
        widest
    }
}

/// What the members of a communicator have together: as long as it lives, and afterwards unless they have disconnected.
pub(crate) struct Bond {
    bonds: Arc<Bonds>,
    places: Vec<u32>,
    stays: AtomicBool,
}

impl Bond {
    /// Between members of a meeting, by place.
    pub(crate) fn new(bonds: &Arc<Bonds>, mut places: Vec<u32>) -> Self {
        places.sort_unstable();
        bonds.add(&places);
        Self {
            bonds: bonds.clone(),
            places,
            stays: AtomicBool::new(false),
        }
    }

    /// The communicator is freed and not disconnected.
    pub(crate) fn stay(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }
}

impl Drop for Bond {
    fn drop(&mut self) {
        if !self.stays.load(Ordering::Relaxed) {
            self.bonds.remove(&self.places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_groups_are_found_whatever_was_made_first() {
        let bonds = Bonds::default();
        let groups: [&[u32]; 6] = [&[0, 1], &[2], &[0, 1, 2, 5], &[1, 3], &[2, 5], &[3]];
        groups.iter().for_each(|group| bonds.add(group));
        assert_eq!(bonds.widest(), [vec![0, 1, 2, 5], vec![1, 3]]);
        // Twice there, it is there until the second one goes.
        bonds.add(&[0, 1, 2, 5]);
        bonds.remove(&[0, 1, 2, 5]);
        assert_eq!(bonds.widest(), [vec![0, 1, 2, 5], vec![1, 3]]);
        bonds.remove(&[0, 1, 2, 5]);
        assert_eq!(bonds.widest(), [vec![0, 1], vec![1, 3], vec![2, 5]]);
        groups.iter().for_each(|group| bonds.remove(group));
        assert!(bonds.is_empty());
    }
}
