// SPDX-License-Identifier: Apache-2.0
//! Messages without data.

use crate::script::{Kind, Piece, Script};
use crate::step::{Action, After, Rank, Slice, StepId};

/// Tells a process.
pub(crate) fn send(script: &mut Script, to: Rank, kind: Kind, after: After) -> StepId {
    script.push(
        Action::Send {
            to,
            data: Slice::NOTHING,
            slot: Piece::whole(0).slot(kind),
        },
        after,
    )
}

/// Hears from a process.
pub(crate) fn receive(script: &mut Script, from: Rank, kind: Kind, after: After) -> StepId {
    script.push(
        Action::Receive {
            from,
            data: Slice::NOTHING,
            slot: Piece::whole(0).slot(kind),
        },
        after,
    )
}
