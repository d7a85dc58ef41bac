// SPDX-License-Identifier: Apache-2.0
//! Machines that are made when they are needed, and functions of the program that they ask for: both cost nothing where
//! nobody needs them.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::world;
use isthmus_engine::{Caller, Machine, Peer, Policy, Port, Shared, Taken, awaken, register_later, with_port};
use isthmus_transport::memory::Options;
use isthmus_wire::frame::{Header, Kind, protocol};

/// Asks for a function of the program with each frame.
struct Asker;

impl Machine for Asker {
    fn frame(&mut self, port: &mut Port<'_>, _: Peer, _: &Header, _: &[u8]) -> Taken {
        port.call_back();
        Taken::Done
    }

    fn expects(&self) -> bool {
        true
    }
}

/// Two processes whose second one has a machine for later; how many were made, and the calls.
struct Stage {
    sender: Shared,
    receiver: Arc<Shared>,
    made: Arc<AtomicU32>,
    called: Arc<[AtomicU32; 2]>,
}

fn stage() -> Stage {
    let mut engines = world(2, Options::default()).engines;
    let made = Arc::new(AtomicU32::new(0));
    let counted = made.clone();
    register_later(&mut engines[1], protocol::TEST, move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::new(Asker)
    });
    let policy = Policy {
        threads: true,
        guests: true,
    };
    let receiver = Arc::new(Shared::new(engines.remove(1), policy));
    let called = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let (calls, there) = (called.clone(), Arc::downgrade(&receiver));
    receiver.callbacks().provide(move |caller| {
        let shared = there.upgrade().expect("it calls");
        assert!(
            caller == Caller::Keeper || shared.try_lock().is_some(),
            "the engine is free"
        );
        shared.callbacks().set_due(false);
        calls[usize::from(caller == Caller::Keeper)].fetch_add(1, Ordering::Relaxed);
        true
    });
    Stage {
        sender: Shared::new(engines.remove(0), policy),
        receiver,
        made,
        called,
    }
}

fn tell(sender: &Shared) {
    let mut header = Header::control(Kind::Protocol, 0, 0, 0);
    header.flags = protocol::TEST;
    with_port(&mut sender.lock(), protocol::TEST, |port| {
        port.tell(Peer::new(1), header)
    });
}

#[test]
fn a_machine_for_later_is_made_once_by_its_first_frame() {
    let stage = stage();
    stage.receiver.lock().progress();
    assert_eq!(stage.made.load(Ordering::Relaxed), 0);
    for _ in 0..3 {
        tell(&stage.sender);
        stage.receiver.lock().progress();
    }
    awaken(&mut stage.receiver.lock(), protocol::TEST);
    assert_eq!(stage.made.load(Ordering::Relaxed), 1);
}

#[test]
fn a_wait_calls_functions_of_the_program_with_the_engine_free() {
    let stage = stage();
    tell(&stage.sender);
    stage.receiver.lock().progress();
    assert!(stage.receiver.callbacks().are_due(), "and nobody has called them");
    let called = || stage.called[0].load(Ordering::Relaxed);
    assert_eq!(called(), 0);
    stage.receiver.wait(|_| (called() == 1).then_some(()));
    assert!(!stage.receiver.callbacks().are_due());
}

#[test]
fn the_keeper_calls_them_while_the_program_computes() {
    let stage = stage();
    let [own, keepers] = &*stage.called;
    std::thread::scope(|scope| {
        scope.spawn(|| stage.receiver.keep().expect("descriptors"));
        while keepers.load(Ordering::Relaxed) == 0 {
            // A frame may come while the program is inside MPI.
            awaken(&mut stage.receiver.lock(), protocol::TEST);
            stage.receiver.watch();
            tell(&stage.sender);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        stage.receiver.keeper().stop();
    });
    assert_eq!(own.load(Ordering::Relaxed), 0, "the program has not waited");
}
