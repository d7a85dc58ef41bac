// SPDX-License-Identifier: Apache-2.0
//! What a process knows of the members of a window on other nodes, and has sent them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isthmus_core::comm::Near;
use isthmus_engine::Request;

use crate::counts::Counts;
use crate::types::TypesAtTarget;

/// What a process knows of a window that has members on other nodes.
pub(crate) struct Far {
    /// Which members share this process's node.
    near: Arc<Near>,
}

impl Far {
    /// What a process knows of the members of a window over these.
    pub(crate) fn new(near: Arc<Near>) -> Self {
        Self { near }
    }

    /// Members that share this process's node.
    pub(crate) fn near(&self) -> impl Iterator<Item = usize> {
        let all = self.near.members().iter().enumerate();
        all.filter_map(|(rank, &near)| near.then_some(rank))
    }

    /// Whether a member shares this process's node.
    pub(crate) fn is_near(&self, rank: u32) -> bool {
        self.near.members()[rank as usize]
    }
}

/// What members on other nodes were sent.
#[derive(Default)]
pub(crate) struct Sent {
    /// Those that were asked for their locks.
    pub(crate) locked: BTreeSet<u32>,
    /// Those that have operations nobody has waited for, of those that are not answered.
    pub(crate) open: BTreeSet<u32>,
    /// Those that were asked whether they are done with operations, by requests that nobody has waited for.
    pub(crate) early: BTreeMap<u32, Request>,
    /// How many threads wait for operations on each.
    pub(crate) settling: BTreeMap<u32, u32>,
    pub(crate) counts: Counts,
    /// Datatypes that they keep.
    pub(crate) types: BTreeMap<u32, TypesAtTarget>,
}

impl Sent {
    /// A thread waits no longer for operations on these.
    pub(crate) fn has_settled(&mut self, ranks: &BTreeSet<u32>) {
        for rank in ranks {
            let left = self.settling.get_mut(rank).map(|threads| {
                *threads -= 1;
                *threads
            });
            if left == Some(0) {
                self.settling.remove(rank);
            }
        }
    }
}
