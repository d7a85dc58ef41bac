// SPDX-License-Identifier: Apache-2.0
//! Everything of the engine but the transports, and what arriving frames do to it.
//!
//! A transport is borrowed while it reports arrivals, so nothing is sent from here: what has to be sent is put on a
//! list of [`Work`], which the engine does right afterwards.

use std::collections::VecDeque;
use std::sync::Arc;

use isthmus_datatype::Representation;
use isthmus_protocol::calling::Calls;
use isthmus_protocol::matching::{Envelope, Matcher, Refused};
use isthmus_protocol::ways::Ways;
use isthmus_transport::{Peer, Processes};
use isthmus_wire::frame::{Header, Kind};
use rustc_hash::FxHashMap;

use crate::base::agreement::Agreement;
use crate::base::machine::{Machines, Part};
use crate::base::message::{Content, Message, is_synchronous};
use crate::base::parcels::{Outcome, Parcels, Partner};
use crate::base::peers::Peers;
use crate::base::request::Tokens;
use crate::base::requests::{NONE, ReceiveStage, Requests, Task};
use crate::p2p::direct::Expected;
use crate::p2p::unanswered::{Asked, Unanswered};
use crate::tools::Tools;
use crate::waiting::callbacks::Callbacks;
use crate::{EngineError, Request, Tuning};

/// Bytes moved at a time where data cannot go straight from memory to memory.
pub(crate) const CHUNK: usize = 256 << 10;

/// What waits to be sent to a peer.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) controls: VecDeque<Header>,
    /// Sends whose first frame has not left, in order.
    pub(crate) messages: VecDeque<u32>,
    /// Sends whose data frames are leaving, in turn.
    pub(crate) streams: VecDeque<u32>,
    /// Messages that may have been thrown away in vain and be put back: none may overtake them.
    pub(crate) held: u32,
    /// Of machines.
    pub(crate) parcels: Parcels,
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.has_no_messages() && self.parcels.is_empty()
    }

    fn has_no_messages(&self) -> bool {
        self.controls.is_empty() && self.messages.is_empty() && self.streams.is_empty() && self.held == 0
    }

    /// Whether messages have to wait behind something of it. Those of machines that wait for credit are none of theirs.
    pub(crate) fn blocks(&self) -> bool {
        !self.has_no_messages() || !self.parcels.wait_for_credit()
    }
}

/// What has to be done as soon as the transports are free.
#[derive(Debug)]
pub(crate) enum Work {
    Control(Peer, Header),
    /// The receive has matched a request to send.
    Answer(u32),
    /// The receiver of this send wants its data.
    Data(u32),
    /// The peer may take frames again.
    Flush(Peer),
    /// This send ends for the program, though not for its receiver.
    LetGo(Request),
    /// The sender of this message wants it back.
    SetAside(Peer, u64),
    /// A part of a request of a machine is over.
    Part(Part),
    /// The peer has gone.
    Lost(Peer, Arc<str>),
    /// It has been lost: machines are to be told.
    Gone(Peer),
    /// Something of a machine has left, or will not any more. Boxed: other work is short.
    Sent(Box<Outcome>),
}

/// Everything of an engine but its transports: what arriving frames are given to.
pub struct State {
    pub(crate) me: Peer,
    /// Who the peers are.
    pub(crate) processes: Arc<Processes>,
    pub(crate) peers: Peers,
    /// How peers represent data; empty if all do as this process.
    pub(crate) representations: Vec<Representation>,
    pub(crate) reasons: FxHashMap<Peer, Arc<str>>,
    pub(crate) requests: Requests,
    pub(crate) matcher: Matcher<u32, Message>,
    pub(crate) direct: Expected,
    /// Messages that were announced and have not been received.
    pub(crate) calls: Calls,
    /// Of messages without requests.
    pub(crate) sent: Tokens,
    /// Those that are asked back, and the requests that wait for the answers.
    pub(crate) recalls: FxHashMap<u64, u32>,
    pub(crate) unanswered: Unanswered,
    pub(crate) asked: Asked,
    /// Taken off the queue by improbe.
    pub(crate) taken: Vec<Option<(Envelope, Message)>>,
    pub(crate) outgoing: FxHashMap<Peer, Outgoing>,
    /// Eager messages that are being read straight into a receive's memory.
    pub(crate) placing: FxHashMap<Peer, u32>,
    pub(crate) work: VecDeque<Work>,
    /// Machines of other rooms.
    pub(crate) machines: Machines,
    /// Functions of the program that they ask for.
    pub(crate) callbacks: Arc<Callbacks>,
    /// What passes between them and those of peers with the same numbers.
    pub(crate) partners: FxHashMap<(Peer, u8), Partner>,
    pub(crate) tools: Tools,
    /// Whether others call the same operations.
    pub(crate) agreement: Agreement,
    pub(crate) chunk: Vec<u8>,
    /// Counts what others may wait for: completions and unexpected messages.
    pub(crate) events: u64,
    /// A thread that is not the user's is making progress.
    pub(crate) foreign: bool,
    pub(crate) tuning: Arc<Tuning>,
    /// Which way long messages of a peer take that could take either.
    pub(crate) ways: FxHashMap<Peer, Box<Ways>>,
    /// Most messages that have waited at once.
    pub(super) unexpected_peak: usize,
}

impl State {
    /// Without peers.
    pub(crate) fn new(me: Peer, processes: Arc<Processes>) -> Self {
        Self {
            me,
            processes,
            peers: Peers::default(),
            representations: Vec::new(),
            reasons: FxHashMap::default(),
            requests: Requests::default(),
            matcher: Matcher::new(),
            direct: Expected::default(),
            calls: Calls::default(),
            sent: Tokens::default(),
            recalls: FxHashMap::default(),
            unanswered: Unanswered::default(),
            asked: Asked::default(),
            taken: Vec::new(),
            outgoing: FxHashMap::default(),
            placing: FxHashMap::default(),
            work: VecDeque::new(),
            machines: Machines::default(),
            callbacks: Arc::default(),
            partners: FxHashMap::default(),
            tools: Tools::default(),
            agreement: Agreement::default(),
            chunk: Vec::new(),
            events: 0,
            foreign: false,
            tuning: Arc::default(),
            ways: FxHashMap::default(),
            unexpected_peak: 0,
        }
    }

    /// The last peers, so many, represent data so; empty: as this process.
    pub(crate) fn represent(&mut self, count: usize, newcomers: Vec<Representation>) {
        if self.representations.is_empty() && newcomers.is_empty() {
            return;
        }
        let before = self.peers.len() - count;
        self.representations.resize(before, Representation::LOCAL);
        self.representations.extend(newcomers);
        self.representations.resize(self.peers.len(), Representation::LOCAL);
    }

    /// A frame without data that leaves as soon as transports are free.
    pub(crate) fn reply(&mut self, peer: Peer, header: Header) {
        self.work.push_back(Work::Control(peer, header));
    }

    /// The request is complete: tells its plan, or keeps the completion, or forgets it.
    #[inline]
    pub(crate) fn finish(&mut self, index: u32) {
        self.events += 1;
        self.tools.came.completes(self.requests.slot(index).task.awaited());
        self.requests.slot_mut(index).task.take_back();
        if !self.representations.is_empty() {
            self.convert(index);
        }
        let token = self.requests.token(index);
        let slot = self.requests.slot_mut(index);
        if let Task::Send(task) = &slot.task {
            if task.offered {
                self.peers[task.peer].offered -= 1;
            }
            if task.recalled {
                self.unanswered.asked(token, task.peer);
            }
            self.requests.sends -= 1;
        }
        let slot = self.requests.slot_mut(index);
        slot.task = Task::Nothing;
        slot.done = true;
        let (owner, step, detached) = (slot.owner, slot.step, slot.detached);
        if owner != NONE {
            let plan = self.requests.name(owner);
            self.fail_owner(index, owner);
            let bytes = self.requests.remove(index).bytes;
            self.work.push_back(Work::Part(Part {
                of: plan,
                number: step,
                bytes,
            }));
        } else if detached {
            self.requests.remove(index);
        }
    }

    /// An error of a step is an error of its plan.
    fn fail_owner(&mut self, index: u32, owner: u32) {
        if let Some(error) = self.requests.slot_mut(index).completion.error.take() {
            self.requests.slot_mut(owner).completion.goes_wrong(error);
        }
    }

    pub(crate) fn fail(&mut self, index: u32, error: EngineError) {
        self.requests.slot_mut(index).completion.error = Some(error);
        self.finish(index);
    }

    /// Notes in the completion what the receive has matched; returns the bytes that will be delivered.
    #[inline]
    pub(crate) fn matched(&mut self, index: u32, envelope: &Envelope, message: u64) -> u64 {
        self.requests.receive(index);
        let slot = self.requests.slot_mut(index);
        let Task::Receive(task) = &mut slot.task else { return 0 };
        let room = task.buffer.length();
        let wanted = message.min(room);
        task.wanted = wanted;
        slot.completion.source = envelope.source;
        slot.completion.tag = task.parts.as_ref().map_or(envelope.tag, |parts| parts.tag);
        slot.completion.bytes = wanted;
        if message > room {
            let (source, tag) = (envelope.source, envelope.tag);
            slot.completion.error = Some(EngineError::Truncate {
                source,
                tag,
                message,
                buffer: room,
            });
        }
        wanted
    }

    /// Gives a whole message to the receive that it matched.
    #[inline]
    pub(crate) fn fill(&mut self, index: u32, envelope: &Envelope, origin: (Peer, bool), data: &[u8]) {
        self.prepare(index, envelope, origin, data.len() as u64);
        let wanted = self.matched(index, envelope, data.len() as u64) as usize;
        // An ordinary receive by now.
        if let Task::Receive(task) = &mut self.requests.slot_mut(index).task {
            task.buffer.write(0, &data[..wanted]);
        }
        self.finish(index);
    }

    /// A message has matched: gives credit back and tells a synchronous sender.
    #[inline(always)]
    pub(crate) fn settle(&mut self, peer: Peer, kept: u64, acknowledge: u64) {
        let known = &mut self.peers[peer];
        if known.own {
            return;
        }
        if let Some(cost) = known.account.matched(kept) {
            self.work
                .push_back(Work::Control(peer, Header::control(Kind::Credit, 0, 0, cost)));
        }
        self.acknowledge(peer, acknowledge);
    }

    /// Tells the sender of a synchronous message, by the name of its request, that it has matched; 0: it does not want
    /// to know.
    #[inline]
    pub(crate) fn acknowledge(&mut self, peer: Peer, acknowledge: u64) {
        if acknowledge != 0 {
            self.work
                .push_back(Work::Control(peer, Header::control(Kind::Ack, acknowledge, 0, 0)));
        }
    }

    /// The receive has matched a message that waits at its sender.
    pub(crate) fn answer(
        &mut self,
        index: u32,
        peer: Peer,
        envelope: &Envelope,
        (message, common): (u64, bool),
        token: u64,
        handle: Box<[u8]>,
    ) {
        self.prepare(index, envelope, (peer, common), message);
        self.matched(index, envelope, message);
        if let Some(task) = self.requests.receive(index) {
            task.peer = peer;
            task.stage = ReceiveStage::Answering { token, handle };
        }
        self.work.push_back(Work::Answer(index));
    }

    /// What identifies a message of this peer: its context is one of the peer's world.
    #[inline]
    pub(crate) fn envelope(&self, peer: Peer, header: &Header) -> Envelope {
        Envelope::of(header, self.peers[peer].world)
    }

    /// Whether the peer is this process itself.
    #[inline]
    pub(crate) fn is_own(&self, peer: Peer) -> bool {
        self.peers[peer].own
    }

    /// The receive that a message of this peer matches.
    #[inline]
    pub(crate) fn arrive(&mut self, peer: Peer, envelope: &Envelope) -> Result<Option<u32>, Refused> {
        let requests = &self.requests;
        self.matcher
            .arrive_if(envelope, |&index| requests.is_for(index, peer, envelope.source))
    }

    /// The peer has sent a message in the name of another one.
    #[cold]
    pub(crate) fn lied(&mut self, peer: Peer, envelope: &Envelope) {
        let what = format!(
            "it sent a message in the name of rank {} of its communicator, which it is not",
            envelope.source
        );
        self.broken(peer, &what);
    }

    /// A message begins to wait.
    pub(crate) fn unexpected(&mut self, peer: Peer, envelope: &Envelope, bytes: u64) {
        self.unexpected_peak = self.unexpected_peak.max(self.matcher.lengths().1 + 1);
        self.tools.unexpected(peer, envelope, bytes);
    }

    #[inline(never)]
    pub(crate) fn keep(&mut self, peer: Peer, header: &Header, content: Content) {
        self.events += 1;
        let message = Message {
            peer,
            bytes: header.length,
            token: header.token,
            common: header.common,
            synchronous: is_synchronous(header),
            content,
        };
        if !self.peers[peer].account.hold(message.kept()) {
            return self.broken(peer, "it sent more unexpected messages than it had credit for");
        }
        let envelope = self.envelope(peer, header);
        self.unexpected(peer, &envelope, header.length);
        self.matcher.keep(envelope, message);
    }

    /// A receive leaves the queue of posted ones, if it is there.
    pub(crate) fn withdraw(&mut self, index: u32) -> bool {
        let Some(task) = self.requests.receive(index) else {
            return false;
        };
        let ReceiveStage::Posted(posted) = task.stage else {
            return false;
        };
        self.matcher.cancel(posted).is_some()
    }
}
