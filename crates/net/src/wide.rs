// SPDX-License-Identifier: Apache-2.0
//! The transport between sites: the main thread's end of it. The work is done in `reactor`.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_transport::{Job, Lent, Limits, Peer, Rates, SendError, Sink, Transport, Tuning};
use isthmus_wire::frame::{HEADER_BYTES, Header, Kind, protocol};
use rustc_hash::FxHashMap;
use rustix::io::Errno;

use crate::driver::Handle;
use crate::flow::Flow;
use crate::link::{Arrival, ArrivalHook, Command, Prober};
use crate::outbox;
use crate::places::Places;
use crate::queues::{COMMON, CONTROL, FRAME, Long, PROTOCOLS};
use crate::reactor::Worker;
use crate::socket::{Interest, Poller};

/// Bytes of frames that may wait for one peer: two of the longest. What waits counts against the receiver's credit, and
/// must leave most of it for what is on its way.
const QUEUE: usize = 2 << 20;
/// Bytes of frames to one peer that may be unacknowledged: three round trips' worth at 500 Mbit/s and 75 ms, for lost
/// packets hold up the acknowledgement of what came after them.
const KEPT: usize = 16 << 20;

/// Looks at connections after something has arrived, before they are the I/O thread's again: more than a process makes
/// before it sleeps.
const LOOKS: u32 = 4096;
/// Frames that leave at once, one after the other without a look for arrivals; more of them are encrypted together by
/// the I/O thread.
const AT_ONCE: u32 = 2;

/// TLS between sites (`tls`).
#[derive(Debug)]
pub struct WideTransport {
    handle: Arc<Handle>,
    places: Arc<Places>,
    flows: FxHashMap<Peer, Arc<Flow>>,
    lost: FxHashMap<Peer, String>,
    /// Queues of the job's contexts that want a treatment of their own.
    queues: FxHashMap<u32, u8>,
    last_queue: u8,
    spare: VecDeque<Arrival>,
    /// What a sleeper waits for: arrivals of the I/O thread, and whatever is ready at connections.
    waking: Poller,
    /// Looks at connections that are left.
    looks: u32,
    /// Frames since the last look.
    sent: u32,
    settling: bool,
    closing: bool,
}

impl std::fmt::Debug for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Arrival")
    }
}

impl WideTransport {
    pub(crate) fn new(handle: Arc<Handle>, places: Arc<Places>) -> Result<Self, Errno> {
        let waking = Poller::new()?;
        waking.add(&handle.link.wide_bell, 0, Interest::READ)?;
        waking.add(handle.driver.poller(), 1, Interest::READ)?;
        Ok(Self {
            handle,
            places,
            flows: FxHashMap::default(),
            lost: FxHashMap::default(),
            queues: FxHashMap::default(),
            last_queue: PROTOCOLS,
            spare: VecDeque::new(),
            waking,
            looks: 0,
            sent: 0,
            settling: false,
            closing: false,
        })
    }

    /// Has the I/O thread's work done: here, where this thread waits for others and does it anyway.
    fn command(&mut self, command: Command) {
        let Handle { link, driver, .. } = &*self.handle;
        self.sent = self.sent.saturating_add(1);
        if self.looks == 0 || !link.is_driven() {
            return link.command(command);
        }
        link.put(command);
        if self.sent > AT_ONCE {
            link.hand_back();
        } else if !driver.turn(Worker::Sending) {
            link.wake_thread();
        }
    }

    /// Looks at the connections while messages come and go.
    fn look(&mut self) {
        self.sent = 0;
        if self.looks == 0 {
            return;
        }
        self.looks -= 1;
        if self.looks == 0 {
            return self.handle.link.hand_back();
        }
        // Whoever has the work already sees the same.
        let _ = self.handle.driver.turn(Worker::Looking);
    }

    /// To be told of arrivals while the program computes.
    pub fn arrival_hook(&self) -> ArrivalHook {
        ArrivalHook(self.handle.link.clone())
    }

    /// To measure connections.
    pub fn prober(&self) -> Prober {
        Prober(self.handle.link.clone())
    }

    /// For people: every connection made so far, of both transports, with address and congestion control.
    pub fn connections(&self) -> Vec<String> {
        self.handle.link.connections()
    }

    /// The queue of a frame. Frames that name requests only have no order and no context, but for the one that must
    /// find its message there.
    fn queue(&self, header: &Header) -> u8 {
        match header.kind {
            Kind::Eager | Kind::EagerSync | Kind::Rts | Kind::Announce | Kind::Cancel => {}
            Kind::Protocol if protocol::is_among_messages(header.flags) => {}
            Kind::Data => return COMMON,
            // Others keep their own order, and have none with messages.
            Kind::Protocol => return PROTOCOLS,
            Kind::Cts
            | Kind::Ack
            | Kind::Pulled
            | Kind::CancelReply
            | Kind::Credit
            | Kind::Probe
            | Kind::Assist
            | Kind::Padding => return CONTROL,
        }
        self.queues.get(&header.context).copied().unwrap_or(COMMON)
    }

    fn check(&self, peer: Peer) -> Result<(), SendError> {
        if let Some(reason) = self.lost.get(&peer) {
            return Err(SendError::Lost(reason.clone()));
        }
        if self.closing {
            return Err(SendError::Lost(format!(
                "{} is asked to take a message after the end of communication",
                self.places.name(peer)
            )));
        }
        Ok(())
    }

    fn flow(&mut self, peer: Peer) -> &Arc<Flow> {
        self.flows
            .entry(peer)
            .or_insert_with(|| Arc::new(Flow::new(peer, QUEUE, KEPT)))
    }

    fn arrival(&mut self, arrival: Arrival, sink: &mut dyn Sink) {
        match arrival {
            // What it has sent before it was given up.
            Arrival::Frame { peer, .. }
            | Arrival::Received { peer, .. }
            | Arrival::Sent { peer, .. }
            | Arrival::Writable { peer }
            | Arrival::Lost { peer, .. }
            | Arrival::Ended { peer }
                if self.lost.contains_key(&peer) => {}
            Arrival::Frame { peer, header, payload } => sink.frame(peer, &header, &payload),
            Arrival::Received { peer, token } => sink.received(peer, token),
            Arrival::Sent { peer, token } => sink.sent(peer, token),
            Arrival::Writable { peer } => sink.writable(peer),
            Arrival::Lost { peer, reason } => {
                sink.lost(peer, &reason);
                self.lost.insert(peer, reason);
            }
            Arrival::Ended { peer } => sink.ended(peer),
        }
    }
}

impl Transport for WideTransport {
    fn name(&self) -> &'static str {
        "tls"
    }

    fn limits(&self, _: Peer) -> Limits {
        Limits {
            frame: FRAME,
            eager: FRAME,
            pull: false,
            bulk: true,
            far: true,
        }
    }

    fn tune(&mut self, job: Job, contexts: &[u32], tuning: Tuning) {
        // Each job numbers its contexts for itself.
        if job != self.places.job() {
            return;
        }
        // Beyond so many they share one: what the last one asked for.
        let known = contexts.iter().find_map(|c| self.queues.get(c)).copied();
        let queue = known.unwrap_or_else(|| self.last_queue.saturating_add(1));
        self.last_queue = self.last_queue.max(queue);
        self.queues.extend(contexts.iter().map(|c| (*c, queue)));
        self.command(Command::Tune { queue, tuning });
    }

    fn know(&mut self, rates: &Rates) {
        self.command(Command::Know(rates.clone()));
    }

    fn share(&mut self, sharers: u32) {
        self.command(Command::Share(sharers));
    }

    fn send(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        outbox::check(peer, header, payload);
        self.check(peer)?;
        let flow = self.flow(peer);
        if !flow.take(HEADER_BYTES + payload.len()) {
            return Err(SendError::WouldBlock);
        }
        let flow = flow.clone();
        let queue = self.queue(header);
        self.command(Command::Frame {
            flow,
            queue,
            bytes: outbox::encode(header, payload),
        });
        Ok(())
    }

    fn send_bulk(
        &mut self,
        peer: Peer,
        token: u64,
        memory: Lent<ReadMemory>,
        length: u64,
        context: u32,
        sent_token: u64,
    ) -> Result<(), SendError> {
        self.check(peer)?;
        let queue = self.queues.get(&context).copied().unwrap_or(COMMON);
        let long = Long {
            token,
            memory,
            length,
            sent_token,
        };
        self.command(Command::Long { peer, queue, long });
        Ok(())
    }

    fn expect(&mut self, peer: Peer, token: u64, memory: Lent<WriteMemory>, length: u64) -> bool {
        // The thread sees it before the clearance that makes the peer send.
        self.command(Command::Expect {
            peer,
            token,
            memory,
            length,
        });
        true
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.look();
        if !self.handle.link.arrived.load(Ordering::Acquire) {
            return false;
        }
        self.looks = LOOKS;
        let mut arrivals = std::mem::take(&mut self.spare);
        let any = self.handle.link.take_arrivals(&mut arrivals);
        for arrival in arrivals.drain(..) {
            self.arrival(arrival, sink);
        }
        self.spare = arrivals;
        any
    }

    fn urge(&mut self) {
        // As one who waits.
        (self.looks, self.sent) = (LOOKS, 0);
        let _ = self.handle.driver.turn(Worker::Sending);
    }

    fn moved(&mut self) -> bool {
        self.handle.link.moved.swap(false, Ordering::Relaxed)
    }

    fn lose(&mut self, peer: Peer, reason: &str) {
        if self.lost.insert(peer, reason.into()).is_none() {
            let reason = reason.into();
            self.command(Command::Lose { peer, reason });
        }
    }

    fn arm(&mut self) -> bool {
        self.handle.link.arm()
    }

    fn disarm(&mut self) {
        self.handle.link.disarm();
        self.looks = LOOKS;
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.waking.as_fd())
    }

    fn settle(&mut self, sink: &mut dyn Sink) -> bool {
        if !self.settling {
            self.settling = true;
            self.command(Command::Settle);
        }
        self.poll(sink);
        self.handle.link.settled.load(Ordering::SeqCst)
    }

    fn close(&mut self, sink: &mut dyn Sink) -> bool {
        if !self.closing {
            self.closing = true;
            self.command(Command::Close);
        }
        self.poll(sink);
        self.handle.link.closed.load(Ordering::SeqCst)
    }
}
