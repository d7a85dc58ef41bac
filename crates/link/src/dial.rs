// SPDX-License-Identifier: Apache-2.0
//! Reaching a peer: all its addresses by all ways, staggered, until a handshake on one of them is complete.
//!
//! ```text
//!   poll_attempt ──> one begins ──> handle_begun ──┬──> handle_failed ──> waits, longer each time
//!        ^                                         ├──> handle_told   ──> waits for the peer to call
//!        └────────── poll_timeout <────────────────┘    (a connection that is proven ends the dialling)
//! ```

use core::net::{IpAddr, SocketAddr};
use std::fmt::{self, Write as _};
use std::time::Duration;

use isthmus_wire::hello::Purpose;

use crate::ladder::Rung;
use crate::line::By;

/// Wait before an address is tried again, doubled each time up to [`LONGEST_WAIT`]: five times in the first 1.5 s, for
/// a process that is about to listen, and then so seldom that nobody takes it for an attack.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Wait before a peer is asked again to dial us.
const CALL_AGAIN: Duration = Duration::from_secs(3);

/// Refusals, within about 1.5 s, that tell that a process is gone and not only its connections.
const REFUSALS: u32 = 5;
/// The same, within about 7 s (dialling begins anew when its time is over), for a process that we never reached but
/// that reached us, and closed the connection: it may be behind a firewall that refuses, but then it would have called
/// again by now.
const MORE_REFUSALS: u32 = 8;

/// Why an attempt came to nothing, as whoever made it knows.
pub trait Cause: fmt::Display {
    /// Nobody listens at the address.
    fn is_refused(&self) -> bool;
    /// Packets vanish on the way.
    fn is_silent(&self) -> bool;
    /// A certificate was not accepted, here or there.
    fn is_about_certificates(&self) -> bool;
    /// Somebody else answers, or something changes what passes.
    fn is_stranger(&self) -> bool;
}

/// Where a peer was when the connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastSeen {
    /// Nobody knows, or it may call again.
    Nowhere,
    /// It answered there.
    Listening(SocketAddr),
    /// It called from there, and has ended the connection.
    Calling(IpAddr),
}

/// One attempt that is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// By which its end is told.
    pub candidate: usize,
    /// Where to connect.
    pub address: SocketAddr,
    /// What it goes by.
    pub by: By,
    /// By then the handshake is complete or has failed.
    pub deadline: Duration,
}

/// A peer that is being dialled.
#[derive(Debug)]
pub struct Dial<C> {
    /// A first connection, or a replacement for all that there were.
    purpose: Purpose,
    end: Duration,
    candidates: Vec<Candidate<C>>,
    /// Addresses that are none, as they were told.
    unusable: Vec<String>,
}

#[derive(Debug)]
struct Candidate<C> {
    address: SocketAddr,
    by: By,
    progress: Progress,
    tries: u32,
    outcome: Outcome<C>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The next attempt begins then.
    Waits(Duration),
    /// Whoever makes it has not said how it names it.
    Begins,
    /// The attempt with this name is under way.
    UnderWay(u64),
}

#[derive(Debug)]
enum Outcome<C> {
    NotTried,
    /// The peer was asked to dial us and has not.
    Told,
    Failed(C),
}

impl<C: Cause> Dial<C> {
    /// One that begins now and goes on for `patience`. `unusable`: addresses that are none, for the report.
    pub fn new(purpose: Purpose, now: Duration, patience: Duration, rungs: Vec<Rung>, unusable: Vec<String>) -> Self {
        let candidate = |rung: Rung| Candidate {
            address: rung.address,
            by: rung.by,
            progress: Progress::Waits(now + rung.after),
            tries: 0,
            outcome: Outcome::NotTried,
        };
        Self {
            purpose,
            end: now + patience,
            candidates: rungs.into_iter().map(candidate).collect(),
            unusable,
        }
    }

    /// What the connection is for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Whether the time for dialling is over.
    pub fn is_over(&self, now: Duration) -> bool {
        now >= self.end
    }

    /// The next attempt that is due. Whoever takes it says at once whether it has begun or failed.
    pub fn poll_attempt(&mut self, now: Duration) -> Option<Attempt> {
        let deadline = self.end;
        let all = self.candidates.iter_mut().enumerate();
        let (candidate, due) = all
            .into_iter()
            .find(|(_, c)| c.waits_until().is_some_and(|at| at <= now))?;
        due.progress = Progress::Begins;
        due.tries += 1;
        Some(Attempt {
            candidate,
            address: due.address,
            by: due.by,
            deadline,
        })
    }

    /// The attempt is under way by this name.
    pub fn handle_begun(&mut self, candidate: usize, name: u64) {
        if let Some(candidate) = self.candidates.get_mut(candidate) {
            candidate.progress = Progress::UnderWay(name);
        }
    }

    /// The attempt has come to nothing. The next address that has not been tried need not wait any longer.
    pub fn handle_failed(&mut self, candidate: usize, cause: C, now: Duration) {
        let Some(candidate) = self.candidates.get_mut(candidate) else {
            return;
        };
        let doubled = FIRST_WAIT * (1 << candidate.tries.saturating_sub(1).min(5));
        candidate.progress = Progress::Waits(now + doubled.min(LONGEST_WAIT));
        candidate.outcome = Outcome::Failed(cause);
        let untried = self.candidates.iter_mut().filter(|c| c.tries == 0);
        if let Some(next) = untried.min_by_key(|c| c.waits_until()) {
            next.progress = Progress::Waits(next.waits_until().map_or(now, |at| at.min(now)));
        }
    }

    /// The peer has been asked to dial us. Should nothing come of it, it is asked again.
    pub fn handle_told(&mut self, candidate: usize, now: Duration) {
        if let Some(candidate) = self.candidates.get_mut(candidate) {
            candidate.progress = Progress::Waits(now + CALL_AGAIN);
            candidate.outcome = Outcome::Told;
        }
    }

    /// When there is something to do at the latest.
    pub fn poll_timeout(&self) -> Duration {
        let next = self.candidates.iter().filter_map(Candidate::waits_until);
        next.fold(self.end, Duration::min)
    }

    /// Names of the attempts that are under way.
    pub fn under_way(&self) -> impl Iterator<Item = u64> {
        self.candidates.iter().filter_map(|c| match c.progress {
            Progress::UnderWay(name) => Some(name),
            Progress::Waits(_) | Progress::Begins => None,
        })
    }

    /// Where the peer listened, nobody does any more.
    pub fn is_refused(&self, last: LastSeen) -> bool {
        let refusals = match last {
            LastSeen::Nowhere => return false,
            LastSeen::Listening(_) => REFUSALS,
            LastSeen::Calling(_) => MORE_REFUSALS,
        };
        let there = |c: &&Candidate<C>| match last {
            LastSeen::Nowhere => false,
            LastSeen::Listening(address) => c.address == address,
            LastSeen::Calling(ip) => c.address.ip().to_canonical() == ip,
        };
        let mut direct = self.candidates.iter().filter(|c| c.by == By::Direct);
        self.purpose == Purpose::Resume
            && direct.find(there).is_some_and(|c| {
                let refused = matches!(&c.outcome, Outcome::Failed(cause) if cause.is_refused());
                c.tries >= refusals && refused
            })
    }

    /// For people: what was tried, and what might help.
    pub fn explain(&self) -> String {
        format!("Tried {}. {}", self.report(), self.cure())
    }

    /// What happened, address by address.
    pub fn report(&self) -> String {
        let mut out = String::new();
        for c in &self.candidates {
            let separator = if out.is_empty() { "" } else { "; " };
            let by = match c.by {
                By::Direct => "",
                By::Gateway => "through the gateway at ",
                By::Call => "asked to dial us, through the gateway at ",
            };
            let _ = write!(out, "{separator}{by}{} (", c.address);
            let _ = match &c.outcome {
                _ if c.is_under_way() && c.tries <= 1 => write!(out, "no answer)"),
                Outcome::NotTried => write!(out, "not tried)"),
                Outcome::Told => write!(out, "it was told, and nothing came)"),
                Outcome::Failed(cause) => write!(out, "{cause})"),
            };
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
    pub fn cure(&self) -> &'static str {
        let any = |is: fn(&C) -> bool| {
            let mut all = self.candidates.iter();
            all.any(|c| matches!(&c.outcome, Outcome::Failed(cause) if is(cause)))
        };
        let waiting = self.candidates.iter().any(Candidate::is_under_way);
        if any(C::is_about_certificates) {
            "Check the clocks of both machines: certificates are valid from one hour before the job began."
        } else if any(C::is_stranger) {
            "Something else listens there, or changes what passes: check address translation and proxies between the two."
        } else if waiting || any(C::is_silent) {
            "A firewall between the two probably drops connections: let TCP connections to the processes pass in one of the two directions, and set a port range if only some ports are open."
        } else {
            "Check that one of the two machines can reach the other: routes, firewalls, and whether the process still runs."
        }
    }
}

impl<C> Candidate<C> {
    fn waits_until(&self) -> Option<Duration> {
        match self.progress {
            Progress::Waits(at) => Some(at),
            Progress::Begins | Progress::UnderWay(_) => None,
        }
    }

    fn is_under_way(&self) -> bool {
        self.waits_until().is_none()
    }
}

#[cfg(test)]
mod tests;
