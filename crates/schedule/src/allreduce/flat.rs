// SPDX-License-Identifier: Apache-2.0
//! **Allreduce among leaders: everybody's sum comes to everybody, straight (flat) or on its quickest way (routed), and
//! everybody combines alone, in the same order.**
//!
//! | | |
//! |---|---|
//! | messages | k (k − 1): the minimum for one trip |
//! | trips | flat 1: no algorithm needs less; routed: as many as the quickest way has, no algorithm is quicker |
//! | bytes | each receives (k − 1) n and, flat, sends as many; routed, those between others send more |
//! | restrictions | none; scratch memory for k operands |
//! | paper | – |

use crate::fold::{Sum, fold, operand_of};
use crate::script::{Kind, Piece, Script};
use crate::step::Slice;
use crate::tree::{Council, Move};

pub(super) fn exchange(
    script: &mut Script,
    council: &Council,
    sum: &mut Sum,
    piece: &Piece,
    spare: impl Fn(usize) -> Slice,
) {
    let place = |item| match item == council.index {
        true => sum.value,
        false => operand_of(council, sum, &spare, item),
    };
    council.each_move(false, |step| {
        let slot = |item| council.about(piece, item).slot(Kind::Exchange);
        match step {
            Move::Send { to, item } => script.send(council.rank(to), place(item), slot(item)),
            Move::Receive { from, item } => script.receive(council.rank(from), place(item), slot(item)),
        };
    });
    fold(script, council, sum, spare);
}
