// SPDX-License-Identifier: Apache-2.0
//! Combining contributions without needless copies.

use crate::parties::{Parties, Role};
use crate::script::{Kind, Piece, Script};
use crate::step::{Rank, Slice};
use crate::tree::{Council, Family};

/// A growing result. It begins where the own contribution is and moves to where it may be written with the first
/// operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    /// Where it is now.
    pub(crate) value: Slice,
    /// Where it will be: the same slice, or one that does not overlap.
    pub(crate) target: Slice,
}

impl Sum {
    /// Combines with what a process sends. `spare` is memory for the operand.
    pub(crate) fn absorb(&mut self, script: &mut Script, from: Rank, slot: u16, spare: Slice, left: bool) {
        let operand = if self.value == self.target { spare } else { self.target };
        script.receive(from, operand, slot);
        self.combine(script, operand, left);
    }

    /// Combines with an operand that is there; it may be in `target` already if the sum is not.
    pub(crate) fn combine(&mut self, script: &mut Script, operand: Slice, left: bool) {
        if operand == self.target {
            script.reduce(self.value, self.target, !left);
        } else {
            if self.value != self.target {
                script.copy(self.value, self.target);
            }
            script.reduce(operand, self.target, left);
        }
        self.value = self.target;
    }

    /// Combines with all children's subtrees, nearest first.
    pub(crate) fn absorb_children(
        &mut self,
        script: &mut Script,
        family: &Family,
        piece: &Piece,
        spare: impl Fn(usize) -> Slice,
    ) {
        self.absorb_node(script, family);
        for (i, child) in family.children.iter().enumerate().rev() {
            self.absorb(script, child.rank, piece.slot(Kind::Up), spare(i), child.left);
        }
    }

    /// Combines with what the other processes of the node give, if they take steps together.
    fn absorb_node(&mut self, script: &mut Script, family: &Family) {
        if family.seat.is_some() {
            family.combine(script, self.value, self.target);
            self.value = self.target;
        }
    }

    /// The number of this member among those who take part in rounds, and who gives it his sum first. A guest gives his
    /// away on the first slot and gets the result on the second.
    pub(crate) fn take_part(
        &mut self,
        script: &mut Script,
        council: &Council,
        parties: Parties,
        slot: u16,
        back: u16,
    ) -> Option<(u32, Option<Rank>)> {
        match parties.role(council.index) {
            Role::Party { number, guest } => Some((number, guest.map(|guest| council.rank(guest)))),
            Role::Guest { host } => {
                script.send(council.rank(host), self.value, slot);
                script.receive(council.rank(host), self.target, back);
                self.value = self.target;
                None
            }
        }
    }

    /// Makes sure that the result is in its target.
    pub(crate) fn settle(&mut self, script: &mut Script) {
        script.copy(self.value, self.target);
        self.value = self.target;
    }
}

/// Where the contribution of member `j` is received by [`fold`].
pub(crate) fn operand_of(council: &Council, sum: &Sum, spare: impl Fn(usize) -> Slice, j: u32) -> Slice {
    let first = u32::from(council.index == 0);
    if sum.value != sum.target && j == first {
        sum.target
    } else {
        spare(j as usize)
    }
}

/// Combines the contributions of all members of a council, received as [`operand_of`] says, strictly from left to
/// right: ((0 ∘ 1) ∘ 2) ∘ …, the same on every member, so that rounding is the same too.
pub(crate) fn fold(script: &mut Script, council: &Council, sum: &mut Sum, spare: impl Fn(usize) -> Slice) {
    let place = operand_of(council, sum, &spare, 0);
    let me = council.index;
    for j in 1..me {
        script.reduce(spare(j as usize), place, false);
    }
    if me > 0 {
        sum.combine(script, place, true);
    }
    for j in me + 1..council.size {
        let operand = operand_of(council, sum, &spare, j);
        sum.combine(script, operand, false);
    }
}
