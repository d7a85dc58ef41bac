// SPDX-License-Identifier: Apache-2.0
//! Runs of every short length, in every kind of loop: what is copied is what the type map says, and nothing beside it.

#![expect(clippy::unwrap_used, reason = "a test may")]

use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype, Packer, Unpacker};

const EMPTY: u8 = 0xee;

/// Packs and unpacks `count` elements whose runs of `length` bytes begin at `places`, in order.
fn moves(datatype: &Datatype, count: u64, places: &[usize], length: usize) {
    let (low, high) = datatype.window(count).unwrap();
    assert_eq!(low, 0, "the first run begins at the origin");
    let content: Vec<u8> = (0..high as usize).map(|i| (i * 7 + i / 251) as u8 | 1).collect();
    let expected: Vec<u8> = places
        .iter()
        .flat_map(|&at| content[at..at + length].to_vec())
        .collect();
    let memory = OwnMemory::with(&content);
    let mut packed = vec![0; expected.len()];
    let mut packer = Packer::new(datatype, count, memory.reading()).unwrap();
    assert_eq!(packer.pack(&mut packed), expected.len());
    assert_eq!(packed, expected, "packing runs of {length}");
    let target = OwnMemory::with(&vec![EMPTY; content.len()]);
    let mut unpacker = Unpacker::new(datatype, count, target.memory()).unwrap();
    assert_eq!(unpacker.unpack(&packed), packed.len());
    let mut wanted = vec![EMPTY; content.len()];
    for &at in places {
        wanted[at..at + length].copy_from_slice(&content[at..at + length]);
    }
    assert_eq!(target.content(), wanted, "unpacking runs of {length}");
}

#[test]
fn runs_at_equal_distances() {
    let byte = Datatype::of(Basic::Byte);
    for length in 1..=140 {
        for count in [2, 5, 40] {
            let comb = Datatype::hvector(count, length, length + 3, &byte).unwrap();
            let places: Vec<_> = (0..count).map(|i| (i * (length + 3)) as usize).collect();
            moves(&comb, 1, &places, length as usize);
        }
    }
}

#[test]
fn combs_again_and_again() {
    let byte = Datatype::of(Basic::Byte);
    for length in 1..=140 {
        for teeth in [2, 3, 4, 7, 8, 33] {
            let comb = Datatype::hvector(teeth, length, length + 1, &byte).unwrap();
            let extent = teeth * (length + 1) + 5;
            let spread = Datatype::resized(&comb, 0, extent).unwrap();
            let tooth = |i: i64| (0..teeth).map(move |j| (i * extent + j * (length + 1)) as usize);
            moves(&spread, 3, &(0..3).flat_map(tooth).collect::<Vec<_>>(), length as usize);
        }
    }
}

#[test]
fn runs_anywhere_again_and_again() {
    let byte = Datatype::of(Basic::Byte);
    for length in 1..=140 {
        for runs in [3, 6, 50] {
            let mut at = 0;
            let place = |i: i64| {
                let here = at;
                at += length + 1 + i % 3;
                here
            };
            let places: Vec<i64> = (0..runs).map(place).collect();
            let list = Datatype::hindexed_block(length, &places, &byte).unwrap();
            let extent = places[runs as usize - 1] + length + 2;
            let list = Datatype::resized(&list, 0, extent).unwrap();
            let all = (0..3).flat_map(|i| places.iter().map(move |at| (i * extent + at) as usize));
            moves(&list, 3, &all.collect::<Vec<_>>(), length as usize);
        }
    }
}
