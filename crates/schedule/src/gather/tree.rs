// SPDX-License-Identifier: Apache-2.0
//! **Gather along the tree of all tiers; a subtree's blocks travel as one message.**
//!
//! | | |
//! |---|---|
//! | messages | (parts − 1) per cluster and tier: the minimum; one per remote site, one per other machine of a site; one more per site whose unequal blocks are too long to be handed on, and per block that goes straight to the root |
//! | trips | wide area 1 (flat; routed: those of the quickest ways), local area 1, node 1 or log2 |
//! | bytes | every block crosses a slow level once; inside, once per tier |
//! | restrictions | unequal blocks: those who act for others have been told the sizes by the counts phase; every tier flat, or routed |
//! | paper | multilevel-topology-aware-collectives 2002, section 3 (MPI_Gather); pacx-mpi-optimized-algorithms (one message per machine) |

use crate::apart::Apart;
use crate::choose::{self, Order, Question};
use crate::row::BlockRow;
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::straight::Straight;
use crate::strategy::Algorithm;
use crate::tree::Family;
use crate::{Blocks, Call, Messages, Network, Operation, direct};
use std::ops::Range;

pub(super) fn plan(call: &Call, network: &Network, me: Rank) -> Box<dyn Plan> {
    let mut script = Script::default();
    let strategy = choose::strategy(call, network);
    let family = Family::of(&strategy, network, call.root, me);
    let whole = BlockRow::new(&call.blocks, network, family.start);
    let apart = Apart::of(call, network, &strategy);
    let row = match &apart {
        Some(apart) => apart.rest(&whole, family.start..family.end),
        None => whole.clone(),
    };
    let own = own_block(call, &row, family.position, me);
    if let Some(apart) = &apart {
        match family.parent {
            Some(_) => apart.own(&mut script, &whole, family.position, Buffer::Send),
            None => apart.others(&mut script, &whole, Buffer::Recv),
        }
    }
    let straight = match call.blocks {
        Blocks::Equal(_) => None,
        _ => Straight::of(call, network, &strategy, &family, &row),
    };
    match (family.parent, &straight) {
        (None, _) => receive_by_rank(&mut script, call, network, &family, &row, straight.as_ref(), own),
        (Some(_), None) => collect(&mut script, &family, &row, own, None),
        (Some(parent), Some(straight)) => {
            collect_apart(&mut script, &family, &row, straight, own, parent, call.root);
        }
    }
    Box::new(script)
}

/// Brings equal blocks to a root, which gets them in order of position in `all`; elsewhere `all` is not used.
pub(crate) fn bring(
    script: &mut Script,
    network: &Network,
    root: Rank,
    me: Rank,
    row: &BlockRow,
    own: Slice,
    all: Buffer,
    bytes: u64,
) {
    let family = family(network, root, me, &brings(bytes));
    let all = family.parent.is_none().then_some(all);
    collect(script, &family, row, own, all);
}

/// What [`bring`] asks about equal blocks of so many bytes.
fn brings(bytes: u64) -> Question {
    Question::new(Operation::Gather, Order::Any, Some(bytes))
}

/// Messages of [`bring`] to the root of a call.
pub(crate) fn brought(call: &Call, network: &Network, bytes: u64) -> Messages {
    let strategy = choose::answer(&brings(bytes), network);
    match strategy.algorithm {
        Algorithm::Direct => direct::messages(call, network, &strategy),
        _ => Messages::of_trees(network, 0),
    }
}

/// The tree: by the size of a block where all know it.
pub(super) fn family(network: &Network, root: Rank, me: Rank, question: &Question) -> Family {
    Family::of(&choose::answer(question, network), network, root, me)
}

/// Collects the subtree's blocks in order of position, and sends them on if there is a parent.
fn collect(script: &mut Script, family: &Family, row: &BlockRow, own: Slice, all: Option<Buffer>) {
    let slot = Piece::whole(0).slot(Kind::Up);
    let mut data = own;
    if family.follows() {
        return family.put_together(script, own, |_| Slice::NOTHING);
    }
    if !family.is_leaf() || all.is_some() {
        let buffer = all.unwrap_or_else(|| script.memory(row.length(family.start..family.end)));
        family.put_together(script, own, |positions| row.slice(buffer, family.start, positions));
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

/// As [`collect`] for a leader: what goes straight to the root is collected apart.
fn collect_apart(
    script: &mut Script,
    family: &Family,
    row: &BlockRow,
    straight: &Straight,
    own: Slice,
    parent: Rank,
    root: Rank,
) {
    let whole = family.start..family.end;
    let buffer = script.memory(straight.row.length(whole.clone()));
    let apart = straight
        .own
        .clone()
        .map(|site| (script.memory(row.length(site.clone())), site));
    let at = |positions: Range<u32>| match &apart {
        Some((apart, site)) if site.contains(&positions.start) => row.slice(*apart, site.start, positions),
        _ => straight.row.slice(buffer, family.start, positions),
    };
    script.copy(own, at(family.position..family.position + 1));
    for child in family.children.iter().rev() {
        script.receive(child.rank, at(child.start..child.end), Piece::whole(0).slot(Kind::Up));
    }
    if let Some((_, site)) = &apart {
        script.send(root, at(site.clone()), Piece::whole(0).slot(Kind::Share));
    }
    let rest = straight.row.slice(buffer, family.start, whole);
    script.send(parent, rest, Piece::whole(0).slot(Kind::Up));
}

/// The root's part: blocks end up in order of rank. A subtree of consecutive ranks is received in place.
fn receive_by_rank(
    script: &mut Script,
    call: &Call,
    network: &Network,
    family: &Family,
    row: &BlockRow,
    straight: Option<&Straight>,
    own: Slice,
) {
    let home = Slice {
        buffer: Buffer::Recv,
        offset: call.blocks.offset(network.rank_at(family.position)),
        ..own
    };
    let (mut spare, mut rest) = (None, None);
    match family.seat {
        Some(seat) => {
            let nodes = seat.start..seat.end;
            take_part(script, call, network, row, nodes, &mut spare, |script, data| {
                family.put_together(script, own, |_| data);
            });
        }
        None => script.copy(own, home),
    }
    let slot = Piece::whole(0).slot(Kind::Up);
    for child in family.children.iter().rev() {
        let positions = child.start..child.end;
        let Some((straight, sites)) = straight.and_then(|s| Some((s, s.others(network, &positions)?))) else {
            receive_part(script, call, network, row, (child.rank, positions, slot), &mut spare);
            continue;
        };
        let row = &straight.row;
        let buffer = *rest.get_or_insert_with(|| script.memory(row.at(network.size())));
        script.receive(child.rank, row.slice(buffer, 0, positions), slot);
        for site in sites {
            row.copy_to_ranks(script, call, network, network.span(1, site), buffer);
        }
    }
    let slot = Piece::whole(0).slot(Kind::Share);
    for site in straight.iter().flat_map(|s| &s.sites) {
        let positions = network.span(1, *site);
        let from = network.rank_at(positions.start);
        receive_part(script, call, network, row, (from, positions, slot), &mut spare);
    }
}

/// Receives the blocks of some positions from a process, to their places.
fn receive_part(
    script: &mut Script,
    call: &Call,
    network: &Network,
    row: &BlockRow,
    (from, positions, slot): (Rank, Range<u32>, u16),
    spare: &mut Option<Buffer>,
) {
    take_part(script, call, network, row, positions, spare, |script, data| {
        script.receive(from, data, slot);
    });
}

/// Has the blocks of some positions taken in order of position, straight to their places where these follow each other
/// in order of rank.
fn take_part(
    script: &mut Script,
    call: &Call,
    network: &Network,
    row: &BlockRow,
    positions: Range<u32>,
    spare: &mut Option<Buffer>,
    take: impl FnOnce(&mut Script, Slice),
) {
    if row.is_whole_run(network, positions.clone(), &call.blocks) {
        let data = Slice {
            buffer: Buffer::Recv,
            offset: call.blocks.offset(network.rank_at(positions.start)),
            length: row.length(positions),
        };
        return take(script, data);
    }
    let buffer = *spare.get_or_insert_with(|| script.memory(row.at(network.size())));
    take(script, row.slice(buffer, 0, positions.clone()));
    row.copy_to_ranks(script, call, network, positions, buffer);
}

/// The own block of a process in the buffer that holds it when the call begins.
fn own_block(call: &Call, row: &BlockRow, position: u32, me: Rank) -> Slice {
    let length = row.length(position..position + 1);
    if call.in_place {
        Slice {
            buffer: Buffer::Recv,
            offset: call.blocks.offset(me),
            length,
        }
    } else {
        Slice {
            buffer: Buffer::Send,
            offset: 0,
            length,
        }
    }
}
