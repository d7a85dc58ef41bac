// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a cell.

use isthmus_transport::SendError;

use crate::EngineError;

/// A member gave another length than this one expects.
#[cold]
pub(crate) fn wrong_length(member: u32, said: u64, expected: u64) -> EngineError {
    EngineError::Truncate {
        source: member,
        tag: 0,
        message: said,
        buffer: expected,
    }
}

pub(crate) fn no_memory(error: SendError) -> EngineError {
    match error {
        SendError::Lost(reason) => EngineError::Memory { reason: reason.into() },
        SendError::WouldBlock => EngineError::Plan {
            what: "a cell that is not there yet",
        },
    }
}
