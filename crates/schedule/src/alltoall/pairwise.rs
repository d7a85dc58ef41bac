// SPDX-License-Identifier: Apache-2.0
//! **Alltoall and alltoallv, each block straight to its destination.**
//!
//! | | |
//! |---|---|
//! | messages | p − 1 from each process; empty blocks of alltoallv are not sent |
//! | trips | 1 |
//! | bytes | every block once: the minimum; every block of another site crosses the wide area in a message of its own |
//! | restrictions | in place: memory for a copy of the buffer |
//! | paper | – |

use crate::choose::{Algorithm, Question, Strategy};
use crate::cost::{Cost, pairwise};
use crate::script::{Kind, Piece, Script};
use crate::step::{Action, After, Buffer, Plan, Rank, Slice};
use crate::{Blocks, Call, Messages, Network};

pub(super) fn plan(call: &Call, network: &Network, me: Rank, by_target: &Blocks, by_source: &Blocks) -> Box<dyn Plan> {
    let mut script = Script::default();
    let p = network.size();
    let by_target = if call.in_place { by_source } else { by_target };
    let (from, ready) = if call.in_place {
        saved(&mut script, by_source.offset(p))
    } else {
        (Buffer::Send, After::NONE)
    };
    let block = |buffer, blocks: &Blocks, rank| Slice {
        buffer,
        offset: blocks.offset(rank),
        length: blocks.size(rank),
    };
    let slot = Piece::whole(0).slot(Kind::Exchange);
    for d in 1..p {
        let (to, source) = ((me + d) % p, (me + p - d) % p);
        let data = block(from, by_target, to);
        if data.length > 0 {
            script.push(Action::Send { to, data, slot }, ready.clone());
        }
        let data = block(Buffer::Recv, by_source, source);
        if data.length > 0 {
            script.push(
                Action::Receive {
                    from: source,
                    data,
                    slot,
                },
                ready.clone(),
            );
        }
    }
    let own = block(Buffer::Recv, by_source, me);
    if !call.in_place && own.length > 0 {
        script.push(
            Action::Copy {
                from: block(Buffer::Send, by_target, me),
                to: own,
            },
            After::NONE,
        );
    }
    Box::new(script)
}

/// Its cost: of all processes behind one outermost link, and of one process.
pub(super) fn strategy(question: &Question, network: &Network) -> Strategy {
    let cost = match network.tiers() {
        0 => Cost::default(),
        _ => Cost::pipeline(&[pairwise(network, question.bytes())], 1, 1),
    };
    Strategy::without_trees(Algorithm::Pairwise, cost)
}

/// Copies what is in the one buffer of a call in place out of the way.
fn saved(script: &mut Script, length: u64) -> (Buffer, After) {
    if length == 0 {
        return (Buffer::Recv, After::NONE);
    }
    let buffer = script.memory(length);
    let from = Slice {
        buffer: Buffer::Recv,
        offset: 0,
        length,
    };
    let copy = script.push(
        Action::Copy {
            from,
            to: Slice {
                buffer,
                offset: 0,
                length,
            },
        },
        After::NONE,
    );
    (buffer, After::from_iter([copy]))
}

/// Messages of equal blocks.
pub(super) fn messages(network: &Network) -> Messages {
    Messages::of_pairs(network)
}
