// SPDX-License-Identifier: Apache-2.0
//! A sender that is far ahead of its receiver: trips are counted, not time.

mod common;

use common::{World, channel, content, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Mode, Request};
use isthmus_protocol::credit::WINDOW;
use isthmus_transport::Peer;
use isthmus_transport::memory::Options;

fn roomy() -> Options {
    Options {
        queue: 1 << 21,
        ..Options::default()
    }
}

fn send(w: &mut World, from: u32, tag: i32, mode: Mode, data: &OwnMemory, length: usize) -> Request {
    let channel = channel(0, from, 3);
    w.engines[from as usize].isend(&channel, 2, tag, mode, sending(data, length as u64))
}

/// Process 2 receives this message. The others are let run only when it cannot go on without them: so often.
fn receive(w: &mut World, from: u32, tag: i32, target: &OwnMemory, room: usize) -> usize {
    let channel = channel(0, 2, 3);
    let posted = w.engines[2].irecv(&channel, Some(from), Some(tag), receiving(target, room as u64));
    for trip in 0..100 {
        w.engines[2].progress();
        w.engines[2].progress();
        if let Some(completion) = w.engines[2].core.take(posted) {
            assert_eq!((completion.error, completion.bytes), (None, room as u64));
            return trip;
        }
        w.engines[0].progress();
        w.engines[1].progress();
    }
    panic!("message {tag} of {from} does not come");
}

#[test]
fn messages_are_not_fetched_one_by_one() {
    let beyond = 2 * WINDOW as usize;
    let cases = [
        (5000, beyond / 5000, Mode::Standard, 0),
        (5000, beyond / 5000, Mode::Synchronous, 0),
        (16_384, beyond / 16_384, Mode::Buffered, 40_000),
        (8, WINDOW as usize / 120, Mode::Standard, 0),
    ];
    for (length, count, mode, long) in cases {
        let mut w = world(3, roomy());
        let data = memory(&pattern(7, length.max(long)));
        let mut sent = Vec::new();
        for from in [0, 1] {
            if long > 0 {
                sent.push((from, send(&mut w, from, -1, Mode::Standard, &data, long)));
            }
            for tag in 0..count {
                sent.push((from, send(&mut w, from, tag as i32, mode, &data, length)));
            }
        }
        let target = OwnMemory::new(0, length.max(long) as isize);
        let mut trips = 0;
        for from in [0, 1] {
            for tag in 0..count {
                trips += receive(&mut w, from, tag as i32, &target, length);
                assert!(tag % 100 != 0 || content(&target, length) == pattern(7, length.max(long))[..length]);
            }
            if long > 0 {
                trips += receive(&mut w, from, -1, &target, long);
            }
        }
        assert!(
            trips <= 12,
            "{count} messages of {length} bytes, {mode:?}: {trips} trips"
        );
        for (from, request) in sent {
            assert_eq!(w.finish(from as usize, request).error, None);
        }
        w.close();
    }
}

/// Where the peer is far long messages come ahead, too, in as little memory.
#[test]
fn long_messages_of_a_far_peer_are_not_fetched_one_by_one() {
    let far = |far| Options { far, ..roomy() };
    let cases = [
        (far(true), 100_000, 40, 0..=1),
        (far(true), 3 << 20, 6, 0..=3),
        // Too long to come ahead, and near.
        (far(true), (4 << 20) + 1, 3, 3..=9),
        (far(false), 100_000, 40, 40..=120),
    ];
    for (options, length, count, expected) in cases {
        let mut w = world(3, options);
        let data = memory(&pattern(7, length));
        let mode = |tag| [Mode::Standard, Mode::Synchronous][tag as usize % 2];
        let sent: Vec<Request> = (0..count)
            .map(|tag| send(&mut w, 0, tag, mode(tag), &data, length))
            .collect();
        (0..200).for_each(|_| w.poll());
        assert!(
            w.engines[0].core.test(sent[1]).is_none(),
            "what nobody has received is synchronous"
        );
        let target = OwnMemory::new(0, length as isize);
        let mut trips = 0;
        for tag in 0..count {
            trips += receive(&mut w, 0, tag, &target, length);
            // Time for what was called in meanwhile.
            (0..200).for_each(|_| w.poll());
            assert!(content(&target, length) == pattern(7, length), "{length} bytes");
        }
        assert!(
            expected.contains(&trips),
            "{count} messages of {length} bytes: {trips} trips"
        );
        for request in sent {
            assert_eq!(w.finish(0, request).error, None);
        }
        w.close();
    }
}

/// Sends and keeps as many messages as leave no credit.
fn flood(w: &mut World, data: &OwnMemory) -> Vec<Request> {
    (0..WINDOW / 16_000 + 1)
        .map(|_| send(w, 0, 99, Mode::Standard, data, 16_000))
        .collect()
}

#[test]
fn an_announced_message_is_cancelled_or_received_never_both() {
    let data = memory(&pattern(3, 16_000));
    let target = OwnMemory::new(0, 16_000);
    for (case, mode) in [Mode::Standard, Mode::Synchronous, Mode::Buffered]
        .into_iter()
        .cycle()
        .take(30)
        .enumerate()
    {
        let mut w = world(
            3,
            Options {
                seed: case as u64 / 10,
                ..roomy()
            },
        );
        let ahead = flood(&mut w, &data);
        let sent = send(&mut w, 0, 1, mode, &data, 2000);
        (0..case % 10).for_each(|_| w.poll());
        w.engines[0].cancel(sent);
        let cancelled = if case % 2 == 0 {
            let cancelled = w.finish(0, sent).cancelled;
            if !cancelled {
                receive(&mut w, 0, 1, &target, 2000);
            }
            cancelled
        } else {
            let posted = w.engines[2].irecv(&channel(0, 2, 3), Some(0), Some(1), receiving(&target, 2000));
            let cancelled = w.finish(0, sent).cancelled;
            if cancelled {
                w.engines[2].cancel(posted);
            }
            let got = w.finish(2, posted);
            assert_eq!(got.cancelled, cancelled, "case {case}");
            cancelled
        };
        if !cancelled {
            assert!(content(&target, 2000) == pattern(3, 16_000)[..2000], "case {case}");
        }
        for _ in &ahead {
            receive(&mut w, 0, 99, &target, 16_000);
        }
        for request in ahead {
            assert_eq!(w.finish(0, request).error, None);
        }
        let rest = w.engines[2].iprobe(&channel(0, 2, 3), None, None);
        assert!(matches!(rest, Ok(None)), "case {case}: the message came twice");
        w.close();
    }
}

#[test]
fn a_synchronous_message_that_was_called_in_has_not_matched() {
    let mut w = world(3, roomy());
    let data = memory(&pattern(3, 16_000));
    let target = OwnMemory::new(0, 16_000);
    flood(&mut w, &data);
    let sent = send(&mut w, 0, 1, Mode::Synchronous, &data, 2000);
    let plain = send(&mut w, 0, 2, Mode::Standard, &data, 2000);
    (0..100).for_each(|_| w.poll());
    assert!(w.engines[0].core.test(plain).is_some(), "it has left");
    assert!(w.engines[0].core.test(sent).is_none(), "nobody has received it");
    receive(&mut w, 0, 1, &target, 2000);
    assert_eq!(w.finish(0, sent).error, None);
}

#[test]
fn what_was_called_in_is_lost_with_its_sender_or_stays() {
    let data = memory(&pattern(3, 16_000));
    let target = OwnMemory::new(0, 16_000);
    // The sender falls silent before it knows that it was asked, or after it has answered.
    for answered in [false, true] {
        for early in [false, true] {
            let mut w = world(3, roomy());
            flood(&mut w, &data);
            send(&mut w, 0, 1, Mode::Standard, &data, 2000);
            w.engines[2].progress();
            if answered {
                (0..10).for_each(|_| w.poll());
            }
            let c = channel(0, 2, 3);
            let posted = early.then(|| w.engines[2].irecv(&c, Some(0), Some(1), receiving(&target, 2000)));
            w.switch.kill(Peer::new(0), "its host is gone");
            (0..3).for_each(|_| w.poll());
            let posted = posted.unwrap_or_else(|| w.engines[2].irecv(&c, Some(0), Some(1), receiving(&target, 2000)));
            assert_eq!(w.finish(2, posted).error.is_none(), answered, "{answered} {early}");
        }
    }
}

#[test]
fn whoever_cancels_waits_for_no_receiver_that_is_elsewhere() {
    for mode in [Mode::Standard, Mode::Synchronous, Mode::Buffered] {
        let mut w = world(3, roomy());
        let data = memory(&pattern(3, 16_000));
        let target = OwnMemory::new(0, 16_000);
        let ahead = flood(&mut w, &data);
        let own = memory(&pattern(4, 2000));
        let first = send(&mut w, 0, 1, mode, &own, 2000);
        let second = send(&mut w, 0, 1, Mode::Standard, &data, 3000);
        w.engines[0].cancel(first);
        // Nobody else runs.
        let ended = loop {
            match w.engines[0].core.take(first) {
                Some(completion) => break completion,
                None => drop(w.engines[0].progress()),
            }
        };
        assert_eq!((ended.cancelled, ended.error), (false, None));
        own.memory().write(0, &[0; 2000]);
        let third = send(&mut w, 0, 1, Mode::Standard, &data, 4000);
        receive(&mut w, 0, 1, &target, 2000);
        assert!(content(&target, 2000) == pattern(4, 2000), "{mode:?}");
        receive(&mut w, 0, 1, &target, 3000);
        receive(&mut w, 0, 1, &target, 4000);
        for _ in &ahead {
            receive(&mut w, 0, 99, &target, 16_000);
        }
        for request in ahead.into_iter().chain([second, third]) {
            assert_eq!(w.finish(0, request).error, None);
        }
        w.close();
    }
}
