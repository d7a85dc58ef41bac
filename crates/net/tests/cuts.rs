// SPDX-License-Identifier: Apache-2.0
//! Connections between sites break and the channels over them do not: one row each with sockets. What may happen to a
//! link, and when, is tried in virtual time, by the room `link`.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::middle::Middle;
use common::*;
use isthmus_identity::Authority;
use isthmus_net::{Config, Listener, Reach, start};
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind};

/// Two processes; rank 1 listens behind what stands between, and nobody can dial rank 0.
fn pair(away_time: Duration) -> (Vec<Process>, Middle) {
    let listeners = [Listener::bind(None).unwrap(), Listener::bind(None).unwrap()];
    let middle = Middle::new(listeners[1].port());
    let table = Arc::new(places(&[1, middle.port], &["127.0.0.1"]));
    let authority = Authority::new(JOB).unwrap();
    let each = |(rank, listener)| {
        let config = config(Peer::new(rank as u32), &table, Reach::Tls, &authority, listener);
        Process::of(start(Config { away_time, ..config }).unwrap())
    };
    (listeners.into_iter().enumerate().map(each).collect(), middle)
}

#[test]
fn resets_lose_nothing() {
    let (mut all, middle) = pair(Config::AWAY_TIME);
    // Somewhere in the middle of the round's bytes, of which there are a million and a half.
    exchange(&mut all, 12, |round| middle.reset_after(round as i64 * 130_003));
    close(all);
}

#[test]
fn when_all_have_settled_nobody_waits_for_who_has_left() {
    let (mut all, middle) = pair(Config::AWAY_TIME);
    exchange(&mut all, 1, |_| {});
    until(&mut all, "settling", |all| {
        let settled = all.iter_mut().map(|p| p.transport.settle(&mut p.sink));
        settled.filter(|done| !done).count() == 0
    });
    // An answer that nobody waits for any more; the other end leaves before it comes.
    middle.silent.store(true, Ordering::SeqCst);
    all[0].send(Peer::new(1), b"too late", 0);
    let first = &mut all[0];
    first.transport.close(&mut first.sink);
    all.truncate(1);
    middle.reset();
    close(all);
}

#[test]
fn who_stays_away_is_lost_and_named() {
    let (mut all, middle) = pair(Duration::from_secs(2));
    exchange(&mut all, 1, |_| {});
    middle.silent.store(true, Ordering::SeqCst);
    middle.reset();
    until(&mut all, "both are told", |all| {
        all.iter().all(|p| p.sink.lost.len() == 1)
    });
    for process in &all {
        let (_, reason) = &process.sink.lost[0];
        assert!(reason.contains("ISTHMUS_AWAY") && reason.contains("site-"), "{reason}");
    }
}

#[test]
fn who_is_given_up_hears_of_it() {
    // Whichever of the two decides which connection is used, whichever can be dialled, and whether they had one.
    for (by, met) in [(0, true), (1, true), (0, false), (1, false)] {
        for both_listen in [true, false] {
            let mut all = if both_listen {
                job(2, Reach::Tls)
            } else {
                pair(Config::AWAY_TIME).0
            };
            if met {
                exchange(&mut all, 1, |_| {});
            }
            let other = 1 - by;
            all[by].transport.lose(Peer::new(other as u32), "it broke the rules");
            // Who cannot be dialled and was never met cannot be told before it calls.
            let header = Header::new(Kind::Eager, 0, 0, 0, 0, 0);
            let _ = all[other].transport.send(Peer::new(by as u32), &header, &[]);
            if !met && !both_listen && other == 1 {
                continue;
            }
            until(&mut all, "the other one hears of it", |all| {
                all[other].sink.lost.len() == 1
            });
            let (_, reason) = &all[other].sink.lost[0];
            assert!(reason.contains("has given this process up"), "{reason}");
            assert!(reason.contains(&format!("rank {by}")), "{reason}");
            assert_eq!(all[by].sink.lost, [], "whoever gives up knows it");
            close_all(all);
        }
    }
}

#[test]
fn what_begins_and_never_ends_is_not_waited_for_for_ever() {
    const LONG: usize = 4 << 20;
    let (mut all, middle) = pair(Duration::from_secs(2));
    exchange(&mut all, 1, |_| {});
    let (data, mut place) = (pattern(LONG, 1), vec![0; LONG]);
    let (to, from) = (Peer::new(1), Peer::new(0));
    let expected = all[1].transport.expect(from, 7, lent(writing(&mut place)), LONG as u64);
    assert!(expected);
    // Some segments come, and the beginning of one more; the system at the other end answers all the time.
    middle.left.store(900_000, Ordering::SeqCst);
    let sent = all[0]
        .transport
        .send_bulk(to, 7, lent(reading(&data)), LONG as u64, 0, 7);
    sent.unwrap();
    until(&mut all, "it is lost", |all| all[1].sink.lost.len() == 1);
    let (liar, reason) = &all[1].sink.lost[0];
    assert!(*liar == from && reason.contains("has not ended it"), "{reason}");
    assert!(reason.contains("rank 0") && reason.contains("ISTHMUS_AWAY"), "{reason}");
}

/// As [`close`], of processes that have lost each other.
fn close_all(mut all: Vec<Process>) {
    until(&mut all, "close", |all| {
        let closed = all.iter_mut().map(|p| p.transport.close(&mut p.sink));
        closed.filter(|done| !done).count() == 0
    });
}
