// SPDX-License-Identifier: Apache-2.0
//! Two processes at different sites and the network between them, in virtual time. Everything that decides is the
//! library's; here are sockets that are none, and the doing of what is decided. The same world comes out of the same
//! orders and seed, event by event.

mod end;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use isthmus_link::channel::ConnectionId;
use isthmus_link::line::By;
use isthmus_wire::hello::Purpose;

pub(crate) use end::{End, Why};

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Each process by itself.
pub(crate) fn address_of(end: usize) -> SocketAddr {
    SocketAddr::new([10, 0, 0, end as u8].into(), 7)
}

/// What stands for the other one.
pub(crate) fn gateway() -> SocketAddr {
    SocketAddr::new([10, 0, 0, 9].into(), 9)
}

/// What the network brings to one of the two.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Somebody wants to connect.
    Knock,
    /// Nobody listens.
    Refused,
    /// The handshake has come so far that this end knows the other.
    Greeting,
    /// The other end uses the connection.
    Used,
    Bytes(Vec<u8>),
    /// The other end has closed it.
    Closed,
    /// The link has sent on what it had of this direction, named by who sends.
    Sent,
}

/// When, as which, on which connection, to which end, what.
type Due = (Duration, u64, u64, usize, Event);

/// What waits before the link, of one direction: connections have their turns.
#[derive(Default)]
struct Queue {
    of: BTreeMap<u64, VecDeque<Vec<u8>>>,
    last: u64,
    busy: bool,
}

impl Queue {
    fn next(&mut self) -> Option<(u64, Vec<u8>)> {
        let after = self.of.range(self.last + 1..).next().or_else(|| self.of.iter().next());
        self.last = *after?.0;
        let pieces = self.of.get_mut(&self.last)?;
        let piece = pieces.pop_front()?;
        if pieces.is_empty() {
            self.of.remove(&self.last);
        }
        Some((self.last, piece))
    }
}

/// A connection, or an attempt to make one.
struct Connection {
    dialler: usize,
    purpose: Purpose,
    by: By,
    /// At each end: the attempt by its candidate, then the connection.
    at: [Option<ConnectionId>; 2],
    candidate: usize,
    open: bool,
    /// Next byte of each direction is not there before.
    not_before: [Duration; 2],
}

/// Random numbers for those who want them (Knuth's MMIX generator).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) ends: [End; 2],
    events: BinaryHeap<Reverse<Due>>,
    connections: BTreeMap<u64, Connection>,
    number: u64,
    /// One way.
    pub(crate) delay: Duration,
    /// Bytes per second, each way; none: as many as there are.
    pub(crate) rate: Option<u64>,
    /// One piece of so many is lost on its way, and sent again by TCP; zero: none is.
    pub(crate) loss: u64,
    chance: Chance,
    queues: [Queue; 2],
    /// Bytes of each end that still pass; the others vanish, as in something that passes on the words of TCP alone.
    pub(crate) left: [usize; 2],
    /// Packets pass. While they do not TCP sends them again and again.
    pub(crate) up: bool,
    /// The process is there.
    pub(crate) lives: [bool; 2],
    /// Who is reached at its own address; the others drop what comes.
    pub(crate) reached: [bool; 2],
    /// What came to pass, to be compared.
    pub(crate) trace: Vec<String>,
}

impl World {
    /// Where both can be dialled.
    pub(crate) fn new(delay: Duration, patience: Duration) -> Self {
        Self {
            rate: None,
            loss: 0,
            chance: Chance(1),
            queues: Default::default(),
            left: [usize::MAX; 2],
            now: Duration::ZERO,
            ends: [0, 1].map(|me| End::new(me, patience)),
            events: BinaryHeap::new(),
            connections: BTreeMap::new(),
            number: 0,
            delay,
            up: true,
            lives: [true; 2],
            reached: [true; 2],
            trace: Vec::new(),
        }
    }

    /// Where a link of this rate loses one piece of so many.
    pub(crate) fn over(self, rate: u64, loss: u64, seed: u64) -> Self {
        let chance = Chance(seed);
        Self {
            rate: Some(rate),
            loss,
            chance,
            ..self
        }
    }

    fn say(&mut self, what: String) {
        self.trace.push(format!("{:?} {what}", self.now));
    }

    fn post(&mut self, after: Duration, connection: u64, to: usize, event: Event) {
        let Some(known) = self.connections.get_mut(&connection) else {
            return;
        };
        // Nothing overtakes on a connection.
        let at = (self.now + after).max(known.not_before[to]);
        known.not_before[to] = at;
        self.number += 1;
        self.events.push(Reverse((at, self.number, connection, to, event)));
    }

    pub(crate) fn connect(&mut self, dialler: usize, to: (SocketAddr, By), candidate: usize, purpose: Purpose) -> u64 {
        let (address, by) = to;
        self.number += 1;
        let number = self.number;
        let connection = Connection {
            dialler,
            purpose,
            by,
            at: [None; 2],
            candidate,
            open: true,
            not_before: [Duration::ZERO; 2],
        };
        self.connections.insert(number, connection);
        let answers = by == By::Gateway || self.reached[1 - dialler];
        self.say(format!("{dialler} dials {address} for {purpose:?}"));
        if answers {
            self.post(self.delay, number, 1 - dialler, Event::Knock);
        }
        number
    }

    /// One end closes it.
    pub(crate) fn close(&mut self, connection: u64, by: usize) {
        if self.connections.get(&connection).is_some_and(|c| c.open) {
            self.post(self.delay, connection, 1 - by, Event::Closed);
        }
    }

    pub(crate) fn send(&mut self, connection: u64, from: usize, mut bytes: Vec<u8>) {
        bytes.truncate(self.left[from]);
        self.left[from] -= bytes.len();
        if bytes.is_empty() {
            return;
        }
        if self.rate.is_none() {
            return self.post(self.delay, connection, 1 - from, Event::Bytes(bytes));
        }
        let queue = &mut self.queues[from];
        queue.of.entry(connection).or_default().push_back(bytes);
        if !queue.busy {
            self.serve(from);
        }
    }

    /// The link takes the next piece of what this end says.
    fn serve(&mut self, from: usize) {
        let next = self.queues[from].next();
        self.queues[from].busy = next.is_some();
        let Some((connection, bytes)) = next else { return };
        let rate = self.rate.unwrap_or(u64::MAX);
        let time = Duration::from_secs_f64(bytes.len() as f64 / rate as f64);
        let lost = self.loss > 0 && self.chance.below(self.loss) == 0;
        // Its receiver tells of it a round trip later.
        let again = if lost { self.delay * 2 } else { Duration::ZERO };
        self.post(time + self.delay + again, connection, 1 - from, Event::Bytes(bytes));
        self.number += 1;
        self.events
            .push(Reverse((self.now + time, self.number, 0, from, Event::Sent)));
    }

    /// All connections end at once, for both; what is under way is gone.
    pub(crate) fn reset(&mut self) {
        self.say("reset".to_owned());
        self.events.clear();
        self.queues = Default::default();
        for (number, connection) in std::mem::take(&mut self.connections) {
            for end in 0..2 {
                self.lost(number, &connection, end, "it was reset");
            }
        }
    }

    /// The process is no more: its kernel says so.
    pub(crate) fn kill(&mut self, end: usize) {
        self.lives[end] = false;
        let all: Vec<u64> = self.connections.keys().copied().collect();
        all.into_iter().for_each(|number| self.close(number, end));
    }

    fn lost(&mut self, number: u64, connection: &Connection, end: usize, why: &str) {
        if !self.lives[end] {
            return;
        }
        match connection.at[end] {
            Some(id) => End::connection_down(self, end, id, isthmus_link::life::Down::Ended(why)),
            None if connection.dialler == end => {
                End::attempt_failed(
                    self,
                    end,
                    (number, connection.candidate),
                    connection.purpose,
                    Why::Closed,
                );
            }
            None => {}
        }
    }

    /// Goes on until then, or until it is so.
    pub(crate) fn until(&mut self, end: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        while self.now < end {
            if is_so(self) {
                return true;
            }
            let event = self.events.peek().filter(|_| self.up).map(|Reverse((at, ..))| *at);
            let alarms = (0..2).filter(|i| self.lives[*i]).map(|i| self.ends[i].alarm);
            let next = alarms.chain(event).fold(end, Duration::min);
            self.now = next.max(self.now);
            while self.up && self.events.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
                let Some(Reverse((_, _, connection, to, event))) = self.events.pop() else {
                    break;
                };
                self.happen(connection, to, event);
            }
            for i in 0..2 {
                if self.lives[i] {
                    End::turn(self, i);
                }
            }
        }
        is_so(self)
    }

    fn happen(&mut self, number: u64, to: usize, event: Event) {
        if event == Event::Sent {
            return self.serve(to);
        }
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let (dialler, id) = (connection.dialler, connection.at[to]);
        // The kernel of a process that has ended answers for it.
        if !self.lives[to] {
            if event == Event::Knock {
                self.post(self.delay, number, 1 - to, Event::Refused);
            }
            return;
        }
        match event {
            // Then TLS: both know each other after two more round trips.
            Event::Knock => self.post(self.delay * 4, number, to, Event::Greeting),
            Event::Refused => {
                let (candidate, purpose) = (connection.candidate, connection.purpose);
                self.connections.remove(&number);
                End::attempt_failed(self, to, (number, candidate), purpose, Why::Refused);
            }
            Event::Greeting => {
                let deciding = to < dialler && !connection.purpose.is_more();
                if self.opens(number, to, deciding) {
                    self.post(self.delay, number, dialler, Event::Used);
                } else {
                    self.post(self.delay, number, dialler, Event::Closed);
                }
            }
            Event::Used => {
                let deciding = to < 1 - to && !connection.purpose.is_more();
                if !self.opens(number, to, deciding) {
                    self.close(number, to);
                }
            }
            Event::Bytes(bytes) => {
                if let Some(id) = id {
                    End::hear(self, to, id, &bytes);
                }
            }
            Event::Closed => {
                if let Some(connection) = self.connections.remove(&number) {
                    self.lost(number, &connection, to, "it was closed by the other end");
                }
            }
            Event::Sent => {}
        }
    }

    /// Whether this end takes the connection.
    fn opens(&mut self, number: u64, end: usize, deciding: bool) -> bool {
        let Some(connection) = self.connections.get(&number) else {
            return false;
        };
        let (purpose, by) = (connection.purpose, connection.by);
        let dialled = (connection.dialler == end).then_some(by);
        if !self.ends[end].admits(purpose, deciding, self.now) {
            return false;
        }
        let id = End::open(self, end, number, purpose, dialled, by);
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.at[end] = Some(id);
        }
        self.say(format!("{end} has a connection for {purpose:?}"));
        true
    }
}
