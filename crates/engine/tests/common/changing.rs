// SPDX-License-Identifier: Apache-2.0
//! A transport that changes what it is given to send.

use std::os::fd::BorrowedFd;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_transport::{Lent, Limits, Peer, SendError, Sink, Transport};
use isthmus_wire::frame::{Header, Kind};

use super::Random;

/// One frame in so many is changed.
const RARELY: u64 = 8;
/// Longest payload of a changed frame.
const LONGEST: u64 = 4096;

/// A frame that waits for the next one.
type Held = (Peer, Header, Vec<u8>);

/// Changes frames, in ways that every check of a header stands, and their number and order.
pub(crate) struct Changing {
    inner: Box<dyn Transport>,
    random: Random,
    held: Option<Held>,
}

impl Changing {
    pub(crate) fn new(inner: Box<dyn Transport>, seed: u64) -> Self {
        Self {
            inner,
            random: Random(seed),
            held: None,
        }
    }

    fn changed(&mut self, header: &Header, payload: &[u8]) -> (Header, Vec<u8>) {
        let (mut header, mut payload) = (*header, payload.to_vec());
        match self.random.below(8) {
            0 => header.kind = Kind::from_code(1 + self.random.below(15) as u8).expect("there are 15"),
            1 => header.token = self.number(header.token),
            2 => header.length = self.number(header.length),
            3 => header.context = self.number(header.context.into()) as u32,
            4 => header.source = self.random.below(4) as u32,
            5 => header.tag ^= 1 << self.random.below(31),
            6 => header.flags = self.random.next() as u8,
            _ => {
                let other = self.random.below(300) as usize;
                payload.resize(other, 7);
            }
        }
        // What a stream can carry: the header says where the next one begins.
        let bytes = header.payload_bytes().min(LONGEST);
        payload.resize(bytes as usize, 9);
        match header.kind {
            Kind::Rts => header.flags = bytes as u8,
            _ if header.payload_bytes() > 0 => header.length = bytes,
            _ => {}
        }
        (header, payload)
    }

    fn number(&mut self, near: u64) -> u64 {
        match self.random.below(4) {
            0 => self.random.next(),
            1 => near ^ 1 << self.random.below(64),
            2 => near.wrapping_add(self.random.below(3)).wrapping_sub(1),
            _ => self.random.below(4) << 32 | self.random.below(20),
        }
    }

    /// Two frames where there was one.
    fn cut(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        if header.payload_bytes() < 2 || header.kind == Kind::Rts {
            return self.inner.send(peer, header, payload);
        }
        let (first, second) = payload.split_at(1 + self.random.below(payload.len() as u64 - 1) as usize);
        let part = |bytes: &[u8]| Header {
            length: bytes.len() as u64,
            ..*header
        };
        self.inner.send(peer, &part(first), first)?;
        // Where there is no room for it, it is lost.
        let _ = self.inner.send(peer, &part(second), second);
        Ok(())
    }

    /// What was held back follows what came after it.
    fn overtaken(&mut self) {
        if let Some((peer, header, payload)) = self.held.take() {
            let _ = self.inner.send(peer, &header, &payload);
        }
    }
}

impl Transport for Changing {
    fn name(&self) -> &'static str {
        "changing"
    }
    fn limits(&self, peer: Peer) -> Limits {
        self.inner.limits(peer)
    }
    fn send(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        if self.random.below(RARELY) > 0 {
            self.inner.send(peer, header, payload)?;
            self.overtaken();
            return Ok(());
        }
        match self.random.below(16) {
            // It is left out.
            0 => return Ok(()),
            1 => {
                self.inner.send(peer, header, payload)?;
                let _ = self.inner.send(peer, header, payload);
            }
            2 if self.held.is_none() => self.held = Some((peer, *header, payload.to_vec())),
            3 => self.cut(peer, header, payload)?,
            _ => {
                let (header, payload) = self.changed(header, payload);
                self.inner.send(peer, &header, &payload)?;
            }
        }
        Ok(())
    }
    fn send_bulk(
        &mut self,
        peer: Peer,
        mut token: u64,
        memory: Lent<ReadMemory>,
        mut length: u64,
        context: u32,
        sent_token: u64,
    ) -> Result<(), SendError> {
        match self.random.below(RARELY) {
            0 => token = self.number(token),
            1 => length = 1 + self.random.below(length),
            _ => {}
        }
        self.inner.send_bulk(peer, token, memory, length, context, sent_token)
    }
    fn expect(&mut self, peer: Peer, token: u64, memory: Lent<WriteMemory>, length: u64) -> bool {
        self.inner.expect(peer, token, memory, length)
    }
    fn handle(&mut self, peer: Peer, memory: ReadMemory, length: u64) -> Vec<u8> {
        self.inner.handle(peer, memory, length)
    }
    fn pull(
        &mut self,
        peer: Peer,
        handle: &[u8],
        offset: u64,
        memory: WriteMemory,
        length: u64,
    ) -> Result<bool, SendError> {
        self.inner.pull(peer, handle, offset, memory, length)
    }
    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.inner.poll(sink)
    }
    fn lose(&mut self, peer: Peer, reason: &str) {
        self.inner.lose(peer, reason);
    }
    fn arm(&mut self) -> bool {
        self.inner.arm()
    }
    fn disarm(&mut self) {
        self.inner.disarm();
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
    fn close(&mut self, sink: &mut dyn Sink) -> bool {
        self.inner.close(sink)
    }
}
