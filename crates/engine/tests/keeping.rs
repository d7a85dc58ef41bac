// SPDX-License-Identifier: Apache-2.0
//! Operations complete while their processes are not inside MPI, because their keepers wait for them.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::store::{ADD, Store, at, flush, write};
use common::{channel, content, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Mode, Peer, Policy, Request, SendBuffer, Shared};
use isthmus_lock::OneAtATime;
use isthmus_transport::memory::Options;
use isthmus_wire::frame::protocol;

const LENGTH: usize = 100_000;

/// Far too long for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

fn processes(promised: bool) -> [Arc<Shared>; 2] {
    processes_with(promised, true)
}

/// `guests`: from the beginning.
fn processes_with(promised: bool, guests: bool) -> [Arc<Shared>; 2] {
    let policy = Policy {
        threads: !promised,
        guests,
    };
    let mut engines = world(2, Options::default()).engines.into_iter();
    [0, 1].map(|_| {
        let engine = engines.next().expect("two");
        Arc::new(if promised {
            // SAFETY: one thread of the tests uses a process; keepers are guests.
            let promise = unsafe { OneAtATime::promised() };
            Shared::for_one_at_a_time(engine, policy, promise)
        } else {
            Shared::new(engine, policy)
        })
    })
}

/// Keepers of both processes, as long as `program` runs.
fn kept(both: &[Arc<Shared>; 2], program: impl FnOnce()) {
    std::thread::scope(|scope| {
        for shared in both {
            scope.spawn(|| shared.keep().expect("descriptors"));
        }
        program();
        both.iter().for_each(|shared| shared.keeper().stop());
    });
}

/// A long message, of which the program sees nothing.
fn start(both: &[Arc<Shared>; 2], source: &OwnMemory, target: &OwnMemory, early: bool) -> [Request; 2] {
    let length = LENGTH as u64;
    let receive = || {
        let mut engine = both[1].lock();
        engine.irecv(&channel(0, 1, 2), Some(0), Some(0), receiving(target, length))
    };
    let first = early.then(receive);
    let send = both[0]
        .lock()
        .isend(&channel(0, 0, 2), 1, 0, Mode::Standard, sending(source, length));
    let requests = [send, first.unwrap_or_else(receive)];
    both.iter().for_each(|shared| shared.watch());
    requests
}

/// Until the program's own thread finds it complete. Looking makes no progress.
fn comes_by_itself(shared: &Shared, request: Request) -> bool {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if shared.lock().core.test(request).is_some() {
            return true;
        }
        // Longer than between two looks of the keeper: the program is not inside MPI.
        std::thread::sleep(Duration::from_millis(30));
    }
    false
}

#[test]
fn a_rendezvous_needs_no_program() {
    for promised in [true, false] {
        let both = processes(promised);
        kept(&both, || {
            for round in 0..4 {
                let (source, target) = (memory(&pattern(round, LENGTH)), OwnMemory::new(0, LENGTH as isize));
                let requests = start(&both, &source, &target, round % 2 == 0);
                for (shared, request) in both.iter().zip(requests) {
                    assert!(comes_by_itself(shared, request), "round {round}, promised: {promised}");
                    assert_eq!(shared.lock().core.take(request).map(|done| done.error), Some(None));
                }
                assert!(content(&target, LENGTH) == pattern(round, LENGTH));
            }
        });
        assert!(both.iter().all(|shared| shared.keeper().kept() > 0));
    }
}

#[test]
fn a_keeper_has_nothing_to_do_while_nothing_is_pending() {
    let both = processes(true);
    kept(&both, || {
        // Long enough to become idle.
        std::thread::sleep(Duration::from_millis(500));
        assert!(both.iter().all(|shared| shared.keeper().kept() == 0));
        // And it wakes.
        let (source, target) = (memory(&pattern(7, LENGTH)), OwnMemory::new(0, LENGTH as isize));
        let requests = start(&both, &source, &target, true);
        for (shared, request) in both.iter().zip(requests) {
            assert!(comes_by_itself(shared, request));
            assert!(shared.lock().core.take(request).is_some());
        }
    });
}

#[test]
fn a_program_that_comes_back_relieves_its_keeper() {
    let both = processes(true);
    kept(&both, || {
        for round in 0..20 {
            let (source, target) = (memory(&pattern(round, LENGTH)), OwnMemory::new(0, LENGTH as isize));
            let requests = start(&both, &source, &target, round % 2 == 0);
            std::thread::sleep(Duration::from_millis([0, 1, 3, 8][round % 4]));
            std::thread::scope(|scope| {
                for (shared, request) in both.iter().zip(requests) {
                    scope.spawn(move || {
                        let done = shared.wait(|engine| engine.core.take(request));
                        assert_eq!(done.error, None);
                    });
                }
            });
            assert!(content(&target, LENGTH) == pattern(round, LENGTH));
        }
    });
}

#[test]
fn who_computes_answers_what_its_machine_expects_and_keepers_may_come_later() {
    for promised in [true, false] {
        let both = processes_with(promised, false);
        for shared in &both {
            let mut engine = shared.lock();
            engine.register(protocol::TEST, Box::new(Store::new(LENGTH)));
            at(&mut engine, |store, _| store.expects = true);
        }
        let target = &both[1];
        if !target.invite() {
            println!("skipped: this system has no membarrier");
            continue;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| target.keep().expect("descriptors"));
            for round in 0..3 {
                // Nothing is pending at the target, and its program is not inside MPI.
                let mut engine = both[0].lock();
                let ones = SendBuffer::owned(vec![1; LENGTH].into());
                assert!(write(&mut engine, Peer::new(1), ADD, 0, ones).is_ok());
                let request = flush(&mut engine, Peer::new(1));
                drop(engine);
                let done = both[0].wait(|engine| engine.core.take(request));
                assert_eq!(done.error, None, "round {round}, promised: {promised}");
            }
            let bytes = at(&mut target.lock(), |store, _| content(&store.memory, LENGTH));
            assert!(bytes == [3; LENGTH]);
            target.keeper().stop();
        });
        assert!(target.keeper().kept() > 0);
    }
}
