// SPDX-License-Identifier: Apache-2.0
//! What this process waits for, as people ask when a program hangs. Looked up only when nothing has come for a second.

use std::time::Duration;

use isthmus_wire::waiting::{ANY_TAG, ANYBODY, Item, Kind, MOST_ITEMS, MOST_MEMBERS};

use crate::Members;
use crate::base::requests::{NONE, ReceiveStage, SendStage, Slot, Task};
use crate::base::state::State;
use crate::waiting::shared::{Inner, NAP, Shared};

/// Hears what this process waits for when nothing has come for a second and for how long; `None`: something has come since. Says
/// whether that could be passed on.
pub type Watcher = Box<dyn Fn(Option<(Duration, &[Item], u32)>) -> bool + Send + Sync>;

impl Shared {
    /// Whoever hears what this process waits for; the first one counts. Costs nothing while messages come: only a sleep that ended
    /// without any is told of, and the end of such a wait.
    pub fn tell_waits(&self, watcher: Watcher) {
        // A second one has nothing to hear.
        let _ = self.watcher.set(watcher);
    }

    /// After a sleep of this length.
    #[cold]
    pub(crate) fn report(&self, inner: &mut Inner, slept: Duration) {
        let Some(watcher) = self.watcher.get() else { return };
        if slept < NAP {
            if inner.told.is_some() && watcher(None) {
                inner.told = None;
            }
            inner.idle = Duration::ZERO;
            return;
        }
        inner.idle += slept;
        let (items, more) = inner.engine.state.waits();
        if inner.told.as_ref() != Some(&items) && watcher(Some((inner.idle, &items, more))) {
            inner.told = Some(items);
        }
    }
}

/// Messages of collective operations have odd contexts, those that construct communicators the upper bit.
fn is_the_programs(context: u32) -> bool {
    context & (1 << 31 | 1) == 0
}

impl State {
    /// What is pending, as much of it as is told, and how much more there is.
    pub(crate) fn waits(&self) -> (Vec<Item>, u32) {
        let mut all = Vec::new();
        for index in self.requests.indices() {
            let slot = self.requests.slot(index);
            if !slot.done && slot.owner == NONE {
                all.extend(self.pending(slot));
            }
        }
        for (pattern, &index) in self.matcher.posted() {
            if is_the_programs(pattern.context) && self.requests.slot(index).owner == NONE {
                all.push(Item {
                    kind: Kind::Receive,
                    peer: self.asked_of(index),
                    tag: pattern.tag.map_or(ANY_TAG, |tag| tag as u32),
                    context: pattern.context,
                    ..Item::default()
                });
            }
        }
        for (envelope, message) in self.matcher.waiting() {
            if is_the_programs(envelope.context) {
                all.push(Item {
                    kind: Kind::Unexpected,
                    peer: message.peer,
                    tag: envelope.tag as u32,
                    context: envelope.context,
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
    fn asked_of(&self, index: u32) -> u32 {
        match &self.requests.slot(index).task {
            Task::Plain(task) => task.peer,
            Task::Receive(task) if task.peer != NONE => task.peer,
            _ => ANYBODY,
        }
    }

    /// A request that waits for something but a message to match.
    fn pending(&self, slot: &Slot) -> Option<Item> {
        match &slot.task {
            Task::Send(task) if is_the_programs(task.header.context) => Some(Item {
                kind: match task.stage {
                    SendStage::Queued | SendStage::Waiting => Kind::Send,
                    SendStage::Streaming | SendStage::Bulk => Kind::Outgoing,
                },
                peer: task.peer,
                tag: task.header.tag as u32,
                context: task.header.context,
                bytes: task.header.length,
                ..Item::default()
            }),
            Task::Receive(task) if !matches!(task.stage, ReceiveStage::Posted(_) | ReceiveStage::Unposted) => {
                Some(Item {
                    kind: Kind::Incoming,
                    peer: task.peer,
                    tag: ANY_TAG,
                    context: u32::MAX,
                    bytes: task.wanted,
                    ..Item::default()
                })
            }
            Task::Plan(execution) => {
                let channel = &execution.channel;
                let name = self.table.name(execution.operation);
                Some(collective(
                    name,
                    (channel.context & !1, execution.tag as u32 >> 16),
                    &channel.members,
                ))
            }
            Task::Meet(meet) => Some(collective(meet.what.name(), (u32::MAX, u32::MAX), &meet.members)),
            _ => None,
        }
    }
}

fn collective(name: &str, (context, sequence): (u32, u32), members: &Members) -> Item {
    let size = members.count();
    let listed = if size <= MOST_MEMBERS { size } else { 0 };
    Item {
        kind: Kind::Collective,
        peer: ANYBODY,
        tag: ANY_TAG,
        context,
        name: name.to_owned(),
        sequence,
        members: (0..listed).map(|rank| members.peer(rank)).collect(),
        size,
        ..Item::default()
    }
}
