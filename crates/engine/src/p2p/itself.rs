// SPDX-License-Identifier: Apache-2.0
//! Messages of a process to itself.

use crate::base::buffer::transfer;
use crate::base::message::{Content, Message};
use crate::base::requests::SendStage;
use crate::base::state::CHUNK;
use crate::p2p::send::{Outbound, chunk, envelope};
use crate::{Engine, Mode, SendBuffer};

/// Longest message to itself that a process copies when no receive is posted.
const SELF_EAGER: u64 = 64 << 10;

impl Engine {
    pub(crate) fn send_to_self(&mut self, outbound: &mut Outbound) -> bool {
        let envelope = envelope(&outbound.header);
        if let Some(index) = self.state.matcher.arrive(&envelope) {
            let origin = (self.state.me, outbound.buffer.common);
            self.state.prepare(index, &envelope, origin, outbound.buffer.length());
            let wanted = self.state.matched(index, &envelope, outbound.buffer.length());
            if let Some(task) = self.state.requests.receive(index) {
                transfer(
                    &mut outbound.buffer,
                    &mut task.buffer,
                    wanted,
                    chunk(&mut self.state.chunk, CHUNK),
                );
            }
            self.state.finish(index);
            return true;
        }
        let length = outbound.buffer.length();
        let me = self.state.me;
        let keeps = outbound.mode != Mode::Synchronous && length <= SELF_EAGER;
        if !keeps || !self.state.peers[me as usize].account.hold(length) {
            return false;
        }
        let bytes = chunk(&mut self.state.chunk, length as usize);
        outbound.buffer.read(0, bytes);
        let message = Message {
            peer: me,
            bytes: length,
            token: outbound.header.token,
            synchronous: false,
            common: outbound.buffer.common,
            content: Content::keep(bytes),
        };
        self.state.unexpected(me, &envelope, length);
        self.state.matcher.keep(envelope, message);
        self.state.events += 1;
        true
    }

    /// No receive of this process matches yet: the message waits in its buffer.
    pub(crate) fn offer_to_self(&mut self, index: u32) {
        let me = self.state.me;
        let Some(task) = self.state.requests.send(index) else {
            return;
        };
        task.stage = SendStage::Waiting;
        let message = Message {
            peer: me,
            bytes: task.header.length,
            token: 0,
            synchronous: false,
            common: task.header.common,
            content: Content::Local(index),
        };
        let envelope = envelope(&task.header);
        if task.parts.is_some() {
            if let Some(receive) = self.state.matcher.arrive(&envelope) {
                let wanted = self.state.matched(receive, &envelope, message.bytes);
                return self.receive_parts_from_self(index, receive, wanted);
            }
        }
        self.state.unexpected(me, &envelope, message.bytes);
        self.state.matcher.keep(envelope, message);
        self.state.events += 1;
    }

    /// A receive has matched a message in a buffer of this process.
    pub(crate) fn receive_from_self(&mut self, send: u32, receive: u32, wanted: u64) {
        let Some(task) = self.state.requests.send(send) else {
            return;
        };
        if task.parts.is_some() {
            return self.receive_parts_from_self(send, receive, wanted);
        }
        let mut buffer = std::mem::replace(&mut task.buffer, SendBuffer::EMPTY);
        if let Some(task) = self.state.requests.receive(receive) {
            transfer(
                &mut buffer,
                &mut task.buffer,
                wanted,
                chunk(&mut self.state.chunk, CHUNK),
            );
        }
        self.state.finish(send);
        self.state.finish(receive);
    }
}
