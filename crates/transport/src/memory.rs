// SPDX-License-Identifier: Apache-2.0
//! A transport between engines of one process: for tests, deterministic if used from one thread.
//!
//! [`network`] makes one endpoint per peer. [`Options`] choose which parts of the contract it offers, so that an engine
//! can be tested against all of them, and how unpleasant it is: small queues, refusals and delays that follow from a
//! seed.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_wire::frame::{Header, Kind};
use rustix::event::{EventfdFlags, eventfd};

use crate::{Lent, Limits, Peer, Placement, SendError, Sink, Transport};

/// What the network offers and how it behaves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// As [`Limits::frame`].
    pub frame: usize,
    /// As [`Limits::eager`].
    pub eager: usize,
    /// As [`Limits::pull`].
    pub pull: bool,
    /// As [`Limits::far`].
    pub far: bool,
    /// As [`Transport::streams`].
    pub streams: bool,
    /// As [`Limits::bulk`].
    pub bulk: bool,
    /// As [`Transport::rings`].
    pub rings: bool,
    /// Payloads of at least this many bytes are announced with [`Sink::place`], and expected memory is written
    /// directly. `usize::MAX`: never.
    pub place: usize,
    /// Frames between two peers that are taken before the network refuses.
    pub queue: usize,
    /// Seed of refusals and delays; 0: neither.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            frame: 65536,
            eager: 16384,
            pull: false,
            far: false,
            streams: false,
            bulk: false,
            rings: true,
            place: usize::MAX,
            queue: 1024,
            seed: 0,
        }
    }
}

type Frame = (Header, Vec<u8>);

#[derive(Default)]
struct Link {
    frames: VecDeque<Frame>,
    /// The sender was refused.
    refused: bool,
}

#[derive(Default)]
struct Network {
    /// By sender, then by receiver.
    links: Vec<Vec<Link>>,
    armed: Vec<bool>,
    bells: Vec<Arc<OwnedFd>>,
    lost: Vec<Option<String>>,
    /// Who has closed in order.
    left: Vec<bool>,
    /// Pairs of which one has given the other up, in both directions.
    parted: HashMap<(usize, usize), String>,
    handles: HashMap<u64, (ReadMemory, u64)>,
    next_handle: u64,
    pulled: u64,
}

impl Network {
    fn count(&self) -> usize {
        self.links.len()
    }

    /// One more endpoint, and its bell.
    fn grow(&mut self) -> std::io::Result<Arc<OwnedFd>> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        self.bells.push(bell.clone());
        self.links.push(Vec::new());
        let count = self.count();
        for links in &mut self.links {
            links.resize_with(count, Link::default);
        }
        self.armed.push(false);
        self.lost.push(None);
        self.left.push(false);
        Ok(bell)
    }

    fn ring(&self, at: usize) {
        // The counter cannot be full; if it were, the bell would be ringing already.
        let _ = rustix::io::write(&self.bells[at], &1_u64.to_ne_bytes());
    }

    /// Why `me` cannot reach `peer`, if that is so.
    fn why_lost(&self, me: usize, peer: usize) -> Option<String> {
        self.lost[peer]
            .as_ref()
            .or_else(|| self.parted.get(&(me, peer)))
            .cloned()
    }
}

/// Marks data that were sent in bulk: other transports have no frames for them.
const IN_BULK: u8 = 1;

struct Bulk {
    peer: Peer,
    token: u64,
    memory: Lent<ReadMemory>,
    length: u64,
    sent: u64,
    sent_token: u64,
}

struct Expected {
    memory: Lent<WriteMemory>,
    length: u64,
    got: u64,
}

/// The endpoint of one peer.
pub struct Memory {
    /// Its place in the network.
    me: usize,
    /// The peer at the first place.
    first: Peer,
    options: Options,
    network: Arc<Mutex<Network>>,
    bell: Arc<OwnedFd>,
    bulks: VecDeque<Bulk>,
    expected: HashMap<(Peer, u64), Expected>,
    reported: Vec<bool>,
    random: u64,
}

/// Changes a network while it is used.
#[derive(Clone)]
pub struct Switch {
    network: Arc<Mutex<Network>>,
    options: Options,
}

impl Switch {
    /// From now on the process at this place of the network is lost to all others, as if it had died.
    pub fn kill(&self, peer: Peer, reason: &str) {
        let mut network = lock(&self.network);
        network.lost[peer.index()] = Some(reason.into());
        (0..network.count()).for_each(|other| network.ring(other));
    }

    /// The endpoint of one more process.
    pub fn add(&self) -> std::io::Result<Memory> {
        let bell = lock(&self.network).grow()?;
        let me = lock(&self.network).count() - 1;
        Ok(Memory {
            me,
            first: Peer::new(0),
            options: self.options,
            network: self.network.clone(),
            bell,
            bulks: VecDeque::new(),
            expected: HashMap::new(),
            reported: Vec::new(),
            random: self
                .options
                .seed
                .wrapping_add((me as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        })
    }

    /// Messages that were pulled so far.
    pub fn pulled(&self) -> u64 {
        lock(&self.network).pulled
    }
}

/// Endpoints for `count` peers.
pub fn network(count: u32, options: Options) -> std::io::Result<(Vec<Memory>, Switch)> {
    let network = Arc::new(Mutex::new(Network::default()));
    let switch = Switch { network, options };
    let ends: std::io::Result<Vec<Memory>> = (0..count).map(|_| switch.add()).collect();
    Ok((ends?, switch))
}

fn lock(network: &Mutex<Network>) -> MutexGuard<'_, Network> {
    network.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    /// The same endpoint in a process to which those of the network are the peers from `first` on.
    #[must_use]
    pub fn with_peers_from(self, first: Peer) -> Self {
        Self { first, ..self }
    }

    /// Place of a peer in the network.
    fn at(&self, peer: Peer) -> usize {
        peer.index_from(self.first)
    }

    fn peer(&self, at: usize) -> Peer {
        self.first.plus(at as u32)
    }

    fn is_reported(&self, at: usize) -> bool {
        self.reported.get(at).copied().unwrap_or(false)
    }

    fn is_reported_now(&mut self, at: usize) {
        if self.reported.len() <= at {
            self.reported.resize(at + 1, false);
        }
        self.reported[at] = true;
    }

    /// One time in `n`, if the network is unpleasant.
    fn chance(&mut self, n: u64) -> bool {
        if self.options.seed == 0 {
            return false;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % n == 0
    }

    fn push(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        let refuse = self.chance(4);
        let (me, to) = (self.me, self.at(peer));
        let mut network = lock(&self.network);
        if let Some(reason) = network.why_lost(me, to) {
            return Err(SendError::Lost(reason));
        }
        let link = &mut network.links[me][to];
        if refuse || link.frames.len() >= self.options.queue {
            link.refused = true;
            return Err(SendError::WouldBlock);
        }
        link.frames.push_back((*header, payload.to_vec()));
        if network.armed[to] {
            network.ring(to);
        }
        Ok(())
    }

    fn pop(&self, from: usize) -> Option<Frame> {
        let mut network = lock(&self.network);
        let link = &mut network.links[from][self.me];
        let (frame, refused) = (link.frames.pop_front()?, link.refused);
        if refused && network.armed[from] {
            network.ring(from);
        }
        Some(frame)
    }

    fn push_bulk(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = false;
        for _ in 0..self.bulks.len() {
            let Some(mut bulk) = self.bulks.pop_front() else { break };
            let length = (bulk.length - bulk.sent).min(self.options.frame as u64);
            let mut header = Header::control(Kind::Data, bulk.token, bulk.sent, length);
            header.flags = IN_BULK;
            let pushed = bulk.memory.with(|memory| {
                memory.with(bulk.sent as isize, length as usize, |data| {
                    self.push(bulk.peer, &header, data)
                })
            });
            // Taken back: nobody wants it sent.
            let Some(sent) = pushed else { continue };
            any |= sent.is_ok();
            match sent {
                Ok(()) => bulk.sent += length,
                Err(SendError::WouldBlock) => {}
                // Reported by `poll`; the memory is not used any more.
                Err(SendError::Lost(_)) => continue,
            }
            if bulk.sent == bulk.length {
                sink.sent(bulk.peer, bulk.sent_token);
            } else {
                self.bulks.push_back(bulk);
            }
        }
        any
    }

    fn deliver(&mut self, peer: Peer, (header, payload): Frame, sink: &mut dyn Sink) {
        if header.kind == Kind::Data {
            if let Some(expected) = self.expected.get_mut(&(peer, header.token)) {
                let end = header.auxiliary().checked_add(header.length);
                let outside = end.is_none_or(|end| end > expected.length);
                if outside || (self.options.bulk && header.flags != IN_BULK) {
                    self.lose(peer, "it sent data that were not expected");
                    return sink.lost(peer, "it sent data that were not expected");
                }
                let at = header.auxiliary() as isize;
                expected.memory.with(|memory| memory.write(at, &payload));
                expected.got += header.length;
                if expected.got >= expected.length {
                    self.expected.remove(&(peer, header.token));
                    sink.received(peer, header.token);
                }
                return;
            }
        }
        if payload.len() >= self.options.place {
            if let Placement::Into(memory) = sink.place(peer, &header) {
                memory.with(|memory| memory.write(0, &payload));
                return sink.placed(peer, &header);
            }
        }
        sink.frame(peer, &header, &payload);
    }

    fn report(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = false;
        let count = lock(&self.network).count();
        for other in 0..count {
            let (me, peer) = (self.me, self.peer(other));
            let mut network = lock(&self.network);
            let link = &mut network.links[me][other];
            let writable = link.refused && link.frames.len() < self.options.queue;
            link.refused &= !writable;
            let pending = !network.links[other][me].frames.is_empty();
            let lost = network
                .why_lost(me, other)
                .filter(|_| !self.is_reported(other) && !pending);
            let left = network.left[other] && !network.left[me] && !pending && !self.is_reported(other);
            drop(network);
            if let Some(reason) = lost {
                self.is_reported_now(other);
                self.bulks.retain(|bulk| bulk.peer != peer);
                self.expected.retain(|(from, _), _| *from != peer);
                sink.lost(peer, &reason);
                any = true;
            } else if left {
                self.is_reported_now(other);
                sink.ended(peer);
                any = true;
            }
            if writable {
                sink.writable(peer);
                any = true;
            }
        }
        any
    }
}

impl Transport for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn limits(&self, _peer: Peer) -> Limits {
        Limits {
            frame: self.options.frame,
            eager: self.options.eager,
            pull: self.options.pull,
            bulk: self.options.bulk,
            far: self.options.far,
        }
    }

    fn send(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        assert_eq!(
            payload.len() as u64,
            header.payload_bytes(),
            "payload and header disagree"
        );
        assert!(payload.len() <= self.options.frame, "payload above the limit");
        self.push(peer, header, payload)
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
        assert!(self.options.bulk, "send_bulk without Limits::bulk");
        self.bulks.push_back(Bulk {
            peer,
            token,
            memory,
            length,
            sent: 0,
            sent_token,
        });
        Ok(())
    }

    fn expect(&mut self, peer: Peer, token: u64, memory: Lent<WriteMemory>, length: u64) -> bool {
        if self.options.place != usize::MAX {
            self.expected.insert((peer, token), Expected { memory, length, got: 0 });
        }
        self.options.place != usize::MAX
    }

    fn handle(&mut self, _peer: Peer, memory: ReadMemory, length: u64) -> Vec<u8> {
        if !self.options.pull {
            return Vec::new();
        }
        let mut network = lock(&self.network);
        network.next_handle += 1;
        let name = network.next_handle;
        network.handles.insert(name, (memory, length));
        name.to_le_bytes().into()
    }

    fn pull(
        &mut self,
        peer: Peer,
        handle: &[u8],
        offset: u64,
        mut memory: WriteMemory,
        length: u64,
    ) -> Result<bool, SendError> {
        let impossible = self.chance(3);
        let mut network = lock(&self.network);
        if let Some(reason) = network.why_lost(self.me, self.at(peer)) {
            return Err(SendError::Lost(reason));
        }
        let name = <[u8; 8]>::try_from(handle).map(u64::from_le_bytes).unwrap_or_default();
        let Some((source, _)) = network.handles.remove(&name).filter(|_| !impossible) else {
            return Ok(false);
        };
        memory.copy(0, &source, offset as isize, length as usize);
        network.pulled += 1;
        Ok(true)
    }

    fn streams(&self) -> bool {
        self.options.streams
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = self.push_bulk(sink);
        let count = lock(&self.network).count();
        for from in 0..count {
            while !self.chance(3) {
                let Some(frame) = self.pop(from) else { break };
                if self.is_reported(from) {
                    continue;
                }
                self.deliver(self.peer(from), frame, sink);
                any = true;
            }
        }
        self.report(sink) | any
    }

    fn lose(&mut self, peer: Peer, reason: &str) {
        let (me, other) = (self.me, self.at(peer));
        self.is_reported_now(other);
        self.bulks.retain(|bulk| bulk.peer != peer);
        self.expected.retain(|(from, _), _| *from != peer);
        let mut network = lock(&self.network);
        network.parted.insert((me, other), reason.into());
        network
            .parted
            .insert((other, me), format!("it was given up by rank {me}"));
        network.ring(other);
    }

    fn rings(&self) -> bool {
        self.options.rings
    }

    fn arm(&mut self) -> bool {
        if !self.options.rings {
            return false;
        }
        let mut network = lock(&self.network);
        let (me, count) = (self.me, network.count());
        let arrived = (0..count).any(|from| !network.links[from][me].frames.is_empty());
        let writable = |link: &Link| link.refused && link.frames.len() < self.options.queue;
        let writable = network.links[me].iter().any(writable);
        let lost = (0..count).any(|other| !self.is_reported(other) && network.why_lost(me, other).is_some());
        network.armed[me] = true;
        !(arrived || writable || lost || !self.bulks.is_empty())
    }

    fn disarm(&mut self) {
        lock(&self.network).armed[self.me] = false;
        let mut count = [0; 8];
        // Empty is fine: nobody rang.
        let _ = rustix::io::read(&self.bell, &mut count);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }

    fn is_flushed(&self) -> bool {
        self.bulks.is_empty()
    }

    fn close(&mut self, sink: &mut dyn Sink) -> bool {
        self.push_bulk(sink);
        let done = self.bulks.is_empty();
        let mut network = lock(&self.network);
        if done && !std::mem::replace(&mut network.left[self.me], true) {
            (0..network.count()).for_each(|other| network.ring(other));
        }
        done
    }
}
