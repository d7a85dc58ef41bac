// SPDX-License-Identifier: Apache-2.0
//! Both transports carry what they are given: small and long, both ways at once, to the end.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use common::*;
use isthmus_net::Reach;
use isthmus_transport::{Class, Job, Lease, Peer, SendError, Tuning};
use isthmus_wire::frame::{Header, Kind};

const WAYS: [Reach; 2] = [Reach::Tcp, Reach::Tls];

#[test]
fn both_do_what_every_transport_must_do() {
    for way in WAYS {
        isthmus_transport::conformance::check_between_jobs(|| {
            let mut ends = job(2, way).into_iter().map(|p| p.transport);
            [ends.next().unwrap(), ends.next().unwrap()]
        });
    }
}

#[test]
fn frames_arrive_once_whole_and_in_order() {
    for way in WAYS {
        let mut all = job(2, way);
        let sizes = [0, 1, 8, 100, 4095, 4096, 5000, 65_536, 200_000];
        for (tag, size) in sizes.iter().cycle().take(200).enumerate() {
            let payload = pattern(*size, tag as u32);
            if !all[0].offer(Peer::new(1), &payload, tag as i32) {
                until(&mut all, "room", |all| all[0].offer(Peer::new(1), &payload, tag as i32));
            }
        }
        until(&mut all, "200 frames", |all| all[1].sink.frames.len() == 200);
        for (i, (peer, header, payload)) in all[1].sink.frames.iter().enumerate() {
            assert_eq!((*peer, header.tag), (Peer::new(0), i as i32));
            assert_eq!(*payload, pattern(sizes[i % sizes.len()], i as u32), "{way:?} frame {i}");
        }
        close(all);
    }
}

#[test]
fn short_frames_that_are_gathered_leave_together() {
    let mut all = job(2, Reach::Tcp);
    let peer = Peer::new(1);
    all[0].send_frame(peer, &Header::new(Kind::Eager, 0, 0, 0, 1, 0), &[7]);
    until(&mut all, "a connection", |all| all[1].sink.frames.len() == 1);
    all[0].transport.gather(peer);
    for tag in 1..=9 {
        all[0].send_frame(
            peer,
            &Header::new(Kind::Eager, 0, 0, tag, 3, 0),
            &pattern(3, tag as u32),
        );
    }
    for _ in 0..50 {
        all[1].poll();
    }
    assert_eq!(all[1].sink.frames.len(), 1, "they wait for more");
    // What is long is not copied, and takes them along.
    let long = pattern(100_000, 10);
    all[0].send_frame(peer, &Header::new(Kind::Eager, 0, 0, 10, 100_000, 0), &long);
    until(&mut all, "a long one and those before it", |all| {
        all[1].sink.frames.len() == 11
    });
    all[0].send_frame(peer, &Header::new(Kind::Eager, 0, 0, 11, 1, 0), &[9]);
    all[0].transport.send_gathered(peer);
    until(&mut all, "the last one", |all| all[1].sink.frames.len() == 12);
    let tags: Vec<i32> = all[1].sink.frames.iter().map(|(_, header, _)| header.tag).collect();
    assert_eq!(tags, (0..12).collect::<Vec<i32>>());
    close(all);
}

#[test]
fn both_may_fill_a_connection_before_either_reads() {
    for way in WAYS {
        let mut all = job(2, way);
        let frame = pattern(60_000, 1);
        let mut sent = [0, 0];
        for from in [0, 1].into_iter().cycle().take(100) {
            sent[from] += usize::from(all[from].offer(Peer::new(1 - from as u32), &frame, 0));
        }
        until(&mut all, "what both have sent", |all| {
            (0..2).all(|at| all[at].sink.frames.len() == sent[1 - at])
        });
        close(all);
    }
}

#[test]
fn a_question_about_a_message_stays_behind_it() {
    let mut all = job(2, Reach::Tls);
    let (bulk, length) = (7, 30_000);
    let tuning = Tuning {
        class: Class::Bulk,
        ..Tuning::default()
    };
    all[0].transport.tune(Job::OWN, &[bulk], tuning);
    for token in 1..=40 {
        let header = Header::new(Kind::Eager, bulk, 0, 1, length, token);
        all[0].send_frame(Peer::new(1), &header, &pattern(length as usize, 0));
        all[0].send_frame(Peer::new(1), &Header::control(Kind::Cancel, token, bulk.into(), 0), &[]);
    }
    until(&mut all, "40 messages and questions", |all| {
        all[1].sink.frames.len() == 80
    });
    let seen: Vec<_> = all[1].sink.frames.iter().map(|(_, h, _)| (h.token, h.kind)).collect();
    for (pair, token) in seen.chunks(2).zip(1..) {
        assert_eq!(pair, [(token, Kind::Eager), (token, Kind::Cancel)]);
    }
    close(all);
}

#[test]
fn both_dial_at_once_and_get_one_connection() {
    for way in WAYS {
        for _ in 0..10 {
            let mut all = job(2, way);
            all[0].send(Peer::new(1), b"from 0", 0);
            all[1].send(Peer::new(0), b"from 1", 0);
            until(&mut all, "a frame each", |all| {
                all.iter().all(|p| p.sink.frames.len() == 1)
            });
            all[1].send(Peer::new(0), b"again", 0);
            all[0].send(Peer::new(1), b"again", 0);
            until(&mut all, "a second frame each", |all| {
                all.iter().all(|p| p.sink.frames.len() == 2)
            });
            close(all);
        }
    }
}

#[test]
fn everybody_talks_to_everybody() {
    for way in WAYS {
        let n = 6;
        let mut all = job(n, way);
        for from in 0..n {
            for to in (0..n).filter(|to| *to != from) {
                all[from as usize].send(Peer::new(to), &from.to_le_bytes(), to as i32);
            }
        }
        until(&mut all, "a frame from each", |all| {
            all.iter().all(|p| p.sink.frames.len() == n as usize - 1)
        });
        for process in &all {
            let mut from: Vec<_> = process.sink.frames.iter().map(|f| f.0).collect();
            from.sort_unstable();
            from.dedup();
            assert_eq!(from.len(), n as usize - 1);
            assert!(
                process
                    .sink
                    .frames
                    .iter()
                    .all(|(peer, _, payload)| payload[..] == peer.number().to_le_bytes())
            );
        }
        close(all);
    }
}

#[test]
fn bulk_goes_from_memory_to_memory_in_both_directions() {
    for way in WAYS {
        let length = 20_000_003;
        let mut all = job(2, way);
        let sources = [pattern(length, 1), pattern(length, 2)];
        let mut targets = [vec![0; length], vec![0; length]];
        for me in 0..2 {
            let memory = writing(&mut targets[me]);
            assert!(
                all[me]
                    .transport
                    .expect(Peer::new(1 - me as u32), 7, lent(memory), length as u64)
            );
        }
        for me in 0..2 {
            let peer = 1 - me as u32;
            all[me]
                .transport
                .send_bulk(Peer::new(peer), 7, lent(reading(&sources[me])), length as u64, 0, 99)
                .unwrap();
            all[me].send(Peer::new(peer), b"a word in between", 5);
        }
        until(&mut all, "bulk both ways", |all| {
            all.iter()
                .all(|p| p.sink.received.len() == 1 && p.sink.sent.len() == 1 && p.sink.frames.len() == 1)
        });
        assert!(
            targets[0] == sources[1] && targets[1] == sources[0],
            "{way:?}: the data differ"
        );
        assert_eq!(
            (all[0].sink.received[0], all[0].sink.sent[0]),
            ((Peer::new(1), 7), (Peer::new(1), 99))
        );
        close(all);
    }
}

#[test]
fn a_posted_receive_is_read_in_place() {
    let mut all = job(2, Reach::Tcp);
    let data = pattern(200_000, 3);
    let mut target = vec![0; data.len()];
    all[1].sink.place = Some(writing(&mut target));
    all[0].send(Peer::new(1), &data, 1);
    until(&mut all, "the payload", |all| {
        all[1].sink.placed == 1 || all[1].sink.frames.len() == 1
    });
    // Small reads ask for a place; when all was in one read there is nothing to place.
    if all[1].sink.placed == 1 {
        assert!(target == data);
    }
    close(all);
}

#[test]
fn fragments_nobody_announced_are_frames() {
    for way in WAYS {
        let mut all = job(2, way);
        let data = pattern(3_000_000, 4);
        all[0]
            .transport
            .send_bulk(Peer::new(1), 1234, lent(reading(&data)), data.len() as u64, 0, 1)
            .unwrap();
        let total = |all: &[Process]| all[1].sink.frames.iter().map(|f| f.2.len()).sum::<usize>();
        until(&mut all, "all fragments", |all| total(all) == data.len());
        let mut got = vec![0; data.len()];
        for (_, header, payload) in &all[1].sink.frames {
            assert_eq!((header.kind, header.token), (Kind::Data, 1234));
            got[header.auxiliary() as usize..][..payload.len()].copy_from_slice(payload);
        }
        assert!(got == data);
        close(all);
    }
}

#[test]
fn a_full_queue_refuses_and_says_when_to_go_on() {
    for way in WAYS {
        let mut all = job(2, way);
        let payload = pattern(100_000, 1);
        let header = Header::new(Kind::Eager, 0, 0, 0, payload.len() as u64, 0);
        let mut taken = 0;
        loop {
            match all[0].transport.send(Peer::new(1), &header, &payload) {
                Ok(()) => taken += 1,
                Err(e) => break assert_eq!(e, SendError::WouldBlock),
            }
            assert!(taken < 100_000, "the queue has no bound");
        }
        until(&mut all, "writable", |all| all[0].sink.writable > 0);
        all[0].send(Peer::new(1), &payload, 0);
        until(&mut all, "all that was taken", |all| {
            all[1].sink.frames.len() == taken + 1
        });
        close(all);
    }
}

#[test]
fn what_was_taken_before_close_arrives() {
    for way in WAYS {
        let mut all = job(2, way);
        for tag in 0..20 {
            all[0].send(Peer::new(1), &pattern(40_000, tag), tag as i32);
        }
        let mut closed = false;
        until(&mut all, "close and arrival", |all| {
            let [a, b] = all else { unreachable!() };
            closed |= a.transport.close(&mut a.sink);
            closed && b.sink.frames.len() == 20
        });
        assert!(matches!(
            all[0]
                .transport
                .send(Peer::new(1), &Header::control(Kind::Ack, 0, 0, 0), &[]),
            Err(SendError::Lost(_))
        ));
        assert_eq!(all[1].sink.lost, [], "a farewell is no loss");
        close(all);
    }
}

#[test]
fn a_peer_that_vanishes_is_lost_and_named() {
    for way in WAYS {
        let mut all = job(2, way);
        all[0].send(Peer::new(1), b"hello", 0);
        until(&mut all, "hello", |all| all[1].sink.frames.len() == 1);
        drop(all.pop());
        until(&mut all, "lost", |all| !all[0].sink.lost.is_empty());
        let (peer, reason) = all[0].sink.lost[0].clone();
        assert_eq!(peer, Peer::new(1));
        assert!(reason.contains("rank 1 (host host-1 of site site-1)"), "{reason}");
        let refused = all[0]
            .transport
            .send(Peer::new(1), &Header::control(Kind::Ack, 0, 0, 0), &[]);
        assert!(matches!(refused, Err(SendError::Lost(r)) if r == reason));
    }
}

#[test]
fn memory_that_was_taken_back_is_not_touched_and_the_channel_goes_on() {
    for way in WAYS {
        let mut all = job(2, way);
        let (length, mut place) = (3_000_000, vec![0; 3_000_000]);
        let data = pattern(length, 1);
        let lease = Lease::new(writing(&mut place));
        assert!(all[1].transport.expect(Peer::new(0), 7, lease.lent(), length as u64));
        all[1].send(Peer::new(0), b"clear", 0);
        until(&mut all, "clearance", |all| all[0].sink.frames.len() == 1);
        drop(lease);
        let memory = lent(reading(&data));
        all[0]
            .transport
            .send_bulk(Peer::new(1), 7, memory, length as u64, 0, 9)
            .unwrap();
        until(&mut all, "the message to be over", |all| {
            all[0].sink.sent == [(Peer::new(1), 9)]
        });
        all[0].send(Peer::new(1), b"after", 1);
        until(&mut all, "what comes after it", |all| all[1].sink.frames.len() == 1);
        assert!(place.iter().all(|b| *b == 0), "{way:?}");
        close(all);
    }
}

#[test]
fn who_is_given_up_is_heard_no_more() {
    for way in WAYS {
        let mut all = job(3, way);
        for from in [0, 2] {
            all[from].send(Peer::new(1), b"before", 0);
            all[1].send(Peer::new(from as u32), b"back", 0);
        }
        until(&mut all, "frames", |all| {
            all[1].sink.frames.len() == 2 && all[0].sink.frames.len() == 1 && all[2].sink.frames.len() == 1
        });
        let (data, mut place) = (pattern(30_000_000, 1), vec![0; 30_000_000]);
        let lease = Lease::new(writing(&mut place));
        assert!(
            all[1]
                .transport
                .expect(Peer::new(0), 7, lease.lent(), data.len() as u64)
        );
        all[1].send(Peer::new(0), b"clear", 0);
        until(&mut all, "clearance", |all| all[0].sink.frames.len() == 2);
        let given = Lease::new(reading(&data));
        all[0]
            .transport
            .send_bulk(Peer::new(1), 7, given.lent(), data.len() as u64, 0, 9)
            .unwrap();
        all[0].poll();
        // As an engine does that finds a fault.
        all[1].transport.lose(Peer::new(0), "for a test");
        drop(lease);
        let then = place.clone();
        if way == Reach::Tcp {
            // Between sites a connection that ends is made again, until the peer has been away for too long.
            until(&mut all, "the loss", |all| !all[0].sink.lost.is_empty());
        }
        all[2].send(Peer::new(1), b"still here", 1);
        until(&mut all, "another one", |all| all[1].sink.frames.len() == 3);
        assert!(
            all[1].sink.received.is_empty() && all[1].sink.lost.is_empty(),
            "{way:?}"
        );
        assert!(place == then, "{way:?}");
        drop(given);
    }
}
