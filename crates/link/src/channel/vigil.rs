// SPDX-License-Identifier: Apache-2.0
//! When to acknowledge, when to ask whether the peer is still there, when to give a connection up.
//!
//! A connection can end without a word: a cable is pulled, a firewall forgets. So whoever waits for an acknowledgement
//! asks after a second of silence; whoever waits for nothing asks now and then. Whoever hears anything says something
//! within half a second, even if no segment is complete, and hence silence means that nothing gets through, or that the
//! other end has no processor. Where the other end's kernel still answers, it is the latter: a new connection would not
//! help, so this one is spared for a while.

use std::time::Duration;

/// Bytes of segments after which an acknowledgement is not put off any longer: every second full one, as TCP does
/// (RFC 5681, 4.2).
pub const ACK_BYTES: usize = 128 << 10;
/// Longest time for which it is put off: something to say may carry it.
pub const ACK_DELAY: Duration = Duration::from_millis(10);
/// As above while nothing is complete.
const SIGN_DELAY: Duration = Duration::from_millis(500);
/// Silence that ends a connection. TCP alone gets over shorter cuts at least as well as a new connection would.
pub const SILENCE: Duration = Duration::from_secs(3);
/// How often a silence is forgiven whose connection the other end's kernel answers: for half a minute. After that
/// something between the two may answer in its place.
const SPARED: u32 = 9;
/// Silence after which one asks, while something is under way: the answer may be lost once and come in time for
/// [`SILENCE`].
const ASK_BUSY: Duration = Duration::from_secs(1);
/// The same while nothing is.
const ASK_IDLE: Duration = Duration::from_secs(5);

/// What a connection needs now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Nothing until then.
    Wait(Duration),
    /// Ask whether the peer is there; say so with [`Vigil::asked`].
    Ask,
    /// It is dead.
    GiveUp,
}

/// Watches one connection for silence. All times since any beginning.
#[derive(Clone, Copy, Debug)]
pub struct Vigil {
    heard: Duration,
    /// Since when an answer is due.
    waiting: Option<Duration>,
    asked: Option<Duration>,
    /// Silences that were forgiven, one after the other.
    spared: u32,
}

impl Vigil {
    /// Of a connection that is new now.
    pub fn new(now: Duration) -> Self {
        Self {
            heard: now,
            waiting: None,
            asked: None,
            spared: 0,
        }
    }

    /// Something was heard, or could not have been because nobody listened.
    pub fn heard(&mut self, now: Duration) {
        self.heard = now;
        self.waiting = None;
        self.asked = None;
        self.spared = 0;
    }

    /// The other end's kernel answers although its process is silent. True: the connection lasts for another while.
    pub fn spare(&mut self) -> bool {
        let spared = self.spared < SPARED;
        self.spared += u32::from(spared);
        spared
    }

    /// For how long an answer has been due.
    pub fn silence(&self, now: Duration) -> Duration {
        self.waiting
            .map_or(Duration::ZERO, |since| now.saturating_sub(since.max(self.heard)))
    }

    /// Asked now.
    pub fn asked(&mut self, now: Duration) {
        self.asked = Some(now);
        self.waiting.get_or_insert(now);
    }

    /// What is to be done. `busy`: something is under way on this connection; `idle_too`: it is this one on which one
    /// asks when not.
    pub fn duty(&mut self, now: Duration, busy: bool, idle_too: bool) -> Duty {
        if busy {
            // Before it was busy there was nothing to hear.
            self.waiting.get_or_insert(now);
        }
        if let Some(since) = self.waiting {
            let end = since.max(self.heard) + SILENCE * (self.spared + 1);
            let ask = since.max(self.heard).max(self.asked.unwrap_or_default()) + ASK_BUSY;
            return match now {
                now if now >= end => Duty::GiveUp,
                now if now >= ask => Duty::Ask,
                _ => Duty::Wait(end.min(ask)),
            };
        }
        let ask = self.heard + ASK_IDLE;
        match idle_too {
            true if now >= ask => Duty::Ask,
            true => Duty::Wait(ask),
            false => Duty::Wait(Duration::MAX),
        }
    }
}

/// What this end owes the other one on a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receipts {
    /// Numbered segments that have arrived.
    count: u64,
    told: u64,
    bytes: usize,
    since: Option<Duration>,
    at_once: bool,
    /// Since when the peer has sent something that is not complete.
    sign: Option<Duration>,
}

impl Receipts {
    /// A numbered segment is complete; `last`: somebody may wait for its acknowledgement.
    pub fn arrived(&mut self, now: Duration, bytes: usize, last: bool) {
        self.count += 1;
        self.bytes += bytes;
        self.at_once |= last;
        self.since.get_or_insert(now);
    }

    /// Bytes came.
    pub fn heard(&mut self, now: Duration) {
        self.sign.get_or_insert(now);
    }

    /// An answer is wanted.
    pub fn asked(&mut self) {
        self.at_once = true;
    }

    /// Whether to say it now.
    pub fn is_due(&self, now: Duration) -> bool {
        self.at_once || self.bytes >= ACK_BYTES || self.due_at().is_some_and(|at| at <= now)
    }

    /// When to say it at the latest.
    pub fn due_at(&self) -> Option<Duration> {
        let receipt = self.since.map(|t| t + ACK_DELAY);
        let sign = self.sign.map(|t| t + SIGN_DELAY);
        receipt.into_iter().chain(sign).min()
    }

    /// Whether there is something to say that could travel with other things.
    pub fn is_owed(&self) -> bool {
        self.count > self.told || self.at_once
    }

    /// What to say; it counts as said.
    pub fn say(&mut self) -> u64 {
        *self = Self {
            count: self.count,
            told: self.count,
            ..Self::default()
        };
        self.count
    }
}

/// So many bytes of what has begun are news: a slow link brings them in time, and one who keeps others waiting has to
/// send them.
const NEWS: usize = 64 << 10;

/// Watches that what the peer has begun on a connection comes to its end. Whatever is heard is a sign of life to a
/// [`Vigil`], also of a segment that never ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Begun {
    since: Option<Duration>,
    /// What has come of it since then.
    bytes: usize,
}

impl Begun {
    /// So many bytes came. `ended`: something came to its end with them; `inside`: something that has begun has not.
    pub fn fed(&mut self, now: Duration, bytes: usize, ended: bool, inside: bool) {
        self.bytes += bytes;
        if ended || !inside || self.bytes >= NEWS {
            *self = Self::default();
        }
        if inside {
            self.since.get_or_insert(now);
        }
    }

    /// It could not go on, because nobody listened.
    pub fn forgive(&mut self, now: Duration) {
        if self.since.is_some() {
            self.since = Some(now);
        }
    }

    /// For how long it has kept others waiting.
    pub fn time(&self, now: Duration) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    /// When it has kept others waiting for so long; `None`: nothing has begun.
    pub fn due(&self, patience: Duration) -> Option<Duration> {
        Some(self.since?.saturating_add(patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_busy_connection_is_given_up_after_three_silent_seconds() {
        let mut vigil = Vigil::new(ms(0));
        assert_eq!(
            vigil.duty(ms(9_000), true, false),
            Duty::Wait(ms(10_000)),
            "it was idle till now"
        );
        assert_eq!(vigil.duty(ms(10_000), true, false), Duty::Ask);
        vigil.asked(ms(10_000));
        assert_eq!(vigil.duty(ms(10_500), true, false), Duty::Wait(ms(11_000)));
        vigil.heard(ms(10_900));
        assert_eq!(vigil.duty(ms(11_000), true, false), Duty::Wait(ms(12_000)));
        assert_eq!(vigil.duty(ms(12_000), true, false), Duty::Ask);
        vigil.asked(ms(12_000));
        assert_eq!(vigil.duty(ms(14_000), true, false), Duty::GiveUp);
    }

    #[test]
    fn a_silent_process_whose_kernel_answers_is_spared_for_half_a_minute() {
        let mut vigil = Vigil::new(ms(0));
        let mut now = ms(0);
        let mut gave_up = Vec::new();
        assert_eq!(vigil.duty(now, true, true), Duty::Wait(ms(1_000)));
        loop {
            now += ms(500);
            match vigil.duty(now, true, true) {
                Duty::Ask => vigil.asked(now),
                Duty::Wait(until) => assert!(until > now && until <= now + ms(1_000), "somebody asks each second"),
                Duty::GiveUp => {
                    gave_up.push(now);
                    if !vigil.spare() {
                        break;
                    }
                }
            }
        }
        assert_eq!((gave_up[0], now), (SILENCE, SILENCE * 10));
        // A word ends all that.
        vigil.heard(now);
        assert_eq!(vigil.duty(now, true, true), Duty::Wait(now + ms(1_000)));
        assert_eq!(vigil.duty(now + SILENCE, true, true), Duty::GiveUp);
    }

    #[test]
    fn an_idle_one_is_asked_only_if_it_is_the_one() {
        let mut vigil = Vigil::new(ms(0));
        assert_eq!(vigil.duty(ms(60_000), false, false), Duty::Wait(Duration::MAX));
        assert_eq!(vigil.duty(ms(4_000), false, true), Duty::Wait(ms(5_000)));
        assert_eq!(vigil.duty(ms(5_000), false, true), Duty::Ask);
        vigil.asked(ms(5_000));
        assert_eq!(vigil.duty(ms(5_500), false, true), Duty::Wait(ms(6_000)));
        assert_eq!(vigil.duty(ms(8_000), false, true), Duty::GiveUp);
        vigil.heard(ms(8_000));
        assert_eq!(vigil.duty(ms(8_100), false, true), Duty::Wait(ms(13_000)));
    }

    #[test]
    fn what_has_begun_ends_or_goes_on_or_is_due() {
        let patience = ms(5_000);
        let mut begun = Begun::default();
        begun.fed(ms(1_000), 100, true, false);
        assert_eq!((begun.due(patience), begun.time(ms(9_000))), (None, ms(0)));
        // Bytes that keep coming do not put off the end, unless they are some.
        begun.fed(ms(2_000), 10, true, true);
        for at in 2..7 {
            begun.fed(ms(at * 1_000), 1_000, false, true);
        }
        assert_eq!(
            (begun.due(patience), begun.time(ms(6_000))),
            (Some(ms(7_000)), ms(4_000))
        );
        begun.fed(ms(6_000), NEWS, false, true);
        assert_eq!(begun.due(patience), Some(ms(11_000)));
        // Another one that begins has its own time, and so has one to which nobody listened.
        begun.fed(ms(8_000), 10, true, true);
        assert_eq!(begun.due(patience), Some(ms(13_000)));
        begun.forgive(ms(20_000));
        assert_eq!(begun.due(patience), Some(ms(25_000)));
        begun.fed(ms(21_000), 10, true, false);
        begun.forgive(ms(21_000));
        assert_eq!(begun.due(patience), None);
    }

    #[test]
    fn acknowledgements_wait_a_little_for_company() {
        let mut receipts = Receipts::default();
        receipts.arrived(ms(5), 100, false);
        assert!(!receipts.is_due(ms(6)) && receipts.is_owed());
        assert!(receipts.is_due(ms(15)));
        assert_eq!(receipts.say(), 1);
        assert!(!receipts.is_due(ms(10_000)) && !receipts.is_owed() && receipts.due_at().is_none());
        receipts.arrived(ms(20), ACK_BYTES, false);
        assert!(receipts.is_due(ms(20)));
        assert_eq!(receipts.say(), 2);
        receipts.heard(ms(30));
        assert_eq!(receipts.due_at(), Some(ms(530)));
        receipts.asked();
        assert!(receipts.is_due(ms(31)));
    }
}
