// SPDX-License-Identifier: Apache-2.0
//! What every transport must do: written once, called by the tests of each transport.
//!
//! A transport's test makes pairs of endpoints (peers 0 and 1, in one process) and hands a function that makes them to
//! [`check`], or [`check_between_jobs`]. Nothing here asserts times; a transport that does not move data at all fails
//! after many polls.

use std::collections::VecDeque;
use std::time::Duration;

use isthmus_datatype::raw::{OwnMemory, WriteMemory};
use isthmus_wire::frame::{Header, Kind, protocol};

use crate::{Lease, Peer, Placement, SendError, Sink, Transport};

/// Two endpoints that reach each other: peer 0 and peer 1.
pub type Pair = [Box<dyn Transport>; 2];

/// Runs everything; `make` gives a fresh pair each time. Panics with what is wrong.
pub fn check(mut make: impl FnMut() -> Pair) {
    frames_arrive_once_whole_and_in_order(make());
    filled_frames_arrive(make());
    gathered_frames_arrive(make());
    both_directions_at_once(make());
    back_pressure_ends(make());
    what_is_said_of_messages_does_not_overtake_them(make());
    handles_travel_with_requests(make());
    long_data_arrive(make());
    data_are_placed(make());
    bulk_data_arrive(make());
    data_can_be_pulled(make());
    sleepers_are_woken(make());
    settling_is_no_end(make());
    closing_pushes_everything_out(make());
}

/// The same for a transport whose peers may be of another job: they may close before this process wants to.
pub fn check_between_jobs(mut make: impl FnMut() -> Pair) {
    check(&mut make);
    who_closes_is_said_to_have_ended(make());
}

/// What a test's side has seen.
#[derive(Default)]
struct Seen {
    frames: VecDeque<(Peer, Header, Vec<u8>)>,
    place: Option<WriteMemory>,
    /// Of what was placed.
    leases: Vec<Lease<WriteMemory>>,
    placed: Vec<Header>,
    received: Vec<u64>,
    sent: Vec<u64>,
    lost: Vec<String>,
    ended: Vec<Peer>,
}

impl Sink for Seen {
    fn frame(&mut self, peer: Peer, header: &Header, payload: &[u8]) {
        assert_eq!(
            header.payload_bytes(),
            payload.len() as u64,
            "a frame must come with its whole payload"
        );
        self.frames.push_back((peer, *header, payload.to_vec()));
    }
    fn place(&mut self, _peer: Peer, header: &Header) -> Placement {
        let at = if header.kind == Kind::Data {
            header.auxiliary() as isize
        } else {
            0
        };
        let Some(memory) = &self.place else {
            return Placement::Collect;
        };
        let lease = Lease::new(memory.shifted(at));
        let lent = lease.lent();
        self.leases.push(lease);
        Placement::Into(lent)
    }
    fn placed(&mut self, _peer: Peer, header: &Header) {
        self.placed.push(*header);
    }
    fn received(&mut self, _peer: Peer, token: u64) {
        self.received.push(token);
    }
    fn sent(&mut self, _peer: Peer, token: u64) {
        self.sent.push(token);
    }
    fn writable(&mut self, _peer: Peer) {}
    fn lost(&mut self, peer: Peer, reason: &str) {
        self.lost.push(format!("{peer}: {reason}"));
    }
    fn ended(&mut self, peer: Peer) {
        self.ended.push(peer);
    }
}

/// The peers that the two ends are to each other.
const END: [Peer; 2] = [Peer::new(0), Peer::new(1)];

struct Bench {
    ends: Pair,
    seen: [Seen; 2],
}

impl Bench {
    fn new(ends: Pair) -> Self {
        Self {
            ends,
            seen: [Seen::default(), Seen::default()],
        }
    }

    fn poll(&mut self) -> bool {
        let mut any = false;
        for (end, seen) in self.ends.iter_mut().zip(&mut self.seen) {
            any |= end.poll(seen);
            assert!(seen.lost.is_empty(), "a peer was lost: {:?}", seen.lost);
        }
        any
    }

    /// Polls both ends until the condition holds.
    fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        for round in 0..2_000_000_u32 {
            if condition(self) {
                return;
            }
            if !self.poll() && round > 100 {
                std::thread::sleep(Duration::from_micros(20));
            }
        }
        panic!("{}: no end of waiting for: {what}", self.ends[0].name());
    }

    fn send(&mut self, from: usize, header: &Header, payload: &[u8]) {
        let to = END[1 - from];
        self.until("a frame to be taken", |bench| {
            match bench.ends[from].send(to, header, payload) {
                Ok(()) => true,
                Err(SendError::WouldBlock) => false,
                Err(SendError::Lost(reason)) => panic!("the peer was lost: {reason}"),
            }
        });
    }

    fn next(&mut self, at: usize) -> (Header, Vec<u8>) {
        self.until("a frame", |bench| !bench.seen[at].frames.is_empty());
        let (peer, header, payload) = self.seen[at].frames.pop_front().expect("there is one");
        assert_eq!(peer, END[1 - at], "a frame comes from its sender");
        (header, payload)
    }
}

fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ seed.wrapping_mul(97)) as u8)
        .collect()
}

fn eager(number: usize, length: usize) -> Header {
    Header::new(Kind::Eager, 6, 1, number as i32, length as u64, number as u64)
}

fn frames_arrive_once_whole_and_in_order(ends: Pair) {
    let limit = ends[0].limits(END[1]).frame;
    assert!(limit >= 4096, "Limits::frame must be at least 4096");
    let mut bench = Bench::new(ends);
    let sizes = [
        0,
        1,
        7,
        8,
        9,
        31,
        32,
        33,
        63,
        64,
        65,
        100,
        511,
        512,
        1000,
        4095,
        4096,
        limit - 1,
        limit,
    ];
    for round in 0..3 {
        for (i, &length) in sizes.iter().enumerate() {
            let payload = pattern(i + round, length);
            bench.send(0, &eager(i, length), &payload);
            if round < 2 {
                assert_eq!(bench.next(1), (eager(i, length), payload));
            }
        }
    }
    for (i, &length) in sizes.iter().enumerate() {
        assert_eq!(bench.next(1), (eager(i, length), pattern(i + 2, length)));
    }
    for _ in 0..100 {
        bench.poll();
    }
    assert!(bench.seen[1].frames.is_empty(), "a frame arrived twice");
}

/// Payloads that are written where the transport wants them mix with the others; what is refused has not been sent.
fn filled_frames_arrive(ends: Pair) {
    let limit = ends[0].limits(END[1]).frame;
    let mut bench = Bench::new(ends);
    let mut scratch = Vec::new();
    let lengths = [1, 32, 33, 1000, limit];
    let mut sent = 0;
    for number in 0..200 {
        let length = lengths[number % lengths.len()];
        let (header, payload) = (eager(number, length), pattern(number, length));
        let mut fills = 0;
        let mut fill = |to: &mut [u8]| {
            fills += 1;
            to.copy_from_slice(&payload);
        };
        let taken = match number % 3 {
            0 => bench.ends[0].send(END[1], &header, &payload),
            _ => bench.ends[0].send_filled(END[1], &header, &mut scratch, &mut fill),
        };
        assert!(fills <= 1, "a payload is written once");
        match taken {
            Ok(()) => sent = number + 1,
            Err(SendError::WouldBlock) => break,
            Err(SendError::Lost(reason)) => panic!("the peer was lost: {reason}"),
        }
    }
    for number in 0..sent {
        let length = lengths[number % lengths.len()];
        let (header, payload) = bench.next(1);
        assert_eq!(header, eager(number, length));
        assert_eq!(payload, pattern(number, length), "frame {number}");
    }
}

/// Frames that leave together come as any others, whatever their lengths, and so do those between them.
fn gathered_frames_arrive(ends: Pair) {
    let limit = ends[0].limits(END[1]).frame;
    let mut bench = Bench::new(ends);
    let lengths = [0, 100, 5000, 100, limit, 1, 8192.min(limit)];
    let length = |number: usize| lengths[number % lengths.len()];
    let mut sent = 0;
    for number in 0..140 {
        if number % 20 == 3 {
            bench.ends[0].gather(END[1]);
        }
        let taken = bench.ends[0].send(END[1], &eager(number, length(number)), &pattern(number, length(number)));
        if number % 20 == 16 {
            bench.ends[0].send_gathered(END[1]);
        }
        match taken {
            Ok(()) => sent = number + 1,
            Err(SendError::WouldBlock) => break,
            Err(SendError::Lost(reason)) => panic!("the peer was lost: {reason}"),
        }
    }
    bench.ends[0].send_gathered(END[1]);
    for number in 0..sent {
        let (header, payload) = bench.next(1);
        assert_eq!(header, eager(number, length(number)));
        assert_eq!(payload, pattern(number, length(number)), "frame {number}");
    }
}

fn both_directions_at_once(ends: Pair) {
    let mut bench = Bench::new(ends);
    for i in 0..2000 {
        let length = (i * 37) % 3000;
        for from in 0..2 {
            bench.send(from, &eager(i, length), &pattern(i + from, length));
        }
    }
    for i in 0..2000 {
        let length = (i * 37) % 3000;
        for at in 0..2 {
            assert_eq!(bench.next(at), (eager(i, length), pattern(i + 1 - at, length)));
        }
    }
}

fn back_pressure_ends(ends: Pair) {
    let mut bench = Bench::new(ends);
    let payload = pattern(5, 4096);
    let mut taken = 0;
    // A receiver that does not poll must not make the sender's memory grow without bound.
    while taken < 100_000 {
        match bench.ends[0].send(END[1], &eager(taken, 4096), &payload) {
            Ok(()) => taken += 1,
            Err(SendError::WouldBlock) => break,
            Err(SendError::Lost(reason)) => panic!("the peer was lost: {reason}"),
        }
        // The sender's own polls count as pushing out.
        let mut seen = Seen::default();
        bench.ends[0].poll(&mut seen);
    }
    assert!(taken < 100_000, "400 MB were taken for a peer that does not read");
    for i in 0..taken {
        assert_eq!(bench.next(1), (eager(i, 4096), payload.clone()));
    }
    bench.send(0, &eager(taken, 4096), &payload);
    assert_eq!(bench.next(1).0, eager(taken, 4096));
}

/// Much is under way, and the frame is sent as soon as there is room.
fn what_is_said_of_messages_does_not_overtake_them(ends: Pair) {
    let limit = ends[0].limits(END[1]).frame;
    let mut bench = Bench::new(ends);
    let payload = pattern(3, limit);
    let before = (16 << 20) / limit;
    for number in 0..before {
        bench.send(0, &eager(number, limit), &payload);
    }
    let said = Header {
        flags: protocol::AGREEMENT,
        ..Header::control(Kind::Protocol, 7, 6, 0)
    };
    bench.send(0, &said, &[]);
    for number in 0..before {
        assert_eq!(bench.next(1).0, eager(number, limit));
    }
    assert_eq!(bench.next(1).0, said);
}

fn handles_travel_with_requests(ends: Pair) {
    let mut bench = Bench::new(ends);
    for size in [0_usize, 1, 24, 255] {
        let mut header = Header::new(Kind::Rts, 8, 0, 3, 1 << 40, 77);
        header.flags = size as u8;
        bench.send(0, &header, &pattern(size, size));
        assert_eq!(bench.next(1), (header, pattern(size, size)));
    }
    for kind in [
        Kind::Cts,
        Kind::Ack,
        Kind::Pulled,
        Kind::Cancel,
        Kind::CancelReply,
        Kind::Credit,
    ] {
        let header = Header::control(kind, u64::MAX, 1 << 60, 1 << 50);
        bench.send(1, &header, &[]);
        assert_eq!(bench.next(0), (header, vec![]));
    }
}

const LONG: usize = 3_000_001;

/// Sends `LONG` bytes from 0 to 1 as data frames through `send`.
fn send_data(bench: &mut Bench, token: u64, data: &[u8]) {
    let limit = bench.ends[0].limits(END[1]).frame;
    let mut at = 0;
    while at < data.len() {
        let length = limit.min(data.len() - at);
        let header = Header::control(Kind::Data, token, at as u64, length as u64);
        bench.send(0, &header, &data[at..at + length]);
        at += length;
    }
}

/// Collects the data frames of a token that peer 1 got, from wherever they went.
fn collect_data(bench: &mut Bench, token: u64, memory: &mut WriteMemory, length: usize) {
    let mut got = 0;
    bench.until("all data", |bench| {
        let seen = &mut bench.seen[1];
        while let Some((_, header, payload)) = seen.frames.pop_front() {
            assert_eq!((header.kind, header.token), (Kind::Data, token));
            memory.write(header.auxiliary() as isize, &payload);
            got += payload.len();
        }
        got += seen
            .placed
            .drain(..)
            .map(|header| header.length as usize)
            .sum::<usize>();
        got >= length || seen.received.contains(&token)
    });
}

fn long_data_arrive(ends: Pair) {
    let mut bench = Bench::new(ends);
    let data = pattern(3, LONG);
    let target = OwnMemory::new(0, LONG as isize);
    send_data(&mut bench, 9, &data);
    collect_data(&mut bench, 9, &mut target.memory(), LONG);
    assert!(target.content() == data, "data differ");
}

fn data_are_placed(ends: Pair) {
    let mut bench = Bench::new(ends);
    let data = pattern(4, LONG);
    let target = OwnMemory::new(0, LONG as isize);
    bench.seen[1].place = Some(target.memory());
    send_data(&mut bench, 9, &data);
    collect_data(&mut bench, 9, &mut target.memory(), LONG);
    assert!(target.content() == data, "placed data differ");
}

fn scratch_with(data: &[u8]) -> OwnMemory {
    let scratch = OwnMemory::new(0, data.len() as isize);
    scratch.memory().write(0, data);
    scratch
}

fn bulk_data_arrive(ends: Pair) {
    if !ends[0].limits(END[1]).bulk {
        return;
    }
    let mut bench = Bench::new(ends);
    for token in [11, 12] {
        let data = pattern(token as usize, LONG);
        let source = scratch_with(&data);
        let target = OwnMemory::new(0, LONG as isize);
        let (from, into) = (Lease::new(source.memory().reading()), Lease::new(target.memory()));
        if !bench.ends[1].expect(END[0], token, into.lent(), LONG as u64) {
            return;
        }
        // As in a rendezvous: what comes before its receiver has been heard may be frames as well.
        bench.send(1, &Header::control(Kind::Cts, token, 0, 0), &[]);
        bench.next(0);
        bench.until("bulk to be taken", |bench| {
            bench.ends[0]
                .send_bulk(END[1], token, from.lent(), LONG as u64, 0, 1000 + token)
                .is_ok()
        });
        collect_data(&mut bench, token, &mut target.memory(), LONG);
        bench.until("the memory to be free", |bench| {
            bench.seen[0].sent.contains(&(1000 + token))
        });
        assert!(target.content() == data, "bulk data differ");
    }
    bench.send(0, &eager(1, 3), &[1, 2, 3]);
    assert_eq!(bench.next(1), (eager(1, 3), vec![1, 2, 3]));
}

fn data_can_be_pulled(ends: Pair) {
    let mut bench = Bench::new(ends);
    let data = pattern(6, LONG);
    let source = scratch_with(&data);
    let handle = bench.ends[0].handle(END[1], source.reading(), LONG as u64);
    if !bench.ends[0].limits(END[1]).pull || handle.is_empty() {
        return;
    }
    assert!(handle.len() <= 254, "a handle has at most 254 bytes");
    let target = OwnMemory::new(0, LONG as isize);
    match bench.ends[1].pull(END[0], &handle, 100, target.memory(), (LONG - 100) as u64) {
        Ok(true) => assert!(target.content()[..LONG - 100] == data[100..], "pulled data differ"),
        Ok(false) => {}
        Err(error) => panic!("pull failed: {error:?}"),
    }
}

fn sleepers_are_woken(mut ends: Pair) {
    let [sender, receiver] = &mut ends;
    let mut seen = Seen::default();
    for i in 0..50 {
        std::thread::scope(|scope| {
            let waker = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(if i < 5 { 10 } else { 0 }));
                let mut mine = Seen::default();
                while sender.send(END[1], &eager(i, 5), b"hello") == Err(SendError::WouldBlock) {
                    sender.poll(&mut mine);
                }
                for _ in 0..10 {
                    sender.poll(&mut mine);
                }
            });
            while seen.frames.len() <= i {
                if !receiver.poll(&mut seen) && receiver.arm() {
                    let descriptors: Vec<_> = receiver.descriptor().into_iter().collect();
                    crate::wait(&descriptors, Some(Duration::from_secs(60)));
                }
                receiver.disarm();
            }
            waker.join().expect("the sender's thread");
        });
    }
    assert!(seen.frames.iter().enumerate().all(|(i, frame)| frame.1 == eager(i, 5)));
}

fn settling_is_no_end(ends: Pair) {
    let mut bench = Bench::new(ends);
    for round in 0..3 {
        for i in 0..20 {
            bench.send(i % 2, &eager(i, 1000), &pattern(round + i, 1000));
        }
        bench.until("both ends to settle", |bench| {
            let Bench { ends, seen } = bench;
            let settled = ends.iter_mut().zip(seen).map(|(end, seen)| end.settle(seen));
            settled.filter(|done| !done).count() == 0
        });
        for i in 0..20 {
            let frame = bench.next(1 - i % 2);
            assert_eq!(frame, (eager(i, 1000), pattern(round + i, 1000)), "round {round}");
        }
    }
}

fn closing_pushes_everything_out(ends: Pair) {
    let mut bench = Bench::new(ends);
    for i in 0..100 {
        bench.send(0, &eager(i, 1000), &pattern(i, 1000));
    }
    bench.until("the end of the connection", |bench| {
        let Bench { ends, seen } = bench;
        // The other end polls so that the data can leave.
        ends[1].poll(&mut seen[1]);
        ends[0].close(&mut seen[0])
    });
    for i in 0..100 {
        let seen = &mut bench.seen[1];
        for _ in 0..2_000_000 {
            if !seen.frames.is_empty() {
                break;
            }
            bench.ends[1].poll(seen);
        }
        let (_, header, payload) = seen
            .frames
            .pop_front()
            .expect("a frame that was taken before the end arrives");
        assert_eq!((header, payload), (eager(i, 1000), pattern(i, 1000)));
    }
}

/// After all that it has sent. It is no loss.
fn who_closes_is_said_to_have_ended(ends: Pair) {
    let mut bench = Bench::new(ends);
    // Both have spoken, so there is a connection whichever way it was made.
    bench.send(1, &eager(1, 10), &pattern(1, 10));
    bench.next(0);
    for i in 0..50 {
        bench.send(0, &eager(i, 1000), &pattern(i, 1000));
    }
    let Bench {
        ends: [mut first, second],
        seen: [mut seen, rest],
    } = bench;
    let (mut other, mut heard) = (second, rest);
    for _ in 0..2_000_000 {
        other.poll(&mut heard);
        if first.close(&mut seen) {
            break;
        }
    }
    drop(first);
    for _ in 0..200_000 {
        if heard.ended.is_empty() && !other.poll(&mut heard) {
            std::thread::sleep(Duration::from_micros(20));
        }
    }
    let name = other.name();
    assert_eq!(
        heard.ended.first(),
        Some(&END[0]),
        "{name}: it is said that a peer has closed"
    );
    assert_eq!(heard.frames.len(), 50, "{name}: what it has sent before comes before");
    other.poll(&mut heard);
    assert!(heard.lost.is_empty(), "{name}: it is no loss: {:?}", heard.lost);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Options, network};

    #[test]
    fn the_memory_transport_conforms() {
        let options = Options::default();
        for options in [
            options,
            Options {
                pull: true,
                bulk: true,
                place: 1024,
                ..options
            },
            Options {
                seed: 7,
                queue: 3,
                bulk: true,
                frame: 5000,
                ..options
            },
        ] {
            check_between_jobs(|| {
                let (ends, _) = network(2, options).expect("eventfd");
                let [a, b] = <[_; 2]>::try_from(ends).unwrap_or_else(|_| panic!("two ends"));
                [Box::new(a), Box::new(b)]
            });
        }
    }
}
