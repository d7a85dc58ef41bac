// SPDX-License-Identifier: Apache-2.0
//! **Allreduce among leaders by recursive doubling: neighbours exchange and combine, then neighbouring pairs, and so
//! on.**
//!
//! | | |
//! |---|---|
//! | messages | k log2 k for powers of two; else the pairs of the first members come together before and after |
//! | trips | ⌊log2 k⌋, + 2 if k is not a power of two |
//! | bytes | each sends and receives n log2 k |
//! | restrictions | none; both of a pair combine the same operands in the same order |
//! | paper | Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, 2005 |

use crate::fold::Sum;
use crate::parties::Parties;
use crate::script::{Kind, Piece, Script};
use crate::step::Slice;
use crate::tree::Council;

/// Places for a piece that the operands need.
pub(super) fn spares(council: &Council) -> u64 {
    u64::from(council.size.ilog2()) + 1
}

pub(super) fn exchange(
    script: &mut Script,
    council: &Council,
    sum: &mut Sum,
    piece: &Piece,
    spare: impl Fn(usize) -> Slice,
) {
    let (slot, back) = (piece.slot(Kind::Exchange), piece.slot(Kind::Share));
    let parties = Parties::of(council.size);
    let Some((number, guest)) = sum.take_part(script, council, parties, slot, back) else {
        return;
    };
    if let Some(guest) = guest {
        sum.absorb(script, guest, slot, spare(parties.rounds() as usize), true);
    }
    for round in 0..parties.rounds() {
        let partner = number ^ (1 << round);
        let rank = council.rank(parties.host(partner));
        script.send(rank, sum.value, slot);
        sum.absorb(script, rank, slot, spare(round as usize), partner < number);
    }
    if let Some(guest) = guest {
        script.send(guest, sum.value, back);
    }
}

/// Messages among so many members.
pub(super) fn messages(members: u64) -> u64 {
    Parties::messages(members, |rounds| rounds)
}
