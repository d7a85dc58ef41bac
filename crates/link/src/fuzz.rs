// SPDX-License-Identifier: Apache-2.0
//! Bodies of fuzz targets: what may happen to the machines of this room, in any order, said by bytes.

mod handshake;

use core::net::{Ipv4Addr, SocketAddr};
use std::fmt;
use std::time::{Duration, Instant};

use isthmus_wire::hello::Purpose;
use isthmus_wire::segment::Kind;

use crate::channel::{Begun, ConnectionId, Receipts};
use crate::dial::{Cause, Dial};
use crate::door::{Door, MAX_HANDSHAKES, Stranger};
use crate::gauge::{Gauge, Round, Rounds, TRAINS, Turn};
use crate::ladder;
use crate::life::{Called, Carrier, Down, Life, MAX_STREAMS, Moment, Opening, State};
use crate::line::{By, Line, Via};
use crate::meter::Read;
use crate::sharing::There;

pub use handshake::{End, Key, Sum, handshake};

/// Takes what is to happen from bytes.
struct Orders<'a>(&'a [u8]);

impl Orders<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Zero when there are no more.
    fn number(&mut self) -> u64 {
        let Some((bytes, rest)) = self.0.split_first_chunk() else {
            return u64::from(self.next().unwrap_or_default());
        };
        self.0 = rest;
        u64::from_le_bytes(*bytes)
    }

    /// Up to about a minute.
    fn time(&mut self) -> Duration {
        let order = u64::from(self.next().unwrap_or_default());
        Duration::from_millis(order * order)
    }
}

/// What the other end says to measure, and says it has, from this moment on: a byte each for what, then a number.
pub fn gauge(bytes: &[u8], start: Instant) {
    let (mut orders, mut gauge) = (Orders(bytes), Gauge::default());
    let (mut rounds, mut now, mut sent) = (Rounds::default(), Duration::ZERO, 0);
    while let Some(order) = orders.next() {
        let number = orders.number();
        let at = start + now;
        match order % 9 {
            0 => now += Duration::from_millis(number % 60_000),
            1 => drop(gauge.ask(at)),
            2 => drop(gauge.handle_answer(number % 4, at)),
            3 => drop(gauge.begin_trains()),
            4 => drop(gauge.handle_train(number, at)),
            5 => {
                // As much as one reads at once.
                let read = Read {
                    bytes: number % (1 << 30),
                    emptied: order & 0x80 > 0,
                };
                gauge.meter.read(at, read, order & 0x40 > 0, order & 0x20 > 0);
            }
            6 => {
                if gauge.serve(number).is_some() {
                    let train: u64 = std::iter::from_fn(|| gauge.next_piece()).sum();
                    assert!(train <= TRAINS[TRAINS.len() - 1]);
                    sent += 1;
                }
                assert!(sent <= 8, "a peer gets a few trains");
            }
            7 => {
                let receive = number & 1 > 0;
                rounds.add([Round {
                    peer: number % 5,
                    receive,
                }]);
            }
            _ => {
                rounds.handle_wanted(number % 5, number);
                rounds.handle_timeout(now);
                if let Turn::Serve(peer, _) = rounds.poll_turn(now, |peer| peer % 2 == 0) {
                    assert!(rounds.is_with(peer, false));
                }
            }
        }
        let estimate = gauge.meter.estimate();
        assert!(estimate.round_trip <= estimate.median);
    }
}

/// A connection that does what the bytes say.
struct Thing {
    line: Line,
    receipts: Receipts,
    begun: Begun,
    answers: bool,
}

impl Carrier for Thing {
    fn line(&self) -> &Line {
        &self.line
    }
    fn line_mut(&mut self) -> &mut Line {
        &mut self.line
    }
    fn receipts(&mut self) -> &mut Receipts {
        &mut self.receipts
    }
    fn begun(&mut self) -> &mut Begun {
        &mut self.begun
    }
    fn is_between(&self) -> bool {
        self.answers
    }
    fn is_flushed(&self) -> bool {
        true
    }
    fn reaches(&self) -> bool {
        self.answers
    }
    fn say(&mut self, _: Kind) {}
}

/// What happens to a channel: connections that come, speak, fall silent and break, time, ends. A byte each for what,
/// and one or two more.
pub fn life(bytes: &[u8]) {
    let (mut orders, mut life, mut now) = (Orders(bytes), Life::default(), Duration::ZERO);
    while let Some(order) = orders.next() {
        let detail = orders.next().unwrap_or_default();
        let id = life
            .lines
            .keys()
            .nth(usize::from(detail) % life.lines.len().max(1))
            .copied();
        match order % 10 {
            0 => now += orders.time(),
            1 => drop(life.handle_wanted()),
            2 => {
                let was_away = life.away().is_some();
                let called = life.handle_called();
                assert_eq!(called == Called::Dial(Purpose::Resume), was_away);
            }
            3 => open(&mut life, detail, now),
            4 => {
                let worse = id.map(|id| life.handle_hello(id)).unwrap_or_default();
                worse.into_iter().for_each(|id| lose(&mut life, id, detail, now));
            }
            5 => id.into_iter().for_each(|id| lose(&mut life, id, detail, now)),
            6 => upkeep(&mut life, detail, now),
            7 => drop(life.handle_idle()),
            8 => {
                let many = usize::from(detail);
                while life.room_for(many).is_some() {
                    assert!(!life.lines.is_empty(), "beside what?");
                    life.handle_coming();
                }
                let there = There {
                    direct: detail & 1 > 0,
                    gateway: detail & 2 > 0,
                };
                assert!(life.missing_kinds(now, there).len() <= 2);
                life.wants_better(now, detail & 4 > 0, detail & 8 > 0);
                life.handle_not_coming();
            }
            _ if detail == 0 => drop(life.handle_end(order & 0x80 > 0)),
            _ => life.forgive(now),
        }
        assert!(life.lines.len() <= MAX_STREAMS);
        assert!(
            !life.has_ended() || life.lines.is_empty(),
            "what has ended has no connections"
        );
        assert_eq!(*life.state() == State::Open, life.is_open() && !life.lines.is_empty());
        assert_eq!(life.shares(life.bands(true, true)).len(), life.lines.len());
    }
}

fn open(life: &mut Life<Thing>, detail: u8, now: Duration) {
    const PURPOSES: [Purpose; 6] = [
        Purpose::First,
        Purpose::More,
        Purpose::Resume,
        Purpose::Better,
        Purpose::Direct,
        Purpose::Gateway,
    ];
    let purpose = PURPOSES[usize::from(detail) % PURPOSES.len()];
    let dialled = (detail & 0x40 > 0).then_some(By::Gateway);
    if !life.admits(purpose, detail & 0x80 > 0, now) {
        return;
    }
    for id in life.replaced(purpose) {
        life.lines.remove(&id);
    }
    let id = life.next_id();
    let thing = Thing {
        line: Line::new(purpose, Via::of(purpose, dialled, || Via::Unknown), now),
        receipts: Receipts::default(),
        begun: Begun::default(),
        answers: detail & 0x20 > 0,
    };
    let how = Opening {
        dialled: dialled.is_some(),
        address: Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1)),
        by_gateway: false,
    };
    let farewell = *life.state() == State::Farewell;
    life.handle_opened(id, thing, how);
    assert!(farewell || *life.state() == State::Open);
}

fn lose(life: &mut Life<Thing>, id: ConnectionId, detail: u8, now: Duration) {
    let end = life.end_of(id, Down::Ended("it was closed"));
    life.lines.remove(&id);
    let gone = life.handle_lost(end, "it was closed".to_owned(), detail & 0x80 > 0, now);
    if gone == crate::life::Gone::End {
        life.handle_end(false);
    }
}

fn upkeep(life: &mut Life<Thing>, detail: u8, now: Duration) {
    for thing in life.lines.values_mut().filter(|_| detail & 1 > 0) {
        thing.line.vigil.heard(now);
        thing.begun.fed(now, 10, detail & 2 > 0, detail & 4 > 0);
        thing.receipts.heard(now);
    }
    let moment = Moment {
        now,
        patience: Duration::from_secs(60),
        listens: detail & 8 > 0,
        unended: Duration::ZERO,
    };
    if let crate::life::Upkeep::Connections { dead, .. } = life.handle_timeout(moment, |_| 1, |_| true) {
        dead.into_iter().for_each(|(id, _)| lose(life, id, detail, now));
    }
    let _ = life.handle_unreached(now, moment.patience, detail & 0x10 > 0);
}

/// Why an attempt came to nothing.
#[derive(Debug)]
struct Why(u8);

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cause {}", self.0)
    }
}

impl Cause for Why {
    fn is_refused(&self) -> bool {
        self.0 & 1 > 0
    }
    fn is_silent(&self) -> bool {
        self.0 & 2 > 0
    }
    fn is_about_certificates(&self) -> bool {
        self.0 & 4 > 0
    }
    fn is_stranger(&self) -> bool {
        self.0 & 8 > 0
    }
}

/// What comes of attempts to reach a peer, and who comes in by itself: a byte each for what, and one more.
pub fn reaching(bytes: &[u8]) {
    let (mut orders, mut door, mut now) = (Orders(bytes), Door::default(), Duration::ZERO);
    let addresses = (1..4).map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    let mut dial = Dial::new(
        Purpose::Resume,
        now,
        Duration::from_secs(20),
        ladder::direct(addresses),
        Vec::new(),
    );
    let (mut attempts, mut number) = (0, 0);
    while let Some(order) = orders.next() {
        let detail = orders.next().unwrap_or_default();
        match order % 4 {
            0 => now += orders.time().min(Duration::from_secs(1)),
            1 if detail & 1 > 0 => dial.handle_failed(usize::from(detail >> 1), Why(order), now),
            1 => dial.handle_told(usize::from(detail >> 1), now),
            2 => {
                while let Some(attempt) = dial.poll_attempt(now) {
                    attempts += 1;
                    dial.handle_begun(attempt.candidate, attempts);
                }
                assert!(dial.is_over(now) || dial.poll_timeout() > now);
            }
            _ => {
                let how = |n: u64| match n % 4 {
                    0 if detail & 1 > 0 => Stranger::Gone,
                    1 => Stranger::Speaks,
                    _ => Stranger::Silent,
                };
                door.make_room(how);
                door.handle_in(number);
                number += 1;
                assert!(door.waiting() <= MAX_HANDSHAKES);
                if detail == 0 {
                    door.handle_exhausted(now);
                }
                let opened = door.opens(now) && detail & 2 > 0;
                assert!(door.handle_opened(now, opened).is_none_or(|at| at > now));
            }
        }
        assert!(!dial.explain().is_empty());
    }
    let orders = bytes.len() as u64;
    assert!(attempts <= 3 * (orders + 1), "{attempts} attempts for {orders} orders");
}
