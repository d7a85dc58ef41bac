// SPDX-License-Identifier: Apache-2.0
//! **Scatter along the tree of all tiers; a subtree's blocks travel as one message.**
//!
//! | | |
//! |---|---|
//! | messages | (parts − 1) per cluster and tier: the minimum; one per remote site, one per other machine of a site; one more per site whose unequal blocks are too long to be handed on, and per block that comes straight from the root |
//! | trips | wide area 1 (flat; routed: those of the quickest ways), local area 1, node 1 or log2 |
//! | bytes | every block crosses a slow level once; inside, once per tier |
//! | restrictions | unequal blocks: those who act for others have been told the sizes by the counts phase; every tier flat, or routed |
//! | paper | multilevel-topology-aware-collectives 2002, section 3 (MPI_Scatter) |

use crate::apart::Apart;
use crate::row::BlockRow;
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::straight::Straight;
use crate::tree::Family;
use crate::{Blocks, Call, Network, choose};
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
    let length = row.length(family.position..family.position + 1);
    let own = Slice {
        buffer: Buffer::Recv,
        offset: 0,
        length,
    };
    let straight = match call.blocks {
        Blocks::Equal(_) => None,
        _ => Straight::of(call, network, &strategy, &family, &row),
    };
    if let Some(apart) = &apart {
        match family.parent {
            Some(_) => apart.own(&mut script, &whole, family.position, Buffer::Recv),
            None => apart.others(&mut script, &whole, Buffer::Send),
        }
    }
    match (family.parent, &straight) {
        (None, _) => send_by_rank(&mut script, call, network, &family, &row, straight.as_ref(), own),
        (Some(parent), None) => pass_on(&mut script, &family, parent, &row, own),
        (Some(parent), Some(straight)) => {
            pass_on_apart(&mut script, &family, &row, straight, own, parent, call.root);
        }
    }
    Box::new(script)
}

/// The tree: by the size of a block where all know it.
pub(super) fn family(call: &Call, network: &Network, me: Rank) -> Family {
    Family::of(&choose::strategy(call, network), network, call.root, me)
}

/// Receives the subtree's blocks, hands on the children's and keeps the own one.
fn pass_on(script: &mut Script, family: &Family, parent: Rank, row: &BlockRow, own: Slice) {
    let slot = Piece::whole(0).slot(Kind::Down);
    if family.follows() {
        return family.deal_out(script, own.length, own, |_| Slice::NOTHING);
    }
    if family.is_leaf() {
        script.receive(parent, own, slot);
        return;
    }
    let buffer = script.memory(row.length(family.start..family.end));
    script.receive(parent, row.slice(buffer, family.start, family.start..family.end), slot);
    spread(script, family, row, buffer, family.start, own);
}

/// As [`pass_on`] for a leader: what comes straight from the root is received apart.
fn pass_on_apart(
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
    let rest = straight.row.slice(buffer, family.start, whole);
    script.receive(parent, rest, Piece::whole(0).slot(Kind::Down));
    if let Some((_, site)) = &apart {
        script.receive(root, at(site.clone()), Piece::whole(0).slot(Kind::Share));
    }
    for child in &family.children {
        script.send(child.rank, at(child.start..child.end), Piece::whole(0).slot(Kind::Down));
    }
    script.copy(at(family.position..family.position + 1), own);
}

/// Hands on the children's blocks and keeps the own one, from a buffer in order of position that begins with `origin`.
pub(crate) fn spread(script: &mut Script, family: &Family, row: &BlockRow, buffer: Buffer, origin: u32, own: Slice) {
    let slot = Piece::whole(0).slot(Kind::Down);
    for child in &family.children {
        script.send(child.rank, row.slice(buffer, origin, child.start..child.end), slot);
    }
    let at = |positions| row.slice(buffer, origin, positions);
    match family.seat {
        Some(_) => family.deal_out(script, own.length, own, at),
        None => script.copy(at(family.position..family.position + 1), own),
    }
}

/// The root's part: blocks are in order of rank. A subtree of consecutive ranks is sent from where it is.
fn send_by_rank(
    script: &mut Script,
    call: &Call,
    network: &Network,
    family: &Family,
    row: &BlockRow,
    straight: Option<&Straight>,
    own: Slice,
) {
    let (mut spare, mut rest) = (None, None);
    let slot = Piece::whole(0).slot(Kind::Down);
    for child in &family.children {
        let positions = child.start..child.end;
        let Some((straight, sites)) = straight.and_then(|s| Some((s, s.others(network, &positions)?))) else {
            send_part(script, call, network, row, (child.rank, positions, slot), &mut spare);
            continue;
        };
        let row = &straight.row;
        let buffer = *rest.get_or_insert_with(|| script.memory(row.at(network.size())));
        for site in sites {
            row.copy_from_ranks(script, call, network, network.span(1, site), buffer);
        }
        script.send(child.rank, row.slice(buffer, 0, positions), slot);
    }
    let slot = Piece::whole(0).slot(Kind::Share);
    for site in straight.iter().flat_map(|s| &s.sites) {
        let positions = network.span(1, *site);
        let to = network.rank_at(positions.start);
        send_part(script, call, network, row, (to, positions, slot), &mut spare);
    }
    if let Some(seat) = family.seat {
        let take = if call.in_place { Slice::NOTHING } else { own };
        give_part(
            script,
            call,
            network,
            row,
            seat.start..seat.end,
            &mut spare,
            |script, data| {
                family.deal_out(script, own.length, take, |_| data);
            },
        );
    } else if !call.in_place {
        let from = Slice {
            buffer: Buffer::Send,
            offset: call.blocks.offset(network.rank_at(family.position)),
            ..own
        };
        script.copy(from, own);
    }
}

/// Sends the blocks of some positions to a process.
fn send_part(
    script: &mut Script,
    call: &Call,
    network: &Network,
    row: &BlockRow,
    (to, positions, slot): (Rank, Range<u32>, u16),
    spare: &mut Option<Buffer>,
) {
    give_part(script, call, network, row, positions, spare, |script, data| {
        script.send(to, data, slot);
    });
}

/// Has the blocks of some positions given in order of position, from where they are if they follow each other in order
/// of rank.
fn give_part(
    script: &mut Script,
    call: &Call,
    network: &Network,
    row: &BlockRow,
    positions: Range<u32>,
    spare: &mut Option<Buffer>,
    give: impl FnOnce(&mut Script, Slice),
) {
    if row.is_whole_run(network, positions.clone(), &call.blocks) {
        let data = Slice {
            buffer: Buffer::Send,
            offset: call.blocks.offset(network.rank_at(positions.start)),
            length: row.length(positions),
        };
        return give(script, data);
    }
    let buffer = *spare.get_or_insert_with(|| script.memory(row.at(network.size())));
    row.copy_from_ranks(script, call, network, positions.clone(), buffer);
    give(script, row.slice(buffer, 0, positions));
}
