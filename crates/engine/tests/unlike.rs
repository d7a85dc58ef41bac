// SPDX-License-Identifier: Apache-2.0
//! Processes that represent data differently: sizes, counts, values that do not fit, types that are lacking, plans in
//! the common form. The other machine is simulated: its messages are written byte by byte.

mod common;

use common::{World, channel, content, kinds, memory, receiving, sending, world_of};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, ConversionError, Datatype, Foreign, Representation};
use isthmus_engine::{Binding, Block, BoundBuffer, Completion, EngineError, Mode, ReceiveBuffer};
use isthmus_schedule::{Call, Network, Operation, plan};
use isthmus_topology::{Level, Shape};
use isthmus_transport::memory::Options;

/// Big-endian, 32 bits, `bool` of four bytes, `long double` of a kind that cannot be converted.
fn strange() -> Representation {
    Representation::decode([2, 4, 4, 16, 106, 4, 4, 0]).expect("a machine")
}

fn mixed(options: Options) -> World {
    world_of(2, options, &[strange(), Representation::LOCAL])
}

fn described(target: &OwnMemory, basic: Basic, count: u64) -> ReceiveBuffer {
    let datatype = Datatype::of(basic);
    ReceiveBuffer::typed(target.memory(), &datatype, count)
        .expect("a buffer")
        .described(target.memory(), &datatype, count)
}

/// Process 0 sends these bytes, process 1 receives `count` of a type.
fn one(w: &mut World, bytes: &[u8], target: &OwnMemory, (basic, count): (Basic, u64), early: bool) -> Completion {
    let source = memory(bytes);
    let post = |w: &mut World| w.engines[1].irecv(&channel(0, 1, 2), Some(0), None, described(target, basic, count));
    let posted = early.then(|| post(w));
    let sent = w.engines[0].isend(
        &channel(0, 0, 2),
        1,
        5,
        Mode::Standard,
        sending(&source, bytes.len() as u64),
    );
    if !early {
        for _ in 0..30 {
            w.poll();
        }
    }
    let posted = posted.unwrap_or_else(|| post(w));
    let received = w.finish(1, posted);
    assert_eq!(w.finish(0, sent).error, None);
    received
}

fn longs(values: impl Iterator<Item = i32>) -> Vec<u8> {
    values.flat_map(i32::to_be_bytes).collect()
}

const LONG: usize = Basic::Long.size();
/// Elements of a message of many frames; interpreted, every element counts.
const MANY: usize = if cfg!(miri) { 400 } else { 100_000 };

/// Plans in another form: forms and sizes. Interpreted, making a plan takes a minute.
const FORMS: usize = if cfg!(miri) { 1 } else { 3 };
const SIZES: usize = FORMS;

fn long(bytes: &[u8], i: usize) -> i64 {
    let at = &bytes[LONG * i..LONG * (i + 1)];
    match at.try_into() {
        Ok(bytes) => i64::from_ne_bytes(bytes),
        Err(_) => i32::from_ne_bytes(at.try_into().expect("four bytes")).into(),
    }
}

#[test]
fn long_grows_and_counts_are_those_of_the_receiver() {
    for options in kinds() {
        for (n, early) in [
            (0, true),
            (1, false),
            (7, true),
            (300, false),
            (MANY, true),
            (MANY, false),
        ] {
            let mut w = mixed(options);
            let target = OwnMemory::new(0, (LONG * (n + 5)) as isize);
            let data = longs((0..n as i32).map(|i| i * 7919 - 5));
            let received = one(&mut w, &data, &target, (Basic::Long, n as u64 + 5), early);
            assert_eq!((received.bytes, received.error), ((LONG * n) as u64, None));
            let bytes = content(&target, LONG * (n + 5));
            assert!((0..n).all(|i| long(&bytes, i) == i64::from(i as i32 * 7919 - 5)));
            assert!(
                (n..n + 5).all(|i| long(&bytes, i) == 0),
                "nothing behind the message is written"
            );
            w.close();
        }
    }
}

#[test]
fn truncation_is_judged_in_elements() {
    for (n, room) in [(10, 7), (MANY as i32, MANY - 1)] {
        let mut w = mixed(Options::default());
        let target = OwnMemory::new(0, (LONG * (room + 1)) as isize);
        let received = one(&mut w, &longs(0..n), &target, (Basic::Long, room as u64), true);
        assert_eq!(received.bytes, (LONG * room) as u64);
        assert!(matches!(received.error, Some(EngineError::Truncate { .. })));
        let bytes = content(&target, LONG * (room + 1));
        assert_eq!((long(&bytes, room - 1), long(&bytes, room)), (room as i64 - 1, 0));
        w.close();
    }
}

#[test]
fn a_value_that_does_not_fit_is_named_and_the_others_arrive() {
    let mut w = mixed(Options::default());
    let target = memory(&[9; 4]);
    let data: Vec<u8> = [1u32, 0, 256, 1].iter().flat_map(|v| v.to_be_bytes()).collect();
    let received = one(&mut w, &data, &target, (Basic::Bool, 4), true);
    assert_eq!((content(&target, 4), received.bytes), (vec![1, 0, 9, 1], 4));
    let Some(EngineError::Conversion { what, .. }) = &received.error else {
        panic!("{received:?}")
    };
    assert!(matches!(what, ConversionError::DoesNotFit { element: 2, .. }), "{what}");
    w.close();
}

#[test]
fn a_type_that_is_lacking_is_refused_and_nobody_hangs() {
    for early in [true, false] {
        for n in [1, MANY as isize / 2] {
            let mut w = mixed(Options::default());
            let target = OwnMemory::new(0, 16 * n);
            let received = one(
                &mut w,
                &vec![1; 16 * n as usize],
                &target,
                (Basic::LongDouble, n as u64),
                early,
            );
            let text = received.error.expect("an error").to_string();
            assert!(text.contains("MPI_LONG_DOUBLE"), "{text}");
            assert!(content(&target, 16 * n as usize).iter().all(|&b| b == 0));
            w.close();
        }
    }
}

#[test]
fn packed_data_are_recognised_and_other_data_are_not_taken_for_them() {
    let mut w = world_of(2, Options::default(), &[Representation::LOCAL, strange()]);
    let source = memory(&[0, 0, 0, 7]);
    let target = OwnMemory::new(0, 4);
    // From a process like this one, and still in the common form.
    let post =
        |w: &mut World, basic, n| w.engines[1].irecv(&channel(0, 1, 2), Some(0), None, described(&target, basic, n));
    let posted = post(&mut w, Basic::Int, 1);
    let sent = w.engines[0].isend(&channel(0, 0, 2), 1, 5, Mode::Standard, sending(&source, 4).packed());
    assert_eq!(w.finish(1, posted).error, None);
    assert_eq!(content(&target, 4), 7i32.to_ne_bytes());
    assert_eq!(w.finish(0, sent).error, None);
    let posted = post(&mut w, Basic::Packed, 4);
    let sent = w.engines[0].isend(&channel(0, 0, 2), 1, 5, Mode::Standard, sending(&source, 4));
    let error = w.finish(1, posted).error;
    assert!(
        matches!(error, Some(EngineError::NotPacked { source: 0, tag: 5 })),
        "{error:?}"
    );
    assert_eq!(w.finish(0, sent).error, None);
    w.close();
}

#[test]
fn bytes_are_not_converted() {
    let mut w = mixed(Options::default());
    let target = OwnMemory::new(0, 3);
    let received = one(&mut w, &[1, 2, 3], &target, (Basic::Byte, 3), true);
    assert_eq!((content(&target, 3), received.bytes), (vec![1, 2, 3], 3));
    let source = memory(&[5; 3]);
    let posted = w.engines[1].irecv(&channel(0, 1, 2), None, None, receiving(&target, 3));
    w.engines[0].isend(&channel(0, 0, 2), 1, 5, Mode::Standard, sending(&source, 3));
    w.finish(1, posted);
    assert_eq!(content(&target, 3), [5; 3]);
    w.close();
}

/// Blocks with gaps, of a type that has another size in the form of the plan, cut where no element ends.
#[test]
fn plans_may_work_in_another_form() {
    const COUNT: u32 = if cfg!(miri) { 3 } else { 5 };
    let levels = [Level::WideArea, Level::LocalArea, Level::Machine];
    let network = Network::plain(Shape::from_colours(&levels[..], COUNT, |rank, level| match level {
        0 => 0,
        _ => rank % 2,
    }));
    for form in [strange(), Representation::COMMON, Representation::EXTERNAL32]
        .into_iter()
        .take(FORMS)
    {
        for (elements, in_place) in [(3, false), (3, true), (MANY as u64 / 20, false)]
            .into_iter()
            .take(SIZES)
        {
            let mut w = world_of(COUNT, Options::default(), &[Representation::LOCAL; COUNT as usize]);
            let pair = Datatype::structure(&[1, 2], &[0, 8], &[Datatype::of(Basic::Int), Datatype::of(Basic::Long)])
                .expect("a type");
            let extent = pair.extent() as usize;
            let bytes = match Foreign::new(&pair, form).expect("a form") {
                Some(foreign) => foreign.bytes(elements).expect("a size"),
                None => pair.bytes(elements).expect("a size"),
            };
            let mut call = Call::new(Operation::Allgather, bytes);
            call.in_place = in_place;
            let length = extent * elements as usize;
            let fill = |rank: usize| -> Vec<u8> {
                (0..elements as usize)
                    .flat_map(|i| element(rank * 1000 + i, extent))
                    .collect()
            };
            let mut started = Vec::new();
            for me in 0..COUNT as usize {
                let mut all = vec![0xee; length * COUNT as usize];
                all[me * length..(me + 1) * length].copy_from_slice(&fill(me));
                let (own, target) = (
                    memory(&fill(me)),
                    if in_place {
                        memory(&all)
                    } else {
                        OwnMemory::new(0, all.len() as isize)
                    },
                );
                let block = |m: &OwnMemory, n| Block::own(m, &pair, n).expect("a block").described(&pair, n);
                let send = if in_place {
                    BoundBuffer::none()
                } else {
                    BoundBuffer::one(block(&own, elements))
                };
                let receive = BoundBuffer::one(block(&target, elements * u64::from(COUNT)));
                let binding = Binding::bytes(send, receive).in_form(Some(form));
                let operation = w.engines[me].core.operation("test");
                let part = plan(&call, &network, me as u32);
                let request =
                    w.engines[me].start_plan(&channel(0, me as u32, COUNT), operation, 1, part, binding, None);
                started.push((request, target));
            }
            for (me, (request, target)) in started.iter().enumerate() {
                assert_eq!(w.finish(me, *request).error, None);
                for rank in 0..COUNT as usize {
                    let bytes = content(target, length * COUNT as usize);
                    let block = &bytes[rank * length..(rank + 1) * length];
                    for (got, wanted) in block.chunks(extent).zip(fill(rank).chunks(extent)) {
                        assert_eq!(
                            (&got[..4], &got[8..]),
                            (&wanted[..4], &wanted[8..]),
                            "{form} {rank} at {me}"
                        );
                    }
                }
            }
            w.close();
        }
    }
}

/// An `int`, a gap, two `long`s that fit four bytes.
fn element(seed: usize, extent: usize) -> Vec<u8> {
    let mut bytes = vec![0; extent];
    bytes[..4].copy_from_slice(&(seed as i32).to_ne_bytes());
    for i in 0..2 {
        let value = seed as i64 * 3 - i as i64;
        let at = 8 + i * LONG;
        let wide = value.to_ne_bytes();
        let narrow = (value as i32).to_ne_bytes();
        let slice: &[u8] = if LONG == 8 { &wide } else { &narrow };
        bytes[at..at + LONG].copy_from_slice(slice);
    }
    bytes
}
