// SPDX-License-Identifier: Apache-2.0
//! IEEE binary128 (MPI_REAL16; `long double` of most machines but x86), computed with integers: correctly rounded, some
//! hundred times slower than what a processor computes by itself.

use super::element::{Element, Number, Ordered, Real};
use crate::float::{self, Float};

/// A binary128 value, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quad(pub(super) u128);

impl Quad {
    fn number(self) -> float::Number {
        Float::Quad.decode(self.0)
    }

    fn of(number: float::Number) -> Self {
        let infinite = float::Number {
            value: float::Value::Infinite,
            ..number
        };
        let rounded = Float::Quad.encode(number).or_else(|_| Float::Quad.encode(infinite));
        Self(rounded.unwrap_or_default())
    }
}

impl Element for Quad {
    const SIZE: usize = 16;

    fn read(bytes: &[u8]) -> Self {
        Self(u128::read(bytes))
    }

    fn write(self, bytes: &mut [u8]) {
        self.0.write(bytes);
    }
}

impl Number for Quad {
    fn plus(self, other: Self) -> Self {
        Self::of(self.number().plus(other.number()))
    }

    fn times(self, other: Self) -> Self {
        Self::of(self.number().times(other.number()))
    }
}

impl Real for Quad {
    fn minus(self, other: Self) -> Self {
        Self::of(self.number().plus(other.number().negated()))
    }
}

impl Ordered for Quad {
    fn less(self, other: Self) -> bool {
        self.number()
            .compare(other.number())
            .is_some_and(std::cmp::Ordering::is_lt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quad(value: f64) -> Quad {
        Quad::of(Float::Double.decode(value.to_bits().into()))
    }

    #[test]
    fn computes_beyond_double() {
        let tiny = quad(2f64.powi(-112));
        let above = quad(1.0).plus(tiny);
        assert_eq!(above.0, (0x3fff << 112) | 1, "the last digit");
        assert_eq!(above.minus(quad(1.0)), tiny);
        assert_eq!(quad(1.0).plus(quad(2f64.powi(-113))), quad(1.0), "tie to even");
        assert_eq!(
            above.plus(quad(2f64.powi(-113))).0,
            (0x3fff << 112) | 2,
            "tie to even, upwards"
        );
        assert_eq!(above.times(above).0, (0x3fff << 112) | 2);
        assert!(quad(1.0).less(above) && !above.less(above) && quad(-2.0).less(quad(-1.0)));
    }

    #[test]
    fn ends_of_the_range() {
        let largest = Quad((0x7ffe << 112) | ((1 << 112) - 1));
        assert_eq!(largest.plus(largest).0, 0x7fff << 112, "infinity");
        let smallest = Quad(1);
        assert_eq!(smallest.times(quad(0.5)).0, 0);
        assert_eq!(smallest.plus(smallest).0, 2);
        assert!(!Quad(0x7fff << 112 | 1).less(smallest) && !smallest.less(Quad(0x7fff << 112 | 1)));
    }
}
