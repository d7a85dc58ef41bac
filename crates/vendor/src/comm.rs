// SPDX-License-Identifier: Apache-2.0
//! Communicators of a vendor MPI by name.

/// A communicator of the vendor.
#[derive(Debug, PartialEq, Eq)]
pub struct Comm {
    /// The adaptor's name for it.
    pub(crate) name: u64,
    /// Own rank.
    pub(crate) rank: u32,
    pub(crate) members: u32,
}

impl Comm {
    /// One of which only the name is known: for messages.
    #[inline]
    pub(crate) fn named(name: u64) -> Self {
        Self {
            name,
            rank: 0,
            members: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn again(&self) -> Self {
        Self { ..*self }
    }
}
