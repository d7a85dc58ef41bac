// SPDX-License-Identifier: Apache-2.0
//! Machines of other rooms over real connections: inside a site, between sites, and over a line that breaks.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../net/tests/common/mod.rs"]
mod common;
#[path = "common/store.rs"]
#[allow(dead_code, reason = "each test file uses a part of it")]
mod store;

use std::sync::Arc;
use std::time::Instant;

use common::middle::Middle;
use common::{JOB, PATIENCE, Process, config, job, places};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Engine, EngineError, Peer, Processes, Request, SendBuffer, Setup};
use isthmus_identity::Authority;
use isthmus_net::{Listener, Reach, start};
use isthmus_wire::frame::protocol;
use store::{ADD, PUT, Store, at, flush, get, write};

/// Of the memory of a store: several frames of every transport, and a part of one.
const LENGTH: usize = (5 << 20) + 77;
const TARGET: Peer = Peer::new(1);

fn engines(processes: Vec<Process>) -> Vec<Engine> {
    let count = processes.len();
    let engine = |(me, process): (u32, Process)| {
        let mut engine = Engine::new(Setup {
            me: Peer::new(me),
            processes: Processes::of(JOB, count as u32),
            transports: vec![process.transport],
            routes: vec![0; count],
            levels: vec![4; count],
            representations: vec![],
        });
        engine.register(protocol::TEST, Box::new(Store::new(LENGTH)));
        engine
    };
    (0..).zip(processes).map(engine).collect()
}

fn end(engines: &mut [Engine], request: Request) -> Option<EngineError> {
    let end = Instant::now() + PATIENCE;
    loop {
        engines.iter_mut().for_each(|engine| {
            engine.progress();
        });
        if let Some(completion) = engines[0].core.take(request) {
            return completion.error;
        }
        assert!(Instant::now() < end, "not within a minute");
        std::thread::yield_now();
    }
}

/// Puts and additions of all lengths, and gets in between. `between` happens after each.
fn exchange(engines: &mut [Engine], mut between: impl FnMut(usize)) {
    let mut model = vec![0_u8; LENGTH];
    for round in 0..12 {
        let length = [9, 300_000, 5000, LENGTH][round % 4];
        let place = (round * 7919) % (LENGTH - length + 1);
        let bytes: Vec<u8> = (0..length)
            .map(|i| ((i * 31) ^ (i >> 9) ^ (round * 97)) as u8)
            .collect();
        let what = if round % 3 == 0 { ADD } else { PUT };
        for (byte, new) in model[place..].iter_mut().zip(&bytes) {
            *byte = if what == PUT { *new } else { byte.wrapping_add(*new) };
        }
        let memory = OwnMemory::with(&bytes);
        let payload = SendBuffer::contiguous(memory.reading(), 0, length as u64);
        write(&mut engines[0], TARGET, what, place as u64, payload).unwrap();
        between(round);
        if round % 5 == 4 {
            let target = OwnMemory::new(0, LENGTH as isize);
            let request = get(&mut engines[0], TARGET, 0, target.memory(), LENGTH as u64);
            assert_eq!(end(engines, request), None);
            assert!(target.content() == model, "round {round}");
        }
    }
    let request = flush(&mut engines[0], TARGET);
    assert_eq!(end(engines, request), None);
    assert!(at(&mut engines[1], |store, _| store.memory.content()) == model);
}

#[test]
fn puts_additions_and_gets_over_tcp_are_read_straight_to_their_place() {
    let mut engines = engines(job(2, Reach::Tcp));
    exchange(&mut engines, |_| {});
    assert!(at(&mut engines[1], |store, _| store.placed) > 0);
}

#[test]
fn puts_additions_and_gets_over_tls() {
    exchange(&mut engines(job(2, Reach::Tls)), |_| {});
}

#[test]
fn nothing_is_lost_doubled_or_out_of_order_over_a_line_that_breaks() {
    let listeners: Vec<Listener> = (0..2).map(|_| Listener::bind(None).unwrap()).collect();
    let line = Middle::new(listeners[1].port());
    // Nobody can dial rank 0.
    let table = Arc::new(places(&[1, line.port], &["127.0.0.1"]));
    let authority = Authority::new(JOB).unwrap();
    let each = |(rank, listener)| {
        let config = config(Peer::new(rank), &table, Reach::Tls, &authority, listener);
        Process::of(start(config).unwrap())
    };
    let mut engines = engines((0..).zip(listeners).map(each).collect());
    exchange(&mut engines, |round| {
        if round % 4 == 2 {
            line.reset();
        }
    });
}
