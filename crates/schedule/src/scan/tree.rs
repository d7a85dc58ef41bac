// SPDX-License-Identifier: Apache-2.0
//! **Scan and exscan: totals of subtrees go up, the leaders of the outermost tier tell those above them their totals,
//! and what lies to the left of each subtree comes down, in pieces.**
//!
//! | | |
//! |---|---|
//! | messages | below the outermost tier 2 (parts − 1) per cluster; among S leaders: flat S (S − 1) / 2, the minimum for one trip; routed one per leader to whom or through whom an item goes, at most S (S − 1); tree 2 (S − 1) |
//! | trips | below the outermost tier two per tier; among leaders: flat one, routed the quickest ways, tree two |
//! | bytes | n per message |
//! | restrictions | clusters of consecutive ranks |
//! | paper | Blelloch: Prefix sums and their applications, 1990 (the tree) |
//!
//! In these trees the first member of an interval is its root, so all of a process's children lie to its right, nearest
//! last in the family's order.

use crate::Network;
use crate::crossings::upwards;
use crate::fold::Sum;
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::tree::{Council, Family, Move};
use crate::{Call, Messages, Operation};
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, units: u64, strategy: &Strategy) -> Box<dyn Plan> {
    let family = Family::of(strategy, network, 0, me);
    let meets = strategy.algorithm != Algorithm::Tree && family.parent.is_none();
    let council = meets.then(|| Council::meeting(network, me, strategy.algorithm));
    let cut = strategy.cut(call, units);
    let mut script = Script::default();
    let below = council.as_ref().map_or(1, |c| u64::from(c.size));
    let pool = cut.pool(&mut script, family.children.len() as u64 + 2 + below);
    let own = if call.in_place { Buffer::Recv } else { Buffer::Send };
    let inclusive = call.operation == Operation::Scan;
    script.pieces(cut, move |script, piece| {
        let parts = family.children.len();
        let member = Member {
            family: &family,
            council: council.as_ref(),
            piece,
            own: piece.of(own),
            totals: &|i| pool.place(&piece, i),
            sum: pool.place(&piece, parts),
            running: pool.place(&piece, parts + 1),
            left: &|i| pool.place(&piece, parts + 2 + i),
        };
        let total = member.total(script);
        let left = member.exchange(script, total);
        member.finish(script, left, inclusive);
    })
}

/// One process and one piece.
struct Member<'a> {
    family: &'a Family,
    council: Option<&'a Council>,
    piece: Piece,
    own: Slice,
    /// Total of each child's subtree.
    totals: &'a dyn Fn(usize) -> Slice,
    /// Total of the own subtree.
    sum: Slice,
    /// Everything up to and with the own contribution.
    running: Slice,
    /// What lies to the left, possibly in parts.
    left: &'a dyn Fn(usize) -> Slice,
}

impl Member<'_> {
    /// Receives the children's totals and gives the total of the subtree if somebody needs it.
    fn total(&self, script: &mut Script) -> Option<Slice> {
        for (i, child) in self.family.children.iter().enumerate().rev() {
            script.receive(child.rank, (self.totals)(i), self.piece.slot(Kind::Up));
        }
        let last = self.council.is_none_or(|c| c.index + 1 == c.size);
        if self.family.parent.is_none() && last {
            return None;
        }
        let mut sum = Sum {
            value: self.own,
            target: self.sum,
        };
        for i in (0..self.family.children.len()).rev() {
            sum.combine(script, (self.totals)(i), false);
        }
        Some(sum.value)
    }

    /// Passes the total on and gives what lies to the left of the subtree, if anything does.
    fn exchange(&self, script: &mut Script, total: Option<Slice>) -> Option<Slice> {
        if let Some(parent) = self.family.parent {
            script.send(parent, total.unwrap_or(self.own), self.piece.slot(Kind::Up));
            script.receive(parent, (self.left)(0), self.piece.slot(Kind::Down));
            return Some((self.left)(0));
        }
        let council = self.council?;
        council.each_move(true, |step| {
            let slot = |item| council.about(&self.piece, item).slot(Kind::Exchange);
            let place = |item| match item == council.index {
                true => total.unwrap_or(self.own),
                false => (self.left)(item as usize),
            };
            match step {
                Move::Send { to, item } => script.send(council.rank(to), place(item), slot(item)),
                Move::Receive { from, item } => script.receive(council.rank(from), place(item), slot(item)),
            };
        });
        for i in 1..council.index as usize {
            script.reduce((self.left)(i), (self.left)(0), false);
        }
        (council.index > 0).then(|| (self.left)(0))
    }

    /// Tells each child what lies to its left and makes the own result.
    fn finish(&self, script: &mut Script, left: Option<Slice>, inclusive: bool) {
        let result = self.piece.of(Buffer::Recv);
        let mut running = Sum {
            value: self.own,
            target: if inclusive { result } else { self.running },
        };
        if let Some(left) = left.filter(|_| inclusive || !self.family.is_leaf()) {
            running.combine(script, left, true);
        }
        if inclusive {
            running.settle(script);
        }
        let mut before = running.value;
        for (i, child) in self.family.children.iter().enumerate().rev() {
            script.send(child.rank, before, self.piece.slot(Kind::Down));
            if i > 0 {
                script.reduce(before, (self.totals)(i), true);
                before = (self.totals)(i);
            }
        }
        if let (Some(left), false) = (left, inclusive) {
            script.copy(left, result);
        }
    }
}

pub(super) fn messages(call: &Call, network: &Arc<Network>, strategy: &Strategy) -> Messages {
    let once = match strategy.algorithm {
        Algorithm::Tree => Messages::of_trees(network, 0).times(2),
        algorithm => Messages::of_meeting(network, |_| upwards(network, algorithm)),
    };
    once.times(strategy.cut(call, call.blocks.size(0)).pieces())
}
