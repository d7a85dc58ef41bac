// SPDX-License-Identifier: Apache-2.0
//! What algorithms cost: sums of named factors over piecewise-linear link parameters
//! ([`Links`](isthmus_topology::Links)).
//!
//! A long message passes in pieces. The first piece takes the *depth*; each further one what the busiest process or
//! link needs for one, the *interval*. The whole takes depth + (pieces − 1) × interval, less what several pieces that
//! begin side by side gain.

mod load;
mod opening;
mod phase;
mod together;

pub(crate) use opening::OPEN;
pub(crate) use phase::Phase;
pub use together::{ALONE, Spent, combining, natively};

use crate::Network;
use crate::amount::Cost;
use crate::form::Form;
use crate::routes::Handoff;
use isthmus_topology::{Level, Link};
use std::ops::Range;

impl Cost {
    /// One phase after another, each passed by so many pieces: depths of all, and the further pieces at the pace of the
    /// slowest process (phases that share processes) or link.
    ///
    /// Not more than `lanes` pieces are under way.
    pub(crate) fn pipeline(phases: &[Phase], pieces: u64, lanes: u64) -> Self {
        let mut cost = phases
            .iter()
            .fold(Self::default(), |cost, phase| cost.and(phase.name.clone(), phase.depth));
        if pieces > 1 {
            let depth = cost.total();
            // Pieces that have passed one phase on a link wait for none in another one there while that is on its way
            // elsewhere.
            let waiting = depth.saturating_mul(pieces.div_ceil(lanes.max(1)) - 1);
            let apart = Phase::further_apart(phases, pieces - 1).max(waiting);
            let together = Phase::further(phases, pieces - 1);
            let longest = phases.iter().map(|p| p.depth).max().unwrap_or(0);
            cost = cost.and(
                format!("{} further pieces", pieces - 1),
                apart.max(together.saturating_sub(depth - longest)),
            );
        }
        cost
    }
}

/// Nanoseconds until a process that shares its processor runs: a switch from another one.
pub(crate) const SWITCH: u64 = 2_000;

/// Streams beside the first one that make what passes a wide-area link take twice as long: 16 of them, each in small
/// packets at its share of the rate, took 1.2 to 1.5 times as long as one (24 processes at three sites, 100 Mbit/s).
const STREAMS: u64 = 48;
/// Bytes of messages from which on they are streams.
pub(crate) const STREAM: u64 = 16 << 10;

/// What so many streams beside each other add to the time that their bytes need on a link of the wide area, or to the
/// bytes.
pub(crate) fn crowding(alone: u64, streams: u64) -> u64 {
    alone.saturating_mul(streams.saturating_sub(1)) / STREAMS
}

/// All processes send each other so many bytes: those of one part of the outermost tier share its links, in so many
/// streams for each pair of parts.
pub(crate) fn pairwise(network: &Network, bytes: u64, streams: u64) -> Phase {
    let council = Council::largest(network, 0);
    let p = u64::from(network.size());
    let cluster = p / u64::from(network.clusters(1).max(1));
    let mut phase = Phase {
        name: format!("each to each of {p}"),
        ..Phase::default()
    };
    // Inside each tier a process talks to those of the other parts of its cluster.
    let overheads = (0..network.tiers()).map(|tier| {
        let peers = p / u64::from(network.clusters(tier)) - p / u64::from(network.clusters(tier + 1)).max(1);
        let link = network.link(tier);
        peers.saturating_mul(link.send.at(bytes) + link.receive.at(bytes))
    });
    phase.process = overheads.sum();
    // Processes that share processors do so one after the other.
    if let Some(node) = (0..network.tiers())
        .next_back()
        .map(|tier| Council::largest(network, tier))
    {
        phase.share_all(&node, 1);
    }
    for (a, b) in council.some_pairs() {
        let link = council.link(a, b);
        let gap = link.gap.at(bytes).saturating_mul(cluster * cluster);
        let gap = match council.level() {
            Level::WideArea if bytes >= STREAM => gap.saturating_add(crowding(gap, streams)),
            _ => gap,
        };
        let gap = if council.shares_link() {
            gap.saturating_mul(u64::from(council.members) - 1)
        } else {
            gap
        };
        phase.link = [phase.link[0].max(gap); 2];
        phase.depth = phase.depth.max(gap.max(phase.process).saturating_add(link.latency));
    }
    phase
}

/// The members of one council, for costs.
pub(crate) struct Council<'a> {
    network: &'a Network,
    tier: usize,
    pub(crate) members: u32,
}

/// Which way a tree is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// From the root to all.
    Down,
    /// From all to the root.
    Up,
    /// From all to the root, combined on the way.
    Combine,
}

impl Flow {
    const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
            Self::Combine => "combining up",
        }
    }
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
}

impl<'a> Council<'a> {
    /// The largest council of a tier.
    pub(crate) fn largest(network: &'a Network, tier: usize) -> Self {
        let sizes = (0..network.clusters(tier)).map(|c| network.parts(tier, c).len() as u32);
        Self {
            network,
            tier,
            members: sizes.max().unwrap_or(1),
        }
    }

    pub(crate) fn level(&self) -> Level {
        self.network.level(self.tier)
    }

    /// How many sends of so many bytes a member could make until the first has arrived: the postal model's λ.
    pub(crate) fn postal_latency(&self, bytes: u64) -> u32 {
        let link = self.network.link(self.tier);
        let gap = link.gap.at(bytes);
        let send = link.send.at(bytes).max(if self.shares_link() { gap } else { 0 }).max(1);
        let whole = link.send.at(bytes) + gap + link.latency + link.receive.at(bytes);
        u32::try_from(whole.div_ceil(send))
            .unwrap_or(u32::MAX)
            .clamp(1, 1 << 16)
    }

    /// Whether the members are more than the processors that they share.
    fn is_crowded(&self) -> bool {
        self.level() == Level::Node && self.members > self.network.links().processors
    }

    /// What a message waits for its receiver to run.
    fn waking(&self) -> u64 {
        if self.is_crowded() { SWITCH } else { 0 }
    }

    fn link(&self, a: u32, b: u32) -> &'a Link {
        match self.tier {
            0 => self.network.outer(a, b),
            tier => self.network.link(tier),
        }
    }

    /// Whether all that a member sends at this tier passes one link.
    pub(crate) fn shares_link(&self) -> bool {
        !matches!(self.level(), Level::WideArea | Level::LocalArea)
    }

    /// A tree in one direction; a part of the tree with so many members needs so many bytes.
    pub(crate) fn tree(&self, form: &Form, way: Flow, bytes: &dyn Fn(u32) -> u64) -> Phase {
        let mut walk = Walk {
            council: self,
            form,
            way,
            bytes,
            phase: Phase::default(),
            work: 0,
            busy: Vec::new(),
            links: Vec::new(),
        };
        let roots = if self.tier == 0 && self.network.has_pairs() {
            self.members
        } else {
            1
        };
        for root in 0..roots {
            walk.serve(0..self.members, root, 0, 0);
        }
        walk.phase.share(self, walk.work / u64::from(roots.max(1)));
        Phase {
            name: format!(
                "{}: {} {} among {}",
                self.level().name(),
                form.name(),
                way.name(),
                self.members
            ),
            tier: self.tier,
            carried: self.carried(bytes(1), 1),
            ..walk.phase
        }
    }

    /// Trees for pieces that have so many members at the top in turn: each of them is busiest only for its own.
    pub(crate) fn dealt(&self, form: &Form, way: Flow, bytes: &dyn Fn(u32) -> u64, tops: u32) -> Phase {
        if matches!(form, Form::Together) {
            return self.together(way, bytes);
        }
        if tops < 2 {
            return self.tree(form, way, bytes);
        }
        let members = self.members as usize;
        let links = if self.shares_link() { members } else { members * members };
        let mut walk = Walk {
            council: self,
            form,
            way,
            bytes,
            phase: Phase::default(),
            work: 0,
            busy: vec![0; members],
            links: vec![0; links],
        };
        for top in 0..tops {
            walk.serve(0..self.members, top, 0, 0);
        }
        let most = |all: &[u64]| all.iter().max().map_or(0, |&most| most.div_ceil(u64::from(tops)));
        walk.phase.process = most(&walk.busy);
        let link = most(&walk.links);
        walk.phase.link = [link; 2];
        // Each top begins with a piece of its own. On the way up all contribute to one piece after the other.
        if way == Flow::Down {
            walk.phase.lead = self.gap(bytes(1)).saturating_sub(link);
        }
        walk.phase.share(self, walk.work / u64::from(tops));
        Phase {
            name: format!(
                "{}: {} {} among {}, {tops} at the top in turn",
                self.level().name(),
                form.name(),
                way.name(),
                self.members
            ),
            tier: self.tier,
            carried: self.carried(bytes(1), 1),
            ..walk.phase
        }
    }

    /// The largest latency between two members, nanoseconds.
    pub(crate) fn longest(&self) -> u64 {
        let pairs = self.some_pairs().map(|(a, b)| self.link(a, b).latency);
        pairs.max().unwrap_or(0)
    }

    /// The longest time for which a message keeps a link, nanoseconds.
    fn gap(&self, bytes: u64) -> u64 {
        let pairs = self.some_pairs().map(|(a, b)| self.link(a, b).gap.at(bytes));
        pairs.max().unwrap_or(0)
    }

    /// Each piece is served by another member than the root, in turn.
    pub(crate) fn relay(&self, way: Flow, bytes: u64) -> Phase {
        let (others, turns) = (u64::from(self.members - 2), u64::from(self.members - 1));
        let mut phase = Phase {
            name: format!("{}: shares {} through each of {turns}", self.level().name(), way.name()),
            tier: self.tier,
            steps: 2 * others + 1,
            carried: self.carried(bytes, 1),
            ..Phase::default()
        };
        let mut longest = 0;
        for (a, b) in self.some_pairs() {
            let link = self.link(a, b);
            let gap = link.gap.at(bytes);
            let (near, far) = self.ends(way, link, bytes);
            let last = match self.shares_link() {
                true => gap.saturating_mul(others),
                false => near.saturating_mul(others.saturating_sub(1)).saturating_add(gap),
            };
            longest = longest.max(near + gap + link.latency + self.waking() + far);
            phase.depth = phase.depth.max(last + near + link.latency + self.waking() + far);
            // The root, and the one that serves: what it gets from the root and does for the others in its turn.
            phase.process = phase.process.max(near).max(far + near.saturating_mul(others) / turns);
            let link = phase.link[0].max(match self.shares_link() {
                true => gap,
                false => gap / turns,
            });
            phase.link = [link; 2];
        }
        // The root begins with a piece for each of the others.
        phase.lead = self.gap(bytes).saturating_sub(phase.link[0]);
        phase.depth += longest;
        phase.share_all(self, 1);
        phase
    }

    /// What a message costs the member nearer to the root and the other one.
    fn ends(&self, way: Flow, link: &Link, bytes: u64) -> (u64, u64) {
        let (send, receive) = (link.send.at(bytes), link.receive.at(bytes));
        match way {
            Flow::Down => (send, receive),
            Flow::Up => (receive, send),
            Flow::Combine => (receive.saturating_add(self.network.links().reduce.at(bytes)), send),
        }
    }

    /// Every member sends so many bytes to every other, who combines them if asked to.
    pub(crate) fn exchange(&self, bytes: u64, combine: bool) -> Phase {
        let others = u64::from(self.members.saturating_sub(1));
        let mut phase = Phase {
            name: format!("{}: exchange among {}", self.level().name(), self.members),
            tier: self.tier,
            steps: if combine { 3 } else { 2 } * others,
            carried: self.carried(bytes, 1),
            ..Phase::default()
        };
        let work = if combine {
            self.network.links().reduce.at(bytes)
        } else {
            0
        };
        for (a, b) in self.some_pairs() {
            let link = self.link(a, b);
            let gaps = link
                .gap
                .at(bytes)
                .saturating_mul(if self.shares_link() { others } else { 1 });
            let sends = link.send.at(bytes).saturating_mul(others);
            let receives = (link.receive.at(bytes) + work).saturating_mul(others);
            phase.depth = phase
                .depth
                .max(sends.max(gaps) + link.gap.at(bytes) + link.latency + self.waking() + receives);
            phase.process = phase.process.max(sends + receives);
            phase.link = [phase.link[0].max(gaps); 2];
        }
        phase.share_all(self, 1);
        phase
    }

    /// Rounds in which every member sends to one other and receives from one.
    pub(crate) fn rounds(&self, rounds: u64, bytes: u64, combine: bool) -> Phase {
        let work = if combine {
            self.network.links().reduce.at(bytes)
        } else {
            0
        };
        let mut phase = Phase {
            name: format!("{}: {rounds} rounds among {}", self.level().name(), self.members),
            tier: self.tier,
            steps: 3 * rounds,
            carried: self.carried(bytes, rounds),
            ..Phase::default()
        };
        for (a, b) in self.some_pairs() {
            let link = self.link(a, b);
            let process = link.send.at(bytes) + link.receive.at(bytes) + work;
            phase.depth = phase
                .depth
                .max(rounds.saturating_mul(process + link.gap.at(bytes) + link.latency + self.waking()));
            phase.process = phase.process.max(rounds.saturating_mul(process));
            let gaps = phase.link[0].max(rounds.saturating_mul(link.gap.at(bytes)));
            phase.link = [gaps; 2];
        }
        phase.share_all(self, rounds);
        phase
    }

    /// All pairs where they are unlike, else one.
    fn some_pairs(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let members = self.members;
        let all = if self.tier == 0 && self.network.has_pairs() {
            members
        } else {
            members.min(2)
        };
        (0..all).flat_map(move |a| (0..all).filter(move |&b| a != b).map(move |b| (a, b)))
    }
}

/// Walks a tree and finds its costs.
struct Walk<'a> {
    council: &'a Council<'a>,
    form: &'a Form,
    way: Flow,
    bytes: &'a dyn Fn(u32) -> u64,
    phase: Phase,
    /// Of all members together.
    work: u64,
    /// Of each member, and of each link: by its sender where all messages of a member pass one, else by both; or empty.
    busy: Vec<u64>,
    links: Vec<u64>,
}

impl Walk<'_> {
    /// Adds what a message between a member and one farther from the top costs both, and its link.
    fn load(&mut self, near: u32, far: u32, near_time: u64, far_time: u64, gap: u64) {
        if self.busy.is_empty() {
            return;
        }
        self.busy[near as usize] += near_time;
        self.busy[far as usize] += far_time;
        let (from, to) = if self.way == Flow::Down {
            (near, far)
        } else {
            (far, near)
        };
        let link = match self.council.shares_link() {
            true => from,
            false => from * self.council.members + to,
        };
        self.links[link as usize] += gap;
    }

    /// A member serves an interval from a time on, having been busy with its parent for a while. The way up is the way
    /// down backwards.
    fn serve(&mut self, mut interval: Range<u32>, root: u32, ready: u64, mut busy: u64) {
        let (mut free, mut link_free, mut gaps, mut children) = (ready, ready, 0u64, 0u64);
        let mut parts: Vec<Handoff> = Vec::new();
        while interval.len() > 1 {
            parts.clear();
            interval = self.form.split(&interval, root, &mut parts);
            for part in parts.drain(..) {
                let bytes = (self.bytes)(part.members.len() as u32);
                let link = self.council.link(root, part.first);
                let (near, far) = self.council.ends(self.way, link, bytes);
                children += 1;
                free = free.saturating_add(near);
                busy = busy.saturating_add(near);
                self.work = self.work.saturating_add(near).saturating_add(far);
                if self.way == Flow::Down {
                    self.work = self.work.saturating_add(self.council.waking());
                }
                let gap = link.gap.at(bytes);
                self.load(root, part.first, near, far, gap);
                let begin = if self.council.shares_link() {
                    free.max(link_free)
                } else {
                    free
                };
                link_free = begin.saturating_add(gap);
                gaps = if self.council.shares_link() {
                    gaps.saturating_add(gap)
                } else {
                    gaps.max(gap)
                };
                let latency = link.latency.saturating_add(self.council.waking());
                let arrival = link_free.saturating_add(latency).saturating_add(far);
                self.phase.depth = self.phase.depth.max(arrival);
                self.serve(part.members, part.first, arrival, far);
            }
        }
        // On the way up members wait for all their children at once.
        if self.way != Flow::Down && children > 0 {
            self.work = self.work.saturating_add(self.council.waking());
        }
        self.phase.process = self.phase.process.max(busy);
        // What a member sends to both sides passes its one link, where it has one.
        for (direction, link) in self.phase.link.iter_mut().enumerate() {
            if self.council.shares_link() || (direction == 1) == (self.way != Flow::Down) {
                *link = (*link).max(gaps);
            }
        }
        let steps = match self.way {
            Flow::Combine => 2 * children + 1,
            Flow::Down | Flow::Up => children + 1,
        };
        self.phase.steps = self.phase.steps.max(steps);
    }
}
