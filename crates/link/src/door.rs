// SPDX-License-Identifier: Apache-2.0
//! Who is let in at a listener, without its socket: strangers are bounded in number and time, whoever comes.

use std::collections::VecDeque;
use std::time::Duration;

/// Most connections that may be in a handshake at once, having dialled us. When more come, the oldest that has
/// said nothing yet is dropped, else the oldest.
pub const MAX_HANDSHAKES: usize = 64;
/// How long a stranger has to prove that it belongs to the job: a few round trips, and a packet that is lost twice
/// (after 1 and 2 s: RFC 6298).
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(4);
/// How long to leave callers waiting when the process or machine has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// How far somebody who came in has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranger {
    /// It is not there any more, or has proven who it is.
    Gone,
    /// It has said nothing yet.
    Silent,
    /// It has begun to prove itself.
    Speaks,
}

/// Those who came in and have not proven anything yet, by their names.
#[derive(Debug, Default)]
pub struct Door {
    /// Oldest first.
    waiting: VecDeque<u64>,
    closed_until: Option<Duration>,
}

impl Door {
    /// Somebody else wants to come in: who has to go first, if anybody has to. The silent go before those who have
    /// begun to prove themselves.
    pub fn make_room(&mut self, how: impl Fn(u64) -> Stranger) -> Option<u64> {
        if self.waiting.len() < MAX_HANDSHAKES {
            return None;
        }
        self.waiting.retain(|number| how(*number) != Stranger::Gone);
        if self.waiting.len() < MAX_HANDSHAKES {
            return None;
        }
        let silent = self.waiting.iter().position(|number| how(*number) == Stranger::Silent);
        self.waiting.remove(silent.unwrap_or(0))
    }

    /// So many have come in, and may have gone.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Somebody has come in.
    pub fn handle_in(&mut self, number: u64) {
        self.waiting.push_back(number);
    }

    /// Nobody can be let in for a while, until then.
    pub fn handle_exhausted(&mut self, now: Duration) -> Duration {
        *self.closed_until.insert(now + PAUSE)
    }

    /// Whether it is to be opened again now; whoever does so says whether that has worked.
    pub fn opens(&self, now: Duration) -> bool {
        self.closed_until.is_some_and(|until| until <= now)
    }

    /// It has been opened, or has not. When to try again, if it is closed.
    pub fn handle_opened(&mut self, now: Duration, opened: bool) -> Option<Duration> {
        if opened {
            self.closed_until = None;
        }
        self.closed_until.map(|until| until.max(now + PAUSE / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_silent_make_room_and_then_the_oldest() {
        let mut door = Door::default();
        let most = MAX_HANDSHAKES as u64;
        for number in 0..most {
            assert_eq!(door.make_room(|_| Stranger::Silent), None);
            door.handle_in(number);
        }
        let speaks = |number: u64| match number {
            0..=6 => Stranger::Speaks,
            _ => Stranger::Silent,
        };
        assert_eq!(door.make_room(speaks), Some(7));
        door.handle_in(most);
        assert_eq!(door.make_room(|_| Stranger::Speaks), Some(0));
        door.handle_in(most + 1);
        // Who has gone takes no room.
        let gone = |number: u64| match number {
            40.. => Stranger::Gone,
            _ => Stranger::Silent,
        };
        assert_eq!(door.make_room(gone), None);
        assert!(door.waiting() < MAX_HANDSHAKES / 2 + 10);
    }

    #[test]
    fn a_closed_door_opens_again_as_soon_as_it_can() {
        let ms = Duration::from_millis;
        let mut door = Door::default();
        assert!(!door.opens(ms(9_000)));
        assert_eq!(door.handle_exhausted(ms(1_000)), ms(1_100));
        assert!(!door.opens(ms(1_099)) && door.opens(ms(1_100)));
        assert_eq!(door.handle_opened(ms(1_100), false), Some(ms(1_150)));
        assert_eq!(door.handle_opened(ms(1_150), true), None);
        assert!(!door.opens(ms(9_000)));
    }
}
