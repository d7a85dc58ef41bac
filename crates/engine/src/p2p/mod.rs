// SPDX-License-Identifier: Apache-2.0
//! The machine of point-to-point messages. What it keeps is here, and nothing outside of this folder sees into it:
//! [`State`], to which frames are given, and the messages that it sends and receives.

pub(crate) mod arrivals;
pub(crate) mod beside;
pub(crate) mod calls;
pub(crate) mod cancel;
pub(crate) mod conversion;
pub(crate) mod direct;
pub(crate) mod itself;
pub(crate) mod knocking;
pub(crate) mod long;
pub(crate) mod loss;
pub(crate) mod message;
pub(crate) mod parts;
pub(crate) mod placing;
pub(crate) mod queue;
pub(crate) mod ranges;
pub(crate) mod receive;
pub(crate) mod revoke;
pub(crate) mod send;
pub(crate) mod short;
pub(crate) mod state;
mod tasks;
pub(crate) mod unanswered;
pub(crate) mod waits;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Instant;

use isthmus_datatype::Representation;
use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_protocol::calling::Calls;
use isthmus_protocol::matching::{Context, Envelope, Matcher, Pattern, Posted};
use isthmus_protocol::ways::Ways;
use isthmus_transport::{Lease, Peer, Processes, Transport};
use isthmus_wire::frame::Header;
use rustc_hash::FxHashMap;

use crate::base::buffer::Conversion;
use crate::base::callbacks::Callbacks;
use crate::base::parcels::{Parcels, Partner};
use crate::base::peers::Peers;
use crate::base::request::Tokens;
use crate::base::requests::{Owned, Requests};
use crate::base::work::Work;
use crate::mismatch::Agreement;
use crate::p2p::direct::Expected;
use crate::p2p::knocking::Knocking;
use crate::p2p::message::Content;
use crate::p2p::parts::{Arrivals, Ready};
use crate::p2p::unanswered::Unanswered;
use crate::tools::Tools;
use crate::{Members, Mode, ReceiveBuffer, Request, SendBuffer, Tuning};

/// Transports, requests, matching: what all machines stand on.
pub struct Core {
    pub(crate) transports: Vec<Box<dyn Transport>>,
    pub(crate) state: State,
}

/// Everything of an engine but its transports: what arriving frames are given to.
pub struct State {
    me: Peer,
    /// Who the peers are.
    processes: Arc<Processes>,
    peers: Peers,
    /// How peers represent data; empty if all do as this process.
    representations: Vec<Representation>,
    /// Of whom nothing comes any more, and why: whoever has ended in order is not lost, and has no reason.
    reasons: FxHashMap<Peer, Option<Arc<str>>>,
    /// Peers that are lost, in the order in which this process has learnt of it.
    losses: Vec<Peer>,
    /// How many of these the program has acknowledged, by the context of the communicator where it has, which may
    /// be gone.
    acknowledged: FxHashMap<Context, (Weak<()>, usize)>,
    /// The job goes on when it loses processes.
    goes_on: bool,
    requests: Requests<Task>,
    matcher: Matcher<u32, Message>,
    direct: Expected,
    /// Messages that were announced and have not been received.
    calls: Calls,
    /// Of messages without requests.
    sent: Tokens,
    /// Those that are asked back, and the requests that wait for the answers.
    recalls: FxHashMap<u64, u32>,
    unanswered: Unanswered,
    asked: AskedBack,
    /// Taken off the queue by improbe.
    taken: Vec<Option<(Envelope, Message)>>,
    outgoing: FxHashMap<Peer, Outgoing>,
    /// Eager messages that are being read straight into a receive's memory.
    placing: FxHashMap<Peer, u32>,
    work: VecDeque<Work>,
    /// Functions of the program that machines ask for.
    callbacks: Arc<Callbacks>,
    /// What passes between machines and those of peers with the same numbers.
    partners: FxHashMap<(Peer, u8), Partner>,
    tools: Tools,
    /// Whether others call the same operations.
    agreement: Agreement,
    chunk: Vec<u8>,
    /// Counts what others may wait for: completions and unexpected messages.
    events: u64,
    /// A thread that is not the user's is making progress.
    foreign: bool,
    tuning: Arc<Tuning>,
    /// Which way long messages of a peer take that could take either.
    ways: FxHashMap<Peer, Box<Ways>>,
    knocking: Knocking,
    /// Most messages that have waited at once.
    unexpected_peak: usize,
}

/// A message that has arrived and has not matched.
#[derive(Debug)]
pub(crate) struct Message {
    peer: Peer,
    bytes: u64,
    /// Names the sender's request.
    token: u64,
    /// Packed data in the common form.
    common: bool,
    /// The sender waits to hear that the message matched.
    synchronous: bool,
    content: Content,
}

/// Messages that are asked back.
#[derive(Debug, Default)]
pub(crate) struct AskedBack {
    /// Until when requests wait for answers.
    until: Vec<(Instant, Request)>,
    /// Receiver and token of messages whose senders did not wait for the answer.
    late: Vec<(Peer, u64)>,
    /// Of others, set aside here until the sender says what becomes of them. Accounted for as before, which bounds
    /// them.
    aside: Vec<(Envelope, Message)>,
}

/// Who sends what to whom: the arguments of a send.
pub(crate) struct Outbound {
    peer: Peer,
    /// Complete but for kind and token.
    header: Header,
    mode: Mode,
    buffer: SendBuffer,
    /// A thread waits until the message has left.
    waits: bool,
}

/// Who receives what from whom: the arguments of a receive.
pub(crate) struct Inbound {
    pattern: Pattern,
    /// [`Peer::NONE`]: any.
    peer: Peer,
    /// For any.
    members: Option<Members>,
    buffer: ReceiveBuffer,
}

/// A message that has left, of a send without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    peer: Peer,
    context: u32,
    /// Names it to its receiver; no request has such a token.
    token: u64,
}

/// What waits to be sent to a peer.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    controls: VecDeque<Header>,
    /// Sends whose first frame has not left, in order.
    messages: VecDeque<u32>,
    /// Sends whose data frames are leaving, in turn.
    streams: VecDeque<u32>,
    /// Messages that may have been thrown away in vain and be put back: none may overtake them.
    held: u32,
    /// Of machines.
    parcels: Parcels,
}

/// What a request does.
#[derive(Debug)]
pub(crate) enum Task {
    /// Nothing any more.
    Nothing,
    Send(SendTask),
    Receive(ReceiveTask),
    /// A receive into one piece of memory to which nothing has happened yet: the next message usually ends it, and
    /// whoever else wants it makes an ordinary one of it ([`Requests::receive`]).
    Plain(PlainTask),
    /// A machine has it.
    Of(Owned),
    /// Somebody else completes it.
    User,
    /// A send that had completed; the peer was asked to throw the message away.
    Recall(Peer),
}

#[derive(Debug)]
pub(crate) struct SendTask {
    /// The memory that its transport reads by itself. First, so that it is out of reach before anything below is given
    /// back.
    lease: Option<Lease<ReadMemory>>,
    peer: Peer,
    /// Of the first frame; its kind is decided when it leaves.
    header: Header,
    synchronous: bool,
    /// The request has been complete from the beginning.
    buffered: bool,
    /// The peer was asked to throw the message away.
    recalled: bool,
    /// A thread waits until the message has left, so it can take part in moving it.
    waits: bool,
    /// What of a partitioned message may leave.
    parts: Option<Box<Ready>>,
    stage: SendStage,
    /// The peer was told where the message lies, and may be copying it.
    offered: bool,
    buffer: SendBuffer,
    /// How far an announced message is.
    announced: AnnouncedStage,
    /// The receiver's request, once it asked for data.
    receiver: u64,
    /// Bytes that the receiver wants.
    wanted: u64,
    /// Its transport expects them in bulk, and nothing else.
    bulk: bool,
    /// For these: data that do not lie in one piece.
    packed: Option<OwnMemory>,
    /// Bytes sent as data frames.
    sent: u64,
}

/// A message and its announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncedStage {
    /// It was not announced.
    Never,
    Announced,
    /// The receiver has called it in before it matched.
    Called,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendStage {
    /// The first frame has not left.
    Queued,
    /// The receiver's answer (`Ack`, `Cts` or `Pulled`) is awaited.
    Waiting,
    /// Data frames are leaving.
    Streaming,
    /// The transport sends the data by itself.
    Bulk,
}

#[derive(Debug)]
pub(crate) struct ReceiveTask {
    /// The memory that its transport writes by itself. First, so that it is out of reach before anything below is given
    /// back.
    lease: Option<Lease<WriteMemory>>,
    buffer: ReceiveBuffer,
    stage: ReceiveStage,
    /// What of a partitioned message has arrived.
    parts: Option<Box<Arrivals>>,
    /// The sender: known if asked for by rank, or once matched; else [`Peer::NONE`].
    peer: Peer,
    /// Who could send: only for receives from any source.
    members: Option<Members>,
    /// Bytes that will be delivered.
    wanted: u64,
    got: u64,
    /// When its data were asked for, if that is of interest.
    since: Option<Instant>,
    /// What is done with the message once it is here, if its sender represents data differently.
    conversion: Option<Box<Conversion>>,
}

/// What a receive needs until its message comes.
#[derive(Clone, Debug)]
pub(crate) struct PlainTask {
    memory: WriteMemory,
    room: u64,
    peer: Peer,
    posted: Posted,
}

#[derive(Debug)]
pub(crate) enum ReceiveStage {
    /// Partitioned: the sender's name for the messages is not known yet.
    Unposted,
    Posted(Posted),
    /// Matched a request to send of this token, with this handle.
    Answering {
        token: u64,
        handle: Box<[u8]>,
    },
    /// Matched an announced message that was called in before; its data are on their way to the memory of the engine.
    Called(Box<Called>),
    /// Data frames arrive.
    Streaming,
    /// The transport takes the data to their place by itself: data frames have no business here.
    Expected,
    /// An eager message is being read into the buffer.
    Placing,
}

/// What a receive knows of its message that is being called in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    envelope: Envelope,
    common: bool,
    /// The sender's request, if it waits to hear that the message matched; else 0.
    acknowledge: u64,
}
