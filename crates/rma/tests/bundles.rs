// SPDX-License-Identifier: Apache-2.0
//! Short operations behind others that are still on their way leave together, and are done in their order.

mod common;

use common::{BYTES, Stage};
use isthmus_core::world::World;
use isthmus_datatype::op::Predefined;
use isthmus_datatype::raw::{OwnMemory, UserMemory};
use isthmus_datatype::{Basic, Datatype, Representation};
use isthmus_rma::{Flavor, LockKind, Sink, Source, TargetData, When, Window};
use isthmus_transport::memory::Options;

/// Over a network that soon takes no more.
fn stage(flavor: Flavor, form: Representation) -> Stage {
    let options = Options {
        queue: 4,
        frame: 4096,
        ..Options::default()
    };
    Stage::over(options, (flavor, BYTES), form)
}

/// Operations that this process has sent together, and their bytes.
fn bundled(world: &World) -> (u64, u64) {
    let rows = world.engine().lock().core.tools().counters().rows;
    let all = rows.iter().filter(|(name, ..)| name == "window-bundled");
    all.fold((0, 0), |sum, (.., counted)| {
        (sum.0 + counted.messages, sum.1 + counted.bytes)
    })
}

fn place(disp: i64, ty: &Datatype) -> TargetData<'_> {
    TargetData {
        rank: 0,
        disp,
        count: 1,
        datatype: ty,
    }
}

/// Puts a number, or adds it.
fn change(window: &Window, operation: Option<Predefined>, disp: i64, value: i64) {
    let long = Datatype::of(Basic::Int64);
    let data = OwnMemory::with(&value.to_ne_bytes());
    let source = Source {
        memory: data.reading(),
        count: 1,
        datatype: &long,
    };
    let changed = match operation {
        None => window.put(&source, &place(disp, &long), When::Always),
        Some(operation) => window.accumulate(operation, Some(&source), None, &place(disp, &long), When::Always),
    };
    changed.expect("said");
}

/// A number of the host's part as it is there.
fn number(stage: &Stage, disp: usize) -> i64 {
    let mut bytes = [0; 8];
    stage.windows[0].own_memory().reading().read(disp as isize, &mut bytes);
    i64::from_ne_bytes(bytes)
}

/// Unlocks while the host makes progress, and changes its own part meanwhile.
fn unlock(stage: &Stage, mut meanwhile: impl FnMut()) -> Result<(), isthmus_core::error::Error> {
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let ended = stage.windows[1].unlock(0);
            over.store(true, std::sync::atomic::Ordering::SeqCst);
            ended
        });
        while !over.load(std::sync::atomic::Ordering::SeqCst) {
            stage.host.engine().lock().progress();
            meanwhile();
            std::thread::yield_now();
        }
        thread.join().expect("ended")
    })
}

#[test]
fn what_has_to_wait_leaves_together_and_in_order() {
    for form in [Representation::LOCAL, Representation::COMMON] {
        let stage = stage(Flavor::Allocate, form);
        let window = &stage.windows[1];
        window.lock(LockKind::Exclusive, 0, 0).expect("locked");
        let here = form == Representation::LOCAL;
        for round in 0..300 {
            for cell in 0..8 {
                // The sum is of the number before: in another order it would be another.
                change(window, None, 8 * cell, round);
                change(window, Some(Predefined::Sum), 8 * cell, cell);
            }
        }
        unlock(&stage, || ()).expect("all is well");
        let number = |cell: usize| match here {
            true => number(&stage, 8 * cell),
            false => number(&stage, 8 * cell).swap_bytes(),
        };
        let shown: Vec<i64> = (0..8).map(number).collect();
        if here {
            assert_eq!(shown, [299, 300, 301, 302, 303, 304, 305, 306]);
        }
        let (operations, bytes) = bundled(stage.liar);
        assert!(operations > 4700, "{operations}");
        // Data of 8 bytes with their heads.
        assert!(bytes < 16 * operations, "{bytes} for {operations}");
        assert_eq!((stage.accused(), bundled(stage.host).0), (None, 0));
    }
}

#[test]
fn long_operations_and_questions_do_not_overtake() {
    let stage = stage(Flavor::Allocate, Representation::LOCAL);
    let window = &stage.windows[1];
    let long = Datatype::of(Basic::Int64);
    let numbers = Datatype::vector(1, 100, 100, &long).expect("a type");
    window.lock(LockKind::Exclusive, 0, 0).expect("locked");
    let results: Vec<OwnMemory> = (0..50).map(|_| OwnMemory::new(0, 8)).collect();
    for (round, result) in results.iter().enumerate() {
        change(window, None, 16, round as i64);
        change(window, Some(Predefined::Sum), 16, 1000);
        let data = OwnMemory::with(&[round as u8; 800]);
        let source = Source {
            memory: data.reading(),
            count: 1,
            datatype: &numbers,
        };
        window.put(&source, &place(24, &numbers), When::Always).expect("put");
        let sink = Sink {
            memory: result.memory(),
            count: 1,
            datatype: &long,
        };
        // A get would read what is there when its answer leaves.
        window
            .accumulate(Predefined::NoOp, None, Some(&sink), &place(16, &long), When::Always)
            .expect("asked");
        change(window, None, 16, -1);
    }
    unlock(&stage, || ()).expect("all is well");
    let got = results.iter().map(|result| result.content());
    assert!(
        got.enumerate()
            .all(|(round, got)| got == (1000 + round as i64).to_ne_bytes())
    );
    assert_eq!(
        (number(&stage, 16), number(&stage, 24)),
        (-1, i64::from_ne_bytes([49; 8]))
    );
    assert!(bundled(stage.liar).0 > 100);
    assert_eq!(stage.accused(), None);
}

#[test]
fn one_that_waits_for_a_block_keeps_those_behind_it() {
    let stage = stage(Flavor::Allocate, Representation::LOCAL);
    let window = &stage.windows[1];
    window.lock(LockKind::Shared, 0, 0).expect("locked");
    for round in 0..2000 {
        change(window, Some(Predefined::Sum), 0, 1);
        change(window, Some(Predefined::Replace), 8, round);
    }
    let own = &stage.windows[0];
    own.lock(LockKind::Shared, 0, 0).expect("locked");
    // Adds to the same number in a thread of its own all the while.
    let (added, over) = (
        std::sync::atomic::AtomicI64::new(0),
        std::sync::atomic::AtomicBool::new(false),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::SeqCst) {
                change(own, Some(Predefined::Sum), 0, 1);
                added.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        });
        let unlocked = unlock(&stage, || ());
        over.store(true, std::sync::atomic::Ordering::SeqCst);
        unlocked.expect("all is well");
    });
    own.unlock(0).expect("unlocked");
    assert_eq!(number(&stage, 0), 2000 + added.into_inner());
    assert_eq!(number(&stage, 8), 1999);
    assert!(bundled(stage.liar).0 > 3900);
}

#[test]
fn the_first_mistake_among_them_is_told_and_the_others_are_done() {
    let stage = stage(Flavor::Dynamic, Representation::LOCAL);
    let mut bytes = [0_u8; 64];
    // SAFETY: the bytes live to the end, and are not touched before all is done.
    let memory = unsafe { UserMemory::new(bytes.as_mut_ptr(), 0, 64) };
    let address = memory.address(64) as i64;
    stage.windows[0].attach(memory, 64).expect("attached");
    let window = &stage.windows[1];
    window.lock(LockKind::Exclusive, 0, 0).expect("locked");
    for round in 0..200 {
        change(window, None, address + 8 * (round % 8), round);
        if round == 100 {
            change(window, None, address + 60, 1);
        }
    }
    let told = unlock(&stage, || ()).expect_err("a mistake");
    assert_eq!(told.class, isthmus_abi::constants::MPI_ERR_RMA_RANGE, "{told}");
    let last: Vec<u8> = (192..200_i64).flat_map(i64::to_ne_bytes).collect();
    assert_eq!(bytes[..], last);
    assert!(bundled(stage.liar).0 > 100);
    assert_eq!(stage.accused(), None);
}
