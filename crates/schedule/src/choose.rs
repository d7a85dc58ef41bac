// SPDX-License-Identifier: Apache-2.0
//! The choice between algorithms: the candidates of an operation are costed over the links in force, and the cheapest is taken, the first
//! in declared order where several are.
//!
//! All members must choose alike without asking each other, so a choice is made from a [`Question`] that is the same on all of them, once
//! per communicator, and kept.

use crate::cost::{Cost, Council, Phase, Way};
use crate::form::Form;
use crate::overrides::Said;
use crate::script::Cut;
use crate::shares::{self, Sharing};
use crate::{
    Blocks, Call, Network, Operation, allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter,
    scan, scatter,
};
use std::sync::{Arc, OnceLock};

/// How the leaders of the outermost tier come together when all need the result, or which other way is taken: the names of the
/// algorithms' files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// Trees over all tiers; where all need the result, there and back. 2 (k − 1) messages, two trips of a flat tree.
    Tree,
    /// Leaders send each to each. k (k − 1) messages, one trip.
    Flat,
    /// The same, but everybody's item takes its quickest way, which may lead through others. k (k − 1) messages.
    Routed,
    /// Leaders double or disseminate. k log2 k messages, log2 k trips.
    Doubling,
    /// Leaders send what they have, twice as much in each round. k log2 k messages, log2 k trips.
    Bruck,
    /// Each leader sends each its share, then each sends each its result. 2 k (k − 1) messages, two trips, 2 (k − 1) / k of the bytes.
    Split,
    /// Pieces are dealt out to several trees ([`shares`](crate::shares)).
    Shared,
    /// All contributions are brought where the result is needed, whole.
    Whole,
    /// Each process sends to each.
    Pairwise,
    /// The processes of a node send together to each process of other sites.
    Partners,
    /// Blocks are sorted by leaders.
    Leaders,
    /// The same, and what leaders send each other takes the quickest way.
    LeadersRouted,
    /// In one order of association.
    Fixed,
    /// The same, and leaders send each to each.
    FixedFlat,
    /// The same on the quickest ways.
    FixedRouted,
}

impl Algorithm {
    const ALL: [Self; 15] = [
        Self::Tree,
        Self::Flat,
        Self::Routed,
        Self::Doubling,
        Self::Bruck,
        Self::Split,
        Self::Shared,
        Self::Whole,
        Self::Pairwise,
        Self::Partners,
        Self::Leaders,
        Self::LeadersRouted,
        Self::Fixed,
        Self::FixedFlat,
        Self::FixedRouted,
    ];

    /// Name for people and in overrides.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Flat => "flat",
            Self::Routed => "routed",
            Self::Doubling => "doubling",
            Self::Bruck => "bruck",
            Self::Split => "split",
            Self::Shared => "shared",
            Self::Whole => "whole",
            Self::Pairwise => "pairwise",
            Self::Partners => "partners",
            Self::Leaders => "leaders",
            Self::LeadersRouted => "leaders_routed",
            Self::Fixed => "fixed",
            Self::FixedFlat => "fixed_flat",
            Self::FixedRouted => "fixed_routed",
        }
    }
}

/// Names of all algorithms.
pub(crate) fn names() -> Vec<&'static str> {
    let together = std::iter::once(crate::together::NAME);
    Algorithm::ALL.iter().map(|a| a.name()).chain(together).collect()
}

/// In which order operands may be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In that of positions, which is good enough: operators are commutative, or positions are ranks.
    Any,
    /// In that of ranks, which is not that of positions.
    Ranks,
    /// The fixed one.
    Fixed,
}

/// What a choice is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) operation: Operation,
    pub(crate) order: Order,
    /// Bytes that decide, representing all of their class: of the message; of one block (gather, scatter, alltoall); of all blocks (allgather,
    /// reduce_scatter). `None`: not known to all.
    pub(crate) bytes: Option<u64>,
}

impl Question {
    /// What is asked by a call.
    pub(crate) fn of(call: &Call, network: &Network) -> Self {
        let order = match () {
            () if call.fixed => Order::Fixed,
            () if call.commutative || network.in_rank_order() => Order::Any,
            () => Order::Ranks,
        };
        let units = match (&call.blocks, call.operation) {
            (_, Operation::Barrier) => Some(0),
            (_, Operation::Gatherv | Operation::Scatterv | Operation::Alltoallv | Operation::Alltoallw) => None,
            (Blocks::Equal(n), O::Allgather | O::Allgatherv | O::ReduceScatterBlock | O::ReduceScatter) => {
                Some(n.saturating_mul(u64::from(network.size())))
            }
            (Blocks::Equal(n), _) => Some(*n),
            (Blocks::Known(sums), _) => sums.last().copied(),
            (Blocks::Own(_) | Blocks::Subtree(_), _) => None,
        };
        Self::new(call.operation, order, units.map(|units| call.bytes(units)))
    }

    pub(crate) fn new(operation: Operation, order: Order, bytes: Option<u64>) -> Self {
        Self {
            operation,
            order,
            bytes: bytes.map(|bytes| representative(class(bytes))),
        }
    }

    /// Bytes; a short message where they are not known.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.unwrap_or(1 << 10)
    }
}

use Operation as O;

/// Classes of sizes: two for each power of two.
const CLASSES: usize = 2 * 64 + 2;

fn class(bytes: u64) -> usize {
    match bytes {
        0 => 0,
        _ => {
            let power = bytes.ilog2() as usize;
            let half = power > 0 && bytes >> (power - 1) & 1 == 1;
            1 + 2 * power + usize::from(half)
        }
    }
}

/// The smallest size of a class.
fn representative(class: usize) -> u64 {
    match class {
        0 => 0,
        _ => {
            let power = (class - 1) / 2;
            (1 << power) + if (class - 1) % 2 == 1 { 1 << power >> 1 } else { 0 }
        }
    }
}

/// How a call is carried out.
#[derive(Clone, Debug)]
pub(crate) struct Strategy {
    pub(crate) algorithm: Algorithm,
    /// Trees of the tiers, outermost first.
    pub(crate) forms: Vec<Form>,
    /// Bytes of a piece of a long message.
    pub(crate) segment: u64,
    /// Pieces under way at a time where memory is needed for each.
    pub(crate) lanes: u64,
    /// Steps of all pieces that should be under way at a process.
    pub(crate) window: usize,
    /// How pieces are dealt out to trees.
    pub(crate) sharing: Sharing,
    /// Processes that carry shares for each part of the outermost tier.
    pub(crate) leaders: u32,
    /// Number of shares.
    pub(crate) shares: u32,
    pub(crate) cost: Cost,
}

impl Strategy {
    /// A way without trees.
    pub(crate) fn without_trees(algorithm: Algorithm, cost: Cost) -> Self {
        Self {
            algorithm,
            forms: Vec::new(),
            segment: u64::MAX,
            lanes: 1,
            window: 0,
            sharing: Sharing::Whole,
            leaders: 1,
            shares: 1,
            cost,
        }
    }

    /// The first tier that belongs to the trees: 1 where the leaders of the outermost tier meet in another way.
    pub(crate) fn first_tier(&self) -> usize {
        match self.algorithm {
            Algorithm::Flat
            | Algorithm::Routed
            | Algorithm::Doubling
            | Algorithm::Bruck
            | Algorithm::Split
            | Algorithm::Leaders
            | Algorithm::LeadersRouted
            | Algorithm::FixedFlat
            | Algorithm::FixedRouted => 1,
            _ => 0,
        }
    }

    /// Whether the trees of all tiers from one inwards are flat, so that each block crosses a tier at most once.
    pub(crate) fn is_flat(&self, from: usize) -> bool {
        self.forms.iter().skip(from).all(|form| matches!(form, Form::Flat))
    }

    /// How the largest of several blocks that are shares is cut.
    pub(crate) fn cut_of_blocks(&self, call: &Call, largest: u64) -> Cut {
        let one = Self {
            shares: 1,
            ..self.clone()
        };
        one.cut(call, largest)
    }

    /// How a message of `total` units along the trees is cut: all shares get as many pieces where there are enough units.
    pub(crate) fn cut(&self, call: &Call, total: u64) -> Cut {
        let (granule, shares) = (call.granule.max(1), self.shares);
        if shares > 1 {
            let units = (self.segment / call.unit_bytes.max(1)).max(1);
            let pieces = total.div_ceil(units).max(1).next_multiple_of(u64::from(shares));
            return Cut {
                total,
                piece: total.div_ceil(pieces).div_ceil(granule).saturating_mul(granule).max(1),
                lanes: self.lanes.max(1).next_multiple_of(u64::from(shares)),
                window: self.window,
            };
        }
        let units = (self.segment / call.unit_bytes.max(1))
            .max(1)
            .div_ceil(granule)
            .saturating_mul(granule);
        let piece = if total <= units.saturating_add(units / 2) {
            total.max(1)
        } else {
            units
        };
        Cut {
            total,
            piece,
            lanes: self.lanes.max(1),
            window: self.window,
        }
    }
}

/// The choices for all classes of sizes.
type Row = Box<[OnceLock<Arc<Strategy>>]>;

/// Choices made for one network.
pub(crate) struct Choices {
    made: [OnceLock<Row>; Operation::ALL.len() * 3],
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            made: [const { OnceLock::new() }; Operation::ALL.len() * 3],
        }
    }
}

impl std::fmt::Debug for Choices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Choices")
    }
}

/// The way a call is carried out.
pub(crate) fn strategy(call: &Call, network: &Network) -> Arc<Strategy> {
    answer(&Question::of(call, network), network)
}

/// The answer to a question; kept.
pub(crate) fn answer(question: &Question, network: &Network) -> Arc<Strategy> {
    let row = question.operation as usize * 3 + question.order as usize;
    let row = network.choices().made[row].get_or_init(|| (0..=CLASSES).map(|_| OnceLock::new()).collect());
    let place = question.bytes.map_or(CLASSES, class);
    Arc::clone(row[place].get_or_init(|| Arc::new(best(question, network))))
}

fn best(question: &Question, network: &Network) -> Strategy {
    let mut candidates = candidates(question, network);
    candidates.swap_remove(cheapest(&candidates))
}

/// The first candidate that costs hardly more than the cheapest: no measurement of links is better than that, and those that load slow
/// links least are declared first.
pub(crate) fn cheapest(candidates: &[Strategy]) -> usize {
    let least = candidates.iter().map(|s| s.cost.total()).min().unwrap_or(0);
    let good_enough = least.saturating_add(least / 16);
    candidates
        .iter()
        .position(|s| s.cost.total() <= good_enough)
        .unwrap_or(0)
}

/// All ways that are possible, or those that the user asked for if there are any, in declared order. At least one.
pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    let mut all = possible(question, network);
    let said = network.overrides().about(question.operation, None, question.bytes());
    if let Some(name) = &said.name {
        if all.iter().any(|s| s.algorithm.name() == name) {
            all.retain(|s| s.algorithm.name() == name);
        }
    }
    for strategy in &mut all {
        strategy.segment = said.segment.unwrap_or(strategy.segment);
        strategy.lanes = said.lanes.unwrap_or(strategy.lanes);
    }
    all
}

fn possible(question: &Question, network: &Network) -> Vec<Strategy> {
    match question.operation {
        O::Barrier => barrier::candidates(question, network),
        O::Bcast => bcast::candidates(question, network),
        O::Reduce => reduce::candidates(question, network),
        O::Allreduce => allreduce::candidates(question, network),
        O::Gather | O::Gatherv => gather::candidates(question, network),
        O::Scatter | O::Scatterv => scatter::candidates(question, network),
        O::Allgather | O::Allgatherv => allgather::candidates(question, network),
        O::Alltoall | O::Alltoallv | O::Alltoallw => alltoall::candidates(question, network),
        O::Scan | O::Exscan => scan::candidates(question, network),
        O::ReduceScatter | O::ReduceScatterBlock => reduce_scatter::candidates(question, network),
        O::NeighborAllgather
        | O::NeighborAllgatherv
        | O::NeighborAlltoall
        | O::NeighborAlltoallv
        | O::NeighborAlltoallw => unreachable!("neighbourhoods have no choice"),
    }
}

/// What a message in a tree holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// The message, or a piece of it.
    Piece,
    /// The blocks of the subtree, of so many bytes each.
    Blocks(u64),
}

/// The trees of one strategy, before their forms are chosen.
pub(crate) struct Trees<'a> {
    pub(crate) question: &'a Question,
    pub(crate) network: &'a Network,
    pub(crate) algorithm: Algorithm,
    /// The directions in which the trees are used, and what for.
    pub(crate) flows: &'a [(Way, Load)],
    /// Whether long messages are cut.
    pub(crate) cut: bool,
    /// Whether any member may be the root, so that routes may be taken.
    pub(crate) any_root: bool,
    /// How pieces are dealt out to trees, and leaders of each part of the outermost tier.
    pub(crate) sharing: (Sharing, u32),
}

/// Sizes of pieces that are tried.
const SEGMENTS: [u64; 9] = [
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
];
/// Most steps of the executor's window.
const MOST_STEPS: u64 = 4096;
/// Most pieces under way.
const LANES: u64 = 96;
/// Bytes of scratch memory for one operand of all pieces under way.
const LANE_MEMORY: u64 = 8 << 20;

impl Trees<'_> {
    /// The cheapest forms and pieces. `top` gives what the leaders' meeting costs for a piece of so many bytes.
    pub(crate) fn strategy(&self, top: &dyn Fn(u64) -> Vec<Phase>) -> Strategy {
        let whole = self.with(u64::MAX, top);
        if !self.cut {
            return whole;
        }
        let tried = SEGMENTS
            .iter()
            .filter(|&&s| s < self.question.bytes())
            .map(|&s| self.with(s, top));
        let all: Vec<Strategy> = std::iter::once(whole).chain(tried).collect();
        // Whole messages or the largest pieces of those that cost hardly more than the best: each piece keeps processors busy that
        // others may need.
        let least = all.iter().map(|s| s.cost.total()).min().unwrap_or(0);
        let good_enough = least.saturating_add(least / 32);
        let largest = all
            .into_iter()
            .filter(|s| s.cost.total() <= good_enough)
            .max_by_key(|s| s.segment);
        largest.unwrap_or_else(|| self.with(u64::MAX, top))
    }

    fn with(&self, segment: u64, top: &dyn Fn(u64) -> Vec<Phase>) -> Strategy {
        let bytes = self.question.bytes();
        let mut strategy = Strategy::without_trees(self.algorithm, Cost::default());
        (strategy.sharing, strategy.leaders) = self.sharing;
        strategy.segment = segment;
        strategy.shares = shares::count(self.network, self.sharing);
        let shares = u64::from(strategy.shares);
        let pieces = bytes.div_ceil(segment.max(1)).max(1).next_multiple_of(shares);
        let piece = bytes.div_ceil(pieces);
        let (mut phases, from) = (top(piece), strategy.first_tier());
        for tier in 0..self.network.tiers() {
            let (form, mut own) = match tier < from {
                true => (Form::Flat, Vec::new()),
                false => self.tier(tier, piece, pieces),
            };
            strategy.forms.push(form);
            phases.append(&mut own);
        }
        let interval = Phase::interval(&phases).max(1);
        let depth: u64 = phases.iter().map(|p| p.depth).sum();
        // So many that the first is through before the last is begun, with its announcement: more take memory for nothing.
        let wanted = (depth + self.announcement()) / interval + 2;
        let memory = self.flows.iter().any(|flow| flow.0 == Way::Combine);
        let steps = phases.iter().map(|p| p.steps).sum::<u64>().max(1);
        let most = match memory {
            true => (LANE_MEMORY / piece.max(1)).clamp(2, LANES),
            false => LANES,
        };
        let under_way = wanted.clamp(2, most).min(MOST_STEPS / steps).max(1);
        strategy.window = (under_way * steps) as usize;
        strategy.lanes = if memory { under_way } else { 1 };
        strategy.cost = Cost::pipeline(&phases, pieces, under_way);
        if self.sharing.0 == Sharing::Relayed {
            // Where the root is, nobody takes turns at the top: its neighbours have all of it only when it has served them.
            let inner: Vec<Phase> = (1..self.network.tiers())
                .flat_map(|tier| self.trees(tier, &strategy.forms[tier], piece, 1))
                .collect();
            let own = Cost::pipeline(&inner, pieces, under_way);
            if own.total() > strategy.cost.total() {
                strategy.cost = own;
            }
        }
        strategy
    }

    /// What the trees of a tier cost that have so many members at the top in turn.
    fn trees(&self, tier: usize, form: &Form, piece: u64, tops: u32) -> Vec<Phase> {
        let council = Council::largest(self.network, tier);
        let tree = |&(way, load): &(Way, Load)| {
            let bytes = |members: u32| self.bytes(tier, members, load, piece);
            council.dealt(form, way, &bytes, tops)
        };
        self.flows.iter().map(tree).collect()
    }

    /// What passes between the members of the outermost tier before a long message is sent, nanoseconds.
    fn announcement(&self) -> u64 {
        match self.network.tiers() {
            0 => 0,
            _ => 2 * Council::largest(self.network, 0).longest(),
        }
    }

    /// The cheapest form for a tier, by itself.
    fn tier(&self, tier: usize, piece: u64, pieces: u64) -> (Form, Vec<Phase>) {
        let council = Council::largest(self.network, tier);
        let phases = |form: &Form| -> Vec<Phase> {
            let tops = match (self.sharing, tier) {
                ((Sharing::Relayed, _), 0) if council.members > 2 => {
                    return self.flows.iter().map(|flow| council.relay(flow.0, piece)).collect();
                }
                ((Sharing::Whole, _), _) | ((Sharing::Relayed, _), 0) => 1,
                ((Sharing::Tops, _), 0) => council.members,
                ((Sharing::Tops | Sharing::Relayed, leaders), _) => leaders.min(council.members),
            };
            self.trees(tier, form, piece, tops)
        };
        let said =
            self.network
                .overrides()
                .about(self.question.operation, Some(council.level()), self.question.bytes());
        let forms = self.forms(tier, &council, piece, &said);
        let cost = |phases: &[Phase]| Cost::pipeline(phases, pieces, LANES).total();
        let mut best: Option<(Form, Vec<Phase>, u64)> = None;
        for form in forms {
            let phases = phases(&form);
            let total = cost(&phases);
            if best.as_ref().is_none_or(|b| total < b.2) {
                best = Some((form, phases, total));
            }
        }
        best.map_or((Form::Flat, Vec::new()), |(form, phases, _)| (form, phases))
    }

    /// Bytes of a message for a part of a council's tree with so many members.
    fn bytes(&self, tier: usize, members: u32, load: Load, piece: u64) -> u64 {
        let Load::Blocks(block) = load else { return piece };
        let below = u64::from(self.network.size()) / u64::from(self.network.clusters(tier + 1).max(1));
        block.saturating_mul(u64::from(members)).saturating_mul(below.max(1))
    }

    /// Forms that are tried, in declared order.
    fn forms(&self, tier: usize, council: &Council<'_>, piece: u64, said: &Said) -> Vec<Form> {
        let latency = council.postal_latency(piece);
        let routed = self
            .network
            .routes()
            .filter(|_| tier == 0 && self.any_root)
            .map(|r| Form::Routed(Arc::clone(r)));
        let mut forms = vec![Form::Flat];
        forms.extend(routed);
        forms.extend([2, 3, 4, 8, 16].map(Form::Knomial));
        forms.push(Form::Fibonacci(latency));
        if self.cut {
            forms.push(Form::Chain);
        }
        let asked = said.name.as_ref().map(|name| Form::named(name, latency, &forms));
        asked.flatten().map_or(forms, |form| vec![form])
    }
}

/// Bytes of all processes' contributions up to which they are brought together whole where they cannot be combined on the way.
pub(crate) const WHOLE: u64 = 64 << 10;

/// The way of reductions in the order of ranks over other clusters, if they are small.
pub(crate) fn whole(question: &Question, network: &Network) -> Option<Strategy> {
    let all = question.bytes().saturating_mul(u64::from(network.size()));
    (question.order == Order::Ranks && all <= WHOLE).then(|| Strategy::without_trees(Algorithm::Whole, Cost::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_smallest_sizes_and_rise() {
        for bytes in [0, 1, 2, 3, 4, 5, 6, 7, 8, 1000, 4096, 6144, 1 << 40, u64::MAX] {
            let class = class(bytes);
            let low = representative(class);
            assert!(low <= bytes && bytes - low <= low / 2, "{bytes} in class of {low}");
            assert_eq!(super::class(low), class);
        }
        assert!((0..10_000).map(class).is_sorted());
        assert!(class(u64::MAX) < CLASSES);
    }
}
