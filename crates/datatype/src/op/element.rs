// SPDX-License-Identifier: Apache-2.0
//! The types that operations compute with: how they are read from bytes and what they can do.

/// A value in memory, in the representation of this process, unaligned.
pub(super) trait Element: Copy {
    /// Bytes of a value.
    const SIZE: usize;
    /// Reads it from `SIZE` bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Writes it to `SIZE` bytes.
    fn write(self, bytes: &mut [u8]);
}

/// What SUM and PROD need.
pub(super) trait Number: Element {
    /// Sum; integers wrap around.
    fn plus(self, other: Self) -> Self;
    /// Product; integers wrap around.
    fn times(self, other: Self) -> Self;
}

/// What MIN, MAX, MINLOC, MAXLOC need.
pub(super) trait Ordered: Element {
    /// `self < other`; false if either is not a number.
    fn less(self, other: Self) -> bool;
}

/// What BAND, BOR, BXOR need.
pub(super) trait Bits: Element {
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
}

/// What LAND, LOR, LXOR need: anything but zero is true; results are one and zero.
pub(super) trait Truth: Element {
    /// Is it true?
    fn truth(self) -> bool;
    /// The value for true or false.
    fn from_truth(truth: bool) -> Self;
}

macro_rules! elements {
    ($($number:ty),*) => {$(
        impl Element for $number {
            const SIZE: usize = size_of::<$number>();

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$number>()];
                own.copy_from_slice(bytes);
                Self::from_ne_bytes(own)
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        }

        impl Ordered for $number {
            #[inline]
            fn less(self, other: Self) -> bool {
                self < other
            }
        }
    )*};
}

macro_rules! integers {
    ($($number:ty),*) => {$(
        impl Number for $number {
            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }

        impl Bits for $number {
            #[inline]
            fn and(self, other: Self) -> Self {
                self & other
            }

            #[inline]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
        }

        impl Truth for $number {
            #[inline]
            fn truth(self) -> bool {
                self != 0
            }

            #[inline]
            fn from_truth(truth: bool) -> Self {
                Self::from(truth)
            }
        }
    )*};
}

macro_rules! floats {
    ($($number:ty),*) => {$(
        impl Number for $number {
            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                self * other
            }
        }
    )*};
}

elements!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, f32, f64);
integers!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128);
floats!(f32, f64);

/// A complex number: real part, imaginary part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Complex<E>(pub(super) E, pub(super) E);

/// What the products of complex numbers need besides.
pub(super) trait Real: Number {
    /// Difference.
    fn minus(self, other: Self) -> Self;
}

impl Real for f32 {
    #[inline]
    fn minus(self, other: Self) -> Self {
        self - other
    }
}

impl Real for f64 {
    #[inline]
    fn minus(self, other: Self) -> Self {
        self - other
    }
}

impl<E: Element> Element for Complex<E> {
    const SIZE: usize = 2 * E::SIZE;

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        let (real, imaginary) = bytes.split_at(E::SIZE);
        Self(E::read(real), E::read(imaginary))
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        let (real, imaginary) = bytes.split_at_mut(E::SIZE);
        self.0.write(real);
        self.1.write(imaginary);
    }
}

impl<E: Real> Number for Complex<E> {
    #[inline]
    fn plus(self, other: Self) -> Self {
        Self(self.0.plus(other.0), self.1.plus(other.1))
    }

    #[inline]
    fn times(self, other: Self) -> Self {
        let real = self.0.times(other.0).minus(self.1.times(other.1));
        Self(real, self.0.times(other.1).plus(self.1.times(other.0)))
    }
}
