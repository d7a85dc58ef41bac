// SPDX-License-Identifier: Apache-2.0
//! Partitioned communication (MPI 5.0 chapter 4): one message whose parts leave as they become ready.
//!
//! Senders and receivers are matched in the order of their initialization. So MPI_Psend_init tells the receiver at once under which
//! name its messages will come, in a message that carries the user's tag in a context of its own; the name is the tag of the
//! messages themselves:
//!
//! ```text
//!  Psend_init   Setup(name)  -> context | 2^31,      tag: the user's  ->  Precv_init
//!  Start        Rts(length)  -> context | 2^31 + 1,  tag: the name    ->  Start
//!               Cts          <-
//!  Pready       Data(offset) ->                                           Parrived
//! ```
//! Both sides cut the message as they like: what travels are ranges of bytes.

use std::collections::VecDeque;

use isthmus_datatype::raw::OwnMemory;
use isthmus_protocol::matching::Pattern;
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::partitioned::{SETUP_BYTES, Setup};

use crate::base::requests::{AnnouncedStage, NONE, ReceiveStage, ReceiveTask, SendStage, SendTask, Task};
use crate::base::state::{CHUNK, Work};
use crate::p2p::receive::Inbound;
use crate::p2p::send::{Outbound, chunk};
use crate::{Channel, Engine, EngineError, Mode, Operation, ReceiveBuffer, Request, SendBuffer};

/// Bit of the contexts of partitioned messages.
const PARTITIONED: u32 = 1 << 31;

/// Where a partitioned send goes.
#[derive(Debug)]
pub(crate) struct Outlet {
    channel: Channel,
    to: u32,
}

/// Where a partitioned receive comes from.
#[derive(Debug)]
pub(crate) struct Inlet {
    channel: Channel,
    from: u32,
    tag: i32,
    /// The sender's [`Setup`] arrives here.
    setup: OwnMemory,
    /// The sender's name for its messages, once known.
    name: Option<u32>,
    /// A receive that was started before.
    waiting: Option<u32>,
}

impl Inlet {
    pub(crate) fn is_known(&self) -> bool {
        self.name.is_some()
    }

    fn pattern(&self, name: u32) -> Pattern {
        Pattern {
            context: (self.channel.context | PARTITIONED) + 1,
            source: Some(self.from),
            tag: Some(name as i32),
        }
    }
}

/// What of a partitioned message may leave.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Bytes of a partition.
    size: u64,
    marked: Vec<bool>,
    /// Partitions that are not ready yet.
    left: u32,
    /// Ready and not sent: first byte, end.
    ranges: VecDeque<(u64, u64)>,
    /// The receiver asked for data.
    pub(crate) cleared: bool,
}

/// What of a partitioned message has arrived.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// The user's tag.
    pub(crate) tag: i32,
    /// Bytes of a partition.
    size: u64,
    /// Bytes of each that are there.
    got: Vec<u64>,
}

impl Arrivals {
    /// `bytes` bytes from `at` on are there.
    pub(crate) fn note(&mut self, at: u64, bytes: u64) {
        let (mut at, end) = (at, at + bytes);
        while at < end && self.size > 0 {
            let partition = at / self.size;
            let next = end.min((partition + 1) * self.size);
            if let Some(got) = self.got.get_mut(partition as usize) {
                *got += next - at;
            }
            at = next;
        }
    }
}

impl SendTask {
    /// First byte and length of what can leave now, at most `limit` bytes.
    pub(crate) fn next_piece(&mut self, limit: u64) -> Option<(u64, u64)> {
        let Some(parts) = &mut self.parts else {
            return Some((self.sent, limit.min(self.wanted - self.sent)));
        };
        let &(at, end) = parts.ranges.front()?;
        Some((at, limit.min(end - at)))
    }

    pub(crate) fn piece_sent(&mut self, length: u64) {
        self.sent += length;
        let Some(first) = self.parts.as_mut().and_then(|parts| parts.ranges.front_mut()) else {
            return;
        };
        first.0 += length;
        if first.0 == first.1 {
            self.parts.as_mut().and_then(|parts| parts.ranges.pop_front());
        }
    }

    /// Has everything left?
    pub(crate) fn is_over(&self) -> bool {
        self.sent == self.wanted && self.parts.as_ref().is_none_or(|parts| parts.left == 0)
    }

    /// Without data the first frame is all that travels, and says that every partition is ready: it must wait for them.
    fn is_empty_until_ready(&self) -> bool {
        self.buffer.length() == 0 && self.parts.as_ref().is_some_and(|parts| parts.left > 0)
    }

    /// Forgets what the receiver has no room for.
    fn clip(&mut self) {
        let wanted = self.wanted;
        if let Some(parts) = &mut self.parts {
            parts.ranges.retain_mut(|range| {
                range.1 = range.1.min(wanted);
                range.0 < range.1
            });
        }
    }
}

impl Engine {
    /// MPI_Psend_init. The result names no operation; give it to [`Engine::psend_start`] and in the end to [`Engine::release`].
    pub fn psend_init(&mut self, channel: &Channel, to: u32, tag: i32) -> Request {
        let outlet = Outlet {
            channel: channel.clone(),
            to,
        };
        let index = self.state.requests.insert(Task::Outlet(Box::new(outlet)));
        let setup = Setup { name: index }.encode();
        let context = channel.context | PARTITIONED;
        let outbound = Outbound {
            peer: channel.members.peer(to),
            header: Header::new(Kind::Eager, context, channel.rank, tag, SETUP_BYTES as u64, 0),
            mode: Mode::Buffered,
            buffer: SendBuffer::owned(setup.into()),
            waits: false,
        };
        let sent = self.start_or_send(outbound);
        self.release(self.state.requests.name(sent));
        self.work();
        self.state.requests.name(index)
    }

    /// MPI_Precv_init. The result names no operation; give it to [`Engine::precv_start`] and in the end to [`Engine::release`].
    pub fn precv_init(&mut self, channel: &Channel, from: u32, tag: i32) -> Request {
        let setup = OwnMemory::new(0, SETUP_BYTES as isize);
        let buffer = ReceiveBuffer::contiguous(setup.memory(), 0, SETUP_BYTES as u64);
        let inlet = Inlet {
            channel: channel.clone(),
            from,
            tag,
            setup,
            name: None,
            waiting: None,
        };
        let index = self.state.requests.insert(Task::Inlet(Box::new(inlet)));
        let request = self.state.requests.name(index);
        let receive = self.start_receive(Inbound {
            pattern: Pattern {
                context: channel.context | PARTITIONED,
                source: Some(from),
                tag: Some(tag),
            },
            peer: channel.members.peer(from),
            members: None,
            buffer,
        });
        if self.state.requests.slot(receive).done {
            self.state.requests.slot_mut(index).completion.error = self.state.requests.remove(receive).error;
            self.inlet_known(index);
        } else {
            self.state.requests.slot_mut(receive).owner = index;
        }
        self.work();
        request
    }

    /// The index, if the request was made by [`Engine::precv_init`].
    pub(crate) fn inlet(&self, request: Request) -> Option<u32> {
        let index = self.state.requests.index(request)?;
        matches!(self.state.requests.slot(index).task, Task::Inlet(_)).then_some(index)
    }

    /// The sender's word has arrived, or never will.
    pub(crate) fn inlet_known(&mut self, index: u32) {
        let slot = self.state.requests.slot_mut(index);
        let (error, detached) = (slot.completion.error.clone(), slot.detached);
        let Task::Inlet(inlet) = &mut slot.task else { return };
        let name = Setup::decode(&inlet.setup.content()).name;
        inlet.name = Some(name);
        let (waiting, pattern) = (inlet.waiting.take(), inlet.pattern(name));
        if detached {
            self.state.requests.remove(index);
        }
        match (waiting, error) {
            // It may have failed by itself meanwhile.
            (Some(receive), _) if self.state.requests.receive(receive).is_none() => {}
            (Some(receive), None) => self.post(receive, pattern),
            (Some(receive), Some(error)) => self.state.fail(receive, error),
            (None, _) => {}
        }
    }

    /// MPI_Start of a partitioned send of `partitions` equal parts.
    pub fn psend_start(&mut self, outlet: Request, buffer: SendBuffer, partitions: u32) -> Request {
        let index = self.state.requests.insert(Task::Nothing);
        let request = self.state.requests.name(index);
        let Some((name, peer, header)) = self.outlet_header(outlet, buffer.length()) else {
            self.state.fail(index, STALE);
            return request;
        };
        if self.state.peers[peer as usize].lost {
            let error = self.state.lost_error(peer);
            self.state.fail(index, error);
            return request;
        }
        self.count(Operation::POINT_TO_POINT, peer, buffer.length());
        let parts = Ready {
            size: buffer.length() / u64::from(partitions.max(1)),
            marked: vec![false; partitions as usize],
            left: partitions,
            ranges: VecDeque::new(),
            cleared: false,
        };
        let task = SendTask {
            lease: None,
            peer,
            header: Header {
                tag: name as i32,
                common: buffer.common,
                ..header
            },
            synchronous: false,
            buffered: false,
            recalled: false,
            waits: false,
            parts: Some(Box::new(parts)),
            stage: SendStage::Queued,
            offered: false,
            buffer,
            announced: AnnouncedStage::Never,
            receiver: 0,
            wanted: 0,
            bulk: false,
            packed: None,
            sent: 0,
        };
        if task.is_empty_until_ready() {
            self.state.requests.set_send(index, task);
        } else {
            self.begin(index, task);
        }
        self.work();
        request
    }

    fn outlet_header(&self, outlet: Request, length: u64) -> Option<(u32, Peer, Header)> {
        let name = self.state.requests.index(outlet)?;
        let Task::Outlet(outlet) = &self.state.requests.slot(name).task else {
            return None;
        };
        let channel = &outlet.channel;
        let context = (channel.context | PARTITIONED) + 1;
        let header = Header::new(Kind::Rts, context, channel.rank, 0, length, 0);
        Some((name, channel.members.peer(outlet.to), header))
    }

    /// MPI_Start of a partitioned receive of `partitions` equal parts.
    pub fn precv_start(&mut self, inlet: Request, buffer: ReceiveBuffer, partitions: u32) -> Request {
        let parts = Arrivals {
            tag: 0,
            size: buffer.length() / u64::from(partitions.max(1)),
            got: vec![0; partitions as usize],
        };
        let mut task = ReceiveTask::new(buffer, NONE, None);
        task.stage = ReceiveStage::Unposted;
        task.parts = Some(Box::new(parts));
        let index = self.state.requests.insert(Task::Receive(task));
        let request = self.state.requests.name(index);
        let Some(at) = self.inlet(inlet) else {
            self.state.fail(index, STALE);
            return request;
        };
        let slot = self.state.requests.slot_mut(at);
        let error = slot.completion.error.clone();
        let Task::Inlet(inlet) = &mut slot.task else {
            return request;
        };
        let (peer, tag) = (inlet.channel.members.peer(inlet.from), inlet.tag);
        let pattern = inlet.name.map(|name| inlet.pattern(name));
        if pattern.is_none() {
            inlet.waiting = Some(index);
        }
        if let Some(task) = self.state.requests.receive(index) {
            task.peer = peer;
            if let Some(parts) = &mut task.parts {
                parts.tag = tag;
            }
        }
        match (pattern, error) {
            (_, Some(error)) => self.state.fail(index, error),
            (Some(pattern), None) => self.post(index, pattern),
            (None, None) => {}
        }
        self.work();
        request
    }

    /// MPI_Pready: the partition of a send that was started may leave. Fails if it was marked before or is none.
    pub fn pready(&mut self, request: Request, partition: u32) -> Result<(), EngineError> {
        let Some(index) = self.state.requests.index(request) else {
            return Err(MARKED);
        };
        let failed = self.state.requests.slot(index).completion.error.is_some();
        let Some(task) = self.state.requests.send(index) else {
            return if failed { Ok(()) } else { Err(MARKED) };
        };
        let length = task.buffer.length();
        let parts = task
            .parts
            .as_mut()
            .filter(|parts| (partition as usize) < parts.marked.len());
        let Some(parts) = parts else {
            return Err(EngineError::Misuse {
                what: "the request has no such partition",
            });
        };
        if std::mem::replace(&mut parts.marked[partition as usize], true) {
            return Err(MARKED);
        }
        parts.left -= 1;
        let at = u64::from(partition) * parts.size;
        let end = (at + parts.size).min(length);
        match parts.ranges.back_mut() {
            Some(last) if last.1 == at => last.1 = end,
            _ if at < end => parts.ranges.push_back((at, end)),
            _ => {}
        }
        let (cleared, over) = (parts.cleared, parts.left == 0);
        if cleared {
            self.go_on(index);
        } else if length == 0 && over {
            let peer = task.peer;
            self.offer(peer, index);
        }
        self.work();
        Ok(())
    }

    /// MPI_Parrived: whether a partition of a receive that was started has arrived. A request that has ended: yes.
    pub fn parrived(&self, request: Request, partition: u32) -> bool {
        let Some(index) = self.state.requests.index(request) else {
            return true;
        };
        match &self.state.requests.slot(index).task {
            Task::Receive(task) => {
                let Some(parts) = &task.parts else { return false };
                // What is converted when it is complete is not there before.
                let started =
                    matches!(task.stage, ReceiveStage::Streaming) && task.conversion.is_none() && parts.size > 0;
                started && parts.got.get(partition as usize).is_some_and(|&got| got >= parts.size)
            }
            _ => true,
        }
    }

    /// Sends what is ready of a message that was asked for.
    pub(crate) fn go_on(&mut self, index: u32) {
        let me = self.state.me;
        let Some(task) = self.state.requests.send(index) else {
            return;
        };
        task.clip();
        let peer = task.peer;
        let ready = task.parts.as_ref().is_some_and(|parts| !parts.ranges.is_empty());
        if task.is_over() {
            self.state.finish(index);
        } else if peer == me {
            self.move_parts(index);
        } else if ready {
            let streams = self.state.outgoing.get(&peer).map(|queue| &queue.streams);
            if !streams.is_some_and(|streams| streams.contains(&index)) {
                self.stream(peer, index);
            }
            self.state.work.push_back(Work::Flush(peer));
        }
    }

    /// A receive of this process has matched a partitioned message of its own.
    pub(crate) fn receive_parts_from_self(&mut self, send: u32, receive: u32, wanted: u64) {
        let receiver = self.state.requests.token(receive);
        if let Some(task) = self.state.requests.receive(receive) {
            task.stage = ReceiveStage::Streaming;
        }
        let Some(task) = self.state.requests.send(send) else {
            return;
        };
        task.receiver = receiver;
        task.wanted = wanted;
        task.stage = SendStage::Streaming;
        if let Some(parts) = &mut task.parts {
            parts.cleared = true;
        }
        if wanted == 0 {
            self.state.finish(receive);
        }
        self.go_on(send);
    }

    /// Copies what is ready of a message of this process to itself.
    fn move_parts(&mut self, send: u32) {
        loop {
            let Some(task) = self.state.requests.send(send) else {
                return;
            };
            let Some((at, length)) = task.next_piece(CHUNK as u64) else {
                break;
            };
            let receiver = Request::from_raw(task.receiver);
            let mut piece = std::mem::take(&mut self.state.chunk);
            let bytes = chunk(&mut piece, length as usize);
            task.buffer.read(at, bytes);
            task.piece_sent(length);
            if let Some(receive) = self.state.requests.index(receiver) {
                if let Some(task) = self.state.requests.receive(receive) {
                    task.buffer.write(at, bytes);
                }
                self.state.arrived(receive, at, length);
            }
            self.state.chunk = piece;
        }
        if self.state.requests.send(send).is_some_and(|task| task.is_over()) {
            self.state.finish(send);
        }
    }
}

const MARKED: EngineError = EngineError::Misuse {
    what: "the partition was marked as ready before",
};

const STALE: EngineError = EngineError::Misuse {
    what: "the partitioned request does not exist any more",
};
