// SPDX-License-Identifier: Apache-2.0
//! Everything of the engine but the transports, as others see it, and what becomes of requests and of messages that
//! arrive.
//!
//! A transport is borrowed while it reports arrivals, so nothing is sent from here: what has to be sent is put on a
//! list of [`Work`], which the engine does right afterwards.

use std::sync::Arc;

use isthmus_datatype::Representation;
use isthmus_protocol::matching::{Envelope, Refused};
use isthmus_transport::{Peer, Processes};
use isthmus_wire::frame::{Header, Kind};

use crate::base::callbacks::Callbacks;
use crate::base::peers::{Acquaintance, PeerState};
use crate::base::request::CompletedPart;
use crate::base::requests::{NONE, Requests};
use crate::base::work::{CHUNK, Work};
use crate::mismatch::{Agreement, Host};
use crate::p2p::Message;
use crate::p2p::conversion::{Origin, convert, prepare};
use crate::p2p::direct::Expected;
use crate::p2p::knocking::Knocking;
use crate::p2p::message::{Content, is_synchronous};
use crate::p2p::queue::chunk;
use crate::p2p::{AskedBack, ReceiveStage, State, Task};
use crate::tools::Tools;
use crate::{Channel, EngineError, Gauges, Tuning};

impl State {
    /// Without peers.
    pub(crate) fn new(me: Peer, processes: Arc<Processes>) -> Self {
        Self {
            me,
            processes,
            peers: Default::default(),
            representations: Vec::new(),
            reasons: Default::default(),
            losses: Vec::new(),
            acknowledged: Default::default(),
            goes_on: false,
            requests: Default::default(),
            matcher: Default::default(),
            direct: Default::default(),
            calls: Default::default(),
            sent: Default::default(),
            recalls: Default::default(),
            unanswered: Default::default(),
            asked: Default::default(),
            taken: Vec::new(),
            outgoing: Default::default(),
            placing: Default::default(),
            work: Default::default(),
            callbacks: Default::default(),
            partners: Default::default(),
            tools: Default::default(),
            agreement: Default::default(),
            chunk: Vec::new(),
            events: 0,
            foreign: false,
            tuning: Default::default(),
            ways: Default::default(),
            knocking: Knocking::default(),
            unexpected_peak: 0,
        }
    }
}

/// What others need of it.
impl State {
    /// The requests of all machines.
    #[inline(always)]
    pub(crate) fn requests(&self) -> &Requests<Task> {
        &self.requests
    }

    #[inline(always)]
    pub(crate) fn requests_mut(&mut self) -> &mut Requests<Task> {
        &mut self.requests
    }

    /// What tools are told.
    #[inline(always)]
    pub(crate) fn tools(&self) -> &Tools {
        &self.tools
    }

    #[inline(always)]
    pub(crate) fn tools_mut(&mut self) -> &mut Tools {
        &mut self.tools
    }

    /// Functions of the program that machines ask for.
    pub(crate) fn callbacks(&self) -> &Arc<Callbacks> {
        &self.callbacks
    }

    /// What may be changed while the engine runs.
    pub(crate) fn tuning(&self) -> &Arc<Tuning> {
        &self.tuning
    }

    /// Who the peers are.
    pub(crate) fn processes(&self) -> &Arc<Processes> {
        &self.processes
    }

    /// What is known of a peer; `None`: it is not there.
    #[inline(always)]
    pub(crate) fn peer(&self, peer: Peer) -> Option<&PeerState> {
        self.peers.get(peer)
    }

    /// Another peer, the next one by number.
    pub(crate) fn meet(&mut self, known: Acquaintance) {
        self.peers.meet(known);
    }

    /// How a peer represents data.
    pub(crate) fn representation(&self, peer: Peer) -> Representation {
        let known = self.representations.get(peer.index());
        known.copied().unwrap_or(Representation::LOCAL)
    }

    /// The blocking receive that needs no request.
    #[inline(always)]
    pub(crate) fn direct(&mut self) -> &mut Expected {
        &mut self.direct
    }

    /// Messages that are asked back.
    #[inline(always)]
    pub(crate) fn asked(&self) -> &AskedBack {
        &self.asked
    }

    /// Who are lost, and not forgotten.
    pub(crate) fn losses(&self) -> impl Iterator<Item = Peer> {
        self.reasons.keys().copied()
    }

    /// Counts what others may wait for: completions and unexpected messages.
    #[inline(always)]
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// A communicator is revoked: everything that is pending on it ends as soon as transports are free.
    #[cold]
    pub(crate) fn revoke_later(&mut self, channel: &Channel) {
        self.work.push_back(Work::Revoked(Box::new(channel.clone())));
    }

    /// Something that others may wait for.
    #[inline(always)]
    pub(crate) fn happened(&mut self) {
        self.events += 1;
    }

    /// Whether a thread that is not the user's makes progress.
    #[inline(always)]
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign
    }

    pub(crate) fn set_foreign(&mut self, foreign: bool) {
        self.foreign = foreign;
    }

    /// What is to be done next as soon as the transports are free.
    #[inline(always)]
    pub(crate) fn next_work(&mut self) -> Option<Work> {
        self.work.pop_front()
    }

    /// Whether anything waits to be sent.
    #[inline(always)]
    pub(crate) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether any peer is lost, or has ended in order, and is not forgotten.
    #[inline(always)]
    pub(crate) fn has_losses(&self) -> bool {
        !self.reasons.is_empty()
    }

    /// A frame without data that leaves as soon as transports are free.
    pub(crate) fn reply(&mut self, peer: Peer, header: Header) {
        self.work.push_back(Work::Control(peer, header));
    }

    /// The request is complete: tells its plan, or keeps the completion, or forgets it.
    #[inline]
    pub(crate) fn finish(&mut self, index: u32) {
        self.events += 1;
        self.tools.came.completes(self.requests.slot(index).task().awaited());
        self.requests.slot_mut(index).task_mut().take_back();
        if !self.representations.is_empty() {
            convert(self, index);
        }
        let token = self.requests.token(index);
        let slot = self.requests.slot_mut(index);
        if let Task::Send(task) = slot.task() {
            if task.offered {
                self.peers[task.peer].end_offer();
            }
            if task.recalled {
                self.unanswered.asked(token, task.peer);
            }
            self.requests.send_ends();
        }
        let slot = self.requests.slot_mut(index);
        *slot.task_mut() = Task::Nothing;
        slot.set_done(true);
        let (owner, step, detached) = (slot.owner(), slot.step(), slot.detached());
        if owner != NONE {
            let plan = self.requests.name(owner);
            self.fail_owner(index, owner);
            let bytes = self.requests.remove(index).bytes;
            self.work.push_back(Work::Part(CompletedPart {
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
        if let Some(error) = self.requests.slot_mut(index).completion_mut().error.take() {
            self.requests.slot_mut(owner).completion_mut().goes_wrong(error);
        }
    }

    pub(crate) fn fail(&mut self, index: u32, error: EngineError) {
        self.requests.slot_mut(index).completion_mut().error = Some(error);
        self.finish(index);
    }

    /// What identifies a message of this peer: its context is one of the peer's world.
    #[inline]
    pub(crate) fn envelope(&self, peer: Peer, header: &Header) -> Envelope {
        Envelope::of(header, self.peers[peer].world())
    }

    /// Whether the peer is this process itself.
    #[inline]
    pub(crate) fn is_own(&self, peer: Peer) -> bool {
        self.peers[peer].own()
    }
}

impl Host for State {
    #[inline(always)]
    fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    #[inline(always)]
    fn agreement_mut(&mut self) -> &mut Agreement {
        &mut self.agreement
    }

    fn tools(&self) -> &Tools {
        &self.tools
    }

    fn reply(&mut self, peer: Peer, header: Header) {
        Self::reply(self, peer, header);
    }

    fn broken(&mut self, peer: Peer, what: &str) {
        Self::broken(self, peer, what);
    }
}

/// Notes in the completion what the receive has matched; returns the bytes that will be delivered.
#[inline]
pub(crate) fn matched(state: &mut State, index: u32, envelope: &Envelope, message: u64) -> u64 {
    state.requests.receive(index);
    let slot = state.requests.slot_mut(index);
    let (Task::Receive(task), completion) = slot.halves() else {
        return 0;
    };
    let room = task.buffer.length();
    let wanted = message.min(room);
    task.wanted = wanted;
    completion.source = envelope.source;
    completion.tag = task.parts.as_ref().map_or(envelope.tag, |parts| parts.tag());
    completion.bytes = wanted;
    if message > room {
        let (source, tag) = (envelope.source, envelope.tag);
        completion.error = Some(EngineError::Truncate {
            source,
            tag,
            message,
            buffer: room,
        });
    }
    wanted
}

/// Gives a whole message to the receive that it matched. Always inlined: it ends most messages.
#[inline(always)]
pub(crate) fn fill(state: &mut State, index: u32, envelope: &Envelope, origin: Origin, data: &[u8]) {
    prepare(state, index, envelope, origin, data.len() as u64);
    let wanted = matched(state, index, envelope, data.len() as u64) as usize;
    // An ordinary receive by now.
    if let Task::Receive(task) = state.requests.slot_mut(index).task_mut() {
        task.buffer.write(0, &data[..wanted]);
    }
    state.finish(index);
}

/// A message has matched: gives credit back and tells a synchronous sender.
#[inline(always)]
pub(crate) fn settle(state: &mut State, peer: Peer, kept: u64, acknowledge: u64) {
    let known = &mut state.peers[peer];
    if known.own() {
        return;
    }
    if let Some(cost) = known.account_mut().matched(kept) {
        state
            .work
            .push_back(Work::Control(peer, Header::control(Kind::Credit, 0, 0, cost)));
    }
    tell_matched(state, peer, acknowledge);
}

/// Tells the sender of a synchronous message, by the name of its request, that it has matched; 0: it does not want
/// to know.
#[inline]
pub(crate) fn tell_matched(state: &mut State, peer: Peer, acknowledge: u64) {
    if acknowledge != 0 {
        state
            .work
            .push_back(Work::Control(peer, Header::control(Kind::Ack, acknowledge, 0, 0)));
    }
}

/// The receive has matched a message that waits at its sender.
pub(crate) fn answer(
    state: &mut State,
    index: u32,
    origin: Origin,
    envelope: &Envelope,
    message: u64,
    token: u64,
    handle: Box<[u8]>,
) {
    prepare(state, index, envelope, origin, message);
    matched(state, index, envelope, message);
    if let Some(task) = state.requests.receive(index) {
        task.peer = origin.peer();
        task.stage = ReceiveStage::Answering { token, handle };
    }
    state.work.push_back(Work::Answer(index));
}

/// The peer has sent a message in the name of another one.
#[cold]
pub(crate) fn lied(state: &mut State, peer: Peer, envelope: &Envelope) {
    let what = format!(
        "it sent a message in the name of rank {} of its communicator, which it is not",
        envelope.source
    );
    state.broken(peer, &what);
}

/// A message begins to wait.
pub(crate) fn unexpected(state: &mut State, peer: Peer, envelope: &Envelope, bytes: u64) {
    state.unexpected_peak = state.unexpected_peak.max(state.matcher.lengths().1 + 1);
    state.tools.unexpected(peer, envelope, bytes);
}

#[inline(never)]
pub(crate) fn keep(state: &mut State, peer: Peer, header: &Header, content: Content) {
    state.events += 1;
    let message = Message {
        peer,
        bytes: header.length,
        token: header.token,
        common: header.common,
        synchronous: is_synchronous(header),
        content,
    };
    if !state.peers[peer].account_mut().hold(message.kept()) {
        return state.broken(peer, "it sent more unexpected messages than it had credit for");
    }
    let envelope = state.envelope(peer, header);
    unexpected(state, peer, &envelope, header.length);
    state.matcher.keep(envelope, message);
}

/// A receive leaves the queue of posted ones, if it is there.
pub(crate) fn withdraw(state: &mut State, index: u32) -> bool {
    let Some(task) = state.requests.receive(index) else {
        return false;
    };
    let ReceiveStage::Posted(posted) = task.stage else {
        return false;
    };
    state.matcher.cancel(posted).is_some()
}

/// The receive that a message of this peer matches.
#[inline]
pub(crate) fn arrive(state: &mut State, peer: Peer, envelope: &Envelope) -> Result<Option<u32>, Refused> {
    let requests = &state.requests;
    state
        .matcher
        .arrive_if(envelope, |&index| requests.is_for(index, peer, envelope.source))
}

/// Lengths of the queues.
pub(crate) fn gauges(state: &State) -> Gauges {
    let (posted, unexpected) = state.matcher.lengths();
    Gauges {
        posted: posted as u64,
        unexpected: unexpected as u64,
        unexpected_peak: state.unexpected_peak as u64,
        sends: state.requests.sends() as u64,
        operation: state.tools.last(),
    }
}

/// The last peers, so many, represent data so; empty: as this process.
pub(crate) fn represent(state: &mut State, count: usize, newcomers: Vec<Representation>) {
    if state.representations.is_empty() && newcomers.is_empty() {
        return;
    }
    let before = state.peers.len() - count;
    state.representations.resize(before, Representation::LOCAL);
    state.representations.extend(newcomers);
    state.representations.resize(state.peers.len(), Representation::LOCAL);
}

/// Memory to work with.
pub(crate) fn scratch(state: &mut State) -> &mut [u8] {
    chunk(&mut state.chunk, CHUNK)
}

impl Message {
    /// Bytes of data that it keeps here.
    pub(crate) fn kept(&self) -> u64 {
        match self.content {
            Content::Inline(_) | Content::Kept(_) => self.bytes,
            Content::Offered(_) | Content::Announced(_) | Content::Local(_) => 0,
        }
    }
}
