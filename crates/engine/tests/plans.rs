// SPDX-License-Identifier: Apache-2.0
//! Collective operations: plans by hand and plans of the room schedule, on engines over unpleasant networks.

mod common;

use std::sync::Arc;

use common::{Random, World, channel, content, kinds, memory, pattern, world};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Binding, Block, BoundBuffer, EngineError, Next, ReceiveBuffer, Reducer, Request, set_goes_on};
use isthmus_schedule::step::{Action, Buffer, Plan, Slice, Step};
use isthmus_schedule::{Blocks, Call, Network, Operation, Overrides, plan};
use isthmus_topology::{Level, Shape};
use isthmus_transport::Peer;
use isthmus_transport::memory::Options;

/// A plan written down.
struct Script {
    scratch: Vec<u64>,
    steps: std::vec::IntoIter<Step>,
}

impl Plan for Script {
    fn scratch(&self) -> &[u64] {
        &self.scratch
    }
    fn next_step(&mut self) -> Option<Step> {
        self.steps.next()
    }
}

fn script(scratch: &[u64], steps: Vec<(Action, &[u32])>) -> Box<dyn Plan> {
    let steps = steps.into_iter().map(|(action, after)| Step {
        action,
        after: after.iter().copied().collect(),
    });
    Box::new(Script {
        scratch: scratch.into(),
        steps: steps.collect::<Vec<_>>().into_iter(),
    })
}

fn slice(buffer: Buffer, offset: u64, length: u64) -> Slice {
    Slice { buffer, offset, length }
}

fn bytes(memory: &OwnMemory, length: usize) -> Block {
    Block::writing(memory.memory(), &Datatype::of(Basic::Byte), length as u64).expect("a block")
}

fn start(w: &mut World, me: usize, plan: Box<dyn Plan>, binding: Binding, next: Option<Next>) -> Request {
    let count = w.engines.len() as u32;
    let operation = w.engines[me].core.operation("test");
    w.engines[me].start_plan(&channel(0, me as u32, count), operation, 1, plan, binding, next)
}

/// Two machines of unequal size at one site, another site; members in mixed order.
fn network(count: u32) -> Arc<Network> {
    let levels = [Level::WideArea, Level::LocalArea, Level::Machine];
    Network::plain(Shape::from_colours(&levels[..], count, |rank, level| match level {
        0 => rank % 3 % 2,
        _ => rank % 3,
    }))
}

fn finish_all(w: &mut World, requests: &[Request]) {
    for (me, &request) in requests.iter().enumerate() {
        assert_eq!(w.finish(me, request).error, None);
    }
    w.close();
}

/// Blocks of `2 * length` bytes of which every other one counts, as one block per piece: the stream has `pieces *
/// length` bytes.
fn comb(memory: &OwnMemory, length: usize, pieces: usize) -> BoundBuffer {
    let every_other = Datatype::vector(length as i64, 1, 2, &Datatype::of(Basic::Byte)).expect("a vector");
    let block = |i: usize| {
        let part = memory.memory().shifted((i * 2 * length) as isize);
        Block::writing(part, &every_other, 1).expect("a block")
    };
    BoundBuffer::many((0..pieces).map(block))
}

/// Whoever calls has looked before it had the engine. Meanwhile another thread may have heard the word, which ends what
/// is pending, and nothing that begins after it.
#[test]
fn nothing_begins_on_a_channel_that_was_revoked() {
    let mut w = world(2, Options::default());
    let channel = channel(0, 0, 2);
    channel.special.revoke();
    let operation = w.engines[0].core.operation("test");
    let receive = Action::Receive {
        from: 1,
        data: slice(Buffer::Recv, 0, 8),
        slot: 0,
    };
    let step = script(&[], vec![(receive, &[])]);
    let room = memory(&[0; 8]);
    let binding = Binding::bytes(BoundBuffer::none(), BoundBuffer::one(bytes(&room, 8)));
    let request = w.engines[0].start_plan(&channel, operation, 1, step, binding, None);
    assert_eq!(w.finish(0, request).error, Some(EngineError::Revoked));
    let quick = w.engines[0].irecv_plainly(&channel, 1, Some(0), room.memory(), 8);
    assert!(quick.is_none(), "the general way refuses it");
    let buffer = ReceiveBuffer::contiguous(room.memory(), 0, 8);
    let general = w.engines[0].irecv(&channel, Some(1), Some(0), buffer);
    assert_eq!(w.finish(0, general).error, Some(EngineError::Revoked));
}

/// A member hears of a loss when another one has already asked for the data of a long message of it, which cannot take
/// that back.
#[test]
fn after_a_loss_who_has_asked_for_a_long_message_waits_for_nobody() {
    let length = 1 << 16;
    for options in kinds() {
        for (before, between) in [(1, 1), (2, 1), (1, 2), (3, 3), (4, 0)] {
            let mut w = world(3, options);
            let rooms = [memory(&pattern(7, length)), memory(&vec![0; length])];
            let all = |buffer| slice(buffer, 0, length as u64);
            let send = Action::Send {
                to: 1,
                data: all(Buffer::Send),
                slot: 0,
            };
            let receive = Action::Receive {
                from: 0,
                data: all(Buffer::Recv),
                slot: 0,
            };
            let whole = |at: usize| BoundBuffer::one(bytes(&rooms[at], length));
            let sides = [
                (send, Binding::bytes(whole(0), BoundBuffer::none())),
                (receive, Binding::bytes(BoundBuffer::none(), whole(1))),
            ];
            let mut requests = Vec::new();
            for (me, (step, binding)) in sides.into_iter().enumerate() {
                set_goes_on(&mut w.engines[me].core, true);
                let operation = w.engines[me].core.operation("test");
                let plan = script(&[], vec![(step, &[])]);
                let channel = channel(0, me as u32, 3);
                requests.push(w.engines[me].start_plan(&channel, operation, 1, plan, binding, None));
            }
            for (me, rounds) in [(0, before), (1, between)] {
                (0..rounds).for_each(|_| _ = w.engines[me].progress());
            }
            for engine in &mut w.engines[..2] {
                engine.lose_peers([Peer::new(2)], "it was killed");
            }
            for (me, request) in requests.into_iter().enumerate() {
                let error = w.finish(me, request).error;
                let lost = matches!(error, Some(EngineError::PeerLost { peer, .. }) if peer == Peer::new(2));
                assert!(lost || error.is_none(), "{error:?} at {me}");
            }
        }
    }
}

#[test]
fn broadcasts_reach_everybody_in_any_layout() {
    for options in kinds() {
        for (count, length) in [(1, 10), (2, 0), (5, 12), (7, 3000), (4, 300_000)] {
            let mut w = world(count as u32, options);
            let mut call = Call::new(Operation::Bcast, 6 * length as u64);
            call.root = count as u32 - 1;
            let data = pattern(7, 6 * length);
            let buffers: Vec<_> = (0..count).map(|_| OwnMemory::new(0, 12 * length as isize)).collect();
            let scattered = |me: usize| me % 2 == 0;
            for (i, byte) in data.iter().enumerate() {
                let at = if scattered(count - 1) { 2 * i } else { i };
                buffers[count - 1].memory().write(at as isize, &[*byte]);
            }
            let requests: Vec<_> = (0..count)
                .map(|me| {
                    let receive = if scattered(me) {
                        comb(&buffers[me], length, 6)
                    } else {
                        BoundBuffer::one(bytes(&buffers[me], 6 * length))
                    };
                    let plan = plan(&call, &network(count as u32), me as u32);
                    start(&mut w, me, plan, Binding::bytes(BoundBuffer::none(), receive), None)
                })
                .collect();
            finish_all(&mut w, &requests);
            for (me, buffer) in buffers.iter().enumerate() {
                let all = content(buffer, 12 * length);
                let got: Vec<u8> = if scattered(me) {
                    all.iter().step_by(2).copied().collect()
                } else {
                    all[..6 * length].to_vec()
                };
                assert!(got == data, "{count} {length} {me} {options:?}");
            }
        }
    }
}

/// x -> a x + b modulo 2^32: composing such maps is associative and not commutative.
fn compose(left: (u32, u32), right: (u32, u32)) -> (u32, u32) {
    (
        right.0.wrapping_mul(left.0),
        right.0.wrapping_mul(left.1).wrapping_add(right.1),
    )
}

const EXTENT: usize = 16;

/// Two integers, the second first, 4 bytes after the origin, 16 bytes apart.
fn affine() -> Datatype {
    let int = Datatype::of(Basic::Int);
    let pair = Datatype::hindexed(&[1, 1], &[8, 4], &int).expect("an indexed type");
    Datatype::resized(&pair, 0, EXTENT as i64).expect("a resized type")
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

/// Elements as they lie in memory from the true lower bound: second number at 0, first number at 4.
fn reducer() -> Reducer {
    Arc::new(|operand, target, elements, operand_is_left| {
        assert_eq!(operand.len(), (elements as usize - 1) * EXTENT + 8);
        assert_eq!(target.len(), operand.len());
        for i in 0..elements as usize {
            let at = i * EXTENT;
            let value = |bytes: &[u8]| (number(bytes, at + 4), number(bytes, at));
            let (x, y) = (value(operand), value(target));
            let (a, b) = if operand_is_left { compose(x, y) } else { compose(y, x) };
            target[at..at + 4].copy_from_slice(&b.to_ne_bytes());
            target[at + 4..at + 8].copy_from_slice(&a.to_ne_bytes());
        }
    })
}

fn store(memory: &OwnMemory, i: usize, (a, b): (u32, u32)) {
    let mut memory = memory.memory();
    memory.write((i * EXTENT + 4) as isize, &b.to_ne_bytes());
    memory.write((i * EXTENT + 8) as isize, &a.to_ne_bytes());
}

fn load(memory: &OwnMemory, i: usize) -> (u32, u32) {
    let all = content(memory, (i + 1) * EXTENT);
    (number(&all, i * EXTENT + 8), number(&all, i * EXTENT + 4))
}

#[test]
fn reductions_keep_the_order_of_ranks_with_gaps_in_the_data() {
    for options in kinds() {
        for (operation, in_place) in [
            (Operation::Allreduce, false),
            (Operation::Allreduce, true),
            (Operation::Scan, false),
        ] {
            for (count, elements) in [(1, 3), (2, 1), (6, 5), (5, 700), (3, 30_000)] {
                reduction(options, operation, in_place, count, elements);
            }
        }
    }
}

fn reduction(options: Options, operation: Operation, in_place: bool, count: usize, elements: usize) {
    let mut w = world(count as u32, options);
    let mut call = Call::new(operation, elements as u64);
    (call.commutative, call.in_place, call.unit_bytes) = (false, in_place, 8);
    let value = |me: usize, i: usize| ((2 * (me * 7 + i) + 3) as u32, (me * 1000 + i) as u32);
    let room = (elements * EXTENT) as isize;
    let memories: Vec<_> = (0..count)
        .map(|_| (OwnMemory::new(0, room), OwnMemory::new(0, room)))
        .collect();
    let requests: Vec<_> = (0..count)
        .map(|me| {
            let (send, receive) = &memories[me];
            for i in 0..elements {
                store(if in_place { receive } else { send }, i, value(me, i));
            }
            let block = |m: &OwnMemory| {
                BoundBuffer::one(Block::writing(m.memory(), &affine(), elements as u64).expect("a block"))
            };
            let sending = if in_place { block(receive) } else { block(send) };
            let binding = Binding::elements(sending, block(receive), affine(), reducer());
            start(
                &mut w,
                me,
                plan(&call, &network(count as u32), me as u32),
                binding,
                None,
            )
        })
        .collect();
    finish_all(&mut w, &requests);
    for (me, (_, result)) in memories.iter().enumerate() {
        for i in 0..elements {
            let last = if operation == Operation::Scan { me } else { count - 1 };
            let expected = (1..=last).fold(value(0, i), |left, rank| compose(left, value(rank, i)));
            assert_eq!(
                load(result, i),
                expected,
                "{operation:?} of {count}, element {i} at {me}"
            );
        }
    }
}

/// Integers 8 bytes apart, each before the one ahead of it.
#[test]
fn elements_may_stand_backwards() {
    let (count, elements, apart) = (3, 4usize, 8isize);
    let backwards = Datatype::resized(&Datatype::of(Basic::Int), 0, -apart as i64).expect("a resized type");
    let mut w = world(count as u32, Options::default());
    let call = Call::new(Operation::Allreduce, elements as u64);
    let reducer: Reducer = Arc::new(|operand, target, elements, _| {
        assert_eq!(operand.len(), (elements as usize - 1) * 8 + 4);
        for at in (0..elements as usize).map(|i| i * 8) {
            let sum = number(operand, at) + number(target, at);
            target[at..at + 4].copy_from_slice(&sum.to_ne_bytes());
        }
    });
    let room = apart * elements as isize;
    let origin = room - apart;
    let memories: Vec<_> = (0..2 * count).map(|_| OwnMemory::new(0, room)).collect();
    let block = |memory: &OwnMemory| {
        let memory = memory.memory().shifted(origin);
        BoundBuffer::one(Block::writing(memory, &backwards, elements as u64).expect("a block"))
    };
    let requests: Vec<_> = (0..count)
        .map(|me| {
            for i in 0..elements {
                let value = (me * 100 + i) as u32;
                let place = origin - i as isize * apart;
                memories[me].memory().write(place, &value.to_ne_bytes());
            }
            let (send, receive) = (block(&memories[me]), block(&memories[count + me]));
            let binding = Binding::elements(send, receive, backwards.clone(), reducer.clone());
            start(
                &mut w,
                me,
                plan(&call, &network(count as u32), me as u32),
                binding,
                None,
            )
        })
        .collect();
    finish_all(&mut w, &requests);
    for result in &memories[count..] {
        let all = content(result, room as usize);
        let got: Vec<u32> = (0..elements).map(|i| number(&all, origin as usize - i * 8)).collect();
        assert_eq!(got, [300, 303, 306, 309]);
    }
}

#[test]
fn a_copy_into_less_room_is_a_truncation() {
    let (given, room) = (OwnMemory::with(&[1, 2, 3, 4]), OwnMemory::new(0, 4));
    let mut w = world(1, Options::default());
    let copy = Action::Copy {
        from: slice(Buffer::Send, 0, 4),
        to: slice(Buffer::Recv, 0, 2),
    };
    let send = BoundBuffer::one(bytes(&given, 4));
    let binding = Binding::bytes(send, BoundBuffer::one(bytes(&room, 4)));
    let request = start(&mut w, 0, script(&[], vec![(copy, &[])]), binding, None);
    let error = w.finish(0, request).error;
    assert!(
        matches!(
            error,
            Some(EngineError::Truncate {
                message: 4,
                buffer: 2,
                ..
            })
        ),
        "{error:?}"
    );
    assert_eq!(content(&room, 4), [1, 2, 0, 0]);
}

#[test]
fn unequal_blocks_go_to_their_places() {
    // Straight: through leaders there are sizes to be told before.
    let rules = Overrides::parse("alltoallv=pairwise").expect("a rule");
    let straight = Network::of_shape(network(4).shape(), Arc::default(), Arc::new(rules));
    for options in kinds() {
        let count = 4;
        let mut w = world(count as u32, options);
        let size = |from: usize, to: usize| [0, 3, 2000, 70_000][(from * 3 + to) % 4];
        let row = |me: usize| (0..count).map(move |to| size(me, to));
        let column = |me: usize| (0..count).map(move |from| size(from, me));
        let memories: Vec<_> = (0..count)
            .map(|me| {
                let data: Vec<u8> = (0..count).flat_map(|to| pattern(10 * me + to, size(me, to))).collect();
                (memory(&data), OwnMemory::new(0, 2 * column(me).sum::<usize>() as isize))
            })
            .collect();
        let requests: Vec<_> = (0..count)
            .map(|me| {
                let mut call = Call::new(Operation::Alltoallv, 0);
                call.blocks = Blocks::known(row(me).map(|n| n as u64));
                call.receive_blocks = Blocks::known(column(me).map(|n| n as u64));
                let send = BoundBuffer::one(bytes(&memories[me].0, row(me).sum()));
                // Received blocks lie in the reverse order of ranks, twice as far apart as they are long.
                let blocks = (0..count).map(|from| {
                    let at: usize = (from + 1..count).map(|later| 2 * size(later, me)).sum();
                    let target = memories[me].1.memory().shifted(at as isize);
                    Block::writing(target, &Datatype::of(Basic::Byte), size(from, me) as u64).expect("a block")
                });
                let binding = Binding::bytes(send, BoundBuffer::many(blocks));
                start(&mut w, me, plan(&call, &straight, me as u32), binding, None)
            })
            .collect();
        finish_all(&mut w, &requests);
        for (me, (_, result)) in memories.iter().enumerate() {
            let all = content(result, 2 * column(me).sum::<usize>());
            for from in 0..count {
                let at: usize = (from + 1..count).map(|later| 2 * size(later, me)).sum();
                assert!(
                    all[at..at + size(from, me)] == pattern(10 * from + me, size(from, me)),
                    "{from} to {me}"
                );
            }
        }
    }
}

#[test]
fn barriers_of_many_processes_end_together() {
    for options in kinds() {
        let count = 9;
        let mut w = world(count, options);
        let call = Call::new(Operation::Barrier, 0);
        let mut random = Random(5);
        for _ in 0..20 {
            let late = random.below(u64::from(count)) as usize;
            let begin = |w: &mut World, me: usize| {
                start(w, me, plan(&call, &network(count), me as u32), Binding::nothing(), None)
            };
            let mut requests: Vec<_> = (0..count as usize)
                .map(|me| (me != late).then(|| begin(&mut w, me)))
                .collect();
            (0..200).for_each(|_| w.poll());
            for (me, request) in requests.iter().enumerate() {
                assert!(
                    request.is_none_or(|r| w.engines[me].core.test(r).is_none()),
                    "process {me} did not wait for {late}"
                );
            }
            requests[late] = Some(begin(&mut w, late));
            for (me, request) in requests.iter().enumerate() {
                assert_eq!(w.finish(me, request.expect("all have begun")).error, None);
            }
        }
        w.close();
    }
}

#[test]
fn a_plan_can_be_followed_by_another_one() {
    let mut w = world(1, Options::default());
    let target = OwnMemory::new(0, 8);
    let binding = || Binding::bytes(BoundBuffer::none(), BoundBuffer::one(bytes(&target, 8)));
    let copy = |from, to| {
        let action = Action::Copy {
            from: slice(Buffer::Recv, from, 2),
            to: slice(Buffer::Recv, to, 2),
        };
        script(&[], vec![(action, &[])])
    };
    target.memory().write(0, b"ab");
    let second = (copy(2, 4), binding());
    let request = start(&mut w, 0, copy(0, 2), binding(), Some(Box::new(|| Some(second))));
    assert_eq!(w.finish(0, request).error, None);
    assert_eq!(content(&target, 8), b"ababab\0\0");
}

#[test]
fn steps_wait_for_those_they_name_and_scratch_is_zeroed() {
    for options in kinds() {
        let mut w = world(2, options);
        let target = OwnMemory::new(0, 600);
        let data = memory(&pattern(1, 600));
        let total = 300_u32;
        // Process 1 relays 300 messages through a ring of scratch: more steps than the window holds.
        let send = |i: u32| Action::Send {
            to: 1,
            data: slice(Buffer::Send, 2 * u64::from(i), 2),
            slot: (i % 8) as u16,
        };
        let first = script(&[], (0..total).map(|i| (send(i), &[][..])).collect());
        let mut steps = vec![];
        for i in 0..total {
            let place = slice(Buffer::Scratch(0), 2 * u64::from(i % 4), 2);
            let before = if i >= 4 { vec![2 * (i - 4) + 1] } else { vec![] };
            steps.push((
                Action::Receive {
                    from: 0,
                    data: place,
                    slot: (i % 8) as u16,
                },
                before,
            ));
            steps.push((
                Action::Copy {
                    from: place,
                    to: slice(Buffer::Recv, 2 * u64::from(i), 2),
                },
                vec![2 * i],
            ));
        }
        let steps = steps.iter().map(|(action, after)| (*action, &after[..])).collect();
        let second = script(&[8], steps);
        let sending = Binding::bytes(BoundBuffer::one(bytes(&data, 600)), BoundBuffer::none());
        let receiving = Binding::bytes(BoundBuffer::none(), BoundBuffer::one(bytes(&target, 600)));
        let requests = [
            start(&mut w, 0, first, sending, None),
            start(&mut w, 1, second, receiving, None),
        ];
        finish_all(&mut w, &requests);
        assert!(content(&target, 600) == pattern(1, 600));
    }
}

#[test]
fn messages_of_unknown_length_are_handed_on() {
    for options in kinds() {
        for length in [0, 1, 500, 300_000] {
            let mut w = world(4, options);
            let (data, target) = (memory(&pattern(1, length)), OwnMemory::new(0, length as isize));
            let whole = |buffer| slice(buffer, 0, length as u64);
            let forward = |from, to| Action::Forward {
                from,
                to,
                most: 400_000,
                slot: 3,
            };
            let send = Action::Send {
                to: 1,
                data: whole(Buffer::Send),
                slot: 3,
            };
            let receive = Action::Receive {
                from: 2,
                data: whole(Buffer::Recv),
                slot: 3,
            };
            let sending = Binding::bytes(BoundBuffer::one(bytes(&data, length)), BoundBuffer::none());
            let receiving = Binding::bytes(BoundBuffer::none(), BoundBuffer::one(bytes(&target, length)));
            let nothing = || Binding::bytes(BoundBuffer::none(), BoundBuffer::none());
            // Those in the middle begin before and after the message comes.
            let first = start(&mut w, 1, script(&[], vec![(forward(0, 2), &[])]), nothing(), None);
            let sent = start(&mut w, 0, script(&[], vec![(send, &[])]), sending, None);
            let last = start(&mut w, 3, script(&[], vec![(receive, &[])]), receiving, None);
            let second = start(&mut w, 2, script(&[], vec![(forward(1, 3), &[])]), nothing(), None);
            finish_all(&mut w, &[sent, first, second, last]);
            assert!(content(&target, length) == pattern(1, length), "{length} {options:?}");
        }
    }
}

#[test]
fn a_plan_that_breaks_its_rules_is_refused() {
    let target = OwnMemory::new(0, 8);
    let broken: [Vec<(Action, &[u32])>; 4] = [
        vec![(
            Action::Copy {
                from: slice(Buffer::Recv, 0, 4),
                to: slice(Buffer::Recv, 6, 4),
            },
            &[],
        )],
        vec![(
            Action::Copy {
                from: slice(Buffer::Recv, 0, 2),
                to: slice(Buffer::Scratch(3), 0, 2),
            },
            &[],
        )],
        vec![(
            Action::Send {
                to: 9,
                data: slice(Buffer::Recv, 0, 2),
                slot: 0,
            },
            &[],
        )],
        vec![(
            Action::Send {
                to: 0,
                data: slice(Buffer::Recv, 0, 2),
                slot: 0,
            },
            &[0],
        )],
    ];
    for steps in broken {
        let mut w = world(2, Options::default());
        let binding = Binding::bytes(BoundBuffer::none(), BoundBuffer::one(bytes(&target, 8)));
        let request = start(&mut w, 0, script(&[], steps), binding, None);
        assert!(matches!(w.finish(0, request).error, Some(EngineError::Plan { .. })));
    }
}

#[test]
fn a_lost_member_ends_the_operation() {
    let count = 4;
    let mut w = world(count, Options::default());
    let call = Call::new(Operation::Barrier, 0);
    let requests: Vec<_> = (0..3)
        .map(|me| {
            start(
                &mut w,
                me,
                plan(&call, &network(count), me as u32),
                Binding::nothing(),
                None,
            )
        })
        .collect();
    (0..50).for_each(|_| w.poll());
    w.switch.kill(Peer::new(3), "it crashed");
    let (mut lost, mut waiting) = (0, 0);
    (0..500).for_each(|_| w.poll());
    for (me, &request) in requests.iter().enumerate() {
        match w.engines[me].core.take(request) {
            Some(done) => {
                assert!(
                    matches!(done.error, Some(EngineError::PeerLost { peer, .. }) if peer == Peer::new(3)),
                    "{done:?} at {me}"
                );
                lost += 1;
            }
            // It waits for somebody who has given up; it learns that when that process ends.
            None => waiting += 1,
        }
    }
    assert!(lost >= 1 && lost + waiting == 3);
}
