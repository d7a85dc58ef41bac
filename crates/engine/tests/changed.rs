// SPDX-License-Identifier: Apache-2.0
//! A rank of the job whose frames are changed at random, in ways that every check of a header stands: whatever it says,
//! nobody crashes, what the others send each other arrives unchanged, whoever is given up hears of it, and nobody waits
//! for the rank once it is lost. In memory, over TCP inside a site and over TLS between sites. The same of a rank whose
//! bytes are changed on the way.
//!
//! `ISTHMUS_TEST_CHANGED=N`: so many tries; 200 otherwise. `ISTHMUS_TEST_SEED=N`: the first one.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "../../net/tests/common/mod.rs"]
mod net;

use std::time::Instant;

use common::changing::Changing;
use common::{Random, channel, content, memory, pattern, receiving, sending};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Channel, Completion, Engine, EngineError, Mode, Request, Setup};
use isthmus_net::Reach;
use isthmus_protocol::credit::WINDOW;
use isthmus_transport::memory::{Options, Switch, network};
use isthmus_transport::{Peer, Processes, Transport};
use net::middle::Harm;

/// Who is not to be relied on.
const LIAR: Peer = Peer::new(1);
const RANKS: u32 = 3;
const MESSAGES: usize = 40;
/// Rounds of progress after which all that can happen in memory has happened.
const ROUNDS: usize = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    Memory,
    Tcp,
    Tls,
    /// The rank is as all others, and bytes on its connections are changed.
    TcpLine,
    TlsLine,
}

impl Delivery {
    /// Lengths of messages: the last ones are announced first.
    fn lengths(self) -> [usize; 8] {
        match self {
            Self::Memory => [0, 8, 700, 3000, 20_000, 8, 700, 20_000],
            Self::Tcp | Self::TcpLine => [0, 8, 700, 3000, 60_000, 8, 700, 200_000],
            Self::Tls | Self::TlsLine => [0, 8, 700, 3000, 60_000, 8, 700, 1_200_000],
        }
    }

    fn longest(self) -> usize {
        self.lengths()[7]
    }

    /// Whether the rank is changed before anything is encrypted.
    fn changes(self) -> bool {
        matches!(self, Self::Memory | Self::Tcp | Self::Tls)
    }

    /// Whether the rank gets and gives what was sent, whatever happens: changes between sites are found out, and what
    /// was changed is sent again.
    fn is_right(self) -> bool {
        self == Self::TlsLine
    }

    /// The transports of all ranks, and what cuts ranks off where there is no system that does.
    fn transports(self, seed: u64, random: &mut Random) -> (Vec<Box<dyn Transport>>, Option<Switch>) {
        let reach = match self {
            Self::Tcp => Reach::Tcp,
            Self::Tls => Reach::Tls,
            Self::TcpLine | Self::TlsLine => {
                let reach = if self == Self::TcpLine { Reach::Tcp } else { Reach::Tls };
                let jobs = net::job_over_lines(reach, Harm { seed, connections: 2 });
                return (jobs.into_iter().map(|p| p.transport).collect(), None);
            }
            Self::Memory => {
                let options = Options {
                    frame: 4096,
                    eager: 1024,
                    bulk: random.below(2) == 0,
                    place: if random.below(2) == 0 { 512 } else { usize::MAX },
                    seed: random.below(2) * seed,
                    queue: 4096,
                    ..Options::default()
                };
                let (ends, switch) = network(RANKS, options).expect("eventfd");
                let ends = ends.into_iter().map(|end| Box::new(end) as Box<dyn Transport>);
                return (ends.collect(), Some(switch));
            }
        };
        let jobs = net::job_with(RANKS, reach, net::LONG_DIAL);
        (jobs.into_iter().map(|p| p.transport).collect(), None)
    }
}

/// One end of a message: its request, and what became of it.
#[derive(Default)]
struct End {
    request: Option<Request>,
    ended: Option<Completion>,
}

impl End {
    fn look(&mut self, engine: &mut Engine) {
        if let Some(request) = self.request.filter(|_| self.ended.is_none()) {
            self.ended = engine.core.take(request);
        }
    }

    fn waits(&self) -> bool {
        self.request.is_some() && self.ended.is_none()
    }

    fn has_lost(&self, other: Peer) -> bool {
        let error = self.ended.as_ref().and_then(|ended| ended.error.as_ref());
        matches!(error, Some(EngineError::PeerLost { peer, .. }) if *peer == other)
    }
}

struct Message {
    from: Peer,
    to: Peer,
    length: usize,
    /// A message of the liar may come instead, which may be longer.
    room: usize,
    target: OwnMemory,
    send: End,
    receive: End,
    any: bool,
    mode: Mode,
}

impl Message {
    fn is_honest(&self) -> bool {
        self.from != LIAR && self.to != LIAR
    }

    /// The end of this rank and the rank at the other one.
    fn end_of(&self, rank: Peer) -> Option<(&End, Peer)> {
        match rank {
            _ if rank == self.from => Some((&self.send, self.to)),
            _ if rank == self.to => Some((&self.receive, self.from)),
            _ => None,
        }
    }
}

fn everybody(me: Peer) -> Channel {
    channel(0, me.number(), RANKS)
}

/// One job.
struct Trial {
    way: Delivery,
    seed: u64,
    random: Random,
    engines: Vec<Option<Engine>>,
    switch: Option<Switch>,
    source: OwnMemory,
    messages: Vec<Message>,
}

impl Trial {
    fn new(way: Delivery, seed: u64) -> Self {
        let mut random = Random(seed);
        let (transports, switch) = way.transports(seed, &mut random);
        let engine = |(me, transport): (Peer, Box<dyn Transport>)| {
            let changes = me == LIAR && way.changes();
            let transport = if changes {
                Box::new(Changing::new(transport, seed ^ 0x5555))
            } else {
                transport
            };
            Some(Engine::new(Setup {
                me,
                processes: Processes::of("job", RANKS),
                transports: vec![transport],
                routes: vec![0; RANKS as usize],
                levels: vec![4; RANKS as usize],
                representations: Vec::new(),
            }))
        };
        let engines = Peer::first(RANKS).zip(transports).map(engine).collect();
        let messages = (0..MESSAGES).map(|number| message(way, &mut random, number)).collect();
        Self {
            way,
            seed,
            random,
            engines,
            switch,
            source: memory(&pattern(5, 20_000).repeat(way.longest() / 20_000)),
            messages,
        }
    }

    fn engine(&mut self, rank: Peer) -> &mut Engine {
        self.engines[rank.index()].as_mut().expect("it has not died")
    }

    fn progress(&mut self) {
        for engine in self.engines.iter_mut().flatten() {
            engine.progress();
        }
        for message in &mut self.messages {
            for (rank, end) in [(message.from, &mut message.send), (message.to, &mut message.receive)] {
                if let Some(engine) = &mut self.engines[rank.index()] {
                    end.look(engine);
                }
            }
        }
    }

    fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            self.progress();
        }
    }

    /// Goes on until nobody waits for a message for which this holds, as seen from this rank's end.
    fn nobody_waits(&mut self, what: &str, meant: impl Fn(&Message, Peer) -> bool) {
        let end = Instant::now() + net::PATIENCE;
        for round in 0.. {
            let waits = |message: &Message| {
                let ends = [(message.from, &message.send), (message.to, &message.receive)];
                ends.into_iter()
                    .find(|(rank, end)| end.waits() && meant(message, *rank))
                    .map(|(rank, _)| rank)
            };
            let Some((tag, rank)) = self
                .messages
                .iter()
                .enumerate()
                .find_map(|(tag, m)| Some((tag, waits(m)?)))
            else {
                return;
            };
            let more = match self.way {
                Delivery::Memory => round < ROUNDS,
                _ => Instant::now() < end,
            };
            assert!(
                more,
                "{:?}, seed {}: message {tag}: rank {rank} waits for ever {what}",
                self.way, self.seed
            );
            self.progress();
            // Other threads make connections.
            if round % 64 == 63 && self.way != Delivery::Memory {
                std::thread::yield_now();
            }
        }
    }

    /// Some sends and receives come first, some later.
    fn exchange(&mut self) {
        if self.seed % 16 == 0 {
            // No credit is left: what follows is announced.
            for _ in 0..WINDOW / 1000 {
                let bytes = sending(&self.source, 1000);
                self.engine(LIAR).isend(&everybody(LIAR), 0, -7, Mode::Standard, bytes);
            }
        }
        for round in 0..2 {
            for number in 0..MESSAGES {
                self.begin(number, round > 0);
            }
            self.rounds(60);
        }
    }

    fn begin(&mut self, number: usize, now: bool) {
        let (sends, receives) = (now || self.random.below(2) > 0, now || self.random.below(2) > 0);
        let message = &mut self.messages[number];
        let (tag, from, to) = (number as i32, message.from, message.to);
        if sends && message.send.request.is_none() {
            let engine = self.engines[from.index()].as_mut().expect("it has not died");
            let data = sending(&self.source, message.length as u64);
            let send = engine.isend(&everybody(from), to.number(), tag, message.mode, data);
            if from == LIAR && self.way.changes() && self.random.below(10) == 0 {
                engine.cancel(send);
            }
            message.send.request = Some(send);
        }
        if receives && message.receive.request.is_none() {
            let engine = self.engines[to.index()].as_mut().expect("it has not died");
            let room = receiving(&message.target, message.room as u64);
            let source = (!message.any).then_some(from.number());
            message.receive.request = Some(engine.irecv(&everybody(to), source, Some(tag), room));
        }
    }

    /// Whom somebody has given up.
    fn given_up(&self) -> Vec<(Peer, Peer)> {
        let pairs = Peer::first(RANKS).flat_map(|a| Peer::first(RANKS).map(move |b| (a, b)));
        let lost = |(a, b): &(Peer, Peer)| {
            let ends = self.messages.iter().filter_map(|m| m.end_of(*a));
            a != b && ends.map(|(end, _)| end).any(|end| end.has_lost(*b))
        };
        pairs.filter(lost).collect()
    }

    /// The host of the liar is gone.
    fn dies(&mut self) {
        if let Some(switch) = &self.switch {
            return switch.kill(LIAR, "its host is gone");
        }
        self.engines[LIAR.index()] = None;
        // What agents tell in a job; else it takes some refused connections until somebody between sites is sure.
        if self.seed % 1000 > 0 {
            for rank in [Peer::new(0), Peer::new(2)] {
                self.engine(rank).lose_peers([LIAR], "rank 1 was killed by signal 9");
            }
        }
    }

    fn run(mut self) {
        self.exchange();
        let right = self.way.is_right();
        let wanted = |m: &Message| right || m.is_honest() && !m.any;
        self.nobody_waits("for one that is honest", |m, _| wanted(m));
        let rounds = self.random.below(ROUNDS as u64) as usize;
        self.rounds(rounds);
        for (by, whom) in self.given_up() {
            let meant = |m: &Message, rank: Peer| rank == whom && m.end_of(whom).is_some_and(|(_, other)| other == by);
            self.nobody_waits(&format!("for rank {by}, who has given it up"), meant);
        }
        self.dies();
        // Who could have received a message of the liar receives none of an honest rank.
        let unwanted = |m: &Message, rank: Peer| m.is_honest() && m.any && rank == m.from;
        self.nobody_waits("for one that is dead", |m, rank| rank != LIAR && !unwanted(m, rank));
        for (tag, message) in self.messages.iter().enumerate().filter(|(_, m)| wanted(m)) {
            for end in [&message.send, &message.receive] {
                let error = end.ended.as_ref().and_then(|ended| ended.error.clone());
                assert_eq!(error, None, "{:?}, seed {}: message {tag}", self.way, self.seed);
            }
            assert!(
                content(&message.target, message.length) == content(&self.source, message.length),
                "{:?}, seed {}: message {tag}",
                self.way,
                self.seed
            );
        }
    }
}

fn message(way: Delivery, random: &mut Random, number: usize) -> Message {
    let from = random.below(3) as u32;
    let to = (from + 1 + random.below(2) as u32) % RANKS;
    let length = way.lengths()[random.below(8) as usize];
    let room = length.max(20_000);
    Message {
        from: Peer::new(from),
        to: Peer::new(to),
        length,
        room,
        target: OwnMemory::new(0, room as isize),
        send: End::default(),
        receive: End::default(),
        any: random.below(4) == 0,
        mode: [Mode::Standard, Mode::Synchronous, Mode::Buffered][number % 3],
    }
}

/// So many of a hundred jobs go this way.
fn attempts(way: Delivery, share: u64) {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let tries = number("ISTHMUS_TEST_CHANGED").unwrap_or(200);
    let first = number("ISTHMUS_TEST_SEED").unwrap_or(1);
    for seed in first..first + (tries * share).div_ceil(100) {
        Trial::new(way, seed).run();
    }
}

#[test]
fn a_rank_whose_frames_are_changed_at_random_hurts_nobody_else() {
    attempts(Delivery::Memory, 60);
}

#[test]
fn it_hurts_nobody_else_over_tcp() {
    attempts(Delivery::Tcp, 25);
}

#[test]
fn a_rank_whose_bytes_are_changed_on_the_way_hurts_nobody_else_inside_a_site() {
    attempts(Delivery::TcpLine, 7);
}

#[test]
fn bytes_that_are_changed_on_the_way_between_sites_are_sent_again() {
    attempts(Delivery::TlsLine, 7);
}

#[test]
fn it_hurts_nobody_else_over_tls() {
    attempts(Delivery::Tls, 15);
}
