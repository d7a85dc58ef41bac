// SPDX-License-Identifier: Apache-2.0
//! Sends that are cancelled, and partitioned messages, over networks of all kinds with random delays.

mod common;

use std::sync::Arc;

use common::{EAGER, FRAME, Random, World, channel, content, kinds, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{EngineError, Mode, Request};
use isthmus_transport::Peer;
use isthmus_transport::memory::Options;

/// A message that is announced and one of many frames, bytes.
const ANNOUNCED: usize = 2 * EAGER;
const LONG: usize = if cfg!(miri) { 3 * FRAME } else { 17 * FRAME } + 100;
/// A partitioned message, bytes; whole numbers of all partitions.
const PARTED: usize = if cfg!(miri) { 1_200 } else { 24_000 };
/// In how many pairs of partitions messages go.
const PARTS: usize = if cfg!(miri) { 1 } else { 4 };
/// Rounds of progress in which a message has come for good.
const ROUNDS: usize = if cfg!(miri) { 60 } else { 200 };
const CASES: usize = if cfg!(miri) { 4 } else { 24 };
const MODES: [Mode; 3] = [Mode::Standard, Mode::Synchronous, Mode::Buffered];

fn send(w: &mut World, to: u32, tag: i32, mode: Mode, data: &OwnMemory, length: usize) -> Request {
    w.engines[0].isend(&channel(0, 0, 2), to, tag, mode, sending(data, length as u64))
}

#[test]
fn a_message_is_cancelled_or_received_never_both() {
    for options in kinds() {
        for (case, length) in [0_usize, 8, ANNOUNCED, LONG]
            .into_iter()
            .cycle()
            .take(CASES)
            .enumerate()
        {
            let mode = MODES[case % 3];
            for to in [0, 1] {
                let mut w = world(2, options);
                let data = memory(&pattern(case, length));
                let sent = send(&mut w, to, 1, mode, &data, length);
                for _ in 0..case {
                    w.poll();
                }
                let target = OwnMemory::new(0, LONG as isize);
                let early = (case % 2 == 0).then(|| {
                    w.engines[to as usize].irecv(&channel(0, to, 2), None, Some(1), receiving(&target, LONG as u64))
                });
                w.engines[0].cancel(sent);
                // Asked twice is as once.
                w.engines[0].cancel(sent);
                let outcome = w.finish(0, sent);
                assert_eq!(outcome.error, None);
                // What comes next is what a receive gets if the first was cancelled.
                let follower = memory(&pattern(case + 1, 16));
                let second = send(&mut w, to, 1, Mode::Standard, &follower, 16);
                let posted = early.unwrap_or_else(|| {
                    w.engines[to as usize].irecv(&channel(0, to, 2), None, Some(1), receiving(&target, LONG as u64))
                });
                let got = w.finish(to as usize, posted);
                let (seed, expected) = if outcome.cancelled {
                    (case + 1, 16)
                } else {
                    (case, length)
                };
                assert_eq!(
                    (got.bytes, got.error),
                    (expected as u64, None),
                    "{options:?} {case} {mode:?} {to}"
                );
                assert!(
                    content(&target, expected) == pattern(seed, expected),
                    "{options:?} {case} {mode:?} {to}"
                );
                if !outcome.cancelled {
                    let rest = w.engines[to as usize].irecv(&channel(0, to, 2), None, Some(1), receiving(&target, 16));
                    w.finish(to as usize, rest);
                }
                w.finish(0, second);
                w.close();
            }
        }
    }
}

#[test]
fn a_message_that_waits_at_its_receiver_is_taken_back() {
    for options in kinds() {
        for length in [0_usize, 8, ANNOUNCED, LONG] {
            for mode in MODES {
                let mut w = world(2, options);
                let data = memory(&pattern(1, length));
                let sent = send(&mut w, 1, 1, mode, &data, length);
                // What is still on its way may be received instead.
                for _ in 0..ROUNDS {
                    w.poll();
                }
                assert!(matches!(
                    w.engines[1].iprobe(&channel(0, 1, 2), None, None),
                    Ok(Some(_))
                ));
                w.engines[0].cancel(sent);
                assert!(w.finish(0, sent).cancelled, "{options:?} {length} {mode:?}");
                assert_eq!(w.engines[1].iprobe(&channel(0, 1, 2), None, None), Ok(None));
                w.close();
            }
        }
    }
}

/// Three partitioned messages with the same tag; rounds in which sender and receiver start in any order.
fn partitioned(options: Options, seed: u64, to: u32, parts: [u32; 2], length: usize) {
    let mut random = Random(seed);
    let mut w = world(2, options);
    let (here, there) = (channel(0, 0, 2), channel(0, to, 2));
    let at = to as usize;
    let data: Vec<_> = (0..3).map(|i| memory(&pattern(i, length))).collect();
    let targets: Vec<_> = (0..3).map(|_| OwnMemory::new(0, length as isize)).collect();
    let outlets: Vec<_> = (0..3)
        .map(|_| w.engines[0].partitioned().psend_init(&here, to, 5))
        .collect();
    let inlets: Vec<_> = (0..3)
        .map(|_| w.engines[at].partitioned().precv_init(&there, 0, 5))
        .collect();
    for _ in 0..3 {
        let mut steps: Vec<(usize, bool)> = (0..3).flat_map(|i| [(i, true), (i, false)]).collect();
        let (mut sends, mut receives) = (vec![None; 3], vec![None; 3]);
        while !steps.is_empty() {
            let (i, is_send) = steps.swap_remove(random.below(steps.len() as u64) as usize);
            if is_send {
                let request =
                    w.engines[0]
                        .partitioned()
                        .psend_start(outlets[i], sending(&data[i], length as u64), parts[0]);
                sends[i] = Some(request);
                let mut order: Vec<u32> = (0..parts[0]).collect();
                while !order.is_empty() {
                    let partition = order.swap_remove(random.below(order.len() as u64) as usize);
                    assert_eq!(w.engines[0].partitioned().pready(request, partition), Ok(()));
                    if random.below(4) == 0 {
                        w.poll();
                    }
                }
                assert!(matches!(
                    w.engines[0].partitioned().pready(request, 0),
                    Err(EngineError::Misuse { .. })
                ));
            } else {
                receives[i] = Some(w.engines[at].partitioned().precv_start(
                    inlets[i],
                    receiving(&targets[i], length as u64),
                    parts[1],
                ));
            }
        }
        for i in 0..3 {
            let receive = receives[i].expect("started");
            let mut there = vec![false; parts[1] as usize];
            for _ in 0..100_000 {
                w.poll();
                let size = length / parts[1] as usize;
                for p in 0..parts[1] {
                    if !there[p as usize] && w.engines[at].partitioned().parrived(receive, p) {
                        there[p as usize] = true;
                        let from = p as usize * size;
                        assert!(
                            content(&targets[i], length)[from..from + size] == pattern(i, length)[from..from + size]
                        );
                    }
                }
                if there.iter().all(|&t| t) {
                    break;
                }
            }
            let got = w.finish(at, receive);
            assert_eq!((got.source, got.tag, got.bytes, got.error), (0, 5, length as u64, None));
            assert!(
                content(&targets[i], length) == pattern(i, length),
                "{options:?} {seed} {i}"
            );
            targets[i].memory().with_mut(0, length, |bytes| bytes.fill(0));
            assert_eq!(w.finish(0, sends[i].expect("started")).error, None);
        }
    }
    for i in 0..3 {
        w.engines[0].release(outlets[i]);
        w.engines[at].release(inlets[i]);
    }
    w.close();
}

#[test]
fn partitioned_messages_arrive_in_the_order_of_initialization() {
    for (seed, options) in (0..).zip(kinds()) {
        for to in [0, 1] {
            for parts in [[4, 6], [1, 1], [12, 1], [1, 12]].into_iter().take(PARTS) {
                for length in [0, 24, PARTED] {
                    partitioned(options, seed, to, parts, length);
                }
            }
        }
    }
}

#[test]
fn a_partitioned_receive_that_was_freed_leaves_the_order_as_it_is() {
    let mut w = world(2, kinds()[0]);
    let (here, there) = (channel(0, 0, 2), channel(0, 1, 2));
    let first = w.engines[1].partitioned().precv_init(&there, 0, 5);
    let second = w.engines[1].partitioned().precv_init(&there, 0, 5);
    w.engines[1].release(first);
    let outlets = [0, 1].map(|_| w.engines[0].partitioned().psend_init(&here, 1, 5));
    let (data, target) = (memory(&pattern(7, 100)), OwnMemory::new(0, 100));
    let sent = w.engines[0]
        .partitioned()
        .psend_start(outlets[1], sending(&data, 100), 1);
    assert_eq!(w.engines[0].partitioned().pready(sent, 0), Ok(()));
    let got = w.engines[1]
        .partitioned()
        .precv_start(second, receiving(&target, 100), 1);
    assert_eq!(w.finish(1, got).bytes, 100);
    assert!(content(&target, 100) == pattern(7, 100));
    w.finish(0, sent);
    w.close();
}

#[test]
fn a_lost_sender_fails_a_partitioned_receive() {
    let mut w = world(2, kinds()[0]);
    let inlet = w.engines[1].partitioned().precv_init(&channel(0, 1, 2), 0, 5);
    let target = OwnMemory::new(0, 100);
    let got = w.engines[1]
        .partitioned()
        .precv_start(inlet, receiving(&target, 100), 1);
    w.switch.kill(Peer::new(0), "it is gone");
    assert!(matches!(
        w.finish(1, got).error,
        Some(EngineError::PeerLost { peer, .. }) if peer == Peer::new(0)
    ));
    let again = w.engines[1]
        .partitioned()
        .precv_start(inlet, receiving(&target, 100), 1);
    assert!(matches!(
        w.finish(1, again).error,
        Some(EngineError::PeerLost { peer, .. }) if peer == Peer::new(0)
    ));
}

#[test]
fn a_send_without_a_request_can_be_cancelled() {
    for options in kinds() {
        let mut w = world(2, options);
        let data = pattern(1, 16);
        let send = |w: &mut World, tag| w.engines[0].core.isend_at_once(&channel(0, 0, 2), 1, tag, &data);
        let (Some(lost), Some(kept)) = (send(&mut w, 1), send(&mut w, 2)) else {
            // This network refuses frames now and then.
            continue;
        };
        let target = OwnMemory::new(0, 16);
        let posted = w.engines[1].irecv(&channel(0, 1, 2), Some(0), Some(2), receiving(&target, 16));
        assert_eq!(w.finish(1, posted).bytes, 16);
        // One has not matched, the other one has.
        for (sent, cancelled) in [(lost, true), (kept, false)] {
            let recall = w.engines[0].cancel_sent(sent);
            let outcome = w.finish(0, recall);
            assert_eq!((outcome.cancelled, outcome.error), (cancelled, None), "{options:?}");
        }
        w.close();
    }
}

#[test]
fn what_is_kept_for_a_released_request_goes_when_its_operation_is_over() {
    for options in kinds() {
        for length in [8, LONG] {
            for sends in [true, false] {
                let mut w = world(2, options);
                let (data, target) = (memory(&pattern(1, length)), OwnMemory::new(0, LONG as isize));
                let kept = Arc::new(());
                let room = receiving(&target, length as u64);
                let first = if sends {
                    send(&mut w, 1, 1, Mode::Synchronous, &data, length)
                } else {
                    w.engines[1].irecv(&channel(0, 1, 2), Some(0), Some(1), room.clone())
                };
                let at = usize::from(!sends);
                w.engines[at].core.keep(first, Box::new(kept.clone()));
                w.engines[at].release(first);
                for _ in 0..50 {
                    w.poll();
                }
                assert_eq!(Arc::strong_count(&kept), 2, "{options:?} {length} {sends}: not yet");
                let second = if sends {
                    w.engines[1].irecv(&channel(0, 1, 2), Some(0), Some(1), room)
                } else {
                    send(&mut w, 1, 1, Mode::Synchronous, &data, length)
                };
                w.finish(usize::from(sends), second);
                while Arc::strong_count(&kept) > 1 {
                    w.poll();
                }
                assert!(content(&target, length) == pattern(1, length));
            }
        }
    }
}
