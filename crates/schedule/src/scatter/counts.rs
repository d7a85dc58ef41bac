// SPDX-License-Identifier: Apache-2.0
//! **Counts of scatterv: sizes of blocks go down to the processes that act for others.**
//!
//! | | |
//! |---|---|
//! | messages | one to each process that acts for others; wide area: one per remote site with more than one process |
//! | trips | one per tier but the innermost |
//! | bytes | 8 per member of a subtree and tier |
//! | restrictions | the root knows all counts, everybody the own one |
//! | paper | – |

use super::tree::family;
use crate::Network;
use crate::row::{is_run, runs};
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Rank, Slice};
use crate::tree::{Child, Family};
use crate::{Call, CountsPhase};

pub(crate) fn plan(call: &Call, network: &Network, me: Rank) -> Option<CountsPhase> {
    let family = family(call, network, me);
    let slot = Piece::whole(0).slot(Kind::Counts);
    let mut script = Script::default();
    let acts = |c: &&Child| c.end - c.start > 1;
    if let Some(parent) = family.parent {
        if family.is_leaf() {
            return None;
        }
        let receive = u64::from(family.end - family.start);
        script.receive(
            parent,
            Slice {
                buffer: Buffer::Recv,
                offset: 0,
                length: receive,
            },
            slot,
        );
        for child in family.children.iter().filter(acts) {
            let (offset, length) = (
                u64::from(child.start - family.start),
                u64::from(child.end - child.start),
            );
            script.send(
                child.rank,
                Slice {
                    buffer: Buffer::Recv,
                    offset,
                    length,
                },
                slot,
            );
        }
        return Some(CountsPhase {
            plan: Box::new(script),
            send: Vec::new(),
            receive,
            own: (family.position - family.start) as usize,
        });
    }
    if !family.children.iter().any(|c| acts(&c)) {
        return None;
    }
    send_from_root(&mut script, network, &family, slot);
    Some(CountsPhase {
        plan: Box::new(script),
        send: Vec::new(),
        receive: 0,
        own: 0,
    })
}

fn send_from_root(script: &mut Script, network: &Network, family: &Family, slot: u16) {
    let mut spare = None;
    for child in family.children.iter().filter(|c| c.end - c.start > 1) {
        let length = u64::from(child.end - child.start);
        let mut counts = Slice {
            buffer: Buffer::Send,
            offset: u64::from(network.rank_at(child.start)),
            length,
        };
        if !is_run(network, child.start..child.end) {
            let buffer = *spare.get_or_insert_with(|| script.memory(u64::from(network.size())));
            counts = Slice {
                buffer,
                offset: u64::from(child.start),
                length,
            };
            for (run, rank) in runs(network, child.start..child.end) {
                let length = u64::from(run.end - run.start);
                let from = Slice {
                    buffer: Buffer::Send,
                    offset: u64::from(rank),
                    length,
                };
                script.copy(
                    from,
                    Slice {
                        buffer: counts.buffer,
                        offset: u64::from(run.start),
                        length,
                    },
                );
            }
        }
        script.send(child.rank, counts, slot);
    }
}
