// SPDX-License-Identifier: Apache-2.0
//! Processes of another job that have ended before anybody here has spoken to them.

mod common;

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use common::receiving;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Channel, Context, Engine, EngineError, Members, Newcomers, Setup, Special, doubt, set_goes_on};
use isthmus_transport::{Job, Limits, Peer, Processes, SendError, Sink, Transport};
use isthmus_wire::frame::Header;

/// Processes of each job.
const EACH: u32 = 3;

/// Nobody is reached by it, which is noticed when something is sent. Notes to whom.
#[derive(Clone, Default)]
struct Gone(Arc<Mutex<Vec<Peer>>>);

impl Transport for Gone {
    fn name(&self) -> &'static str {
        "gone"
    }
    fn limits(&self, _: Peer) -> Limits {
        Limits {
            frame: 4096,
            eager: 4096,
            pull: false,
            bulk: false,
            far: true,
        }
    }
    fn send(&mut self, peer: Peer, _: &Header, _: &[u8]) -> Result<(), SendError> {
        self.0.lock().expect("whole").push(peer);
        Err(SendError::Lost("nobody is there".into()))
    }
    fn poll(&mut self, _: &mut dyn Sink) -> bool {
        false
    }
    fn lose(&mut self, _: Peer, _: &str) {}
    fn arm(&mut self) -> bool {
        true
    }
    fn disarm(&mut self) {}
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn close(&mut self, _: &mut dyn Sink) -> bool {
        true
    }
}

/// Process 0 of a job, which has met another one, and whom it has tried to reach.
fn engine() -> (Engine, Gone) {
    let gone = Gone::default();
    let mut engine = Engine::new(Setup {
        me: Peer::new(0),
        processes: Processes::of("job", EACH),
        transports: vec![Box::new(gone.clone())],
        routes: vec![0; EACH as usize],
        levels: vec![4; EACH as usize],
        representations: Vec::new(),
    });
    let route = engine.add_transport(Box::new(gone.clone())).expect("there is room");
    let job = engine.core.processes().job("other");
    let met = engine.take_in(Newcomers {
        job,
        ranks: 0..EACH,
        contexts: Job::OWN,
        me: None,
        routes: vec![route; EACH as usize],
        levels: vec![0; EACH as usize],
        representations: Vec::new(),
    });
    assert_eq!(met, Ok(Peer::new(EACH)));
    (engine, gone)
}

/// Of the processes of both jobs.
fn merged() -> Channel {
    Channel {
        context: Context::new(Job::OWN.number(), (1 << 30) + 4),
        rank: 0,
        members: Members::of(&Peer::first(2 * EACH).collect::<Vec<_>>()),
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
            let tried = gone.0.lock().expect("whole").clone();
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
    assert!(engine.core.take(request).is_none() && gone.0.lock().expect("whole").is_empty());
}
