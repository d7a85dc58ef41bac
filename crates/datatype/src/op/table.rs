// SPDX-License-Identifier: Apache-2.0
//! Which operation on which type is which loop.

use std::sync::OnceLock;

use super::element::{Bits, Complex, Number, Ordered, Truth};
#[cfg(target_arch = "x86_64")]
use super::extended::Extended;
use super::half::Half;
use super::kernels::{
    Band, Bor, Bxor, Kernel, Land, Lor, Lxor, Max, Min, Prod, Sum, elementwise, maxloc, minloc, nothing, replace,
};
use super::predefined::{OpError, Predefined};
use super::quad::Quad;
use crate::basic::{ALL, Basic, Kind};

/// Low bytes of handle values, which tell operations and types apart.
const BYTES: usize = 256;

/// The loop for an operation on a type, for whoever asks again and again; `None`: [`find`] says why there is none.
#[inline]
pub(super) fn known(op: Predefined, basic: Basic) -> Option<Kernel> {
    static FOUND: OnceLock<Box<[Option<Kernel>]>> = OnceLock::new();
    let all = match FOUND.get() {
        Some(all) => all,
        None => FOUND.get_or_init(all_kernels),
    };
    all.get(place(op, basic)).copied().flatten()
}

/// Handle values of operations are below 64.
#[inline]
fn place(op: Predefined, basic: Basic) -> usize {
    op.handle() as usize % 64 * BYTES + basic.handle() as usize % BYTES
}

#[cold]
fn all_kernels() -> Box<[Option<Kernel>]> {
    let mut all = vec![None; 64 * BYTES];
    for op in Predefined::ALL {
        for &basic in ALL {
            all[place(op, basic)] = find(op, basic).ok();
        }
    }
    all.into()
}

/// The same, or why there is none.
pub(super) fn find(op: Predefined, basic: Basic) -> Result<Kernel, OpError> {
    if !defined(op, basic.kind()) {
        return Err(OpError::Undefined { op, basic });
    }
    let kernel = match op {
        Predefined::Replace => Some(replace as Kernel),
        Predefined::NoOp => Some(nothing as Kernel),
        _ => computing(op, basic),
    };
    kernel.ok_or(OpError::Unsupported { op, basic })
}

/// MPI 5.0, section 6.9.2. Beyond it, like other implementations, the logical operations take all integers.
fn defined(op: Predefined, kind: Kind) -> bool {
    use Predefined as P;
    let integer = matches!(
        kind,
        Kind::Signed | Kind::Unsigned | Kind::FortranInteger | Kind::Address
    );
    match op {
        P::Min | P::Max => integer || kind == Kind::Floating,
        P::Sum | P::Prod => integer || matches!(kind, Kind::Floating | Kind::Complex),
        P::Band | P::Bor | P::Bxor => integer || kind == Kind::Byte,
        P::Land | P::Lor | P::Lxor => integer || matches!(kind, Kind::Logical | Kind::Bool),
        P::Minloc | P::Maxloc => matches!(kind, Kind::Pair(..)),
        P::Replace | P::NoOp => true,
    }
}

fn computing(op: Predefined, basic: Basic) -> Option<Kernel> {
    match (basic.kind(), basic.size()) {
        (Kind::Signed | Kind::FortranInteger | Kind::Address, size) => signed(op, size),
        (Kind::Unsigned | Kind::Byte, size) => unsigned(op, size),
        (Kind::Logical | Kind::Bool, size) => truths(op, size),
        (Kind::Floating, size) => floating(op, basic, size),
        (Kind::Complex, size) => complexes(op, basic, size),
        (Kind::Pair(value, index), _) => pairs(op, value, index),
        (Kind::Character | Kind::Packed, _) => None,
    }
}

fn signed(op: Predefined, size: usize) -> Option<Kernel> {
    match size {
        1 => integer::<i8>(op),
        2 => integer::<i16>(op),
        4 => integer::<i32>(op),
        8 => integer::<i64>(op),
        16 => integer::<i128>(op),
        _ => None,
    }
}

fn unsigned(op: Predefined, size: usize) -> Option<Kernel> {
    match size {
        1 => integer::<u8>(op),
        2 => integer::<u16>(op),
        4 => integer::<u32>(op),
        8 => integer::<u64>(op),
        _ => None,
    }
}

fn truths(op: Predefined, size: usize) -> Option<Kernel> {
    match size {
        1 => truth::<u8>(op),
        2 => truth::<u16>(op),
        4 => truth::<u32>(op),
        8 => truth::<u64>(op),
        16 => truth::<u128>(op),
        _ => None,
    }
}

fn floating(op: Predefined, basic: Basic, size: usize) -> Option<Kernel> {
    match (basic, size) {
        (_, 2) => real::<Half>(op),
        (_, 4) => real::<f32>(op),
        (_, 8) => real::<f64>(op),
        #[cfg(target_arch = "x86_64")]
        (Basic::LongDouble, _) => real::<Extended>(op),
        (_, 16) => real::<Quad>(op),
        _ => None,
    }
}

fn complexes(op: Predefined, basic: Basic, size: usize) -> Option<Kernel> {
    match (basic, size) {
        (_, 4) => number::<Complex<Half>>(op),
        (_, 8) => number::<Complex<f32>>(op),
        (_, 16) => number::<Complex<f64>>(op),
        #[cfg(target_arch = "x86_64")]
        (Basic::LongDoubleComplex | Basic::CxxLongDoubleComplex, _) => number::<Complex<Extended>>(op),
        (_, 32) => number::<Complex<Quad>>(op),
        _ => None,
    }
}

fn pairs(op: Predefined, value: Basic, index: Basic) -> Option<Kernel> {
    match (value.kind(), value.size(), index.kind(), index.size()) {
        (Kind::Floating, 4, Kind::Floating, 4) => located::<f32, f32>(op),
        (Kind::Floating, 8, Kind::Floating, 8) => located::<f64, f64>(op),
        (Kind::Floating, 4, _, 4) => located::<f32, i32>(op),
        (Kind::Floating, 8, _, 4) => located::<f64, i32>(op),
        (Kind::Signed | Kind::FortranInteger, 2, _, 4) => located::<i16, i32>(op),
        (Kind::Signed | Kind::FortranInteger, 4, _, 4) => located::<i32, i32>(op),
        (Kind::Signed | Kind::FortranInteger, 8, _, 4) => located::<i64, i32>(op),
        #[cfg(target_arch = "x86_64")]
        (Kind::Floating, 16, _, 4) => located::<Extended, i32>(op),
        #[cfg(not(target_arch = "x86_64"))]
        (Kind::Floating, 16, _, 4) => located::<Quad, i32>(op),
        _ => None,
    }
}

fn integer<E: Number + Ordered + Bits + Truth>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Band => Some(elementwise::<E, Band>),
        Predefined::Bor => Some(elementwise::<E, Bor>),
        Predefined::Bxor => Some(elementwise::<E, Bxor>),
        _ => truth::<E>(op).or_else(|| real::<E>(op)),
    }
}

fn real<E: Number + Ordered>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Min => Some(elementwise::<E, Min>),
        Predefined::Max => Some(elementwise::<E, Max>),
        _ => number::<E>(op),
    }
}

fn number<E: Number>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Sum => Some(elementwise::<E, Sum>),
        Predefined::Prod => Some(elementwise::<E, Prod>),
        _ => None,
    }
}

fn truth<E: Truth>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Land => Some(elementwise::<E, Land>),
        Predefined::Lor => Some(elementwise::<E, Lor>),
        Predefined::Lxor => Some(elementwise::<E, Lxor>),
        _ => None,
    }
}

fn located<V: Ordered, I: Ordered>(op: Predefined) -> Option<Kernel> {
    match op {
        Predefined::Minloc => Some(minloc::<V, I>),
        Predefined::Maxloc => Some(maxloc::<V, I>),
        _ => None,
    }
}
