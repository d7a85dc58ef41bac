// SPDX-License-Identifier: Apache-2.0
//! What the members of a node do together in its memory, and those of a job of a vendor MPI with that
//! ([`node`](crate::node)).

use super::{Council, Flow, Phase, SWITCH};
use crate::network::Jobs;
use isthmus_topology::{Level, Links};

/// Longest block, bytes, of which whoever needs the result of a reduction computes all of it, which costs less than
/// meeting once more. Of longer ones everybody computes a part.
pub const ALONE: u64 = 8 << 10;

/// Nanoseconds that a process combines which needs the result of a reduction of so many bytes among so many.
pub fn combining(links: &Links, bytes: u64, members: u64) -> u64 {
    let all = links.reduce.at(bytes).saturating_mul(members.saturating_sub(1));
    if bytes <= ALONE { all } else { all / members.max(1) }
}

/// What a step takes, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Until everybody has what he takes.
    pub depth: u64,
    /// Of the time of a process.
    pub process: u64,
}

/// A collective operation of a vendor MPI in which all have so many bytes and a node so many of them. How it
/// goes is not known. It is taken for what any has: memory on a node; among nodes the quickest of one who sends to all,
/// a binomial tree, and, of long messages, halves of halves and then a ring. (Thakur, Rabenseifner, Gropp: Optimization
/// of collective communication operations in MPICH, 2005.)
pub fn natively(links: &Links, jobs: Jobs, combines: bool, [bytes, share]: [u64; 2]) -> Spent {
    let (link, nodes) = (links.level(Level::Vendor), u64::from(jobs.nodes));
    let combine = |bytes| if combines { links.reduce.at(bytes) } else { 0 };
    let ends = |bytes| [link.send.at(bytes), link.receive.at(bytes) + combine(bytes)];
    let busy = |bytes| ends(bytes).into_iter().sum::<u64>();
    let apart = |bytes| link.gap.at(bytes) + link.latency;
    let rounds = u64::from(nodes.next_power_of_two().ilog2());
    let between = |apart: &dyn Fn(u64) -> u64| {
        if nodes < 2 {
            return 0;
        }
        let each = |bytes| busy(bytes) + apart(bytes);
        let halves = (1..=rounds)
            .map(|round| each(bytes >> round))
            .fold(0, u64::saturating_add);
        // At one end all is done by one process.
        let [send, receive] = ends(share);
        let alone = (nodes - 1).saturating_mul(send.max(receive)) + send.min(receive) + apart(share);
        let ring = (nodes - 1).saturating_mul(each(bytes / nodes));
        let others = match share < bytes {
            true => halves,
            false => rounds.saturating_mul(each(bytes)).min(halves.saturating_add(ring)),
        };
        others.min(alone)
    };
    let copy = match jobs.on_node {
        0 | 1 => 0,
        _ => links.level(Level::Node).latency + 2 * links.copy.at(bytes) + combine(bytes),
    };
    let waiting = jobs.on_node.saturating_sub(links.processors);
    let inside = copy.saturating_add(u64::from(waiting).saturating_mul(SWITCH));
    Spent {
        depth: between(&apart).saturating_add(inside),
        process: between(&|_| 0).saturating_add(inside),
    }
}

impl Council<'_> {
    /// One step of all members; so many of them need so many bytes.
    pub(super) fn together(&self, way: Flow, bytes: &dyn Fn(u32) -> u64) -> Phase {
        match self.network.jobs() {
            Some(jobs) => self.natively(jobs, way, bytes),
            None => self.in_memory(way, bytes(self.members)),
        }
    }

    fn natively(&self, jobs: Jobs, way: Flow, bytes: &dyn Fn(u32) -> u64) -> Phase {
        // Blocks of processes: each node has its share.
        let share = (self.members / jobs.nodes.max(1)).max(1);
        let sizes = [bytes(self.members), bytes(share)];
        let spent = natively(self.network.links(), jobs, way == Flow::Combine, sizes);
        Phase {
            name: format!(
                "{}: {} among {} on {} nodes",
                self.level().name(),
                way.name(),
                self.members,
                jobs.nodes
            ),
            depth: spent.depth,
            process: spent.process,
            tier: self.tier,
            steps: 1,
            ..Phase::default()
        }
    }

    /// Everybody copies what he gives into cells, and what he takes out of them. Who gives
    /// only waits for nobody; for the parts of a long result everybody waits for all, twice.
    fn in_memory(&self, way: Flow, bytes: u64) -> Phase {
        let (links, all) = (self.network.links(), u64::from(self.members));
        let copy = links.copy.at(bytes);
        let combined = copy.saturating_mul(2).saturating_add(combining(links, bytes, all));
        let (process, work, rounds, waits) = match way {
            Flow::Down => (copy, copy.saturating_mul(all), 1, all - 1),
            Flow::Up => (copy, copy.saturating_mul(all), 1, 1),
            Flow::Combine if bytes <= ALONE => (combined, copy.saturating_mul(all - 1).saturating_add(combined), 1, 1),
            Flow::Combine => (combined, combined.saturating_mul(all), 2, 2 * all),
        };
        // What is given is taken after it was given; long blocks pass in pieces.
        let given = if bytes <= ALONE { copy } else { copy / 2 };
        let latency = self.network.link(self.tier).latency.saturating_add(self.waking());
        let mut phase = Phase {
            name: format!("{}: together {} among {all}", self.level().name(), way.name()),
            depth: latency
                .saturating_mul(rounds)
                .saturating_add(given)
                .saturating_add(process),
            process,
            tier: self.tier,
            steps: 1,
            ..Phase::default()
        };
        phase.share(self, work.saturating_add(self.waking().saturating_mul(waits)));
        phase
    }
}
