// SPDX-License-Identifier: Apache-2.0
//! Frames of one-sided communication that leave: their headers, and what has not left yet.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use isthmus_engine::{Context, EngineError, Peer, Port, Request, SendBuffer, Sending};
use isthmus_lock::shared::LockKind;
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::rma::bundle::Bundle;
use isthmus_wire::rma::{Operation, What};

use crate::window::Window;

/// The level of processes that a message takes long to reach: operations leave at once.
pub(super) const WIDE_AREA: u8 = 0;

/// What a request for a lock says.
pub(super) fn number_of(kind: LockKind) -> u32 {
    match kind {
        LockKind::Shared => 0,
        LockKind::Exclusive => 1,
        LockKind::All => 2,
    }
}

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
    pub(super) leaving: BTreeMap<u64, Leaving>,
    /// Bytes of operations that have not left, by peer and [`Memory`].
    pub(super) waiting: BTreeMap<Peer, [u64; 2]>,
    /// Operations for peers that what left before has not reached yet.
    bundles: BTreeMap<Peer, Bundled>,
    /// Frames for peers of this site, and how groups have grown since this process last looked after messages.
    held: BTreeMap<Peer, Group>,
}

/// A frame that needs nothing more.
pub(super) struct Frame {
    pub(super) head: Header,
    pub(super) payload: Vec<u8>,
}

/// Frames for a peer that leave together.
struct Group {
    frames: Vec<Frame>,
    /// How many of them are operations.
    operations: usize,
    /// Bytes of their payloads.
    bytes: usize,
    /// So many leave when one more comes. The target begins with the first ones early, and long rows take few messages.
    most: usize,
    /// What was asked for is on its way, so that what comes meanwhile may wait for more.
    asked: bool,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            operations: 0,
            bytes: 0,
            most: 1,
            asked: false,
        }
    }
}

impl Group {
    /// Most operations that leave together, and most bytes of them.
    const MOST: usize = 32;
    const MOST_BYTES: usize = 16 << 10;

    /// A request for a lock waits for the operation behind it.
    fn has_room(&self, bytes: usize) -> bool {
        self.operations < self.most && self.bytes + bytes <= Self::MOST_BYTES
    }

    fn push(&mut self, frame: Frame) {
        self.operations += usize::from(frame.head.tag == What::Operate as i32);
        self.bytes += frame.payload.len();
        self.frames.push(frame);
    }

    /// Those that wait. More of the next ones do.
    fn take(&mut self) -> Vec<Frame> {
        self.most = (2 * self.most).min(Self::MOST);
        (self.operations, self.bytes) = (0, 0);
        std::mem::take(&mut self.frames)
    }

    /// The last operation of a window, if it asks nothing.
    fn last(&mut self, context: u32) -> Option<&mut Frame> {
        let last = self.frames.last_mut()?;
        let is_open = halves(&last.head).0 == context
            && last.head.tag == What::Operate as i32
            && Operation::question_of(&last.payload) == 0;
        is_open.then_some(last)
    }
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
        if !self.waiting.contains_key(&peer) || !Bundle::suits(operation) {
            return None;
        }
        self.leave(port, peer);
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

    /// Sends something soon: with a flush behind it, before whatever else this process has to say to the peer, with
    /// others like it, or when this process looks after messages. What `asks` leaves at once if nothing else that was
    /// asked for is on its way.
    pub(super) fn hold(
        &mut self,
        port: &mut Port<'_>,
        peer: Peer,
        frame: Frame,
        asks: bool,
    ) -> Result<(), EngineError> {
        if let Some(error) = port.loss(peer) {
            return Err(error);
        }
        if !self.bundles.is_empty() {
            self.release(port, peer);
        }
        let held = self.held.entry(peer).or_default();
        if !held.has_room(frame.payload.len()) {
            self.leave(port, peer);
        }
        let held = self.held.entry(peer).or_default();
        held.push(frame);
        if asks && !std::mem::replace(&mut held.asked, true) {
            self.leave(port, peer);
        }
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
        let Some(last) = self.held.get_mut(&peer).and_then(|held| held.last(context)) else {
            let head = header(What::Flush, context, question, 0);
            let nothing = (SendBuffer::EMPTY, Memory::Own);
            return self.operate(port, peer, head, nothing, None).map(drop);
        };
        Operation::ask(&mut last.payload, question);
        self.leave(port, peer);
        Ok(())
    }

    /// What is held leaves; whether there was any.
    pub(super) fn let_go(&mut self, port: &mut Port<'_>) -> bool {
        let mut any = false;
        while let Some(&peer) = self.held.keys().next() {
            any |= self.leave(port, peer);
            self.held.remove(&peer);
        }
        any
    }

    /// What is held for this peer leaves; whether there was any.
    pub(super) fn leave(&mut self, port: &mut Port<'_>, peer: Peer) -> bool {
        let held = self.held.get_mut(&peer).filter(|held| !held.frames.is_empty());
        let Some(frames) = held.map(Group::take) else {
            return false;
        };
        self.send_all(port, peer, frames);
        true
    }

    fn send_all(&mut self, port: &mut Port<'_>, peer: Peer, frames: Vec<Frame>) {
        port.together(peer, |port| {
            for Frame { head, payload } in frames {
                let payload = SendBuffer::owned(payload.into());
                // Who is lost is told by others.
                let _ = self.send(port, peer, head, payload, Memory::Own, None);
            }
        });
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
        if self.held.is_empty() && self.bundles.is_empty() {
            return self.send(port, peer, header, payload, memory, request);
        }
        port.together(peer, |port| {
            self.leave(port, peer);
            self.release(port, peer);
            self.send(port, peer, header, payload, memory, request)
        })
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
