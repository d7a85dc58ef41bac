// SPDX-License-Identifier: Apache-2.0
//! **Allreduce among leaders: each combines its share of the data for all, and sends the result to all.**
//!
//! | | |
//! |---|---|
//! | messages | 2 k (k − 1) |
//! | trips | 2 |
//! | bytes | each sends and receives 2 n (k − 1) / k: the minimum |
//! | restrictions | none; of little use for fewer than k units |
//! | paper | Rabenseifner: Optimization of collective reduction operations, 2004 (the idea; here both halves are direct) |

use crate::fold::{Sum, fold, operand_of};
use crate::script::{Kind, Piece, Script};
use crate::step::Slice;
use crate::tree::Council;

/// Places for a piece of so many units that the operands need: k shares, each rounded up.
pub(super) fn spares(council: &Council, piece: u64) -> u64 {
    let k = u64::from(council.size);
    (k * piece.div_ceil(k)).div_ceil(piece)
}

pub(super) fn exchange(script: &mut Script, council: &Council, sum: &mut Sum, piece: &Piece, spare: Slice) {
    let me = council.index;
    let mut share = Sum {
        value: part(sum.value, council, me),
        target: part(sum.target, council, me),
    };
    let length = share.target.length;
    let operand = |j: usize| Slice {
        offset: spare.offset + j as u64 * length,
        length,
        ..spare
    };
    for (to, from) in council.pairs() {
        script.send(
            council.rank(to),
            part(sum.value, council, to),
            piece.slot(Kind::Exchange),
        );
        let place = operand_of(council, &share, operand, from);
        script.receive(council.rank(from), place, piece.slot(Kind::Exchange));
    }
    fold(script, council, &mut share, operand);
    share.settle(script);
    for (to, from) in council.pairs() {
        script.send(council.rank(to), share.target, piece.slot(Kind::Share));
        script.receive(
            council.rank(from),
            part(sum.target, council, from),
            piece.slot(Kind::Share),
        );
    }
    sum.value = sum.target;
}

/// A member's share of a slice.
fn part(whole: Slice, council: &Council, member: u32) -> Slice {
    let begin = |i: u32| (u128::from(whole.length) * u128::from(i) / u128::from(council.size)) as u64;
    let (from, to) = (begin(member), begin(member + 1));
    Slice {
        offset: whole.offset + from,
        length: to - from,
        ..whole
    }
}
