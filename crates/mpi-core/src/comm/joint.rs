// SPDX-License-Identifier: Apache-2.0
//! What an intercommunicator consists of.

use std::ops::Range;
use std::sync::Arc;

use super::Comm;
use crate::group::Group;

/// What an intercommunicator has beyond a communicator.
pub(crate) struct Inter {
    pub(super) remote: Group,
    pub(super) local: Arc<Comm>,
    pub(super) joint: Joint,
}

/// Both groups of an intercommunicator as one: what its collective operations run on.
pub struct Joint {
    /// Internal intracommunicator of both groups, the low one first: the same order on both sides. It has a context of
    /// its own.
    pub comm: Arc<Comm>,
    /// Its ranks of the local group, in order.
    pub local: Range<u32>,
    /// Its ranks of the remote group, in order.
    pub remote: Range<u32>,
}

impl Joint {
    /// Is the local group the low one, which comes first? Exactly one of the two sides says yes.
    pub fn is_low(&self) -> bool {
        self.local.start == 0
    }
}
