// SPDX-License-Identifier: Apache-2.0
//! Messages that leave and arrive as ranges of bytes: partitioned ones.

use crate::Request;
use crate::base::work::{CHUNK, Work};
use crate::p2p::Core;
use crate::p2p::long::arrived;
use crate::p2p::queue::{chunk, stream};
use crate::p2p::{ReceiveStage, SendStage, SendTask};

impl SendTask {
    /// First byte and length of what can leave now, at most `limit` bytes.
    pub(crate) fn next_piece(&self, limit: u64) -> Option<(u64, u64)> {
        let Some(parts) = &self.parts else {
            return Some((self.sent, limit.min(self.wanted - self.sent)));
        };
        let (at, end) = parts.first()?;
        Some((at, limit.min(end - at)))
    }

    pub(crate) fn piece_sent(&mut self, length: u64) {
        self.sent += length;
        if let Some(parts) = &mut self.parts {
            parts.left(length);
        }
    }

    /// Has everything left?
    pub(crate) fn is_over(&self) -> bool {
        self.sent == self.wanted && self.parts.as_ref().is_none_or(|parts| parts.are_all_marked())
    }

    /// Without data the first frame is all that travels, and says that every partition is ready: it must wait for them.
    pub(crate) fn is_empty_until_ready(&self) -> bool {
        self.buffer.length() == 0 && self.parts.as_ref().is_some_and(|parts| !parts.are_all_marked())
    }
}

/// Sends what is ready of a message that was asked for.
pub(crate) fn go_on(core: &mut Core, index: u32) {
    let Some(task) = core.state.requests.send(index) else {
        return;
    };
    let wanted = task.wanted;
    if let Some(parts) = &mut task.parts {
        parts.clip(wanted);
    }
    let peer = task.peer;
    let ready = task.parts.as_ref().is_some_and(|parts| parts.first().is_some());
    if task.is_over() {
        core.state.finish(index);
    } else if core.state.is_own(peer) {
        move_parts(core, index);
    } else if ready {
        let streams = core.state.outgoing.get(&peer).map(|queue| &queue.streams);
        if !streams.is_some_and(|streams| streams.contains(&index)) {
            stream(core, peer, index);
        }
        core.state.work.push_back(Work::Flush(peer));
    }
}

/// A receive of this process has matched a partitioned message of its own.
pub(crate) fn receive_parts_from_self(core: &mut Core, send: u32, receive: u32, wanted: u64) {
    let receiver = core.state.requests.token(receive);
    if let Some(task) = core.state.requests.receive(receive) {
        task.stage = ReceiveStage::Streaming;
    }
    let Some(task) = core.state.requests.send(send) else {
        return;
    };
    task.receiver = receiver;
    task.wanted = wanted;
    task.stage = SendStage::Streaming;
    if let Some(parts) = &mut task.parts {
        parts.clear();
    }
    if wanted == 0 {
        core.state.finish(receive);
    }
    go_on(core, send);
}

/// Copies what is ready of a message of this process to itself.
fn move_parts(core: &mut Core, send: u32) {
    loop {
        let Some(task) = core.state.requests.send(send) else {
            return;
        };
        let Some((at, length)) = task.next_piece(CHUNK as u64) else {
            break;
        };
        let receiver = Request::from_raw(task.receiver);
        let mut piece = std::mem::take(&mut core.state.chunk);
        let bytes = chunk(&mut piece, length as usize);
        task.buffer.read(at, bytes);
        task.piece_sent(length);
        if let Some(receive) = core.state.requests.index(receiver) {
            if let Some(task) = core.state.requests.receive(receive) {
                task.buffer.write(at, bytes);
            }
            arrived(&mut core.state, receive, at, length);
        }
        core.state.chunk = piece;
    }
    if core.state.requests.send(send).is_some_and(|task| task.is_over()) {
        core.state.finish(send);
    }
}
