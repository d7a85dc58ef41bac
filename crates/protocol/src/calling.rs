// SPDX-License-Identifier: Apache-2.0
//! Messages that their senders only announced, as they had no credit for the data, or because the peer is far and they
//! are not short: the receiver calls them in, in
//! the order of their announcements, as soon as it has room for them. Who receives one message after another then finds
//! them here, where an answer to each one that matches would cost a round trip each.
//!
//! ```text
//!  announced --room--> called in --data--> here
//!      |                   |                 |       a receive matches:
//!   is asked for      takes the data     takes it
//! ```
//!
//! Room is what [`WINDOW`] leaves, for the messages of each sender. A message that matches before it was called in is
//! asked for like a long one, so a receive never waits for those that stand before its message.

use std::collections::HashMap;

use crate::credit::WINDOW;
use crate::links::{Ends, Items};

/// Calls begin again when so much of the window is taken at most: many go together.
const AGAIN: u64 = WINDOW / 4 * 3;

/// Longest message to be called in where the peer is far: while one of two is received, the other one is on its way.
/// Longer ones are asked for when they match, which costs them a small part of their time.
pub const LONGEST: u64 = WINDOW / 2;

/// Names an announced message until it was received, set aside or discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Announced(u32);

/// A message to call in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The sender's name for it.
    pub token: u64,
    /// The receiver's name for its data: see [`Calls::names`].
    pub receiver: u64,
    /// Its length.
    pub bytes: u64,
}

/// How far a message is that has matched.
#[derive(Debug, PartialEq, Eq)]
pub enum Matched {
    /// It was not called in: the receive has to ask for it.
    Waits,
    /// It is on its way, and [`Arrival::For`] the receive.
    Coming,
    /// It is here.
    Here(Vec<u8>),
}

/// What data did to the message that they belong to.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival {
    /// There is nothing to be done: parts are missing, or it has not matched.
    Kept,
    /// It is whole, for the receive of this name.
    For(u64, Vec<u8>),
}

/// How far a message is that its sender wants back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aside {
    /// It was not called in, and never will be: its name is gone.
    Waits,
    /// It is on its way, and cannot be had back.
    Coming,
    /// It is here, and stays under its name until it is received or discarded.
    Here,
}

/// Data that belong to no message, or not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong;

#[derive(Debug)]
enum Stage {
    Waits,
    Coming(Option<u64>),
    Here,
}

#[derive(Debug)]
struct Entry {
    peer: u32,
    token: u64,
    bytes: u64,
    /// Tells it from others that had its place.
    number: u32,
    stage: Stage,
    data: Vec<u8>,
}

#[derive(Debug)]
struct Queue {
    waits: Ends,
    /// Bytes of messages that were called in and have not been received.
    called: u64,
    /// No call before [`AGAIN`].
    full: bool,
}

/// The announced messages of all senders to a process.
#[derive(Debug)]
pub struct Calls {
    entries: Items<Entry, 1>,
    queues: HashMap<u32, Queue>,
    number: u32,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            entries: Items::new(),
            queues: HashMap::new(),
            number: 0,
        }
    }
}

impl Calls {
    /// A message was announced, and matches no receive.
    pub fn announce(&mut self, peer: u32, token: u64, bytes: u64) -> Announced {
        self.number = self.number.wrapping_add(1) & (u32::MAX >> 1);
        let at = self.entries.insert(Entry {
            peer,
            token,
            bytes,
            number: self.number,
            stage: Stage::Waits,
            data: Vec::new(),
        });
        let queue = self.queues.entry(peer).or_insert(Queue {
            waits: Ends::EMPTY,
            called: 0,
            full: false,
        });
        self.entries.append(at, 0, &mut queue.waits);
        Announced(at)
    }

    /// The next message of this sender to be called in; `None`: there is none, or no room for it.
    pub fn next(&mut self, peer: u32) -> Option<Call> {
        let queue = self.queues.get_mut(&peer)?;
        if queue.full && queue.called > AGAIN {
            return None;
        }
        let at = queue.waits.first;
        let entry = self.entries.get_mut(at)?;
        queue.full = queue.called.saturating_add(entry.bytes) > WINDOW;
        if queue.full {
            return None;
        }
        queue.called += entry.bytes;
        entry.stage = Stage::Coming(None);
        let call = Call {
            token: entry.token,
            receiver: u64::from(entry.number) << 33 | u64::from(at),
            bytes: entry.bytes,
        };
        self.entries.unlink(at, 0, &mut queue.waits);
        Some(call)
    }

    /// Whether data with this name belong to a message that was called in, and not to a request: those have
    /// generations, the upper halves of their names, that are odd.
    pub fn names(receiver: u64) -> bool {
        receiver >> 32 & 1 == 0
    }

    /// Data of a message that was called in, from byte `at` on. They come in order.
    pub fn arrived(&mut self, peer: u32, receiver: u64, at: u64, data: &[u8]) -> Result<Arrival, Wrong> {
        let index = receiver as u32;
        let entry = self.entries.get_mut(index).ok_or(Wrong)?;
        let Stage::Coming(receive) = entry.stage else {
            return Err(Wrong);
        };
        let missing = entry.bytes - entry.data.len() as u64;
        let fits = at == entry.data.len() as u64 && data.len() as u64 <= missing && !data.is_empty();
        if entry.peer != peer || u64::from(entry.number) != receiver >> 33 || !fits {
            return Err(Wrong);
        }
        if entry.data.is_empty() {
            entry.data.reserve_exact(entry.bytes as usize);
        }
        entry.data.extend_from_slice(data);
        if (data.len() as u64) < missing {
            return Ok(Arrival::Kept);
        }
        let Some(receive) = receive else {
            entry.stage = Stage::Here;
            return Ok(Arrival::Kept);
        };
        Ok(Arrival::For(receive, self.remove(index)))
    }

    /// The message has matched the receive of this name.
    pub fn matched(&mut self, message: Announced, receive: u64) -> Matched {
        match self.entries.get_mut(message.0).map(|entry| &mut entry.stage) {
            Some(Stage::Coming(taker)) => {
                *taker = Some(receive);
                Matched::Coming
            }
            Some(Stage::Here) => Matched::Here(self.remove(message.0)),
            Some(Stage::Waits) | None => {
                self.remove(message.0);
                Matched::Waits
            }
        }
    }

    /// The sender wants the message back, and may change its mind.
    pub fn set_aside(&mut self, message: Announced) -> Aside {
        match self.entries.get(message.0).map(|entry| &entry.stage) {
            Some(Stage::Coming(_)) => Aside::Coming,
            Some(Stage::Here) => Aside::Here,
            Some(Stage::Waits) | None => {
                self.remove(message.0);
                Aside::Waits
            }
        }
    }

    /// Nobody waits for the message any more, and its sender does not count.
    pub fn discard(&mut self, message: Announced) {
        self.remove(message.0);
    }

    /// Nothing will come of this sender. Messages that have not matched stay, as they are.
    pub fn lose(&mut self, peer: u32) {
        let of_receives = |at: &u32| {
            let entry = self.entries.get(*at);
            entry.is_some_and(|entry| entry.peer == peer && matches!(entry.stage, Stage::Coming(Some(_))))
        };
        let gone: Vec<u32> = self.entries.indices().filter(of_receives).collect();
        for at in gone {
            self.remove(at);
        }
    }

    /// Its data.
    fn remove(&mut self, at: u32) -> Vec<u8> {
        let Some(entry) = self.entries.get(at) else {
            return Vec::new();
        };
        if let Some(queue) = self.queues.get_mut(&entry.peer) {
            match entry.stage {
                Stage::Waits => self.entries.unlink(at, 0, &mut queue.waits),
                Stage::Coming(_) | Stage::Here => queue.called -= entry.bytes,
            }
        }
        self.entries.remove(at).map(|entry| entry.data).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: &mut Calls, peer: u32) -> Vec<Call> {
        std::iter::from_fn(|| calls.next(peer)).collect()
    }

    #[test]
    fn messages_are_called_in_in_order_while_there_is_room() {
        let mut all = Calls::default();
        let size = WINDOW / 16;
        let names: Vec<Announced> = (0..40).map(|token| all.announce(1, token, size)).collect();
        all.announce(2, 7, size);
        let first = calls(&mut all, 1);
        assert_eq!(
            first.iter().map(|c| c.token).collect::<Vec<_>>(),
            (0..16).collect::<Vec<_>>()
        );
        assert_eq!(calls(&mut all, 2).len(), 1, "each sender has a window of its own");
        // One is here; one is on its way; one that was not called in is asked for.
        let data = vec![5; size as usize];
        assert_eq!(all.arrived(1, first[0].receiver, 0, &data), Ok(Arrival::Kept));
        assert_eq!(all.matched(names[0], 100), Matched::Here(data.clone()));
        assert_eq!(all.matched(names[1], 101), Matched::Coming);
        assert_eq!(all.matched(names[16], 102), Matched::Waits);
        let (half, rest) = data.split_at(data.len() / 2);
        assert_eq!(all.arrived(1, first[1].receiver, 0, half), Ok(Arrival::Kept));
        let whole = all.arrived(1, first[1].receiver, half.len() as u64, rest);
        assert_eq!(whole, Ok(Arrival::For(101, data.clone())));
        // Many go together.
        assert_eq!(calls(&mut all, 1), []);
        for call in &first[2..4] {
            assert_eq!(all.arrived(1, call.receiver, 0, &data), Ok(Arrival::Kept));
        }
        let aside = [2, 5, 17].map(|at| all.set_aside(names[at]));
        assert_eq!(aside, [Aside::Here, Aside::Coming, Aside::Waits]);
        all.discard(names[2]);
        assert!(matches!(all.matched(names[3], 103), Matched::Here(_)));
        let tokens: Vec<u64> = calls(&mut all, 1).iter().map(|c| c.token).collect();
        assert_eq!(tokens, [18, 19, 20, 21]);
    }

    #[test]
    fn data_that_belong_nowhere_are_refused() {
        let mut all = Calls::default();
        let name = all.announce(1, 9, 10);
        let never = all.announce(1, 10, u64::MAX);
        let call = all.next(1).unwrap();
        assert!(Calls::names(call.receiver) && all.next(1).is_none());
        let wrong = [
            (2, call.receiver, 0, 10),
            (1, call.receiver + (1 << 33), 0, 10),
            (1, call.receiver + 1, 0, 10),
            (1, call.receiver + 77, 0, 10),
            (1, call.receiver, 1, 9),
            (1, call.receiver, 0, 11),
            (1, call.receiver, 0, 0),
            (1, call.receiver, u64::MAX, 10),
        ];
        for (peer, receiver, at, length) in wrong {
            assert_eq!(all.arrived(peer, receiver, at, &vec![0; length]), Err(Wrong));
        }
        assert_eq!(all.arrived(1, call.receiver, 0, &[1; 10]), Ok(Arrival::Kept));
        assert_eq!(all.arrived(1, call.receiver, 0, &[1; 10]), Err(Wrong));
        assert_eq!(all.matched(name, 5), Matched::Here(vec![1; 10]));
        assert_eq!(all.arrived(1, call.receiver, 0, &[1; 10]), Err(Wrong));
        assert_eq!(all.matched(never, 6), Matched::Waits);
        let late = all.announce(1, 11, 10);
        assert_eq!(all.next(1).map(|c| c.token), Some(11));
        assert_eq!(all.matched(late, 7), Matched::Coming);
        all.lose(1);
        assert_eq!(all.entries.len(), 0);
    }
}
