// SPDX-License-Identifier: Apache-2.0
//! What those who watch are told of operations that go on after their call.

use crate::Operation;
use crate::tools::Tools;

/// An operation as those who watch are told of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    context: u32,
    operation: Operation,
    sequence: u32,
}

impl Told {
    pub(crate) fn new(context: u32, operation: Operation, sequence: u32) -> Self {
        Self {
            context,
            operation,
            sequence,
        }
    }

    /// It is over.
    pub(crate) fn ends(self, tools: &mut Tools) {
        tools.plan_ends(self.context, self.operation, self.sequence);
    }
}
