// SPDX-License-Identifier: Apache-2.0
//! What a piece of a message costs in one phase of an algorithm, and what further pieces add.

use super::Council;

/// What one piece costs in one phase of an algorithm, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// From the begin until the last process is through.
    pub(crate) depth: u64,
    /// The busiest process.
    pub(crate) process: u64,
    /// The busiest link, away from the top and towards it.
    pub(super) link: [u64; 2],
    /// Tier of the link.
    pub(super) tier: usize,
    /// Steps of the process that has most of them.
    pub(crate) steps: u64,
    /// Bytes of a piece on one connection of the wide area, and how often one after the other on different ones.
    pub(super) carried: (u64, u64),
}

impl Phase {
    /// As much work as that of the busiest process for all members, each of whom waits so often.
    pub(super) fn share_all(&mut self, council: &Council<'_>, waits: u64) {
        let each = self.process.saturating_add(waits.saturating_mul(council.waking()));
        self.share(council, each.saturating_mul(u64::from(council.members)));
    }

    /// The members' work in all, where those of a node share its processors.
    pub(super) fn share(&mut self, council: &Council<'_>, work: u64) {
        if council.is_crowded() {
            let time = work / u64::from(council.network.links().processors.max(1));
            self.depth = self.depth.max(time);
            self.process = self.process.max(time);
        }
    }

    /// What the busiest process needs for one piece in all phases, or the busiest link in one of them.
    pub(super) fn interval_apart(phases: &[Self]) -> u64 {
        let process = phases.iter().fold(0u64, |sum, p| sum.saturating_add(p.process));
        let link = phases.iter().map(|p| p.link[0].max(p.link[1])).max();
        process.max(link.unwrap_or(0))
    }

    /// What the busiest process or link needs for one piece in all phases.
    pub(crate) fn interval(phases: &[Self]) -> u64 {
        let process = phases.iter().fold(0u64, |sum, p| sum.saturating_add(p.process));
        let tiers = phases.iter().map(|p| p.tier + 1).max().unwrap_or(0);
        let link = |tier, direction: usize| {
            let phases = phases.iter().filter(|p| p.tier == tier);
            phases.fold(0u64, |sum, p| sum.saturating_add(p.link[direction]))
        };
        (0..tiers).fold(process, |most, tier| most.max(link(tier, 0)).max(link(tier, 1)))
    }

    /// What one process does alone.
    pub(crate) fn of_process(name: &str, time: u64) -> Self {
        Self {
            name: name.to_owned(),
            depth: time,
            process: time,
            ..Self::default()
        }
    }
}
