// SPDX-License-Identifier: Apache-2.0
//! What a piece of a message costs in one phase of an algorithm, and what further pieces add.

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
    /// How much longer than that a piece keeps a link where the next ones pass others: so much of what these need is
    /// over with the first.
    pub(super) lead: u64,
    /// Tier of the link.
    pub(super) tier: usize,
    /// Steps of the process that has most of them.
    pub(crate) steps: u64,
    /// Bytes of a piece on one connection of the wide area, and how often one after the other on different ones.
    pub(super) carried: (u64, u64),
}

impl Phase {
    /// What so many further pieces need of the busiest process in all phases, or of the busiest link in one of them.
    pub(super) fn further_apart(phases: &[Self], pieces: u64) -> u64 {
        let link = |p: &Self| p.link[0].max(p.link[1]).saturating_mul(pieces).saturating_sub(p.lead);
        let longest = phases.iter().map(link).max().unwrap_or(0);
        Self::busiest_process(phases).saturating_mul(pieces).max(longest)
    }

    /// What so many further pieces need of the busiest process or link in all phases.
    pub(super) fn further(phases: &[Self], pieces: u64) -> u64 {
        let process = Self::busiest_process(phases).saturating_mul(pieces);
        let tiers = phases.iter().map(|p| p.tier + 1).max().unwrap_or(0);
        let link = |tier| {
            let lead = phases.iter().filter(|p| p.tier == tier).map(|p| p.lead).max();
            let busiest = Self::busiest_link(phases, tier);
            busiest.saturating_mul(pieces).saturating_sub(lead.unwrap_or(0))
        };
        (0..tiers).map(link).fold(process, u64::max)
    }

    /// What the busiest process or link needs for one piece in all phases.
    pub(crate) fn interval(phases: &[Self]) -> u64 {
        let tiers = phases.iter().map(|p| p.tier + 1).max().unwrap_or(0);
        let links = (0..tiers).map(|tier| Self::busiest_link(phases, tier));
        links.fold(Self::busiest_process(phases), u64::max)
    }

    fn busiest_process(phases: &[Self]) -> u64 {
        phases.iter().fold(0u64, |sum, p| sum.saturating_add(p.process))
    }

    /// The busiest link of a tier, in the direction in which it has more to do.
    fn busiest_link(phases: &[Self], tier: usize) -> u64 {
        let sum = |direction: usize| {
            let phases = phases.iter().filter(|p| p.tier == tier);
            phases.fold(0u64, |sum, p| sum.saturating_add(p.link[direction]))
        };
        sum(0).max(sum(1))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_begin_side_by_side_are_not_waited_for() {
        // Each piece keeps its link for 30; three links, so that pieces come every 10.
        let wide = Phase {
            depth: 130,
            link: [10; 2],
            lead: 20,
            ..Phase::default()
        };
        let total = |pieces: u64| wide.depth + Phase::further(std::slice::from_ref(&wide), pieces - 1);
        // Every link carries a third of the pieces, 30 each, and the last has arrived 100 later.
        assert_eq!([3, 6, 30].map(total), [130, 160, 400]);
        let inside = Phase {
            process: 12,
            tier: 1,
            ..Phase::default()
        };
        // Processes have all pieces to do.
        assert_eq!(Phase::further(&[wide.clone(), inside.clone()], 2), 24);
        assert_eq!(Phase::further_apart(&[wide, inside], 29), 348);
    }
}
