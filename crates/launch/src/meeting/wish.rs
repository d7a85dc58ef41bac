// SPDX-License-Identifier: Apache-2.0
//! What is wanted of a launcher's ways between processes.

use super::beyond::Spot;
use crate::happening::Process;
use isthmus_wire::question::Ask;

/// What is wanted.
pub(super) enum Wish {
    Asked(Process, u64, Ask, Spot),
    /// A process has ended.
    Forget(Process),
    End,
}

/// When the host is reached, or a way is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At once.
    Now,
    /// When it is needed: the parts of a world are at the host already, most of them for nothing else, and most ways
    /// between processes of one launcher are never used.
    Wanted,
}
