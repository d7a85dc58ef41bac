// SPDX-License-Identifier: Apache-2.0
//! What machines send to a peer and what has not left yet. Frames of a machine leave in order; those of several
//! machines in turn.

use std::collections::VecDeque;

use isthmus_protocol::credit::Budget;
use isthmus_transport::{Peer, SendError, Transport};
use isthmus_wire::frame::{Header, Kind};

use crate::EngineError;
use crate::base::buffer::SendBuffer;

/// What passes between a machine and its like at a peer.
#[derive(Debug, Default)]
pub(crate) struct Partner {
    budget: Budget,
    /// Parcels to it that have not left whole.
    waiting: u32,
}

impl Partner {
    /// The credit that they give each other.
    #[inline]
    pub(crate) fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Whether a parcel to it has not left whole.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.waiting > 0
    }

    pub(crate) fn begins_to_wait(&mut self) {
        self.waiting += 1;
    }

    pub(crate) fn ends_to_wait(&mut self) {
        self.waiting -= 1;
    }
}

/// What became of something that a machine has sent.
#[derive(Debug)]
pub(crate) struct Outcome {
    peer: Peer,
    /// Of the machine.
    number: u8,
    /// How the machine calls it.
    name: u64,
    sent: Result<(), EngineError>,
}

impl Outcome {
    /// Of the machine.
    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    /// To whom it was sent, how the machine calls it, and what became of it.
    pub(crate) fn into_parts(self) -> (Peer, u64, Result<(), EngineError>) {
        (self.peer, self.name, self.sent)
    }
}

/// A header and its payload, which leave as one frame or several.
#[derive(Debug)]
pub(crate) struct Parcel {
    /// Of the first frame, but for its length.
    header: Header,
    payload: SendBuffer,
    /// Bytes that have left.
    sent: u64,
    /// How its machine calls it, if that wants to know when it has left.
    name: Option<u64>,
}

impl Parcel {
    /// Of the machine with this number. Length, kind and flags of the header are those of a frame of it.
    pub(crate) fn new(number: u8, header: Header, payload: SendBuffer, name: Option<u64>) -> Self {
        Self {
            header: Header {
                kind: Kind::Protocol,
                flags: number,
                length: payload.length(),
                ..header
            },
            payload,
            sent: 0,
            name,
        }
    }

    /// Bytes of all of it.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        self.header.length
    }

    /// Bytes that have not left.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.payload.length() - self.sent
    }

    /// Gives so many of these to the transport, as a frame.
    #[inline]
    pub(crate) fn leave(
        &mut self,
        transport: &mut dyn Transport,
        peer: Peer,
        length: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let auxiliary = self.header.auxiliary().wrapping_add(self.sent);
        let header = Header {
            length,
            context: auxiliary as u32,
            source: (auxiliary >> 32) as u32,
            ..self.header
        };
        send_piece(transport, peer, &header, &mut self.payload, self.sent, scratch)?;
        self.sent += length;
        Ok(())
    }

    /// What its machine is told when it has left, if that wants to know.
    pub(crate) fn outcome(&self, peer: Peer, number: u8) -> Option<Outcome> {
        let name = self.name?;
        Some(Outcome {
            peer,
            number,
            name,
            sent: Ok(()),
        })
    }
}

/// Parcels for one peer.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    /// Machines that may send the next frame, in turn. Others wait for credit.
    turns: VecDeque<u8>,
    /// By the numbers of their machines: few.
    queues: Vec<(u8, VecDeque<Parcel>)>,
}

impl Parcels {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.iter().map(|(_, queue)| queue.len()).sum()
    }

    /// Nothing of it could leave if the transport took frames.
    pub(crate) fn wait_for_credit(&self) -> bool {
        self.turns.is_empty()
    }

    fn queue(&mut self, number: u8) -> Option<&mut VecDeque<Parcel>> {
        let mut queues = self.queues.iter_mut();
        Some(&mut queues.find(|(of, _)| *of == number)?.1)
    }

    /// The last one of this machine.
    pub(crate) fn push(&mut self, number: u8, parcel: Parcel) {
        match self.queue(number) {
            Some(queue) => queue.push_back(parcel),
            None => self.queues.push((number, VecDeque::from([parcel]))),
        }
    }

    /// The machine may send frames, if it has any.
    pub(crate) fn take_turns(&mut self, number: u8) {
        if self.queue(number).is_some() && !self.turns.contains(&number) {
            self.turns.push_back(number);
        }
    }

    /// Whose turn it is, and its first parcel. It has to [take turns](Self::take_turns) again.
    pub(crate) fn next_turn(&mut self) -> Option<(u8, &mut Parcel)> {
        let number = self.turns.pop_front()?;
        Some((number, self.queue(number)?.front_mut()?))
    }

    /// Its turn was of no use: the transport takes nothing.
    pub(crate) fn give_turn_back(&mut self, number: u8) {
        self.turns.push_front(number);
    }

    /// The first one of this machine has left.
    pub(crate) fn pop(&mut self, number: u8) {
        if let Some(queue) = self.queue(number) {
            queue.pop_front();
            if queue.is_empty() {
                self.queues.retain(|(of, _)| *of != number);
            }
        }
    }

    /// What their machines are told when none of them will leave any more, for this reason.
    pub(crate) fn fail(self, peer: Peer, error: &EngineError) -> impl Iterator<Item = Outcome> {
        let all = self.queues.into_iter();
        let all = all.flat_map(|(number, queue)| queue.into_iter().map(move |parcel| (number, parcel.name)));
        all.filter_map(move |(number, name)| {
            Some(Outcome {
                peer,
                number,
                name: name?,
                sent: Err(error.clone()),
            })
        })
    }
}

/// Sends a frame with the bytes of the message from `at` on as its payload.
#[inline]
pub(crate) fn send_piece(
    transport: &mut dyn Transport,
    peer: Peer,
    header: &Header,
    buffer: &mut SendBuffer,
    at: u64,
    scratch: &mut Vec<u8>,
) -> Result<(), SendError> {
    let sent = buffer.with_piece(at, header.length as usize, |piece| transport.send(peer, header, piece));
    match sent {
        Some(sent) => sent,
        None => transport.send_filled(peer, header, scratch, &mut |to| buffer.read(at, to)),
    }
}
