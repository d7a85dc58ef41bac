// SPDX-License-Identifier: Apache-2.0
//! **Scatter along the tree of all tiers; a subtree's blocks travel as one message.**
//!
//! | | |
//! |---|---|
//! | messages | (parts − 1) per cluster and tier: the minimum; one per remote site, one per other machine of a site |
//! | trips | wide area 1 (flat), local area 1, node 1 or log2 |
//! | bytes | every block crosses a slow level once; inside, once per tier |
//! | restrictions | unequal blocks: those who act for others have been told the sizes by the counts phase; every tier flat |
//! | paper | multilevel-topology-aware-collectives 2002, section 3 (MPI_Scatter) |

use crate::Messages;
use crate::row::{Row, is_run};
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::tree::Family;
use crate::{Call, Network, choose};

pub(super) fn plan(call: &Call, network: &Network, me: Rank) -> Box<dyn Plan> {
    let mut script = Script::default();
    let family = family(call, network, me);
    let row = Row::new(&call.blocks, network, family.start);
    let length = row.length(family.position..family.position + 1);
    let own = Slice {
        buffer: Buffer::Recv,
        offset: 0,
        length,
    };
    match family.parent {
        Some(parent) => pass_on(&mut script, &family, parent, &row, own),
        None => send_by_rank(&mut script, call, network, &family, &row, own),
    }
    Box::new(script)
}

/// The tree: by the size of a block where all know it.
pub(super) fn family(call: &Call, network: &Network, me: Rank) -> Family {
    Family::of(&choose::strategy(call, network), network, call.root, me)
}

/// Receives the subtree's blocks, hands on the children's and keeps the own one.
fn pass_on(script: &mut Script, family: &Family, parent: Rank, row: &Row, own: Slice) {
    let slot = Piece::whole(0).slot(Kind::Down);
    if family.is_leaf() {
        script.receive(parent, own, slot);
        return;
    }
    let buffer = script.memory(row.length(family.start..family.end));
    script.receive(parent, row.slice(buffer, family.start, family.start..family.end), slot);
    spread(script, family, row, buffer, family.start, own);
}

/// Hands on the children's blocks and keeps the own one, from a buffer in order of position that begins with `origin`.
pub(crate) fn spread(script: &mut Script, family: &Family, row: &Row, buffer: Buffer, origin: u32, own: Slice) {
    let slot = Piece::whole(0).slot(Kind::Down);
    for child in &family.children {
        script.send(child.rank, row.slice(buffer, origin, child.start..child.end), slot);
    }
    script.copy(row.slice(buffer, origin, family.position..family.position + 1), own);
}

/// The root's part: blocks are in order of rank. A subtree of consecutive ranks is sent from where it is.
fn send_by_rank(script: &mut Script, call: &Call, network: &Network, family: &Family, row: &Row, own: Slice) {
    let slot = Piece::whole(0).slot(Kind::Down);
    let mut spare = None;
    for child in &family.children {
        let positions = child.start..child.end;
        let length = row.length(positions.clone());
        let mut data = Slice {
            buffer: Buffer::Send,
            offset: call.blocks.offset(network.rank_at(child.start)),
            length,
        };
        if !is_run(network, positions.clone()) {
            let buffer = *spare.get_or_insert_with(|| script.memory(row.at(network.size())));
            data = row.slice(buffer, 0, positions.clone());
            row.permute(
                script,
                network,
                positions,
                (buffer, 0),
                (Buffer::Send, &call.blocks),
                false,
            );
        }
        script.send(child.rank, data, slot);
    }
    if !call.in_place {
        let offset = call.blocks.offset(network.rank_at(family.position));
        script.copy(
            Slice {
                buffer: Buffer::Send,
                offset,
                ..own
            },
            own,
        );
    }
}

pub(super) fn messages(network: &Network) -> Messages {
    Messages::of_trees(network, 0)
}
