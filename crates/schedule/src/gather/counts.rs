// SPDX-License-Identifier: Apache-2.0
//! **Counts of gatherv: sizes of blocks go up to the processes below the root that act for others.**
//!
//! | | |
//! |---|---|
//! | messages | inside remote sites and other machines only: none to the root; over the wide area one from each site, or each process, whose blocks another site hands on |
//! | trips | one per inner tier |
//! | bytes | 8 per member of a subtree and tier |
//! | restrictions | the root knows all counts |
//! | paper | – |

use super::tree::family;
use crate::Network;
use crate::choose::Question;
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Rank, Slice};
use crate::{Call, CountsPhase};

pub(crate) fn plan(call: &Call, network: &Network, me: Rank) -> Option<CountsPhase> {
    let family = family(network, call.root, me, &Question::of(call, network));
    let parent = family.parent?;
    let slot = Piece::whole(0).slot(Kind::Counts);
    let mut script = Script::default();
    let mut counts = Slice {
        buffer: Buffer::Send,
        offset: 0,
        length: 1,
    };
    let mut receive = 0;
    if !family.is_leaf() {
        let at = |start: u32, end: u32| Slice {
            buffer: Buffer::Recv,
            offset: u64::from(start - family.start),
            length: u64::from(end - start),
        };
        script.copy(counts, at(family.position, family.position + 1));
        for child in family.children.iter().rev() {
            script.receive(child.rank, at(child.start, child.end), slot);
        }
        counts = at(family.start, family.end);
        receive = counts.length;
    }
    if parent != call.root {
        script.send(parent, counts, slot);
    } else if receive == 0 {
        return None;
    }
    Some(CountsPhase {
        plan: Box::new(script),
        send: Vec::new(),
        receive,
        own: (family.position - family.start) as usize,
    })
}
