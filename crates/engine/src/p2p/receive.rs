// SPDX-License-Identifier: Apache-2.0
//! Receiving: posting, probing, answering requests to send.

use isthmus_datatype::raw::WriteMemory;
use isthmus_protocol::matching::{Envelope, Pattern};
use isthmus_transport::Peer;

use crate::base::message::{Content, Message};
use crate::base::requests::{NONE, PlainTask, ReceiveStage, ReceiveTask, Task};
use crate::base::state::State;
use crate::{Arrived, Channel, Engine, EngineError, MatchedMessage, Members, ReceiveBuffer, Request};

/// Who receives what from whom: the arguments of a receive.
pub(crate) struct Inbound {
    pub(crate) pattern: Pattern,
    /// [`NONE`]: any.
    pub(crate) peer: Peer,
    /// For any.
    pub(crate) members: Option<Members>,
    pub(crate) buffer: ReceiveBuffer,
}

impl Engine {
    /// Starts a receive; `None` as source or tag: any.
    #[inline]
    pub fn irecv(&mut self, channel: &Channel, from: Option<u32>, tag: Option<i32>, buffer: ReceiveBuffer) -> Request {
        if channel.native != 0 {
            let index = self.receive_natively(channel, from, tag, buffer);
            return self.state.requests.name(index);
        }
        let pattern = Pattern {
            context: channel.context,
            source: from,
            tag,
        };
        let (peer, members) = match from {
            Some(rank) => (channel.members.peer(rank), None),
            None => (NONE, Some(channel.members.clone())),
        };
        let index = self.start_receive(Inbound {
            pattern,
            peer,
            members,
            buffer,
        });
        self.work();
        self.state.requests.name(index)
    }

    /// Starts a receive of one process into one piece of memory, if no such message waits and nothing else stands in the way: what most
    /// nonblocking receives are. `None`: nothing was done; [`Engine::irecv`] knows all other cases. Only where all processes represent data alike.
    #[inline]
    pub fn irecv_plainly(
        &mut self,
        channel: &Channel,
        from: u32,
        tag: Option<i32>,
        memory: WriteMemory,
        room: u64,
    ) -> Option<Request> {
        let state = &mut self.state;
        let pattern = Pattern {
            context: channel.context,
            source: Some(from),
            tag,
        };
        if !state.reasons.is_empty() || !state.work.is_empty() || state.matcher.find(&pattern).is_some() {
            return None;
        }
        let index = state.requests.vacant();
        let posted = state.matcher.post(pattern, index);
        let peer = channel.members.peer(from);
        let plain = Task::Plain(PlainTask {
            memory,
            room,
            peer,
            posted,
        });
        // There was nothing.
        std::mem::forget(std::mem::replace(&mut state.requests.slot_mut(index).task, plain));
        Some(state.requests.name(index))
    }

    /// The first message that such a receive would match, if it is there. Call [`Engine::progress`] before (`Shared::wait` does).
    /// Fails when nobody is left who could send it.
    pub fn iprobe(
        &mut self,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
    ) -> Result<Option<Arrived>, EngineError> {
        if channel.native != 0 {
            let found = self.probe_natively(channel, from, tag, false)?;
            return Ok(found.map(|(_, arrived)| arrived));
        }
        let pattern = Pattern {
            context: channel.context,
            source: from,
            tag,
        };
        self.state.throw_lies(&pattern, &channel.members);
        let Some(waiting) = self.state.matcher.find(&pattern) else {
            return self.hopeless(channel, from).map_or(Ok(None), Err);
        };
        let found = self.state.matcher.look(waiting);
        Ok(found.map(|(envelope, message)| self.state.arrived_message(envelope, message)))
    }

    /// As [`Engine::iprobe`], and takes the message off the queue: only [`Engine::imrecv`] can receive it then.
    pub fn improbe(
        &mut self,
        channel: &Channel,
        from: Option<u32>,
        tag: Option<i32>,
    ) -> Result<Option<(MatchedMessage, Arrived)>, EngineError> {
        if channel.native != 0 {
            return self.probe_natively(channel, from, tag, true);
        }
        let pattern = Pattern {
            context: channel.context,
            source: from,
            tag,
        };
        self.state.throw_lies(&pattern, &channel.members);
        let Some((envelope, message)) = self.state.matcher.take(&pattern) else {
            return self.hopeless(channel, from).map_or(Ok(None), Err);
        };
        let arrived = self.state.arrived_message(&envelope, &message);
        let taken = &mut self.state.taken;
        let at = taken.iter().position(Option::is_none).unwrap_or(taken.len());
        if at == taken.len() {
            taken.push(None);
        }
        taken[at] = Some((envelope, message));
        Ok(Some((MatchedMessage(at as u32), arrived)))
    }

    /// Starts to receive a message that was taken off the queue.
    /// A message that does not exist (received already) gives a request that has failed.
    pub fn imrecv(&mut self, message: MatchedMessage, buffer: ReceiveBuffer) -> Request {
        if message.is_native() {
            return self.receive_taken_natively(message, buffer);
        }
        let taken = self.state.taken.get_mut(message.0 as usize).and_then(Option::take);
        let index = self
            .state
            .requests
            .insert(Task::Receive(ReceiveTask::new(buffer, NONE, None)));
        match taken {
            Some((envelope, message)) => self.deliver(index, &envelope, message),
            None => self.state.fail(
                index,
                EngineError::Misuse {
                    what: "this matched message has been received already",
                },
            ),
        }
        self.work();
        self.state.requests.name(index)
    }

    /// Why no such message can come any more, if that is so.
    fn hopeless(&self, channel: &Channel, from: Option<u32>) -> Option<EngineError> {
        if self.state.reasons.is_empty() {
            return None;
        }
        match from.map(|rank| channel.members.peer(rank)) {
            Some(peer) => self.state.peers[peer as usize]
                .lost
                .then(|| self.state.lost_error(peer)),
            None => self.lost_member(&channel.members),
        }
    }

    fn lost_member(&self, members: &Members) -> Option<EngineError> {
        let lost = self
            .state
            .reasons
            .keys()
            .copied()
            .find(|&peer| members.contains(peer))?;
        Some(self.state.lost_error(lost))
    }

    #[inline]
    pub(crate) fn start_receive(&mut self, inbound: Inbound) -> u32 {
        let Inbound {
            pattern,
            peer,
            members,
            buffer,
        } = inbound;
        let task = ReceiveTask::new(buffer, peer, members);
        let index = self.state.requests.insert(Task::Receive(task));
        self.post(index, pattern);
        index
    }

    /// The receive takes a message that waits, or begins to wait for one.
    #[inline]
    pub(crate) fn post(&mut self, index: u32, pattern: Pattern) {
        while let Some((envelope, message)) = self.state.matcher.take(&pattern) {
            if self.state.requests.is_for(index, message.peer, envelope.source) {
                return self.deliver(index, &envelope, message);
            }
            self.state.throw_lie(&envelope, &message);
        }
        if !self.state.reasons.is_empty() && self.fail_hopeless(index) {
            return;
        }
        let posted = self.state.matcher.post(pattern, index);
        if let Some(task) = self.state.requests.receive(index) {
            task.stage = ReceiveStage::Posted(posted);
        }
    }

    /// Fails a receive whose sender is lost.
    fn fail_hopeless(&mut self, index: u32) -> bool {
        let Some(task) = self.state.requests.receive(index) else {
            return false;
        };
        let (peer, members) = (task.peer, task.members.clone());
        let error = match members {
            Some(members) => self.lost_member(&members),
            None => self.state.peers[peer as usize]
                .lost
                .then(|| self.state.lost_error(peer)),
        };
        let Some(error) = error else { return false };
        self.state.fail(index, error);
        true
    }

    /// Gives a message that waited to a receive.
    fn deliver(&mut self, index: u32, envelope: &Envelope, message: Message) {
        let local = self.state.deliver(index, envelope, message);
        if let Some((send, wanted)) = local {
            self.receive_from_self(send, index, wanted);
        }
    }
}

impl State {
    /// Gives a message that waited to a receive. One of this process itself is still to be copied: its send, and how
    /// many bytes are wanted.
    pub(crate) fn deliver(&mut self, index: u32, envelope: &Envelope, message: Message) -> Option<(u32, u64)> {
        self.unaccount(&message);
        let announced = matches!(message.content, Content::Announced(_));
        let acknowledge = if message.synchronous && !announced {
            message.token
        } else {
            0
        };
        self.settle(message.peer, message.kept(), acknowledge);
        let origin = (message.peer, message.common);
        match message.content {
            Content::Inline(bytes) => self.fill(index, envelope, origin, &bytes[..message.bytes as usize]),
            Content::Kept(bytes) => self.fill(index, envelope, origin, &bytes),
            Content::Offered(handle) => {
                let form = (message.bytes, message.common);
                self.answer(index, message.peer, envelope, form, message.token, handle);
            }
            Content::Announced(_) => self.deliver_announced(index, envelope, &message),
            Content::Local(send) => {
                self.prepare(index, envelope, origin, message.bytes);
                return Some((send, self.matched(index, envelope, message.bytes)));
            }
        }
        None
    }

    /// A message that was sent in the name of another one is gone, and its sender lost.
    #[cold]
    fn throw_lie(&mut self, envelope: &Envelope, message: &Message) {
        self.unkeep(message);
        self.lied(message.peer, envelope);
    }

    /// Throws away such messages before the first one that is none.
    fn throw_lies(&mut self, pattern: &Pattern, members: &Members) {
        while let Some(waiting) = self.matcher.find(pattern) {
            let lie = self
                .matcher
                .look(waiting)
                .is_some_and(|(envelope, message)| !members.names(envelope.source, message.peer));
            if !lie {
                return;
            }
            if let Some((envelope, message)) = self.matcher.remove(waiting) {
                self.throw_lie(&envelope, &message);
            }
        }
    }

    fn arrived_message(&self, envelope: &Envelope, message: &Message) -> Arrived {
        Arrived {
            source: envelope.source,
            tag: envelope.tag,
            bytes: message.bytes,
            form: self.form_of(message.peer, message.common),
        }
    }
}

impl ReceiveTask {
    pub(crate) fn new(buffer: ReceiveBuffer, peer: Peer, members: Option<Members>) -> Self {
        // The stage is set when the receive is posted or matches.
        Self {
            lease: None,
            buffer,
            stage: ReceiveStage::Streaming,
            parts: None,
            peer,
            members,
            wanted: 0,
            got: 0,
            since: None,
            conversion: None,
        }
    }
}

impl From<PlainTask> for ReceiveTask {
    fn from(plain: PlainTask) -> Self {
        let PlainTask {
            memory,
            room,
            peer,
            posted,
        } = plain;
        let buffer = ReceiveBuffer::contiguous(memory, 0, room);
        let stage = ReceiveStage::Posted(posted);
        Self {
            stage,
            ..Self::new(buffer, peer, None)
        }
    }
}
