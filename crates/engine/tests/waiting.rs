// SPDX-License-Identifier: Apache-2.0
//! Threads that wait: nobody sleeps through what he waits for.

mod common;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use common::{Random, channel, content, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Engine, EngineError, Mode, Policy, Shared};
use isthmus_transport::Peer;
use isthmus_transport::memory::Options;

fn processes(count: u32, options: Options, policy: Policy) -> Vec<Arc<Shared>> {
    world(count, options)
        .engines
        .into_iter()
        .map(|engine| Arc::new(Shared::new(engine, policy)))
        .collect()
}

fn policies() -> [Policy; 2] {
    [false, true].map(|threads| Policy {
        threads,
        guests: threads,
    })
}

fn send(shared: &Shared, from: u32, to: u32, tag: i32, bytes: &[u8]) {
    let source = memory(bytes);
    let sent = shared.lock().send(
        &channel(0, from, 2),
        to,
        tag,
        Mode::Standard,
        sending(&source, bytes.len() as u64),
    );
    if let Some(request) = sent.expect("nobody is lost") {
        assert_eq!(shared.wait(|engine| engine.core.take(request)).error, None);
    }
}

fn receive(shared: &Shared, at: u32, from: u32, tag: i32, length: usize) -> Vec<u8> {
    let target = OwnMemory::new(0, length as isize);
    let request = shared.lock().irecv(
        &channel(0, at, 2),
        Some(from),
        Some(tag),
        receiving(&target, length as u64),
    );
    let done = shared.wait(|engine| engine.core.take(request));
    assert_eq!((done.bytes, done.error), (length as u64, None));
    content(&target, length)
}

#[test]
fn messages_wake_sleepers() {
    for policy in policies() {
        let both = processes(
            2,
            Options {
                bulk: true,
                place: 1000,
                queue: 4,
                ..Options::default()
            },
            policy,
        );
        std::thread::scope(|scope| {
            for me in 0..2_u32 {
                let shared = both[me as usize].clone();
                scope.spawn(move || {
                    let mut random = Random(u64::from(me));
                    for round in 0..300_usize {
                        let length = [0, 8, 5000, 100_000][round % 4];
                        if random.below(20) == 0 {
                            std::thread::sleep(Duration::from_millis(random.below(3)));
                        }
                        if round % 2 == me as usize {
                            send(&shared, me, 1 - me, 0, &pattern(round, length));
                        } else {
                            assert!(receive(&shared, me, 1 - me, 0, length) == pattern(round, length));
                        }
                    }
                    shared.wait(|engine| engine.close().then_some(()));
                });
            }
        });
    }
}

#[test]
fn threads_of_one_process_wait_for_different_things() {
    let both = processes(
        2,
        Options::default(),
        Policy {
            threads: true,
            guests: true,
        },
    );
    std::thread::scope(|scope| {
        for thread in 0..4 {
            for me in 0..2_u32 {
                let shared = both[me as usize].clone();
                scope.spawn(move || {
                    for round in 0..200_usize {
                        let length = if round % 7 == 0 { 40_000 } else { 16 };
                        if (round + thread) % 23 == 0 {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        if round % 2 == me as usize {
                            send(&shared, me, 1 - me, thread as i32, &pattern(round + thread, length));
                        } else {
                            let got = receive(&shared, me, 1 - me, thread as i32, length);
                            assert!(got == pattern(round + thread, length));
                        }
                    }
                });
            }
        }
    });
}

#[test]
fn a_request_completed_by_another_thread_wakes_its_waiter() {
    let shared = processes(
        1,
        Options::default(),
        Policy {
            threads: true,
            guests: true,
        },
    )
    .remove(0);
    let request = shared.lock().core.user_request();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| shared.wait(|engine| engine.core.take(request)));
        std::thread::sleep(Duration::from_millis(20));
        let completion = isthmus_engine::Completion {
            bytes: 7,
            ..Default::default()
        };
        shared.lock().core.complete_user(request, completion);
        assert_eq!(waiter.join().expect("the waiter").bytes, 7);
    });
}

/// A transport's thread makes progress for a program that computes: a long message completes without a call of MPI.
#[test]
fn a_transports_thread_makes_progress() {
    let both = processes(
        2,
        Options::default(),
        Policy {
            threads: true,
            guests: true,
        },
    );
    let source = memory(&pattern(1, 300_000));
    let target = OwnMemory::new(0, 300_000);
    let sent = both[0]
        .lock()
        .isend(&channel(0, 0, 2), 1, 0, Mode::Standard, sending(&source, 300_000));
    let posted = both[1]
        .lock()
        .irecv(&channel(0, 1, 2), Some(0), Some(0), receiving(&target, 300_000));
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for shared in &both {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    shared.progress_from_thread();
                    std::thread::yield_now();
                }
            });
        }
        let complete = |engine: &Engine, request| engine.core.test(request).is_some();
        while !(complete(&both[0].lock(), sent) && complete(&both[1].lock(), posted)) {
            std::thread::yield_now();
        }
        end.store(true, Ordering::Relaxed);
    });
    assert!(content(&target, 300_000) == pattern(1, 300_000));
}

/// A process that waits for something else (in MPI_Finalize: for its agent) does for others what they cannot do without
/// it: here one takes what another one sends, frame by frame, and nothing else ends its wait.
#[test]
fn others_are_served_beside_another_wait() {
    for policy in policies() {
        for rings in [true, false] {
            let options = Options {
                queue: 1,
                rings,
                ..Options::default()
            };
            let both = processes(2, options, policy);
            let target = OwnMemory::new(0, 300_000);
            let posted = both[1]
                .lock()
                .irecv(&channel(0, 1, 2), Some(0), Some(0), receiving(&target, 300_000));
            let (other, mut done) = UnixStream::pair().expect("two sockets");
            std::thread::scope(|scope| {
                let (sender, receiver) = (&both[0], &both[1]);
                scope.spawn(move || receiver.wait_beside(other.as_fd()));
                send(sender, 0, 1, 0, &pattern(1, 300_000));
                sender.wait(|engine| engine.close().then_some(()));
                // The last frame has left and may not be there yet.
                while receiver.lock().core.test(posted).is_none() {
                    std::thread::yield_now();
                }
                done.write_all(&[1]).expect("somebody reads");
            });
            assert!(content(&target, 300_000) == pattern(1, 300_000));
        }
    }
}

#[test]
fn what_somebody_sent_before_it_was_gone_is_received() {
    for policy in policies() {
        let both = processes(2, Options::default(), policy);
        let (here, there) = (channel(0, 0, 2), channel(0, 1, 2));
        let (source, target) = (OwnMemory::new(0, 8), OwnMemory::new(0, 8));
        let posted = both[0].lock().irecv(&here, Some(1), Some(1), receiving(&target, 8));
        for tag in [1, 2] {
            let sent = both[1]
                .lock()
                .send(&there, 0, tag, Mode::Standard, sending(&source, 8))
                .expect("room");
            assert!(sent.is_none(), "a short message leaves at once");
        }
        both[0]
            .lock()
            .lose_peers([Peer::new(1)], "rank 1 was killed by signal 9");
        assert_eq!(
            both[0].wait(|engine| engine.core.take(posted)).error,
            None,
            "posted before"
        );
        let late = both[0].lock().irecv(&here, Some(1), Some(2), receiving(&target, 8));
        assert_eq!(
            both[0].wait(|engine| engine.core.take(late)).error,
            None,
            "it had arrived"
        );
        let vain = both[0].lock().irecv(&here, Some(1), Some(3), receiving(&target, 8));
        assert_eq!(both[0].wait(|engine| engine.core.take(vain)).error, killed());
    }
}

/// What a listener hears: peers from 1 on are gone.
fn tell(shared: &Shared, heard: Arc<AtomicUsize>) -> UnixStream {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let mut listens = false;
    shared.listen(theirs.into(), move |engine| {
        if !std::mem::replace(&mut listens, true) {
            return true;
        }
        heard.fetch_add(1, Ordering::Relaxed);
        engine.lose_peers([Peer::new(1)], "rank 1 was killed by signal 9");
        // As at the end of what can be heard: it stays readable.
        false
    });
    ours.write_all(&[1]).expect("room for a byte");
    ours
}

#[test]
fn what_was_read_before_somebody_listens_is_heard() {
    for policy in policies() {
        let both = processes(2, Options::default(), policy);
        let target = OwnMemory::new(0, 8);
        let posted = both[0]
            .lock()
            .irecv(&channel(0, 0, 2), Some(1), Some(1), receiving(&target, 8));
        // Nothing comes to the descriptor any more: the word has been read together with an earlier one.
        let (_ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        both[0].listen(theirs.into(), |engine| {
            engine.lose_peers([Peer::new(1)], "rank 1 was killed by signal 9");
            true
        });
        assert_eq!(both[0].wait(|engine| engine.core.take(posted)).error, killed());
    }
}

fn killed() -> Option<EngineError> {
    Some(EngineError::PeerLost {
        peer: Peer::new(1),
        who: "process 1 of MPI_COMM_WORLD".into(),
        reason: "rank 1 was killed by signal 9".into(),
        goes_on: false,
    })
}

#[test]
fn who_waits_or_tests_in_vain_hears_that_others_are_gone() {
    for policy in policies() {
        let both = processes(2, Options::default(), policy);
        let heard = Arc::new(AtomicUsize::new(0));
        let target = OwnMemory::new(0, 8);
        let here = channel(0, 0, 2);
        let post = |tag| both[0].lock().irecv(&here, Some(1), Some(tag), receiving(&target, 8));
        let (first, second) = (post(1), post(2));
        let _ours = tell(&both[0], heard.clone());
        assert_eq!(
            both[0].wait(|engine| engine.core.take(first)).error,
            killed(),
            "in its sleep"
        );
        assert_eq!(both[0].wait(|engine| engine.core.take(second)).error, killed());
        let third = post(3);
        assert_eq!(
            both[0].wait(|engine| engine.core.take(third)).error,
            killed(),
            "at once"
        );
        let again = both[0].lock().send(&here, 1, 1, Mode::Standard, sending(&target, 8));
        assert_eq!(again.err(), killed());
        assert_eq!(
            heard.load(Ordering::Relaxed),
            1,
            "who has nothing more to say is not asked again"
        );
    }
}

#[test]
fn a_loop_that_never_waits_hears_it_too() {
    for (threads, guests) in [(false, false), (false, true), (true, false), (true, true)] {
        let both = processes(2, Options::default(), Policy { threads, guests });
        let target = OwnMemory::new(0, 8);
        let request = both[0]
            .lock()
            .irecv(&channel(0, 0, 2), Some(1), Some(1), receiving(&target, 8));
        let _ours = tell(&both[0], Arc::default());
        let error = loop {
            let mut engine = both[0].lock();
            engine.progress();
            if let Some(completion) = engine.core.take(request) {
                break completion.error;
            }
            drop(engine);
            both[0].idle();
        };
        assert_eq!(error, killed(), "threads {threads}, guests {guests}");
    }
}

#[test]
fn what_a_thread_waits_for_is_told_although_it_wakes_again_and_again() {
    let policy = Policy {
        threads: true,
        guests: false,
    };
    let both = processes(2, Options::default(), policy);
    let (teller, heard) = mpsc::channel();
    // Whether it waits.
    both[0]
        .reports()
        .tell_waits(Box::new(move |waits| teller.send(waits.is_some()).is_ok()));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(receive(&both[0], 0, 1, 7, 8), pattern(1, 8)));
        scope.spawn(|| {
            // Each message to itself wakes whoever sleeps.
            while !over.load(Ordering::Acquire) {
                let target = OwnMemory::new(0, 8);
                let request = both[0]
                    .lock()
                    .irecv(&channel(0, 0, 2), Some(0), Some(9), receiving(&target, 8));
                send(&both[0], 0, 0, 9, &pattern(2, 8));
                assert_eq!(both[0].wait(|engine| engine.core.take(request)).error, None);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let long = Duration::from_secs(60);
        let waits = heard.recv_timeout(long);
        send(&both[1], 1, 0, 7, &pattern(1, 8));
        let waits_then = heard.recv_timeout(long);
        over.store(true, Ordering::Release);
        assert_eq!((waits, waits_then), (Ok(true), Ok(false)));
    });
}

#[test]
fn a_wait_in_a_loop_of_the_callers_own_is_told_as_others_are() {
    for policy in policies() {
        let both = processes(2, Options::default(), policy);
        let (teller, heard) = mpsc::channel();
        both[0]
            .reports()
            .tell_waits(Box::new(move |waits| teller.send(waits.is_some()).is_ok()));
        let mut looking = both[0].looking();
        let since = Instant::now();
        let told = loop {
            looking.look();
            if let Ok(told) = heard.try_recv() {
                break told;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "nothing is told");
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(told);
        // Meanwhile others are served.
        send(&both[1], 1, 0, 7, &pattern(1, 8));
        assert!(heard.try_recv().is_err());
        drop(looking);
        assert_eq!(heard.recv(), Ok(false));
        assert_eq!(receive(&both[0], 0, 1, 7, 8), pattern(1, 8));
    }
}
