// SPDX-License-Identifier: Apache-2.0
//! The choice of forms and pieces for the trees of one algorithm: for each size of pieces the cheapest form of each
//! tier, and of those the cheapest size.

use crate::Network;
use crate::amount::Cost;
use crate::choose::Question;
use crate::cost::{self, Council, Flow, Phase};
use crate::form::Form;
use crate::overrides::Said;
use crate::share;
use crate::strategy::{Algorithm, Dealing, Sharing, Strategy};
use isthmus_topology::Level;
use std::sync::Arc;

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
    pub(crate) flows: &'a [(Flow, Load)],
    /// Whether long messages are cut.
    pub(crate) cut: bool,
    /// Whether any member may be the root, so that routes may be taken.
    pub(crate) any_root: bool,
    pub(crate) dealing: Dealing,
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
const LANE_MEMORY: u64 = 16 << 20;

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
        // Whole messages or the largest pieces of those that cost hardly more than the best: each piece keeps
        // processors busy that others may need. Over the wide area there is time for more of them.
        let least = all.iter().map(|s| s.cost.total()).min().unwrap_or(0);
        let wide = self.network.tiers() > 0 && self.network.level(0) == Level::WideArea;
        let good_enough = least.saturating_add(least / if wide { 100 } else { 32 });
        let largest = all
            .into_iter()
            .filter(|s| s.cost.total() <= good_enough)
            .max_by_key(|s| s.segment);
        largest.unwrap_or_else(|| self.with(u64::MAX, top))
    }

    /// The cheapest forms for pieces of so many bytes, how many of them are under way at once, and what that costs.
    fn with(&self, segment: u64, top: &dyn Fn(u64) -> Vec<Phase>) -> Strategy {
        let bytes = self.question.bytes();
        let mut strategy = Strategy::without_trees(self.algorithm, Cost::default());
        (strategy.sharing, strategy.leaders) = (self.dealing.sharing, self.dealing.leaders);
        strategy.segment = segment;
        strategy.shares = share::count(self.network, self.dealing);
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
        // So many that the first is through, and its sender knows, before the last is begun, with its announcement; and
        // half as many again, since processes have other work at times. More take memory for nothing.
        let wanted = (depth + self.replies()) * 3 / 2 / interval + 2;
        let memory = self.flows.iter().any(|flow| flow.0 == Flow::Combine);
        let steps = phases.iter().map(|p| p.steps).sum::<u64>().max(1);
        let most = match memory {
            true => (LANE_MEMORY / piece.max(1)).clamp(2, LANES),
            false => LANES,
        };
        let under_way = wanted.clamp(2, most).min(MOST_STEPS / steps).max(1);
        strategy.window = (under_way * steps) as usize;
        strategy.lanes = if memory { under_way } else { 1 };
        strategy.cost = Cost::pipeline(&phases, pieces, under_way);
        if self.network.tiers() > 0 && bytes < cost::OPEN {
            strategy.opening = Council::largest(self.network, 0).opening(&phases, pieces / shares);
        }
        if self.dealing.sharing == Sharing::Relayed {
            // Where the root is, nobody takes turns at the top: its neighbours have all of it only when it has served
            // them.
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
        let tree = |&(way, load): &(Flow, Load)| {
            let bytes = |members: u32| self.bytes(tier, members, load, piece);
            council.dealt(form, way, &bytes, tops)
        };
        self.flows.iter().map(tree).collect()
    }

    /// What passes between the members of the outermost tier beside a long message, nanoseconds: the announcement, the
    /// answer before it, and the acknowledgement after it.
    fn replies(&self) -> u64 {
        match self.network.tiers() {
            0 => 0,
            _ => 3 * Council::largest(self.network, 0).longest(),
        }
    }

    /// The cheapest form for a tier, by itself.
    fn tier(&self, tier: usize, piece: u64, pieces: u64) -> (Form, Vec<Phase>) {
        let council = Council::largest(self.network, tier);
        let phases = |form: &Form| -> Vec<Phase> {
            let Dealing { sharing, leaders } = self.dealing;
            let tops = match (sharing, tier) {
                (Sharing::Relayed, 0) if council.members > 2 => {
                    return self.flows.iter().map(|flow| council.relay(flow.0, piece)).collect();
                }
                (Sharing::Whole, _) | (Sharing::Relayed | Sharing::Dealt, 0) => 1,
                (Sharing::Tops, 0) => council.members,
                (Sharing::Tops | Sharing::Relayed | Sharing::Dealt, _) => leaders.min(council.members),
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
        if self.question.nodes && tier + 1 == self.network.tiers() {
            forms.insert(0, Form::Together);
        }
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
