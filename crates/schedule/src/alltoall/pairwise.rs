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

use crate::amount::Cost;
use crate::choose::Question;
use crate::cost::pairwise;
use crate::script::{Kind, Piece, Script};
use crate::short::OwnBlocks;
use crate::step::{Action, After, Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::{Blocks, Call, Messages, Network, Operation};

pub(crate) fn plan(call: &Call, network: &Network, me: Rank, blocks: OwnBlocks<'_>) -> Box<dyn Plan> {
    let mut script = Script::default();
    let given = given(&mut script, call, network);
    write(&mut script, network, me, blocks, &given, |_, _| true);
    Box::new(script)
}

/// The blocks that a process gives.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// Where they are.
    pub(super) buffer: Buffer,
    /// The steps after which they are there.
    pub(super) ready: After,
}

impl Given {
    /// They are there from the beginning.
    fn at_once(buffer: Buffer) -> Self {
        Self {
            buffer,
            ready: After::NONE,
        }
    }
}

/// The blocks of a call, out of the way of those that come.
pub(super) fn given(script: &mut Script, call: &Call, network: &Network) -> Given {
    match (call.in_place, &call.operation) {
        (false, _) => Given::at_once(Buffer::Send),
        (true, Operation::Alltoall) => saved(script, call.blocks.offset(network.size())),
        (true, _) => saved(script, call.receive_blocks.offset(network.size())),
    }
}

/// Writes what process `me` does about the blocks that are wanted: by peer and units.
pub(super) fn write(
    script: &mut Script,
    network: &Network,
    me: Rank,
    blocks: OwnBlocks<'_>,
    given: &Given,
    wanted: impl Fn(Rank, u64) -> bool,
) {
    let block = |buffer, blocks: &Blocks, rank| Slice {
        buffer,
        offset: blocks.offset(rank),
        length: blocks.size(rank),
    };
    let (slot, p) = (Piece::whole(0).slot(Kind::Share), network.size());
    for d in 1..p {
        let (to, source) = ((me + d) % p, (me + p - d) % p);
        let data = block(given.buffer, blocks.to, to);
        if data.length > 0 && wanted(to, data.length) {
            script.push(Action::Send { to, data, slot }, given.ready.clone());
        }
        let data = block(Buffer::Recv, blocks.from, source);
        if data.length > 0 && wanted(source, data.length) {
            let from = source;
            script.push(Action::Receive { from, data, slot }, given.ready.clone());
        }
    }
    let own = block(Buffer::Recv, blocks.from, me);
    if given.buffer == Buffer::Send && own.length > 0 {
        let from = block(Buffer::Send, blocks.to, me);
        script.push(Action::Copy { from, to: own }, After::NONE);
    }
}

/// Its cost: of all processes behind one outermost link, and of one process.
pub(super) fn strategy(question: &Question, network: &Network) -> Strategy {
    let cost = match network.tiers() {
        0 => Cost::default(),
        _ => {
            let site = u64::from(network.size() / network.clusters(1));
            Cost::pipeline(&[pairwise(network, question.bytes(), site * site)], 1, 1)
        }
    };
    Strategy::without_trees(Algorithm::Pairwise, cost)
}

/// Copies what is in the one buffer of a call in place out of the way.
fn saved(script: &mut Script, length: u64) -> Given {
    if length == 0 {
        return Given::at_once(Buffer::Recv);
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
    Given {
        buffer,
        ready: After::from_iter([copy]),
    }
}

/// Messages of equal blocks.
pub(super) fn messages(network: &Network) -> Messages {
    Messages::of_pairs(network)
}
