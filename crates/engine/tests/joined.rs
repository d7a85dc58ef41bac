// SPDX-License-Identifier: Apache-2.0
//! Processes of two jobs in one communicator: one context, whichever job a message comes from.

mod common;

use common::{content, memory, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{
    Channel, Completion, Context, Engine, EngineError, Members, Mode, Newcomers, Request, Special, acknowledge,
    acknowledged, close_transport, doubt, drop_transport, forget, losses, retire_transport, set_goes_on,
};
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Job, Peer};
use std::sync::Arc;

/// Processes of each job.
const EACH: u32 = 2;
/// The number that both jobs have agreed on for the communicator of all four.
const NUMBER: u32 = (1 << 30) + 4;

/// The engines of both jobs, those of the first one first: in the order of ranks in the merged communicator.
struct Jobs {
    engines: Vec<Engine>,
    route: u8,
}

/// This engine meets the processes of the other job, which are the peers behind its own ones.
fn meet(engine: &mut Engine, end: Memory) -> u8 {
    let route = engine.add_transport(Box::new(end)).expect("there is room");
    let job = engine.core.processes().job("other");
    let met = engine.take_in(Newcomers {
        job,
        ranks: 0..EACH,
        contexts: Job::OWN,
        me: None,
        routes: vec![route; EACH as usize],
        levels: vec![1; EACH as usize],
        representations: Vec::new(),
    });
    assert_eq!(met, Ok(Peer::new(EACH)));
    route
}

fn jobs(options: Options) -> Jobs {
    let (ends, _) = network(2 * EACH, options).expect("eventfd");
    let mut engines = world(EACH, options).engines;
    engines.extend(world(EACH, options).engines);
    let mut route = 0;
    for ((at, engine), end) in (0..).zip(&mut engines).zip(ends) {
        // Peers of the first job are behind those of the second one there.
        let end = if at < EACH {
            end
        } else {
            end.with_peers_from(Peer::new(EACH))
        };
        route = meet(engine, end);
    }
    Jobs { engines, route }
}

/// The merged communicator as the process with this rank in it sees it.
fn merged(rank: u32) -> Channel {
    let peers = Peer::first(2 * EACH).collect::<Vec<_>>();
    let mut members = peers.clone();
    if rank >= EACH {
        members.rotate_left(EACH as usize);
    }
    Channel {
        context: Context::new(Job::OWN.number(), NUMBER),
        rank,
        members: Members::of(&members),
        slab: None,
        node: None,
        special: Special::none(),
        notes: None,
    }
}

impl Jobs {
    fn engine(&mut self, rank: u32) -> &mut Engine {
        &mut self.engines[rank as usize]
    }

    fn finish(&mut self, rank: u32, request: Request) -> Completion {
        for _ in 0..100_000 {
            for engine in &mut self.engines {
                engine.progress();
            }
            if let Some(done) = self.engine(rank).core.take(request) {
                return done;
            }
        }
        panic!("it does not end")
    }
}

#[test]
fn any_source_hears_both_jobs() {
    for options in common::kinds() {
        let mut jobs = jobs(options);
        for length in [0, 100, 50_000] {
            for to in 0..2 * EACH {
                let data: Vec<OwnMemory> = (0..2 * EACH).map(|rank| memory(&vec![rank as u8; length])).collect();
                let target = OwnMemory::new(0, length as isize);
                let mut sent = Vec::new();
                for from in (0..2 * EACH).filter(|&from| from != to) {
                    let buffer = sending(&data[from as usize], length as u64);
                    let request = jobs.engine(from).isend(&merged(from), to, 5, Mode::Standard, buffer);
                    sent.push((from, request));
                }
                let mut heard = Vec::new();
                for _ in &sent {
                    let buffer = receiving(&target, length as u64);
                    let request = jobs.engine(to).irecv(&merged(to), None, None, buffer);
                    let done = jobs.finish(to, request);
                    assert_eq!((done.error, done.bytes), (None, length as u64));
                    assert!(content(&target, length).iter().all(|&byte| byte == done.source as u8));
                    heard.push(done.source);
                }
                heard.sort_unstable();
                assert!(heard.into_iter().eq(sent.iter().map(|(from, _)| *from)));
                for (from, request) in sent {
                    assert_eq!(jobs.finish(from, request).error, None);
                }
            }
        }
    }
}

#[test]
fn nobody_of_the_other_job_speaks_where_it_is_no_member() {
    let mut jobs = jobs(Options::default());
    // MPI_COMM_WORLD of the first job, which has the number in the second one too.
    let own = |rank| Channel {
        context: Context::new(Job::OWN.number(), 2),
        members: Members::Range {
            first: Peer::new(0),
            count: EACH,
        },
        ..merged(rank)
    };
    let target = OwnMemory::new(0, 1);
    let waits = jobs.engine(0).irecv(&own(0), None, None, receiving(&target, 1));
    // Rank 0 of the second job takes the first one's context for one that it is a member of.
    let lie = Channel {
        members: Members::of(&[Peer::new(EACH), Peer::new(EACH + 1)]),
        ..own(1)
    };
    let lie = jobs
        .engine(EACH)
        .isend(&lie, 0, 3, Mode::Standard, sending(&memory(b"!"), 1));
    jobs.engine(EACH).release(lie);
    let data = memory(b"x");
    let sent = jobs.engine(1).isend(&own(1), 0, 3, Mode::Standard, sending(&data, 1));
    assert_eq!(jobs.finish(0, waits).error, None);
    assert_eq!(content(&target, 1), b"x");
    assert_eq!(jobs.finish(1, sent).error, None);
}

#[test]
fn a_transport_that_leaves_gives_its_number_back() {
    let mut jobs = jobs(Options::default());
    let route = jobs.route;
    for rank in 0..2 * EACH {
        while !close_transport(jobs.engine(rank), route) {
            jobs.engines.iter_mut().for_each(|engine| _ = engine.progress());
        }
    }
    for rank in 0..2 * EACH {
        let gone = retire_transport(jobs.engine(rank), route, "MPI_Comm_disconnect");
        assert!(gone.is_some());
        let data = memory(b"?");
        let to = (rank + EACH) % (2 * EACH);
        let request = jobs
            .engine(rank)
            .isend(&merged(rank), to, 1, Mode::Standard, sending(&data, 1));
        let error = jobs.finish(rank, request).error;
        assert!(matches!(error, Some(EngineError::PeerLost { .. })), "{error:?}");
    }
    // 300 others one after the other, more than there are numbers.
    for at in 0..300 {
        let (guest, way) = visited(jobs.engine(0), at);
        assert_eq!((guest, way), (Peer::new(2 * EACH + at), route));
        assert!(retire_transport(jobs.engine(0), route, "MPI_Comm_disconnect").is_some());
    }
}

/// Another job has met the engine, with one process: who that is, and by which transport it is reached. `before`: how
/// many have.
fn visited(engine: &mut Engine, before: u32) -> (Peer, u8) {
    let (ends, _) = network(2, Options::default()).expect("eventfd");
    let end = ends.into_iter().next().expect("one each");
    // The other end is the newcomer.
    let end = end.with_peers_from(Peer::new(2 * EACH + before - 1));
    let route = engine.add_transport(Box::new(end)).expect("there is room");
    let job = engine.core.processes().job(&format!("job {before}"));
    let met = engine.take_in(Newcomers {
        job,
        ranks: 0..1,
        contexts: Job::OWN,
        me: None,
        routes: vec![route],
        levels: vec![1],
        representations: Vec::new(),
    });
    (met.expect("it is new"), route)
}

#[test]
fn whoever_comes_and_goes_takes_no_loss_of_others_along() {
    for goes_on in [false, true] {
        let mut jobs = jobs(Options::default());
        let route = jobs.route;
        let engine = jobs.engine(0);
        set_goes_on(&mut engine.core, goes_on);
        // A communicator with a job that is lost is still there, and the number of its transport is another one's.
        let all = || Peer::first(2 * EACH).skip(EACH as usize);
        engine.lose_peers(all().collect::<Vec<_>>(), "it was killed");
        assert!(drop_transport(engine, route).is_some());
        let communicator = Arc::new(());
        for visit in 0..3 {
            let (guest, way) = visited(engine, visit);
            assert_eq!(way, route);
            engine.lose_peers(vec![guest], "it was killed, too");
            assert_eq!(losses(&engine.core).len(), EACH as usize + 1);
            acknowledge(&mut engine.core, merged(0).context, &communicator, usize::MAX);
            assert!(retire_transport(engine, way, "MPI_Comm_disconnect").is_some());
            forget(engine, &[guest]);
            assert!(
                losses(&engine.core).iter().copied().eq(all()),
                "the first ones are lost still"
            );
            assert_eq!(acknowledged(&engine.core, merged(0).context), EACH as usize);
        }
        drop(communicator);
        let target = OwnMemory::new(0, 1);
        let request = engine.irecv(&merged(0), Some(EACH), None, receiving(&target, 1));
        let error = jobs.finish(0, request).error;
        let is_it = |reason: &str| reason == "it was killed";
        assert!(
            matches!(&error, Some(EngineError::PeerLost { reason, .. }) if is_it(reason)),
            "{error:?}"
        );
        let members = merged(0).members;
        assert!(jobs.engine(0).core.lost_of(&members).is_some());
    }
}

/// What became of a request, once all have made progress.
fn outcome(jobs: &mut Jobs, rank: u32, request: Request) -> Option<Option<EngineError>> {
    for _ in 0..100 {
        jobs.engines.iter_mut().for_each(|engine| _ = engine.progress());
    }
    jobs.engine(rank).core.take(request).map(|done| done.error)
}

/// It is at its end, whoever still waits for it.
fn leave(jobs: &mut Jobs, rank: u32) {
    let route = jobs.route;
    while !close_transport(jobs.engine(rank), route) {
        jobs.engines.iter_mut().for_each(|engine| _ = engine.progress());
    }
}

#[test]
fn whoever_waits_for_one_that_ends_in_order_hears_of_that_and_it_is_no_loss() {
    for goes_on in [false, true] {
        let mut jobs = jobs(Options::default());
        set_goes_on(&mut jobs.engine(0).core, goes_on);
        let (all, pair) = (
            merged(0),
            Channel {
                context: Context::new(Job::OWN.number(), NUMBER + 4),
                members: Members::of(&[Peer::new(0), Peer::new(EACH)]),
                ..merged(0)
            },
        );
        let (data, target) = (memory(b"x"), OwnMemory::new(0, 1));
        let first = jobs.engine(0);
        let waiting = [
            first.irecv(&all, Some(EACH), None, receiving(&target, 1)),
            first.isend(&all, EACH, 1, Mode::Synchronous, sending(&data, 1)),
        ];
        let others = [
            first.irecv(&all, Some(EACH + 1), None, receiving(&target, 1)),
            first.irecv(&all, None, Some(9), receiving(&target, 1)),
        ];
        let only = first.irecv(&pair, None, None, receiving(&target, 1));
        leave(&mut jobs, EACH);
        let is_gone =
            |error: &EngineError| matches!(error, EngineError::PeerLost { peer, .. } if *peer == Peer::new(EACH));
        for request in waiting {
            let error = outcome(&mut jobs, 0, request).flatten();
            assert!(error.as_ref().is_some_and(is_gone), "{error:?}");
        }
        // Of those that can come from others nothing is known.
        for request in others {
            assert_eq!(outcome(&mut jobs, 0, request), None);
            assert_eq!(doubt(&jobs.engine(0).core, request), None);
        }
        // Nobody else can send it.
        let pending = doubt(&jobs.engine(0).core, only).is_some();
        assert!(pending == goes_on && (outcome(&mut jobs, 0, only).flatten().is_some() != goes_on));
        // It is the same for what begins later.
        for from in [Some(1), None] {
            let found = jobs.engine(0).iprobe(&pair, from, None);
            assert!(found.as_ref().is_err_and(is_gone), "{found:?}");
        }
        let late = jobs.engine(0).isend(&all, EACH, 1, Mode::Standard, sending(&data, 1));
        assert!(outcome(&mut jobs, 0, late).flatten().as_ref().is_some_and(is_gone));
        assert!(losses(&jobs.engine(0).core).is_empty(), "nobody has failed");
        assert_eq!(jobs.engine(0).core.lost_of(&all.members), None);
    }
}
