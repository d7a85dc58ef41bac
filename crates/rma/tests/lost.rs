// SPDX-License-Identifier: Apache-2.0
//! Windows over several nodes, one of whose members is lost.

mod common;

use std::sync::Arc;

use common::{BYTES, questions, window, world};
use isthmus_core::world::World;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::Peer;
use isthmus_rma::{Flavor, LockKind, Sink, Source, TargetData, When, Window};
use isthmus_transport::memory::{Options, Switch, network};

struct Stage {
    worlds: Vec<&'static World>,
    windows: Vec<Arc<Window>>,
    switch: Switch,
}

impl Stage {
    fn of(size: u32) -> Self {
        let (ends, switch) = network(size, Options::default()).expect("eventfd");
        let numbered = (0..).zip(ends);
        let worlds: Vec<_> = numbered.map(|(rank, end)| world(Peer::new(rank), end, size)).collect();
        let make = |world: &'static World| std::thread::spawn(move || window(world, (Flavor::Allocate, BYTES)));
        let made: Vec<_> = worlds.iter().map(|world| make(world)).collect();
        let windows = made.into_iter().map(|thread| thread.join().expect("made")).collect();
        Self {
            worlds,
            windows,
            switch,
        }
    }

    /// Lets the members make progress, as their keepers do while they compute, until something is so.
    fn until(&self, mut so: impl FnMut() -> bool) {
        while !so() {
            for world in &self.worlds {
                world.engine().lock().progress();
            }
        }
    }

    /// Lets what was said arrive, and other threads go on.
    fn settle(&self) {
        let mut rounds = 0;
        self.until(|| {
            std::thread::yield_now();
            rounds += 1;
            rounds > 1000
        });
    }

    /// The last member dies, and all hear of it.
    fn lose_last(&self) {
        let living = self.worlds.len() - 1;
        self.switch.kill(Peer::new(living as u32), "it was killed");
        self.until(|| (0..living).all(|rank| self.is_told(rank)));
    }

    fn is_told(&self, rank: usize) -> bool {
        let members = isthmus_core::comm::of_world(self.worlds[rank]);
        let lost = self.worlds[rank]
            .engine()
            .lock()
            .core
            .lost_of(&members.channel().members);
        lost.is_some()
    }
}

fn put(window: &Window, rank: i32, value: i64) -> isthmus_core::error::Result<()> {
    let long = Datatype::of(Basic::Int64);
    let data = OwnMemory::with(&value.to_ne_bytes());
    let source = Source {
        memory: data.reading(),
        count: 1,
        datatype: &long,
    };
    let place = TargetData {
        rank,
        disp: 8,
        count: 1,
        datatype: &long,
    };
    window.put(&source, &place, When::Always).map(drop)
}

/// Does something in a thread of its own while the others make progress.
fn aside<T: Send + 'static>(stage: &Stage, act: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(act);
    stage.until(|| thread.is_finished());
    thread.join().expect("ended")
}

#[test]
fn after_a_loss_living_targets_are_reached_the_lock_of_the_dead_is_free_and_the_window_can_be_freed() {
    let stage = Stage::of(3);
    let [first, second, dead] = [0, 1, 2].map(|rank| stage.windows[rank].clone());
    // It has the lock of the second one, and dies.
    aside(&stage, move || {
        dead.lock(LockKind::Exclusive, 1, 0).expect("asked for");
        put(&dead, 1, 3).expect("put");
        dead.flush(Some(1)).expect("locked, and done");
    });
    stage.switch.kill(Peer::new(2), "it was killed");
    stage.until(|| stage.is_told(0) && stage.is_told(1));

    let window = first.clone();
    let told = aside(&stage, move || {
        window.lock_all(0).expect("locked");
        put(&window, 1, 4).expect("put");
        window.flush(None)
    });
    assert!(told.is_err(), "the first call tells of the loss");
    let window = first.clone();
    aside(&stage, move || {
        put(&window, 1, 5).expect("put");
        window.flush(Some(1)).expect("the living one has answered");
        assert!(put(&window, 2, 5).is_err(), "the lost one is out of reach");
        window.flush(None).expect("all that are left have answered");
        window.unlock_all().expect("unlocked");
        window.lock(LockKind::Exclusive, 1, 0).expect("asked for");
        put(&window, 1, 6).expect("put");
        window.unlock(1).expect("it was free");
    });
    let mut there = [0; 8];
    second.own_memory().reading().read(8, &mut there);
    assert_eq!(i64::from_ne_bytes(there), 6);

    // One frees it first; what the other still sends is an error, and costs nobody its place.
    aside(&stage, move || second.end().expect("freed"));
    let window = first.clone();
    aside(&stage, move || {
        window.lock(LockKind::Shared, 1, 0).expect("asked for");
        put(&window, 1, 7).expect("sent");
        let error = window.unlock(1).expect_err("it is no more there");
        assert!(error.message.contains("has freed the window"), "{error}");
        window.end().expect("freed");
    });
    let told = isthmus_engine::with_port(
        &mut stage.worlds[0].engine().lock(),
        isthmus_wire::frame::protocol::RMA,
        |port| port.loss(Peer::new(1)),
    );
    assert_eq!(told, None, "nobody was accused");
}

/// Locks two members, one after the other, and puts something into each.
fn lock_both(window: &Window, ranks: [i32; 2]) {
    for rank in ranks {
        window.lock(LockKind::Exclusive, rank, 0).expect("asked for");
    }
    for rank in ranks {
        put(window, rank, 1).expect("put");
    }
}

/// It has the lock of member 1.
fn hold_first(stage: &Stage, holder: &Arc<Window>) {
    let holder = holder.clone();
    aside(stage, move || {
        holder.lock(LockKind::Exclusive, 1, 0).expect("asked for");
        put(&holder, 1, 3).expect("put");
        holder.flush(Some(1)).expect("locked, and done");
    });
}

/// A thread that takes the locks of members 1 and 2, and gives them back. One of the two tells of the loss.
fn wants_both(window: Arc<Window>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        lock_both(&window, [1, 2]);
        let _ = window.unlock(1);
        let _ = window.unlock(2);
    })
}

/// Who has the lock of member 1 gets that of member 2, which is its own, and then the other one gets both.
fn takes_second_and_ends(stage: &Stage, holder: Arc<Window>, waits: std::thread::JoinHandle<()>) {
    aside(stage, move || {
        holder.lock(LockKind::Exclusive, 2, 0).expect("its own");
        let _ = holder.unlock(2);
        let _ = holder.unlock(1);
    });
    stage.until(|| waits.is_finished());
    waits.join().expect("ended");
}

#[test]
fn a_loss_does_not_end_the_waiting_for_a_lock_that_comes_before_others() {
    let stage = Stage::of(4);
    let [first, holder] = [0, 2].map(|rank| stage.windows[rank].clone());
    hold_first(&stage, &holder);
    let waits = wants_both(first);
    // It has tried both, and waits for the first one.
    stage.until(|| questions(stage.worlds[0]) == 2);
    stage.lose_last();
    stage.settle();
    // Who has the first lock gets the second one: nobody waits with that for the first.
    takes_second_and_ends(&stage, holder, waits);
}

#[test]
fn what_is_tried_behind_a_lock_that_was_given_up_after_a_loss_is_refused() {
    let stage = Stage::of(4);
    let [first, holder] = [0, 2].map(|rank| stage.windows[rank].clone());
    hold_first(&stage, &holder);
    // It asks for the lock, and hears of the loss in place of the answer.
    let given_up = std::thread::spawn({
        let first = first.clone();
        move || {
            first.lock(LockKind::Exclusive, 1, 0).expect("asked for");
            put(&first, 1, 4).expect("put");
            first.unlock(1)
        }
    });
    stage.until(|| questions(stage.worlds[0]) == 1);
    stage.lose_last();
    stage.until(|| given_up.is_finished());
    given_up.join().expect("ended").expect_err("the loss");
    let waits = wants_both(first);
    stage.settle();
    takes_second_and_ends(&stage, holder, waits);
}

#[test]
fn who_waits_at_a_target_that_frees_the_window_after_a_loss_hears_of_that() {
    let stage = Stage::of(4);
    let [first, second, holder] = [0, 1, 2].map(|rank| stage.windows[rank].clone());
    hold_first(&stage, &holder);
    stage.lose_last();
    let long = Datatype::of(Basic::Int64);
    let got = OwnMemory::new(0, 8);
    let mut sink = Sink {
        memory: got.memory(),
        count: 1,
        datatype: &long,
    };
    let place = TargetData {
        rank: 1,
        disp: 8,
        count: 1,
        datatype: &long,
    };
    first.lock(LockKind::Exclusive, 1, 0).expect("asked for");
    let wanted = first
        .get(&mut sink, &place, When::Locked)
        .expect("asked for")
        .expect("not over");
    stage.settle();
    let is_over = || stage.worlds[0].engine().lock().core.test(wanted).is_some();
    assert!(!is_over(), "another one has the lock");
    aside(&stage, {
        let second = second.clone();
        move || second.end().expect("freed")
    });
    stage.until(is_over);
    let error = stage.worlds[0].wait(wanted).expect_err("it is no more there");
    assert!(error.message.contains("has freed the window"), "{error}");
    // Others of its node may still wait for the lock: neither who had it nor who waited for it keeps them out.
    aside(&stage, move || {
        second.lock(LockKind::Exclusive, 1, 0).expect("free");
        let _ = second.unlock(1);
    });
}
