// SPDX-License-Identifier: Apache-2.0
//! **Gather along the tree of all tiers; a subtree's blocks travel as one message.**
//!
//! | | |
//! |---|---|
//! | messages | (parts − 1) per cluster and tier: the minimum; one per remote site, one per other machine of a site |
//! | trips | wide area 1 (flat), local area 1, node 1 or log2 |
//! | bytes | every block crosses a slow level once; inside, once per tier |
//! | restrictions | unequal blocks: those who act for others have been told the sizes by the counts phase; every tier flat |
//! | paper | multilevel-topology-aware-collectives 2002, section 3 (MPI_Gather); pacx-mpi-optimized-algorithms (one message per machine) |

use super::own_block;
use crate::Messages;
use crate::choose::{self, Order, Question};
use crate::row::{Row, is_run};
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::tree::Family;
use crate::{Call, Network, Operation};

pub(super) fn plan(call: &Call, network: &Network, me: Rank) -> Box<dyn Plan> {
    let mut script = Script::default();
    let family = family(network, call.root, me, &Question::of(call, network));
    let row = Row::new(&call.blocks, network, family.start);
    let own = own_block(call, &row, family.position, me);
    if family.parent.is_some() {
        collect(&mut script, &family, &row, own, None);
    } else {
        receive_by_rank(&mut script, call, network, &family, &row, own);
    }
    Box::new(script)
}

/// Brings equal blocks to a root, which gets them in order of position in `all`; elsewhere `all` is not used.
pub(crate) fn bring(
    script: &mut Script,
    network: &Network,
    root: Rank,
    me: Rank,
    row: &Row,
    own: Slice,
    all: Buffer,
    bytes: u64,
) {
    let question = Question::new(Operation::Gather, Order::Any, Some(bytes));
    let family = family(network, root, me, &question);
    let all = family.parent.is_none().then_some(all);
    collect(script, &family, row, own, all);
}

/// The tree: by the size of a block where all know it.
pub(super) fn family(network: &Network, root: Rank, me: Rank, question: &Question) -> Family {
    Family::of(&choose::answer(question, network), network, root, me)
}

/// Collects the subtree's blocks in order of position, and sends them on if there is a parent.
fn collect(script: &mut Script, family: &Family, row: &Row, own: Slice, all: Option<Buffer>) {
    let slot = Piece::whole(0).slot(Kind::Up);
    let mut data = own;
    if !family.is_leaf() || all.is_some() {
        let buffer = all.unwrap_or_else(|| script.memory(row.length(family.start..family.end)));
        script.copy(
            own,
            row.slice(buffer, family.start, family.position..family.position + 1),
        );
        for child in family.children.iter().rev() {
            script.receive(
                child.rank,
                row.slice(buffer, family.start, child.start..child.end),
                slot,
            );
        }
        data = row.slice(buffer, family.start, family.start..family.end);
    }
    if let Some(parent) = family.parent {
        script.send(parent, data, slot);
    }
}

/// The root's part: blocks end up in order of rank. A subtree of consecutive ranks is received in place.
fn receive_by_rank(script: &mut Script, call: &Call, network: &Network, family: &Family, row: &Row, own: Slice) {
    let slot = Piece::whole(0).slot(Kind::Up);
    let home = Slice {
        buffer: Buffer::Recv,
        offset: call.blocks.offset(network.rank_at(family.position)),
        ..own
    };
    script.copy(own, home);
    let mut spare = None;
    for child in family.children.iter().rev() {
        let positions = child.start..child.end;
        let length = row.length(positions.clone());
        if is_run(network, positions.clone()) {
            let offset = call.blocks.offset(network.rank_at(child.start));
            script.receive(
                child.rank,
                Slice {
                    buffer: Buffer::Recv,
                    offset,
                    length,
                },
                slot,
            );
        } else {
            let buffer = *spare.get_or_insert_with(|| script.memory(row.at(network.size())));
            script.receive(child.rank, row.slice(buffer, 0, positions.clone()), slot);
            row.permute(
                script,
                network,
                positions,
                (buffer, 0),
                (Buffer::Recv, &call.blocks),
                true,
            );
        }
    }
}

pub(super) fn messages(network: &Network) -> Messages {
    Messages::of_trees(network, 0)
}
