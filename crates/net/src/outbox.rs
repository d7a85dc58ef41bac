// SPDX-License-Identifier: Apache-2.0
//! What is still to be sent on one channel: frames that were copied, and user memory in fragments.

use std::collections::VecDeque;

use isthmus_datatype::raw::ReadMemory;
use isthmus_transport::{Lent, Peer};
use isthmus_wire::frame::{HEADER_BYTES, Header, Kind};
use isthmus_wire::hello::FAREWELL;

use crate::pages::Fill;

/// Small frames are collected into pieces of this size, so that many leave in one system call.
const PIECE: usize = 64 << 10;

/// Frames leave in the order in which they were pushed; between two fragments of bulk data all waiting
/// frames go first, so that a short message is not held up by a long one.
#[derive(Debug)]
pub(crate) struct Outbox {
    frames: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that are gone.
    gone: usize,
    waiting: usize,
    bulks: VecDeque<Bulk>,
    fragment: usize,
}

/// A long message on its way.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// Receiver's request.
    pub(crate) token: u64,
    /// From its origin.
    pub(crate) memory: Lent<ReadMemory>,
    /// Bytes.
    pub(crate) length: u64,
    /// Reported when the memory is not needed any more.
    pub(crate) sent_token: u64,
    state: BulkState,
}

#[derive(Debug)]
struct BulkState {
    /// Offset of the current or next fragment.
    offset: u64,
    /// Size of the current fragment; 0 between fragments.
    size: usize,
    /// Its header, and what is sent before that.
    lead: Vec<u8>,
    /// Bytes of both that are gone.
    gone: usize,
}

impl Bulk {
    pub(crate) fn new(token: u64, memory: Lent<ReadMemory>, length: u64, sent_token: u64) -> Self {
        let state = BulkState {
            offset: 0,
            size: 0,
            lead: Vec::new(),
            gone: 0,
        };
        Self {
            token,
            memory,
            length,
            sent_token,
            state,
        }
    }

    fn begin(&mut self, fragment: usize, fill: &mut Fill, drained: impl FnOnce() -> bool) {
        let state = &mut self.state;
        let left = self.length - state.offset;
        let header = |size: usize| Header::control(Kind::Data, self.token, state.offset, size as u64);
        state.size = usize::try_from(left).map_or(fragment, |l| l.min(fragment));
        state.gone = 0;
        if !Fill::matters(state.size) {
            state.lead.clear();
            state.lead.extend_from_slice(&header(state.size).encode());
            return;
        }
        if state.offset == 0 && drained() {
            fill.restart();
        }
        let at = state.offset as isize;
        let address = self.memory.with(|memory| memory.part(at, 1).address());
        fill.lead(address.unwrap_or(0), &mut state.lead);
        if left > fragment as u64 {
            state.size = Fill::whole_pages(fragment, state.lead.len() + HEADER_BYTES);
        }
        state.lead.extend_from_slice(&header(state.size).encode());
    }

    /// `None`: the memory has been taken back.
    fn with<R>(&self, send: impl FnOnce(&[u8], &[u8]) -> R) -> Option<R> {
        let s = &self.state;
        let body = s.gone.saturating_sub(s.lead.len());
        let lead = &s.lead[s.gone.min(s.lead.len())..];
        let at = s.offset as isize + body as isize;
        self.memory
            .with(|memory| memory.with(at, s.size - body, |body| send(lead, body)))
    }

    /// Returns true when the fragment is complete.
    fn consume(&mut self, n: usize) -> bool {
        self.state.gone += n;
        let complete = self.state.gone == self.state.lead.len() + self.state.size;
        if complete {
            self.state.offset += self.state.size as u64;
            self.state.size = 0;
            self.state.gone = 0;
        }
        complete
    }
}

impl Outbox {
    /// `fragment`: bytes of user data per [`Kind::Data`] frame.
    pub(crate) fn new(fragment: usize) -> Self {
        Self {
            frames: VecDeque::new(),
            gone: 0,
            waiting: 0,
            bulks: VecDeque::new(),
            fragment,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.bulks.is_empty()
    }

    /// Bytes of copied frames that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Copies a frame, except its first `skip` bytes, which are gone already.
    pub(crate) fn push(&mut self, header: &[u8; HEADER_BYTES], payload: &[u8], skip: usize) {
        let head = &header[skip.min(HEADER_BYTES)..];
        let body = &payload[skip.saturating_sub(HEADER_BYTES)..];
        self.waiting += head.len() + body.len();
        let fits = |p: &&mut Vec<u8>| p.len() + head.len() + body.len() <= PIECE;
        if let Some(piece) = self.frames.back_mut().filter(fits) {
            piece.extend_from_slice(head);
            piece.extend_from_slice(body);
            return;
        }
        let mut piece = Vec::with_capacity((head.len() + body.len()).max(4096));
        piece.extend_from_slice(head);
        piece.extend_from_slice(body);
        self.frames.push_back(piece);
    }

    /// Takes encoded frames that come before all that wait already; nothing has been sent yet.
    pub(crate) fn push_first(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.waiting += bytes.len();
            self.frames.push_front(bytes);
        }
    }

    pub(crate) fn push_bulk(&mut self, bulk: Bulk) {
        self.bulks.push_back(bulk);
    }

    /// The last frame of a connection. Push it when everything else is gone.
    pub(crate) fn push_farewell(&mut self) {
        let mut header = [0; HEADER_BYTES];
        header[0] = FAREWELL;
        self.push(&header, &[], 0);
    }

    /// Gives what is to be sent next to `send`, in one call if possible. `None`: there is nothing, or the memory of a
    /// message was taken back: its peer is lost then, and this is about to be cleared. `fill`: where it will lie.
    /// `drained`: nothing that was sent is needed any more; asked when a long message begins.
    pub(crate) fn next<R>(
        &mut self,
        fill: &mut Fill,
        drained: impl FnOnce() -> bool,
        send: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Option<R> {
        let inside = self.bulks.front().is_some_and(|b| b.state.size > 0);
        if !inside && !self.frames.is_empty() {
            let second = self.frames.get(1).map_or(&[][..], Vec::as_slice);
            return Some(send(&self.frames[0][self.gone..], second));
        }
        let bulk = self.bulks.front_mut()?;
        if !inside {
            bulk.begin(self.fragment, fill, drained);
        }
        bulk.with(send)
    }

    /// `n` bytes of what [`Outbox::next`] gave are gone. Returns the `sent_token` of a bulk that is complete.
    pub(crate) fn consume(&mut self, mut n: usize) -> Option<u64> {
        if let Some(bulk) = self.bulks.front_mut().filter(|b| b.state.size > 0) {
            let complete = bulk.consume(n) && bulk.state.offset == bulk.length;
            return if complete {
                self.bulks.pop_front().map(|b| b.sent_token)
            } else {
                None
            };
        }
        self.waiting -= n;
        while let Some(first) = self.frames.front() {
            let left = first.len() - self.gone;
            if n < left {
                self.gone += n;
                break;
            }
            n -= left;
            self.gone = 0;
            self.frames.pop_front();
        }
        None
    }

    /// Forgets everything (the connection is lost); the memory of bulks is not touched again.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.fragment);
    }
}

/// A frame as one piece of memory.
pub(crate) fn encode(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + payload.len());
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(payload);
    out
}

/// Header size and payload agree: a bug of the caller if not.
pub(crate) fn check(peer: Peer, header: &Header, payload: &[u8]) {
    debug_assert_eq!(header.payload_bytes(), payload.len() as u64, "frame to rank {peer}");
}

#[cfg(test)]
mod tests {
    use isthmus_transport::Lease;

    use super::*;

    fn drain(outbox: &mut Outbox, step: usize, sent: &mut Vec<u64>) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            let Some(all) = outbox.next(&mut Fill::default(), || true, |a, b| [a, b].concat()) else {
                return out;
            };
            let n = all.len().min(step);
            out.extend_from_slice(&all[..n]);
            sent.extend(outbox.consume(n));
        }
    }

    #[test]
    fn any_step_gives_the_same_bytes() {
        let data: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        // SAFETY: `data` outlives every use below and is not written.
        let memory = unsafe { ReadMemory::new(data.as_ptr(), 0, 1000) };
        let lease = Lease::new(memory);
        let header = Header::new(Kind::Eager, 1, 2, 3, 5, 0).encode();
        let mut results = Vec::new();
        for step in [1, 7, 33, 500, 100_000] {
            let (mut outbox, mut sent) = (Outbox::new(300), Vec::new());
            outbox.push(&header, b"hello", 0);
            outbox.push_bulk(Bulk::new(8, lease.lent(), 1000, 77));
            outbox.push(&header, b"world", 0);
            results.push(drain(&mut outbox, step, &mut sent));
            assert_eq!(sent, [77]);
            assert!(outbox.is_empty() && outbox.waiting() == 0);
        }
        assert_eq!(results[0].len(), 2 * 37 + 4 * HEADER_BYTES + 1000);
        assert!(results.windows(2).all(|w| w[0] == w[1]));
    }

    #[test]
    fn fragments_of_long_messages_end_where_pages_end_and_padding_moves_the_first() {
        const FRAGMENT: usize = 1 << 20;
        let data = vec![5u8; 3 * FRAGMENT + 4096];
        // As large memory of malloc lies.
        let start = data.as_ptr().align_offset(4096) + 16;
        let length = 3 * FRAGMENT - 100;
        // SAFETY: `data` outlives every use below and is not written.
        let memory = unsafe { ReadMemory::new(data[start..].as_ptr(), 0, length as isize) };
        let mut outbox = Outbox::new(FRAGMENT);
        let lease = Lease::new(memory);
        outbox.push_bulk(Bulk::new(8, lease.lent(), length as u64, 77));
        let mut sent = Vec::new();
        let stream = drain(&mut outbox, FRAGMENT / 3, &mut sent);
        assert_eq!(sent, [77]);
        let (mut at, mut covered, mut kinds) = (0, 0, Vec::new());
        while let Some(header) = stream[at..].first_chunk() {
            let header = Header::decode(header).unwrap();
            let size = header.payload_bytes() as usize;
            at += HEADER_BYTES + size;
            kinds.push(header.kind);
            if header.kind == Kind::Data {
                assert_eq!(header.auxiliary(), covered);
                covered += size as u64;
                assert!(at % 4096 == 0 || covered == length as u64, "{at}");
            }
        }
        assert_eq!((at, covered), (stream.len(), length as u64));
        assert_eq!(kinds, [Kind::Padding, Kind::Data, Kind::Data, Kind::Data, Kind::Data]);
    }

    #[test]
    fn nothing_of_a_message_leaves_whose_memory_was_taken_back() {
        let data = [3u8; 64];
        // SAFETY: as above.
        let lease = Lease::new(unsafe { ReadMemory::new(data.as_ptr(), 0, 64) });
        let mut outbox = Outbox::new(32);
        outbox.push_bulk(Bulk::new(8, lease.lent(), 64, 1));
        outbox.next(&mut Fill::default(), || true, |_, _| ()).unwrap();
        assert_eq!(outbox.consume(HEADER_BYTES + 10), None);
        drop(lease);
        assert_eq!(drain(&mut outbox, 1000, &mut Vec::new()), []);
    }

    #[test]
    fn a_frame_pushed_during_a_bulk_goes_between_its_fragments() {
        let data = [0u8; 64];
        // SAFETY: as above.
        let memory = unsafe { ReadMemory::new(data.as_ptr(), 0, 64) };
        let mut outbox = Outbox::new(32);
        let lease = Lease::new(memory);
        outbox.push_bulk(Bulk::new(8, lease.lent(), 64, 1));
        outbox.next(&mut Fill::default(), || true, |_, _| ()).unwrap();
        assert_eq!(outbox.consume(10), None);
        outbox.push_farewell();
        let rest = drain(&mut outbox, 1000, &mut Vec::new());
        assert_eq!(rest[HEADER_BYTES - 10 + 32], FAREWELL);
    }
}
