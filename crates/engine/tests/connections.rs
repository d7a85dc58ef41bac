// SPDX-License-Identifier: Apache-2.0
//! A member of the job that does not keep to the message protocol, over real connections: rank 0 is an engine, rank 1
//! says what a test wants, and rank 2 must notice nothing.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../net/tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Instant;

use common::middle::Middle;
use common::*;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{
    Channel, Completion, Context, Engine, EngineError, Members, Mode, ReceiveBuffer, Request, SendBuffer, Setup,
    Special,
};
use isthmus_identity::Authority;
use isthmus_net::{Listener, Reach, start};
use isthmus_transport::{Peer, Processes};
use isthmus_wire::frame::{BULK, Header, Kind};

const LENGTH: usize = 3 << 20;
const LIAR: u32 = 1;
/// Bytes of a data frame.
const PIECE: usize = 60_000;

struct Stage {
    engine: Engine,
    /// Ranks 1 and 2.
    others: Vec<Process>,
}

impl Stage {
    fn new(way: Reach) -> Self {
        Self::of(job(3, way))
    }

    /// The connection of rank 0 and the liar goes over a line that can break.
    fn over_a_line() -> (Self, Middle) {
        let listeners: Vec<Listener> = (0..3).map(|_| Listener::bind(None).unwrap()).collect();
        let line = Middle::new(listeners[1].port());
        // Nobody can dial rank 0.
        let table = Arc::new(places(&[1, line.port, listeners[2].port()], &["127.0.0.1"]));
        let authority = Authority::new(JOB).unwrap();
        let each = |(rank, listener)| {
            Process::of(start(config(Peer::new(rank as u32), &table, Reach::Tls, &authority, listener)).unwrap())
        };
        let mut stage = Self::of(listeners.into_iter().enumerate().map(each).collect());
        for other in [1, 2] {
            let buffer = SendBuffer::contiguous(OwnMemory::new(0, 9).reading(), 0, 9);
            stage.engine.isend(&Self::channel(), other, 3, Mode::Standard, buffer);
            stage.hear(other, Kind::Eager);
        }
        (stage, line)
    }

    fn of(mut others: Vec<Process>) -> Self {
        let engine = Engine::new(Setup {
            me: Peer::new(0),
            processes: Processes::of("job", 3),
            transports: vec![others.remove(0).transport],
            routes: vec![0; 3],
            levels: vec![4; 3],
            representations: Vec::new(),
        });
        Self { engine, others }
    }

    fn channel() -> Channel {
        Channel {
            context: Context::default(),
            rank: 0,
            members: Members::Range {
                first: Peer::new(0),
                count: 3,
            },
            slab: None,
            node: None,
            special: Special::none(),
            notes: None,
        }
    }

    fn until<T>(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            self.engine.progress();
            for other in &mut self.others {
                other.poll();
            }
            if let Some(result) = done(self) {
                return result;
            }
            assert!(Instant::now() < end, "not within a minute: {what}");
            std::thread::yield_now();
        }
    }

    /// This rank sends a frame, if anybody still takes it.
    fn say(&mut self, from: u32, header: &Header, payload: &[u8]) {
        self.until("room", |stage| {
            let transport = &mut stage.others[from as usize - 1].transport;
            let sent = transport.send(Peer::new(0), header, payload);
            (sent != Err(isthmus_transport::SendError::WouldBlock)).then_some(())
        });
    }

    /// The next frame of this kind for this rank.
    fn hear(&mut self, at: u32, kind: Kind) -> Header {
        self.until("a frame", |stage| {
            let frames = &mut stage.others[at as usize - 1].sink.frames;
            let found = frames.iter().position(|(_, header, _)| header.kind == kind)?;
            frames.remove(found).map(|(_, header, _)| header)
        })
    }

    fn receive(&mut self, from: Option<u32>, target: &OwnMemory, room: usize) -> Request {
        let buffer = ReceiveBuffer::contiguous(target.memory(), 0, room as u64);
        self.engine.irecv(&Self::channel(), from, None, buffer)
    }

    fn end(&mut self, request: Request) -> Completion {
        self.until("the end of a request", |stage| stage.engine.core.take(request))
    }

    fn loses(&mut self, request: Request, word: &str) {
        match self.end(request).error {
            Some(EngineError::PeerLost { peer, reason, .. }) if peer == Peer::new(LIAR) => {
                assert!(reason.contains(word), "{reason}")
            }
            other => panic!("{other:?}, not {word}"),
        }
    }

    /// A receive of which a part has come, and the name that the liar knows it by.
    fn halfway(&mut self) -> (OwnMemory, Request, u64) {
        let target = OwnMemory::new(0, LENGTH as isize);
        let receive = self.receive(Some(LIAR), &target, LENGTH);
        self.say(LIAR, &Header::new(Kind::Rts, 0, LIAR, 5, LENGTH as u64, 9), &[]);
        let token = self.hear(LIAR, Kind::Cts).auxiliary();
        self.say(LIAR, &data(token, 0, PIECE), &[1; PIECE]);
        (target, receive, token)
    }

    /// The liar is found out.
    fn fault(&mut self) {
        self.say(LIAR, &Header::control(Kind::Credit, 0, 0, u64::MAX), &[]);
    }

    /// Whatever the liar still says, nothing of it is written here.
    fn writes_no_more(&mut self, target: &OwnMemory, token: u64) {
        let before = target.content();
        for at in (PIECE..LENGTH - PIECE).step_by(PIECE).take(20) {
            let _ = self.others[0]
                .transport
                .send(Peer::new(0), &data(token, at, PIECE), &[2; PIECE]);
            self.engine.progress();
            for other in &mut self.others {
                other.poll();
            }
        }
        assert!(target.content() == before, "written after its end");
    }

    /// Messages go to and from rank 2.
    fn goes_on(&mut self) {
        let target = OwnMemory::new(0, 100);
        let receive = self.receive(Some(2), &target, 100);
        self.say(2, &eager(2), &[8; 100]);
        assert_eq!(self.end(receive).error, None);
        assert_eq!(target.content(), [8; 100]);
        let buffer = SendBuffer::contiguous(target.reading(), 0, 100);
        let sent = self.engine.isend(&Self::channel(), 2, 3, Mode::Synchronous, buffer);
        let token = self.hear(2, Kind::EagerSync).token;
        self.say(2, &Header::control(Kind::Ack, token, 0, 0), &[]);
        assert_eq!(self.end(sent).error, None);
    }
}

/// A message of 100 bytes in the name of this rank.
fn eager(source: u32) -> Header {
    Header::new(Kind::Eager, 0, source, 5, 100, 0)
}

fn data(token: u64, at: usize, length: usize) -> Header {
    Header::control(Kind::Data, token, at as u64, length as u64)
}

#[test]
fn memory_of_a_receive_that_has_failed_is_not_written_any_more() {
    type Fault = (fn(&mut Stage, u64), &'static str);
    let faults: [Fault; 5] = [
        (
            |stage, _| stage.say(LIAR, &Header::control(Kind::Credit, 0, 0, u64::MAX), &[]),
            "credit",
        ),
        (|stage, _| stage.say(LIAR, &data(77, 0, 1), &[1]), "did not ask for"),
        (
            |stage, token| stage.say(LIAR, &data(token, LENGTH - 5, 10), &[1; 10]),
            "",
        ),
        (
            |stage, _| stage.say(LIAR, &Header::control(Kind::Ack, 5, 0, 0), &[]),
            "did not wait",
        ),
        (
            |stage, _| stage.say(LIAR, &Header::control(Kind::CancelReply, 5, 0, 1), &[]),
            "to a cancellation",
        ),
    ];
    for way in [Reach::Tcp, Reach::Tls] {
        for (fault, word) in faults {
            let mut stage = Stage::new(way);
            let target = OwnMemory::new(0, LENGTH as isize);
            let receive = stage.receive(Some(LIAR), &target, LENGTH);
            stage.say(LIAR, &Header::new(Kind::Rts, 0, LIAR, 5, LENGTH as u64, 9), &[]);
            let token = stage.hear(LIAR, Kind::Cts).auxiliary();
            stage.say(LIAR, &data(token, 0, 60_000), &[1; 60_000]);
            fault(&mut stage, token);
            stage.loses(receive, word);
            let before = target.content();
            for at in (60_000..LENGTH).step_by(60_000).take(20) {
                let _ = stage.others[0]
                    .transport
                    .send(Peer::new(0), &data(token, at, 60_000), &[2; 60_000]);
            }
            stage.goes_on();
            assert!(target.content() == before, "{way:?}: written after its end");
        }
    }
}

#[test]
fn nobody_speaks_in_the_name_of_another_one() {
    for way in [Reach::Tcp, Reach::Tls] {
        for kind in [Kind::Eager, Kind::EagerSync, Kind::Rts, Kind::Announce] {
            let mut stage = Stage::new(way);
            let target = OwnMemory::new(0, 100);
            let receive = stage.receive(None, &target, 100);
            let payload = if matches!(kind, Kind::Rts | Kind::Announce) {
                &[][..]
            } else {
                &[7; 100]
            };
            stage.say(LIAR, &Header { kind, ..eager(2) }, payload);
            stage.loses(receive, "in the name of rank 2");
            stage.goes_on();
        }
    }
}

#[test]
fn memory_is_out_of_reach_when_the_peer_is_lost_during_a_cancellation() {
    for way in [Reach::Tcp, Reach::Tls] {
        let mut stage = Stage::new(way);
        let (target, receive, token) = stage.halfway();
        // It has matched, so it is cancelled in vain.
        stage.engine.cancel(receive);
        stage.fault();
        stage.loses(receive, "credit");
        stage.writes_no_more(&target, token);
        stage.goes_on();

        // More than sockets take: most of it is still here when the liar is found out.
        let length = 24 << 20;
        let source = OwnMemory::with(&vec![1; length]);
        let buffer = SendBuffer::contiguous(source.reading(), 0, length as u64);
        let mut stage = Stage::new(way);
        let send = stage.engine.isend(&Stage::channel(), LIAR, 3, Mode::Standard, buffer);
        let token = stage.hear(LIAR, Kind::Rts).token;
        stage.engine.cancel(send);
        stage.hear(LIAR, Kind::Cancel);
        let mut clearance = Header::control(Kind::Cts, token, 7, length as u64);
        clearance.flags = BULK;
        stage.say(LIAR, &clearance, &[]);
        stage.fault();
        stage.loses(send, "credit");
        source.memory().write(0, &vec![2; length]);
        stage.goes_on();
        let data = stage.others[0].sink.frames.iter();
        let mut data = data.filter(|(_, header, _)| header.kind == Kind::Data);
        assert!(
            data.all(|(_, _, payload)| payload.iter().all(|b| *b == 1)),
            "{way:?}: read after its end"
        );
    }
}

#[test]
fn memory_is_out_of_reach_when_communication_ends() {
    for way in [Reach::Tcp, Reach::Tls] {
        for is_found_out in [true, false] {
            let mut stage = Stage::new(way);
            let (target, receive, token) = stage.halfway();
            // As MPI_Request_free does: nobody waits for it, and after MPI_Finalize the memory is the program's.
            stage.engine.release(receive);
            stage.until("all to be settled", |stage| stage.engine.settle().then_some(()));
            if is_found_out {
                stage.fault();
                stage.goes_on();
            }
            stage.until("the end", |stage| stage.engine.close().then_some(()));
            stage.engine.core.finish();
            stage.writes_no_more(&target, token);
        }
    }
}

#[test]
fn memory_is_out_of_reach_when_the_peer_is_lost_on_a_connection_that_was_resumed() {
    let (mut stage, line) = Stage::over_a_line();
    let (target, receive, token) = stage.halfway();
    stage.until("the first piece", |_| {
        (target.content()[..PIECE] == [1; PIECE]).then_some(())
    });
    line.reset();
    stage.say(LIAR, &data(token, PIECE, PIECE), &[1; PIECE]);
    stage.until("the channel to go on", |_| {
        (target.content()[PIECE..2 * PIECE] == [1; PIECE]).then_some(())
    });
    line.reset();
    stage.fault();
    stage.loses(receive, "credit");
    stage.writes_no_more(&target, token);
    line.reset();
    stage.writes_no_more(&target, token);
    stage.goes_on();
}
