// SPDX-License-Identifier: Apache-2.0
//! **Allreduce among leaders: everybody sends to everybody and combines alone, in the same order.**
//!
//! | | |
//! |---|---|
//! | messages | k (k − 1): the minimum for one trip |
//! | trips | 1: no algorithm needs less |
//! | bytes | each sends and receives (k − 1) n |
//! | restrictions | none; scratch memory for k operands |
//! | paper | – |

use crate::fold::{Sum, fold, operand_of};
use crate::script::{Kind, Piece, Script};
use crate::step::Slice;
use crate::tree::Council;

pub(super) fn exchange(
    script: &mut Script,
    council: &Council,
    sum: &mut Sum,
    piece: &Piece,
    spare: impl Fn(usize) -> Slice,
) {
    let slot = piece.slot(Kind::Exchange);
    for (to, from) in council.pairs() {
        script.send(council.rank(to), sum.value, slot);
        script.receive(council.rank(from), operand_of(council, sum, &spare, from), slot);
    }
    fold(script, council, sum, spare);
}
