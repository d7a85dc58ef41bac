// SPDX-License-Identifier: Apache-2.0
//! Two processes that belong to two jobs, with other ranks in each: peers are found by job and rank.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::*;
use isthmus_identity::Authority;
use isthmus_net::{Listener, Reach, start};
use isthmus_transport::{Class, Job, Peer, Processes, Tuning};
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::place::Rank;

/// Processes of each job.
const SIZE: u32 = 2;
/// Bytes of a frame.
const LENGTH: usize = 1000;

/// What a process of the first job has in the second one: it has the other rank there.
fn rank_in_other(rank: u32) -> Rank {
    Rank(SIZE - 1 - rank)
}

/// The transports of one of the jobs at both processes, in order of rank in the first job.
fn members(job: Job, name: &str, known: &[Arc<Processes>], way: Reach) -> Vec<Process> {
    let listeners: Vec<Listener> = known.iter().map(|_| Listener::bind(None).unwrap()).collect();
    let rank = |at: u32| if job == Job::OWN { Rank(at) } else { rank_in_other(at) };
    let mut ports = vec![0; known.len()];
    for (at, listener) in (0..).zip(&listeners) {
        ports[rank(at).index()] = listener.port();
    }
    let table = Arc::new(places(&ports, &["127.0.0.1"]));
    let authority = Authority::new(name).unwrap();
    let each = |((at, processes), listener)| {
        let config = config_of(job, processes, rank(at), &table, way, &authority, listener);
        Process::of(start(config).unwrap())
    };
    (0..).zip(known).zip(listeners).map(each).collect()
}

/// Both processes' transports of both jobs.
fn two_jobs(way: Reach) -> (Vec<Process>, Vec<Process>) {
    let known: Vec<Arc<Processes>> = (0..SIZE).map(|_| Processes::of(JOB, SIZE)).collect();
    let mut other = None;
    for processes in &known {
        let job = processes.job("other-job");
        assert_eq!(processes.take_in(job, 0..SIZE), Ok(Peer::new(SIZE)));
        other = Some(job);
    }
    let own = members(Job::OWN, JOB, &known, way);
    (own, members(other.unwrap(), "other-job", &known, way))
}

/// The peer in the second job that has this rank there.
fn other(rank: Rank) -> Peer {
    Peer::new(SIZE).plus(rank.0)
}

#[test]
fn peers_of_a_second_job_are_those_of_its_ranks() {
    for way in [Reach::Tcp, Reach::Tls] {
        let (mut own, mut others) = two_jobs(way);
        own[0].send(Peer::new(1), b"own", 0);
        others[0].send(other(rank_in_other(1)), b"other", 0);
        until(&mut own, "a frame of the first job", |all| {
            all[1].sink.frames.len() == 1
        });
        until(&mut others, "a frame of the second job", |all| {
            all[1].sink.frames.len() == 1
        });
        let from = |process: &Process| (process.sink.frames[0].0, process.sink.frames[0].2.clone());
        assert_eq!(from(&own[1]), (Peer::new(0), b"own".to_vec()));
        assert_eq!(from(&others[1]), (other(rank_in_other(0)), b"other".to_vec()));
        close(own);
        close(others);
    }
}

#[test]
fn traffic_is_tuned_by_job_and_context() {
    let (mut own, mut others) = two_jobs(Reach::Tls);
    let context = 7;
    let tuning = Tuning {
        class: Class::Bulk,
        ..Tuning::default()
    };
    // Somebody tunes that context of the first job, and all transports hear of it.
    own[0].transport.tune(Job::OWN, &[context], tuning);
    others[0].transport.tune(Job::OWN, &[context], tuning);
    let header = Header::new(Kind::Eager, context, 0, 0, LENGTH as u64, 0);
    let bytes = pattern(LENGTH, 1);
    own[0].send_frame(Peer::new(1), &header, &bytes);
    others[0].send_frame(other(rank_in_other(1)), &header, &bytes);
    for all in [&mut own, &mut others] {
        until(all, "a frame", |all| all[1].sink.frames.len() == 1);
    }
    let bulk = |process: &Process| {
        let passed = process.prober.as_ref().unwrap().traffic();
        passed[0].1.classes[Class::Bulk as usize]
    };
    for all in [&mut own, &mut others] {
        until(all, "what was counted", |all| {
            let mut settled = true;
            for process in all {
                settled &= process.transport.settle(&mut process.sink);
            }
            settled
        });
    }
    assert!(bulk(&own[0]) >= LENGTH as u64, "it is tuned in the first job");
    assert_eq!(bulk(&others[0]), 0, "the same number is another context in the second");
    close(own);
    close(others);
}
