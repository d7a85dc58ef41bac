// SPDX-License-Identifier: Apache-2.0
//! Streams in the representations of other machines: there and back, in pieces, values that do not fit.
#![expect(clippy::unwrap_used, reason = "tests")]

use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{ALL, Basic, ConversionError, Datatype, Foreign, Kind, Packer, Representation, Unpacker};
use proptest::collection::vec;
use proptest::prelude::*;

/// A big-endian machine with IEEE quadruple precision; 32 bits; 32 bits and big-endian with `long double` as `double`;
/// what is used between machines; what files use.
fn machines() -> Vec<Representation> {
    let described = [
        [2, 8, 8, 16, 113, 4, 1, 0],
        [1, 4, 4, 12, 64, 4, 1, 0],
        [2, 4, 4, 8, 53, 2, 4, 0],
        [1, 8, 8, 16, 64, 4, 1, 0],
    ];
    let known = [Representation::COMMON, Representation::EXTERNAL32];
    described
        .into_iter()
        .map(|bytes| Representation::decode(bytes).unwrap())
        .chain(known)
        .collect()
}

/// Bytes of a value of this process that every machine can hold; `seed` chooses it.
fn value(basic: Basic, seed: u8) -> Vec<u8> {
    let integer = |size: usize| {
        let value = i128::from(seed % 128);
        match cfg!(target_endian = "big") {
            true => value.to_be_bytes()[16 - size..].to_vec(),
            false => value.to_le_bytes()[..size].to_vec(),
        }
    };
    match basic.kind() {
        Kind::Floating | Kind::Complex => {
            // Integers of at most 7 digits, made by the process itself from a double.
            let parts = if basic.kind() == Kind::Complex { 2 } else { 1 };
            float(basic.size() / parts, basic, seed).repeat(parts)
        }
        Kind::Pair(value_type, index) => [value(value_type, seed), value(index, seed / 2)].concat(),
        Kind::Bool => vec![seed % 2; basic.size()],
        _ => integer(basic.size()),
    }
}

fn float(size: usize, basic: Basic, seed: u8) -> Vec<u8> {
    let number = f64::from(seed) / 8.0;
    match size {
        2 => {
            let bits = (number as f32).to_bits();
            let half = if bits == 0 {
                0
            } else {
                ((((bits >> 23) & 0xff) - 112) << 10) as u16 | ((bits >> 13) & 0x3ff) as u16
            };
            half.to_ne_bytes().to_vec()
        }
        4 => (number as f32).to_ne_bytes().to_vec(),
        8 => number.to_ne_bytes().to_vec(),
        _ => {
            let mut double = f64::to_bits(number);
            let quad = matches!(basic, Basic::Real16 | Basic::Complex32) || !cfg!(target_arch = "x86_64");
            let exponent = if double == 0 { 0 } else { (double >> 52) + 16383 - 1023 };
            double &= (1 << 52) - 1;
            let bits = if quad {
                u128::from(exponent) << 112 | u128::from(double) << 60
            } else if exponent == 0 {
                0
            } else {
                u128::from(exponent) << 64 | 1 << 63 | u128::from(double) << 11
            };
            bits.to_ne_bytes().to_vec()
        }
    }
}

/// The stream of `count` elements as another representation has it.
fn there(foreign: &Foreign, datatype: &Datatype, count: u64, local: &[u8]) -> Vec<u8> {
    let basics = datatype.signature().elements() * count;
    let bytes = Datatype::of(Basic::Byte);
    let memory = OwnMemory::with(local);
    let mut packer = Packer::new(&bytes, local.len() as u64, memory.reading()).unwrap();
    let mut out = vec![0; foreign.bytes(count).unwrap() as usize];
    foreign.pack(0, basics, &mut packer, &mut out).unwrap();
    out
}

fn back(foreign: &Foreign, first: u64, basics: u64, data: &[u8], into: &OwnMemory) -> Result<(), ConversionError> {
    let bytes = Datatype::of(Basic::Byte);
    let mut unpacker = Unpacker::new(&bytes, into.content().len() as u64, into.memory()).unwrap();
    foreign.unpack(first, basics, data, &mut unpacker)
}

fn any_basic() -> impl Strategy<Value = Basic> {
    (0..ALL.len()).prop_map(|i| ALL[i])
}

/// A structure of several basics without gaps, repeated.
fn any_type() -> impl Strategy<Value = Datatype> {
    (vec((any_basic(), 1i64..4), 1..6), 1i64..5).prop_map(|(fields, times)| {
        let (mut at, mut displacements, mut types) = (0i64, vec![], vec![]);
        for (basic, n) in &fields {
            displacements.push(at);
            at += n * basic.extent() as i64;
            types.push(Datatype::of(*basic));
        }
        let lengths: Vec<i64> = fields.iter().map(|(_, n)| *n).collect();
        let one = Datatype::structure(&lengths, &displacements, &types).unwrap();
        Datatype::contiguous_type(times, &one).unwrap()
    })
}

/// The packed stream of elements, with values that fit everywhere.
fn stream(datatype: &Datatype, count: u64, seeds: &[u8]) -> Vec<u8> {
    let (mut out, mut i) = (Vec::new(), 0);
    for _ in 0..count {
        datatype.signature().each(&mut |basic, n| {
            for _ in 0..n {
                out.extend(value(basic, seeds[i % seeds.len()]));
                i += 1;
            }
        });
    }
    out
}

proptest! {
    #[test]
    fn streams_come_back(datatype in any_type(), count in 0u64..6, seeds in vec(any::<u8>(), 1..50)) {
        let local = stream(&datatype, count, &seeds);
        for machine in machines() {
            let Some(foreign) = Foreign::new(&datatype, machine).unwrap() else { continue };
            let data = there(&foreign, &datatype, count, &local);
            let basics = datatype.signature().elements() * count;
            prop_assert_eq!(foreign.basics_in(data.len() as u64), (basics, 0));
            prop_assert_eq!(foreign.bytes_of(basics), data.len() as u64);
            let memory = OwnMemory::with(&vec![0xaa; local.len()]);
            back(&foreign, 0, basics, &data, &memory).unwrap();
            prop_assert_eq!(memory.content(), &local[..], "{}", machine);
        }
    }

    #[test]
    fn pieces_make_up_the_whole(datatype in any_type(), cut in 0u64..60, seeds in vec(any::<u8>(), 1..50)) {
        let local = stream(&datatype, 3, &seeds);
        for machine in machines() {
            let Some(foreign) = Foreign::new(&datatype, machine).unwrap() else { continue };
            let data = there(&foreign, &datatype, 3, &local);
            let basics = datatype.signature().elements() * 3;
            let cut = cut.min(basics);
            let byte = foreign.bytes_of(cut) as usize;
            prop_assert_eq!(foreign.basics_in(byte as u64), (cut, 0));
            let memory = OwnMemory::with(&vec![0xaa; local.len()]);
            back(&foreign, cut, basics - cut, &data[byte..], &memory).unwrap();
            let start = foreign.local_bytes_of(cut) as usize;
            prop_assert!(memory.content()[..start].iter().all(|&b| b == 0xaa));
            back(&foreign, 0, cut, &data[..byte], &memory).unwrap();
            prop_assert_eq!(memory.content(), &local[..], "{}", machine);
        }
    }

    /// Whatever bytes arrive: no panic, nothing outside the elements is written.
    #[test]
    fn any_bytes_are_taken(datatype in any_type(), data in vec(any::<u8>(), 0..400)) {
        for machine in machines() {
            let Some(foreign) = Foreign::new(&datatype, machine).unwrap() else { continue };
            let (basics, _) = foreign.basics_in(data.len() as u64);
            let used = foreign.bytes_of(basics) as usize;
            let memory = OwnMemory::new(0, foreign.local_bytes_of(basics) as isize);
            let _ = back(&foreign, 0, basics, &data[..used], &memory);
        }
    }
}

#[test]
fn sizes_follow_the_machine() {
    let machine = Representation::decode([1, 4, 4, 12, 64, 4, 1, 0]).unwrap();
    let size = |basic| {
        let datatype = Datatype::of(basic);
        Foreign::new(&datatype, machine).unwrap().map(|f| f.bytes(10).unwrap())
    };
    assert_eq!(size(Basic::Long), (size_of::<std::ffi::c_long>() == 8).then_some(40));
    assert_eq!(size(Basic::LongDouble), Some(120));
    assert_eq!(size(Basic::LongDoubleInt), Some(160));
    assert_eq!(size(Basic::Byte), None);
}

#[test]
fn values_that_do_not_fit_are_named_and_all_others_arrive() {
    if size_of::<std::ffi::c_long>() < 8 {
        return;
    }
    let datatype = Datatype::of(Basic::Long);
    let foreign = Foreign::new(&datatype, Representation::EXTERNAL32).unwrap().unwrap();
    let values: Vec<u8> = [5i64, -5, 1 << 40, 7].iter().flat_map(|v| v.to_ne_bytes()).collect();
    let memory = OwnMemory::with(&values);
    let mut packer = Packer::new(&datatype, 4, memory.reading()).unwrap();
    let mut out = [0xee; 16];
    let error = foreign.pack(0, 4, &mut packer, &mut out).unwrap_err().to_string();
    assert!(
        error.contains("element 2, of type MPI_LONG, has the value 1099511627776"),
        "{error}"
    );
    assert_eq!(out[..8], [0, 0, 0, 5, 0xff, 0xff, 0xff, 0xfb]);
    assert_eq!(out[8..], [0xee, 0xee, 0xee, 0xee, 0, 0, 0, 7]);
}
