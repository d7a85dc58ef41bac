// SPDX-License-Identifier: Apache-2.0
//! Credit: bounds the memory that messages nobody has asked for take at a receiver.
//!
//! Each message that was not asked for (eager, announced, or a request to send) has a cost. A sender counts the cost
//! that it has sent and for which no credit came back; the receiver gives back the cost of a message when it has
//! matched, in portions of a eighth of the window, so that the traffic of credit is negligible. Above the window a
//! sender asks before it sends data that take memory of their own; above [`LIMIT`] it sends nothing new until credit
//! comes back.

/// Cost of a message without data: what its envelope takes at the receiver.
pub const ENVELOPE_COST: u64 = 128;

/// So many bytes find room within the envelope, and cost nothing more: to ask for them would save nothing.
pub const WITHIN: u64 = 64;

/// Above this much outstanding cost, data are only sent when asked for. A stream of messages should not get there, as a
/// request waits behind the data before it and then for an answer: a gap of a round trip. 8 MiB are what waits here (2
/// MiB), two portions of credit and a round trip of 40 ms at 1 Gbit/s.
pub const WINDOW: u64 = 8 << 20;

/// Above this much outstanding cost nothing new is sent: half a million envelopes. With what is [called
/// in](crate::calling) a sender takes 72 MiB at most.
pub const LIMIT: u64 = 64 << 20;

/// Cost of a message that brings so many bytes.
#[inline]
fn cost(bytes: u64) -> u64 {
    ENVELOPE_COST.saturating_add(if bytes > WITHIN { bytes } else { 0 })
}

/// Counts for one peer, both directions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Cost sent and not credited yet.
    outstanding: u64,
    /// Cost matched here and not given back yet.
    owed: u64,
    /// Cost of its messages that wait here unmatched.
    held: u64,
}

impl Account {
    /// Whether a message with this many bytes may be sent eagerly.
    #[inline]
    pub fn allows_eager(&self, bytes: u64) -> bool {
        let most = if bytes > WITHIN { WINDOW } else { LIMIT };
        self.outstanding + cost(bytes) <= most
    }

    /// Whether a request to send may be sent.
    #[inline]
    pub fn allows_request(&self) -> bool {
        self.outstanding + ENVELOPE_COST <= LIMIT
    }

    /// A message was sent; `bytes` of data with it.
    #[inline]
    pub fn sent(&mut self, bytes: u64) {
        self.outstanding += cost(bytes);
    }

    /// The receiver gave credit back. Returns false if it gave more than it had been lent (a broken peer).
    pub fn credited(&mut self, cost: u64) -> bool {
        let fits = cost <= self.outstanding;
        self.outstanding = self.outstanding.saturating_sub(cost);
        fits
    }

    /// A message matched here; `bytes` of data had come with it. Returns the credit to give back now, if any.
    #[inline]
    pub fn matched(&mut self, bytes: u64) -> Option<u64> {
        self.owed += cost(bytes);
        (self.owed >= WINDOW / 8).then(|| std::mem::take(&mut self.owed))
    }

    /// A message begins to wait here unmatched; `bytes` of data with it. False if the sender exceeds its credit.
    pub fn hold(&mut self, bytes: u64) -> bool {
        let held = self.held.saturating_add(cost(bytes));
        let fits = held <= LIMIT;
        if fits {
            self.held = held;
        }
        fits
    }

    /// A message that was [held](Self::hold) waits no longer.
    pub fn let_go(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(cost(bytes));
    }
}

/// Counts for the frames of one protocol beside messages, to and from one peer. All of them are charged, those that
/// say little too, from when they leave until their receiver is done with them: what may wait there is at most
/// [`WINDOW`]. Credit comes back in portions of an eighth of it; a frame must fit into the rest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    /// Cost sent and not credited yet.
    outstanding: u64,
    /// Cost of its frames that this process is done with, and that was not given back yet.
    owed: u64,
    /// Cost of its frames that wait here.
    held: u64,
}

impl Budget {
    /// Whether a frame with this many bytes may be sent.
    #[inline]
    pub fn allows(&self, bytes: u64) -> bool {
        self.outstanding + cost(bytes) <= WINDOW
    }

    /// A frame was sent.
    #[inline]
    pub fn sent(&mut self, bytes: u64) {
        self.outstanding += cost(bytes);
    }

    /// The receiver gave credit back. False if it gave more than it had been lent (a broken peer).
    pub fn credited(&mut self, cost: u64) -> bool {
        let fits = cost <= self.outstanding;
        self.outstanding = self.outstanding.saturating_sub(cost);
        fits
    }

    /// A frame has come. False if the sender exceeds its credit: what it has lent here is never more than this process
    /// knows of.
    #[inline]
    pub fn arrives(&mut self, bytes: u64) -> bool {
        let lent = self.held.saturating_add(self.owed).saturating_add(cost(bytes));
        let fits = lent <= WINDOW;
        if fits {
            self.held += cost(bytes);
        }
        fits
    }

    /// This process is done with a frame of so many bytes that has [arrived](Self::arrives). The credit to give back
    /// now, if any.
    #[inline]
    pub fn done(&mut self, bytes: u64) -> Option<u64> {
        let cost = cost(bytes).min(self.held);
        self.held -= cost;
        self.owed += cost;
        (self.owed >= WINDOW / 8).then(|| std::mem::take(&mut self.owed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_protocol_never_stop_while_their_receiver_is_done_with_them() {
        let (mut sender, mut receiver) = (Budget::default(), Budget::default());
        for round in 0..10_000_u64 {
            let bytes = round * 31 % (1 << 18);
            assert!(sender.allows(bytes), "round {round}");
            sender.sent(bytes);
            assert!(receiver.arrives(bytes), "round {round}");
            if let Some(credit) = receiver.done(bytes) {
                assert!(sender.credited(credit));
            }
        }
    }

    #[test]
    fn frames_that_wait_are_bounded_and_one_too_many_is_found_out() {
        let (mut sender, mut receiver) = (Budget::default(), Budget::default());
        let mut frames = 0;
        while sender.allows(0) {
            sender.sent(0);
            assert!(receiver.arrives(0));
            frames += 1;
        }
        assert_eq!(frames, WINDOW / ENVELOPE_COST);
        assert!(!receiver.arrives(0) && !receiver.arrives(u64::MAX));
        let credit: u64 = (0..frames).filter_map(|_| receiver.done(0)).sum();
        assert!(credit > WINDOW / 8 * 7 && sender.credited(credit) && sender.allows(WINDOW / 2));
        assert_eq!(receiver.done(1 << 40), None, "nothing is held any more");
        assert!(!sender.credited(WINDOW));
    }

    #[test]
    fn the_window_never_closes_for_good() {
        let (mut sender, mut receiver) = (Account::default(), Account::default());
        for round in 0..100_000_u64 {
            let bytes = round % 5000;
            assert!(sender.allows_eager(bytes), "round {round}");
            sender.sent(bytes);
            if let Some(credit) = receiver.matched(bytes) {
                assert!(sender.credited(credit));
            }
        }
    }

    #[test]
    fn what_lies_within_its_envelope_is_sent_up_to_the_limit() {
        let mut sender = Account::default();
        let mut receiver = Account::default();
        while sender.allows_eager(WITHIN) {
            sender.sent(WITHIN);
            assert!(receiver.hold(WITHIN));
        }
        assert!(!sender.allows_request() && !receiver.hold(0));
        let mut credit = 0;
        for _ in 0..LIMIT / ENVELOPE_COST {
            receiver.let_go(WITHIN);
            credit += receiver.matched(WITHIN).unwrap_or(0);
        }
        assert!(sender.credited(credit) && sender.allows_eager(WITHIN + 1));
    }

    #[test]
    fn unmatched_messages_are_bounded() {
        let mut sender = Account::default();
        let mut data = 0;
        while sender.allows_eager(1000) {
            sender.sent(1000);
            data += 1000;
        }
        assert!(data <= WINDOW && sender.allows_request());
        let requests = (0..)
            .take_while(|_| sender.allows_request().then(|| sender.sent(0)).is_some())
            .count();
        assert!((requests as u64) * ENVELOPE_COST <= LIMIT);
        assert!(!sender.credited(u64::MAX));
    }
}
