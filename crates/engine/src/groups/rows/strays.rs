// SPDX-License-Identifier: Apache-2.0
//! Messages of blocks of which giver and taker say different lengths, where the block goes in a message by one of the
//! two lengths only. Then the taker would wait for a message that is not sent, or the giver for one that nobody receives.
//!
//! The taker has the giver's word in a cell, so it sees to both: it waits no longer for what does not come, and receives
//! and drops what it does not expect.

use isthmus_protocol::matching::{Context, Pattern};
use isthmus_schedule::LONG_BLOCK;
use isthmus_transport::slabs::Slab;

use super::Rows;
use super::written::is_sent;
use crate::base::counters::Operation;
use crate::base::notes::tag_of;
use crate::groups::data::Data;
use crate::mismatch::Which;
use crate::p2p::{Core, Inbound};
use crate::{Members, ReceiveBuffer};

/// A member whose message is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stray {
    /// This process waits for it, and it does not come.
    Missing(u32),
    /// It comes, and this process does not wait for it.
    Unexpected(u32),
}

impl<D: Data> Rows<D> {
    /// The next member has said another length than this process expects.
    #[cold]
    pub(super) fn note_stray(&mut self, slab: &Slab, said: u64, expected: u64) {
        // Where the other length is that of a block which is written, it comes in a message and is received.
        if self.is_long(slab, said) || self.is_long(slab, expected) {
            return;
        }
        match (is_sent(self, slab, said), is_sent(self, slab, expected)) {
            (false, true) => self.strays.push(Stray::Missing(self.next)),
            (true, false) => self.strays.push(Stray::Unexpected(self.next)),
            _ => {}
        }
    }
}

/// Messages that are to be seen to, and whose they are.
pub(crate) struct Strays {
    strays: Vec<Stray>,
    context: Context,
    members: Members,
    operation: Operation,
    /// Number of the operation in the communicator.
    sequence: u32,
}

impl Strays {
    pub(crate) fn new(
        strays: Vec<Stray>,
        (context, members): (Context, &Members),
        (operation, sequence): (Operation, u32),
    ) -> Self {
        Self {
            strays,
            context,
            members: members.clone(),
            operation,
            sequence: sequence & 0xffff,
        }
    }

    /// The operation.
    pub(crate) fn which(&self) -> Which {
        Which::new(self.context, self.sequence)
    }

    /// Members whose messages do not come.
    pub(crate) fn missing(&self) -> impl Iterator<Item = u32> {
        let missing = |stray: &Stray| match *stray {
            Stray::Missing(member) => Some(member),
            Stray::Unexpected(_) => None,
        };
        self.strays.iter().filter_map(missing)
    }

    /// Receives that drop what comes.
    pub(crate) fn receives(&self, core: &Core) -> impl Iterator<Item = Inbound> {
        let tag = tag_of(self.sequence, core.state.tools().apart(self.operation)) | i32::from(LONG_BLOCK);
        self.strays.iter().filter_map(move |stray| {
            let Stray::Unexpected(from) = *stray else { return None };
            let pattern = Pattern {
                context: self.context.with(1),
                source: Some(from),
                tag: Some(tag),
            };
            Some(Inbound::from(self.members.peer(from), pattern, ReceiveBuffer::EMPTY))
        })
    }
}
