// SPDX-License-Identifier: Apache-2.0
//! Messages that have arrived and wait for a receive.

use isthmus_protocol::calling::Announced;
use isthmus_protocol::credit::WITHIN;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind, SYNCHRONOUS};

/// Bytes of an unexpected message that are kept without an allocation.
const INLINE: usize = WITHIN as usize;

/// A message that has arrived and has not matched.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) peer: Peer,
    pub(crate) bytes: u64,
    /// Names the sender's request.
    pub(crate) token: u64,
    /// Packed data in the common form.
    pub(crate) common: bool,
    /// The sender waits to hear that the message matched.
    pub(crate) synchronous: bool,
    pub(crate) content: Content,
}

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

impl Message {
    /// Bytes of data that it keeps here.
    pub(crate) fn kept(&self) -> u64 {
        match self.content {
            Content::Inline(_) | Content::Kept(_) => self.bytes,
            Content::Offered(_) | Content::Announced(_) | Content::Local(_) => 0,
        }
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
