// SPDX-License-Identifier: Apache-2.0
//! What flushes ask of a target on another node: nothing, if data that came back have told, or only memory of this
//! process matters.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{BYTES, Stage, questions};
use isthmus_datatype::op::Predefined;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype, Representation};
use isthmus_engine::Peer;
use isthmus_rma::{Flavor, LockKind, Sink, Source, TargetData, When, Window};
use isthmus_transport::memory::{Options, network};
use isthmus_wire::rma::SHORT;

/// Cells of a random program.
const CELLS: usize = 12;

struct Cell<'a> {
    window: &'a Window,
    rank: i32,
    disp: i64,
    long: Datatype,
    memory: OwnMemory,
}

impl<'a> Cell<'a> {
    fn new(window: &'a Window) -> Self {
        Self::at(window, 64)
    }

    fn at(window: &'a Window, disp: i64) -> Self {
        Self {
            disp,
            ..Self::of(window, 0)
        }
    }

    /// The first number of a process.
    fn of(window: &'a Window, rank: i32) -> Self {
        Self {
            window,
            rank,
            disp: 0,
            long: Datatype::of(Basic::Int64),
            memory: OwnMemory::new(0, 8),
        }
    }

    fn place(&self) -> TargetData<'_> {
        TargetData {
            rank: self.rank,
            disp: self.disp,
            count: 1,
            datatype: &self.long,
        }
    }

    fn add(&self, value: i64) {
        let data = OwnMemory::with(&value.to_ne_bytes());
        let source = Source {
            memory: data.reading(),
            count: 1,
            datatype: &self.long,
        };
        let sum = Some(&source);
        let said = self
            .window
            .accumulate(Predefined::Sum, sum, None, &self.place(), When::Always);
        said.expect("said");
    }

    fn put(&self, value: i64) {
        let data = OwnMemory::with(&value.to_ne_bytes());
        let source = Source {
            memory: data.reading(),
            count: 1,
            datatype: &self.long,
        };
        self.window.put(&source, &self.place(), When::Always).expect("said");
    }

    fn get(&self) {
        let mut sink = Sink {
            memory: self.memory.memory(),
            count: 1,
            datatype: &self.long,
        };
        self.window.get(&mut sink, &self.place(), When::Always).expect("said");
    }

    fn got(&self) -> i64 {
        self.memory
            .content()
            .first_chunk()
            .map_or(-1, |bytes| i64::from_ne_bytes(*bytes))
    }
}

#[test]
fn gets_are_flushed_by_their_data_and_others_by_one_question() {
    let stage = Stage::new();
    let (asked, ended) = stage.locked(|window| {
        let cell = Cell::new(window);
        let mut asked = Vec::new();
        let mut note = || asked.push(questions(stage.liar));
        for _ in 0..5 {
            cell.get();
            window.flush(Some(0)).expect("flushed");
            assert_eq!(cell.got(), 0);
        }
        note();
        cell.add(3);
        window.flush_local(Some(0)).expect("flushed here");
        cell.add(4);
        window.flush_local(None).expect("flushed here");
        note();
        cell.get();
        window.flush_local(Some(0)).expect("it has come");
        assert_eq!(cell.got(), 7, "behind what was added before");
        note();
        window.flush(None).expect("flushed");
        note();
        window.flush(Some(0)).expect("nothing is left");
        cell.add(1);
        cell.get();
        window.flush(Some(0)).expect("flushed");
        assert_eq!(cell.got(), 8);
        note();
        asked
    });
    ended.expect("unlocked");
    assert_eq!(asked, [0, 0, 0, 1, 2]);
    assert_eq!(
        questions(stage.liar),
        2,
        "nothing is open: the unlock is not waited for"
    );
    assert_eq!(stage.accused(), None);
}

/// Random programs of one process, against a model of the part that they change: near and far, and where the network
/// soon takes no more.
#[test]
fn random_programs_are_as_a_model_says() {
    let options = |far, queue| Options {
        far,
        queue,
        ..Options::default()
    };
    for (round, (far, queue)) in [(false, 1000), (false, 3), (true, 1000), (true, 3)]
        .into_iter()
        .enumerate()
    {
        let stage = Stage::over(options(far, queue), (Flavor::Allocate, BYTES), Representation::LOCAL);
        let mut seed = 0x9e37_79b9_7f4a_7c15 ^ (round as u64 + 1);
        println!("seed {seed}");
        let mut any = move |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 20) % below
        };
        let (model, ended) = stage.locked(|window| {
            let mut model = [0_i64; CELLS];
            let cells: Vec<Cell<'_>> = (0..CELLS).map(|at| Cell::at(window, 8 * at as i64)).collect();
            let mut open: [Option<i64>; CELLS] = [None; CELLS];
            for _ in 0..3000 {
                let at = any(CELLS as u64) as usize;
                let value = any(1000) as i64;
                match any(9) {
                    // What is being read is not changed, as MPI demands.
                    0..=4 if open[at].is_some() => {}
                    0..=2 => {
                        cells[at].add(value);
                        model[at] += value;
                    }
                    3 | 4 => {
                        cells[at].put(value);
                        model[at] = value;
                    }
                    // What was asked for before has another place now, so it has to have come.
                    5 | 6 if open[at].is_none() => {
                        cells[at].get();
                        open[at] = Some(model[at]);
                    }
                    7 => window.flush(Some(0)).expect("flushed"),
                    _ => window.flush_local(Some(0)).expect("flushed here"),
                }
                if any(9) == 0 {
                    window.flush(None).expect("flushed");
                    for (cell, expected) in cells.iter().zip(&mut open) {
                        if let Some(expected) = expected.take() {
                            assert_eq!(cell.got(), expected, "round {round}");
                        }
                    }
                }
            }
            model
        });
        ended.expect("unlocked");
        let part = stage.windows[0].own_memory().reading();
        let shown = std::array::from_fn(|at| {
            let mut bytes = [0; 8];
            part.read(8 * at as isize, &mut bytes);
            i64::from_ne_bytes(bytes)
        });
        assert_eq!((model, stage.accused()), (shown, None), "round {round}");
    }
}

#[test]
fn two_threads_wait_for_what_each_has_asked_for() {
    let stage = Stage::new();
    let (told, ended) = stage.locked(|window| {
        std::thread::scope(|scope| {
            let threads = [0, 1, 2].map(|_| {
                scope.spawn(|| {
                    let cell = Cell::new(window);
                    let mut last = 0;
                    for _ in 0..200 {
                        cell.add(1);
                        cell.get();
                        window.flush(Some(0)).expect("flushed");
                        assert!(cell.got() > last, "its own sum came before it");
                        last = cell.got();
                    }
                })
            });
            threads.into_iter().all(|thread| thread.join().is_ok())
        })
    });
    ended.expect("unlocked");
    assert!(told);
    let cell = stage.windows[0].own_memory().reading();
    let mut bytes = [0; 8];
    cell.read(64, &mut bytes);
    assert_eq!(i64::from_ne_bytes(bytes), 600);
}

/// A number of the host's part, when the host has taken what has come.
fn shown(stage: &Stage, disp: isize) -> i64 {
    stage.host.engine().lock().progress();
    let mut bytes = [0; 8];
    stage.windows[0].own_memory().reading().read(disp, &mut bytes);
    i64::from_ne_bytes(bytes)
}

#[test]
fn short_operations_in_a_row_leave_in_ever_larger_groups() {
    let stage = Stage::new();
    let window = &stage.windows[1];
    window
        .lock_all(isthmus_abi::constants::MPI_MODE_NOCHECK)
        .expect("locked");
    let cell = Cell::new(window);
    let adds = |sums: i64| -> Vec<i64> {
        let each = (0..sums).map(|_| {
            cell.add(1);
            shown(&stage, 64)
        });
        each.collect()
    };
    assert_eq!(adds(17), [0, 1, 1, 3, 3, 3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 15, 15]);
    // There is an end to that.
    assert_eq!(adds(80).last(), Some(&95));
    // Who looks after messages lets them go, and begins anew.
    stage.liar.engine().lock().progress();
    assert_eq!(shown(&stage, 64), 97);
    assert_eq!(adds(3), [97, 98, 98]);
    stage.progress();
    // What is asked for leaves at once with what is before it, unless something is on its way that was asked for.
    let other = Cell::at(window, 128);
    other.put(5);
    cell.get();
    assert_eq!(shown(&stage, 128), 5);
    other.put(6);
    other.get();
    assert_eq!(shown(&stage, 128), 5);
    stage.progress();
    assert_eq!((shown(&stage, 128), cell.got(), other.got()), (6, 100, 6));
    stage.progress();
    assert_eq!(stage.accused(), None);
}

#[test]
fn what_asks_for_much_leaves_at_once() {
    const MUCH: usize = SHORT + 8;
    let stage = Stage::over(Options::default(), (Flavor::Allocate, 2 * MUCH), Representation::LOCAL);
    let window = &stage.windows[1];
    window
        .lock_all(isthmus_abi::constants::MPI_MODE_NOCHECK)
        .expect("locked");
    let (cell, mark) = (Cell::new(window), Cell::at(window, 128));
    let memory = OwnMemory::new(0, MUCH as isize);
    let mut sink = Sink {
        memory: memory.memory(),
        count: MUCH as u64 / 8,
        datatype: &cell.long,
    };
    let place = TargetData {
        disp: MUCH as i64,
        count: MUCH as u64 / 8,
        ..cell.place()
    };
    for value in [5, 6] {
        cell.get();
        mark.put(value);
        assert_ne!(shown(&stage, 128), value, "it waits behind what was asked for");
        let asked = match value {
            5 => window.get(&mut sink, &place, When::Always),
            _ => window.accumulate(Predefined::NoOp, None, Some(&sink), &place, When::Always),
        };
        asked.expect("said");
        assert_eq!(shown(&stage, 128), value);
        stage.progress();
    }
    assert_eq!(stage.accused(), None);
}

/// A process locks four others and operates on each: it waits for answers once to have the locks, and once to give them
/// back, or not at all if all is done.
#[test]
fn several_locks_take_as_many_trips_as_one() {
    let (ends, _switch) = network(5, Options::default()).expect("eventfd");
    let last = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let make = |(rank, end)| {
            let last = &last;
            scope.spawn(move || {
                let world = common::world(Peer::new(rank), end, 5);
                let window = common::window(world, (Flavor::Allocate, 64));
                if rank > 0 {
                    while !last.load(Ordering::SeqCst) {
                        world.engine().lock().progress();
                        std::thread::yield_now();
                    }
                    return Vec::new();
                }
                let (mut asked, others) = (Vec::new(), 1..5);
                for flushes in [false, true] {
                    let before = questions(world);
                    let mut note = || asked.push(questions(world) - before);
                    for rank in others.clone() {
                        window.lock(LockKind::Exclusive, rank, 0).expect("called for");
                    }
                    note();
                    others.clone().for_each(|rank| Cell::of(&window, rank).add(1));
                    note();
                    if flushes {
                        window.flush(None).expect("flushed");
                        note();
                    }
                    for rank in others.clone() {
                        window.unlock(rank).expect("unlocked");
                        note();
                    }
                }
                last.store(true, Ordering::SeqCst);
                asked
            })
        };
        let threads: Vec<_> = (0..).zip(ends).map(make).collect();
        let asked = threads.into_iter().map(|thread| thread.join().expect("ended"));
        let asked: Vec<Vec<u64>> = asked.collect();
        // The first unlock asks all four, together.
        assert_eq!(asked[0], [0, 1, 5, 5, 5, 5, 0, 1, 5, 5, 5, 5, 5]);
    });
}

/// Threads of a process lock a process each, again and again, and try the locks of each other with theirs.
#[test]
fn several_threads_lock_a_process_each() {
    const TIMES: i64 = 150;
    let (ends, _switch) = network(5, Options::default()).expect("eventfd");
    let last = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let last = &last;
        let make = |(rank, end)| {
            scope.spawn(move || {
                let world = common::world(Peer::new(rank), end, 5);
                let window = common::window(world, (Flavor::Allocate, 64));
                while rank > 0 && !last.load(Ordering::SeqCst) {
                    world.engine().lock().progress();
                    std::thread::yield_now();
                }
                let count = &|rank: i32| {
                    for _ in 0..TIMES {
                        window.lock(LockKind::Exclusive, rank, 0).expect("called for");
                        Cell::of(&window, rank).add(1);
                        window.unlock(rank).expect("unlocked");
                    }
                };
                if rank == 0 {
                    std::thread::scope(|scope| {
                        (1..5).for_each(|rank| drop(scope.spawn(move || count(rank))));
                    });
                    last.store(true, Ordering::SeqCst);
                }
                let mut bytes = [0; 8];
                window.own_memory().reading().read(0, &mut bytes);
                i64::from_ne_bytes(bytes)
            })
        };
        let threads: Vec<_> = (0..).zip(ends).map(make).collect();
        let counted: Vec<i64> = threads
            .into_iter()
            .map(|thread| thread.join().expect("ended"))
            .collect();
        assert_eq!(counted, [0, TIMES, TIMES, TIMES, TIMES]);
    });
}
