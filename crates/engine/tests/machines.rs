// SPDX-License-Identifier: Apache-2.0
//! Machines of other rooms: a protocol registers itself, and the engine moves what it says.

mod common;

use common::store::{ADD, PUT, Store, at, flush, get, write};
use common::{EAGER, FRAME, Random, World, channel, content, kinds, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{EngineError, Mode, Peer, SendBuffer, with_machine};
use isthmus_protocol::credit::WINDOW;
use isthmus_transport::memory::Options;
use isthmus_wire::frame::protocol;

const LENGTH: usize = 8 * FRAME + 100;

fn stores(count: u32, options: Options) -> World {
    let mut all = world(count, options);
    for engine in &mut all.engines {
        engine.register(protocol::TEST, Box::new(Store::new(LENGTH)));
    }
    all
}

fn stored(world: &mut World, at_rank: usize) -> Vec<u8> {
    at(&mut world.engines[at_rank], |store, _| content(&store.memory, LENGTH))
}

fn is_lost(error: Option<&EngineError>, who: u32) -> bool {
    matches!(error, Some(EngineError::PeerLost { peer, .. }) if *peer == Peer::new(who))
}

#[test]
fn puts_and_additions_are_done_in_order_and_gets_see_them() {
    for options in kinds() {
        let mut w = stores(2, options);
        let (mut random, mut model) = (Random(options.seed + 7), vec![0_u8; LENGTH]);
        for round in 0..60 {
            let length = match random.below(3) {
                0 => random.below(20),
                1 => random.below(EAGER as u64),
                _ => random.below(5 * FRAME as u64),
            } as usize;
            let place = random.below((LENGTH - length) as u64 + 1) as usize;
            let bytes = pattern(round, length);
            let what = if random.below(2) == 0 { PUT } else { ADD };
            for (byte, new) in model[place..].iter_mut().zip(&bytes) {
                *byte = if what == PUT { *new } else { byte.wrapping_add(*new) };
            }
            let payload = SendBuffer::owned(bytes.into());
            let sent = write(&mut w.engines[0], Peer::new(1), what, place as u64, payload);
            assert!(sent.is_ok());
            if random.below(4) == 0 {
                w.poll();
            }
            if random.below(8) == 0 {
                let target = OwnMemory::new(0, LENGTH as isize);
                let request = get(&mut w.engines[0], Peer::new(1), 0, target.memory(), LENGTH as u64);
                assert_eq!(w.finish(0, request).error, None, "{options:?}");
                assert!(content(&target, LENGTH) == model, "round {round}, {options:?}");
            }
        }
        let request = flush(&mut w.engines[0], Peer::new(1));
        assert_eq!(w.finish(0, request).error, None);
        assert!(stored(&mut w, 1) == model, "{options:?}");
        let (placed, sent) = at(&mut w.engines[1], |store, _| (store.placed, store.sent.len()));
        assert_eq!((placed > 0, sent), (options.place <= FRAME, 0), "{options:?}");
        assert!(at(&mut w.engines[0], |store, _| store.looks) > 0, "progress moves it");
        w.close();
    }
}

#[test]
fn memory_is_free_when_the_machine_hears_that_it_has_left() {
    for options in kinds() {
        let mut w = stores(2, options);
        let mut names = Vec::new();
        let mut sources = std::collections::HashMap::new();
        // Every second byte of the source, through the packer.
        let holes = Datatype::vector(FRAME as i64, 1, 2, &Datatype::of(Basic::Byte)).expect("a type");
        for (number, place) in [0, 3 * FRAME, 6 * FRAME].into_iter().enumerate() {
            let source = memory(&pattern(number, 2 * FRAME));
            let payload = match number {
                1 => SendBuffer::typed(source.reading(), &holes, 1).expect("a buffer"),
                _ => sending(&source, 2 * FRAME as u64),
            };
            let name = write(&mut w.engines[0], Peer::new(1), PUT, place as u64, payload).expect("nobody is lost");
            match name {
                Some(name) => {
                    names.push(name);
                    sources.insert(name, source);
                }
                None => source.memory().write(0, &[0; 2 * FRAME]),
            }
        }
        let mut heard = Vec::new();
        for _ in 0..10_000 {
            w.poll();
            for (name, outcome) in at(&mut w.engines[0], |store, _| std::mem::take(&mut store.sent)) {
                assert_eq!(outcome, Ok(()));
                sources[&name].memory().write(0, &[0; 2 * FRAME]);
                heard.push(name);
            }
        }
        assert_eq!(heard, names, "each once and in order, {options:?}");
        let (all, third) = (stored(&mut w, 1), pattern(2, 2 * FRAME));
        assert!(all[..2 * FRAME] == pattern(0, 2 * FRAME) && all[6 * FRAME..8 * FRAME] == third);
        let second: Vec<u8> = pattern(1, 2 * FRAME).into_iter().step_by(2).collect();
        assert!(all[3 * FRAME..4 * FRAME] == second, "{options:?}");
    }
}

#[test]
fn a_receiver_that_does_not_consume_bounds_what_it_keeps_and_messages_go_on() {
    for seed in [0, 9] {
        let mut w = stores(
            2,
            Options {
                seed,
                ..Options::default()
            },
        );
        at(&mut w.engines[1], |store, _| store.lock());
        let mut model = vec![0_u8; LENGTH];
        let bytes = pattern(3, 16_384);
        let rounds = 2 * WINDOW as usize / bytes.len();
        for _ in 0..rounds {
            model
                .iter_mut()
                .zip(&bytes)
                .for_each(|(old, new)| *old = old.wrapping_add(*new));
            let payload = SendBuffer::owned(bytes.clone().into());
            assert!(write(&mut w.engines[0], Peer::new(1), ADD, 0, payload).is_ok());
        }
        let over = flush(&mut w.engines[0], Peer::new(1));
        (0..3000).for_each(|_| w.poll());
        let kept = at(&mut w.engines[1], |store, _| store.kept());
        assert!(kept > WINDOW / 4 * 3 && kept <= WINDOW, "{kept}");
        assert_eq!(w.engines[0].core.test(over), None);
        // A message does not wait behind what waits for credit.
        let (source, target) = (memory(&pattern(4, 100)), OwnMemory::new(0, 100));
        let receive = w.engines[1].irecv(&channel(0, 1, 2), Some(0), Some(0), receiving(&target, 100));
        let message = channel(0, 0, 2);
        let sent = w.engines[0].isend(&message, 1, 0, Mode::Standard, sending(&source, 100));
        assert_eq!((w.finish(1, receive).error, w.finish(0, sent).error), (None, None));
        assert!(!w.engines[0].is_flushed(true), "frames wait for credit");
        at(&mut w.engines[1], |store, port| store.unlock(port));
        assert_eq!(w.finish(0, over).error, None);
        assert!(stored(&mut w, 1) == model);
        w.close();
    }
}

#[test]
fn frames_of_machines_leave_beside_long_messages() {
    let options = Options {
        frame: FRAME,
        eager: EAGER,
        queue: 2,
        ..Options::default()
    };
    let mut w = stores(2, options);
    let length = 200 * FRAME;
    let (source, target) = (memory(&pattern(1, length)), OwnMemory::new(0, length as isize));
    let message = receiving(&target, length as u64);
    let receive = w.engines[1].irecv(&channel(0, 1, 2), Some(0), Some(0), message);
    let message = sending(&source, length as u64);
    let send = w.engines[0].isend(&channel(0, 0, 2), 1, 0, Mode::Standard, message);
    (0..4).for_each(|_| w.poll());
    let request = flush(&mut w.engines[0], Peer::new(1));
    assert_eq!(w.finish(0, request).error, None);
    assert_eq!(w.engines[0].core.test(send), None, "the message takes longer");
    assert_eq!((w.finish(0, send).error, w.finish(1, receive).error), (None, None));
    assert!(content(&target, length) == pattern(1, length));
}

#[test]
fn the_loss_of_a_peer_ends_what_had_not_left_and_what_waits_for_it() {
    for seed in 0..20 {
        let options = Options {
            frame: FRAME,
            queue: 3,
            seed,
            ..Options::default()
        };
        let mut w = stores(3, options);
        let source = memory(&pattern(1, LENGTH));
        let mut queued = Vec::new();
        for _ in 0..10 {
            let sent = write(&mut w.engines[0], Peer::new(1), PUT, 0, sending(&source, LENGTH as u64));
            queued.extend(sent.expect("nobody is lost"));
        }
        let request = flush(&mut w.engines[0], Peer::new(1));
        (0..seed % 5).for_each(|_| w.poll());
        w.switch.kill(Peer::new(1), "it died");
        assert!(is_lost(w.finish(0, request).error.as_ref(), 1), "seed {seed}");
        let store = at(&mut w.engines[0], |store, _| (store.sent.clone(), store.lost.clone()));
        let (names, outcomes): (Vec<u64>, Vec<_>) = store.0.into_iter().unzip();
        assert_eq!((names, store.1), (queued, vec![Peer::new(1)]), "seed {seed}");
        let failed = outcomes.iter().skip_while(|outcome| outcome.is_ok());
        assert!(failed.clone().count() > 0, "seed {seed}");
        assert!(
            failed.clone().all(|outcome| is_lost(outcome.as_ref().err(), 1)),
            "seed {seed}"
        );
        let late = write(&mut w.engines[0], Peer::new(1), PUT, 0, sending(&source, 1));
        assert!(is_lost(late.as_ref().err(), 1), "seed {seed}");
        // The others are as they were.
        let put = write(&mut w.engines[0], Peer::new(2), PUT, 0, sending(&source, LENGTH as u64));
        assert!(put.is_ok());
        let request = flush(&mut w.engines[0], Peer::new(2));
        assert_eq!(w.finish(0, request).error, None, "seed {seed}");
        assert!(stored(&mut w, 2) == pattern(1, LENGTH), "seed {seed}");
    }
}

#[test]
fn memory_that_is_too_short_for_a_payload_is_not_used() {
    let options = Options {
        frame: FRAME,
        place: 1,
        ..Options::default()
    };
    let mut w = stores(2, options);
    at(&mut w.engines[1], |store, _| store.careless = true);
    let payload = SendBuffer::owned(pattern(1, LENGTH).into());
    assert!(write(&mut w.engines[0], Peer::new(1), PUT, 0, payload).is_ok());
    let request = flush(&mut w.engines[0], Peer::new(1));
    assert_eq!(w.finish(0, request).error, None);
    assert_eq!(at(&mut w.engines[1], |store, _| store.placed), 0);
    assert!(stored(&mut w, 1) == pattern(1, LENGTH));
}

#[test]
fn nothing_is_sent_to_the_process_itself_or_to_nobody() {
    let mut w = stores(2, Options::default());
    for to in [Peer::new(0), Peer::new(7), Peer::NONE] {
        let sent = write(&mut w.engines[0], to, PUT, 0, SendBuffer::EMPTY);
        assert!(matches!(sent, Err(EngineError::Misuse { .. })), "{to:?}");
    }
    let of_files = with_machine(&mut w.engines[0], protocol::FILES, |_: &mut Store, _| ());
    let of_another_type = with_machine(&mut w.engines[0], protocol::TEST, |_: &mut String, _| ());
    assert_eq!((of_files, of_another_type), (None, None));
}
