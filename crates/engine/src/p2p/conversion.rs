// SPDX-License-Identifier: Apache-2.0
//! Receives of messages from processes that represent data differently.

use isthmus_datatype::Representation;
use isthmus_protocol::matching::Envelope;
use isthmus_transport::Peer;

use crate::base::conversion::Stream;
use crate::p2p::{State, Task};

/// Where a message comes from, and what its data are.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    peer: Peer,
    /// Packed data in the common form.
    common: bool,
}

impl Origin {
    #[inline]
    pub(crate) fn new(peer: Peer, common: bool) -> Self {
        Self { peer, common }
    }

    #[inline]
    pub(crate) fn peer(self) -> Peer {
        self.peer
    }
}

/// How the stream of a message is represented; `None`: as here.
pub(crate) fn form_of(state: &State, peer: Peer, common: bool) -> Option<Representation> {
    if state.representations.is_empty() {
        return None;
    }
    let form = if common {
        Representation::COMMON
    } else {
        state.representation(peer)
    };
    (form != Representation::LOCAL).then_some(form)
}

/// Before a receive takes a message of `message` bytes that it has matched: makes room for it in the sender's form.
#[inline]
pub(crate) fn prepare(state: &mut State, index: u32, envelope: &Envelope, origin: Origin, message: u64) {
    if !state.representations.is_empty() {
        prepare_conversion(state, index, envelope, origin, message);
    }
}

#[cold]
fn prepare_conversion(state: &mut State, index: u32, envelope: &Envelope, origin: Origin, message: u64) {
    let stream = stream_of(state, origin);
    let Some(task) = state.requests.receive(index) else {
        return;
    };
    if let Some(conversion) = task.buffer.prepare(stream, message, envelope.source, envelope.tag) {
        task.conversion = Some(Box::new(conversion));
    }
}

/// Whether a message may not go straight to the buffer of a receive.
#[cold]
pub(crate) fn is_prepared_first(state: &mut State, index: u32, origin: Origin) -> bool {
    let stream = stream_of(state, origin);
    let task = state.requests.receive(index);
    task.is_some_and(|task| task.buffer.is_prepared_first(stream))
}

fn stream_of(state: &State, Origin { peer, common }: Origin) -> Stream {
    Stream::new(form_of(state, peer, common), common)
}

/// A receive is complete: converts what it has received.
#[cold]
pub(crate) fn convert(state: &mut State, index: u32) {
    let slot = state.requests.slot_mut(index);
    let Task::Receive(task) = slot.task_mut() else { return };
    if let Some(conversion) = task.conversion.take() {
        conversion.convert(slot.completion_mut());
    }
}
