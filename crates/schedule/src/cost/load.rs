// SPDX-License-Identifier: Apache-2.0
//! The load of members and links where items take their ways through others.

use super::{Council, Phase};
use crate::routes::Ways;

impl Council<'_> {
    /// As [`exchange`](Self::exchange), and everybody's item takes its quickest ways.
    pub(crate) fn relayed(&self, ways: &Ways, bytes: u64, combine: bool) -> Phase {
        let others = u64::from(self.members.saturating_sub(1));
        let reduce = self.network.links().reduce.at(bytes);
        let work = if combine { reduce } else { 0 };
        let mut load = Load::new(self, bytes);
        for item in 0..self.members {
            load.spread(ways, item, item, 0);
        }
        let process = load
            .processes
            .iter()
            .max()
            .map_or(0, |most| most.saturating_add(work.saturating_mul(others)));
        let link = load.links.iter().copied().max().unwrap_or(0);
        Phase {
            name: format!("{}: routed exchange among {}", self.level().name(), self.members),
            depth: load
                .depth
                .saturating_add(process)
                .saturating_add(link.saturating_sub(load.gap)),
            process,
            link: [link; 2],
            lead: 0,
            tier: self.tier,
            steps: if combine { 3 } else { 2 } * others,
            carried: self.carried(bytes, 1),
        }
    }
}

/// What items of so many bytes on their ways through others are for members and links.
pub(super) struct Load<'a> {
    council: &'a Council<'a>,
    bytes: u64,
    /// Until the last member has the last item, but for what the members are busy.
    pub(super) depth: u64,
    /// Sending and receiving, by member.
    pub(super) processes: Vec<u64>,
    /// Gaps, by sender and receiver.
    pub(super) links: Vec<u64>,
    /// The longest gap of one message.
    pub(super) gap: u64,
}

impl<'a> Load<'a> {
    pub(super) fn new(council: &'a Council<'a>, bytes: u64) -> Self {
        let k = council.members as usize;
        Self {
            council,
            bytes,
            depth: 0,
            processes: vec![0; k],
            links: vec![0; k * k],
            gap: 0,
        }
    }

    /// A member that has an item hands it on.
    pub(super) fn spread(&mut self, ways: &Ways, item: u32, by: u32, since: u64) {
        for to in ways.after(item, by) {
            let link = self.council.link(by, to);
            let gap = link.gap.at(self.bytes);
            let (send, receive) = (link.send.at(self.bytes), link.receive.at(self.bytes));
            self.processes[by as usize] += send;
            self.processes[to as usize] += receive;
            self.links[(by * self.council.members + to) as usize] += gap;
            self.gap = self.gap.max(gap);
            let begin = if item == by { since } else { since.saturating_add(send) };
            let arrival = begin.saturating_add(gap).saturating_add(link.latency);
            let there = arrival.saturating_add(if ways.after(item, to).next().is_some() {
                receive
            } else {
                0
            });
            self.depth = self.depth.max(arrival);
            self.spread(ways, item, to, there);
        }
    }
}
