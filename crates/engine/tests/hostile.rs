// SPDX-License-Identifier: Apache-2.0
//! A member of the job that does not keep to the protocol: its frames are made here, those of the others by engines.

mod common;

use common::{channel, content, memory, pattern, receiving, sending};
use isthmus_engine::{Binding, Completion, Engine, EngineError, Mode, Request, Setup};
use isthmus_protocol::credit::WINDOW;
use isthmus_schedule::{Call, Network, Operation, plan};
use isthmus_topology::{Level, Shape};
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Peer, Placement, Processes, Sink, Transport};
use isthmus_wire::frame::{Header, Kind, ROOM, protocol};

const LENGTH: usize = 10_000;

/// Rank 0 is an engine; ranks 1 and 2 are what a test says in their names.
struct Stage {
    engine: Engine,
    ends: Vec<Memory>,
    seen: Seen,
}

#[derive(Default)]
struct Seen(Vec<(Peer, Header)>);

impl Sink for Seen {
    fn frame(&mut self, peer: Peer, header: &Header, _: &[u8]) {
        self.0.push((peer, *header));
    }
    fn place(&mut self, _: Peer, _: &Header) -> Placement {
        Placement::Collect
    }
    fn placed(&mut self, _: Peer, _: &Header) {}
    fn received(&mut self, _: Peer, _: u64) {}
    fn sent(&mut self, _: Peer, _: u64) {}
    fn writable(&mut self, _: Peer) {}
    fn lost(&mut self, _: Peer, _: &str) {}
}

impl Stage {
    fn new(options: Options) -> Self {
        let (mut ends, _) = network(3, options).expect("eventfd");
        let own: Box<dyn Transport> = Box::new(ends.remove(0));
        let engine = Engine::new(Setup {
            me: Peer::new(0),
            processes: Processes::of("job", 3),
            transports: vec![own],
            routes: vec![0; 3],
            levels: vec![4; 3],
            representations: Vec::new(),
        });
        Self {
            engine,
            ends,
            seen: Seen::default(),
        }
    }

    /// `from` sends this; that it is not taken is no failure of the test.
    fn say(&mut self, from: Peer, header: &Header, payload: &[u8]) {
        let _ = self.ends[from.index() - 1].send(Peer::new(0), header, payload);
        self.engine.progress();
    }

    /// The next frame of this kind that `at` gets.
    fn hear(&mut self, at: Peer, kind: Kind) -> Header {
        for _ in 0..100 {
            self.engine.progress();
            self.ends[at.index() - 1].poll(&mut self.seen);
            if let Some(found) = self.seen.0.iter().position(|(_, header)| header.kind == kind) {
                return self.seen.0.swap_remove(found).1;
            }
        }
        panic!("no {kind:?}");
    }

    fn end(&mut self, request: Request) -> Completion {
        for _ in 0..100 {
            if let Some(completion) = self.engine.core.take(request) {
                return completion;
            }
            self.engine.progress();
        }
        panic!("a request does not end");
    }

    /// The request ends because of what this peer has done.
    fn loses(&mut self, request: Request, liar: Peer, word: &str) {
        match self.end(request).error {
            Some(EngineError::PeerLost { peer, reason, .. }) => {
                assert_eq!(peer, liar);
                assert!(reason.contains(word), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

fn rts(token: u64) -> Header {
    Header::new(Kind::Rts, 0, 1, 5, LENGTH as u64, token)
}

fn data(token: u64, at: usize, length: usize) -> Header {
    Header::control(Kind::Data, token, at as u64, length as u64)
}

/// Transports that write long messages to their place by themselves, and that ask for the place of every frame.
fn ways() -> [Options; 2] {
    let plain = Options {
        frame: 4096,
        ..Options::default()
    };
    [plain, Options { place: 1, ..plain }]
}

#[test]
fn memory_of_a_receive_that_has_failed_is_not_written_any_more() {
    let faults: [fn(&mut Stage); 4] = [
        |stage| stage.say(Peer::new(1), &Header::control(Kind::Credit, 0, 0, u64::MAX), &[]),
        |stage| stage.say(Peer::new(1), &Header::control(Kind::Assist, 0, 0, 0), &[]),
        |stage| stage.say(Peer::new(1), &Header::control(Kind::Padding, 0, 0, 0), &[]),
        |stage| stage.say(Peer::new(1), &data(77, 0, 1), &[1]),
    ];
    for options in ways() {
        for fault in faults {
            let mut stage = Stage::new(options);
            let target = memory(&vec![0; LENGTH]);
            let channel = channel(0, 0, 3);
            let receive = stage
                .engine
                .irecv(&channel, Some(1), None, receiving(&target, LENGTH as u64));
            stage.say(Peer::new(1), &rts(9), &[]);
            let token = stage.hear(Peer::new(1), Kind::Cts).auxiliary();
            stage.say(Peer::new(1), &data(token, 0, 1000), &[1; 1000]);
            fault(&mut stage);
            stage.loses(receive, Peer::new(1), "");
            stage.say(Peer::new(1), &data(token, 1000, 4000), &[2; 4000]);
            stage.engine.progress();
            let after = content(&target, LENGTH);
            assert!(after[..1000].iter().all(|b| *b == 1) && after[1000..].iter().all(|b| *b == 0));
        }
    }
}

#[test]
fn a_receive_that_is_not_complete_does_not_end_by_data_that_come_twice() {
    for options in ways() {
        let mut stage = Stage::new(options);
        let target = memory(&vec![0; LENGTH]);
        let channel = channel(0, 0, 3);
        let receive = stage
            .engine
            .irecv(&channel, None, None, receiving(&target, LENGTH as u64));
        // A guess at the name of the request, before it has matched anything.
        stage.say(Peer::new(2), &data(0x1_0000_0000, 0, 10), &[3; 10]);
        stage.loses(receive, Peer::new(2), "data that this process did not ask for");
        assert_eq!(content(&target, LENGTH), vec![0; LENGTH]);
    }
}

#[test]
fn an_answer_to_a_message_of_another_one_ends_nothing() {
    for kind in [Kind::Ack, Kind::Pulled, Kind::Cts] {
        let mut stage = Stage::new(Options::default());
        let source = memory(&pattern(1, LENGTH));
        let channel = channel(0, 0, 3);
        let mode = Mode::Synchronous;
        let send = stage
            .engine
            .isend(&channel, 1, 5, mode, sending(&source, LENGTH as u64));
        let token = stage.hear(Peer::new(1), Kind::EagerSync).token;
        stage.say(Peer::new(2), &Header::control(kind, token, 0, 0), &[]);
        stage.engine.progress();
        assert!(stage.engine.core.take(send).is_none(), "{kind:?}");
        stage.say(Peer::new(1), &Header::control(Kind::Ack, token, 0, 0), &[]);
        assert_eq!(stage.end(send).error, None);
    }
}

#[test]
fn an_answer_that_nobody_waits_for_loses_its_sender() {
    let answers = [Kind::Ack, Kind::Pulled, Kind::Cts, Kind::CancelReply];
    for (kind, token) in answers
        .into_iter()
        .flat_map(|k| [(k, 0), (k, 7), (k, 0x1_0000_0000), (k, u64::MAX)])
    {
        let mut stage = Stage::new(Options::default());
        let target = memory(&[0; 100]);
        let channel = channel(0, 0, 3);
        let receive = stage.engine.irecv(&channel, Some(1), None, receiving(&target, 100));
        stage.say(Peer::new(1), &Header::control(kind, token, 0, 0), &[]);
        stage.loses(
            receive,
            Peer::new(1),
            if kind == Kind::CancelReply {
                "to a cancellation"
            } else {
                "did not wait"
            },
        );
    }
    // The second answer to a question is none either.
    let mut stage = Stage::new(Options::default());
    let (source, target) = (memory(&[1; 100]), memory(&[0; 100]));
    let channel = channel(0, 0, 3);
    let mode = Mode::Synchronous;
    let sent = stage.engine.isend(&channel, 1, 5, mode, sending(&source, 100));
    let token = stage.hear(Peer::new(1), Kind::EagerSync).token;
    stage.engine.cancel(sent);
    stage.hear(Peer::new(1), Kind::Cancel);
    stage.say(Peer::new(1), &Header::control(Kind::Ack, token, 0, 0), &[]);
    assert_eq!(stage.end(sent).error, None);
    let receive = stage.engine.irecv(&channel, Some(1), None, receiving(&target, 100));
    stage.say(Peer::new(1), &Header::control(Kind::CancelReply, token, 0, 0), &[]);
    assert!(
        stage.engine.core.take(receive).is_none(),
        "the answer was late, and that is all"
    );
    stage.say(Peer::new(1), &Header::control(Kind::CancelReply, token, 0, 0), &[]);
    stage.loses(receive, Peer::new(1), "to a cancellation");
}

#[test]
fn messages_that_were_not_announced_cannot_be_called_in() {
    let calls: [fn(u64) -> Header; 3] = [
        |token| Header {
            flags: ROOM,
            ..Header::control(Kind::Cts, token, 7, LENGTH as u64)
        },
        |token| Header {
            flags: ROOM,
            ..Header::control(Kind::Cts, token, 7, 0)
        },
        |token| Header::control(Kind::Cts, token, 7, LENGTH as u64 + 1),
    ];
    for call in calls {
        let mut stage = Stage::new(Options {
            eager: 100,
            ..Options::default()
        });
        let source = memory(&pattern(1, LENGTH));
        let channel = channel(0, 0, 3);
        let send = stage
            .engine
            .isend(&channel, 1, 5, Mode::Standard, sending(&source, LENGTH as u64));
        let token = stage.hear(Peer::new(1), Kind::Rts).token;
        stage.say(Peer::new(1), &call(token), &[]);
        stage.loses(send, Peer::new(1), "clear to send");
    }
}

#[test]
fn data_of_an_announced_message_come_once_and_in_order() {
    let wrong: [fn(&mut Stage, u64); 4] = [
        |stage, token| stage.say(Peer::new(1), &data(token, 100, 100), &[1; 100]),
        |stage, token| stage.say(Peer::new(1), &data(token, 0, LENGTH + 1), &[1; LENGTH + 1]),
        |stage, token| stage.say(Peer::new(1), &data(token + 1, 0, 100), &[1; 100]),
        |stage, token| (0..2).for_each(|_| stage.say(Peer::new(1), &data(token, 0, 100), &[1; 100])),
    ];
    for fault in wrong {
        let mut stage = Stage::new(Options::default());
        let target = memory(&vec![0; LENGTH]);
        let channel = channel(0, 0, 3);
        let announce = Header::new(Kind::Announce, 0, 1, 5, LENGTH as u64, 9);
        stage.say(Peer::new(1), &announce, &[]);
        let call = stage.hear(Peer::new(1), Kind::Cts);
        assert_eq!((call.flags, call.length), (ROOM, LENGTH as u64));
        fault(&mut stage, call.auxiliary());
        let receive = stage
            .engine
            .irecv(&channel, Some(1), None, receiving(&target, LENGTH as u64));
        stage.loses(receive, Peer::new(1), "data that this process did not ask for");
        assert_eq!(content(&target, LENGTH), vec![0; LENGTH]);
    }
}

#[test]
fn a_message_that_has_matched_is_not_lost_with_others_who_could_have_sent_it() {
    let mut stage = Stage::new(Options {
        frame: 4096,
        ..Options::default()
    });
    let target = memory(&vec![0; LENGTH]);
    let channel = channel(0, 0, 3);
    let receive = stage
        .engine
        .irecv(&channel, None, None, receiving(&target, LENGTH as u64));
    stage.say(Peer::new(1), &rts(9), &[]);
    let token = stage.hear(Peer::new(1), Kind::Cts).auxiliary();
    stage.say(Peer::new(2), &Header::control(Kind::Padding, 0, 0, 0), &[]);
    for at in (0..LENGTH).step_by(4000) {
        let length = 4000.min(LENGTH - at);
        stage.say(Peer::new(1), &data(token, at, length), &vec![4; length]);
    }
    assert_eq!(stage.end(receive).error, None);
    assert_eq!(content(&target, LENGTH), vec![4; LENGTH]);
}

#[test]
fn a_message_that_was_set_aside_is_put_back_whole() {
    let cancel = |token, what| Header::control(Kind::Cancel, token, 0, what);
    let announce = |token, length| Header::new(Kind::Announce, 0, 1, token as i32, length, token);
    let length = LENGTH as u64;
    for called in [false, true] {
        let mut stage = Stage::new(Options::default());
        let target = memory(&vec![0; LENGTH]);
        let channel = channel(0, 0, 3);
        if !called {
            // It leaves no room.
            stage.say(Peer::new(1), &announce(8, WINDOW), &[]);
            stage.hear(Peer::new(1), Kind::Cts);
        }
        stage.say(Peer::new(1), &announce(9, length), &[]);
        let bytes = pattern(4, LENGTH);
        if called {
            let call = stage.hear(Peer::new(1), Kind::Cts);
            stage.say(Peer::new(1), &data(call.auxiliary(), 0, LENGTH), &bytes);
        }
        stage.say(Peer::new(1), &cancel(9, 0), &[]);
        assert_eq!(stage.hear(Peer::new(1), Kind::CancelReply).length, 1);
        assert!(matches!(stage.engine.iprobe(&channel, Some(1), Some(9)), Ok(None)));
        stage.say(Peer::new(1), &cancel(9, 2), &[]);
        assert!(matches!(stage.engine.iprobe(&channel, Some(1), Some(9)), Ok(Some(_))));
        let receive = stage
            .engine
            .irecv(&channel, Some(1), Some(9), receiving(&target, length));
        if !called {
            let call = stage.hear(Peer::new(1), Kind::Cts);
            assert_eq!((call.flags, call.length), (0, length));
            stage.say(Peer::new(1), &data(call.auxiliary(), 0, LENGTH), &bytes);
        }
        assert_eq!(stage.end(receive).error, None);
        assert!(content(&target, LENGTH) == bytes, "called in: {called}");
        // Nothing of it is left that could be put back, and what was never set aside cannot be.
        for (token, what) in [(9, 1), (9, 2), (7, 2), (0, 7)] {
            stage.say(Peer::new(1), &cancel(token, what), &[]);
        }
        assert!(matches!(stage.engine.iprobe(&channel, Some(1), Some(9)), Ok(None)));
    }
}

/// A message of 100 bytes in the name of rank `source`.
fn eager(source: u32) -> Header {
    Header::new(Kind::Eager, 0, source, 5, 100, 0)
}

#[test]
fn nobody_speaks_in_the_name_of_another_one() {
    for options in ways() {
        for named in [0, 1, 3, u32::MAX] {
            for from in [Some(1), None] {
                for early in [false, true] {
                    for kind in [Kind::Eager, Kind::EagerSync, Kind::Rts] {
                        let mut stage = Stage::new(options);
                        let target = memory(&[0; 100]);
                        let lie = Header { kind, ..eager(named) };
                        let payload = if kind == Kind::Rts { &[][..] } else { &[7; 100] };
                        let channel = channel(0, 0, 3);
                        if early {
                            stage.say(Peer::new(2), &lie, payload);
                        }
                        let receive = stage.engine.irecv(&channel, from, Some(5), receiving(&target, 100));
                        if !early {
                            stage.say(Peer::new(2), &lie, payload);
                        }
                        if from.is_none() {
                            stage.loses(receive, Peer::new(2), "in the name of rank");
                            continue;
                        }
                        // Who is asked for has not said it yet, and is heard as ever.
                        stage.say(Peer::new(1), &eager(1), &[8; 100]);
                        let completion = stage.end(receive);
                        assert_eq!((completion.error, completion.source), (None, 1));
                        assert_eq!(content(&target, 100), [8; 100]);
                        let next = stage.engine.irecv(&channel, Some(2), None, receiving(&target, 100));
                        if named == 1 {
                            stage.loses(next, Peer::new(2), "in the name of rank 1");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_probe_finds_nothing_that_was_said_in_the_name_of_another_one() {
    let mut stage = Stage::new(Options::default());
    let channel = channel(0, 0, 3);
    stage.say(Peer::new(2), &eager(1), &[7; 100]);
    assert!(matches!(stage.engine.iprobe(&channel, Some(1), None), Ok(None)));
    stage.say(Peer::new(1), &eager(1), &[8; 100]);
    let found = stage.engine.improbe(&channel, Some(1), None).unwrap().unwrap();
    let target = memory(&[0; 100]);
    let receive = stage.engine.imrecv(found.0, receiving(&target, 100));
    assert_eq!(stage.end(receive).error, None);
    assert_eq!(content(&target, 100), [8; 100]);
    let next = stage.engine.irecv(&channel, Some(2), None, receiving(&target, 100));
    stage.loses(next, Peer::new(2), "in the name of rank 1");
}

/// Engine 0 in the barrier with number 7 of a communicator of all three.
fn in_a_barrier(stage: &mut Stage) -> Request {
    for what in Operation::ALL {
        stage.engine.core.operation(what.name());
    }
    let network = Network::plain(Shape::from_colours(&[Level::Machine], 3, |_, _| 0));
    let operation = stage.engine.core.operation(Operation::Barrier.name());
    let plan = plan(&Call::new(Operation::Barrier, 0), &network, 0);
    let channel = channel(16, 0, 3);
    let engine = &mut stage.engine;
    engine.start_plan(&channel, operation, 7, plan, Binding::nothing(), None)
}

/// An answer about that: because of rank `odd` it has come to nothing.
fn gave_up(odd: u32) -> Header {
    Header {
        flags: protocol::AGREEMENT,
        tag: 1234,
        ..Header::control(Kind::Protocol, 2 << 32 | 7, 16 | u64::from(odd) << 32, 0)
    }
}

/// Whom the engine has asked for the operation, and the third one.
fn asked(stage: &mut Stage) -> (Peer, u32) {
    stage.engine.ask_others();
    for _ in 0..10 {
        stage.engine.progress();
        for at in [1, 2] {
            stage.ends[at - 1].poll(&mut stage.seen);
            if stage.seen.0.drain(..).any(|(_, header)| header.kind == Kind::Protocol) {
                return (Peer::new(at as u32), 3 - at as u32);
            }
        }
    }
    panic!("nobody is asked")
}

#[test]
fn what_nobody_asked_for_accuses_whoever_says_it() {
    let mut stage = Stage::new(Options::default());
    let barrier = in_a_barrier(&mut stage);
    let target = memory(&[0; 8]);
    let receive = stage
        .engine
        .irecv(&channel(0, 0, 3), Some(1), None, receiving(&target, 8));
    stage.say(Peer::new(1), &gave_up(2), &[]);
    stage.loses(receive, Peer::new(1), "not asked");
    match stage.engine.core.take(barrier).map(|done| done.error) {
        None => {}
        Some(Some(EngineError::PeerLost { peer, .. })) => assert_eq!(peer, Peer::new(1)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_member_says_of_a_third_one_is_told_as_its_word() {
    let mut stage = Stage::new(Options::default());
    let barrier = in_a_barrier(&mut stage);
    let (liar, innocent) = asked(&mut stage);
    stage.say(liar, &gave_up(innocent), &[]);
    match stage.end(barrier).error {
        Some(EngineError::Disagreement { what, .. }) => {
            let word = format!(
                "rank {}, which has given it up, says that rank {innocent}",
                liar.index()
            );
            assert!(what.contains(&word), "{what}");
        }
        other => panic!("{other:?}"),
    }
    // One answer for one question.
    let target = memory(&[0; 8]);
    let rank = Some(liar.index() as u32);
    let receive = stage.engine.irecv(&channel(0, 0, 3), rank, None, receiving(&target, 8));
    stage.say(liar, &gave_up(innocent), &[]);
    stage.loses(receive, liar, "not asked");
}

#[test]
fn who_gives_up_because_of_itself_of_nobody_or_of_who_asks_has_lied() {
    let claims: [fn(Peer) -> u32; 4] = [|_| 0, |liar| liar.index() as u32, |_| 3, |_| u32::MAX];
    for claim in claims {
        let mut stage = Stage::new(Options::default());
        let barrier = in_a_barrier(&mut stage);
        let (liar, _) = asked(&mut stage);
        stage.say(liar, &gave_up(claim(liar)), &[]);
        stage.loses(barrier, liar, "cannot be the cause");
    }
}

#[test]
fn a_member_that_asks_without_end_puts_nobody_elses_question_out() {
    let mut stage = Stage::new(Options::default());
    let question = |sequence: u64| Header {
        flags: protocol::AGREEMENT,
        tag: 1234,
        ..Header::control(Kind::Protocol, sequence, 16, 0)
    };
    stage.say(Peer::new(2), &question(7), &[]);
    (0..3000).for_each(|_| stage.say(Peer::new(1), &question(5), &[]));
    let _ = in_a_barrier(&mut stage);
    // What it has asked for is another operation.
    assert_eq!(stage.hear(Peer::new(2), Kind::Protocol).token, 1 << 32 | 7);
}
