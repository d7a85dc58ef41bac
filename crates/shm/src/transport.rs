// SPDX-License-Identifier: Apache-2.0
//! The transport between the processes of a node.

use std::os::fd::BorrowedFd;
use std::path::Path;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_transport::sharing::Sharing;
use isthmus_transport::slabs::SharedSlabs;
use isthmus_transport::{Copied, Lent, Limits, Peer, SendError, Sink, Transport};
use isthmus_wire::frame::{Header, Kind};

use crate::assist::HelpWanted;
use crate::company::Met;
use crate::doorbell::Doorbells;
use crate::error::ShmError;
use crate::geometry::Geometry;
use crate::gone::Gone;
use crate::known::{Layouts, Slabs};
use crate::pull::{self, Handle};
use crate::ring::{Reader, Writer, put};
use crate::segment::{BlockAt, RingMemory, STATE_LEFT, Segment};
use crate::slots::SlotOf;
use crate::spread::Spread;
use crate::sync::{Ordering, fence};

mod ends;
mod met;
mod watching;

/// Frames taken from one ring in a row, so that a fast sender does not starve the others.
const BURST: usize = 32;

/// Shortest frames, bytes, with which a ring is quicker than copies by the system, if both sides have a core.
const STREAMING: usize = 32 << 10;

/// Longest message, bytes, that goes through the ring unasked where the receiver could copy it itself. Up to there two
/// copies through a ring are about as quick as a copy by the system and the word about it, wherever the cores are; from
/// there on only between cores that share a cache, and four times as slow between others. Half a ping-pong through the
/// ring / copied by the receiver, us: cores that share a cache, 8 KiB 0.9 / 1.4, 16 KiB 1.6 / 2.3, 64 KiB 5.4 / 5.8;
/// others, 8 KiB 4.2 / 3.6, 16 KiB 8.7 / 4.3, 64 KiB 33 / 7.8.
const EAGER: usize = 8 << 10;

/// Shared memory as a [`Transport`].
pub struct ShmTransport {
    pub(crate) slot: usize,
    pub(crate) links: Vec<Link>,
    pub(crate) slots: SlotOf,
    /// Slots whose rings are to be looked at.
    active: Vec<Active>,
    /// Slots that refused a frame.
    blocked: Vec<Blocked>,
    /// Peers of whom the next poll tells.
    gone: Vec<(usize, Gone)>,
    /// Messages of ours whose receivers have asked us to copy a part.
    pub(crate) asked: Vec<HelpWanted>,
    /// There may be something in `blocked`, `gone` or `asked`.
    chores: bool,
    /// Frames delivered so far.
    delivered: u64,
    /// Bytes that have been, or will be, written into our doorbell and were not taken out.
    owed: usize,
    asleep: bool,
    pub(crate) copied: Copied,
    /// Pieces of memory made for windows.
    pub(crate) pieces: u64,
    pub(crate) spread: Spread,
    pub(crate) slabs: Slabs,
    pub(crate) layouts: Layouts,
    doorbells: Doorbells,
    /// In a meeting: who is in it.
    met: Option<Box<Met>>,
    /// What others read to find out whether they can; at a fixed address.
    _probe: Box<[u64; 2]>,
    /// This process's block.
    own: BlockAt,
    // Last: the rings and blocks above are in it.
    pub(crate) segment: Segment,
}

/// Everything about one partner.
pub(crate) struct Link {
    pub(crate) peer: Peer,
    pub(crate) writer: Writer<RingMemory>,
    reader: Reader<RingMemory>,
    block: BlockAt,
    /// Process id, once a copy from it has been tried successfully.
    pub(crate) pull_from: Option<u32>,
    /// It cannot write into this process's memory.
    pub(crate) refuses: bool,
    /// It knows that there is something in the ring to it.
    opened: bool,
    /// No more frames from or to it.
    lost: bool,
    /// In `active`.
    active: bool,
    /// In `blocked`.
    blocked: bool,
}

/// A ring that is looked at.
#[derive(Clone, Copy)]
struct Active {
    slot: usize,
    /// The sender need not tell us.
    watched: bool,
    /// Value of `delivered` when it last brought something.
    last: u64,
}

/// A partner that had no room.
#[derive(Clone, Copy)]
struct Blocked {
    slot: usize,
    payload: usize,
}

impl ShmTransport {
    /// Joins the shared memory of `job` on this node: the file `path` (made by whoever comes first, without a name
    /// as soon as all have joined) and the doorbells in `node_directory`.
    ///
    /// `slot` is this process's number among the `processes` of the job on the node, `peers` who
    /// has each slot. Does not wait for the others; frames can be sent to a process that has not joined yet.
    pub fn join(
        path: &Path,
        node_directory: &Path,
        job: &str,
        slot: usize,
        processes: usize,
        peers: Vec<Peer>,
    ) -> Result<Self, ShmError> {
        let geometry = Geometry::new(processes).ok_or_else(|| {
            ShmError::Usage(format!(
                "{processes} processes on one node, at most {} work",
                crate::MAX_PROCESSES
            ))
        })?;
        if slot >= processes || peers.len() != processes {
            return Err(ShmError::Usage(format!(
                "slot {slot} of {processes}, with {} peers",
                peers.len()
            )));
        }
        let segment = Segment::open(path, job, slot, geometry)?;
        let doorbells = Doorbells::make(node_directory, slot, processes)?;
        Self::enter(segment, doorbells, slot, &peers)
    }

    /// Takes its place in a segment.
    fn enter(segment: Segment, doorbells: Doorbells, slot: usize, peers: &[Peer]) -> Result<Self, ShmError> {
        let probe = Box::new(random_words());
        pull::allow();
        let pid = rustix::process::getpid().as_raw_nonzero().get() as u32;
        segment.join(slot, pid, probe.as_ptr() as u64, *probe)?;
        let links = peers
            .iter()
            .enumerate()
            .map(|(other, &peer)| Link::new(&segment, slot, other, peer))
            .collect();
        Ok(Self {
            slot,
            links,
            slots: SlotOf::new(peers),
            active: Vec::new(),
            blocked: Vec::new(),
            gone: Vec::new(),
            asked: Vec::new(),
            chores: false,
            delivered: 0,
            owed: 0,
            asleep: false,
            copied: Copied::default(),
            pieces: 0,
            spread: Spread::new(peers.len()),
            slabs: Slabs::default(),
            layouts: Layouts::default(),
            doorbells,
            met: None,
            _probe: probe,
            own: segment.block_at(slot),
            segment,
        })
    }

    /// The slot of a peer. Asking for a peer of another node is a bug of the caller, reported as a value.
    #[inline]
    pub(crate) fn slot_of(&self, peer: Peer) -> Result<usize, SendError> {
        self.slots
            .get(peer)
            .ok_or_else(|| SendError::Lost(format!("rank {peer} is not on this node")))
    }

    /// Puts a frame with a payload of `length` bytes, which `fill` writes, into the ring to `peer`.
    #[inline]
    pub(crate) fn push(
        &mut self,
        peer: Peer,
        header: &Header,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), SendError> {
        let slot = self.slot_of(peer)?;
        let link = &mut self.links[slot];
        if link.lost {
            let name = self.name_of(peer);
            return Err(SendError::Lost(format!(
                "{name} on this node has ended, or was given up"
            )));
        }
        if let Err(error) = link.writer.push(&header.words(), length, fill) {
            return Err(self.refused(slot, length, error));
        }
        self.copied.frames += length as u64;
        if link.opened && !link.block.bell.wants_ring(self.slot) {
            link.writer.prepare();
        } else {
            self.tell(slot);
        }
        Ok(())
    }

    /// `slot` does not look at the ring to it by itself, or has never got a frame.
    #[cold]
    fn tell(&mut self, slot: usize) {
        let link = &mut self.links[slot];
        if !link.opened {
            link.opened = true;
            link.block.open(self.slot);
        }
        if link.block.bell.wants_ring(self.slot) {
            self.ring(slot);
        }
        self.links[slot].writer.prepare();
    }

    /// Tells `slot` to look at us, and wakes it if it sleeps.
    #[cold]
    pub(crate) fn ring(&mut self, slot: usize) {
        if !self.segment.block(slot).bell.ring(self.slot) {
            return;
        }
        if let Err(why) = self.doorbells.wake(slot) {
            // It slept when it left.
            if self.segment.block(slot).state.load(Ordering::Acquire) == STATE_LEFT {
                return;
            }
            let name = self.name_of(self.links[slot].peer);
            let text = format!("{name} on this node cannot be woken: {why}");
            self.gone.push((slot, Gone::Lost(text)));
            self.chores = true;
        }
    }

    /// Looks at slot `slot` from now on, until there is nothing left in its ring or, if it is a busy one, longer.
    fn activate(&mut self, slot: usize) {
        // Who rings to tell of room, or to wake us, may never have written.
        let own = self.segment.block(self.slot);
        if slot >= self.links.len() || self.links[slot].active || !own.is_open(slot) {
            return;
        }
        // In a meeting nobody writes before all are known to each other.
        if self.links[slot].peer == Peer::NONE {
            return;
        }
        self.links[slot].active = true;
        self.active.push(Active {
            slot,
            watched: false,
            last: 0,
        });
    }

    /// Takes frames from the ring of the `index`th active slot. True if there was one.
    fn drain(&mut self, index: usize, sink: &mut dyn Sink) -> bool {
        let slot = self.active[index].slot;
        let link = &mut self.links[slot];
        let asked = &mut self.asked;
        let mut frames = 0;
        let mut tell = false;
        while frames < BURST && !link.lost {
            match link.reader.pop(decode, |header, payload| match header.kind {
                Kind::Assist => {
                    // It copies one message at a time, so what it asked before is over.
                    asked.retain(|earlier| earlier.slot != slot);
                    asked.push(HelpWanted::read(slot, header));
                }
                _ => sink.frame(link.peer, header, payload),
            }) {
                Ok(true) => frames += 1,
                Ok(false) => break,
                Err(_) => {
                    link.lost = true;
                    sink.lost(link.peer, "its ring in the shared memory of this node is corrupt: a process of the job has overwritten it");
                }
            }
            tell |= link.reader.give_back();
        }
        self.chores |= !self.asked.is_empty();
        if tell {
            self.ring(slot);
        }
        if frames > 0 {
            self.delivered += frames as u64;
            self.active[index].last = self.delivered;
        }
        frames > 0
    }

    /// What is seldom to be done. True if anything was.
    #[cold]
    fn do_chores(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = false;
        if !self.asked.is_empty() {
            any = true;
            self.assist();
        }
        if !self.blocked.is_empty() {
            any |= self.poll_blocked(sink);
        }
        if !self.gone.is_empty() {
            any = true;
            self.report_gone(sink);
        }
        self.chores = !(self.asked.is_empty() && self.blocked.is_empty() && self.gone.is_empty());
        any
    }

    fn poll_blocked(&mut self, sink: &mut dyn Sink) -> bool {
        let before = self.blocked.len();
        let links = &mut self.links;
        self.blocked.retain(|b| {
            let link = &mut links[b.slot];
            if !link.lost && !link.writer.has_room(b.payload) {
                return true;
            }
            link.blocked = false;
            if !link.lost {
                sink.writable(link.peer);
            }
            false
        });
        self.blocked.len() < before
    }

    /// Anything that does not need a bell to be noticed?
    fn something_waits(&mut self) -> bool {
        let links = &mut self.links;
        !self.gone.is_empty()
            || !self.asked.is_empty()
            || self
                .active
                .iter()
                .any(|a| !links[a.slot].lost && links[a.slot].reader.ready())
            || self.blocked.iter().any(|b| links[b.slot].writer.has_room(b.payload))
    }
}

impl Transport for ShmTransport {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn meet(&mut self, peer: Peer, rank: u32) {
        let Some(met) = &self.met else { return };
        let Some(slot) = met.slot_of(rank) else { return };
        // Nobody is lost before it is known: what has happened until now is looked at here.
        let watched = met.vigil.tell_of(slot);
        self.links[slot].peer = peer;
        self.slots.add(peer, slot);
        if let Err(error) = watched {
            let why = format!("{}, on this node, cannot be watched: {error}", self.name_of(peer));
            self.gone.push((slot, Gone::Lost(why)));
            self.chores = true;
        }
        self.look_for_its_end(slot);
    }

    fn limits(&self, peer: Peer) -> Limits {
        let frame = self.segment.geometry().frame_bytes();
        let pull = self
            .slots
            .get(peer)
            .is_some_and(|slot| !self.segment.block(self.slot).bit_refused(slot));
        Limits {
            frame,
            eager: if pull { EAGER.min(frame) } else { frame },
            pull,
            bulk: false,
            far: false,
        }
    }

    #[inline]
    fn send(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        debug_assert_eq!(payload.len() as u64, header.payload_bytes());
        self.push(peer, header, payload.len(), |to| put(to, payload))
    }

    fn send_filled(
        &mut self,
        peer: Peer,
        header: &Header,
        _: &mut Vec<u8>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError> {
        self.push(peer, header, header.payload_bytes() as usize, fill)
    }

    fn send_bulk(&mut self, peer: Peer, _: u64, _: Lent<ReadMemory>, _: u64, _: u32, _: u64) -> Result<(), SendError> {
        Err(SendError::Lost(format!(
            "internal error: bulk send to rank {peer}, which shared memory does not offer"
        )))
    }

    fn handle(&mut self, peer: Peer, memory: ReadMemory, length: u64) -> Vec<u8> {
        if !self.limits(peer).pull {
            return Vec::new();
        }
        let revoked = self.segment.block(self.slot).revoked.load(Ordering::Relaxed);
        let handle = Handle::of(&memory, length).encode();
        handle.into_iter().chain(revoked.to_ne_bytes()).collect()
    }

    fn revoke(&mut self) {
        // What is written to the memory afterwards is seen by nobody who does not see this too.
        self.segment.block(self.slot).revoked.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    fn pull(
        &mut self,
        peer: Peer,
        handle: &[u8],
        offset: u64,
        memory: WriteMemory,
        length: u64,
    ) -> Result<bool, SendError> {
        let (handle, revoked) = pull::split(handle);
        Ok(self.copy_part(peer, handle, offset, memory, length)? && self.is_good(peer, revoked)?)
    }

    fn pull_together(
        &mut self,
        peer: Peer,
        handle: &[u8],
        memory: WriteMemory,
        length: u64,
    ) -> Result<bool, SendError> {
        let (handle, revoked) = pull::split(handle);
        Ok(self.copy_from(peer, handle, memory, length)? && self.is_good(peer, revoked)?)
    }

    #[inline]
    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        if self.own.bell.rung() {
            self.poll_bell();
        }
        let mut any = false;
        let mut temporary = false;
        let before = self.delivered;
        for index in 0..self.active.len() {
            let Active { slot, watched, .. } = self.active[index];
            temporary |= !watched;
            if self.links[slot].reader.ready() {
                any |= self.drain(index, sink);
            }
        }
        if temporary {
            self.settle(before);
        }
        if self.chores {
            any |= self.do_chores(sink);
        }
        if !any {
            self.spread.idle(&self.segment, self.slot);
            if self.met.as_mut().is_some_and(|met| met.vigil.is_due()) {
                self.keep_vigil();
            }
        }
        any
    }

    fn lose(&mut self, peer: Peer, _: &str) {
        if let Some(slot) = self.slots.get(peer) {
            self.links[slot].lost = true;
            self.asked.retain(|asked| asked.slot != slot);
            // Who has left takes nothing more anyway, and to the others it is no loss.
            if self.own.state.load(Ordering::Relaxed) != STATE_LEFT {
                self.give_up(slot);
            }
        }
    }

    fn arm(&mut self) -> bool {
        self.asleep = true;
        let quiet = self.segment.block(self.slot).bell.sleep(self.links.len());
        if quiet && !self.something_waits() {
            self.spread.sleeps(&self.segment, self.slot);
            return true;
        }
        self.disarm();
        false
    }

    fn disarm(&mut self) {
        if self.asleep {
            self.asleep = false;
            self.owed += usize::from(self.segment.block(self.slot).bell.wake());
            if self.met.is_some() {
                self.keep_vigil();
            }
        }
        self.restore_watching();
        self.slabs.unwatch(&self.segment, self.slot);
        if self.owed > 0 {
            self.owed = self.owed.saturating_sub(self.doorbells.drain());
        }
    }

    fn streams(&self) -> bool {
        self.spread.is_sensible() && self.segment.geometry().frame_bytes() >= STREAMING
    }

    fn copied(&self) -> Copied {
        self.copied
    }

    fn neighbours(&self) -> Option<u8> {
        self.spread.neighbours()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let met = self.met.as_ref();
        Some(met.map_or_else(|| self.doorbells.descriptor(), |met| met.vigil.descriptor()))
    }

    fn slabs(&mut self) -> Option<&mut dyn SharedSlabs> {
        self.met.is_none().then_some(self as _)
    }

    fn sharing(&mut self) -> Option<&mut dyn Sharing> {
        self.met.is_none().then_some(self as _)
    }

    fn close(&mut self, _: &mut dyn Sink) -> bool {
        // Everything taken lies in the rings, which the readers keep mapped.
        let own = self.own.state.swap(STATE_LEFT, Ordering::AcqRel);
        if self.met.is_some() && own != STATE_LEFT {
            // They are of other jobs, and may wait for this process.
            let me = self.slot;
            let others = (0..self.links.len()).filter(|&slot| slot != me);
            others.for_each(|slot| self.ring(slot));
        }
        true
    }
}

impl Link {
    fn new(segment: &Segment, own: usize, other: usize, peer: Peer) -> Self {
        Self {
            peer,
            writer: Writer::new(segment.ring(other, own)),
            reader: Reader::new(segment.ring(own, other)),
            block: segment.block_at(other),
            pull_from: None,
            refuses: false,
            opened: false,
            lost: false,
            active: false,
            blocked: false,
        }
    }
}

fn decode(bytes: &[u8; 32]) -> Option<(Header, u64)> {
    let header = Header::decode(bytes).ok()?;
    let length = header.payload_bytes();
    Some((header, length))
}

/// Hard to guess is not needed, different between processes is: the hasher's keys come from the system's random source.
fn random_words() -> [u64; 2] {
    use std::hash::{BuildHasher, Hasher};
    std::array::from_fn(|_| std::hash::RandomState::new().build_hasher().finish())
}
