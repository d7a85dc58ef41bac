// SPDX-License-Identifier: Apache-2.0
//! **Allreduce among leaders by recursive doubling: neighbours exchange and combine, then neighbouring pairs, and so on.**
//!
//! | | |
//! |---|---|
//! | messages | k log2 k for powers of two; else the pairs of the first members come together before and after |
//! | trips | ⌊log2 k⌋, + 2 if k is not a power of two |
//! | bytes | each sends and receives n log2 k |
//! | restrictions | none; both of a pair combine the same operands in the same order |
//! | paper | Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, 2005 |

use crate::fold::Sum;
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
    let (i, k) = (council.index, council.size);
    let (slot, back) = (piece.slot(Kind::Exchange), piece.slot(Kind::Share));
    let active = 1 << k.ilog2();
    let extra = k - active;
    let paired = i < 2 * extra;
    if paired && i % 2 == 0 {
        script.send(council.rank(i + 1), sum.value, slot);
        script.receive(council.rank(i + 1), sum.target, back);
        sum.value = sum.target;
        return;
    }
    if paired {
        sum.absorb(script, council.rank(i - 1), slot, spare(k.ilog2() as usize), true);
    }
    let number = if paired { i / 2 } else { i - extra };
    for round in 0..k.ilog2() {
        let partner = number ^ (1 << round);
        let rank = council.rank(if partner < extra {
            2 * partner + 1
        } else {
            partner + extra
        });
        script.send(rank, sum.value, slot);
        sum.absorb(script, rank, slot, spare(round as usize), partner < number);
    }
    if paired {
        script.send(council.rank(i - 1), sum.value, back);
    }
}

/// Messages among so many members.
pub(super) fn messages(members: u64) -> u64 {
    let rounds = members.ilog2();
    let active = 1 << rounds;
    active * u64::from(rounds) + 2 * (members - active)
}
