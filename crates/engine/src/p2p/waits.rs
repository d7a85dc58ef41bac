// SPDX-License-Identifier: Apache-2.0
//! What a process waits for, as people ask when a program hangs.

use isthmus_transport::Peer;
use isthmus_wire::waiting::{ANY_TAG, ANYBODY, Item, Kind, MOST_ITEMS, MOST_MEMBERS};

use crate::Members;
use crate::base::requests::{NONE, Owner, Slot};
use crate::p2p::{ReceiveStage, SendStage, State, Task};

/// Messages of collective operations have odd contexts, those that construct communicators the upper bit.
fn is_the_programs(context: u32) -> bool {
    context & (1 << 31 | 1) == 0
}

/// What is pending, as much of it as is told, and how much more there is.
pub(crate) fn waits(state: &State, of_machine: impl Fn(Owner, u32) -> Option<Item>) -> (Vec<Item>, u32) {
    let mut all = Vec::new();
    for index in state.requests.indices() {
        let slot = state.requests.slot(index);
        if !slot.done() && slot.owner() == NONE {
            all.extend(match slot.task().owner() {
                Some(owner) => of_machine(owner, index),
                None => pending(slot),
            });
        }
    }
    for (pattern, &index) in state.matcher.posted() {
        if is_the_programs(pattern.context.number()) && state.requests.slot(index).owner() == NONE {
            all.push(Item {
                kind: Kind::Receive,
                peer: asked_of(state, index),
                tag: pattern.tag.map_or(ANY_TAG, |tag| tag as u32),
                context: pattern.context.number(),
                ..Item::default()
            });
        }
    }
    for (envelope, message) in state.matcher.waiting() {
        if is_the_programs(envelope.context.number()) {
            all.push(Item {
                kind: Kind::Unexpected,
                peer: message.peer.number(),
                tag: envelope.tag as u32,
                context: envelope.context.number(),
                bytes: message.bytes,
                ..Item::default()
            });
        }
    }
    let more = all.len().saturating_sub(MOST_ITEMS);
    all.sort_by_key(|item| (item.kind == Kind::Unexpected, item.kind, item.peer, item.tag));
    all.truncate(MOST_ITEMS);
    (all, more.try_into().unwrap_or(u32::MAX))
}

/// Who is to send to a posted receive.
fn asked_of(state: &State, index: u32) -> u32 {
    match state.requests.slot(index).task() {
        Task::Plain(task) => task.peer.number(),
        Task::Receive(task) if task.peer != Peer::NONE => task.peer.number(),
        _ => ANYBODY,
    }
}

/// A request that waits for something but a message to match.
fn pending(slot: &Slot<Task>) -> Option<Item> {
    match slot.task() {
        Task::Send(task) if is_the_programs(task.header.context) => Some(Item {
            kind: match task.stage {
                SendStage::Queued | SendStage::Waiting => Kind::Send,
                SendStage::Streaming | SendStage::Bulk => Kind::Outgoing,
            },
            peer: task.peer.number(),
            tag: task.header.tag as u32,
            context: task.header.context,
            bytes: task.header.length,
            ..Item::default()
        }),
        Task::Receive(task) if !matches!(task.stage, ReceiveStage::Posted(_) | ReceiveStage::Unposted) => Some(Item {
            kind: Kind::Incoming,
            peer: task.peer.number(),
            tag: ANY_TAG,
            context: u32::MAX,
            bytes: task.wanted,
            ..Item::default()
        }),
        _ => None,
    }
}

/// A collective operation.
pub(crate) fn collective(name: &str, context: u32, sequence: u32, members: &Members) -> Item {
    let size = members.count();
    let listed = if size <= MOST_MEMBERS { size } else { 0 };
    Item {
        kind: Kind::Collective,
        peer: ANYBODY,
        tag: ANY_TAG,
        context,
        name: name.to_owned(),
        sequence,
        members: (0..listed).map(|rank| members.peer(rank).number()).collect(),
        size,
        ..Item::default()
    }
}
