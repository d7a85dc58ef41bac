// SPDX-License-Identifier: Apache-2.0
//! Messages that have arrived and wait for a receive.

use isthmus_protocol::calling::Announced;
use isthmus_protocol::credit::WITHIN;
use isthmus_wire::frame::{Header, Kind, SYNCHRONOUS};

/// Bytes of an unexpected message that are kept without an allocation.
const INLINE: usize = WITHIN as usize;

#[derive(Debug)]
pub(crate) enum Content {
    Inline([u8; INLINE]),
    Kept(Box<[u8]>),
    /// Still at the sender; what its transport needs to pull it.
    Offered(Box<[u8]>),
    /// Announced: at the sender, on its way or here.
    Announced(Announced),
    /// Still in the buffer of this process's own request.
    Local(u32),
}

impl Content {
    pub(crate) fn keep(data: &[u8]) -> Self {
        if data.len() > INLINE {
            return Self::Kept(data.into());
        }
        let mut bytes = [0; INLINE];
        bytes[..data.len()].copy_from_slice(data);
        Self::Inline(bytes)
    }
}

/// Whether the sender of an announced message waits to hear that it matched.
pub(crate) fn is_synchronous(header: &Header) -> bool {
    match header.kind {
        Kind::EagerSync => true,
        Kind::Announce => header.flags & SYNCHRONOUS != 0,
        _ => false,
    }
}
