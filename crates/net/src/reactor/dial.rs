// SPDX-License-Identifier: Apache-2.0
//! Reaching a peer: all its addresses, staggered, until a handshake on one of them is complete.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use isthmus_transport::Peer;
use isthmus_wire::hello::Purpose;

use super::failure::Failure;
use super::handshake::{Handshake, Target};
use super::ladder::Rung;
use super::last_word;
use super::{Reactor, Task};
use crate::config::Reach;
use crate::link::PlainEvent;
use crate::socket::{self, Interest};
use isthmus_link::line::By;

/// Time given to an address before the next one is tried beside it.
const STAGGER: Duration = Duration::from_millis(200);
/// Wait before an address is tried again, doubled each time up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Wait before a peer is asked again to dial us.
const CALL_AGAIN: Duration = Duration::from_secs(3);

/// Refusals, within about 1.5 s, that tell that a process is gone and not only its connections.
const REFUSALS: u32 = 5;
/// The same, within about 7 s (dialling begins anew after [`Config::DIAL_TIME`](crate::Config::DIAL_TIME)), for a
/// process that we never reached but that reached us, and closed the connection: it may be behind a firewall that
/// refuses, but then it would have called again by now.
const MORE_REFUSALS: u32 = 8;

/// Where a peer was when the connection broke.
pub(super) enum LastSeen {
    Nowhere,
    /// It answered there.
    Listening(SocketAddr),
    /// It called from there.
    Calling(IpAddr),
}

/// A peer that is being dialled.
pub(super) struct Dial {
    way: Reach,
    /// A first connection, or a replacement for all that there were.
    purpose: Purpose,
    began: Duration,
    candidates: Vec<Candidate>,
    /// Addresses in the place table that are none.
    unusable: Vec<String>,
}

struct Candidate {
    address: SocketAddr,
    by: By,
    /// The attempt under way.
    attempt: Option<u64>,
    try_at: Duration,
    tries: u32,
    outcome: Failure,
}

impl Dial {
    fn new(way: Reach, purpose: Purpose, began: Duration, rungs: Vec<Rung>, unusable: Vec<String>) -> Self {
        let candidate = |(address, by, after)| Candidate {
            address,
            by,
            attempt: None,
            try_at: began + after,
            tries: 0,
            outcome: Failure::NotTried,
        };
        Self {
            way,
            purpose,
            began,
            candidates: rungs.into_iter().map(candidate).collect(),
            unusable,
        }
    }

    /// The next address that has not been tried need not wait any longer.
    fn hurry(&mut self, now: Duration) {
        let untried = self
            .candidates
            .iter_mut()
            .filter(|c| c.tries == 0 && c.attempt.is_none());
        if let Some(next) = untried.min_by_key(|c| c.try_at) {
            next.try_at = next.try_at.min(now);
        }
    }

    /// Where the peer listened, nobody does any more.
    fn is_refused(&self, last: &LastSeen) -> bool {
        let (there, refusals): (&dyn Fn(&&Candidate) -> bool, u32) = match last {
            LastSeen::Nowhere => return false,
            LastSeen::Listening(address) => (&|c| c.by == By::Direct && c.address == *address, REFUSALS),
            LastSeen::Calling(ip) => (
                &|c| c.by == By::Direct && c.address.ip().to_canonical() == *ip,
                MORE_REFUSALS,
            ),
        };
        let refused = |c: &Candidate| c.tries >= refusals && c.outcome.is_refused();
        self.purpose == Purpose::Resume && self.candidates.iter().find(there).is_some_and(refused)
    }

    /// For people: what was tried, and what might help.
    pub(super) fn explain(&self) -> String {
        format!("Tried {}. {}", self.report(), self.cure())
    }

    fn next_time(&self) -> Option<Duration> {
        self.candidates
            .iter()
            .filter(|c| c.attempt.is_none())
            .map(|c| c.try_at)
            .min()
    }

    /// What happened, address by address.
    fn report(&self) -> String {
        let mut out = String::new();
        for c in &self.candidates {
            let separator = if out.is_empty() { "" } else { "; " };
            let outcome = if c.attempt.is_some() && c.tries <= 1 {
                &Failure::NoAnswer
            } else {
                &c.outcome
            };
            let by = match c.by {
                By::Direct => "",
                By::Gateway => "through the gateway at ",
                By::Call => "asked to dial us, through the gateway at ",
            };
            let _ = write!(out, "{separator}{by}{} ({outcome})", c.address);
        }
        for text in &self.unusable {
            let separator = if out.is_empty() { "" } else { "; " };
            let _ = write!(out, "{separator}{text} (not an address, or no port)");
        }
        if out.is_empty() {
            "no address of it is known".into()
        } else {
            out
        }
    }

    /// The likeliest cure for what was seen.
    fn cure(&self) -> &'static str {
        let any = |is: fn(&Failure) -> bool| self.candidates.iter().any(|c| is(&c.outcome));
        let waiting = self.candidates.iter().any(|c| c.attempt.is_some());
        if any(Failure::is_about_certificates) {
            "Check the clocks of both machines: certificates are valid from one hour before the job began."
        } else if any(Failure::is_stranger) {
            "Something else listens there, or changes what passes: check address translation and proxies between the two."
        } else if waiting || any(Failure::is_silent) {
            "A firewall between the two probably drops connections: let TCP connections to the processes pass in one of the two directions, and set a port range if only some ports are open."
        } else {
            "Check that one of the two machines can reach the other: routes, firewalls, and whether the process still runs."
        }
    }
}

impl Reactor {
    /// Begins to dial, unless there is a connection or an attempt already. When a channel has lost its last connection
    /// it asks for another one with [`Purpose::Resume`]; then the peer is not `taken`.
    pub(super) fn dial(&mut self, peer: Peer, way: Reach, purpose: Purpose) {
        if self.taken.contains(&peer) || self.dials.contains_key(&peer) {
            return;
        }
        let (addresses, unusable) = self.places.candidates(peer);
        let rungs = match way {
            Reach::Tls => self.ladder.rungs(peer, addresses, STAGGER, purpose),
            _ => (0u32..)
                .zip(addresses)
                .map(|(i, a)| (a, By::Direct, STAGGER * i))
                .collect(),
        };
        let now = self.now();
        let dial = Dial::new(way, purpose, now, rungs, unusable);
        self.dials.insert(peer, dial);
        self.dial_timer(peer, now);
    }

    pub(super) fn dial_timers(&mut self, now: Duration) {
        let peers: Vec<Peer> = self.dials.keys().copied().collect();
        for peer in peers {
            self.dial_timer(peer, now);
        }
    }

    fn dial_timer(&mut self, peer: Peer, now: Duration) {
        let Some(dial) = self.dials.get(&peer) else { return };
        let end = dial.began + self.dial_time;
        if now >= end {
            return self.dial_failed(peer);
        }
        let due = |c: &Candidate| c.attempt.is_none() && c.try_at <= now;
        let due: Vec<usize> = dial
            .candidates
            .iter()
            .enumerate()
            .filter(|(_, c)| due(c))
            .map(|(i, _)| i)
            .collect();
        for index in due {
            self.attempt(peer, index, end);
        }
        let next = self.dials.get(&peer).and_then(Dial::next_time);
        self.alarm(next.map_or(end, |n| n.min(end)));
    }

    fn attempt(&mut self, peer: Peer, index: usize, deadline: Duration) {
        let Some(dial) = self.dials.get_mut(&peer) else { return };
        let candidate = &mut dial.candidates[index];
        candidate.tries += 1;
        let started = socket::connect(candidate.address)
            .map_err(Failure::from)
            .and_then(|socket| {
                let target = Target {
                    peer,
                    candidate: index,
                    way: dial.way,
                    by: candidate.by,
                    makes_way: false,
                };
                let handshake = Handshake::dial(socket, deadline, target, dial.purpose);
                let number = self.slots.insert(Task::Handshake(handshake));
                let Some(Task::Handshake(handshake)) = self.slots.get(number) else {
                    return Err(Failure::Bug("a task that was just added is not there"));
                };
                let added = handshake.socket().map(|s| self.poller.add(s, number, Interest::WRITE));
                match added {
                    Some(Ok(())) => Ok(number),
                    _ => {
                        self.slots.remove(number);
                        Err(Failure::Unwatched)
                    }
                }
            });
        match started {
            Ok(number) => candidate.attempt = Some(number),
            Err(reason) => self.attempt_failed((peer, index), reason),
        }
    }

    pub(super) fn attempt_failed(&mut self, (peer, index): (Peer, usize), reason: Failure) {
        let now = self.now();
        let Some(dial) = self.dials.get_mut(&peer) else { return };
        let candidate = &mut dial.candidates[index];
        candidate.attempt = None;
        candidate.outcome = reason;
        candidate.try_at = now + (FIRST_WAIT * (1 << (candidate.tries - 1).min(5))).min(LONGEST_WAIT);
        dial.hurry(now);
        if let Some(next) = dial.next_time() {
            self.alarm(next);
        }
        let Some(channel) = self.channels.get(&peer) else {
            return;
        };
        if channel.given_up {
            // It is told if it calls.
            return self.give_up_dial(peer);
        }
        let last = channel.last_seen();
        if let Some(dial) = self.dials.get(&peer).filter(|d| d.is_refused(&last)) {
            let report = dial.explain();
            self.still_away(peer, &report, true);
        }
    }

    /// The peer has been asked to dial us. Should nothing come of it, it is asked again.
    pub(super) fn attempt_asked(&mut self, (peer, index): (Peer, usize)) {
        let now = self.now();
        let Some(dial) = self.dials.get_mut(&peer) else { return };
        let candidate = &mut dial.candidates[index];
        candidate.attempt = None;
        candidate.outcome = Failure::Told;
        candidate.try_at = now + CALL_AGAIN;
        if let Some(next) = dial.next_time() {
            self.alarm(next);
        }
    }

    /// A peer that cannot reach us asks to be dialled.
    pub(super) fn called(&mut self, peer: Peer) {
        let channel = self.channels.get(&peer);
        let away = channel.is_some_and(|c| c.away.is_some());
        if channel.is_some_and(|c| c.given_up) {
            last_word::dial(self, peer);
        } else if !self.closing {
            let purpose = if away { Purpose::Resume } else { Purpose::First };
            self.dial(peer, Reach::Tls, purpose);
        }
    }

    /// The peer has a connection, or is not wanted any more.
    pub(super) fn give_up_dial(&mut self, peer: Peer) {
        let Some(dial) = self.dials.remove(&peer) else { return };
        for number in dial.candidates.iter().filter_map(|c| c.attempt) {
            self.forget(number);
        }
    }

    fn dial_failed(&mut self, peer: Peer) {
        let Some(dial) = self.dials.get(&peer) else { return };
        let reason = format!(
            "{} cannot be reached from {}: tried for {} s: {}. {}",
            self.places.name(peer),
            self.places.own_name(),
            self.dial_time.as_secs(),
            dial.report(),
            dial.cure()
        );
        let way = dial.way;
        self.give_up_dial(peer);
        if way == Reach::Tls && self.still_away(peer, &reason, false) {
            return;
        }
        if way == Reach::Tls && self.forget_unused(peer) {
            // Dialled only to be measured: whoever has something to say may try again.
            return;
        }
        self.taken.insert(peer);
        if way == Reach::Tls {
            self.lose(peer, reason);
            self.deliver();
        } else {
            self.early.remove(&peer);
            self.link.plain(PlainEvent::Failed { peer, reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rungs(addresses: [&str; 2]) -> Vec<Rung> {
        let each = (0u32..).zip(addresses);
        each.map(|(i, a)| (a.parse().unwrap(), By::Direct, STAGGER * i))
            .collect()
    }

    #[test]
    fn the_report_names_every_address() {
        let mut dial = Dial::new(
            Reach::Tls,
            Purpose::First,
            Duration::ZERO,
            rungs(["10.0.0.1:7", "[fd00::1]:7"]),
            vec!["home".into()],
        );
        dial.candidates[0].outcome = Failure::System(rustix::io::Errno::HOSTUNREACH);

        dial.candidates[1].attempt = Some(9);
        assert_eq!(
            dial.report(),
            "10.0.0.1:7 (No route to host (os error 113)); [fd00::1]:7 (no answer); home (not an address, or no port)"
        );
        assert!(dial.cure().contains("firewall"));
    }

    #[test]
    fn a_failure_hurries_the_next_address() {
        let mut dial = Dial::new(
            Reach::Tcp,
            Purpose::First,
            Duration::ZERO,
            rungs(["10.0.0.1:7", "10.0.0.2:7"]),
            Vec::new(),
        );
        let now = dial.began + Duration::from_millis(5);
        dial.candidates[0].tries = 1;
        dial.candidates[0].try_at = now + FIRST_WAIT;
        dial.hurry(now);
        assert_eq!(dial.next_time(), Some(now));
    }
}
