// SPDX-License-Identifier: Apache-2.0
//! **Neighbourhood collectives, each block straight along its edge.**
//!
//! | | |
//! |---|---|
//! | messages | one per edge between two processes; empty blocks are not sent |
//! | trips | 1 |
//! | bytes | every block once per edge |
//! | restrictions | none |
//! | paper | – |

use super::edges::{Done, Edge, Neighbours};
use crate::step::{Action, After, Buffer, Plan, Rank, Slice, Step, WINDOW};
use crate::{Blocks, Call, Operation};
use std::sync::Arc;

pub(super) fn plan(call: &Call, neighbours: &Arc<Neighbours>, me: Rank, done: Done) -> Box<dyn Plan> {
    let same = matches!(
        call.operation,
        Operation::NeighborAllgather | Operation::NeighborAllgatherv
    );
    Box::new(Direct {
        me,
        neighbours: Arc::clone(neighbours),
        blocks: call.blocks.clone(),
        receive_blocks: call.receive_blocks.clone(),
        same,
        done,
        next: 0,
    })
}

/// Sends and receives in turn: step 2 i is for destination i, step 2 i + 1 for source i.
struct Direct {
    me: Rank,
    neighbours: Arc<Neighbours>,
    blocks: Blocks,
    receive_blocks: Blocks,
    /// Every destination gets the same block.
    same: bool,
    /// These have no steps.
    done: Done,
    next: usize,
}

impl Direct {
    fn given(&self, index: usize) -> Slice {
        let index = if self.same { 0 } else { index as u32 };
        slice(Buffer::Send, &self.blocks, index)
    }

    fn send(&self, index: usize) -> Option<Action> {
        let edge = self.neighbours.destinations.get(index)?;
        let (to, data) = (edge.rank?, self.given(index));
        let slot = edge.slot;
        (to != self.me && data.length > 0).then_some(Action::Send { to, data, slot })
    }

    fn receive(&self, index: usize) -> Option<Action> {
        let edge = self.neighbours.sources.get(index)?;
        let (from, data) = (edge.rank?, slice(Buffer::Recv, &self.receive_blocks, index as u32));
        if data.length == 0 {
            return None;
        }
        if from != self.me {
            let slot = edge.slot;
            return Some(Action::Receive { from, data, slot });
        }
        let same = |other: &Edge| other == edge;
        let from = self.given(self.neighbours.destinations.iter().position(same)?);
        (from.length > 0).then_some(Action::Copy { from, to: data })
    }

    fn most(&self) -> usize {
        self.neighbours.destinations.len().max(self.neighbours.sources.len())
    }
}

fn slice(buffer: Buffer, blocks: &Blocks, index: u32) -> Slice {
    Slice {
        buffer,
        offset: blocks.offset(index),
        length: blocks.size(index),
    }
}

impl Plan for Direct {
    fn scratch(&self) -> &[u64] {
        &[]
    }

    fn next_step(&mut self) -> Option<Step> {
        while self.next < 2 * self.most() {
            let (index, receives) = (self.next / 2, self.next % 2 == 1);
            self.next += 1;
            let action = match receives {
                true if index >= self.done.received => self.receive(index),
                false if index >= self.done.sent => self.send(index),
                _ => None,
            };
            if let Some(action) = action {
                let after = After::NONE;
                return Some(Step { action, after });
            }
        }
        None
    }

    fn window(&self) -> usize {
        WINDOW.max(2 * self.most())
    }
}
