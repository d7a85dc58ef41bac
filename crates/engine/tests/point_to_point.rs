// SPDX-License-Identifier: Apache-2.0
//! Messages between engines: data, order, modes, probes, cancelling, truncation, lost peers, random operations.

mod common;

use common::{Random, World, channel, content, kinds, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Channel, EngineError, Mode, ReceiveBuffer, Request, SendBuffer};
use isthmus_transport::Peer;
use isthmus_transport::memory::Options;

const SIZES: [usize; 9] = [0, 1, 8, 64, 65, 1024, 1025, 50_000, 1_000_000];

#[test]
fn messages_of_all_sizes_and_modes_arrive() {
    for options in kinds() {
        for length in SIZES {
            for mode in [Mode::Standard, Mode::Synchronous, Mode::Buffered] {
                for early in [true, false] {
                    for to in [0, 1] {
                        one_message(options, length, mode, early, to);
                    }
                }
            }
        }
    }
}

fn one_message(options: Options, length: usize, mode: Mode, early: bool, to: u32) {
    let mut w = world(2, options);
    let data = pattern(length, length);
    let source = memory(&data);
    let target = OwnMemory::new(0, length as isize + 10);
    let room = length as u64 + 10;
    let post =
        |w: &mut World| w.engines[to as usize].irecv(&channel(0, to, 2), Some(0), Some(5), receiving(&target, room));
    let posted = early.then(|| post(&mut w));
    let sent = w.engines[0].isend(&channel(0, 0, 2), to, 5, mode, sending(&source, length as u64));
    if mode == Mode::Buffered {
        assert!(
            w.engines[0].core.test(sent).is_some(),
            "a buffered send completes at once"
        );
        source.memory().with_mut(0, length, |bytes| bytes.fill(0xee));
    }
    if !early {
        for _ in 0..30 {
            w.poll();
        }
        assert!(
            mode != Mode::Synchronous || w.engines[0].core.test(sent).is_none(),
            "complete before it matched"
        );
    }
    let posted = posted.unwrap_or_else(|| post(&mut w));
    let received = w.finish(to as usize, posted);
    assert_eq!(
        (received.source, received.tag, received.bytes, received.error),
        (0, 5, length as u64, None)
    );
    assert!(
        content(&target, length) == data,
        "{options:?} {length} {mode:?} {early}"
    );
    assert_eq!(w.finish(0, sent).error, None);
    w.close();
}

#[test]
fn long_messages_that_can_be_pulled_or_streamed_come_both_ways() {
    for (seed, queue) in [(0, 1024), (3, 4)] {
        let mut w = world(
            2,
            Options {
                frame: 4096,
                eager: 1024,
                pull: true,
                streams: true,
                seed,
                queue,
                ..Options::default()
            },
        );
        for i in 0..100_usize {
            let length = [5000, 300_000][i % 2];
            let room = if i % 7 == 0 { length / 2 } else { length };
            let source = memory(&pattern(i, length));
            let target = OwnMemory::new(0, room as isize);
            let got = w.engines[1].irecv(&channel(0, 1, 2), Some(0), None, receiving(&target, room as u64));
            let buffer = sending(&source, length as u64);
            let sent = w.engines[0].send(&channel(0, 0, 2), 1, 1, Mode::Standard, buffer);
            let sent = sent.expect("a peer").expect("a long message waits");
            let received = w.finish(1, got);
            assert_eq!((received.bytes, received.error.is_some()), (room as u64, room < length));
            assert_eq!(w.finish(0, sent).error, None);
            assert!(content(&target, room) == pattern(i, length)[..room], "message {i}");
        }
        // The first four of each length are pulled, then at least two are streamed, however slow; some pulls fail on a
        // network with a seed.
        let least = if seed == 0 { 8 } else { 1 };
        assert!((least..=96).contains(&w.switch.pulled()), "{}", w.switch.pulled());
        w.close();
    }
}

/// Every other double of `2 * count`.
fn comb(count: i64) -> Datatype {
    Datatype::vector(count, 1, 2, &Datatype::of(Basic::Double)).expect("a vector")
}

#[test]
fn data_in_pieces_arrive() {
    for options in kinds() {
        for count in [1_usize, 7, 1000, 100_000] {
            let mut w = world(2, options);
            let source = memory(&pattern(1, 16 * count));
            let target = OwnMemory::new(0, 16 * count as isize);
            let middle = OwnMemory::new(0, 8 * count as isize);
            let (first, second) = (channel(0, 0, 2), channel(0, 1, 2));
            let typed = SendBuffer::typed(source.reading(), &comb(count as i64), 1).expect("a buffer");
            let sent = w.engines[0].isend(&first, 1, 0, Mode::Standard, typed);
            let got = w.engines[1].irecv(&second, None, None, receiving(&middle, 8 * count as u64));
            assert_eq!(w.finish(1, got).bytes, 8 * count as u64);
            w.finish(0, sent);
            let sent = w.engines[1].isend(&second, 0, 0, Mode::Standard, sending(&middle, 8 * count as u64));
            let typed = ReceiveBuffer::typed(target.memory(), &comb(count as i64), 1).expect("a buffer");
            let got = w.engines[0].irecv(&first, Some(1), None, typed);
            assert_eq!(w.finish(0, got).error, None);
            w.finish(1, sent);
            let (was, is) = (content(&source, 16 * count), content(&target, 16 * count));
            for i in 0..count {
                assert_eq!(
                    was[16 * i..16 * i + 8],
                    is[16 * i..16 * i + 8],
                    "element {i} of {count}"
                );
                assert_eq!(is[16 * i + 8..16 * i + 16], [0; 8], "gap {i}");
            }
        }
    }
}

#[test]
fn a_message_that_is_too_long_is_truncated() {
    for options in kinds() {
        for (length, room) in [(10_usize, 4_usize), (2000, 100), (100_000, 5000), (100_000, 0)] {
            for (early, to) in [(true, 1), (false, 1), (true, 0), (false, 0)] {
                let mut w = world(2, options);
                let source = memory(&pattern(2, length));
                let target = OwnMemory::new(0, length as isize);
                let c = channel(2, to, 2);
                let post =
                    |w: &mut World| w.engines[to as usize].irecv(&c, Some(0), Some(1), receiving(&target, room as u64));
                let posted = early.then(|| post(&mut w));
                let sent = w.engines[0].isend(
                    &channel(2, 0, 2),
                    to,
                    1,
                    Mode::Standard,
                    sending(&source, length as u64),
                );
                w.poll();
                let posted = posted.unwrap_or_else(|| post(&mut w));
                let received = w.finish(to as usize, posted);
                let error = EngineError::Truncate {
                    source: 0,
                    tag: 1,
                    message: length as u64,
                    buffer: room as u64,
                };
                assert_eq!(received.error, Some(error));
                assert_eq!(content(&target, room), pattern(2, length)[..room]);
                assert_eq!(content(&target, length)[room..], vec![0; length - room]);
                assert_eq!(w.finish(0, sent).error, None);
                w.close();
            }
        }
    }
}

#[test]
fn probes_find_and_take_messages() {
    for options in kinds() {
        let mut w = world(2, options);
        let (c0, c1) = (channel(0, 0, 2), channel(0, 1, 2));
        let data = [pattern(1, 100), pattern(2, 5000)];
        let sources = [memory(&data[0]), memory(&data[1])];
        let sends: Vec<_> = (0..2)
            .map(|i| {
                w.engines[0].isend(
                    &c0,
                    1,
                    i as i32,
                    Mode::Standard,
                    sending(&sources[i], data[i].len() as u64),
                )
            })
            .collect();
        assert_eq!(w.engines[1].iprobe(&c1, Some(0), Some(9)), Ok(None));
        let (message, arrived) = loop {
            w.poll();
            if let Some(found) = w.engines[1].improbe(&c1, None, Some(1)).expect("nobody is lost") {
                break found;
            }
        };
        assert_eq!((arrived.source, arrived.tag, arrived.bytes), (0, 1, 5000));
        assert_eq!(
            w.engines[1].iprobe(&c1, None, Some(1)),
            Ok(None),
            "a taken message is not found again"
        );
        let first = w.engines[1]
            .iprobe(&c1, None, None)
            .expect("nobody is lost")
            .expect("the first message");
        assert_eq!((first.tag, first.bytes), (0, 100));
        let targets = [OwnMemory::new(0, 100), OwnMemory::new(0, 5000)];
        let taken = w.engines[1].imrecv(message, receiving(&targets[1], 5000));
        let posted = w.engines[1].irecv(&c1, None, None, receiving(&targets[0], 100));
        assert_eq!(w.finish(1, taken).tag, 1);
        assert_eq!(w.finish(1, posted).tag, 0);
        assert!(content(&targets[1], 5000) == data[1] && content(&targets[0], 100) == data[0]);
        let again = w.engines[1].imrecv(message, ReceiveBuffer::EMPTY);
        assert!(matches!(w.finish(1, again).error, Some(EngineError::Misuse { .. })));
        for send in sends {
            w.finish(0, send);
        }
        w.close();
    }
}

#[test]
fn a_receive_can_be_cancelled_until_it_matches() {
    let mut w = world(2, Options::default());
    let (c0, c1) = (channel(0, 0, 2), channel(0, 1, 2));
    let target = OwnMemory::new(0, 8);
    let cancelled = w.engines[1].irecv(&c1, None, Some(1), receiving(&target, 8));
    let kept = w.engines[1].irecv(&c1, Some(0), Some(1), receiving(&target, 8));
    w.engines[1].cancel(cancelled);
    assert!(w.finish(1, cancelled).cancelled);
    let source = memory(b"12345678");
    w.engines[0]
        .send(&c0, 1, 1, Mode::Standard, sending(&source, 8))
        .expect("nobody is lost");
    w.poll();
    w.engines[1].cancel(kept);
    let completion = w.finish(1, kept);
    assert!(!completion.cancelled && completion.bytes == 8);
    assert_eq!(content(&target, 8), b"12345678");
    assert!(w.engines[1].core.take(kept).is_none(), "a stale name names nothing");
}

#[test]
fn unexpected_messages_take_bounded_memory() {
    let mut w = world(
        2,
        Options {
            queue: 1 << 20,
            ..Options::default()
        },
    );
    let (c0, c1) = (channel(0, 0, 2), channel(0, 1, 2));
    let source = memory(&pattern(1, 10_000));
    let mut requests = vec![];
    let mut left = 0;
    for i in 0..2000 {
        match w.engines[0]
            .send(&c0, 1, i, Mode::Standard, sending(&source, 10_000))
            .expect("nobody is lost")
        {
            None => left += 1,
            Some(request) => requests.push(request),
        }
    }
    assert!(
        left * 10_000 <= isthmus_protocol::credit::WINDOW as i32 && left > 100,
        "{left} left at once"
    );
    w.poll();
    let target = OwnMemory::new(0, 10_000);
    for i in (0..2000).rev() {
        let posted = w.engines[1].irecv(&c1, Some(0), Some(i), receiving(&target, 10_000));
        assert_eq!(w.finish(1, posted).error, None);
    }
    for request in requests {
        w.finish(0, request);
    }
    w.close();
}

#[test]
fn whoever_waits_for_a_lost_peer_is_told() {
    let mut w = world(3, Options::default());
    let c = channel(0, 0, 3);
    let others = Channel {
        members: isthmus_engine::Members::Range {
            first: Peer::new(0),
            count: 2,
        },
        ..channel(2, 0, 2)
    };
    let source = memory(&pattern(0, 100_000));
    let target = OwnMemory::new(0, 8);
    let doomed = [
        w.engines[0].irecv(&c, Some(2), Some(0), receiving(&target, 8)),
        w.engines[0].irecv(&c, None, Some(0), receiving(&target, 8)),
        w.engines[0].isend(&c, 2, 0, Mode::Standard, sending(&source, 100_000)),
        w.engines[0].isend(&c, 2, 0, Mode::Synchronous, sending(&source, 8)),
    ];
    let fine = [
        w.engines[0].irecv(&c, Some(1), Some(0), receiving(&target, 8)),
        w.engines[0].irecv(&others, None, Some(0), receiving(&target, 8)),
    ];
    w.switch.kill(Peer::new(2), "host lab3 does not answer");
    for request in doomed {
        let error = w.finish(0, request).error.expect("an error");
        assert_eq!(
            error,
            EngineError::PeerLost {
                peer: Peer::new(2),
                who: "process 2 of MPI_COMM_WORLD".into(),
                reason: "host lab3 does not answer".into(),
                goes_on: false,
            }
        );
    }
    let late = w.engines[0].isend(&c, 2, 0, Mode::Standard, sending(&source, 8));
    assert!(w.finish(0, late).error.is_some());
    assert!(
        w.engines[0]
            .send(&c, 2, 0, Mode::Standard, sending(&source, 8))
            .is_err()
    );
    assert!(w.engines[0].iprobe(&c, Some(2), None).is_err());
    assert!(fine.iter().all(|&request| w.engines[0].core.test(request).is_none()));
    w.engines[1].isend(&channel(0, 1, 3), 0, 0, Mode::Standard, sending(&source, 8));
    assert_eq!(w.finish(0, fine[0]).error, None);
}

#[test]
fn counters_count_user_messages() {
    let mut w = world(2, Options::default());
    let c = channel(0, 0, 2);
    let source = memory(&pattern(0, 100_000));
    let target = OwnMemory::new(0, 100_000);
    for length in [8, 100_000] {
        let posted = w.engines[1].irecv(&channel(0, 1, 2), Some(0), None, receiving(&target, 100_000));
        let sent = w.engines[0].isend(&c, 1, 0, Mode::Standard, sending(&source, length));
        w.finish(1, posted);
        w.finish(0, sent);
    }
    let rows = w.engines[0].core.tools().counters().rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].0.as_str(), rows[0].1, rows[0].2.messages, rows[0].2.bytes),
        ("point-to-point", 4, 2, 100_008)
    );
}

struct Sent {
    source: u32,
    to: u32,
    context: u32,
    tag: i32,
    data: Vec<u8>,
    request: Request,
    _memory: OwnMemory,
}

struct Wanted {
    at: u32,
    context: u32,
    from: Option<u32>,
    tag: Option<i32>,
    request: Request,
    memory: OwnMemory,
    /// Number of the message that it got.
    got: Option<usize>,
}

const ROOM: usize = 6000;

/// Random sends and receives; at the end every receive that could match has matched by the rules of MPI.
fn random_operations(seed: u64, options: Options) {
    let count = 3;
    let mut w = world(count, options);
    let mut random = Random(seed);
    let (mut sent, mut wanted): (Vec<Sent>, Vec<Wanted>) = (vec![], vec![]);
    for _ in 0..120 {
        let (a, b) = (random.below(3) as u32, random.below(3) as u32);
        let context = 2 * random.below(2) as u32;
        match random.below(5) {
            0 | 1 => {
                let length = [0, 5, 60, 900, 1024, 1500, 5000][random.below(7) as usize];
                let mut data = pattern(sent.len(), length + 8);
                data[..8].copy_from_slice(&(sent.len() as u64).to_le_bytes());
                let memory = memory(&data);
                let mode = [Mode::Standard, Mode::Synchronous, Mode::Buffered][random.below(3) as usize];
                let tag = random.below(3) as i32;
                let buffer = sending(&memory, data.len() as u64);
                let request = w.engines[a as usize].isend(&channel(context, a, count), b, tag, mode, buffer);
                sent.push(Sent {
                    source: a,
                    to: b,
                    context,
                    tag,
                    data,
                    request,
                    _memory: memory,
                });
            }
            2 | 3 => {
                let from = (random.below(3) > 0).then_some(b);
                let tag = (random.below(3) > 0).then_some(random.below(3) as i32);
                let memory = OwnMemory::new(0, ROOM as isize);
                let buffer = receiving(&memory, ROOM as u64);
                let request = w.engines[a as usize].irecv(&channel(context, a, count), from, tag, buffer);
                wanted.push(Wanted {
                    at: a,
                    context,
                    from,
                    tag,
                    request,
                    memory,
                    got: None,
                });
            }
            _ => (0..random.below(4)).for_each(|_| w.poll()),
        }
    }
    (0..5000).for_each(|_| w.poll());
    for want in &mut wanted {
        let Some(done) = w.engines[want.at as usize].core.take(want.request) else {
            continue;
        };
        let number = content(&want.memory, 8);
        let number = u64::from_le_bytes(number.try_into().expect("8 bytes")) as usize;
        let message = &sent[number];
        assert_eq!(
            (done.source, done.tag, done.bytes),
            (message.source, message.tag, message.data.len() as u64)
        );
        assert!(
            content(&want.memory, message.data.len()) == message.data,
            "data of message {number}"
        );
        assert!(fits(want, message));
        want.got = Some(number);
    }
    check_order(&sent, &wanted);
    check_ends(&w, &sent, &wanted);
}

fn fits(want: &Wanted, message: &Sent) -> bool {
    want.at == message.to
        && want.context == message.context
        && want.from.is_none_or(|s| s == message.source)
        && want.tag.is_none_or(|t| t == message.tag)
}

/// A receive takes the first of the messages of a sender that fit it.
fn check_order(sent: &[Sent], wanted: &[Wanted]) {
    for (posted, want) in wanted.iter().enumerate() {
        let Some(number) = want.got else { continue };
        for (earlier, message) in sent[..number].iter().enumerate() {
            if message.source == sent[number].source && fits(want, message) {
                let taken = wanted[..posted].iter().any(|other| other.got == Some(earlier));
                assert!(
                    taken,
                    "receive {posted} took message {number} and passed over {earlier}"
                );
            }
        }
    }
}

/// What is left over fits nothing; sends of matched messages are complete, synchronous ones only those.
fn check_ends(w: &World, sent: &[Sent], wanted: &[Wanted]) {
    let matched = |number: usize| wanted.iter().filter(|want| want.got == Some(number)).count();
    for (number, message) in sent.iter().enumerate() {
        assert!(matched(number) <= 1, "message {number} was received twice");
        if matched(number) == 1 {
            assert!(
                w.engines[message.source as usize].core.test(message.request).is_some(),
                "send {number} is not complete"
            );
        } else {
            let left = wanted.iter().filter(|want| want.got.is_none());
            assert!(
                !left.clone().any(|want| fits(want, message)),
                "message {number} fits a receive that waits"
            );
        }
    }
}

#[test]
fn random_operations_follow_the_rules_of_matching() {
    for seed in 1..=20 {
        for options in kinds() {
            random_operations(
                seed,
                Options {
                    seed: options.seed * seed,
                    ..options
                },
            );
        }
    }
}
