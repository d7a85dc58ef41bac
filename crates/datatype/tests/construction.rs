// SPDX-License-Identifier: Apache-2.0
//! Descriptions: what is refused, what is remembered, and that huge or deep types stay small.

use isthmus_datatype::raw::ReadMemory;
use isthmus_datatype::{Basic, Combiner, Datatype, Order, Packer, TypeError};

fn int() -> Datatype {
    Datatype::of(Basic::Int)
}

#[test]
fn negative_counts_are_refused_by_name() {
    let negative = |argument, index, value| {
        Some(TypeError::Below {
            argument,
            index,
            value,
            least: 0,
        })
    };
    assert_eq!(Datatype::contiguous_type(-1, &int()).err(), negative("count", 0, -1));
    assert_eq!(Datatype::vector(1, -2, 1, &int()).err(), negative("blocklength", 0, -2));
    assert_eq!(
        Datatype::indexed(&[1, -3], &[0, 4], &int()).err(),
        negative("array_of_blocklengths", 1, -3)
    );
    assert_eq!(
        Datatype::structure(&[1], &[0, 8], &[int()]).err(),
        Some(TypeError::Lengths {
            argument: "array_of_displacements",
            length: 2,
            expected: 1
        })
    );
    let error = Datatype::subarray(&[4, 4], &[2, 5], &[0, 0], Order::C, &int()).err();
    assert_eq!(
        error,
        Some(TypeError::Above {
            argument: "array_of_subsizes",
            index: 1,
            value: 5,
            most: 4
        })
    );
}

#[test]
fn what_does_not_fit_63_bits_is_refused() {
    let overflow = |result: Result<Datatype, TypeError>| matches!(result, Err(TypeError::Overflow { .. }));
    assert!(overflow(Datatype::contiguous_type(i64::MAX, &int())));
    assert!(overflow(Datatype::contiguous_type(1 << 61, &int())));
    assert!(Datatype::contiguous_type((1 << 61) - 1, &int()).is_ok());
    assert!(overflow(Datatype::vector(2, 1, i64::MAX, &int())));
    assert!(overflow(Datatype::hvector(3, 1, i64::MAX - 3, &int())));
    assert!(overflow(Datatype::hindexed(&[1], &[i64::MAX], &int())));
    assert!(overflow(Datatype::hindexed(&[1, 1], &[i64::MIN, 0], &int())));
    assert!(overflow(Datatype::indexed(&[1], &[i64::MIN], &int())));
    assert!(overflow(Datatype::resized(&int(), i64::MAX, 1)));
    assert!(overflow(Datatype::subarray(
        &[1 << 31, 1 << 31],
        &[1, 1],
        &[0, 0],
        Order::C,
        &int()
    )));
    let big = Datatype::contiguous_type(1 << 60, &int()).unwrap();
    assert!(big.window(2).is_err() && big.bytes(2).is_err());
    assert!(Packer::new(&big, 2, ReadMemory::EMPTY).is_err());
    assert_eq!(big.contiguous(1), Some((0, 1 << 62)));
}

#[test]
fn a_billion_elements_cost_nothing() {
    let row = Datatype::contiguous_type(1_000_000_000, &int()).unwrap();
    assert_eq!(row.contiguous(1), Some((0, 4_000_000_000)));
    assert_eq!(row.elements(4_000_000_000), Some(1_000_000_000));
    let pairs = Datatype::vector(1_000_000_000, 2, 3, &int()).unwrap();
    let nested = Datatype::vector(1_000_000, 1, 2, &pairs).unwrap();
    assert_eq!(nested.size(), 8_000_000_000_000_000);
    let mut packer = Packer::new(&nested, 5, ReadMemory::EMPTY).unwrap();
    packer.seek(12_345_678_901_234_567);
    assert_eq!(packer.remaining(), 40_000_000_000_000_000 - 12_345_678_901_234_567);
}

#[test]
fn chains_of_any_length_are_packed_and_dropped_without_a_deep_stack() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut list = int();
    let mut same = int();
    for i in 0..1000 {
        // A member in front of everything so far: the depth grows with each step unless it is flattened.
        list = Datatype::structure(&[1, 1], &[8 * (i % 7), 1], &[Datatype::of(Basic::Byte), list]).unwrap();
        list = Datatype::resized(&list, 0, 1).unwrap();
    }
    for _ in 0..300_000 {
        same = Datatype::dup(&same);
    }
    assert_eq!(same.contiguous(2), Some((0, 8)));
    assert_eq!(list.size(), 1004);
    let (low, high) = list.window(1).unwrap();
    assert_eq!((low, high), (5, 1042), "first and last byte");
    let memory: Vec<u8> = bytes.iter().copied().cycle().take(high as usize).collect();
    // SAFETY: the memory outlives the packer.
    let window = unsafe { ReadMemory::new(memory.as_ptr(), low, high) };
    let mut packed = vec![0; 1004];
    assert_eq!(Packer::new(&list, 1, window).unwrap().pack(&mut packed), 1004);
    let expected: Vec<u8> = (0..1000i64)
        .map(|k| memory[(8 * ((999 - k) % 7) + k) as usize])
        .collect();
    assert_eq!(packed[..1000], expected);
    assert_eq!(packed[1000..], memory[1000..1004]);
}

#[test]
fn doubling_structures_share_their_halves() {
    // 2^50 runs, described in 50 steps.
    let mut tree = Datatype::resized(&Datatype::of(Basic::Byte), 0, 2).unwrap();
    for level in 1..50 {
        tree = Datatype::structure(&[1, 1], &[0, 1 << level], &[tree.clone(), tree]).unwrap();
    }
    assert_eq!(tree.size(), 1 << 49);
    let mut packer = Packer::new(&tree, 1, ReadMemory::EMPTY).unwrap();
    packer.seek((1 << 48) + 12345);
    assert_eq!(packer.remaining(), (1 << 48) - 12345);
    assert_eq!(tree.elements(1 << 40), Some(1 << 40));
}

#[test]
fn bounds_that_were_set_win_over_padding() {
    let small = Datatype::resized(&int(), -4, 6).unwrap();
    assert_eq!((small.lower_bound(), small.extent(), small.true_extent()), (-4, 6, 4));
    let mixed = Datatype::structure(&[1, 1], &[0, 16], &[small, Datatype::of(Basic::Double)]).unwrap();
    assert_eq!((mixed.lower_bound(), mixed.extent()), (-4, 6));
    assert_eq!((mixed.true_lower_bound(), mixed.true_extent()), (0, 24));
    let padded = Datatype::structure(
        &[1, 1],
        &[0, 8],
        &[Datatype::of(Basic::Double), Datatype::of(Basic::Char)],
    );
    assert_eq!(padded.unwrap().extent(), 16);
}

#[test]
fn contents_are_what_the_call_was_given() {
    let old = Datatype::dup(&int());
    let seen = |datatype: &Datatype| {
        let c = datatype.contents();
        (
            c.combiner,
            c.integers.to_vec(),
            c.addresses.to_vec(),
            c.counts.to_vec(),
            c.types.len(),
        )
    };
    let none: Vec<i64> = vec![];
    assert_eq!(
        seen(&int()),
        (Combiner::Named, none.clone(), none.clone(), none.clone(), 0)
    );
    assert_eq!(seen(&old), (Combiner::Dup, none.clone(), none.clone(), none.clone(), 1));
    let vector = Datatype::vector(2, 3, 4, &old).unwrap();
    assert_eq!(
        seen(&vector),
        (Combiner::Vector, vec![2, 3, 4], none.clone(), none.clone(), 1)
    );
    let hvector = Datatype::hvector(2, 3, 40, &old).unwrap();
    assert_eq!(
        seen(&hvector),
        (Combiner::Hvector, vec![2, 3], vec![40], none.clone(), 1)
    );
    assert_eq!(
        seen(&hvector.large()),
        (Combiner::Hvector, none.clone(), none.clone(), vec![2, 3, 40], 1)
    );
    let indexed = Datatype::indexed(&[1, 2], &[5, 9], &old).unwrap();
    assert_eq!(
        seen(&indexed),
        (Combiner::Indexed, vec![2, 1, 2, 5, 9], none.clone(), none.clone(), 1)
    );
    let block = Datatype::indexed_block(7, &[5, 90], &old).unwrap();
    assert_eq!(
        seen(&block),
        (Combiner::IndexedBlock, vec![2, 7, 5, 90], none.clone(), none.clone(), 1)
    );
    let structure = Datatype::structure(&[1, 2], &[0, 8], &[old.clone(), int()]).unwrap();
    assert_eq!(
        seen(&structure),
        (Combiner::Struct, vec![2, 1, 2], vec![0, 8], none.clone(), 2)
    );
    let resized = Datatype::resized(&old, -1, 9).unwrap();
    assert_eq!(
        seen(&resized),
        (Combiner::Resized, none.clone(), vec![-1, 9], none.clone(), 1)
    );
    let part = Datatype::subarray(&[4, 5], &[2, 3], &[1, 0], Order::C, &old).unwrap();
    assert_eq!(
        seen(&part),
        (
            Combiner::Subarray,
            vec![2, 4, 5, 2, 3, 1, 0, 12],
            none.clone(),
            none.clone(),
            1
        )
    );
    assert_eq!(
        seen(&part.large()),
        (Combiner::Subarray, vec![2, 12], none, vec![4, 5, 2, 3, 1, 0], 1)
    );
}

#[test]
fn only_predefined_types_are_basic() {
    assert_eq!(int().basic(), Some(Basic::Int));
    assert_eq!(Datatype::dup(&int()).basic(), None);
    assert_eq!(Datatype::dup(&int()).signature().uniform(), Some(Basic::Int));
    assert_eq!(Datatype::of(Basic::FloatInt).signature().uniform(), None);
    assert_eq!(Datatype::of(Basic::TwoInt).signature().elements(), 2);
}
