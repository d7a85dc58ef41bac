// SPDX-License-Identifier: Apache-2.0
//! What waits to be sent to a peer.

use isthmus_transport::{Peer, SendError};
use isthmus_wire::frame::{Header, Kind};

use crate::p2p::Core;
use crate::p2p::Outbound;
use crate::p2p::Outgoing;
use crate::{Channel, Mode, SendBuffer};

impl Outbound {
    /// To a peer. `header`: complete but for kind and token.
    #[inline]
    pub(crate) fn to(peer: Peer, header: Header, mode: Mode, buffer: SendBuffer) -> Self {
        Self {
            peer,
            header,
            mode,
            buffer,
            waits: false,
        }
    }

    /// A thread waits until the message has left.
    #[inline]
    pub(crate) fn waits(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// What is sent, and how.
    pub(crate) fn into_message(self) -> (Header, Mode, SendBuffer) {
        (self.header, self.mode, self.buffer)
    }

    #[inline]
    pub(crate) fn new(channel: &Channel, to: u32, tag: i32, mode: Mode, buffer: SendBuffer) -> Self {
        let mut header = Header::new(
            Kind::Eager,
            channel.context.number(),
            channel.rank,
            tag,
            buffer.length(),
            0,
        );
        header.common = buffer.common;
        Self {
            peer: channel.members.peer(to),
            header,
            mode,
            buffer,
            waits: false,
        }
    }
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.has_no_messages() && self.parcels.is_empty()
    }

    fn has_no_messages(&self) -> bool {
        self.controls.is_empty() && self.messages.is_empty() && self.streams.is_empty() && self.held == 0
    }

    /// Whether several frames leave if all do.
    pub(crate) fn has_several(&self) -> bool {
        self.controls.len() + self.messages.len() + self.streams.len() + self.parcels.len() > 1
    }

    /// Whether messages have to wait behind something of it. Those of machines that wait for credit are none of theirs.
    pub(crate) fn blocks(&self) -> bool {
        !self.has_no_messages() || !self.parcels.wait_for_credit()
    }
}

/// A frame was taken: the peer is blocked no longer than something waits for it.
pub(crate) fn unblocked(core: &mut Core, peer: Peer) {
    core.state.peers[peer].set_queued(core.state.outgoing.get(&peer).is_some_and(Outgoing::blocks));
}

pub(crate) fn queue(core: &mut Core, peer: Peer) -> &mut Outgoing {
    core.state.peers[peer].set_queued(true);
    core.state.outgoing.entry(peer).or_default()
}

/// Sends a frame without data.
pub(crate) fn control(core: &mut Core, peer: Peer, header: Header) {
    let state = core.state.peers[peer];
    if state.lost() {
        return;
    }
    let waiting = core.state.outgoing.get(&peer).is_some_and(|o| !o.controls.is_empty());
    if waiting {
        queue(core, peer).controls.push_back(header);
        return;
    }
    match core.transports[state.route() as usize].send(peer, &header, &[]) {
        Ok(()) => {}
        Err(SendError::WouldBlock) => queue(core, peer).controls.push_back(header),
        Err(SendError::Lost(reason)) => core.lose(peer, reason.into()),
    }
}

/// Data of this message leave in turn with those of others to the peer.
pub(crate) fn stream(core: &mut Core, peer: Peer, index: u32) {
    queue(core, peer).streams.push_back(index);
}

/// Memory to work with, `length` bytes.
pub(crate) fn chunk(memory: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if memory.len() < length {
        memory.resize(length, 0);
    }
    &mut memory[..length]
}
