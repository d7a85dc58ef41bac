// SPDX-License-Identifier: Apache-2.0
//! One engine in several worlds: processes of two jobs, whose contexts have the same numbers.

mod common;

use std::ops::Range;

use common::{content, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{
    Binding, Block, BoundBuffer, Channel, Completion, Context, Engine, EngineError, Members, Mode, Newcomers, Request,
    Special,
};
use isthmus_schedule::{Call, Network, Operation, plan};
use isthmus_topology::{Level, Shape};
use isthmus_transport::memory::{Memory, Options, Switch, network};
use isthmus_transport::{Job, Peer};

/// Members of each world.
const SIZE: u32 = 3;

/// The number that both worlds give the context of their MPI_COMM_WORLD.
const NUMBER: u32 = 2;

/// A job beside the one that the processes were started in.
struct Other {
    job: Job,
    first: Peer,
    switch: Switch,
}

/// Rank there of a process: otherwise numbered.
fn rank_in_other(process: u32) -> u32 {
    (process + 1) % SIZE
}

/// What all processes of a world have in common.
struct Worlds {
    all: common::World,
    other: Other,
}

fn newcomers(job: Job, ranks: Range<u32>, me: Option<u32>, route: u8) -> Newcomers {
    let count = ranks.len();
    Newcomers {
        job,
        ranks,
        contexts: job,
        me,
        routes: vec![route; count],
        levels: vec![1; count],
        representations: Vec::new(),
    }
}

/// This engine is a member of the other job too.
fn join(engine: &mut Engine, process: u32, end: Memory) -> (Job, Peer) {
    let first = Peer::new(SIZE);
    let route = engine
        .add_transport(Box::new(end.with_peers_from(first)))
        .expect("there is room");
    let job = engine.core.processes().job("other");
    let met = engine.take_in(newcomers(job, 0..SIZE, Some(rank_in_other(process)), route));
    assert_eq!(met, Ok(first), "the next numbers");
    (job, first)
}

fn two(options: Options) -> Worlds {
    let mut all = world(SIZE, options);
    let (ends, switch) = network(SIZE, options).expect("eventfd");
    let mut ends: Vec<Option<Memory>> = ends.into_iter().map(Some).collect();
    let mut met = (Job::OWN, Peer::NONE);
    for (process, engine) in (0..).zip(&mut all.engines) {
        let end = ends[rank_in_other(process) as usize].take().expect("one each");
        met = join(engine, process, end);
    }
    let (job, first) = met;
    Worlds {
        all,
        other: Other { job, first, switch },
    }
}

impl Worlds {
    fn own(&self, process: u32) -> Channel {
        channel(Job::OWN, Peer::new(0), process)
    }

    fn other(&self, process: u32) -> Channel {
        channel(self.other.job, self.other.first, rank_in_other(process))
    }

    fn finish(&mut self, process: u32, request: Request) -> Completion {
        self.all.finish(process as usize, request)
    }

    fn engine(&mut self, process: u32) -> &mut Engine {
        &mut self.all.engines[process as usize]
    }
}

fn channel(job: Job, first: Peer, rank: u32) -> Channel {
    Channel {
        context: Context::new(job.number(), NUMBER),
        rank,
        members: Members::Range { first, count: SIZE },
        slab: None,
        node: None,
        special: Special::none(),
        notes: None,
    }
}

/// Eight bytes of rank 0 for everybody.
fn start_bcast(engine: &mut Engine, channel: &Channel, data: &OwnMemory) -> Request {
    let mut call = Call::new(Operation::Bcast, 8);
    call.root = 0;
    let levels = [Level::LocalArea];
    let network = Network::plain(Shape::from_colours(&levels[..], SIZE, |rank, _| rank));
    let block = Block::writing(data.memory(), &Datatype::of(Basic::Byte), 8).expect("a block");
    let binding = Binding::bytes(BoundBuffer::none(), BoundBuffer::one(block));
    let operation = engine.core.operation("test");
    let plan = plan(&call, &network, channel.rank);
    engine.start_plan(channel, operation, 1, plan, binding, None)
}

#[test]
fn messages_and_operations_stay_in_their_world() {
    for options in common::kinds() {
        let mut w = two(options);
        // Receives first, from anybody, with the same tags and ranks in both worlds, whose messages arrive in turns.
        for length in [0, 100, 50_000] {
            for (process, to) in [(0, 1), (1, 2), (2, 0)] {
                let (here, there) = (pattern(1, length), pattern(2, length));
                let targets = [OwnMemory::new(0, length as isize), OwnMemory::new(0, length as isize)];
                let channels = [w.own(to), w.other(to)];
                let received: Vec<_> = targets
                    .iter()
                    .zip(&channels)
                    .map(|(target, channel)| {
                        w.engine(to)
                            .irecv(channel, None, Some(5), receiving(target, length as u64))
                    })
                    .collect();
                let (first, second) = (memory(&there), memory(&here));
                let (other, own) = (w.other(process), w.own(process));
                let sent = [
                    w.engine(process).isend(
                        &other,
                        rank_in_other(to),
                        5,
                        Mode::Synchronous,
                        sending(&first, length as u64),
                    ),
                    w.engine(process)
                        .isend(&own, to, 5, Mode::Standard, sending(&second, length as u64)),
                ];
                for (request, from) in received.into_iter().zip([process, rank_in_other(process)]) {
                    let done = w.finish(to, request);
                    assert_eq!((done.error, done.source, done.bytes), (None, from, length as u64));
                }
                for request in sent {
                    assert_eq!(w.finish(process, request).error, None);
                }
                assert!(content(&targets[0], length) == here && content(&targets[1], length) == there);
            }
        }
        // A broadcast in each at once, with the same sequence number.
        let buffers: Vec<[OwnMemory; 2]> = (0..SIZE)
            .map(|process| {
                let own = if process == 0 { *b"in world" } else { [0; 8] };
                let other = if rank_in_other(process) == 0 {
                    *b"in other"
                } else {
                    [0; 8]
                };
                [OwnMemory::with(&own), OwnMemory::with(&other)]
            })
            .collect();
        let mut requests = Vec::new();
        for process in 0..SIZE {
            let (own, other) = (w.own(process), w.other(process));
            let [mine, theirs] = &buffers[process as usize];
            let engine = w.engine(process);
            // In another order at each.
            let mut pair = [(&own, mine), (&other, theirs)];
            pair.rotate_left(process as usize % 2);
            requests.extend(pair.map(|(channel, data)| (process, start_bcast(engine, channel, data))));
        }
        for (process, request) in requests {
            assert_eq!(w.finish(process, request).error, None);
        }
        for [own, other] in &buffers {
            assert_eq!(
                (&*own.content(), &*other.content()),
                (&b"in world"[..], &b"in other"[..])
            );
        }
        w.all.close();
    }
}

#[test]
fn messages_to_oneself_stay_in_their_world() {
    let mut w = two(Options::default());
    let target = OwnMemory::new(0, 1);
    let (own, other) = (w.own(1), w.other(1));
    let (a, b) = (memory(b"a"), memory(b"b"));
    let sent = [
        w.engine(1).isend(&own, 1, 7, Mode::Standard, sending(&a, 1)),
        w.engine(1)
            .isend(&other, rank_in_other(1), 7, Mode::Synchronous, sending(&b, 1)),
    ];
    let received = w.engine(1).irecv(&other, None, Some(7), receiving(&target, 1));
    assert_eq!(w.finish(1, received).source, rank_in_other(1));
    assert_eq!(content(&target, 1), b"b");
    let probed = w.engine(1).iprobe(&own, None, None).expect("nobody is lost");
    assert_eq!(
        probed.map(|found| (found.source, found.tag)),
        Some((1, 7)),
        "it waits in its own world"
    );
    let received = w.engine(1).irecv(&own, Some(1), Some(7), receiving(&target, 1));
    assert_eq!(w.finish(1, received).error, None);
    assert_eq!(content(&target, 1), b"a");
    for request in sent {
        assert_eq!(w.finish(1, request).error, None);
    }
}

#[test]
fn a_process_is_taken_in_while_messages_are_under_way() {
    let mut w = two(Options {
        eager: 1024,
        frame: 4096,
        ..Options::default()
    });
    let (length, target) = (100_000, OwnMemory::new(0, 100_000));
    let data = memory(&pattern(3, length));
    let (from, to) = (w.other(0), w.other(2));
    let received = w.engine(2).irecv(&to, None, None, receiving(&target, length as u64));
    let sent = w
        .engine(0)
        .isend(&from, to.rank, 1, Mode::Standard, sending(&data, length as u64));
    w.all.poll();

    // Rank 3 of the other job: known to process 0 only, which is to it what it is to others.
    let added = w.other.switch.add().expect("eventfd");
    let job = w.other.job;
    let peer = w
        .engine(0)
        .take_in(newcomers(job, SIZE..SIZE + 1, None, 1))
        .expect("a new one");
    assert_eq!(peer, Peer::new(2 * SIZE), "the next number");
    assert_eq!(w.engine(0).take_in(newcomers(job, 0..1, None, 1)), Err(twice()));
    let mut new = Engine::new(isthmus_engine::Setup {
        me: Peer::new(3),
        processes: isthmus_transport::Processes::of("other", SIZE + 1),
        transports: vec![Box::new(added)],
        routes: vec![0; 4],
        levels: vec![1; 4],
        representations: Vec::new(),
    });
    let both = [
        Members::Table([peer, w.other.first.plus(rank_in_other(0))].into()),
        Members::Table([Peer::new(3), Peer::new(rank_in_other(0))].into()),
    ];
    let [here, there] = both.map(|members| Channel {
        members,
        ..channel(Job::OWN, Peer::new(0), 0)
    });
    let here = Channel {
        context: Context::new(job.number(), 40),
        rank: 1,
        ..here
    };
    let there = Channel {
        context: Context::new(0, 40),
        ..there
    };
    let (hello, answer) = (memory(b"hello"), OwnMemory::new(0, 5));
    let said = new.isend(&there, 1, 0, Mode::Standard, sending(&hello, 5));
    let heard = w.engine(0).irecv(&here, Some(0), None, receiving(&answer, 5));
    for _ in 0..1000 {
        new.progress();
        w.all.poll();
    }
    assert_eq!(new.core.take(said).map(|done| done.error), Some(None));
    assert_eq!(w.finish(0, heard).error, None);
    assert_eq!(content(&answer, 5), b"hello");
    assert_eq!(w.finish(2, received).error, None);
    assert_eq!(w.finish(0, sent).error, None);
    assert!(
        content(&target, length) == pattern(3, length),
        "what was under way goes on"
    );
}

fn twice() -> EngineError {
    EngineError::NotTaken {
        why: isthmus_transport::NotTaken::Known,
    }
}

#[test]
fn the_loss_of_one_world_leaves_the_other_usable() {
    let mut w = two(Options::default());
    let targets = [OwnMemory::new(0, 1), OwnMemory::new(0, 1)];
    let (own, other) = (w.own(0), w.other(0));
    let here = w.engine(0).irecv(&own, None, None, receiving(&targets[0], 1));
    let there = w.engine(0).irecv(&other, None, None, receiving(&targets[1], 1));
    for rank in (0..SIZE).filter(|&rank| rank != rank_in_other(0)) {
        w.other.switch.kill(Peer::new(rank), "its job was cancelled");
    }
    let lost = w.finish(0, there).error;
    assert!(
        matches!(&lost, Some(EngineError::PeerLost { peer, .. }) if peer.number() >= SIZE),
        "{lost:?}"
    );
    let text = lost.map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("of the job other"), "{text}");
    assert!(w.engine(0).core.test(here).is_none(), "it may still come");
    let (own, data) = (w.own(1), memory(b"x"));
    let sent = w.engine(1).isend(&own, 0, 3, Mode::Standard, sending(&data, 1));
    assert_eq!(w.finish(0, here).error, None);
    assert_eq!(w.finish(1, sent).error, None);
    let buffers: Vec<OwnMemory> = (0..SIZE).map(|p| OwnMemory::with(&[p as u8; 8])).collect();
    let requests: Vec<Request> = (0..SIZE)
        .map(|process| {
            let channel = w.own(process);
            start_bcast(w.engine(process), &channel, &buffers[process as usize])
        })
        .collect();
    for (process, request) in (0..).zip(requests) {
        assert_eq!(w.finish(process, request).error, None);
    }
    assert!(buffers.iter().all(|buffer| *buffer.content() == [0; 8]));
}
