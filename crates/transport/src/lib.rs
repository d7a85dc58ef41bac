// SPDX-License-Identifier: Apache-2.0
//! The contract between the engine and whatever moves frames.
//!
//! A transport moves frames (a [`Header`] and a payload) to *peers* ([`Peer`]). Between two
//! peers frames arrive once, whole and in the order in which they were taken. One transport serves a
//! pair of peers for the whole job; which one, is decided in the room `boot`.
//!
//! Conventions:
//!
//! * Nothing blocks except [`wait`]. Back-pressure is a value: [`SendError::WouldBlock`] means that nothing was
//!   taken and that a later [`Transport::poll`] will call [`Sink::writable`] when it is worth trying again.
//! * [`Transport::poll`] is called by whichever thread is inside an MPI call (and holds the engine).
//!   A transport with a thread of its own (wide area) queues arrivals and delivers them from `poll`.
//! * Memory that a transport uses for longer than a call is [`Lent`]: it is out of reach when its request has ended,
//!   however that came about.
//! * Sleeping: the engine calls [`Transport::arm`] on every transport, sleeps in [`wait`] on their
//!   descriptors if all returned true, and calls [`Transport::disarm`] afterwards.

#![forbid(unsafe_code)]

pub mod conformance;
mod lend;
pub mod memory;
pub mod native;
mod peer;
mod processes;
pub mod sharing;
pub mod slabs;
mod still;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_wire::frame::Header;

pub use isthmus_link::sharing::{Class, Path};
pub use lend::{Lease, Lent};
pub use peer::Peer;
pub use processes::{Called, Job, NotTaken, Process, Processes};
pub use still::{Still, Told};

/// What is known of the links to peers: bytes per second; `None`: nothing.
pub type Rates = Arc<dyn Fn(Peer) -> Option<u64> + Send + Sync>;

/// Why a frame was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// Nothing was taken; [`Sink::writable`] will follow.
    WouldBlock,
    /// The peer cannot be reached any more (or could never be). The text is for people and complete:
    /// what was tried, what answered, what fixes it.
    Lost(String),
}

/// What a transport can do for one peer.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest payload of one frame given to [`Transport::send`], bytes. At least 4096.
    pub frame: usize,
    /// Messages up to this many bytes are best sent eagerly.
    pub eager: usize,
    /// The peer may copy a message straight out of this process's memory ([`Transport::pull`]).
    pub pull: bool,
    /// [`Transport::send_bulk`] works.
    pub bulk: bool,
    /// An answer of the peer takes long against what the connection carries meanwhile: its receiver asks for what was
    /// announced before that matches, as far as it has room.
    pub far: bool,
}

/// What the messages of a communicator ask of a transport between sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tuning {
    /// Which goes first.
    pub class: Class,
    /// Bytes per second to each peer at most.
    pub rate: Option<u64>,
    /// Connections to a peer that are used side by side; `None`: as many as fill the link.
    pub streams: Option<u16>,
    /// Whether messages may be compressed where it pays; `None`: yes.
    pub compress: Option<bool>,
    /// By which kind of connection, where the network has it; `None`: whichever the others go by.
    pub path: Option<Path>,
}

/// Bytes of data that have gone between this process and others of its node, by the way that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Written by this process into frames, out of which others copy them once more.
    pub frames: u64,
    /// The same in [cells](slabs::SharedSlabs).
    pub cells: u64,
    /// Taken straight out of the memory of other processes, or put by them into that of this one: copied once.
    pub straight: u64,
}

/// Where the payload of an arriving frame shall go (streaming transports ask before they read it).
#[derive(Debug)]
pub enum Placement {
    /// Straight into this memory, from its origin; then [`Sink::placed`].
    Into(Lent<WriteMemory>),
    /// Collect it, then [`Sink::frame`] with the whole payload.
    Collect,
}

/// The engine's side: what arrives.
pub trait Sink {
    /// A whole frame. `payload` has [`Header::payload_bytes`] bytes and is valid during the call only.
    fn frame(&mut self, peer: Peer, header: &Header, payload: &[u8]);
    /// A long payload is about to be read from a stream: where to? Only asked when it is worth it.
    fn place(&mut self, peer: Peer, header: &Header) -> Placement;
    /// The payload of a frame that was placed has arrived completely.
    fn placed(&mut self, peer: Peer, header: &Header);
    /// All bytes announced with [`Transport::expect`] for this token have been written.
    fn received(&mut self, peer: Peer, token: u64);
    /// A [`Transport::send_bulk`] no longer needs its memory.
    fn sent(&mut self, peer: Peer, token: u64);
    /// A peer that refused a frame may take one again.
    fn writable(&mut self, peer: Peer);
    /// The peer is gone; no more frames from or to it. The text is for people.
    fn lost(&mut self, peer: Peer, reason: &str);
    /// The peer has closed its end in order and this process has not: all that it had to say has been reported, and it
    /// takes nothing more. It may be said again. Inside a job nobody closes before all have settled, so transports need
    /// not say it there.
    fn ended(&mut self, _peer: Peer) {}
}

/// Moves frames.
pub trait Transport: Send {
    /// For people and counters: `shm`, `tcp`, `tls`, `memory`.
    fn name(&self) -> &'static str;

    /// What works towards this peer.
    fn limits(&self, peer: Peer) -> Limits;

    /// This peer is the process with this rank of the job for which the transport was made, and nothing has passed yet.
    /// Transports that look that up themselves do nothing.
    fn meet(&mut self, _peer: Peer, _rank: u32) {}

    /// Frames with these contexts of a job, and the data of their messages, are treated so from now on. Transports that
    /// treat all alike do nothing, and so do those that do not serve this job.
    fn tune(&mut self, _job: Job, _contexts: &[u32], _tuning: Tuning) {}

    /// What the links to peers carry. A transport that paces what it sends begins there; others do nothing.
    fn know(&mut self, _rates: &Rates) {}

    /// From now on so many pairs of processes are expected to use each link in the same direction at the same time.
    fn share(&mut self, _sharers: u32) {}

    /// Takes a frame whole or not at all. The payload may be reused when this returns `Ok`.
    /// `payload.len()` is [`Header::payload_bytes`], at most [`Limits::frame`].
    fn send(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError>;

    /// More frames for the peer follow at once: they may leave together, at the latest with
    /// [`Transport::send_gathered`], which has to follow.
    fn gather(&mut self, _peer: Peer) {}

    /// What was gathered leaves. A failure is told at the next [`Transport::poll`], by [`Sink::lost`].
    fn send_gathered(&mut self, _peer: Peer) {}

    /// As [`Transport::send`] for a payload that does not lie in one piece: `fill` writes all of it, at most once, to
    /// where the transport wants it. `scratch` is memory that a transport without a better place may use.
    fn send_filled(
        &mut self,
        peer: Peer,
        header: &Header,
        scratch: &mut Vec<u8>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), SendError> {
        let length = header.payload_bytes() as usize;
        if scratch.len() < length {
            scratch.resize(length, 0);
        }
        fill(&mut scratch[..length]);
        self.send(peer, header, &scratch[..length])
    }

    /// Sends `length` bytes from `memory`'s origin as [`Kind::Data`](isthmus_wire::frame::Kind::Data) frames to the
    /// receiver's request `token`, offsets from 0, without a copy, in the treatment of `context` ([`Transport::tune`]);
    /// reports [`Sink::sent`] with `sent_token`. Only with [`Limits::bulk`], and then always where the receiver's
    /// transport [expects](Transport::expect) the data, and nowhere else: one with bulk may have no other way to take
    /// either.
    fn send_bulk(
        &mut self,
        _peer: Peer,
        _token: u64,
        _memory: Lent<ReadMemory>,
        _length: u64,
        _context: u32,
        _sent_token: u64,
    ) -> Result<(), SendError> {
        Err(SendError::WouldBlock)
    }

    /// Data frames with this token go to `memory` (origin + offset) without asking; after `length` bytes
    /// [`Sink::received`] is reported. Returns false if the transport does not do that; then data frames go through
    /// [`Sink::place`] or [`Sink::frame`].
    fn expect(&mut self, _peer: Peer, _token: u64, _memory: Lent<WriteMemory>, _length: u64) -> bool {
        false
    }

    /// Bytes to put into the payload of an `Rts` so that the receiver can [`Transport::pull`]; empty when it cannot.
    fn handle(&mut self, _peer: Peer, _memory: ReadMemory, _length: u64) -> Vec<u8> {
        Vec::new()
    }

    /// Copies `memory.len()` bytes at `offset` of the sender's memory named by `handle` to here. `Ok(false)`: not
    /// possible after all (send `Cts` instead).
    fn pull(
        &mut self,
        _peer: Peer,
        _handle: &[u8],
        _offset: u64,
        _memory: WriteMemory,
        _length: u64,
    ) -> Result<bool, SendError> {
        Ok(false)
    }

    /// [`Transport::pull`] of a whole message, of which the peer may do a part of the copying if it polls meanwhile.
    fn pull_together(
        &mut self,
        peer: Peer,
        handle: &[u8],
        memory: WriteMemory,
        length: u64,
    ) -> Result<bool, SendError> {
        self.pull(peer, handle, 0, memory, length)
    }

    /// Handles that were given out so far are good no longer: whoever pulls with one and is not done yet has
    /// `Ok(false)`, and asks for the data. Only where [`Limits::pull`] can be.
    fn revoke(&mut self) {}

    /// Moves what can be moved without waiting and reports arrivals. Returns true if anything happened.
    fn poll(&mut self, sink: &mut dyn Sink) -> bool;

    /// Whether data of long messages have come or gone since the last call that [`Transport::poll`] has not told of.
    fn moved(&mut self) -> bool {
        false
    }

    /// The peer cannot be relied on, for this reason: from now on no frame is taken for it or reported of it, and its
    /// connection ends. What was lent for it is taken back by whoever lent it.
    fn lose(&mut self, peer: Peer, reason: &str);

    /// Asks to be woken: from now on an arrival makes [`Transport::descriptor`] readable. False if something has
    /// arrived already: poll first.
    fn arm(&mut self) -> bool;

    /// Whether data frames may bring a long message sooner than pulling does while both processes do their parts side
    /// by side. Then a receiver that can do either tries out which is quicker.
    fn streams(&self) -> bool {
        false
    }

    /// Where its peers are on this machine: how many of them may be on one processor together with this process. Where
    /// there can be a processor for each, 0, whoever waits beside somebody who computes keeps its own: nobody that it
    /// waits for is behind it. `None`: nobody knows.
    fn neighbours(&self) -> Option<u8> {
        None
    }

    /// What it has copied, if its peers share memory with this process.
    fn copied(&self) -> Copied {
        Copied::default()
    }

    /// Whether [`Transport::arm`] can ever succeed. A transport that cannot ring must be polled by whoever waits.
    fn rings(&self) -> bool {
        true
    }

    /// Ends what [`Transport::arm`] began and drains the descriptor.
    fn disarm(&mut self);

    /// Becomes readable when an armed transport has something to do; always the same one (the engine keeps a
    /// duplicate). `None`: nothing will ever arrive.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Pushes out what was sent, and the next message too, in the calling thread instead of leaving it to the
    /// transport's own thread.
    fn urge(&mut self) {}

    /// Whether everything taken has been pushed out, or will be without further calls.
    fn is_flushed(&self) -> bool {
        true
    }

    /// Memory that groups of peers share for collective operations, if this transport has that.
    fn slabs(&mut self) -> Option<&mut dyn slabs::SharedSlabs> {
        None
    }

    /// Memory that processes of this machine share, and reach of each other, if this transport has that.
    fn sharing(&mut self) -> Option<&mut dyn sharing::Sharing> {
        None
    }

    /// Before the end: pushes out everything taken so far, to the peers as far as that can be known here. Called
    /// repeatedly until it returns true; more may be sent afterwards.
    fn settle(&mut self, sink: &mut dyn Sink) -> bool {
        self.poll(sink);
        self.is_flushed()
    }

    /// Orderly end: pushes out everything taken, unless a peer is gone. Called repeatedly until it returns true.
    fn close(&mut self, sink: &mut dyn Sink) -> bool;

    /// Called once and last, when no process of the job will send any more: gives back what only an orderly end gives
    /// back.
    fn finish(&mut self) {}
}

/// Sleeps until a descriptor is readable or the time is over. Interrupted sleeps return early.
pub fn wait(descriptors: &[BorrowedFd<'_>], timeout: Option<Duration>) {
    let mut polled: Vec<_> = descriptors
        .iter()
        .map(|fd| rustix::event::PollFd::from_borrowed_fd(fd.as_fd(), rustix::event::PollFlags::IN))
        .collect();
    let timeout = timeout.map(|t| rustix::event::Timespec {
        tv_sec: t.as_secs() as i64,
        tv_nsec: i64::from(t.subsec_nanos()),
    });
    // An error here is EINTR or ENOMEM: the caller polls again either way.
    let _ = rustix::event::poll(&mut polled, timeout.as_ref());
}

/// Whether a descriptor is readable now, or its other end is gone.
pub fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut polled = [rustix::event::PollFd::from_borrowed_fd(
        descriptor,
        rustix::event::PollFlags::IN,
    )];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    // After an error the caller looks again.
    rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}
