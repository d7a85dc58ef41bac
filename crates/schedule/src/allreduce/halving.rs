// SPDX-License-Identifier: Apache-2.0
//! **Allreduce among leaders by recursive halving and doubling: neighbours exchange halves of the data and combine the
//! half that they keep, neighbouring pairs exchange quarters, and so on; then results go back the same way, each time
//! twice as much.**
//!
//! | | |
//! |---|---|
//! | messages | 2 k log2 k for powers of two; else the pairs of the first members come together before and after |
//! | trips | 2 ⌊log2 k⌋, + 2 if k is not a power of two |
//! | bytes | each sends and receives 2 n (k − 1) / k: the minimum; if k is no power of two the pairs n more both ways |
//! | restrictions | none: neighbours come first, so operands stay in order; of little use for fewer than k units |
//! | result | bit-identical on all: each share is combined by one member |
//! | paper | Rabenseifner: Optimization of collective reduction operations, 2004; Thakur, Rabenseifner, Gropp 2005 |

use crate::fold::Sum;
use crate::parties::Parties;
use crate::script::{Kind, Piece, Script};
use crate::step::Slice;
use crate::tree::Council;

/// Places for a piece of so many units that the operands need: what is kept in all rounds, each rounded up, and all of
/// a pair's other member.
pub(super) fn spares(council: &Council, piece: u64) -> u64 {
    let rounds = u64::from(council.size.ilog2());
    let kept = (piece + rounds).div_ceil(piece.max(1));
    kept + u64::from(!council.size.is_power_of_two())
}

pub(super) fn exchange(script: &mut Script, council: &Council, sum: &mut Sum, piece: &Piece, spare: Slice) {
    let (slot, back) = (piece.slot(Kind::Exchange), piece.slot(Kind::Share));
    let parties = Parties::of(council.size);
    let Some((number, guest)) = sum.take_part(script, council, parties, slot, back) else {
        return;
    };
    let mut used = 0;
    if let Some(guest) = guest {
        let operand = Slice {
            length: sum.target.length,
            ..spare
        };
        sum.absorb(script, guest, slot, operand, true);
        used = operand.length;
    }
    let leader = |party: u32| council.rank(parties.host(party));
    let halves = halves(parties.rounds(), number, sum.target.length);
    for half in &halves {
        let partner = number ^ half.bit;
        script.send(leader(partner), half.given(sum.value), slot);
        let mut share = Sum {
            value: half.kept(sum.value),
            target: half.kept(sum.target),
        };
        let operand = Slice {
            offset: spare.offset + used,
            length: share.target.length,
            ..spare
        };
        used += operand.length;
        share.absorb(script, leader(partner), slot, operand, partner < number);
        // What is not kept is the partner's: nothing of it is looked at again before it comes back.
        sum.value = sum.target;
    }
    for half in halves.iter().rev() {
        let partner = leader(number ^ half.bit);
        script.send(partner, half.kept(sum.target), back);
        script.receive(partner, half.given(sum.target), back);
    }
    if let Some(guest) = guest {
        script.send(guest, sum.target, back);
    }
}

/// What a party does with the units that it has at the begin of a round: where they begin and end, and where they are
/// cut.
struct Half {
    begin: u64,
    middle: u64,
    end: u64,
    keeps_low: bool,
    /// The bit in which the partner's number differs.
    bit: u32,
}

impl Half {
    fn kept(&self, whole: Slice) -> Slice {
        match self.keeps_low {
            true => part(whole, self.begin, self.middle),
            false => part(whole, self.middle, self.end),
        }
    }

    fn given(&self, whole: Slice) -> Slice {
        match self.keeps_low {
            true => part(whole, self.middle, self.end),
            false => part(whole, self.begin, self.middle),
        }
    }
}

fn part(whole: Slice, begin: u64, end: u64) -> Slice {
    Slice {
        offset: whole.offset + begin,
        length: end - begin,
        ..whole
    }
}

/// The halves of all rounds. Partners agree on them: their numbers differ in the bit of the round only.
fn halves(rounds: u32, number: u32, units: u64) -> Vec<Half> {
    let (mut begin, mut end) = (0, units);
    let halve = |round: u32| {
        let half = Half {
            begin,
            middle: begin + (end - begin) / 2,
            end,
            keeps_low: number >> round & 1 == 0,
            bit: 1 << round,
        };
        (begin, end) = match half.keeps_low {
            true => (half.begin, half.middle),
            false => (half.middle, half.end),
        };
        half
    };
    (0..rounds).map(halve).collect()
}

/// Messages among so many members.
pub(super) fn messages(members: u64) -> u64 {
    Parties::messages(members, |rounds| 2 * rounds)
}
