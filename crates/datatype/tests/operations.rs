// SPDX-License-Identifier: Apache-2.0
//! Reductions on every type against plain arithmetic on wide integers and floats.

use isthmus_datatype::op::{OpError, Predefined, Spacing, apply};
use isthmus_datatype::{ALL, Basic, Kind};
use proptest::collection::vec;
use proptest::prelude::*;

const INTEGERS: [Predefined; 10] = [
    Predefined::Sum,
    Predefined::Min,
    Predefined::Max,
    Predefined::Prod,
    Predefined::Band,
    Predefined::Bor,
    Predefined::Bxor,
    Predefined::Land,
    Predefined::Lor,
    Predefined::Lxor,
];

fn of_kind(kinds: &[Kind]) -> Vec<Basic> {
    ALL.iter().copied().filter(|b| kinds.contains(&b.kind())).collect()
}

/// The low bytes of an integer, as this machine stores them.
fn store(value: i128, size: usize) -> Vec<u8> {
    if cfg!(target_endian = "little") {
        value.to_le_bytes()[..size].to_vec()
    } else {
        value.to_be_bytes()[16 - size..].to_vec()
    }
}

/// An integer from bytes, sign-extended or not.
fn load(bytes: &[u8], signed: bool) -> i128 {
    let mut little = bytes.to_vec();
    if cfg!(target_endian = "big") {
        little.reverse();
    }
    let negative = signed && little[little.len() - 1] & 0x80 != 0;
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..little.len()].copy_from_slice(&little);
    i128::from_le_bytes(wide)
}

fn naive(op: Predefined, a: i128, b: i128) -> i128 {
    match op {
        Predefined::Sum => a.wrapping_add(b),
        Predefined::Prod => a.wrapping_mul(b),
        Predefined::Min => a.min(b),
        Predefined::Max => a.max(b),
        Predefined::Band => a & b,
        Predefined::Bor => a | b,
        Predefined::Bxor => a ^ b,
        Predefined::Land => i128::from(a != 0 && b != 0),
        Predefined::Lor => i128::from(a != 0 || b != 0),
        Predefined::Lxor => i128::from((a != 0) != (b != 0)),
        _ => unreachable!("not an operation on integers"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn integers(raw in vec(any::<(i128, i128)>(), 0..70), zeros in any::<u64>(), shift in 0..3usize, left in any::<bool>()) {
        for basic in of_kind(&[Kind::Signed, Kind::Unsigned, Kind::FortranInteger, Kind::Address]) {
            let (size, signed) = (basic.size(), basic.kind() != Kind::Unsigned);
            // Zeros among the values, so that the logical operations see both; bytes in front, so that nothing is
            // aligned.
            let keep = |i: usize| i128::from(zeros >> (i % 64) & 1);
            let mut operand = vec![0; shift];
            let mut target = vec![0; shift];
            for (i, (a, b)) in raw.iter().enumerate() {
                operand.extend(store(a * keep(i), size));
                target.extend(store(b * keep(i + 1), size));
            }
            for op in INTEGERS {
                let mut result = target.clone();
                apply(op, basic, Spacing::Memory, &operand[shift..], &mut result[shift..], left).unwrap();
                let values = operand[shift..].chunks(size).zip(target[shift..].chunks(size));
                let expected: Vec<u8> =
                    values.flat_map(|(o, t)| store(naive(op, load(o, signed), load(t, signed)), size)).collect();
                prop_assert_eq!(&result[shift..], &expected, "{} {}", op.name(), basic.name());
            }
        }
    }

    #[test]
    fn truths(raw in vec((0..3i128, 0..3i128), 0..70)) {
        for basic in of_kind(&[Kind::Logical, Kind::Bool]) {
            let size = basic.size();
            let operand: Vec<u8> = raw.iter().flat_map(|(a, _)| store(*a, size)).collect();
            let target: Vec<u8> = raw.iter().flat_map(|(_, b)| store(*b, size)).collect();
            for op in [Predefined::Land, Predefined::Lor, Predefined::Lxor] {
                let mut result = target.clone();
                apply(op, basic, Spacing::Packed, &operand, &mut result, true).unwrap();
                let expected: Vec<u8> = raw.iter().flat_map(|(a, b)| store(naive(op, *a, *b), size)).collect();
                prop_assert_eq!(result, expected, "{} {}", op.name(), basic.name());
            }
        }
    }

    #[test]
    fn floats(raw in vec(any::<(f64, f64)>(), 0..70)) {
        type Case = (Predefined, fn(f64, f64) -> f64, fn(f32, f32) -> f32);
        let cases: [Case; 4] = [
            (Predefined::Sum, |a, b| a + b, |a, b| a + b),
            (Predefined::Prod, |a, b| a * b, |a, b| a * b),
            (Predefined::Min, f64::min, f32::min),
            (Predefined::Max, f64::max, f32::max),
        ];
        for (op, wide, narrow) in cases {
            for basic in [Basic::Double, Basic::FortranDoublePrecision, Basic::Real8] {
                let operand: Vec<u8> = raw.iter().flat_map(|p| p.0.to_ne_bytes()).collect();
                let mut target: Vec<u8> = raw.iter().flat_map(|p| p.1.to_ne_bytes()).collect();
                apply(op, basic, Spacing::Memory, &operand, &mut target, true).unwrap();
                for (t, (a, b)) in target.chunks(8).zip(&raw) {
                    prop_assert!(same(f64::from_ne_bytes(t.try_into().unwrap()), wide(*a, *b)));
                }
            }
            for basic in [Basic::Float, Basic::FortranReal, Basic::Real4] {
                let operand: Vec<u8> = raw.iter().flat_map(|p| (p.0 as f32).to_ne_bytes()).collect();
                let mut target: Vec<u8> = raw.iter().flat_map(|p| (p.1 as f32).to_ne_bytes()).collect();
                apply(op, basic, Spacing::Memory, &operand, &mut target, false).unwrap();
                for (t, (a, b)) in target.chunks(4).zip(&raw) {
                    let result = f32::from_ne_bytes(t.try_into().unwrap());
                    prop_assert!(same(result.into(), narrow(*a as f32, *b as f32).into()));
                }
            }
        }
    }

    #[test]
    fn complex_numbers(raw in vec((digit(), digit(), digit(), digit()), 0..20)) {
        for (op, basic) in [Predefined::Sum, Predefined::Prod].iter().flat_map(|op| of_kind(&[Kind::Complex]).into_iter().map(move |b| (*op, b))) {
            let operand: Vec<u8> = raw.iter().flat_map(|v| [real(basic, v.0), real(basic, v.1)].concat()).collect();
            let mut target: Vec<u8> = raw.iter().flat_map(|v| [real(basic, v.2), real(basic, v.3)].concat()).collect();
            apply(op, basic, Spacing::Memory, &operand, &mut target, true).unwrap();
            let expected: Vec<u8> = raw.iter().flat_map(|&(a, b, c, d)| {
                let [a, b, c, d] = [a, b, c, d].map(i16::from);
                let (r, i) = if op == Predefined::Sum { (a + c, b + d) } else { (a * c - b * d, a * d + b * c) };
                [real(basic, r), real(basic, i)].concat()
            }).collect();
            prop_assert_eq!(target, expected, "{} {}", op.name(), basic.name());
        }
    }

    #[test]
    fn located_values(raw in vec((-3..3i8, 0..5u8, -3..3i8, 0..5u8), 0..20), packed in any::<bool>()) {
        let spacing = if packed { Spacing::Packed } else { Spacing::Memory };
        for basic in ALL.iter().copied() {
            let Kind::Pair(value, index) = basic.kind() else { continue };
            for op in [Predefined::Minloc, Predefined::Maxloc] {
                let operand: Vec<u8> = raw.iter().flat_map(|v| pair(basic, value, index, spacing, v.0, v.1)).collect();
                let mut target: Vec<u8> = raw.iter().flat_map(|v| pair(basic, value, index, spacing, v.2, v.3)).collect();
                if apply(op, basic, spacing, &operand, &mut target, true).is_err() {
                    prop_assert!(value == Basic::LongDouble && !cfg!(target_arch = "x86_64"));
                    continue;
                }
                let expected: Vec<u8> = raw.iter().flat_map(|&(a, i, b, j)| {
                    let better = if op == Predefined::Minloc { a < b } else { a > b };
                    let (v, at) = if a == b { (a, i.min(j)) } else if better { (a, i) } else { (b, j) };
                    pair(basic, value, index, spacing, v, at)
                }).collect();
                prop_assert_eq!(&target, &expected, "{} {}", op.name(), basic.name());
            }
        }
    }
}

/// Equal, or both not a number.
fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan()
}

/// A small integer but zero, whose sign would depend on the order of multiplications.
fn digit() -> impl Strategy<Value = i8> {
    prop_oneof![-9..0i8, 1..10i8]
}

/// A small integer as a component of a complex type, or as a floating type.
fn real(basic: Basic, value: impl Into<i16>) -> Vec<u8> {
    let value: i16 = value.into();
    let size = if basic.kind() == Kind::Complex {
        basic.size() / 2
    } else {
        basic.size()
    };
    match size {
        2 => half(value).to_ne_bytes().to_vec(),
        4 => f32::from(value).to_ne_bytes().to_vec(),
        8 => f64::from(value).to_ne_bytes().to_vec(),
        _ if is_quad(basic) => quad(value).to_ne_bytes().to_vec(),
        _ => extended(value).to_vec(),
    }
}

/// REAL(16) is binary128 everywhere, `long double` is on most machines.
fn is_quad(basic: Basic) -> bool {
    [Basic::Real16, Basic::Complex32].contains(&basic) || !cfg!(target_arch = "x86_64")
}

/// binary128, whose digits and exponent begin with those of binary64.
fn quad(value: i16) -> u128 {
    let bits = f64::from(value).to_bits();
    let (sign, exponent) = (u128::from(bits >> 63), u128::from((bits >> 52) & 0x7ff));
    match value {
        0 => 0,
        _ => (sign << 127) | ((exponent + 16383 - 1023) << 112) | (u128::from(bits & ((1 << 52) - 1)) << 60),
    }
}

fn half(value: i16) -> u16 {
    let bits = f32::from(value).to_bits();
    if value == 0 {
        0
    } else {
        ((bits >> 16 & 0x8000) + (((bits >> 23 & 0xff) - 112) << 10) + (bits >> 13 & 0x3ff)) as u16
    }
}

/// The 80-bit format: sign and exponent, then a mantissa with its leading digit.
fn extended(value: i16) -> [u8; 16] {
    let mut bytes = [0; 16];
    if value != 0 {
        let zeros = u64::from(value.unsigned_abs()).leading_zeros();
        let sign = if value < 0 { 0x8000 } else { 0 };
        bytes[..8].copy_from_slice(&(u64::from(value.unsigned_abs()) << zeros).to_le_bytes());
        bytes[8..10].copy_from_slice(&(sign + 16383 + 63 - zeros as u16).to_le_bytes());
    }
    bytes
}

fn pair(basic: Basic, value: Basic, index: Basic, spacing: Spacing, v: i8, i: u8) -> Vec<u8> {
    let number = |b: Basic, n: i16| {
        if b.kind() == Kind::Floating {
            real(b, n)
        } else {
            store(i128::from(n), b.size())
        }
    };
    let mut bytes = number(value, v.into());
    if spacing == Spacing::Memory {
        bytes.resize(basic.index_offset(), 0);
    }
    bytes.extend(number(index, i.into()));
    if spacing == Spacing::Memory {
        bytes.resize(basic.extent(), 0);
    }
    bytes
}

#[test]
#[cfg(target_arch = "x86_64")]
fn long_double_keeps_its_64_digits() {
    // 1 + 2^-63 needs all of them; in double it would be 1.
    let one = extended(1);
    let mut tiny = extended(1);
    tiny[8..10].copy_from_slice(&(16383u16 - 63).to_le_bytes());
    let mut target = one;
    apply(
        Predefined::Sum,
        Basic::LongDouble,
        Spacing::Memory,
        &tiny,
        &mut target,
        true,
    )
    .unwrap();
    assert_eq!(target[..8], 0x8000_0000_0000_0001u64.to_le_bytes());
    let mut largest = one;
    apply(
        Predefined::Max,
        Basic::LongDouble,
        Spacing::Memory,
        &target,
        &mut largest,
        false,
    )
    .unwrap();
    assert_eq!(largest, target);
    for (op, result) in [
        (Predefined::Sum, 5),
        (Predefined::Prod, -14),
        (Predefined::Min, -2),
        (Predefined::Max, 7),
    ] {
        let mut target = extended(7);
        apply(op, Basic::LongDouble, Spacing::Memory, &extended(-2), &mut target, true).unwrap();
        assert_eq!(target, extended(result), "{}", op.name());
    }
}

#[test]
fn what_the_standard_does_not_define_is_refused() {
    let refused = [
        (Predefined::Sum, Basic::Char),
        (Predefined::Sum, Basic::Byte),
        (Predefined::Sum, Basic::Packed),
        (Predefined::Sum, Basic::Bool),
        (Predefined::Max, Basic::DoubleComplex),
        (Predefined::Band, Basic::Float),
        (Predefined::Land, Basic::Double),
        (Predefined::Minloc, Basic::Int),
        (Predefined::Sum, Basic::TwoInt),
        (Predefined::Max, Basic::Wchar),
    ];
    for (op, basic) in refused {
        assert_eq!(op.on(basic).err(), Some(OpError::Undefined { op, basic }));
    }
    let text = Predefined::Sum.on(Basic::Char).unwrap_err().to_string();
    assert!(text.contains("MPI_SUM") && text.contains("MPI_CHAR"), "{text}");
}

#[test]
fn everything_that_is_defined_is_implemented() {
    for op in Predefined::ALL {
        for &basic in ALL {
            let missing = matches!(op.on(basic), Err(OpError::Unsupported { .. }));
            assert!(!missing, "{} {}", op.name(), basic.name());
        }
    }
}

#[test]
fn replace_takes_the_operand_and_no_op_leaves_the_target() {
    for &basic in ALL {
        let operand = vec![1; 3 * basic.extent()];
        let mut target = vec![2; 3 * basic.extent()];
        apply(Predefined::NoOp, basic, Spacing::Memory, &operand, &mut target, true).unwrap();
        assert!(target.iter().all(|&b| b == 2));
        apply(Predefined::Replace, basic, Spacing::Memory, &operand, &mut target, true).unwrap();
        assert_eq!(target, operand, "{}", basic.name());
    }
}

#[test]
fn a_last_element_without_its_padding_counts() {
    let basic = Basic::DoubleInt;
    let mut target = pair(basic, Basic::Double, Basic::Int, Spacing::Memory, 5, 1);
    let mut operand = pair(basic, Basic::Double, Basic::Int, Spacing::Memory, 3, 2);
    operand.truncate(12);
    target.truncate(12);
    apply(Predefined::Minloc, basic, Spacing::Memory, &operand, &mut target, true).unwrap();
    assert_eq!(target, operand);
}
