// SPDX-License-Identifier: Apache-2.0
//! A rank of the job whose frames are changed at random, in ways that every check of a header stands: whatever it says,
//! nobody crashes, what the others send each other arrives unchanged, and nobody waits for it once it is lost.
//!
//! `ISTHMUS_TEST_CHANGED=N`: so many tries; 200 otherwise.

mod common;

use std::os::fd::BorrowedFd;

use common::{Random, channel, content, memory, pattern, receiving, sending};
use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_engine::{Channel, Engine, Mode, Request, Setup};
use isthmus_protocol::credit::WINDOW;
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Lent, Limits, Peer, Processes, SendError, Sink, Transport};
use isthmus_wire::frame::{Header, Kind};

/// Who is not to be relied on.
const LIAR: Peer = Peer::new(1);
const RANKS: u32 = 3;
const LENGTHS: [usize; 5] = [0, 8, 700, 3000, 20_000];

/// Changes one frame in eight.
struct Changing {
    inner: Memory,
    random: Random,
}

impl Changing {
    fn change(&mut self, header: &Header, payload: &[u8]) -> (Header, Vec<u8>) {
        let (mut header, mut payload) = (*header, payload.to_vec());
        match self.random.below(8) {
            0 => header.kind = Kind::from_code(1 + self.random.below(14) as u8).expect("there are 14"),
            1 => header.token = self.number(header.token),
            2 => header.length = self.number(header.length),
            3 => header.context = self.number(header.context.into()) as u32,
            4 => header.source = self.random.below(u64::from(RANKS) + 1) as u32,
            5 => header.tag ^= 1 << self.random.below(31),
            6 => header.flags = self.random.next() as u8,
            _ => {
                let other = self.random.below(300) as usize;
                payload.resize(other, 7);
            }
        }
        // What a stream can carry: the header says where the next one begins.
        let bytes = header.payload_bytes().min(4096);
        payload.resize(bytes as usize, 9);
        match header.kind {
            Kind::Rts => header.flags = bytes as u8,
            _ if header.payload_bytes() > 0 => header.length = bytes,
            _ => {}
        }
        (header, payload)
    }

    fn number(&mut self, near: u64) -> u64 {
        match self.random.below(4) {
            0 => self.random.next(),
            1 => near ^ 1 << self.random.below(64),
            2 => near.wrapping_add(self.random.below(3)).wrapping_sub(1),
            _ => self.random.below(4) << 32 | self.random.below(20),
        }
    }
}

impl Transport for Changing {
    fn name(&self) -> &'static str {
        "changing"
    }
    fn limits(&self, peer: Peer) -> Limits {
        self.inner.limits(peer)
    }
    fn send(&mut self, peer: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        if self.random.below(8) > 0 {
            return self.inner.send(peer, header, payload);
        }
        let (header, payload) = self.change(header, payload);
        self.inner.send(peer, &header, &payload)
    }
    fn send_bulk(
        &mut self,
        peer: Peer,
        token: u64,
        memory: Lent<ReadMemory>,
        length: u64,
        context: u32,
        sent_token: u64,
    ) -> Result<(), SendError> {
        self.inner.send_bulk(peer, token, memory, length, context, sent_token)
    }
    fn expect(&mut self, peer: Peer, token: u64, memory: Lent<WriteMemory>, length: u64) -> bool {
        self.inner.expect(peer, token, memory, length)
    }
    fn handle(&mut self, peer: Peer, memory: ReadMemory, length: u64) -> Vec<u8> {
        self.inner.handle(peer, memory, length)
    }
    fn pull(
        &mut self,
        peer: Peer,
        handle: &[u8],
        offset: u64,
        memory: WriteMemory,
        length: u64,
    ) -> Result<bool, SendError> {
        self.inner.pull(peer, handle, offset, memory, length)
    }
    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.inner.poll(sink)
    }
    fn lose(&mut self, peer: Peer, reason: &str) {
        self.inner.lose(peer, reason);
    }
    fn arm(&mut self) -> bool {
        self.inner.arm()
    }
    fn disarm(&mut self) {
        self.inner.disarm();
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
    fn close(&mut self, sink: &mut dyn Sink) -> bool {
        self.inner.close(sink)
    }
}

struct Pair {
    from: Peer,
    to: Peer,
    length: usize,
    target: OwnMemory,
    send: Option<Request>,
    receive: Option<Request>,
    any: bool,
    mode: Mode,
}

fn everybody(me: Peer) -> Channel {
    channel(0, me.number(), RANKS)
}

fn progress(engines: &mut [Engine]) {
    for engine in engines {
        engine.progress();
    }
}

/// One job.
fn attempt(seed: u64) {
    let mut random = Random(seed);
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
    let engine = |(me, inner): (Peer, Memory)| {
        let transport: Box<dyn Transport> = if me == LIAR {
            Box::new(Changing {
                inner,
                random: Random(seed ^ 0x5555),
            })
        } else {
            Box::new(inner)
        };
        Engine::new(Setup {
            me,
            processes: Processes::of("job", RANKS),
            transports: vec![transport],
            routes: vec![0; RANKS as usize],
            levels: vec![4; RANKS as usize],
            representations: Vec::new(),
        })
    };
    let mut engines: Vec<Engine> = Peer::first(RANKS).zip(ends).map(engine).collect();
    let source = memory(&pattern(5, 20_000));
    let mut pairs = Vec::new();
    if seed % 16 == 0 {
        // No credit is left: what follows is announced.
        for _ in 0..WINDOW / 1000 {
            engines[LIAR.index()].isend(&everybody(LIAR), 0, -7, Mode::Standard, sending(&source, 1000));
        }
    }
    for number in 0..40 {
        let from = random.below(3) as u32;
        let to = (from + 1 + random.below(2) as u32) % RANKS;
        let (from, to) = (Peer::new(from), Peer::new(to));
        pairs.push(Pair {
            from,
            to,
            length: LENGTHS[random.below(5) as usize],
            target: OwnMemory::new(0, 20_000),
            send: None,
            receive: None,
            any: random.below(4) == 0,
            mode: [Mode::Standard, Mode::Synchronous, Mode::Buffered][number % 3],
        });
    }
    // Some receives come first, some later.
    for round in 0..2 {
        for (tag, pair) in (0..).zip(&mut pairs) {
            let late = random.below(2) == 0 && round == 0;
            if pair.send.is_none() && !late {
                let data = sending(&source, pair.length as u64);
                let engine = &mut engines[pair.from.index()];
                let send = engine.isend(&everybody(pair.from), pair.to.number(), tag, pair.mode, data);
                if random.below(10) == 0 && pair.from == LIAR {
                    engine.cancel(send);
                }
                pair.send = Some(send);
            }
            let late = random.below(2) == 0 && round == 0;
            if pair.receive.is_none() && !late {
                let room = receiving(&pair.target, 20_000);
                let from = (!pair.any).then_some(pair.from.number());
                pair.receive = Some(engines[pair.to.index()].irecv(&everybody(pair.to), from, Some(tag), room));
            }
        }
        for _ in 0..60 {
            progress(&mut engines);
        }
    }
    switch.kill(LIAR, "its host is gone");
    for _ in 0..300 {
        progress(&mut engines);
    }
    for (tag, pair) in pairs.iter().enumerate() {
        let honest = pair.from != LIAR && pair.to != LIAR;
        for (rank, request) in [(pair.from, pair.send), (pair.to, pair.receive)] {
            // Who could have received a message of the liar receives none of this one's.
            let unwanted = honest && pair.any && request == pair.send;
            let Some(request) = request.filter(|_| rank != LIAR && !unwanted) else {
                continue;
            };
            let ended = engines[rank.index()].take(request);
            let ended = ended.unwrap_or_else(|| panic!("seed {seed}: message {tag}: rank {rank} waits for ever"));
            if honest && !pair.any {
                assert_eq!(ended.error, None, "seed {seed}: message {tag}");
            }
        }
        if honest && !pair.any {
            let arrived = content(&pair.target, pair.length);
            assert!(
                arrived == pattern(5, 20_000)[..pair.length],
                "seed {seed}: message {tag}"
            );
        }
    }
}

#[test]
fn a_rank_whose_frames_are_changed_at_random_hurts_nobody_else() {
    let tries = std::env::var("ISTHMUS_TEST_CHANGED").ok().and_then(|n| n.parse().ok());
    for seed in 1..=tries.unwrap_or(200) {
        attempt(seed);
    }
}
