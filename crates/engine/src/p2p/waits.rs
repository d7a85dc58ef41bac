// SPDX-License-Identifier: Apache-2.0
//! What a process waits for, as people ask when a program hangs.

use isthmus_transport::{Job, Peer, Process};
use isthmus_wire::waiting::{ANY_TAG, ANYBODY, Item, Kind, MOST_ITEMS, MOST_MEMBERS};

use crate::Members;
use crate::base::requests::{NONE, Owner, Slot};
use crate::p2p::knocking::Source;
use crate::p2p::{ReceiveStage, SendStage, State, Task};

/// At so many of those that any could send what a process waits for it knocks at a time.
const KNOCKS: usize = 64;

/// Messages of collective operations, and those with guests, have odd contexts: who waits for one is told of otherwise.
/// What people see are messages of the program, and those that construct communicators, which have the upper bit.
fn is_told(context: u32) -> bool {
    context & 1 == 0
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
        if is_told(pattern.context.number()) && state.requests.slot(index).owner() == NONE {
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
        if is_told(envelope.context.number()) {
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

/// Processes of other jobs whose messages this process waits for and at which it has not knocked yet; of those that any
/// of many could send, some at a time, until it has knocked at all.
#[cold]
pub(crate) fn next_to_knock_at(state: &mut State) -> Vec<Peer> {
    let mut sources: Vec<Source> = state.knocking.take_probed().into_iter().collect();
    for (_, &index) in state.matcher.posted() {
        match state.requests.slot(index).task() {
            Task::Plain(task) => sources.push(Source::One(task.peer)),
            Task::Receive(task) => sources.push(match &task.members {
                Some(members) if task.peer == Peer::NONE => Source::Any(members.clone()),
                _ => Source::One(task.peer),
            }),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for source in sources {
        match source {
            Source::One(peer) if is_abroad(state, peer) => found.push(peer),
            Source::One(_) => {}
            Source::Any(members) => {
                // Each process begins with another one.
                let (first, count) = (state.me.number(), members.count());
                let all = (0..count).map(|at| members.peer((first % count + at) % count));
                let is_next = |&peer: &Peer| is_abroad(state, peer) && !state.knocking.has_begun(peer);
                found.extend(all.filter(is_next).take(KNOCKS));
            }
        }
    }
    found.retain(|&peer| state.knocking.begins(peer));
    found
}

/// Whether the launcher of this process does not tell it of this one's loss.
fn is_abroad(state: &State, peer: Peer) -> bool {
    let is_known = peer != Peer::NONE && !state.is_own(peer) && !state.is_lost(peer);
    is_known && !matches!(state.processes.process(peer), Some(Process { job: Job::OWN, .. }))
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
        Task::Send(task) if is_told(task.header.context) => Some(Item {
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
