// SPDX-License-Identifier: Apache-2.0
//! Connections are measured by the threads alone, and measuring disturbs nothing.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Duration;

use common::*;
use isthmus_net::{Prober, Reach, Round};
use isthmus_transport::Peer;

fn prober(process: &Process) -> Prober {
    process.prober.clone().unwrap()
}

fn is_known(prober: &Prober, peer: Peer) -> bool {
    prober.look(|m| {
        let known = m.estimates.get(&peer).copied().unwrap_or_default();
        m.rounds_over && known.round_trip.is_some()
    })
}

#[test]
fn three_processes_measure_each_other_without_being_asked_again() {
    let mut all = job(3, Reach::Tls);
    let round = |peer, receive| Round { peer, receive };
    let rounds = [
        vec![round(Peer::new(1), false), round(Peer::new(2), true)],
        vec![round(Peer::new(0), true), round(Peer::new(2), false)],
        vec![round(Peer::new(0), false), round(Peer::new(1), true)],
    ];
    let dials = [vec![Peer::new(1), Peer::new(2)], vec![Peer::new(2)], vec![]];
    for ((process, rounds), dial) in all.iter().zip(rounds).zip(dials) {
        prober(process).start(dial, rounds);
    }
    // Nobody polls.
    for (me, process) in all.iter().enumerate() {
        let prober = prober(process);
        let others: Vec<Peer> = Peer::first(3).filter(|p| p.index() != me).collect();
        prober.wait(PATIENCE, |m| {
            let known = |p: &Peer| {
                m.estimates
                    .get(p)
                    .is_some_and(|e| e.trips >= 4 && e.round_trip <= e.median)
            };
            m.rounds_over && others.iter().all(known)
        });
        assert!(others.iter().all(|&p| is_known(&prober, p)), "process {me}");
    }
    for (me, peer) in [(1, 0), (0, 2), (2, 1)] {
        let rate = prober(&all[me]).look(|m| m.estimates[&Peer::new(peer)].rate);
        // On loopback a transfer may be too short to tell.
        assert!(
            rate.is_none_or(|r| r.bytes_per_second > 1_000_000),
            "{me} from {peer}: {rate:?}"
        );
    }
    all[0].send(Peer::new(1), b"after that", 7);
    until(&mut all, "a message", |all| all[1].sink.frames.len() == 1);
    close(all);
}

#[test]
fn messages_pass_during_trains_and_an_end_ends_them() {
    let mut all = job(2, Reach::Tls);
    prober(&all[0]).start(
        vec![Peer::new(1)],
        vec![Round {
            peer: Peer::new(1),
            receive: true,
        }],
    );
    prober(&all[1]).start(
        vec![],
        vec![Round {
            peer: Peer::new(0),
            receive: false,
        }],
    );
    for tag in 0..500 {
        all[1].send(Peer::new(0), &pattern(5000, tag as u32), tag);
        all[0].send(Peer::new(1), &pattern(10, tag as u32), tag);
    }
    until(&mut all, "1000 messages", |all| {
        all.iter().all(|p| p.sink.frames.len() == 500)
    });
    for (i, (_, header, payload)) in all[0].sink.frames.iter().enumerate() {
        assert_eq!((header.tag, payload), (i as i32, &pattern(5000, i as u32)));
    }
    close(all);
}

#[test]
fn a_peer_that_cannot_be_reached_to_be_measured_is_not_lost() {
    let mut all = job_with(2, Reach::Tls, Duration::from_millis(300));
    let absent = all.remove(1);
    drop(absent);
    prober(&all[0]).start(
        vec![Peer::new(1)],
        vec![Round {
            peer: Peer::new(1),
            receive: true,
        }],
    );
    prober(&all[0]).wait(PATIENCE, |m| m.rounds_over);
    assert!(!is_known(&prober(&all[0]), Peer::new(1)));
    all[0].poll();
    assert_eq!(all[0].sink.lost, []);
}
