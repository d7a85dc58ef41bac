// SPDX-License-Identifier: Apache-2.0
//! **Counts of alltoallv through leaders: sizes of short blocks for other nodes go up to the leader of each site.**
//!
//! | | |
//! |---|---|
//! | messages | inside sites those of gather; none over the wide area |
//! | trips | one per inner tier |
//! | bytes | 16 p from each process up |
//! | restrictions | – |
//! | paper | – |
//!
//! A process tells how much it has for each rank, and how much each rank has for it. Both sides of a pair of sites know
//! all sizes from their own processes, so these need not cross; leaders who hand a parcel on need not know its length.

use super::unequal::family;
use crate::script::{Kind, Piece, Script};
use crate::short::{told, width};
use crate::step::{Buffer, Rank, Slice};
use crate::tree::Family;
use crate::{Call, CountsPhase, Network};
use std::ops::Range;
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Option<CountsPhase> {
    let (family, _) = family(call, network, me)?;
    let mut script = Script::default();
    let receive = up(&mut script, &family, width(network));
    Some(CountsPhase {
        plan: Box::new(script),
        send: told(call, network, me),
        receive,
        own: 0,
    })
}

/// Collects what the subtree's processes tell; gives how many numbers that are, if others are among them or nobody is
/// above.
fn up(script: &mut Script, family: &Family, width: u64) -> u64 {
    let slot = Piece::whole(0).slot(Kind::Counts);
    let own = Slice {
        buffer: Buffer::Send,
        offset: 0,
        length: width,
    };
    if let (Some(parent), true) = (family.parent, family.is_leaf()) {
        script.send(parent, own, slot);
        return 0;
    }
    let at = |positions: Range<u32>| Slice {
        buffer: Buffer::Recv,
        offset: u64::from(positions.start - family.start) * width,
        length: positions.len() as u64 * width,
    };
    script.copy(own, at(family.position..family.position + 1));
    for child in family.children.iter().rev() {
        script.receive(child.rank, at(child.start..child.end), slot);
    }
    let all = at(family.start..family.end);
    if let Some(parent) = family.parent {
        script.send(parent, all, slot);
    }
    all.length
}
