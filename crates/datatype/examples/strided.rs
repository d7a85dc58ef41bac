// SPDX-License-Identifier: Apache-2.0
//! Packing and unpacking some layouts, against loops written by hand: `cargo run --release -p isthmus-datatype
//! --example strided`.

use std::hint::black_box;
use std::time::Instant;

use isthmus_datatype::op::{Predefined, Spacing, apply};
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_datatype::{Basic, Datatype, Order, Packer, TypeError, Unpacker};

/// Bytes that a layout moves in one go.
const BYTES: usize = 1 << 20;

#[expect(clippy::print_stdout, reason = "an example program")]
fn main() -> Result<(), TypeError> {
    let double = Datatype::of(Basic::Double);
    let n = BYTES / 8;
    let row = |name: &str, kind: &Datatype, hand: &dyn Fn(&[u8], &mut [u8])| -> Result<(), TypeError> {
        let [pack, unpack, hand] = measure(kind, hand)?;
        println!("{name:30} pack {pack:6.2}  unpack {unpack:6.2}  loop {hand:6.2} GB/s");
        Ok(())
    };
    row(
        "vector 1 double of 2",
        &Datatype::vector(n as i64, 1, 2, &double)?,
        &|from, to| every(from, to, 8, 16),
    )?;
    row(
        "vector 4 doubles of 8",
        &Datatype::vector(n as i64 / 4, 4, 8, &double)?,
        &|from, to| every(from, to, 32, 64),
    )?;
    row(
        "vector 3 doubles of 5",
        &Datatype::vector(n as i64 / 3, 3, 5, &double)?,
        &|from, to| every(from, to, 24, 40),
    )?;
    let inner = Datatype::hvector(8, 1, 16, &double)?;
    let nested = Datatype::hvector(n as i64 / 8, 1, 160, &inner)?;
    row("8 doubles of 2, nested", &nested, &|from, to| {
        let to = to.chunks_exact_mut(64);
        from.chunks(160).zip(to).for_each(|(from, to)| every(from, to, 8, 16));
    })?;
    let places: Vec<i64> = (0..n as i64).map(|i| 2 * i + ((i * 7919) >> 5) % 2).collect();
    row(
        "indexed 1 double",
        &Datatype::indexed_block(1, &places, &double)?,
        &|from, to| {
            to.chunks_exact_mut(8)
                .zip(&places)
                .for_each(|(to, &at)| to.copy_from_slice(&from[at as usize * 8..][..8]));
        },
    )?;
    let member = Datatype::structure(
        &[1, 1, 1],
        &[0, 8, 24],
        &[double.clone(), Datatype::of(Basic::Int), double.clone()],
    )?;
    row(
        "struct of 20 bytes in 32",
        &Datatype::contiguous_type(n as i64 / 3, &member)?,
        &|from, to| {
            for (from, to) in from.chunks(32).zip(to.chunks_exact_mut(20)) {
                to[..12].copy_from_slice(&from[..12]);
                to[12..].copy_from_slice(&from[24..32]);
            }
        },
    )?;
    let face = Datatype::subarray(&[64, 256, 64], &[64, 256, 8], &[0, 0, 3], Order::C, &double)?;
    row("face of a 3-D array", &face, &|from, to| every(from, to, 64, 512))?;
    reductions();
    Ok(())
}

/// The loop that a programmer would write: `length` bytes of every `stride`.
fn every(from: &[u8], to: &mut [u8], length: usize, stride: usize) {
    let copy = |(from, to): (&[u8], &mut [u8])| to.copy_from_slice(&from[..length]);
    match length {
        8 => from
            .chunks(stride)
            .zip(to.chunks_exact_mut(8))
            .for_each(|(from, to)| to.copy_from_slice(&from[..8])),
        32 => from
            .chunks(stride)
            .zip(to.chunks_exact_mut(32))
            .for_each(|(from, to)| to.copy_from_slice(&from[..32])),
        _ => from.chunks(stride).zip(to.chunks_exact_mut(length)).for_each(copy),
    }
}

/// GB/s of packing, unpacking and the loop, in pieces of 64 KiB as the engine does it.
fn measure(kind: &Datatype, hand: &dyn Fn(&[u8], &mut [u8])) -> Result<[f64; 3], TypeError> {
    let (low, high) = kind.window(1)?;
    let mut memory = vec![1u8; (high - low) as usize];
    let mut packed = vec![0u8; kind.size() as usize];
    let origin = memory.as_mut_ptr().wrapping_offset(-low);
    // SAFETY: the memory outlives the packer, which alone uses it meanwhile.
    let reading = unsafe { ReadMemory::new(origin, low, high) };
    let mut packer = Packer::new(kind, 1, reading)?;
    let pack = rate(packed.len(), || {
        packer.seek(0);
        packed
            .chunks_mut(65536)
            .for_each(|piece| assert_eq!(packer.pack(piece), piece.len()));
        black_box(&packed);
    });
    // SAFETY: the memory outlives the unpacker, which alone uses it meanwhile.
    let writing = unsafe { WriteMemory::new(origin, low, high) };
    let mut unpacker = Unpacker::new(kind, 1, writing)?;
    let unpack = rate(packed.len(), || {
        unpacker.seek(0);
        packed
            .chunks(65536)
            .for_each(|piece| assert_eq!(unpacker.unpack(piece), piece.len()));
    });
    let by_hand = rate(packed.len(), || {
        hand(
            black_box(&memory[(kind.true_lower_bound() as isize - low) as usize..]),
            &mut packed,
        );
        black_box(&packed);
    });
    Ok([pack, unpack, by_hand])
}

#[expect(clippy::print_stdout, reason = "an example program")]
fn reductions() {
    let operand = vec![1u8; 65536];
    let mut target = vec![1u8; 65536];
    for basic in [
        Basic::Double,
        Basic::Float,
        Basic::Int,
        Basic::Int8,
        Basic::DoubleComplex,
        Basic::LongDouble,
    ] {
        for op in [Predefined::Sum, Predefined::Max] {
            if op.on(basic).is_ok() {
                let speed = rate(operand.len(), || {
                    // Checked above.
                    let _ = apply(op, basic, Spacing::Memory, black_box(&operand), &mut target, true);
                });
                println!("{:8} {:25} {speed:6.2} GB/s", op.name(), basic.name());
            }
        }
    }
}

/// The best of some runs: GB/s.
fn rate(bytes: usize, mut work: impl FnMut()) -> f64 {
    let once = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    let best = (0..60).map(|_| once(&mut work)).fold(f64::MAX, f64::min);
    bytes as f64 / best / 1e9
}
