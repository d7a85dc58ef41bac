// SPDX-License-Identifier: Apache-2.0
//! The engine's frames over a vendor MPI, between the processes of one vendor job.
//!
//! A frame is a message with tag [`FRAMES`]: header and payload. Long data go without a copy as one message with a tag
//! made of the receiver's token. Where frames have to be quick, receives for frames of anybody are posted ahead, and
//! only the oldest is looked at: that costs less than asking for messages, and keeps their order. But it costs all
//! other messages of some vendors something (those of UCX compare each with all receives from anybody), so where nearly
//! everything goes by the vendor's own communicators frames are asked for. Messages between two processes keep their
//! order, as MPI promises for equal tags.
//!
//! A vendor MPI has no descriptor to sleep on: whoever waits polls.

use crate::{Arrival, Comm, Request, Vendor, VendorError};
use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_transport::{Lent, Limits, Peer, SendError, Sink, Transport};
use isthmus_wire::frame::{HEADER_BYTES, Header};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

/// Longest payload of a frame, bytes.
const FRAME: usize = 32 << 10;
/// Tag of frames.
const FRAMES: i32 = 1;
/// First tag of long data.
const BULK: i32 = 16;
/// Tags of long data; MPI promises tags up to 32767 at least.
const BULK_TAGS: u64 = 16_384;
/// Frames under way before the next one is refused.
const UNDER_WAY: usize = 64;
/// No rank of anybody.
const NOBODY: u32 = u32::MAX;
/// How often a message that is cancelled is looked at before it is said that it cannot be.
const LOOKS: u32 = 10_000;
/// Receives for frames that are posted ahead.
const POSTED: usize = 4;

/// A frame on its way.
struct Sending {
    request: Request,
    memory: OwnMemory,
}

/// A receive for the next frame, or one after it.
struct Posted {
    request: Request,
    memory: OwnMemory,
}

/// Long data on their way.
struct Bulk {
    /// `None`: there already, to be reported.
    request: Option<Request>,
    peer: Peer,
    token: u64,
    /// Bytes of data that come; `None`: they leave.
    wanted: Option<u64>,
}

/// A vendor MPI as a [`Transport`].
pub struct VendorTransport {
    vendor: Vendor,
    comm: Comm,
    /// Peer by rank in the vendor's MPI_COMM_WORLD.
    peers: Vec<Peer>,
    /// The least peer, and the ranks of peers from it on; [`NOBODY`] for those that have none.
    first: Peer,
    ranks: Vec<u32>,
    sending: Vec<Sending>,
    /// Memory of frames that have left.
    spare: Vec<OwnMemory>,
    leaving: Vec<Bulk>,
    coming: Vec<Bulk>,
    /// Those who were refused.
    refused: Vec<Peer>,
    /// To be reported by the next poll: the vendor failed, so nobody is reached any more.
    broken: Option<String>,
    reported: bool,
    /// Peers that nobody wants to hear of any more.
    given_up: Vec<Peer>,
    /// Oldest first.
    posted: VecDeque<Posted>,
    /// Of the frame that came last: posted again by the next poll, when the frame has been delivered.
    delivered: Option<OwnMemory>,
    /// Receives are posted ahead.
    ahead: bool,
}

impl VendorTransport {
    /// Over a vendor that has begun. `peers[i]` is who has rank i in the vendor's job; `ahead`: receives for frames are
    /// posted ahead. Collective over that job.
    pub fn new(mut vendor: Vendor, peers: Vec<Peer>, ahead: bool) -> Result<Self, VendorError> {
        let comm = vendor.duplicate(&vendor.world())?;
        let first = peers.iter().copied().min().unwrap_or(Peer::NONE);
        let last = peers.iter().copied().max().unwrap_or(first);
        let mut ranks = vec![NOBODY; last.index_from(first) + 1];
        for (rank, &peer) in (0..).zip(&peers) {
            ranks[peer.index_from(first)] = rank;
        }
        let mut transport = Self {
            vendor,
            comm,
            peers,
            first,
            ranks,
            sending: Vec::new(),
            spare: Vec::new(),
            leaving: Vec::new(),
            coming: Vec::new(),
            refused: Vec::new(),
            broken: None,
            reported: false,
            given_up: Vec::new(),
            posted: VecDeque::with_capacity(POSTED),
            delivered: None,
            ahead,
        };
        for _ in 0..if ahead { POSTED } else { 0 } {
            transport.post(whole_frame(), None)?;
        }
        Ok(transport)
    }

    /// Posts a receive for a frame (from anybody: `None`) into this memory.
    fn post(&mut self, memory: OwnMemory, from: Option<u32>) -> Result<(), VendorError> {
        let length = (HEADER_BYTES + FRAME) as u64;
        let request = self
            .vendor
            .start_receive(&self.comm, &memory.memory(), length, from, FRAMES)?;
        self.posted.push_back(Posted { request, memory });
        Ok(())
    }

    /// Takes back the receives for frames: nobody sends any more.
    fn withdraw(&mut self) -> Result<(), VendorError> {
        for mut posted in std::mem::take(&mut self.posted) {
            self.vendor.cancel(&posted.request)?;
            // To cancel a receive needs no other process.
            while self.vendor.test(&mut posted.request)?.is_none() {}
        }
        Ok(())
    }

    /// Ends what the vendor does with memory for this peer. False: it cannot.
    fn take_back(&mut self, peer: Peer) -> Result<bool, VendorError> {
        if self.broken.is_some() {
            return Ok(true);
        }
        let mut all = true;
        for list in [&mut self.leaving, &mut self.coming] {
            for bulk in list.iter_mut().filter(|bulk| bulk.peer == peer) {
                let Some(request) = &mut bulk.request else { continue };
                self.vendor.cancel(request)?;
                let mut looks = 0..LOOKS;
                while self.vendor.test(request)?.is_none() && looks.next().is_some() {}
                all &= !looks.is_empty();
            }
            list.retain(|bulk| bulk.peer != peer);
        }
        Ok(all)
    }

    /// The vendor, for what is beside the transport.
    pub fn vendor(&mut self) -> &mut Vendor {
        &mut self.vendor
    }

    fn rank_of(&self, peer: Peer) -> Result<u32, SendError> {
        let at = peer.index_from(self.first);
        let rank = self.ranks.get(at).copied().filter(|&rank| rank != NOBODY);
        rank.ok_or_else(|| SendError::Lost(format!("rank {peer} is in no job of this machine's MPI")))
    }

    /// The vendor does not recover from errors, and what is under way is not known.
    fn breaks(&mut self, error: &VendorError) -> SendError {
        let text = self.broken.get_or_insert_with(|| error.to_string());
        SendError::Lost(text.clone())
    }

    fn sent(&mut self) -> Result<bool, VendorError> {
        let before = self.sending.len();
        let mut at = 0;
        while at < self.sending.len() {
            match self.vendor.test(&mut self.sending[at].request)? {
                Some(_) => self.spare.push(self.sending.swap_remove(at).memory),
                None => at += 1,
            }
        }
        Ok(self.sending.len() < before)
    }

    /// Completes long data; reports them.
    fn completed(&mut self, sink: &mut dyn Sink) -> Result<bool, VendorError> {
        let mut any = false;
        for out in [true, false] {
            let list = if out { &mut self.leaving } else { &mut self.coming };
            let mut at = 0;
            while at < list.len() {
                let arrival = match &mut list[at].request {
                    Some(request) => self.vendor.test(request)?,
                    None => Some(Arrival::default()),
                };
                let Some(Arrival { bytes, truncated, .. }) = arrival else {
                    at += 1;
                    continue;
                };
                let bulk = list.swap_remove(at);
                any = true;
                match bulk.wanted {
                    None => sink.sent(bulk.peer, bulk.token),
                    Some(wanted) if bytes == wanted && !truncated => sink.received(bulk.peer, bulk.token),
                    // What is left of the memory has what was in it before.
                    Some(wanted) => sink.lost(
                        bulk.peer,
                        &format!("rank {} sent {bytes} bytes where it had announced {wanted}", bulk.peer),
                    ),
                }
            }
        }
        Ok(any)
    }

    /// Takes the oldest frame, if it is there. One: to look for another one takes time, and who waits has what it waits
    /// for most of the time.
    fn arrived(&mut self, sink: &mut dyn Sink) -> Result<bool, VendorError> {
        if self.ahead {
            if let Some(memory) = self.delivered.take() {
                self.post(memory, None)?;
            }
        } else if self.posted.is_empty() {
            let Some(found) = self.vendor.probe(&self.comm, (None, Some(FRAMES)), false)? else {
                return Ok(false);
            };
            // It may take longer until all of it is here.
            let memory = self.delivered.take().unwrap_or_else(whole_frame);
            self.post(memory, Some(found.source))?;
        }
        let Some(oldest) = self.posted.front_mut() else {
            return Ok(false);
        };
        let Some(arrival) = self.vendor.test(&mut oldest.request)? else {
            return Ok(false);
        };
        let Some(Posted { memory, .. }) = self.posted.pop_front() else {
            return Ok(true);
        };
        let peer = sender(&self.peers, &arrival)?;
        self.deliver(sink, peer, &memory, arrival.bytes);
        self.delivered = Some(memory);
        Ok(true)
    }

    fn deliver(&self, sink: &mut dyn Sink, peer: Peer, memory: &OwnMemory, bytes: u64) {
        if self.given_up.contains(&peer) {
            return;
        }
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        let whole = length.min(HEADER_BYTES + FRAME);
        memory
            .reading()
            .with(0, whole, |data| match data.first_chunk().map(Header::decode) {
                Some(Ok(header)) if header.payload_bytes() == (length - HEADER_BYTES) as u64 => {
                    sink.frame(peer, &header, &data[HEADER_BYTES..]);
                }
                _ => sink.lost(peer, &format!("rank {peer} sent {length} bytes that are no frame")),
            });
    }

    fn progress(&mut self, sink: &mut dyn Sink) -> Result<bool, VendorError> {
        let left = self.sent()?;
        if self.sending.len() < UNDER_WAY {
            for peer in std::mem::take(&mut self.refused) {
                sink.writable(peer);
            }
        }
        Ok(self.completed(sink)? | self.arrived(sink)? | left)
    }
}

/// Memory for a frame.
fn whole_frame() -> OwnMemory {
    OwnMemory::new(0, (HEADER_BYTES + FRAME) as isize)
}

/// The tag of long data to a token; `None`: they go as frames. Both sides ask this. Requests are told apart by the
/// lower half of their tokens, and a token is not used again before its data are there.
fn bulk_tag(token: u64) -> Option<i32> {
    let index = token & 0xffff_ffff;
    (index < BULK_TAGS).then(|| BULK + index as i32)
}

impl Transport for VendorTransport {
    fn name(&self) -> &'static str {
        "vendor"
    }

    fn limits(&self, _peer: Peer) -> Limits {
        Limits {
            frame: FRAME,
            eager: FRAME,
            pull: false,
            bulk: true,
            far: false,
        }
    }

    fn send(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        let rank = self.rank_of(peer)?;
        if let Some(text) = &self.broken {
            return Err(SendError::Lost(text.clone()));
        }
        if self.sending.len() >= UNDER_WAY {
            if let Err(error) = self.sent() {
                return Err(self.breaks(&error));
            }
            if self.sending.len() >= UNDER_WAY {
                if !self.refused.contains(&peer) {
                    self.refused.push(peer);
                }
                return Err(SendError::WouldBlock);
            }
        }
        let memory = self.spare.pop().unwrap_or_else(whole_frame);
        memory.memory().write(0, &header.encode());
        memory.memory().write(HEADER_BYTES as isize, payload);
        let length = (HEADER_BYTES + payload.len()) as u64;
        match self
            .vendor
            .start_send(&self.comm, &memory.reading(), length, rank, FRAMES, false)
        {
            Ok(Some(request)) => self.sending.push(Sending { request, memory }),
            Ok(None) => self.spare.push(memory),
            Err(error) => return Err(self.breaks(&error)),
        }
        Ok(())
    }

    fn send_bulk(
        &mut self,
        peer: Peer,
        token: u64,
        memory: Lent<ReadMemory>,
        length: u64,
        _: u32,
        sent_token: u64,
    ) -> Result<(), SendError> {
        let rank = self.rank_of(peer)?;
        let Some(tag) = bulk_tag(token) else {
            return Err(SendError::WouldBlock);
        };
        let start = |memory: &mut ReadMemory| self.vendor.start_send(&self.comm, memory, length, rank, tag, false);
        let Some(started) = memory.with(start) else {
            return Ok(());
        };
        match started {
            Ok(request) => self.leaving.push(Bulk {
                request,
                peer,
                token: sent_token,
                wanted: None,
            }),
            Err(error) => return Err(self.breaks(&error)),
        }
        Ok(())
    }

    fn expect(&mut self, peer: Peer, token: u64, memory: Lent<WriteMemory>, length: u64) -> bool {
        let (Some(tag), Ok(rank)) = (bulk_tag(token), self.rank_of(peer)) else {
            return false;
        };
        let start = |memory: &mut WriteMemory| self.vendor.start_receive(&self.comm, memory, length, Some(rank), tag);
        let Some(started) = memory.with(start) else { return true };
        match started {
            Ok(request) => self.coming.push(Bulk {
                request: Some(request),
                peer,
                token,
                wanted: Some(length),
            }),
            Err(error) => _ = self.breaks(&error),
        }
        true
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        if self.broken.is_none() {
            match self.progress(sink) {
                Ok(any) => return any,
                Err(error) => _ = self.breaks(&error),
            }
        }
        let first = !std::mem::replace(&mut self.reported, true);
        if let (true, Some(text)) = (first, &self.broken) {
            for &peer in &self.peers {
                sink.lost(peer, text);
            }
        }
        first
    }

    fn lose(&mut self, peer: Peer, reason: &str) {
        if self.given_up.contains(&peer) {
            return;
        }
        self.given_up.push(peer);
        let returned = self.take_back(peer);
        if !returned.unwrap_or(false) {
            // The other MPI keeps addresses of the user's memory, and nothing makes it forget them.
            self.broken = Some(format!(
                "rank {peer} was given up ({reason}) while this machine's MPI still held memory for it"
            ));
            self.vendor.abort(1);
        }
    }

    fn arm(&mut self) -> bool {
        false
    }

    fn rings(&self) -> bool {
        false
    }

    fn disarm(&mut self) {}

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_flushed(&self) -> bool {
        self.sending.is_empty() && self.leaving.is_empty()
    }

    fn settle(&mut self, sink: &mut dyn Sink) -> bool {
        self.poll(sink);
        self.broken.is_some() || self.is_flushed()
    }

    fn close(&mut self, sink: &mut dyn Sink) -> bool {
        self.settle(sink)
    }

    fn finish(&mut self) {
        if self.broken.is_none() {
            let ended = self.withdraw().and_then(|()| self.vendor.end());
            self.broken = ended.err().map(|error| error.to_string());
            self.broken.get_or_insert_with(|| "the job has ended".to_owned());
            self.reported = true;
        }
    }
}

/// Whom a message comes from.
fn sender(peers: &[Peer], arrival: &Arrival) -> Result<Peer, VendorError> {
    let rank = arrival.source;
    peers.get(rank as usize).copied().ok_or(VendorError::Stranger { rank })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_outside_the_vendors_job_is_nobody() {
        let peers = [Peer::new(7), Peer::new(5)];
        let from = |source| {
            let arrival = Arrival {
                source,
                tag: 0,
                bytes: 0,
                truncated: false,
                cancelled: false,
                message: 0,
            };
            sender(&peers, &arrival)
        };
        assert_eq!(from(1).unwrap(), Peer::new(5));
        // It was taken for the peer with that number before.
        assert!(matches!(from(7), Err(VendorError::Stranger { rank: 7 })));
    }
}
