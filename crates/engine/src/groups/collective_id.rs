// SPDX-License-Identifier: Apache-2.0
//! The name of a collective operation towards tools, kept while it goes on after its call.

use crate::Operation;
use crate::tools::Tools;

/// One collective operation: the context of its communicator, which operation, and its sequence number there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CollectiveId {
    context: u32,
    operation: Operation,
    sequence: u32,
}

impl CollectiveId {
    pub(crate) fn new(context: u32, operation: Operation, sequence: u32) -> Self {
        Self {
            context,
            operation,
            sequence,
        }
    }

    /// Tools hear that it is over.
    pub(crate) fn ends(self, tools: &mut Tools) {
        tools.plan_ends(self.context, self.operation, self.sequence);
    }
}
