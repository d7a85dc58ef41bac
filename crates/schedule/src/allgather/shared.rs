// SPDX-License-Identifier: Apache-2.0
//! **Allgather, each block along a tree of its own: from its owner to a process of each other site, and on inside.**
//!
//! | | |
//! |---|---|
//! | messages | p (S − 1) per piece of a block over the outermost level; p (parts − 1) inside each cluster |
//! | trips | 1 over the outermost level |
//! | bytes | every block crosses to every other site, and to every other machine of a site, once: the minimum |
//! | long messages | pieces of all blocks follow each other through all tiers at once; some leaders of each site carry its blocks over |
//! | restrictions | long results of at most 256 processes: a process has a place in p trees. In one tier of chains it is a ring |
//! | paper | – |

use crate::choose::Question;
use crate::cost::Flow;
use crate::script::{Cut, Kind, Script};
use crate::shares;
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::Strategy;
use crate::{Call, Network};

pub(super) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    shares::of_blocks(question, network, Flow::Down)
}

pub(super) fn plan(call: &Call, network: &Network, me: Rank, strategy: &Strategy) -> Box<dyn Plan> {
    let p = u64::from(network.size());
    let families = strategy.families_of_all(network, me, false);
    let blocks = call.blocks.clone();
    let cut = strategy.cut_of_blocks(call, blocks.largest());
    // As many numbers for each block as the largest one has pieces.
    let numbers = Cut {
        total: cut.pieces() * p,
        piece: 1,
        lanes: 1,
        ..cut
    };
    let mut script = Script::default();
    if !call.in_place {
        script.copy_apart(
            whole(Buffer::Send, 0, blocks.size(me)),
            whole(Buffer::Recv, blocks.offset(me), blocks.size(me)),
        );
    }
    let own = match call.in_place {
        true => (Buffer::Recv, blocks.offset(me)),
        false => (Buffer::Send, 0),
    };
    script.pieces(numbers, move |script, piece| {
        let (rank, from) = ((piece.number % p) as Rank, piece.number / p * cut.piece);
        let length = blocks.size(rank).saturating_sub(from).min(cut.piece);
        if length == 0 {
            return;
        }
        let family = &families[rank as usize];
        let (buffer, offset) = match family.parent {
            Some(_) => (Buffer::Recv, blocks.offset(rank)),
            None => own,
        };
        let data = whole(buffer, offset + from, length);
        if let Some(parent) = family.parent {
            script.receive(parent, data, piece.slot(Kind::Down));
        }
        script.send_all(family.children.iter().map(|c| c.rank), data, piece.slot(Kind::Down));
    })
}

fn whole(buffer: Buffer, offset: u64, length: u64) -> Slice {
    Slice { buffer, offset, length }
}
