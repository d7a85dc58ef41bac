// SPDX-License-Identifier: Apache-2.0
//! Operations complete while their processes are not inside MPI, because their keepers wait for them.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{channel, content, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Mode, Policy, Request, Shared};
use isthmus_lock::OneAtATime;
use isthmus_transport::memory::Options;

const LENGTH: usize = 100_000;

/// Far too long for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

fn processes(promised: bool) -> [Arc<Shared>; 2] {
    let policy = Policy {
        threads: !promised,
        guests: true,
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
        if shared.lock().test(request).is_some() {
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
                    assert_eq!(shared.lock().take(request).map(|done| done.error), Some(None));
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
            assert!(shared.lock().take(request).is_some());
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
                        let done = shared.wait(|engine| engine.take(request));
                        assert_eq!(done.error, None);
                    });
                }
            });
            assert!(content(&target, LENGTH) == pattern(round, LENGTH));
        }
    });
}
