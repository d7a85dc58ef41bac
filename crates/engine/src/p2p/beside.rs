// SPDX-License-Identifier: Apache-2.0
//! What leaves and arrives beside messages: frames of machines, their credit and their turns.

use isthmus_protocol::credit::Budget;
use isthmus_transport::{Peer, SendError, Transport};

use crate::EngineError;
use crate::base::parcels::{Parcel, Parcels};
use crate::base::work::{CHUNK, Work};
use crate::p2p::Core;
use crate::p2p::State;

/// The credit that a machine and its like at a peer give each other.
pub(crate) fn budget(state: &mut State, peer: Peer, number: u8) -> &mut Budget {
    state.partners.entry((peer, number)).or_default().budget()
}

/// The same, if anything has passed between them.
pub(crate) fn known_budget(state: &mut State, peer: Peer, number: u8) -> Option<&mut Budget> {
    Some(state.partners.get_mut(&(peer, number))?.budget())
}

/// The peer has given credit back: what waits for that goes on.
pub(crate) fn go_on(state: &mut State, peer: Peer, number: u8) {
    let waits = state
        .partners
        .get(&(peer, number))
        .is_some_and(|partner| partner.waits());
    if let Some(queue) = state.outgoing.get_mut(&peer).filter(|_| waits) {
        queue.parcels.take_turns(number);
        state.work.push_back(Work::Flush(peer));
    }
}

/// The parcel is the last one of this machine to the peer.
pub(crate) fn enqueue(state: &mut State, peer: Peer, number: u8, parcel: Parcel) {
    state.partners.entry((peer, number)).or_default().begins_to_wait();
    let parcels = &mut state.outgoing.entry(peer).or_default().parcels;
    parcels.push(number, parcel);
    parcels.take_turns(number);
    state.work.push_back(Work::Flush(peer));
}

/// Gives a short parcel to the transport, if nothing is before it.
#[inline]
pub(crate) fn leaves_at_once(
    state: &mut State,
    transports: &mut [Box<dyn Transport>],
    peer: Peer,
    number: u8,
    parcel: &mut Parcel,
) -> Result<bool, EngineError> {
    let known = &state.peers[peer];
    let transport = &mut transports[usize::from(known.route())];
    let length = parcel.length();
    let partner = state.partners.entry((peer, number)).or_default();
    let free = !known.queued() && !partner.waits() && partner.budget().allows(length);
    if !free || length > transport.limits(peer).frame.min(CHUNK) as u64 {
        return Ok(false);
    }
    match parcel.leave(&mut **transport, peer, length, &mut state.chunk) {
        Ok(()) => {
            partner.budget().sent(length);
            Ok(true)
        }
        Err(SendError::WouldBlock) => Ok(false),
        Err(SendError::Lost(reason)) => {
            state.work.push_back(Work::Lost(peer, reason.as_str().into()));
            Err(state.unreachable(peer, reason.into()))
        }
    }
}

/// Sends a frame of the machine whose turn it is.
pub(crate) fn serve(core: &mut Core, peer: Peer, route: usize, parcels: &mut Parcels) -> Result<(), SendError> {
    let Some((number, parcel)) = parcels.next_turn() else {
        return Ok(());
    };
    let transport = &mut *core.transports[route];
    let state = &mut core.state;
    let length = parcel.left().min(transport.limits(peer).frame.min(CHUNK) as u64);
    let partner = state.partners.entry((peer, number)).or_default();
    if !partner.budget().allows(length) {
        // It takes turns again when credit comes back.
        return Ok(());
    }
    if let Err(error) = parcel.leave(transport, peer, length, &mut state.chunk) {
        parcels.give_turn_back(number);
        return Err(error);
    }
    partner.budget().sent(length);
    if parcel.left() == 0 {
        partner.ends_to_wait();
        let outcome = parcel.outcome(peer, number);
        state.work.extend(outcome.map(|outcome| Work::Sent(Box::new(outcome))));
        parcels.pop(number);
    }
    parcels.take_turns(number);
    Ok(())
}

/// What machines have not sent to a peer that is lost.
pub(crate) fn drop_parcels(state: &mut State, peer: Peer, parcels: Parcels) {
    let error = state.lost_error(peer);
    let outcomes = parcels.fail(peer, &error);
    state.work.extend(outcomes.map(|outcome| Work::Sent(Box::new(outcome))));
}
