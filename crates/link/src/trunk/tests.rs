// SPDX-License-Identifier: Apache-2.0

use super::*;
use proptest::prelude::*;

/// Two ends joined by pipes of which the test moves as much as it likes.
struct Pair {
    ends: [Trunk; 2],
    pipes: [VecDeque<u8>; 2],
    got: [BTreeMap<u32, Vec<u8>>; 2],
    /// Arrived and not taken, by end and stream.
    held: [BTreeMap<u32, usize>; 2],
    ended: [Vec<u32>; 2],
}

impl Pair {
    fn new() -> Self {
        Self {
            ends: [Trunk::new(true), Trunk::new(false)],
            pipes: Default::default(),
            got: Default::default(),
            held: Default::default(),
            ended: Default::default(),
        }
    }

    fn step(&mut self, end: usize, budget: usize, bytes: usize) {
        let mut events = Vec::new();
        let out = self.ends[end].output(budget, &mut events);
        self.pipes[end].extend(out);
        let n = bytes.min(self.pipes[end].len());
        let piece: Vec<u8> = self.pipes[end].drain(..n).collect();
        let other = 1 - end;
        self.ends[other].input(&piece, &mut events).unwrap();
        for event in events {
            match event {
                Event::Asked { stream, .. } => self.ends[other].accept(stream),
                Event::Data(stream, bytes) => {
                    *self.held[other].entry(stream).or_default() += bytes.len();
                    self.got[other].entry(stream).or_default().extend(bytes);
                }
                Event::Ended(stream) => self.ended[other].push(stream),
                _ => {}
            }
        }
    }

    fn take(&mut self, end: usize, stream: u32) {
        let held = self.held[end].insert(stream, 0).unwrap_or(0);
        self.ends[end].consumed(stream, held);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_sent_arrives_whole_in_order_and_memory_is_bounded(
        sizes in prop::collection::vec(0usize..900_000, 1..6),
        steps in prop::collection::vec((0usize..2, 1usize..100_000, 0usize..200_000), 1..60),
    ) {
        let mut pair = Pair::new();
        let streams: Vec<u32> = sizes.iter().map(|_| pair.ends[0].open(1, 2, 1).unwrap()).collect();
        let byte = |stream: u32, at: usize| (stream as usize * 31 + at * 7 + at / 251) as u8;
        let mut sent = vec![0; sizes.len()];
        let mut round = 0;
        while pair.ended[1].len() < streams.len() {
            let (end, budget, bytes) = steps[round % steps.len()];
            round += 1;
            prop_assert!(round < 100_000, "no progress");
            for (i, &stream) in streams.iter().enumerate() {
                let piece: Vec<u8> = (sent[i]..(sent[i] + 70_000).min(sizes[i])).map(|at| byte(stream, at)).collect();
                sent[i] += pair.ends[0].send(stream, &piece);
                if sent[i] == sizes[i] {
                    pair.ends[0].end(stream);
                }
                if round % (i + 1) == 0 {
                    pair.take(1, stream);
                }
                prop_assert!(pair.held[1].get(&stream).is_none_or(|h| *h <= LARGEST_WINDOW as usize));
            }
            pair.step(end, budget, bytes);
            if round % 7 == 0 {
                pair.step(0, 1 << 20, 1 << 20);
                pair.step(1, 1 << 20, 1 << 20);
            }
        }
        for (i, &stream) in streams.iter().enumerate() {
            let got = pair.got[1].remove(&stream).unwrap_or_default();
            prop_assert_eq!(got.len(), sizes[i]);
            prop_assert!(got.iter().enumerate().all(|(at, b)| *b == byte(stream, at)));
        }
    }

    #[test]
    fn anything_may_come(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz_trunk(&bytes);
    }
}

fn open_two(pair: &mut Pair) -> (u32, u32) {
    let (a, b) = (pair.ends[0].open(0, 9, 1).unwrap(), pair.ends[0].open(1, 9, 1).unwrap());
    pair.step(0, 1 << 20, 1 << 20);
    pair.step(1, 1 << 20, 1 << 20);
    (a, b)
}

#[test]
fn a_receiver_that_does_not_read_blocks_nobody_else() {
    let mut pair = Pair::new();
    let (slow, quick) = open_two(&mut pair);
    let piece = vec![1; 64 << 10];
    for _ in 0..200 {
        let _ = pair.ends[0].send(slow, &piece);
        let _ = pair.ends[0].send(quick, &piece);
        pair.step(0, 1 << 20, 1 << 20);
        pair.take(1, quick);
        pair.step(1, 1 << 20, 1 << 20);
    }
    assert_eq!(pair.got[1][&slow].len(), FIRST_WINDOW as usize);
    assert!(pair.got[1][&quick].len() > 8 << 20);
}

#[test]
fn streams_share_by_bytes_and_short_ones_are_bundled() {
    let mut pair = Pair::new();
    let (a, b) = open_two(&mut pair);
    pair.ends[0].send(a, &vec![1; 200 << 10]);
    pair.ends[0].send(b, &[2; 1024]);
    let out = pair.ends[0].output(1 << 20, &mut Vec::new());
    // One turn of the long one, then the short one, whole.
    assert_eq!(out[HEADER_BYTES + QUANTUM], DATA);
    assert_eq!(out[HEADER_BYTES * 2 + QUANTUM], 2);
    assert!(!pair.ends[0].has_output());
}

#[test]
fn streams_that_make_way_wait_for_others_but_not_for_ever() {
    let mut pair = Pair::new();
    let wish = [WISH_BULK, 1];
    let streams = wish.map(|wish| pair.ends[0].open(1, 2, wish).unwrap());
    pair.step(0, 1 << 20, 1 << 20);
    pair.step(1, 1 << 20, 1 << 20);
    let mut order = Vec::new();
    for _ in 0..40 {
        streams.iter().for_each(|s| {
            pair.ends[0].send(*s, &vec![0; 64 << 10]);
        });
        let out = pair.ends[0].output(1, &mut Vec::new());
        order.push(u32::from_le_bytes([out[1], out[2], out[3], out[4]]));
        let room = (QUANTUM as u32).to_le_bytes();
        let mut credit = Vec::new();
        header(&mut credit, CREDIT, order[order.len() - 1], 4);
        credit.extend_from_slice(&room);
        pair.ends[0].input(&credit, &mut Vec::new()).unwrap();
    }
    let late: Vec<usize> = (0..order.len()).filter(|&i| order[i] == streams[0]).collect();
    assert_eq!(late, [16, 33], "{order:?}");
}

#[test]
fn broken_rules_end_the_trunk() {
    let frame = |kind, stream: u32, payload: &[u8]| {
        let mut out = Vec::new();
        header(&mut out, kind, stream, payload.len());
        out.extend_from_slice(payload);
        out
    };
    let heard = |bytes: &[u8]| Trunk::new(true).input(bytes, &mut Vec::new());
    let ping = frame(PING, 0, &[0; 8]);
    assert_eq!(heard(&ping), Ok(true));
    assert_eq!(
        heard(&ping[..ping.len() - 1]),
        Ok(false),
        "a frame that is not complete"
    );
    let refused = |bytes: &[u8]| Trunk::new(true).input(bytes, &mut Vec::new()).is_err();
    assert!(refused(&frame(77, 0, &[])));
    assert!(refused(&frame(OPEN, 1, &[0; 9])), "our own number");
    assert!(refused(&frame(OPEN, 2, &[0; 8])));
    assert!(refused(&[DATA, 1, 0, 0, 0, 1, 0, 1]), "too long");
    assert!(
        refused(&[frame(OPEN, 2, &[0; 9]), frame(DATA, 2, &[1])].concat()),
        "not accepted yet"
    );
    assert!(!refused(&frame(DATA, 4, &[1])), "of a stream that is forgotten");
    let mut trunk = Trunk::new(false);
    let mut events = Vec::new();
    trunk.input(&frame(OPEN, 1, &[0; 9]), &mut events).unwrap();
    trunk.accept(1);
    let flood = frame(DATA, 1, &[0; 65_536]).repeat(5);
    assert!(trunk.input(&flood, &mut events).is_err());
}

#[test]
fn pings_are_answered_and_refusals_told() {
    let mut pair = Pair::new();
    pair.ends[0].ping(7);
    let out = pair.ends[0].output(99, &mut Vec::new());
    let mut events = Vec::new();
    pair.ends[1].input(&out, &mut events).unwrap();
    let stream = pair.ends[1].open(5, 6, 0).unwrap();
    let out = pair.ends[1].output(99, &mut events);
    pair.ends[0].input(&out, &mut events).unwrap();
    pair.ends[0].refuse(stream, "nobody");
    let out = pair.ends[0].output(99, &mut events);
    pair.ends[1].input(&out, &mut events).unwrap();
    let asked = Event::Asked {
        stream,
        from: 5,
        to: 6,
        wish: 0,
    };
    assert_eq!(events, [asked, Event::Pong(7), Event::Refused(stream, "nobody".into())]);
    assert_eq!((pair.ends[0].streams(), pair.ends[1].streams()), (0, 0));
}
