// SPDX-License-Identifier: Apache-2.0
//! IEEE binary16 (MPI_REAL2): computed in binary32 and rounded once per operation, which is exact enough to equal the
//! correctly rounded result for sums and products (24 >= 2 * 11 + 2 digits).

use super::element::{Element, Number, Ordered, Real};

/// A binary16 value, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Half(pub(super) u16);

impl Half {
    pub(super) fn wide(self) -> f32 {
        let sign = if self.0 & 0x8000 == 0 { 1.0 } else { -1.0 };
        let (exponent, mantissa) = (i32::from((self.0 >> 10) & 0x1f), f32::from(self.0 & 0x3ff));
        sign * match exponent {
            0 => mantissa * (-24f32).exp2(),
            0x1f if mantissa == 0.0 => f32::INFINITY,
            0x1f => f32::NAN,
            _ => (1024.0 + mantissa) * ((exponent - 25) as f32).exp2(),
        }
    }

    /// Rounds to nearest, ties to even.
    pub(super) fn narrow(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 {
            return Self(sign | 0x7e00);
        }
        if magnitude >= 0x4780_0000 {
            return Self(sign | 0x7c00);
        }
        let exponent = (magnitude >> 23) as i32 - 127;
        if exponent < -25 {
            return Self(sign);
        }
        let mantissa = magnitude & 0x7f_ffff | 0x80_0000;
        // Digits that do not fit: 13 for normal results, more for subnormal ones.
        let shift = 13 + (-14 - exponent).max(0) as u32;
        let kept = mantissa >> shift;
        let (rest, half) = (mantissa & ((1 << shift) - 1), 1u32 << (shift - 1));
        let up = u32::from(rest > half || rest == half && kept & 1 == 1);
        // The leading digit of a normal number adds the last one to the exponent; a carry runs into it as it should.
        let base = (exponent.max(-14) + 14) as u32 * 0x400;
        Self(sign | (base + kept + up) as u16)
    }
}

impl Element for Half {
    const SIZE: usize = 2;

    fn read(bytes: &[u8]) -> Self {
        Self(u16::read(bytes))
    }

    fn write(self, bytes: &mut [u8]) {
        self.0.write(bytes);
    }
}

impl Number for Half {
    fn plus(self, other: Self) -> Self {
        Self::narrow(self.wide() + other.wide())
    }

    fn times(self, other: Self) -> Self {
        Self::narrow(self.wide() * other.wide())
    }
}

impl Real for Half {
    fn minus(self, other: Self) -> Self {
        Self::narrow(self.wide() - other.wide())
    }
}

impl Ordered for Half {
    fn less(self, other: Self) -> bool {
        self.wide() < other.wide()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back() {
        // Interpreted, all of them take minutes.
        for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 97 } else { 1 }) {
            let half = Half(bits);
            if half.wide().is_nan() {
                assert!(Half::narrow(half.wide()).wide().is_nan());
            } else {
                assert_eq!(Half::narrow(half.wide()), half, "{bits:#x}");
            }
        }
    }

    #[test]
    fn rounds_to_nearest_even() {
        assert_eq!(Half::narrow(1.0).0, 0x3c00);
        assert_eq!(Half::narrow(1.0 + 1.0 / 2048.0).0, 0x3c00, "tie to even");
        assert_eq!(Half::narrow(1.0 + 3.0 / 2048.0).0, 0x3c02, "tie to even, upwards");
        assert_eq!(Half::narrow(1.0 + 1.1 / 2048.0).0, 0x3c01);
        assert_eq!(Half::narrow(65504.0).0, 0x7bff);
        assert_eq!(Half::narrow(65519.9).0, 0x7bff);
        assert_eq!(Half::narrow(65520.0).0, 0x7c00);
        assert_eq!(Half::narrow((-25f32).exp2()).0, 0, "half of the smallest, tie to even");
        assert_eq!(Half::narrow((-25f32).exp2() * 1.01).0, 1);
    }
}
