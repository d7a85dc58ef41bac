// SPDX-License-Identifier: Apache-2.0
//! Members that call different collective operations, where these go in messages.

mod common;

use std::sync::Arc;

use common::{Random, World, channel, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Binding, Block, BoundBuffer, Channel, EngineError, Request, revoke, set_goes_on};
use isthmus_schedule::{Call, Network, Operation, plan};
use isthmus_topology::{Level, Shape};
use isthmus_transport::Peer;
use isthmus_transport::memory::Options;

const BYTES: usize = 8;

/// Engines that know all names, as those of processes do.
fn knowing(count: u32) -> World {
    let mut w = world(count, Options::default());
    for engine in &mut w.engines {
        for what in Operation::ALL {
            engine.core.operation(what.name());
        }
    }
    w
}

/// All processes on one machine.
fn network(count: u32) -> Arc<Network> {
    Network::plain(Shape::from_colours(&[Level::Machine], count, |_, _| 0))
}

struct Member {
    channel: Channel,
    buffers: [OwnMemory; 2],
}

/// Members of a communicator.
fn members(count: u32) -> Vec<Member> {
    let member = |rank| Member {
        channel: channel(16, rank, count),
        buffers: [0, 1].map(|_| OwnMemory::new(0, (BYTES * count as usize) as isize)),
    };
    (0..count).map(member).collect()
}

impl Member {
    fn calls(&self, w: &mut World, what: Operation, sequence: u32) -> Request {
        let (rank, count) = (self.channel.rank, w.engines.len());
        let bytes = |memory: &OwnMemory, count: usize| {
            let block = Block::writing(memory.memory(), &Datatype::of(Basic::Byte), (BYTES * count) as u64);
            BoundBuffer::one(block.expect("a block"))
        };
        let binding = match what {
            Operation::Barrier => Binding::nothing(),
            Operation::Bcast => Binding::bytes(BoundBuffer::none(), bytes(&self.buffers[1], 1)),
            _ => Binding::bytes(bytes(&self.buffers[0], 1), bytes(&self.buffers[1], count)),
        };
        let bytes = if what == Operation::Barrier { 0 } else { BYTES as u64 };
        let plan = plan(&Call::new(what, bytes), &network(count as u32), rank);
        let engine = &mut w.engines[rank as usize];
        let operation = engine.core.operation(what.name());
        engine.start_plan(&self.channel, operation, sequence, plan, binding, None)
    }
}

/// Nothing comes any more: those who wait in vain ask.
fn rest(w: &mut World) {
    for _ in 0..3 {
        (0..200).for_each(|_| w.poll());
        w.engines.iter_mut().for_each(isthmus_engine::Engine::ask_others);
    }
    (0..200).for_each(|_| w.poll());
}

fn said(error: Option<EngineError>) -> String {
    match error {
        Some(EngineError::Disagreement { what, lengths: false }) => what.to_string(),
        other => panic!("{other:?}"),
    }
}

/// The second rank in a sentence: whose word it is.
fn said_by(said: &str) -> String {
    let second = said.split("rank ").nth(2).unwrap_or_default();
    second.chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn nobody_waits_for_ever_for_a_member_in_another_operation() {
    let kinds = [Operation::Barrier, Operation::Bcast, Operation::Allgather];
    for (most, other) in kinds
        .iter()
        .flat_map(|a| kinds.iter().map(move |b| (*a, *b)))
        .filter(|(a, b)| a != b)
    {
        for odd in 0..4 {
            let (mut w, all) = (knowing(4), members(4));
            let what = |rank| if rank == odd { other } else { most };
            let requests: Vec<_> = (0..4).map(|rank| all[rank].calls(&mut w, what(rank), 7)).collect();
            rest(&mut w);
            for (rank, request) in requests.into_iter().enumerate() {
                let error = w.finish(rank, request).error;
                // What the root of a broadcast has sent may be all that a member needs.
                if error.is_none() && what(rank) == Operation::Bcast && what(0) == Operation::Bcast {
                    continue;
                }
                let said = said(error);
                let mine = format!("rank {rank} is in {}", what(rank).name());
                assert!(said.starts_with(&mine), "{said}");
                // Whoever is heard of first says who has called what; whoever hears that from others names them, too.
                let reason = match rank == odd {
                    true => format!(", rank {} was in {}", said_by(&said), most.name()),
                    false if said.contains(';') => {
                        format!("; rank {}, which has given it up, says that rank", said_by(&said))
                    }
                    false => format!(", rank {odd} was in {}", other.name()),
                };
                assert!(said.contains(&reason), "{said}");
            }
        }
    }
}

#[test]
fn who_comes_later_to_another_operation_is_compared_when_it_comes() {
    let mut w = knowing(2);
    let all = members(2);
    let waits = all[1].calls(&mut w, Operation::Bcast, 3);
    rest(&mut w);
    assert!(w.engines[1].core.take(waits).is_none(), "the other one may still come");
    let other = all[0].calls(&mut w, Operation::Barrier, 3);
    (0..200).for_each(|_| w.poll());
    assert_eq!(
        said(w.finish(1, waits).error),
        "rank 1 is in bcast, rank 0 was in barrier"
    );
    assert_eq!(
        said(w.finish(0, other).error),
        "rank 0 is in barrier, rank 1 was in bcast"
    );
}

#[test]
fn who_has_done_its_part_of_another_operation_says_so_afterwards() {
    // A root has sent its block and is in a later operation.
    let mut w = knowing(2);
    let all = members(2);
    let root = all[0].calls(&mut w, Operation::Bcast, 5);
    assert_eq!(w.finish(0, root).error, None);
    let waits = all[1].calls(&mut w, Operation::Allgather, 5);
    (0..200).for_each(|_| w.poll());
    if let Some(done) = w.engines[1].core.take(waits) {
        panic!("what the root sent was taken for a block: {done:?}");
    }
    rest(&mut w);
    assert_eq!(
        said(w.finish(1, waits).error),
        "rank 1 is in allgather, rank 0 was in bcast"
    );
}

#[test]
fn who_is_late_and_who_is_ahead_in_the_same_operations_are_left_alone() {
    let mut w = knowing(3);
    let all = members(3);
    let mut requests = Vec::new();
    for (sequence, what) in [
        (0, Operation::Bcast),
        (1, Operation::Barrier),
        (2, Operation::Allgather),
    ] {
        for rank in [1, 2] {
            requests.push((rank, all[rank].calls(&mut w, what, sequence)));
        }
    }
    rest(&mut w);
    for (sequence, what) in [
        (0, Operation::Bcast),
        (1, Operation::Barrier),
        (2, Operation::Allgather),
    ] {
        requests.push((0, all[0].calls(&mut w, what, sequence)));
        rest(&mut w);
    }
    for (rank, request) in requests {
        assert_eq!(w.finish(rank, request).error, None);
    }
    w.close();
}

/// It knows more than the others, who would take its word for a mistake in their lengths.
#[test]
fn who_has_heard_of_a_loss_or_that_the_communicator_is_revoked_does_not_say_that_an_operation_is_over() {
    let kinds = [Operation::Barrier, Operation::Allgather];
    for (what, first) in kinds
        .into_iter()
        .flat_map(|what| (0..3).map(move |first| (what, first)))
    {
        // One hears that the communicator is revoked while all wait for rank 3.
        let (mut w, all) = (knowing(4), members(4));
        let requests = [0, 1, 2].map(|rank| all[rank].calls(&mut w, what, 7));
        (0..200).for_each(|_| w.poll());
        revoke(&mut w.engines[first], &all[first].channel);
        rest(&mut w);
        for (rank, request) in (0..).zip(requests) {
            let error = w.engines[rank].core.take(request).map(|done| done.error);
            let expected = (rank == first).then_some(Some(EngineError::Revoked));
            assert_eq!(error, expected, "{what:?}, {first} knows: rank {rank}");
        }
        // One hears of the loss of rank 3 before it calls the operation for which it was asked.
        let (mut w, all) = (knowing(4), members(4));
        w.engines
            .iter_mut()
            .for_each(|engine| set_goes_on(&mut engine.core, true));
        let others = [0, 1, 2].map(|rank| (rank != first).then(|| all[rank].calls(&mut w, what, 7)));
        rest(&mut w);
        w.switch.kill(Peer::new(3), "it crashed");
        (0..100).for_each(|_| _ = w.engines[first].progress());
        let late = all[first].calls(&mut w, what, 7);
        (0..100).for_each(|_| _ = w.engines[first].progress());
        for (rank, request) in (0..).zip(others) {
            let error = w.finish(rank, request.unwrap_or(late)).error;
            let is_loss = matches!(error, Some(EngineError::PeerLost { .. }));
            assert!(is_loss, "{what:?}, {first} knows: rank {rank}: {error:?}");
        }
    }
}

#[test]
fn a_new_communicator_is_not_taken_for_the_one_that_had_its_context() {
    let mut w = knowing(2);
    let old = members(2);
    let both: Vec<_> = (0..2)
        .map(|rank| old[rank].calls(&mut w, Operation::Barrier, 0))
        .collect();
    for (rank, request) in both.into_iter().enumerate() {
        assert_eq!(w.finish(rank, request).error, None);
    }
    drop(old);
    let new = members(2);
    // Executions keep the last communicator that they had.
    let other = channel(32, 0, 2);
    let again = Member {
        channel: other,
        buffers: [0, 1].map(|_| OwnMemory::new(0, BYTES as isize)),
    };
    let _ = again.calls(&mut w, Operation::Bcast, 0);
    let waits = new[1].calls(&mut w, Operation::Bcast, 0);
    rest(&mut w);
    assert!(w.engines[1].core.take(waits).is_none(), "the root has not come");
    let root = new[0].calls(&mut w, Operation::Bcast, 0);
    for (rank, request) in [(0, root), (1, waits)] {
        assert_eq!(w.finish(rank, request).error, None);
    }
}

#[test]
fn whoever_asks_at_any_time_accuses_nobody_who_calls_the_same() {
    const CALLS: usize = 60;
    for seed in 1..=40 {
        let mut random = Random(seed);
        let count = 2 + random.below(3) as u32;
        let (mut w, all) = (knowing(count), members(count));
        let kinds = [Operation::Barrier, Operation::Bcast, Operation::Allgather];
        let calls: Vec<_> = (0..CALLS).map(|_| kinds[random.below(3) as usize]).collect();
        let mut requests: Vec<Vec<Request>> = vec![Vec::new(); count as usize];
        // Some are late by many operations, and ask or are asked meanwhile.
        while requests.iter().any(|begun| begun.len() < CALLS) {
            let rank = random.below(u64::from(count)) as usize;
            let next = requests[rank].len();
            match random.below(4) {
                0 => w.poll(),
                1 => w.engines[rank].ask_others(),
                _ if next < CALLS => requests[rank].push(all[rank].calls(&mut w, calls[next], next as u32)),
                _ => {}
            }
        }
        for (rank, begun) in requests.into_iter().enumerate() {
            for (number, request) in begun.into_iter().enumerate() {
                let error = w.finish(rank, request).error;
                assert_eq!(error, None, "seed {seed}: rank {rank}: operation {number}");
            }
        }
    }
}
