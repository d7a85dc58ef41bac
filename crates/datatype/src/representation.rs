// SPDX-License-Identifier: Apache-2.0
//! How a process represents the types of C and Fortran.

use std::ffi::c_long;
use std::fmt;
use std::mem::size_of;

use crate::basic::{Basic, Kind};
use crate::float::Float;

/// Sizes, byte order and formats. Processes with equal ones exchange data as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Representation {
    big_endian: bool,
    long: u8,
    /// MPI_AINT.
    pointer: u8,
    long_double: u8,
    /// Digits of `long double` (LDBL_MANT_DIG, low byte).
    digits: u8,
    wchar: u8,
    bool: u8,
    /// What the machine lacks: bits of [`LACKS_INTEGER16`] and its sisters.
    lacks: u8,
}

/// No integers of 16 bytes (MPI_INTEGER16, MPI_LOGICAL16).
pub const LACKS_INTEGER16: u8 = 1;
/// No floating point numbers of 16 bytes in Fortran (MPI_REAL16, MPI_COMPLEX32).
pub const LACKS_REAL16: u8 = 2;
/// No floating point numbers of 2 bytes (MPI_REAL2, MPI_COMPLEX4).
pub const LACKS_REAL2: u8 = 4;

/// How one basic (or each half of a complex number) is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Never converted.
    Bytes,
    /// Two's complement.
    Signed(u8),
    /// Without sign.
    Unsigned(u8),
    /// A number in a place of so many bytes.
    Floating(Float, u8),
    /// The machine has no such type.
    Lacking,
}

impl Format {
    /// Bytes in the stream.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Signed(size) | Self::Unsigned(size) | Self::Floating(_, size) => size as usize,
            Self::Lacking => 0,
        }
    }
}

/// Bytes that describe no machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRepresentation(pub [u8; 8]);

impl fmt::Display for UnknownRepresentation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the bytes {:?} describe no representation of data that this version of Isthmus knows",
            self.0
        )
    }
}

impl std::error::Error for UnknownRepresentation {}

impl Representation {
    /// That of this process.
    pub const LOCAL: Self = Self {
        big_endian: cfg!(target_endian = "big"),
        long: size_of::<c_long>() as u8,
        pointer: size_of::<usize>() as u8,
        long_double: Basic::LongDouble.size() as u8,
        digits: if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
            64
        } else {
            113
        },
        wchar: Basic::Wchar.size() as u8,
        bool: Basic::Bool.size() as u8,
        lacks: 0,
    };

    /// What collective operations and MPI_Pack use among processes that differ: big-endian, the widest form of each
    /// type, so every value of every machine fits.
    pub const COMMON: Self = Self {
        big_endian: true,
        long: 8,
        pointer: 8,
        long_double: 16,
        digits: 113,
        wchar: 4,
        bool: 1,
        lacks: 0,
    };

    /// `external32` (MPI 5.0 section 14.5.2).
    pub const EXTERNAL32: Self = Self {
        long: 4,
        wchar: 2,
        ..Self::COMMON
    };

    /// As eight bytes, for other processes.
    ///
    /// ```text
    ///  byte 0: 1 little-endian, 2 big-endian     byte 4: digits of long double (LDBL_MANT_DIG, low byte)
    ///  byte 1: sizeof(long)                      byte 5: sizeof(wchar_t)
    ///  byte 2: sizeof(void *)                    byte 6: sizeof(bool)
    ///  byte 3: sizeof(long double)               byte 7: what is lacking: 1 INTEGER(16), 2 REAL(16), 4 REAL(2)
    /// ```
    pub const fn encode(self) -> [u8; 8] {
        [
            if self.big_endian { 2 } else { 1 },
            self.long,
            self.pointer,
            self.long_double,
            self.digits,
            self.wchar,
            self.bool,
            self.lacks,
        ]
    }

    /// The reverse.
    pub fn decode(bytes: [u8; 8]) -> Result<Self, UnknownRepresentation> {
        let [order, long, pointer, long_double, digits, wchar, bool, lacks] = bytes;
        let known = matches!(order, 1 | 2)
            && matches!(long, 4 | 8)
            && matches!(pointer, 4 | 8)
            && matches!(long_double, 8 | 10 | 12 | 16)
            && matches!(wchar, 1 | 2 | 4)
            && matches!(bool, 1 | 2 | 4)
            && lacks < 8;
        if !known {
            return Err(UnknownRepresentation(bytes));
        }
        Ok(Self {
            big_endian: order == 2,
            long,
            pointer,
            long_double,
            digits,
            wchar,
            bool,
            lacks,
        })
    }

    pub(crate) const fn big_endian(self) -> bool {
        self.big_endian
    }

    /// Bytes of a basic in the packed stream; pairs are two basics without padding.
    pub const fn size(self, basic: Basic) -> usize {
        match basic.kind() {
            Kind::Pair(value, index) => self.size(value) + self.size(index),
            Kind::Complex => 2 * self.place(basic).1,
            _ => self.place(basic).1,
        }
    }

    /// How a basic that is not a pair is stored, and how many such there are in it.
    pub(crate) const fn format(self, basic: Basic) -> (Format, usize) {
        let parts = if matches!(basic.kind(), Kind::Complex) { 2 } else { 1 };
        (self.place(basic).0, parts)
    }

    /// Format and size of a basic or one half of it. The size is known for what is lacking too.
    const fn place(self, basic: Basic) -> (Format, usize) {
        let size = match basic {
            Basic::Long | Basic::UnsignedLong => self.long,
            Basic::Aint => self.pointer,
            Basic::Wchar => self.wchar,
            Basic::Bool | Basic::CxxBool => self.bool,
            Basic::LongDouble | Basic::LongDoubleComplex | Basic::CxxLongDoubleComplex => self.long_double,
            _ if matches!(basic.kind(), Kind::Complex) => basic.size() as u8 / 2,
            _ => basic.size() as u8,
        };
        let format = match basic.kind() {
            Kind::Byte | Kind::Packed | Kind::Pair(..) => Format::Bytes,
            Kind::Signed | Kind::FortranInteger | Kind::Address | Kind::Logical => self.integer(size),
            Kind::Unsigned | Kind::Bool | Kind::Character => Format::Unsigned(size),
            Kind::Floating | Kind::Complex => self.floating(basic, size),
        };
        (format, size as usize)
    }

    const fn integer(self, size: u8) -> Format {
        if size == 16 && self.lacks & LACKS_INTEGER16 != 0 {
            return Format::Lacking;
        }
        Format::Signed(size)
    }

    const fn floating(self, basic: Basic, size: u8) -> Format {
        let float = match basic {
            Basic::LongDouble | Basic::LongDoubleComplex | Basic::CxxLongDoubleComplex => match (self.digits, size) {
                (53, 8) => Some(Float::Double),
                (64, _) if !self.big_endian => Some(Float::Extended),
                (113, 16) => Some(Float::Quad),
                _ => None,
            },
            _ => match size {
                2 if self.lacks & LACKS_REAL2 == 0 => Some(Float::Half),
                4 => Some(Float::Single),
                8 => Some(Float::Double),
                16 if self.lacks & LACKS_REAL16 == 0 => Some(Float::Quad),
                _ => None,
            },
        };
        match float {
            Some(float) => Format::Floating(float, size),
            None => Format::Lacking,
        }
    }
}

impl fmt::Display for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-endian, long {}, pointers {}, long double {} with {} digits, wchar_t {}, bool {}",
            if self.big_endian { "big" } else { "little" },
            self.long,
            self.pointer,
            self.long_double,
            self.digits,
            self.wchar,
            self.bool
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basic::ALL;

    #[test]
    fn bytes_come_back_and_garbage_is_refused() {
        for representation in [
            Representation::LOCAL,
            Representation::COMMON,
            Representation::EXTERNAL32,
        ] {
            assert_eq!(Representation::decode(representation.encode()), Ok(representation));
        }
        assert!(Representation::decode([0; 8]).is_err());
        assert!(Representation::decode([1, 8, 8, 255, 64, 4, 1, 0]).is_err());
    }

    #[test]
    fn sizes_of_this_process_are_those_of_the_table() {
        for &basic in ALL {
            assert_eq!(Representation::LOCAL.size(basic), basic.size(), "{}", basic.name());
        }
    }

    #[test]
    fn external32_has_the_sizes_of_the_standard() {
        let size = |basic| Representation::EXTERNAL32.size(basic);
        assert_eq!((size(Basic::Long), size(Basic::UnsignedLong)), (4, 4));
        assert_eq!((size(Basic::LongLong), size(Basic::Wchar)), (8, 2));
        assert_eq!((size(Basic::LongDouble), size(Basic::LongDoubleComplex)), (16, 32));
        assert_eq!((size(Basic::Aint), size(Basic::Count), size(Basic::Offset)), (8, 8, 8));
        assert_eq!(
            (size(Basic::LongInt), size(Basic::ShortInt), size(Basic::LongDoubleInt)),
            (8, 6, 20)
        );
    }
}
