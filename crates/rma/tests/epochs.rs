// SPDX-License-Identifier: Apache-2.0
//! Epochs of a window over two nodes: what was put before a synchronisation is there after it.

mod common;

use std::sync::Arc;

use common::Stage;
use isthmus_core::group::Group;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_rma::{Place, Sink, Source, When, Window};

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

fn place<'a>(window: &Window, disp: i64, datatype: &'a Datatype) -> Place<'a> {
    Place {
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
