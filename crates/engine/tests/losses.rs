// SPDX-License-Identifier: Apache-2.0
//! Processes that are lost in a job that goes on: nobody hangs, and what has nothing to do with them is as before.

mod common;

use common::{World, channel, content, memory, pattern, receiving, sending, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{
    Binding, Block, BoundBuffer, Channel, EngineError, Members, Mode, Policy, Shared, acknowledge, acknowledged, doubt,
    set_goes_on,
};
use isthmus_schedule::{Call, Network, Operation, plan};
use isthmus_topology::{Level, Shape};
use isthmus_transport::Peer;
use isthmus_transport::memory::Options;
use std::sync::Arc;

const LOST: Peer = Peer::new(3);

/// Four processes of a job that goes on.
fn four() -> World {
    let mut w = world(4, Options::default());
    w.engines
        .iter_mut()
        .for_each(|engine| set_goes_on(&mut engine.core, true));
    w
}

fn is_lost(error: Option<&EngineError>) -> bool {
    matches!(error, Some(EngineError::PeerLost { peer, goes_on: true, .. }) if *peer == LOST)
}

fn bytes(memory: &OwnMemory, length: u64) -> BoundBuffer {
    BoundBuffer::one(Block::writing(memory.memory(), &Datatype::of(Basic::Byte), length).expect("a block"))
}

/// Each in a place of its own, at two sites.
fn network() -> Arc<Network> {
    let levels = [Level::WideArea, Level::LocalArea, Level::Machine];
    Network::plain(Shape::from_colours(&levels[..], 4, |rank, level| match level {
        0 => rank % 2,
        _ => rank,
    }))
}

#[test]
fn an_operation_with_a_lost_member_ends_at_all_of_them_also_at_those_that_wait_for_others() {
    for operation in [Operation::Barrier, Operation::Bcast] {
        for before in [true, false] {
            let mut w = four();
            let targets: Vec<OwnMemory> = (0..4).map(|_| OwnMemory::new(0, 64)).collect();
            if !before {
                w.switch.kill(LOST, "it crashed");
                (0..100).for_each(|_| w.poll());
            }
            let length = if operation == Operation::Barrier { 0 } else { 64 };
            let mut call = Call::new(operation, length);
            call.root = 3;
            let requests: Vec<_> = (0..3)
                .map(|me| {
                    let plan = plan(&call, &network(), me as u32);
                    let binding = match operation {
                        Operation::Barrier => Binding::nothing(),
                        _ => Binding::bytes(BoundBuffer::none(), bytes(&targets[me], 64)),
                    };
                    let name = w.engines[me].core.operation("test");
                    w.engines[me].start_plan(&channel(0, me as u32, 4), name, 1, plan, binding, None)
                })
                .collect();
            if before {
                (0..50).for_each(|_| w.poll());
                w.switch.kill(LOST, "it crashed");
            }
            (0..500).for_each(|_| w.poll());
            for (me, request) in requests.into_iter().enumerate() {
                let done = w.engines[me].core.take(request).expect("nobody waits for ever");
                assert!(is_lost(done.error.as_ref()), "{operation:?} at {me}: {done:?}");
            }
        }
    }
}

#[test]
fn a_communicator_that_gets_the_context_of_another_one_has_acknowledged_nothing() {
    let mut w = four();
    w.switch.kill(LOST, "it crashed");
    (0..100).for_each(|_| w.poll());
    let (core, context) = (&mut w.engines[0].core, channel(0, 0, 4).context);
    let first = Arc::new(());
    acknowledge(core, context, &first, 1);
    assert_eq!(acknowledged(core, context), 1);
    drop(first);
    assert_eq!(acknowledged(core, context), 0);
    let target = OwnMemory::new(0, 8);
    let pending = w.engines[0].irecv(&channel(0, 0, 4), None, Some(1), receiving(&target, 8));
    assert!(doubt(&w.engines[0].core, pending).is_some());
    let second = Arc::new(());
    acknowledge(&mut w.engines[0].core, context, &second, 0);
    assert_eq!(acknowledged(&w.engines[0].core, context), 0);
}

#[test]
fn a_receive_from_anybody_waits_on_until_the_loss_is_acknowledged() {
    let mut w = four();
    let (source, target) = (memory(&pattern(1, 8)), OwnMemory::new(0, 8));
    let here = channel(0, 0, 4);
    let pending = w.engines[0].irecv(&here, None, Some(1), receiving(&target, 8));
    assert_eq!(doubt(&w.engines[0].core, pending), None);
    w.switch.kill(LOST, "it crashed");
    (0..100).for_each(|_| w.poll());
    let told = |w: &World| doubt(&w.engines[0].core, pending);
    assert!(w.engines[0].core.test(pending).is_none());
    assert!(matches!(told(&w), Some(EngineError::Pending { peer, .. }) if peer == LOST));
    // Another communicator knows nothing of this one's acknowledgement, and one without the dead is in no doubt.
    let communicator = Arc::new(());
    acknowledge(&mut w.engines[0].core, channel(2, 0, 4).context, &communicator, 1);
    assert!(told(&w).is_some());
    let without = Channel {
        members: Members::Range {
            first: Peer::new(0),
            count: 3,
        },
        ..channel(4, 0, 3)
    };
    let other = w.engines[0].irecv(&without, None, Some(1), receiving(&target, 8));
    assert_eq!(doubt(&w.engines[0].core, other), None);
    acknowledge(&mut w.engines[0].core, here.context, &communicator, 1);
    assert_eq!(told(&w), None);
    assert!(
        w.engines[0]
            .iprobe(&here, None, Some(2))
            .expect("all is known")
            .is_none()
    );
    let sent = w.engines[1].send(&channel(0, 1, 4), 0, 1, Mode::Standard, sending(&source, 8));
    assert!(sent.expect("it lives").is_none());
    assert_eq!(w.finish(0, pending).error, None);
    assert_eq!(content(&target, 8), pattern(1, 8));
}

#[test]
fn messages_with_the_living_go_on_and_those_with_the_dead_fail_at_once() {
    let mut w = four();
    let (source, target) = (memory(&pattern(2, 8)), OwnMemory::new(0, 8));
    let here = channel(0, 0, 4);
    let named = w.engines[0].irecv(&here, Some(2), Some(1), receiving(&target, 8));
    let vain = w.engines[0].irecv(&here, Some(3), Some(1), receiving(&target, 8));
    w.switch.kill(LOST, "it crashed");
    (0..100).for_each(|_| w.poll());
    assert!(is_lost(
        w.engines[0].core.take(vain).and_then(|done| done.error).as_ref()
    ));
    let again = w.engines[0].send(&here, 3, 1, Mode::Standard, sending(&source, 8));
    assert!(is_lost(again.err().as_ref()));
    assert!(is_lost(w.engines[0].iprobe(&here, None, None).err().as_ref()));
    let sent = w.engines[2].send(&channel(0, 2, 4), 0, 1, Mode::Standard, sending(&source, 8));
    assert!(sent.expect("it lives").is_none());
    assert_eq!(w.finish(0, named).error, None);
}

#[test]
fn a_blocking_receive_from_anybody_fails_and_takes_what_has_come() {
    let mut w = four();
    let source = memory(&pattern(3, 8));
    let sent = w.engines[1].send(&channel(0, 1, 4), 0, 5, Mode::Standard, sending(&source, 8));
    assert!(sent.expect("it lives").is_none());
    (0..100).for_each(|_| w.poll());
    w.switch.kill(LOST, "it crashed");
    (0..100).for_each(|_| w.poll());
    let policy = Policy {
        threads: false,
        guests: false,
    };
    let shared = Shared::new(w.engines.swap_remove(0), policy);
    let target = OwnMemory::new(0, 8);
    let here = channel(0, 0, 4);
    let come = shared.receive(&here, None, Some(5), receiving(&target, 8));
    assert_eq!((come.error, content(&target, 8)), (None, pattern(3, 8)));
    let vain = shared.receive(&here, None, Some(5), receiving(&target, 8));
    assert!(is_lost(vain.error.as_ref()));
    // Nothing of it is left that could take a message of a later one.
    assert_eq!(shared.lock().core.gauges().posted, 0);
}
