// SPDX-License-Identifier: Apache-2.0
//! Whoever waits does the work of connections between sites, and the I/O thread goes on where nobody waits any more.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use common::*;
use isthmus_net::Reach;
use isthmus_transport::{Peer, wait};

/// Two processes that have just been talking: both do the work themselves.
fn talking() -> Vec<Process> {
    let mut all = job(2, Reach::Tls);
    for round in 0..20 {
        let from = round % 2;
        all[from].send(Peer::new(1 - from as u32), &pattern(8, round as u32), round as i32);
        until(&mut all, "a word", |all| {
            all[1 - from].sink.frames.pop_front().is_some()
        });
    }
    all
}

/// What one process has sent arrives at the other, which alone does anything.
fn arrives(at: &mut Process, what: &str, mut done: impl FnMut(&Process) -> bool) {
    until(std::slice::from_mut(at), what, |all| done(&all[0]));
}

#[test]
fn whoever_sleeps_is_woken_by_what_comes() {
    let mut all = talking();
    for round in 0..200 {
        // Sometimes it looks once more before it sleeps, sometimes more than once.
        for _ in 0..round % 3 {
            all[1].poll();
        }
        let mut sleeps = all[1].transport.arm();
        all[0].send(Peer::new(1), &pattern(100, round), round as i32);
        loop {
            if sleeps {
                let began = Instant::now();
                wait(&[all[1].transport.descriptor().unwrap()], Some(PATIENCE));
                assert!(began.elapsed() < PATIENCE, "nobody woke the sleeper");
            }
            all[1].transport.disarm();
            all[1].poll();
            if all[1].sink.frames.pop_front().is_some() {
                break;
            }
            sleeps = all[1].transport.arm();
        }
    }
    close(all);
}

#[test]
fn a_message_goes_on_when_its_sender_computes() {
    let mut all = talking();
    let length = 30_000_000;
    let (source, mut target) = (pattern(length, 1), vec![0; length]);
    let memory = lent(writing(&mut target));
    assert!(all[1].transport.expect(Peer::new(0), 7, memory, length as u64));
    let data = lent(reading(&source));
    all[0]
        .transport
        .send_bulk(Peer::new(1), 7, data, length as u64, 0, 99)
        .unwrap();
    // The sender is outside of MPI from now on.
    arrives(&mut all[1], "all of it", |one| !one.sink.received.is_empty());
    assert!(source == target);
    close(all);
}

#[test]
fn many_frames_go_on_when_their_sender_computes() {
    let mut all = talking();
    for tag in 0..1000 {
        all[0].send(Peer::new(1), &pattern(16, tag), tag as i32);
    }
    arrives(&mut all[1], "all of them", |one| one.sink.frames.len() == 1000);
    for (tag, (_, header, payload)) in all[1].sink.frames.iter().enumerate() {
        assert_eq!((header.tag, payload), (tag as i32, &pattern(16, tag as u32)));
    }
    close(all);
}

#[test]
fn a_receiver_that_computes_is_told() {
    let mut all = talking();
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let hook = all[1].hook.clone().unwrap();
    assert!(hook.set(Arc::new(move || {
        let _ = tell.lock().unwrap().send(());
    })));
    // The receiver is outside of MPI.
    all[0].send(Peer::new(1), b"come", 1);
    told.recv_timeout(PATIENCE).unwrap();
    until(&mut all, "the word", |all| all[1].sink.frames.len() == 1);
    close(all);
}

/// One who looks reads its few connections without asking what is ready. Others that want to connect are heard all the
/// same, and so are all when they are not few any more.
#[test]
fn newcomers_are_heard_by_one_who_looks() {
    let mut all = job(4, Reach::Tls);
    for newcomer in [0, 2, 3] {
        for round in 0..50 {
            for from in [0, newcomer] {
                all[from].send(Peer::new(1), &pattern(8, round), round as i32);
                until(&mut all, "a word", |all| all[1].sink.frames.pop_front().is_some());
            }
        }
    }
    close(all);
}
