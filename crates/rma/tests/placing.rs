// SPDX-License-Identifier: Apache-2.0
//! Data of operations that a transport reads straight to their place: those of a put into the window, those that a get
//! asks for into memory of the program.

mod common;

use common::{BYTES, Stage, long, put};
use isthmus_core::world::World;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype, Representation};
use isthmus_rma::{Flavor, Sink, Source, TargetData, When};
use isthmus_transport::memory::Options;
use isthmus_wire::rma::{Does, Operation, What};

/// Numbers of a long operation, which goes in several frames.
const MANY: usize = 4000;

/// Over a transport that asks where payloads go.
fn stage(bytes: usize, form: Representation) -> Stage {
    let options = Options {
        place: 1,
        frame: 4096,
        ..Options::default()
    };
    Stage::over(options, (Flavor::Allocate, bytes), form)
}

/// Bytes that this process has found in their place.
fn placed(world: &World) -> u64 {
    let rows = world.engine().lock().core.tools().counters().rows;
    let placed = rows.iter().filter(|(name, ..)| name == "window-placed");
    placed.map(|(.., counted)| counted.bytes).sum()
}

/// Puts numbers of this type there and gets them back. What the host has of them in its window, what came back, and how
/// many bytes host and origin found in their place.
fn there_and_back(stage: &Stage, ty: &Datatype, count: u64) -> ([Vec<u8>; 2], [u64; 2]) {
    let span = ty.window(count).expect("short").1;
    let bytes: Vec<u8> = (0..span as usize).map(|at| (at % 251) as u8 + 1).collect();
    let (data, back) = (OwnMemory::with(&bytes), OwnMemory::new(0, span));
    let place = || TargetData {
        rank: 0,
        disp: 8,
        count,
        datatype: ty,
    };
    let source = Source {
        memory: data.reading(),
        count,
        datatype: ty,
    };
    let mut sink = Sink {
        memory: back.memory(),
        count,
        datatype: ty,
    };
    let (_, ended) = stage.locked(|window| {
        window.put(&source, &place(), When::Always).expect("put");
        window.get(&mut sink, &place(), When::Always).expect("got");
    });
    ended.expect("all is well");
    let mut there = vec![0; span as usize];
    stage.windows[0].own_memory().reading().read(8, &mut there);
    assert_eq!(stage.accused(), None);
    ([there, back.content()], [placed(stage.host), placed(stage.liar)])
}

#[test]
fn data_in_one_piece_are_read_straight_to_their_place_on_both_ways() {
    let ty = Datatype::of(Basic::Int64);
    let stage = stage(8 * MANY + 16, Representation::LOCAL);
    let ([there, back], counted) = there_and_back(&stage, &ty, MANY as u64);
    assert!(there.iter().enumerate().all(|(at, &byte)| byte == (at % 251) as u8 + 1));
    assert_eq!(there, back);
    assert_eq!(counted, [8 * MANY as u64; 2]);
}

#[test]
fn data_with_gaps_and_data_of_unlike_processes_are_copied_to_theirs() {
    let ty = Datatype::of(Basic::Int64);
    let gaps = Datatype::vector(MANY as i64 / 2, 1, 2, &ty).expect("a type");
    let with_gaps = stage(8 * MANY + 16, Representation::LOCAL);
    let ([there, back], counted) = there_and_back(&with_gaps, &gaps, 1);
    let is_right = |(at, &byte): (usize, &u8)| byte == if at % 16 < 8 { (at % 251) as u8 + 1 } else { 0 };
    assert!(there.iter().enumerate().all(is_right));
    assert_eq!((there, counted), (back, [0; 2]));
    let unlike = stage(8 * MANY + 16, Representation::COMMON);
    let ([there, back], counted) = there_and_back(&unlike, &ty, MANY as u64);
    let first: Vec<u8> = (1..=8).rev().collect();
    assert_eq!((&there[..8], counted), (&first[..], [0; 2]), "each number turned round");
    assert_eq!(back[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn lies_about_data_that_are_to_be_placed_reach_no_memory() {
    let (ty, operate, data) = (long(), What::Operate as i32, What::Data as i32);
    let begun = |does| {
        let length = 16;
        let op = if does == Does::Put { 0 } else { 0x21 };
        let count = 2;
        Operation {
            does,
            op,
            count,
            length,
            ..put(&ty, &[])
        }
        .encode()
    };
    let (puts, adds) = (begun(Does::Put), begun(Does::Accumulate));
    for (why, operation, at, length) in [
        ("more data", &puts, 0, 17),
        ("more data", &puts, 8, 8),
        ("more data", &puts, u64::MAX, 8),
        ("data of no operation", &Vec::new(), 0, 8),
        ("more data", &adds, 0, 17),
    ] {
        let stage = stage(BYTES, Representation::LOCAL);
        if !operation.is_empty() {
            stage.say(operate, (stage.context, operation.len() as u32), 0, operation);
        }
        assert_eq!(stage.accused(), None, "{why}");
        stage.say(data, (stage.context, 0), at, &vec![1; length]);
        let accused = stage.accused().unwrap_or_default();
        assert!(accused.contains(why), "{why}: {accused}");
        let mut around = [0; BYTES];
        stage.windows[0].own_memory().reading().read(0, &mut around);
        assert_eq!((around, placed(stage.host)), ([0; BYTES], 0), "{why}");
    }
    let stage = stage(BYTES, Representation::LOCAL);
    stage.say(What::Answer as i32, (stage.context, 1), 0, &[1; 8]);
    assert!(stage.accused().unwrap_or_default().contains("nobody has asked"));
}
