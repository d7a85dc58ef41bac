// SPDX-License-Identifier: Apache-2.0
//! Epochs of a window over two nodes: what was put before a synchronisation is there after it.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::Stage;
use isthmus_abi::constants as abi;
use isthmus_core::group::Group;
use isthmus_core::world::World;
use isthmus_core::{comm, members};
use isthmus_datatype::op::Predefined;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::Peer;
use isthmus_rma::{Flavor, LockKind, Sink, Source, TargetData, When, Window};
use isthmus_transport::memory::{Options, network};
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::rma::What;

const ROUNDS: i64 = 40;

/// Both members at once, each in a thread of its own.
fn both(stage: &Stage, act: impl Fn(&Window) + Send + Sync + 'static) {
    let act = Arc::new(act);
    let (window, other) = (stage.windows[1].clone(), act.clone());
    let thread = std::thread::spawn(move || other(&window));
    act(&stage.windows[0]);
    thread.join().expect("ended");
}

fn put(window: &Window, disp: i64, value: i64) {
    let long = Datatype::of(Basic::Int64);
    let data = OwnMemory::with(&value.to_ne_bytes());
    let source = Source {
        memory: data.reading(),
        count: 1,
        datatype: &long,
    };
    window
        .put(&source, &place(window, disp, &long), When::Always)
        .expect("put");
}

fn place<'a>(window: &Window, disp: i64, datatype: &'a Datatype) -> TargetData<'a> {
    TargetData {
        rank: 1 - window.rank() as i32,
        disp,
        count: 1,
        datatype,
    }
}

fn own(window: &Window, at: isize) -> i64 {
    let mut bytes = [0; 8];
    window.own_memory().reading().read(at, &mut bytes);
    i64::from_ne_bytes(bytes)
}

#[test]
fn what_was_put_before_a_fence_is_there_after_it_and_what_was_got_has_come() {
    let stage = Stage::new();
    both(&stage, |window| {
        let long = Datatype::of(Basic::Int64);
        window.fence(0).expect("met");
        for round in 1..=ROUNDS {
            // Who is ahead must not be counted for who is behind: each puts another number of times in each round.
            let times = (round + i64::from(window.rank())) % 3;
            for at in 0..times {
                put(window, 8 * (at + 3 * (round % 2)), round);
            }
            window.fence(0).expect("met");
            let others = (round + 1 - i64::from(window.rank())) % 3;
            for at in 0..others {
                assert_eq!(own(window, (8 * (at + 3 * (round % 2))) as isize), round);
            }
            let got = OwnMemory::new(0, 8);
            let mut sink = Sink {
                memory: got.memory(),
                count: 1,
                datatype: &long,
            };
            if times > 0 {
                let there = place(window, 8 * 3 * (round % 2), &long);
                window.get(&mut sink, &there, When::Always).expect("got");
            }
            window.fence(0).expect("met");
            assert!(times == 0 || got.content() == round.to_ne_bytes());
        }
    });
    assert_eq!(stage.accused(), None);
}

#[test]
fn what_was_put_before_a_completion_is_there_after_the_wait() {
    let stage = Stage::new();
    both(&stage, |window| {
        let other = window.group().members()[1 - window.rank() as usize];
        let group = Group::new([other]);
        for round in 1..=ROUNDS {
            window.post(&group, 0).expect("posted");
            window.start(&group, 0).expect("started");
            (0..round % 4).for_each(|at| put(window, 8 * at, round));
            window.complete().expect("completed");
            if round % 2 == 0 {
                window.wait().expect("waited");
            } else {
                while !window.test().expect("tested") {}
            }
            (0..round % 4).for_each(|at| assert_eq!(own(window, 8 * at as isize), round));
        }
    });
    assert_eq!(stage.accused(), None);
}

#[test]
fn an_operation_with_a_request_does_not_wait_for_the_lock_of_its_target() {
    let stage = Stage::with(Flavor::Allocate, 100_024);
    let [host, other] = stage.windows.clone();
    let (here, there) = (stage.host, stage.liar);
    let meet = |world| members::meet(world, &comm::of_world(world)).expect("met");
    let thread = std::thread::spawn(move || {
        meet(there);
        let long = Datatype::of(Basic::Int64);
        let (got, given) = (OwnMemory::new(0, 8), OwnMemory::with(&[7; 100_000]));
        let mut sink = Sink {
            memory: got.memory(),
            count: 1,
            datatype: &long,
        };
        other.lock(LockKind::Shared, 0, 0).expect("asked for");
        let wanted = other.get(&mut sink, &place(&other, 16, &long), When::Locked);
        let wanted = wanted.expect("asked for").expect("not over");
        let bytes = Datatype::contiguous_type(100_000, &Datatype::of(Basic::Byte)).expect("a type");
        let source = Source {
            memory: given.reading(),
            count: 1,
            datatype: &bytes,
        };
        let place = TargetData {
            rank: 0,
            disp: 24,
            count: 1,
            datatype: &bytes,
        };
        let put = other.put(&source, &place, When::Locked).expect("begun");
        assert!(there.engine().lock().core.test(wanted).is_none());
        meet(there);
        there.wait(wanted).expect("got");
        assert_eq!(got.content(), 5_i64.to_ne_bytes());
        if let Some(put) = put {
            there.wait(put).expect("put");
        }
        other.unlock(0).expect("unlocked");
        meet(there);
    });
    host.lock(LockKind::Exclusive, 0, 0).expect("locked");
    meet(here);
    meet(here);
    host.own_memory().write(16, &5_i64.to_ne_bytes());
    host.unlock(0).expect("unlocked");
    meet(here);
    thread.join().expect("ended");
    let mut end = [0; 8];
    host.own_memory().reading().read(24 + 99_992, &mut end);
    assert_eq!(end, [7; 8]);
}

#[test]
fn a_mistake_that_only_the_target_finds_is_told_by_the_request() {
    let stage = Stage::with(Flavor::Dynamic, 0);
    let [window, other] = stage.windows.clone();
    let thread = std::thread::spawn(move || other.end().expect("ended"));
    let long = Datatype::of(Basic::Int64);
    let got = OwnMemory::new(0, 8);
    let mut sink = Sink {
        memory: got.memory(),
        count: 1,
        datatype: &long,
    };
    window.lock_all(0).expect("locked");
    let wanted = window.get(&mut sink, &place(&window, 4096, &long), When::Locked);
    let wanted = wanted.expect("asked for").expect("not over");
    let error = stage.host.wait(wanted).expect_err("not attached");
    assert_eq!(error.class, abi::MPI_ERR_RMA_RANGE, "{error}");
    window.flush(Some(1)).expect("the request has told");
    put(&window, 4096, 1);
    let unlocked = window.unlock_all().map_err(|error| error.class);
    assert_eq!(unlocked, Err(abi::MPI_ERR_RMA_RANGE));
    window.end().expect("ended");
    thread.join().expect("ended");
}

#[test]
fn what_follows_a_fence_waits_until_it_is_over_at_the_target() {
    let stage = Stage::new();
    let (long, data) = (common::long(), 9_i64.to_ne_bytes());
    let operation = common::put(&long, &data).encode();
    let token = u64::from(stage.context) << 32 | operation.len() as u64;
    let mut header = Header::control(Kind::Protocol, token, 0, 0);
    header.tag = What::Operate as i32;
    header.common = true;
    stage.send(header, &operation);
    assert_eq!(own(&stage.windows[0], 8), 0, "not yet");
    both(&stage, |window| window.fence(0).expect("met"));
    stage.progress();
    assert_eq!(own(&stage.windows[0], 8), 9);
    assert_eq!(stage.accused(), None);
}

/// Counts a number of rank 0 on by one, so many times, under its lock: what it saw.
fn count_on(window: &Window, times: i64) -> Vec<i64> {
    let long = Datatype::of(Basic::Int64);
    let (one, got) = (OwnMemory::with(&1_i64.to_ne_bytes()), OwnMemory::new(0, 8));
    let source = Source {
        memory: one.reading(),
        count: 1,
        datatype: &long,
    };
    let mut sink = Sink {
        memory: got.memory(),
        count: 1,
        datatype: &long,
    };
    let there = TargetData {
        rank: 0,
        disp: 24,
        count: 1,
        datatype: &long,
    };
    let count = |_| {
        window.lock(LockKind::Exclusive, 0, 0).expect("locked");
        let added = window.accumulate(Predefined::Sum, Some(&source), None, &there, When::Always);
        added.expect("added");
        window.get(&mut sink, &there, When::Always).expect("asked for");
        window.unlock(0).expect("unlocked");
        i64::from_ne_bytes(*got.content().first_chunk().expect("eight"))
    };
    (0..times).map(count).collect()
}

#[test]
fn what_is_got_under_a_lock_is_what_was_there_under_it() {
    const TIMES: i64 = 300;
    let (ends, _switch) = network(3, Options::default()).expect("eventfd");
    let act = |(rank, end)| {
        std::thread::spawn(move || {
            let world = common::world(Peer::new(rank), end, 3);
            let window = common::window(world, (Flavor::Allocate, 64));
            let seen = match rank {
                0 => Vec::new(),
                _ => count_on(&window, TIMES),
            };
            window.fence(0).expect("met");
            seen
        })
    };
    let threads: Vec<_> = (0..).zip(ends).map(act).collect();
    let seen = threads.into_iter().flat_map(|thread| thread.join().expect("ended"));
    let mut seen: Vec<i64> = seen.collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(1..=2 * TIMES), "nobody sees a number twice");
}

#[test]
fn each_of_several_threads_finds_done_what_it_has_flushed() {
    const TIMES: i64 = 300;
    let stage = Stage::new();
    let (host, there) = (&stage.windows[0], &stage.windows[1]);
    there.lock_all(0).expect("locked");
    let flush = |thread: i64| {
        for value in 1..=TIMES {
            put(there, 64 * thread, value);
            there.flush(Some(0)).expect("done");
            assert_eq!(own(host, 64 * thread as isize), value, "thread {thread}");
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || flush(thread))).collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            // The target is late, so that threads meet while they wait for it.
            (0..30).for_each(|_| std::thread::yield_now());
            stage.host.engine().lock().progress();
        }
    });
    stage.progress();
}

/// Three processes on nodes of their own, and a window over them.
fn three() -> Vec<(&'static World, Arc<Window>)> {
    let (ends, _switch) = network(3, Options::default()).expect("eventfd");
    let make = |(rank, end)| {
        std::thread::spawn(move || {
            let world = common::world(Peer::new(rank), end, 3);
            (world, common::window(world, (Flavor::Allocate, 64)))
        })
    };
    let threads: Vec<_> = (0..).zip(ends).map(make).collect();
    threads
        .into_iter()
        .map(|thread| thread.join().expect("a window"))
        .collect()
}

/// Who locks all has the lock of one process while it comes to the next: two of them would wait for each other, if
/// each kept behind a writer that waits for the other.
#[test]
fn a_writer_that_waits_does_not_keep_out_who_locks_all() {
    let all = three();
    let progress = || {
        for (world, _) in all.iter().cycle().take(150) {
            world.engine().lock().progress();
        }
    };
    let long = Datatype::of(Basic::Int64);
    let ask = |rank: usize| {
        let mut sink = Sink {
            memory: OwnMemory::new(0, 8).memory(),
            count: 1,
            datatype: &long,
        };
        let there = TargetData {
            rank: 0,
            disp: 0,
            count: 1,
            datatype: &long,
        };
        let asked = all[rank].1.get(&mut sink, &there, When::Locked).expect("asked for");
        progress();
        asked.expect("not over")
    };
    let is_over = |rank: usize, request| {
        progress();
        all[rank].0.engine().lock().core.test(request).is_some()
    };
    let unlock = |rank: usize| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| all[rank].1.unlock_all().expect("unlocked"));
            while !thread.is_finished() {
                progress();
            }
        });
    };
    all[0].1.lock_all(0).expect("locked");
    all[1].1.lock(LockKind::Exclusive, 0, 0).expect("asked for");
    let writes = ask(1);
    all[2].1.lock_all(0).expect("asked for");
    let reads = ask(2);
    assert!(is_over(2, reads), "only readers are there");
    assert!(!is_over(1, writes), "readers are there");
    unlock(0);
    assert!(!is_over(1, writes), "one reader is there");
    unlock(2);
    assert!(is_over(1, writes), "nobody else is there");
}

#[test]
fn who_waits_for_the_first_of_two_locks_does_not_have_the_second() {
    let all = three();
    let [host, other, last] = [0, 1, 2].map(|rank| &all[rank].1);
    let order = Mutex::new(Vec::new());
    let note = |what| order.lock().expect("sound").push(what);
    let is_called_for = AtomicBool::new(false);
    host.lock(LockKind::Exclusive, 0, 0).expect("locked");
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            other.lock(LockKind::Exclusive, 0, 0).expect("called for");
            other.lock(LockKind::Shared, 2, 0).expect("called for");
            is_called_for.store(true, Ordering::SeqCst);
            add(other, 2);
            note("the second is had");
            other.unlock(2).expect("unlocked");
            other.unlock(0).expect("unlocked");
        });
        let progress = || {
            all.iter().for_each(|(world, _)| {
                world.engine().lock().progress();
            });
            std::thread::yield_now();
        };
        while !is_called_for.load(Ordering::SeqCst) {
            progress();
        }
        (0..2000).for_each(|_| progress());
        let alone = scope.spawn(|| {
            last.lock(LockKind::Exclusive, 2, 0).expect("locked");
            last.unlock(2).expect("unlocked");
            note("nobody has the second");
        });
        (0..200_000)
            .take_while(|_| !alone.is_finished())
            .for_each(|_| progress());
        note("the first is free");
        host.unlock(0).expect("unlocked");
        while !thread.is_finished() || !alone.is_finished() {
            progress();
        }
    });
    assert_eq!(
        *order.lock().expect("sound"),
        ["nobody has the second", "the first is free", "the second is had"]
    );
}

/// Adds 1 to the first number of a process.
fn add(window: &Window, rank: i32) {
    let long = Datatype::of(Basic::Int64);
    let one = OwnMemory::with(&1_i64.to_ne_bytes());
    let source = Source {
        memory: one.reading(),
        count: 1,
        datatype: &long,
    };
    let there = TargetData {
        rank,
        disp: 0,
        count: 1,
        datatype: &long,
    };
    let added = window.accumulate(Predefined::Sum, Some(&source), None, &there, When::Always);
    added.expect("added");
}

/// Each takes locks of a range of processes in the order of their ranks, operates on some of them, and goes on without
/// waiting where nothing is open.
#[test]
fn all_who_take_several_locks_in_one_order_get_them() {
    const TIMES: u32 = 4_000;
    const SIZE: u32 = 4;
    let (ends, _switch) = network(SIZE, Options::default()).expect("eventfd");
    let act = |(rank, end)| {
        std::thread::spawn(move || {
            let world = common::world(Peer::new(rank), end, SIZE);
            let window = common::window(world, (Flavor::Allocate, 64));
            let mut state = u64::from(rank) + 1;
            let mut below = |bound: u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as u32 % bound
            };
            let mut added = [0; SIZE as usize];
            for _ in 0..TIMES {
                let first = below(SIZE);
                let targets = first..first + 1 + below(SIZE - first);
                for target in targets.clone() {
                    let kind = [LockKind::Shared, LockKind::Exclusive, LockKind::Exclusive][below(3) as usize];
                    window.lock(kind, target as i32, 0).expect("called for");
                }
                let mut used: Vec<u32> = targets.clone().filter(|_| below(2) > 0).collect();
                if below(2) > 0 {
                    used.reverse();
                }
                for target in used {
                    add(&window, target as i32);
                    added[target as usize] += 1;
                }
                for target in targets {
                    window.unlock(target as i32).expect("unlocked");
                }
            }
            window.fence(0).expect("met");
            (own(&window, 0), added)
        })
    };
    let threads: Vec<_> = (0..).zip(ends).map(act).collect();
    let ended = threads.into_iter().map(|thread| thread.join().expect("ended"));
    let (own, added): (Vec<i64>, Vec<[i64; SIZE as usize]>) = ended.unzip();
    let expected: Vec<i64> = (0..SIZE as usize)
        .map(|target| added.iter().map(|of| of[target]).sum())
        .collect();
    assert_eq!(own, expected);
}
