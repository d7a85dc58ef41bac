// SPDX-License-Identifier: Apache-2.0
//! What has arrived: duplicates dropped, frames in order.

use std::collections::BTreeMap;

use isthmus_wire::segment::Hello;

use super::{Seen, Violation};

/// Most bytes that are kept because something before them is missing. Senders keep less than that unacknowledged.
pub const REORDER_BYTES: usize = 64 << 20;

#[derive(Debug, Default)]
struct Queue {
    /// Of the next byte.
    position: u64,
    early: BTreeMap<u64, Vec<u8>>,
}

/// The receiving half of a channel.
#[derive(Debug, Default)]
pub struct Incoming {
    seen: Seen,
    queues: BTreeMap<u8, Queue>,
    early: usize,
    duplicates: u64,
}

impl Incoming {
    /// Whether this segment has not arrived yet.
    pub fn is_new(&self, number: u64) -> bool {
        !self.seen.contains(number)
    }

    /// A segment outside of the queues has arrived whole; true when it is new.
    pub fn arrived(&mut self, number: u64) -> Result<bool, Violation> {
        let new = self.seen.insert(number)?;
        self.duplicates += u64::from(!new);
        Ok(new)
    }

    /// A segment of a queue has arrived whole. Gives to `to` what can be read on with, in order.
    pub fn ordered(
        &mut self,
        queue: u8,
        (number, position): (u64, u64),
        bytes: Vec<u8>,
        to: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Violation> {
        if !self.arrived(number)? {
            return Ok(());
        }
        let queue = self.queues.entry(queue).or_default();
        if position < queue.position || position.checked_add(bytes.len() as u64).is_none() {
            return Err(Violation::Number(number));
        }
        if position > queue.position {
            self.early += bytes.len();
            if self.early > REORDER_BYTES || queue.early.insert(position, bytes).is_some() {
                return Err(Violation::Disorder);
            }
            return Ok(());
        }
        queue.position += bytes.len() as u64;
        to(&bytes);
        while let Some(entry) = queue.early.first_entry() {
            if *entry.key() > queue.position {
                break;
            }
            if *entry.key() < queue.position {
                return Err(Violation::Number(number));
            }
            let bytes = entry.remove();
            self.early -= bytes.len();
            queue.position += bytes.len() as u64;
            to(&bytes);
        }
        Ok(())
    }

    /// What a new connection begins with.
    pub fn hello(&self) -> Hello {
        self.seen.hello()
    }

    /// Segments that came more than once.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_in_order_and_independent() {
        let (mut incoming, mut got) = (Incoming::default(), Vec::new());
        let mut give = |queue: u8, number: u64, position: u64, text: &str| {
            incoming.ordered(queue, (number, position), text.as_bytes().to_vec(), &mut |b| {
                got.push((queue, String::from_utf8(b.to_vec()).unwrap()));
            })
        };
        give(0, 2, 3, "def").unwrap();
        give(1, 4, 0, "uvw").unwrap();
        give(0, 2, 3, "def").unwrap();
        give(0, 1, 0, "abc").unwrap();
        give(0, 1, 0, "abc").unwrap();
        assert_eq!(give(0, 9, 5, "f"), Err(Violation::Number(9)));
        let want = [(1, "uvw"), (0, "abc"), (0, "def")].map(|(q, t)| (q, t.to_owned()));
        assert_eq!(got, want);
        assert_eq!(incoming.duplicates(), 2);
        assert!(incoming.hello().has(2) && !incoming.hello().has(3) && incoming.hello().has(4));
    }

    #[test]
    fn disorder_is_bounded() {
        let mut incoming = Incoming::default();
        let size = 1 << 19;
        let give = |n: u64| incoming.ordered(0, (n, n * size), vec![0; size as usize], &mut |_| {});
        let first_refused = (1..1000).map(give).position(|r| r.is_err());
        assert_eq!(first_refused, Some(REORDER_BYTES / size as usize));
    }
}
