// SPDX-License-Identifier: Apache-2.0
//! A member of the job that does not keep to the rules of machines: its frames are made here.

mod common;

use common::store::{ADD, DATA, FLUSH, GET, PUT, Store, at, flush, get};
use common::{Random, World, content, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{EngineError, Peer, Request};
use isthmus_protocol::credit::WINDOW;
use isthmus_transport::memory::{Memory, Options};
use isthmus_transport::{Placement, Sink, Transport};
use isthmus_wire::frame::{Header, Kind, protocol};

const LENGTH: usize = 1000;
const LIAR: Peer = Peer::new(1);

/// Rank 0 has an engine; rank 1 is what a test says in its name.
struct Stage {
    world: World,
    liar: Memory,
    deaf: Deaf,
}

/// Does not look at what it gets.
struct Deaf;

impl Sink for Deaf {
    fn frame(&mut self, _: Peer, _: &Header, _: &[u8]) {}
    fn place(&mut self, _: Peer, _: &Header) -> Placement {
        Placement::Collect
    }
    fn placed(&mut self, _: Peer, _: &Header) {}
    fn received(&mut self, _: Peer, _: u64) {}
    fn sent(&mut self, _: Peer, _: u64) {}
    fn writable(&mut self, _: Peer) {}
    fn lost(&mut self, _: Peer, _: &str) {}
}

impl Stage {
    fn new(options: Options) -> Self {
        let mut world = world(1, options);
        let liar = world.switch.add().expect("eventfd");
        let newcomer = isthmus_engine::Newcomers {
            job: isthmus_engine::Job::OWN,
            ranks: 1..2,
            contexts: isthmus_engine::Job::OWN,
            me: None,
            routes: vec![0],
            levels: vec![4],
            representations: vec![],
        };
        world.engines[0].take_in(newcomer).expect("a new rank");
        world.engines[0].register(protocol::TEST, Box::new(Store::new(LENGTH)));
        let deaf = Deaf;
        Self { world, liar, deaf }
    }

    fn say(&mut self, header: &Header, payload: &[u8]) {
        // That it is not taken any more is no failure of the test.
        let _ = self.liar.send(Peer::new(0), header, payload);
        self.world.engines[0].progress();
        self.liar.poll(&mut self.deaf);
    }

    fn lost(&mut self) -> bool {
        at(&mut self.world.engines[0], |store, _| !store.lost.is_empty())
    }

    /// The request ends because of what the liar has done.
    fn loses(&mut self, request: Request, word: &str) {
        match self.world.finish(0, request).error {
            Some(EngineError::PeerLost { peer, reason, .. }) => {
                assert_eq!(peer, LIAR);
                assert!(reason.contains(word), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

fn frame(what: i32, token: u64, place: u64, length: usize) -> Header {
    let mut header = Header::control(Kind::Protocol, token, place, length as u64);
    header.flags = protocol::TEST;
    header.tag = what;
    header
}

fn credit(number: u64, cost: u64) -> Header {
    let mut header = Header::control(Kind::Protocol, number, cost, 0);
    header.flags = protocol::CREDIT;
    header
}

fn ways() -> [Options; 2] {
    let plain = Options::default();
    [plain, Options { place: 1, ..plain }]
}

#[test]
fn who_sends_more_than_its_credit_is_lost_and_no_more_is_kept() {
    for options in ways() {
        let mut stage = Stage::new(options);
        let request = flush(&mut stage.world.engines[0], LIAR);
        at(&mut stage.world.engines[0], |store, _| store.lock());
        let bytes = vec![1; 60_000];
        let mut frames = 0;
        while !stage.lost() {
            stage.say(&frame(PUT, 0, 0, bytes.len()), &bytes);
            frames += 1;
            assert!(frames * 60_000 < WINDOW + 200_000, "it may send without end");
        }
        let kept = at(&mut stage.world.engines[0], |store, _| store.kept());
        assert!(kept <= WINDOW, "{kept}");
        stage.loses(request, "it sent more frames of protocol 255 than it had credit for");
        // Nor of frames without data.
        let mut stage = Stage::new(options);
        at(&mut stage.world.engines[0], |store, _| store.lock());
        let before = (0..200_000).position(|_| {
            stage.say(&frame(FLUSH, 0, 0, 0), &[]);
            stage.lost()
        });
        assert!(before.is_some());
    }
}

#[test]
fn credit_that_was_not_lent_and_frames_without_sense_lose_their_sender() {
    let unknown = {
        let mut header = frame(PUT, 0, 0, 0);
        header.flags = protocol::TEST - 2;
        header
    };
    let long_credit = {
        let mut header = credit(u64::from(protocol::TEST), 1);
        header.length = 8;
        header
    };
    let faults: [(Header, &str); 8] = [
        (credit(u64::from(protocol::TEST), 1 << 20), "more credit back"),
        (credit(u64::from(protocol::FILES), 1), "more credit back"),
        (credit(u64::from(protocol::TEST) + 256, 1), "more credit back"),
        (credit(u64::MAX, u64::MAX), "more credit back"),
        (long_credit, "more credit back"),
        (unknown, "does not know"),
        (frame(DATA, 77, 0, 8), "no question"),
        (frame(DATA, 1, 993, 8), "no question"),
    ];
    for options in ways() {
        for (header, word) in faults {
            let mut stage = Stage::new(options);
            let target = OwnMemory::new(0, LENGTH as isize);
            let request = get(&mut stage.world.engines[0], LIAR, 0, target.memory(), LENGTH as u64);
            stage.say(&header, &vec![1; header.length as usize]);
            stage.loses(request, word);
            assert!(content(&target, LENGTH) == [0; LENGTH], "{header:?}");
        }
    }
}

#[test]
fn bytes_outside_of_the_memory_are_not_touched() {
    for options in ways() {
        for (what, place, length) in [
            (PUT, 993, 8),
            (ADD, 1000, 1),
            (PUT, u64::MAX - 3, 8),
            (ADD, u64::MAX, 1),
            (GET, 996, 8),
            (GET, u64::MAX, 8),
        ] {
            let mut stage = Stage::new(options);
            let request = flush(&mut stage.world.engines[0], LIAR);
            // Of a get: bytes that are wanted.
            stage.say(&frame(what, 0, place, length), &8_u64.to_le_bytes()[..length]);
            stage.loses(request, "outside");
            let memory = at(&mut stage.world.engines[0], |store, _| content(&store.memory, LENGTH));
            assert!(memory == [0; LENGTH], "{what} {place}");
        }
    }
}

#[test]
fn whatever_a_member_says_no_bound_is_passed() {
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    for seed in 1..=rounds {
        let mut random = Random(seed);
        let options = Options {
            seed: seed % 3,
            place: [1, 64, usize::MAX][seed as usize % 3],
            ..Options::default()
        };
        let mut stage = Stage::new(options);
        let target = OwnMemory::new(0, LENGTH as isize);
        let request = get(&mut stage.world.engines[0], LIAR, 0, target.memory(), LENGTH as u64);
        for _ in 0..30 {
            let near = |random: &mut Random| random.below(1100).wrapping_sub(random.below(3));
            let length = random.below(9) as usize * random.below(40) as usize;
            let mut header = frame(random.below(7) as i32, random.below(3), near(&mut random), length);
            match random.below(12) {
                0 => header.flags = protocol::CREDIT,
                1 => header.token = random.next(),
                2 => header.tag = random.next() as i32,
                _ => {}
            }
            let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            stage.say(&header, &bytes);
            match random.below(9) {
                0 => at(&mut stage.world.engines[0], |store, _| store.lock()),
                1 => at(&mut stage.world.engines[0], |store, port| store.unlock(port)),
                _ => {}
            }
        }
        stage.world.switch.kill(LIAR, "it is tired");
        // Answered, or lost; never neither.
        let _ = stage.world.finish(0, request);
    }
}
