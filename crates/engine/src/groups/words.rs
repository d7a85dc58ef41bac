// SPDX-License-Identifier: Apache-2.0
//! How members that do not call the same are told so.

use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{Claim, Disagreement, ENLARGE};

use crate::EngineError;
use crate::base::notes::Amount;
use crate::groups::CellCollective;

/// Bytes of a block in the note of an operation that takes no step together: what has the same name and takes one
/// does not go together with it. Less than that by the digest of its [amount](Amount), if all members must say the
/// same.
pub(super) const NO_STEP: u64 = (1 << 33) - 1;

/// What a member takes a step for in which blocks go.
pub(super) fn claim(what: What, root: u32, operator: u8, block: u64) -> Claim {
    Claim {
        what: what as u8,
        root,
        operator,
        block,
    }
}

/// Whether that is the note of an operation that takes no step together.
pub(super) fn takes_no_step(claim: &Claim) -> bool {
    claim.block > NO_STEP - (1 << 24)
}

/// The bytes of such an operation.
pub(super) fn amount_of(claim: &Claim) -> Amount {
    Amount::from_digest(NO_STEP.saturating_sub(claim.block) as u32)
}

/// What stands in the place of the root of such a note: the operation was called, made to be started later (where all
/// members agree on memory for it), or is the library's own.
pub(super) const CALLED: u32 = 0;
pub(super) const MADE: u32 = 1;
pub(super) const SETS_UP: u32 = 2;
pub(super) const MADE_IN_MEMORY: u32 = 3;

/// In words, as a member of a step sees it.
pub(crate) fn in_words_of(found: &Disagreement, meet: &CellCollective) -> EngineError {
    let (me, now) = (meet.slab().me, meet.numbers.step);
    in_words(found, Some(meet.claim()), me, now, |member| meet.rank_of(member))
}

/// In words, as this member sees it in this step.
pub(super) fn in_words(
    found: &Disagreement,
    claim: Option<Claim>,
    me: u32,
    now: u64,
    rank_of: impl Fn(u32) -> u32,
) -> EngineError {
    let me = rank_of(me);
    let told = |claim: &Claim| {
        let name = What::ALL
            .get(usize::from(claim.what))
            .map_or("another operation", |what| what.name());
        match claim {
            Claim {
                root: MADE | MADE_IN_MEMORY,
                ..
            } if takes_no_step(claim) => format!("{name}_init"),
            Claim { root: SETS_UP, .. } if takes_no_step(claim) => {
                format!("a call that makes a communicator or opens a file ({name})")
            }
            Claim { block: 0, .. } => name.to_owned(),
            _ if takes_no_step(claim) => name.to_owned(),
            Claim { block, root, .. } => {
                let root = rank_of(*root);
                format!("{name} of {block} bytes (root {root})")
            }
        }
    };
    let (what, lengths) = match found {
        Disagreement::Other {
            member,
            step,
            claims: [mine, theirs],
        } => {
            let tense = if *step == now { "is" } else { "was" };
            let other = rank_of(*member);
            let (mine_told, theirs_told) = (told(mine), told(theirs));
            let what = match mine_told == theirs_told {
                true => {
                    format!(
                        "rank {me} {tense} in {mine_told}, rank {other} was in it with another count, datatype or operation of a reduction"
                    )
                }
                false => format!("rank {me} {tense} in {mine_told}, rank {other} was in {theirs_told}"),
            };
            let differs_in_length = mine_told == theirs_told && mine.operator == theirs.operator
                || (theirs.what, theirs.root, theirs.operator) == (mine.what, mine.root, mine.operator);
            (what, differs_in_length)
        }
        // Whoever is heard of first ends the job, so what the user can do about it is in the errors of all.
        Disagreement::GaveUp {
            member,
            no_memory: true,
        } => {
            let reason = format!(
                "rank {} has given up: there is no memory for what the processes of this node share (one of them says where){ENLARGE}; no further \
                 collective operation is possible on this communicator",
                rank_of(*member)
            );
            return EngineError::Memory { reason: reason.into() };
        }
        Disagreement::GaveUp { member, .. } => {
            let mine = claim.as_ref().map_or_else(|| "an operation".to_owned(), told);
            let other = rank_of(*member);
            (
                format!("rank {me} is in {mine}, rank {other} has given up (its own error says why)"),
                false,
            )
        }
    };
    EngineError::Disagreement {
        what: what.into(),
        lengths,
    }
}
