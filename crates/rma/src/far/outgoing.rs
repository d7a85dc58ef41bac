// SPDX-License-Identifier: Apache-2.0
//! Frames of one-sided communication that leave: their headers, and what has not left yet.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use isthmus_engine::{Context, EngineError, Peer, Port, Request, SendBuffer, Sending};
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::rma::bundle::Bundle;
use isthmus_wire::rma::{Operation, What};

use crate::window::Window;

/// A header of this protocol.
pub(super) fn header(what: What, context: u32, lower: u32, at: u64) -> Header {
    let token = u64::from(context) << 32 | u64::from(lower);
    let mut header = Header::control(Kind::Protocol, token, at, 0);
    header.tag = what as i32;
    header
}

/// The two halves of a token: context of the window, and what the frame says.
pub(super) fn halves(header: &Header) -> (u32, u32) {
    ((header.token >> 32) as u32, header.token as u32)
}

/// A window among those of this process: the context of its communicator, its number first.
pub(crate) type Key = (u32, u32);

pub(super) fn key(context: Context) -> Key {
    (context.number(), context.world())
}

pub(super) fn key_of(window: &Window) -> Key {
    key(window.comm.channel().context)
}

/// What has not left yet.
pub(super) enum Leaving {
    /// Bytes of an operation of this process, and the request that they are a part of.
    Operation(Memory, u64, Option<Request>),
    /// An answer.
    Answer(Key, Answered),
}

/// A frame whose answer has not left: it counts as here until then.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    /// Bytes of the frame.
    pub(super) frame: u64,
    /// Of which fences ([`Counts`](crate::counts)).
    pub(super) odd: bool,
    /// Bytes of the answer in memory of our own.
    pub(super) copied: u64,
    /// It is read from the window until it has left.
    pub(super) lent: bool,
}

/// What leaves, by the name that the engine calls it by.
#[derive(Default)]
pub(super) struct Outgoing {
    names: u64,
    pub(super) leaving: HashMap<u64, Leaving>,
    /// Bytes of operations that have not left, by peer and [`Memory`].
    pub(super) waiting: HashMap<Peer, [u64; 2]>,
    /// Operations for peers that what left before has not reached yet.
    bundles: HashMap<Peer, Bundled>,
    /// The last operations for peers of this local area: a flush behind one is a part of its frame.
    held: HashMap<Peer, Held>,
}

/// An operation that asks nothing and has all its data.
struct Held {
    head: Header,
    operation: Vec<u8>,
}

/// Of which window operations are, and whether they follow an odd fence ([`Counts`](crate::counts)).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Among {
    pub(super) context: u32,
    pub(super) odd: bool,
}

/// Operations that leave together.
struct Bundled {
    among: Among,
    operations: Bundle,
}

/// Whose memory something is read from until it has left.
#[derive(Clone, Copy)]
pub(super) enum Memory {
    Own,
    Program,
}

impl Outgoing {
    /// Answers a frame. True: the answer leaves later.
    pub(super) fn answer(
        &mut self,
        port: &mut Port<'_>,
        (key, peer): (Key, Peer),
        header: Header,
        payload: SendBuffer,
        answered: Answered,
    ) -> bool {
        self.names += 1;
        // A peer that is lost gets none.
        match port.send(peer, header, payload, Some(self.names)) {
            Ok(Sending::Queued) => {
                self.leaving.insert(self.names, Leaving::Answer(key, answered));
                true
            }
            Ok(Sending::Left) | Err(_) => false,
        }
    }

    /// Puts an operation behind others that leave together, if others wait to leave for this peer: it would have to
    /// wait too, and heads would be most of many short ones. Gives the bytes that it takes.
    pub(super) fn bundle(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        among: Among,
        operation: &Operation<'_>,
    ) -> Option<u64> {
        self.leave(port, peer);
        if !self.waiting.contains_key(&peer) || !Bundle::suits(operation) {
            return None;
        }
        let fits = |bundled: &Bundled| bundled.among == among && bundled.operations.has_room(operation);
        if self.bundles.get(&peer).is_some_and(|bundled| !fits(bundled)) {
            self.release(port, peer);
        }
        let bundled = match self.bundles.entry(peer) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Bundled {
                among,
                operations: Bundle::default(),
            }),
        };
        Some(bundled.operations.push(operation))
    }

    /// Bytes of operations for a peer that wait for others to leave.
    pub(super) fn bundled(&self, peer: Peer) -> u64 {
        self.bundles.get(&peer).map_or(0, |bundled| bundled.operations.length())
    }

    /// What waits for others to leave does so no longer.
    pub(super) fn release(&mut self, port: &mut Port<'_>, peer: Peer) {
        let Some(Bundled { among, operations }) = self.bundles.remove(&peer) else {
            return;
        };
        let mut head = header(What::Bundle, among.context, operations.length() as u32, 0);
        head.common = among.odd;
        let payload = SendBuffer::owned(operations.into_bytes().into());
        // Who is lost is told by others.
        let _ = self.send(port, peer, head, payload, Memory::Own, None);
    }

    /// Nothing reaches this peer any more.
    pub(super) fn lose(&mut self, peer: Peer) {
        self.bundles.remove(&peer);
        self.held.remove(&peer);
    }

    /// Sends an operation that asks nothing and has all its data, soon: with the flush behind it, before whatever else
    /// this process has to say to the peer, or when it looks after messages.
    pub(super) fn hold(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        head: Header,
        operation: Vec<u8>,
    ) -> Result<(), EngineError> {
        if let Some(error) = port.loss(peer) {
            return Err(error);
        }
        self.leave(port, peer);
        self.held.insert(peer, Held { head, operation });
        Ok(())
    }

    /// Asks whether all is done that this peer was sent about a window.
    pub(super) fn flush(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        context: u32,
        question: u32,
    ) -> Result<(), EngineError> {
        let held = self.held.get_mut(&peer).filter(|held| halves(&held.head).0 == context);
        let Some(held) = held else {
            let head = header(What::Flush, context, question, 0);
            let nothing = (SendBuffer::EMPTY, Memory::Own);
            return self.operate(port, peer, head, nothing, None).map(drop);
        };
        Operation::ask(&mut held.operation, question);
        self.leave(port, peer);
        Ok(())
    }

    /// What is held leaves; whether there was any.
    pub(super) fn let_go(&mut self, port: &mut Port<'_>) -> bool {
        let peers: Vec<_> = self.held.keys().copied().collect();
        peers.iter().for_each(|&peer| self.leave(port, peer));
        !peers.is_empty()
    }

    fn leave(&mut self, port: &mut Port<'_>, peer: Peer) {
        if self.held.is_empty() {
            return;
        }
        if let Some(Held { head, operation }) = self.held.remove(&peer) {
            let payload = SendBuffer::owned(operation.into());
            // Who is lost is told by others.
            let _ = self.send(port, peer, head, payload, Memory::Own, None);
        }
    }

    /// Sends what this process has to say. If it leaves later, `request` has a part that is over then.
    pub(super) fn operate(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        header: Header,
        (payload, memory): (SendBuffer, Memory),
        request: Option<Request>,
    ) -> Result<Sending, EngineError> {
        self.leave(port, peer);
        if !self.bundles.is_empty() {
            self.release(port, peer);
        }
        self.send(port, peer, header, payload, memory, request)
    }

    fn send(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        header: Header,
        payload: SendBuffer,
        memory: Memory,
        request: Option<Request>,
    ) -> Result<Sending, EngineError> {
        self.names += 1;
        let bytes = payload.length();
        let sending = port.send(peer, header, payload, Some(self.names))?;
        if sending == Sending::Queued {
            self.leaving
                .insert(self.names, Leaving::Operation(memory, bytes, request));
            self.waiting.entry(peer).or_default()[memory as usize] += bytes;
        }
        Ok(sending)
    }
}
