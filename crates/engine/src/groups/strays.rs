// SPDX-License-Identifier: Apache-2.0
//! Messages of blocks of which giver and taker say different lengths, where the block goes in a message by one of the
//! two lengths only. Then the taker would wait for a message that is not sent, or the giver for a receiver that does
//! not come.
//!
//! The taker has the giver's word in a cell, so it sees to both: it waits no longer for what does not come, and
//! receives and drops what it does not expect.

use isthmus_protocol::matching::{Context, Pattern};
use isthmus_schedule::LONG_BLOCK;

use crate::base::counters::Operation;
use crate::base::notes::tag_of;
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

/// An operation, and its number in the communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    operation: Operation,
    sequence: u32,
}

impl Called {
    #[inline]
    pub(crate) fn new(operation: Operation, sequence: u32) -> Self {
        Self { operation, sequence }
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
    pub(crate) fn new(strays: Vec<Stray>, context: Context, members: &Members, called: Called) -> Self {
        Self {
            strays,
            context,
            members: members.clone(),
            operation: called.operation,
            sequence: called.sequence & 0xffff,
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
