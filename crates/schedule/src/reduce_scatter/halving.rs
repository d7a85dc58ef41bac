// SPDX-License-Identifier: Apache-2.0
//! **Reduce_scatter among leaders by recursive halving: neighbours exchange halves of the blocks, each combines the
//! half that he keeps, then neighbouring pairs exchange quarters, and so on.**
//!
//! | | |
//! |---|---|
//! | messages | k log2 k for powers of two; else the pairs of the first members come together before and after |
//! | trips | ⌊log2 k⌋, + 2 if k is not a power of two |
//! | bytes | each sends and receives every block but its own once: the minimum; if k is no power of two the pairs all blocks and a block more |
//! | restrictions | none: neighbours come first, so operands stay in order, and blocks are put in another order instead; one copy of all blocks |
//! | paper | Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, 2005 (there halves of distant members, for commutative operators) |

use crate::fold::Sum;
use crate::leaders::{LeadersExchange, memory};
use crate::parties::{Parties, Role};
use crate::row::BlockRow;
use crate::script::{Kind, Piece, Script};
use crate::step::Slice;
use crate::{Call, Network};
use std::ops::Range;

/// Puts the combined blocks of the own members into `target`.
pub(super) fn exchange(script: &mut Script, exchange: &LeadersExchange<'_>, target: Slice) {
    exchange.halve(script, target);
}

impl LeadersExchange<'_> {
    fn halve(&self, script: &mut Script, target: Slice) {
        let council = self.council;
        let (slot, back) = (Piece::whole(0).slot(Kind::Exchange), Piece::whole(0).slot(Kind::Share));
        let (number, guest) = match Parties::of(council.size).role(council.index) {
            Role::Party { number, guest } => (number, guest.map(|guest| council.rank(guest))),
            Role::Guest { host } => {
                script.send(council.rank(host), self.all, slot);
                script.receive(council.rank(host), target, back);
                return;
            }
        };
        let mut sum = Sum {
            value: self.all,
            target: self.all,
        };
        if let Some(guest) = guest {
            sum.target = memory(script, self.all.length);
            sum.absorb(script, guest, slot, sum.target, true);
        }
        let kept = self.rounds(script, number, sum.value);
        let mut own = kept.offset;
        if let Some(guest) = guest {
            let left = Slice {
                length: kept.length - target.length,
                ..kept
            };
            script.send(guest, left, back);
            own += left.length;
        }
        let own = Slice {
            offset: own,
            length: target.length,
            ..kept
        };
        script.copy(own, target);
    }

    /// Halves the blocks until those of one party are left, and says where they are.
    fn rounds(&self, script: &mut Script, number: u32, value: Slice) -> Slice {
        let parties = Parties::of(self.council.size);
        let sorted = memory(script, value.length);
        let begins = self.sort(script, value, sorted);
        let at = |places: &Range<u32>| {
            let (from, to) = (begins[places.start as usize], begins[places.end as usize]);
            Slice {
                offset: sorted.offset + from,
                length: to - from,
                ..sorted
            }
        };
        let halves = halves(parties, number);
        let spares = memory(script, halves.iter().map(|(kept, _)| at(kept).length).sum());
        let mut used = 0;
        for (round, (kept, given)) in (0u32..).zip(&halves) {
            let partner = number ^ (1 << round);
            let rank = self.council.rank(parties.host(partner));
            let slot = Piece::numbered(u64::from(round) + 1).slot(Kind::Exchange);
            script.send(rank, at(given), slot);
            let value = at(kept);
            let operand = Slice {
                offset: spares.offset + used,
                length: value.length,
                ..spares
            };
            used += value.length;
            let mut sum = Sum { value, target: value };
            sum.absorb(script, rank, slot, operand, partner < number);
        }
        at(&halves.last().map_or(0..parties.count, |(kept, _)| kept.clone()))
    }

    /// Puts the parties' blocks in an order in which every round halves an interval: that of their numbers read
    /// backwards, bit by bit. Gives where those at each place begin.
    fn sort(&self, script: &mut Script, value: Slice, sorted: Slice) -> Vec<u64> {
        let parties = Parties::of(self.council.size);
        let mut begins = vec![0];
        for place in 0..parties.count {
            let party = mirrored(place, parties.count);
            let first = self.council.span(parties.host(party));
            let start = match party < parties.pairs {
                true => self.council.span(2 * party).start,
                false => first.start,
            };
            let from = self.row.slice(value.buffer, 0, start..first.end);
            let begin = begins[place as usize];
            let to = Slice {
                offset: sorted.offset + begin,
                length: from.length,
                ..sorted
            };
            script.copy(from, to);
            begins.push(begin + from.length);
        }
        begins
    }
}

/// The places that a party keeps in each round, and those that it gives away.
fn halves(parties: Parties, number: u32) -> Vec<(Range<u32>, Range<u32>)> {
    let mut places = 0..parties.count;
    let halve = |round: u32| {
        let middle = places.start + (places.end - places.start) / 2;
        let (low, high) = (places.start..middle, middle..places.end);
        let (kept, given) = if number >> round & 1 == 0 {
            (low, high)
        } else {
            (high, low)
        };
        places = kept.clone();
        (kept, given)
    };
    (0..parties.rounds()).map(halve).collect()
}

/// The bits of a number below a power of two, read backwards.
fn mirrored(number: u32, power: u32) -> u32 {
    match power {
        1 => 0,
        _ => number.reverse_bits() >> (u32::BITS - power.ilog2()),
    }
}

/// Units among the leaders beside those of a straight exchange: blocks that go back to the first of a pair.
pub(super) fn units_back(call: &Call, network: &Network) -> u64 {
    let row = BlockRow::new(&call.blocks, network, 0);
    let pairs = Parties::of(network.clusters(1)).pairs;
    (0..pairs).map(|pair| row.length(network.span(1, 2 * pair))).sum()
}

/// Messages among so many members.
pub(super) fn messages(members: u64) -> u64 {
    Parties::messages(members, |rounds| rounds)
}
