// SPDX-License-Identifier: Apache-2.0
//! Operations among processes of which each believes that the other represents data differently. Both are of this
//! machine, so what one sends the other sees with its bytes in reverse, and what comes back is right again.

mod common;

use common::{BYTES, Stage, long, put};
use isthmus_abi::constants as abi;
use isthmus_datatype::describe::to_bytes;
use isthmus_datatype::op::Predefined;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype, Representation};
use isthmus_rma::{Flavor, Sink, Source, TargetData, When, Window};
use isthmus_wire::rma::Operation;

/// Big-endian.
const OTHER: Representation = Representation::COMMON;

fn stage() -> Stage {
    Stage::unlike(Flavor::Allocate, BYTES, OTHER)
}

fn number(window: &Window, at: isize) -> i64 {
    let mut bytes = [0; 8];
    window.own_memory().reading().read(at, &mut bytes);
    i64::from_ne_bytes(bytes)
}

fn place(datatype: &Datatype, disp: i64, count: u64) -> TargetData<'_> {
    TargetData {
        rank: 0,
        disp,
        count,
        datatype,
    }
}

#[test]
fn what_is_put_is_converted_there_and_what_is_got_here() {
    let stage = stage();
    let ty = Datatype::of(Basic::Int64);
    let (data, back) = (
        OwnMemory::with(&0x0102_0304_0506_0708_i64.to_ne_bytes()),
        OwnMemory::new(0, 8),
    );
    let source = Source {
        memory: data.reading(),
        count: 1,
        datatype: &ty,
    };
    let mut sink = Sink {
        memory: back.memory(),
        count: 1,
        datatype: &ty,
    };
    let (_, ended) = stage.locked(|window| {
        window.put(&source, &place(&ty, 8, 1), When::Always).expect("put");
        window.get(&mut sink, &place(&ty, 8, 1), When::Always).expect("got");
    });
    ended.expect("all is well");
    assert_eq!(number(&stage.windows[0], 8), 0x0807_0605_0403_0201);
    assert_eq!(back.content(), data.content());
    assert_eq!(stage.accused(), None);
}

#[test]
fn elements_that_frames_cut_are_added_and_fetched_whole() {
    const MANY: u64 = 30_000;
    let stage = Stage::unlike(Flavor::Allocate, 8 * MANY as usize, OTHER);
    let ty = Datatype::of(Basic::Int64);
    let bytes: Vec<u8> = (0..MANY as i64).flat_map(|at| at.swap_bytes().to_ne_bytes()).collect();
    let (data, before) = (OwnMemory::with(&bytes), OwnMemory::new(0, bytes.len() as isize));
    let source = Source {
        memory: data.reading(),
        count: MANY,
        datatype: &ty,
    };
    let sink = Sink {
        memory: before.memory(),
        count: MANY,
        datatype: &ty,
    };
    let (_, ended) = stage.locked(|window| {
        let there = place(&ty, 0, MANY);
        let add = |result| window.accumulate(Predefined::Sum, Some(&source), result, &there, When::Always);
        add(None).expect("added");
        add(Some(&sink)).expect("added and fetched");
    });
    ended.expect("all is well");
    assert_eq!(before.content(), bytes, "as it was after the first sum");
    for at in (0..MANY as isize).step_by(997) {
        assert_eq!(number(&stage.windows[0], 8 * at), 2 * at as i64);
    }
    let (_, ended) = stage.locked(|window| {
        let there = place(&ty, 0, MANY);
        let read = window.accumulate(Predefined::NoOp, None, Some(&sink), &there, When::Always);
        read.expect("read");
    });
    ended.expect("all is well");
    let twice = before.content();
    let word = |at: usize| {
        twice[8 * at..]
            .first_chunk()
            .map_or(0, |bytes| i64::from_ne_bytes(*bytes))
    };
    assert!((0..MANY as usize).all(|at| word(at).swap_bytes() == 2 * at as i64));
    assert_eq!(stage.accused(), None);
}

#[test]
fn an_element_is_swapped_if_it_is_as_expected_after_conversion() {
    let stage = stage();
    let ty = Datatype::of(Basic::Int32);
    let [new, old, result] = [0x0102_0304_i32, 0, -1].map(|word| OwnMemory::with(&word.to_ne_bytes()));
    let of = |memory: &OwnMemory| memory.reading();
    let one = |memory| Source {
        memory,
        count: 1,
        datatype: &ty,
    };
    let sink = Sink {
        memory: result.memory(),
        count: 1,
        datatype: &ty,
    };
    let (_, ended) = stage.locked(|window| {
        let swap = window.compare_and_swap(&one(of(&new)), &one(of(&old)), &sink, &place(&ty, 4, 1));
        swap.expect("swapped");
    });
    ended.expect("all is well");
    assert_eq!(result.content(), [0; 4]);
    assert_eq!(number(&stage.windows[0], 0) as u64 >> 32, 0x0403_0201);
}

#[test]
fn what_only_the_target_can_know_is_a_mistake_and_no_lie() {
    let stage = stage();
    let long = long();
    let data = [1; 8];
    let outside = Operation {
        place: BYTES as i64 - 4,
        ..put(&long, &data)
    };
    stage.operate(&outside);
    assert_eq!(stage.accused(), None);
    let (_, ended) = stage.locked(|_| ());
    let error = ended.expect_err("the window has no such bytes");
    assert_eq!(error.class, abi::MPI_ERR_RMA_RANGE);
    assert!(error.message.contains("of rank 0"), "{error}");
    let (_, ended) = stage.locked(|_| ());
    ended.expect("told once");
    // What its size there says is held against it all the same.
    let longer = Operation {
        length: 16,
        data: &[1; 16],
        ..put(&long, &data)
    };
    stage.operate(&longer);
    assert!(stage.accused().is_some_and(|why| why.contains("do not fit")));
}

#[test]
fn a_shorter_long_of_another_machine_takes_its_place_whole() {
    let stage = Stage::unlike(Flavor::Allocate, BYTES, Representation::EXTERNAL32);
    let long = to_bytes(&Datatype::of(Basic::Long)).expect("short");
    stage.operate(&put(&long, &(-5_i32).to_be_bytes()));
    assert_eq!(stage.accused(), None);
    assert_eq!(number(&stage.windows[0], 8), -5);
    let lacking = OwnMemory::with(&[0; 16]);
    let mut without = Representation::COMMON.encode();
    without[7] = isthmus_datatype::LACKS_INTEGER16;
    let form = Representation::decode(without).expect("a form");
    let stage = Stage::unlike(Flavor::Allocate, BYTES, form);
    let ty = Datatype::of(Basic::Integer16);
    let source = Source {
        memory: lacking.reading(),
        count: 1,
        datatype: &ty,
    };
    let mut put = None;
    let (_, ended) = stage.locked(|window| {
        put = window.put(&source, &place(&ty, 0, 1), When::Always).err();
    });
    let error = put.or_else(|| ended.err()).expect("the target has no such type");
    assert_eq!(error.class, abi::MPI_ERR_TYPE);
}
