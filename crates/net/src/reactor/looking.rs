// SPDX-License-Identifier: Apache-2.0
//! Looks of a thread of the program that waits, and looks again and again.
//!
//! Most looks find nothing. One of them asks the kernel once and reads one clock: where there are few connections they
//! are simply read, since a reading that finds nothing costs what asking the poller costs, and one that finds a message
//! saves asking.

use std::time::Duration;

use super::{Reactor, Task, Worker};
use crate::socket::{Interest, Ready};

/// With up to so many connections each is simply read; with more the poller says which.
const FEW: usize = 2;
/// Nor are they simply read after so many bytes came at once: a reader locks the socket, and those who bring packets
/// wait for the lock.
const SEVERAL_PACKETS: usize = 2048;
/// One look in so many asks the poller all the same: it tells of those who want to connect.
const ASKS: u32 = 16;

/// Looks at connections.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// How many there were.
    made: u32,
    /// The last one has found something to do.
    pub(super) found: bool,
}

impl Looks {
    /// One more; whether it is to ask the poller.
    fn asks(&mut self) -> bool {
        self.made = self.made.wrapping_add(1);
        self.made % ASKS == 0
    }
}

/// What may be ready, without waiting.
pub(super) fn look(reactor: &mut Reactor, ready: &mut Vec<Ready>) {
    if reactor.looks.asks() || !names_few(reactor, ready) {
        reactor.poller.wait(ready, Some(Duration::ZERO));
    }
}

/// All connections, where they are few and nothing but reading is to be done.
fn names_few(reactor: &Reactor, ready: &mut Vec<Ready>) -> bool {
    ready.clear();
    for (number, task) in reactor.slots.iter() {
        let Task::Wide(peer, lane) = task else { return false };
        let connection = reactor.channels.get(peer).and_then(|c| c.life.lines.get(lane));
        let reads = connection.is_some_and(|c| c.watched == Some(Interest::READ) && c.came < SEVERAL_PACKETS);
        if !reads || ready.len() == FEW {
            return false;
        }
        ready.push(Ready {
            number,
            read: true,
            write: false,
        });
    }
    !ready.is_empty()
}

/// What time it is for what is noted of a turn: one who looks reads the clock once.
pub(super) fn time_of(reactor: &Reactor) -> Duration {
    match reactor.worker {
        Worker::Looking => reactor.lived.at(reactor.turned),
        _ => reactor.now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_in_so_many_asks_the_poller() {
        let mut looks = Looks::default();
        let asked = (0..3 * ASKS).filter(|_| looks.asks()).count();
        assert_eq!(asked, 3);
    }
}
