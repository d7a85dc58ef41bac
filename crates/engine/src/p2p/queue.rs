// SPDX-License-Identifier: Apache-2.0
//! What waits to be sent to a peer.

use isthmus_transport::{Peer, SendError};
use isthmus_wire::frame::{Header, Kind};

use crate::base::core::Core;
use crate::base::parcels::{Outcome, Parcels, send_piece};
use crate::base::state::{CHUNK, Outgoing, Work};
use crate::{Channel, Mode, SendBuffer};

/// Who sends what to whom: the arguments of a send.
pub(crate) struct Outbound {
    pub(crate) peer: Peer,
    /// Complete but for kind and token.
    pub(crate) header: Header,
    pub(crate) mode: Mode,
    pub(crate) buffer: SendBuffer,
    /// A thread waits until the message has left.
    pub(crate) waits: bool,
}

impl Outbound {
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

/// A frame was taken: the peer is blocked no longer than something waits for it.
pub(crate) fn unblocked(core: &mut Core, peer: Peer) {
    core.state.peers[peer].queued = core.state.outgoing.get(&peer).is_some_and(Outgoing::blocks);
}

pub(crate) fn queue(core: &mut Core, peer: Peer) -> &mut Outgoing {
    core.state.peers[peer].queued = true;
    core.state.outgoing.entry(peer).or_default()
}

/// Sends a frame without data.
pub(crate) fn control(core: &mut Core, peer: Peer, header: Header) {
    let state = core.state.peers[peer];
    if state.lost {
        return;
    }
    let waiting = core.state.outgoing.get(&peer).is_some_and(|o| !o.controls.is_empty());
    if waiting {
        queue(core, peer).controls.push_back(header);
        return;
    }
    match core.transports[state.route as usize].send(peer, &header, &[]) {
        Ok(()) => {}
        Err(SendError::WouldBlock) => queue(core, peer).controls.push_back(header),
        Err(SendError::Lost(reason)) => core.lose(peer, reason.into()),
    }
}

/// Data of this message leave in turn with those of others to the peer.
pub(crate) fn stream(core: &mut Core, peer: Peer, index: u32) {
    queue(core, peer).streams.push_back(index);
}

/// Sends a frame of the machine whose turn it is.
pub(crate) fn serve(core: &mut Core, peer: Peer, route: usize, parcels: &mut Parcels) -> Result<(), SendError> {
    let Some((number, parcel)) = parcels.next_turn() else {
        return Ok(());
    };
    let transport = &mut *core.transports[route];
    let state = &mut core.state;
    let header = parcel.next(transport.limits(peer).frame.min(CHUNK) as u64);
    let partner = state.partners.entry((peer, number)).or_default();
    if !partner.budget.allows(header.length) {
        // It takes turns again when credit comes back.
        return Ok(());
    }
    let (at, scratch) = (parcel.sent, &mut state.chunk);
    if let Err(error) = send_piece(transport, peer, &header, &mut parcel.payload, at, scratch) {
        parcels.give_turn_back(number);
        return Err(error);
    }
    partner.budget.sent(header.length);
    parcel.sent += header.length;
    if parcel.has_left() {
        partner.waiting -= 1;
        if let Some(name) = parcel.name {
            let outcome = Outcome {
                peer,
                number,
                name,
                sent: Ok(()),
            };
            state.work.push_back(Work::Sent(Box::new(outcome)));
        }
        parcels.pop(number);
    }
    parcels.take_turns(number);
    Ok(())
}

/// Memory to work with, `length` bytes.
pub(crate) fn chunk(memory: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if memory.len() < length {
        memory.resize(length, 0);
    }
    &mut memory[..length]
}
