// SPDX-License-Identifier: Apache-2.0
//! The loops behind the operations: one generic loop, one type per operation.

use super::element::{Bits, Element, Number, Ordered, Truth};
use super::predefined::Spacing;
use crate::basic::Basic;
use crate::raw::wide::with_long_vectors;

/// Applies one operation to as many elements as both slices hold.
pub(super) type Kernel = fn(Basic, Spacing, &[u8], &mut [u8], bool);

/// An operation on two values, the left one first in MPI's order of ranks.
pub(super) trait Binary<E> {
    /// The result.
    fn combine(left: E, right: E) -> E;
}

pub(super) struct Sum;
pub(super) struct Prod;
pub(super) struct Min;
pub(super) struct Max;
pub(super) struct Band;
pub(super) struct Bor;
pub(super) struct Bxor;
pub(super) struct Land;
pub(super) struct Lor;
pub(super) struct Lxor;

impl<E: Number> Binary<E> for Sum {
    #[inline]
    fn combine(left: E, right: E) -> E {
        left.plus(right)
    }
}

impl<E: Number> Binary<E> for Prod {
    #[inline]
    fn combine(left: E, right: E) -> E {
        left.times(right)
    }
}

impl<E: Ordered> Binary<E> for Min {
    #[inline]
    fn combine(left: E, right: E) -> E {
        if right.less(left) { right } else { left }
    }
}

impl<E: Ordered> Binary<E> for Max {
    #[inline]
    fn combine(left: E, right: E) -> E {
        if left.less(right) { right } else { left }
    }
}

impl<E: Bits> Binary<E> for Band {
    #[inline]
    fn combine(left: E, right: E) -> E {
        left.and(right)
    }
}

impl<E: Bits> Binary<E> for Bor {
    #[inline]
    fn combine(left: E, right: E) -> E {
        left.or(right)
    }
}

impl<E: Bits> Binary<E> for Bxor {
    #[inline]
    fn combine(left: E, right: E) -> E {
        left.xor(right)
    }
}

impl<E: Truth> Binary<E> for Land {
    #[inline]
    fn combine(left: E, right: E) -> E {
        E::from_truth(left.truth() & right.truth())
    }
}

impl<E: Truth> Binary<E> for Lor {
    #[inline]
    fn combine(left: E, right: E) -> E {
        E::from_truth(left.truth() | right.truth())
    }
}

impl<E: Truth> Binary<E> for Lxor {
    #[inline]
    fn combine(left: E, right: E) -> E {
        E::from_truth(left.truth() ^ right.truth())
    }
}

/// Fewer bytes than this are done before longer vectors are of use.
const LONG: usize = 128;

/// The loop for values that follow each other without gaps.
pub(super) fn elementwise<E: Element, O: Binary<E>>(
    _: Basic,
    _: Spacing,
    operand: &[u8],
    target: &mut [u8],
    operand_is_left: bool,
) {
    if operand.len() < LONG {
        each::<E, O>(operand, target, operand_is_left);
    } else {
        many::<E, O>(operand, target, operand_is_left);
    }
}

/// A function of its own, so that few elements do not pay for it.
#[inline(never)]
fn many<E: Element, O: Binary<E>>(operand: &[u8], target: &mut [u8], operand_is_left: bool) {
    with_long_vectors(
        #[inline(always)]
        || each::<E, O>(operand, target, operand_is_left),
    );
}

#[inline(always)]
fn each<E: Element, O: Binary<E>>(operand: &[u8], target: &mut [u8], operand_is_left: bool) {
    let pairs = operand.chunks_exact(E::SIZE).zip(target.chunks_exact_mut(E::SIZE));
    // Two loops, so that each is simple enough for the compiler to vectorize.
    if operand_is_left {
        pairs.for_each(|(o, t)| O::combine(E::read(o), E::read(t)).write(t));
    } else {
        pairs.for_each(|(o, t)| O::combine(E::read(t), E::read(o)).write(t));
    }
}

/// MINLOC: the smaller value with its index; of equal values the smaller index.
pub(super) fn minloc<V: Ordered, I: Ordered>(b: Basic, s: Spacing, operand: &[u8], target: &mut [u8], _: bool) {
    located::<V, I>(b, s, operand, target, |new, old| new.less(old));
}

/// MAXLOC: the larger value with its index; of equal values the smaller index.
pub(super) fn maxloc<V: Ordered, I: Ordered>(b: Basic, s: Spacing, operand: &[u8], target: &mut [u8], _: bool) {
    located::<V, I>(b, s, operand, target, |new, old| old.less(new));
}

fn located<V: Ordered, I: Ordered>(
    basic: Basic,
    spacing: Spacing,
    operand: &[u8],
    target: &mut [u8],
    better: fn(V, V) -> bool,
) {
    let (index, stride) = match spacing {
        Spacing::Memory => (basic.index_offset(), basic.extent()),
        Spacing::Packed => (V::SIZE, V::SIZE + I::SIZE),
    };
    let end = index + I::SIZE;
    for (o, t) in operand.chunks(stride).zip(target.chunks_mut(stride)) {
        if o.len() < end || t.len() < end {
            return;
        }
        let (value, other) = (V::read(&o[..V::SIZE]), V::read(&t[..V::SIZE]));
        let (place, other_place) = (I::read(&o[index..end]), I::read(&t[index..end]));
        if better(value, other) {
            value.write(&mut t[..V::SIZE]);
            place.write(&mut t[index..end]);
        } else if !better(other, value) && place.less(other_place) {
            place.write(&mut t[index..end]);
        }
    }
}

/// REPLACE.
pub(super) fn replace(basic: Basic, spacing: Spacing, operand: &[u8], target: &mut [u8], _: bool) {
    let (stride, span) = match (spacing, basic.index_size()) {
        (Spacing::Packed, _) | (_, 0) => (basic.size(), basic.size()),
        (Spacing::Memory, index) => (basic.extent(), basic.index_offset() + index),
    };
    let length = operand.len().min(target.len());
    let whole = (length + stride - span) / stride;
    let bytes = (whole * stride).min(length);
    target[..bytes].copy_from_slice(&operand[..bytes]);
}

/// NO_OP.
pub(super) fn nothing(_: Basic, _: Spacing, _: &[u8], _: &mut [u8], _: bool) {}
