// SPDX-License-Identifier: Apache-2.0
//! Binary floating point numbers as integers: between the formats of IEEE 754 and the 80-bit format of the x87, and the
//! arithmetic of formats that Rust has no type for. Everything rounds to nearest, ties to even.

use std::cmp::Ordering;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Float {
    /// binary16.
    Half,
    /// binary32.
    Single,
    /// binary64.
    Double,
    /// x87: 64 digits with the leading one written, in the first 10 bytes of a little-endian place.
    Extended,
    /// binary128.
    Quad,
}

/// A number taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) negative: bool,
    pub(crate) value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Zero,
    /// `mantissa / 2^127 * 2^exponent`, bit 127 set.
    Finite {
        exponent: i32,
        mantissa: u128,
    },
    Infinite,
    /// The digits behind the point, beginning at bit 127; the first says quiet.
    NotANumber {
        payload: u128,
    },
}

/// The exponent of a result is above the largest of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange;

const QUIET: Value = Value::NotANumber { payload: 1 << 127 };

impl Float {
    /// Bits of the exponent and digits behind the point.
    const fn widths(self) -> (u32, u32) {
        match self {
            Self::Half => (5, 10),
            Self::Single => (8, 23),
            Self::Double => (11, 52),
            Self::Extended => (15, 63),
            Self::Quad => (15, 112),
        }
    }

    /// Largest exponent; the smallest of normal numbers is `1 - bias`.
    const fn bias(self) -> i32 {
        (1 << (self.widths().0 - 1)) - 1
    }

    /// Takes a number apart; `bits` is the place read as one integer.
    pub(crate) fn decode(self, bits: u128) -> Number {
        let (exponent_bits, digits) = self.widths();
        // The x87 writes the digit before the point; it lies where others have the lowest of the exponent.
        let explicit = u32::from(self == Self::Extended);
        let field = (bits >> (digits + explicit)) as i32 & ((1 << exponent_bits) - 1);
        let fraction = bits & ((1 << digits) - 1);
        let one = explicit == 0 || (bits >> digits) & 1 == 1;
        let value = if field == (1 << exponent_bits) - 1 {
            match (one, fraction) {
                (true, 0) => Value::Infinite,
                (true, _) => Value::NotANumber {
                    payload: fraction << (128 - digits),
                },
                (false, _) => QUIET,
            }
        } else if field == 0 {
            let written = if explicit == 1 && one { 1 << digits } else { 0 };
            subnormal((written | fraction) << (127 - digits), 1 - self.bias())
        } else if one {
            Value::Finite {
                exponent: field - self.bias(),
                mantissa: (1 << 127) | (fraction << (127 - digits)),
            }
        } else {
            // Patterns that the processor refuses to compute with.
            QUIET
        };
        let negative = (bits >> (digits + explicit + exponent_bits)) & 1 == 1;
        Number { negative, value }
    }

    /// Puts a number together, rounded to the digits that the format has; small ones become subnormal or zero.
    pub(crate) fn encode(self, number: Number) -> Result<u128, OutOfRange> {
        let (exponent_bits, digits) = self.widths();
        let explicit = u32::from(self == Self::Extended);
        let all = (1u128 << exponent_bits) - 1;
        let (field, fraction) = match number.value {
            Value::Zero => (0, 0),
            Value::Infinite => (all, 1 << digits),
            Value::NotANumber { payload } => {
                let kept = payload >> (128 - digits);
                let quiet = if kept == 0 { 1 << (digits - 1) } else { kept };
                (all, (1 << digits) | quiet)
            }
            Value::Finite { exponent, mantissa } => self.finite(exponent, mantissa)?,
        };
        let fraction = if explicit == 1 {
            fraction
        } else {
            fraction & ((1 << digits) - 1)
        };
        let shift = digits + explicit;
        Ok((u128::from(number.negative) << (shift + exponent_bits)) | (field << shift) | fraction)
    }

    /// Exponent field and digits, the one before the point included.
    fn finite(self, exponent: i32, mantissa: u128) -> Result<(u128, u128), OutOfRange> {
        let (digits, bias) = (self.widths().1, self.bias());
        let below = (1 - bias).saturating_sub(exponent).max(0) as u32;
        let mut kept = round(mantissa, (127 - digits).saturating_add(below));
        let mut exponent = exponent;
        if kept >> (digits + 1) == 1 {
            kept >>= 1;
            exponent += 1;
        }
        if exponent > bias {
            return Err(OutOfRange);
        }
        let normal = kept >> digits == 1;
        let field = if normal { exponent.max(1 - bias) + bias } else { 0 };
        Ok((field as u128, kept))
    }

    /// Bytes that hold the number, without padding.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Half => 2,
            Self::Single => 4,
            Self::Double => 8,
            Self::Extended => 10,
            Self::Quad => 16,
        }
    }

    /// Decimal digits of thought, for messages: a hexadecimal number of C.
    pub(crate) fn text(self, bits: u128) -> String {
        let number = self.decode(bits);
        let sign = if number.negative { "-" } else { "" };
        match number.value {
            Value::Zero => format!("{sign}0"),
            Value::Infinite => format!("{sign}inf"),
            Value::NotANumber { .. } => format!("{sign}nan"),
            Value::Finite { exponent, mantissa } => {
                let digits = format!("{:032x}", mantissa << 1);
                let digits = digits.trim_end_matches('0');
                let point = if digits.is_empty() { "" } else { "." };
                format!("{sign}0x1{point}{digits}p{exponent:+}")
            }
        }
    }
}

/// `mantissa / 2^127 * 2^exponent` with the leading digit anywhere.
fn subnormal(mantissa: u128, exponent: i32) -> Value {
    let zeros = mantissa.leading_zeros();
    match zeros {
        128 => Value::Zero,
        _ => Value::Finite {
            exponent: exponent - zeros as i32,
            mantissa: mantissa << zeros,
        },
    }
}

/// Without its last `digits` digits, rounded.
fn round(value: u128, digits: u32) -> u128 {
    let (kept, rest, half) = match digits {
        0 => return value,
        1..=127 => (value >> digits, value & ((1 << digits) - 1), 1 << (digits - 1)),
        128 => (0, value, 1 << 127),
        _ => return 0,
    };
    kept + u128::from(rest > half || rest == half && kept & 1 == 1)
}

/// Shifted right; the last digit says whether anything but zeros was shifted out.
fn sticky(value: u128, digits: u32) -> u128 {
    match digits {
        0 => value,
        1..=127 => (value >> digits) | u128::from(value & ((1 << digits) - 1) != 0),
        _ => u128::from(value != 0),
    }
}

impl Number {
    /// The exact sum, but for digits beyond the 126th: they are told by the last one, so that rounding it to a format
    /// of less than 126 digits gives what rounding the exact sum gives.
    pub(crate) fn plus(self, other: Self) -> Self {
        use Value::{Finite, Infinite, NotANumber, Zero};
        match (self.value, other.value) {
            (NotANumber { .. }, _) => self.quiet(),
            (_, NotANumber { .. }) => other.quiet(),
            (Infinite, Infinite) if self.negative != other.negative => Self::invalid(),
            (Infinite, _) | (Finite { .. }, Zero) => self,
            (_, Infinite) | (Zero, Finite { .. }) => other,
            (Zero, Zero) => Self {
                negative: self.negative && other.negative,
                value: Zero,
            },
            (
                Finite { exponent, mantissa },
                Finite {
                    exponent: other_exponent,
                    mantissa: other_mantissa,
                },
            ) => {
                if (exponent, mantissa) < (other_exponent, other_mantissa) {
                    return other.plus(self);
                }
                // One digit of room for the carry. The numbers have at most 113 digits, so nothing is lost here.
                let (large, small) = (
                    mantissa >> 1,
                    sticky(other_mantissa >> 1, (exponent - other_exponent) as u32),
                );
                if self.negative == other.negative {
                    return Self::normal(self.negative, large + small, exponent + 1);
                }
                match large - small {
                    0 => Self {
                        negative: false,
                        value: Zero,
                    },
                    difference => Self::normal(self.negative, difference, exponent + 1),
                }
            }
        }
    }

    /// The exact product, but for digits beyond the 127th, as [`Number::plus`].
    pub(crate) fn times(self, other: Self) -> Self {
        use Value::{Finite, Infinite, NotANumber, Zero};
        let negative = self.negative != other.negative;
        match (self.value, other.value) {
            (NotANumber { .. }, _) => self.quiet(),
            (_, NotANumber { .. }) => other.quiet(),
            (Infinite, Zero) | (Zero, Infinite) => Self::invalid(),
            (Infinite, _) | (_, Infinite) => Self {
                negative,
                value: Infinite,
            },
            (Zero, _) | (_, Zero) => Self { negative, value: Zero },
            (
                Finite { exponent, mantissa },
                Finite {
                    exponent: other_exponent,
                    mantissa: other_mantissa,
                },
            ) => {
                let (high, low) = product(mantissa, other_mantissa);
                Self::normal(negative, high | u128::from(low != 0), exponent + other_exponent + 1)
            }
        }
    }

    /// The same with the other sign.
    pub(crate) fn negated(self) -> Self {
        Self {
            negative: !self.negative,
            ..self
        }
    }

    /// Order of the numbers; `None` if one is not a number.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        let key = |number: Self| {
            let magnitude = match number.value {
                Value::NotANumber { .. } => return None,
                Value::Zero => return Some((0, (0, 0))),
                Value::Infinite => (i32::MAX, 0),
                Value::Finite { exponent, mantissa } => (exponent, mantissa),
            };
            Some((if number.negative { -1 } else { 1 }, magnitude))
        };
        let (left, right) = (key(self)?, key(other)?);
        Some(left.0.cmp(&right.0).then_with(|| {
            if left.0 < 0 {
                right.1.cmp(&left.1)
            } else {
                left.1.cmp(&right.1)
            }
        }))
    }

    fn normal(negative: bool, mantissa: u128, exponent: i32) -> Self {
        let value = subnormal(mantissa, exponent);
        Self { negative, value }
    }

    fn quiet(self) -> Self {
        let value = match self.value {
            Value::NotANumber { payload } => Value::NotANumber {
                payload: payload | 1 << 127,
            },
            other => other,
        };
        Self { value, ..self }
    }

    fn invalid() -> Self {
        Self {
            negative: false,
            value: QUIET,
        }
    }
}

/// The 256 bits of a product: high and low half.
fn product(left: u128, right: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a, b) = (left >> 64, left & LOW);
    let (c, d) = (right >> 64, right & LOW);
    let (low, outer, inner, high) = (b * d, a * d, b * c, a * c);
    let middle = (low >> 64) + (outer & LOW) + (inner & LOW);
    (
        high + (outer >> 64) + (inner >> 64) + (middle >> 64),
        (middle << 64) | (low & LOW),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn double(value: f64) -> Number {
        Float::Double.decode(value.to_bits().into())
    }

    fn rounded(number: Number) -> f64 {
        Float::Double.encode(number).map_or(
            if number.negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            },
            |bits| f64::from_bits(bits as u64),
        )
    }

    fn same(left: f64, right: f64) -> bool {
        left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan()
    }

    #[test]
    fn known_values() {
        assert_eq!(Float::Quad.encode(double(1.0)), Ok(0x3fff << 112));
        assert_eq!(Float::Extended.encode(double(1.0)), Ok(0x3fff_8000_0000_0000_0000));
        assert_eq!(Float::Extended.encode(double(-0.0)), Ok(1 << 79));
        assert_eq!(Float::Half.encode(double(65504.0)), Ok(0x7bff));
        assert_eq!(Float::Half.encode(double(65520.0)), Err(OutOfRange));
        assert_eq!(Float::Quad.text(0x4fff << 112), "0x1p+4096");
        assert_eq!(Float::Double.text((-1.5f64).to_bits().into()), "-0x1.8p+0");
        // Patterns that are no numbers of the x87: an infinity without leading one, an unnormal.
        assert_eq!(Float::Extended.decode(0x7fff << 64).value, QUIET);
        assert_eq!(Float::Extended.decode(1 << 64).value, QUIET);
    }

    proptest! {
        #[test]
        fn wider_formats_keep_every_double(bits: u64) {
            for wide in [Float::Extended, Float::Quad] {
                let there = wide.encode(Float::Double.decode(bits.into())).unwrap();
                prop_assert_eq!(Float::Double.encode(wide.decode(there)), Ok(u128::from(bits)));
            }
        }

        #[test]
        fn quad_keeps_every_extended(mantissa: u64, exponent in 0u16..0x7fff, negative: bool) {
            let mantissa = if exponent == 0 { mantissa >> 1 } else { mantissa | 1 << 63 };
            let bits = u128::from(mantissa) | u128::from(exponent) << 64 | u128::from(negative) << 79;
            let there = Float::Quad.encode(Float::Extended.decode(bits)).unwrap();
            prop_assert_eq!(Float::Extended.encode(Float::Quad.decode(there)), Ok(bits));
        }

        #[test]
        fn narrowing_rounds_as_the_processor(bits: u64) {
            let value = f64::from_bits(bits);
            let narrow = Float::Single.encode(double(value)).map(|bits| f32::from_bits(bits as u32));
            match narrow {
                Ok(narrow) => prop_assert!(same(narrow.into(), f64::from(value as f32))),
                Err(OutOfRange) => prop_assert!((value as f32).is_infinite() && value.is_finite()),
            }
        }

        #[test]
        fn sums_and_products_are_those_of_the_processor(left: u64, right: u64, near in -60i64..60) {
            let left = f64::from_bits(left);
            // Also numbers of about the same size: where sums are difficult.
            for right in [f64::from_bits(right), f64::from_bits((left.to_bits() as i64).wrapping_add(near << 46) as u64 ^ (right & 0xfff))] {
                prop_assert!(same(rounded(double(left).plus(double(right))), left + right), "{} + {}", left, right);
                prop_assert!(same(rounded(double(left).plus(double(right).negated())), left - right), "{} - {}", left, right);
                prop_assert!(same(rounded(double(left).times(double(right))), left * right), "{} * {}", left, right);
                prop_assert_eq!(double(left).compare(double(right)), left.partial_cmp(&right));
            }
        }
    }
}
