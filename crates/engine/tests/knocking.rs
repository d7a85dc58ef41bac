// SPDX-License-Identifier: Apache-2.0
//! Processes of another job that have ended before anybody here has spoken to them.

mod common;

use std::sync::{Arc, Mutex};

use common::receiving;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Channel, Context, Engine, EngineError, Members, Newcomers, Setup, Special, doubt, set_goes_on};
use isthmus_transport::{Job, Limits, Peer, Processes, SendError, Still, Told, Transport};

/// Processes of each job.
const EACH: u32 = 3;

/// To whom frames were sent.
type Tried = Arc<Mutex<Vec<Peer>>>;

/// Writes down to whom frames are sent. `reaches`: whether that succeeds; else it is noticed then that nobody is there.
fn noting(tried: &Tried, reaches: bool) -> Box<dyn Transport> {
    let limits = Limits {
        frame: 4096,
        eager: 4096,
        pull: false,
        bulk: false,
        far: true,
    };
    let tried = Arc::clone(tried);
    let hear = move |told| {
        if let Told::Send(peer) = told {
            tried.lock().expect("whole").push(peer);
        }
        match reaches {
            true => Ok(()),
            false => Err(SendError::Lost("nobody is there".into())),
        }
    };
    Box::new(Still::new("noting", limits, hear))
}

/// Process 0 of a job, which has met another one, and whom it has tried to reach.
fn engine() -> (Engine, Tried) {
    engine_of(EACH, false)
}

/// The same of so many processes in each job; the others are there or not.
fn engine_of(each: u32, reaches: bool) -> (Engine, Tried) {
    let tried = Tried::default();
    let mut engine = Engine::new(Setup {
        me: Peer::new(0),
        processes: Processes::of("job", each),
        transports: vec![noting(&tried, reaches)],
        routes: vec![0; each as usize],
        levels: vec![4; each as usize],
        representations: Vec::new(),
    });
    let route = engine.add_transport(noting(&tried, reaches)).expect("there is room");
    let job = engine.core.processes().job("other");
    let met = engine.take_in(Newcomers {
        job,
        ranks: 0..each,
        contexts: Job::OWN,
        me: None,
        routes: vec![route; each as usize],
        levels: vec![0; each as usize],
        representations: Vec::new(),
    });
    assert_eq!(met, Ok(Peer::new(each)));
    (engine, tried)
}

/// Of the processes of both jobs.
fn merged() -> Channel {
    merged_of(EACH)
}

fn merged_of(each: u32) -> Channel {
    Channel {
        context: Context::new(Job::OWN.number(), (1 << 30) + 4),
        rank: 0,
        members: Members::of(&Peer::first(2 * each).collect::<Vec<_>>()),
        slab: None,
        node: None,
        special: Special::none(),
        notes: None,
    }
}

fn is_loss(error: Option<&EngineError>) -> bool {
    matches!(error, Some(EngineError::PeerLost { .. } | EngineError::Pending { .. }))
}

#[test]
fn whoever_waits_for_a_message_of_one_hears_of_its_loss() {
    for goes_on in [false, true] {
        for from in [None, Some(EACH + 1)] {
            let (mut engine, gone) = engine();
            set_goes_on(&mut engine.core, goes_on);
            let target = OwnMemory::new(0, 1);
            let request = engine.irecv(&merged(), from, None, receiving(&target, 1));
            engine.progress();
            assert!(engine.core.take(request).is_none(), "nothing is known yet");
            engine.ask_others();
            let pending = doubt(&engine.core, request);
            let ended = engine.core.take(request).and_then(|done| done.error);
            assert!(
                is_loss(ended.as_ref().or(pending.as_ref())),
                "{from:?}: {ended:?}, {pending:?}"
            );
            // Those of its own job are the launcher's to tell of.
            let tried = gone.lock().expect("whole").clone();
            let all: Vec<Peer> = Peer::first(2 * EACH).skip(EACH as usize).collect();
            assert!(
                from.is_none() && tried.iter().all(|peer| all.contains(peer)) || tried == [all[1]],
                "{tried:?}"
            );
        }
    }
}

#[test]
fn whoever_probes_for_one_hears_of_its_loss() {
    for from in [None, Some(2 * EACH - 1)] {
        let (mut engine, _) = engine();
        assert_eq!(
            engine.iprobe(&merged(), from, None).map(|found| found.is_none()),
            Ok(true)
        );
        engine.ask_others();
        let found = engine.iprobe(&merged(), from, None);
        assert!(is_loss(found.as_ref().err()), "{from:?}: {found:?}");
    }
}

#[test]
fn nobody_of_its_own_job_is_disturbed() {
    let (mut engine, gone) = engine();
    let target = OwnMemory::new(0, 1);
    let request = engine.irecv(&merged(), Some(1), None, receiving(&target, 1));
    engine.ask_others();
    assert!(engine.core.take(request).is_none() && gone.lock().expect("whole").is_empty());
}

#[test]
fn of_many_who_could_send_each_is_reached_in_the_end() {
    const MANY: u32 = 150;
    let (mut engine, tried) = engine_of(MANY, true);
    let target = OwnMemory::new(0, 1);
    let request = engine.irecv(&merged_of(MANY), None, None, receiving(&target, 1));
    let mut reached = 0;
    loop {
        engine.ask_others();
        let tried = tried.lock().expect("whole").len();
        if tried == reached {
            break;
        }
        reached = tried;
    }
    let mut tried = tried.lock().expect("whole").clone();
    tried.sort_by_key(|peer| peer.index());
    // Each once.
    let all: Vec<Peer> = Peer::first(2 * MANY).skip(MANY as usize).collect();
    assert_eq!(tried, all);
    assert!(engine.core.take(request).is_none());
}
