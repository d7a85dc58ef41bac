// SPDX-License-Identifier: Apache-2.0
//! A look at connections without waiting. It asks the kernel once and reads one clock: where there are few connections
//! they are simply read, since a reading that finds nothing costs what asking the poller costs, and one that finds a
//! message saves asking.

use std::time::Duration;

use super::channels::Channels;
use super::hands::Hands;
use super::task::Task;
use crate::socket::{Interest, Ready};

/// With up to so many connections each is simply read; with more the poller says which.
const FEW: usize = 2;
/// Nor are they simply read after so many bytes came at once: a reader locks the socket, and those who bring packets
/// wait for the lock.
const SEVERAL_PACKETS: usize = 2048;

/// What may be ready.
pub(super) fn look(hands: &mut Hands, channels: &Channels, ready: &mut Vec<Ready>) {
    if hands.looks.asks() || !names_few(hands, channels, ready) {
        hands.poller.wait(ready, Some(Duration::ZERO));
    }
}

/// All connections, where they are few and nothing but reading is to be done.
fn names_few(hands: &Hands, channels: &Channels, ready: &mut Vec<Ready>) -> bool {
    ready.clear();
    for (number, task) in hands.slots.iter() {
        let Task::Wide(peer, id) = task else { return false };
        let connection = channels.get(*peer).and_then(|c| c.life.lines.get(id));
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
