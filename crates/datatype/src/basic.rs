// SPDX-License-Identifier: Apache-2.0
//! The predefined datatypes: one table.
//!
//! A basic is identified by its handle value in the MPI 5.0 ABI (section 20.3), which is also its discriminant, so
//! that the room which meets C converts with [`Basic::from_handle`].

use std::ffi::{c_int, c_long, c_longlong, c_short};
use std::mem::size_of;

/// What values a basic holds: decides which operations it allows and how it is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Two's complement integer of C.
    Signed,
    /// Unsigned integer of C.
    Unsigned,
    /// INTEGER of Fortran.
    FortranInteger,
    /// MPI_AINT, MPI_OFFSET, MPI_COUNT: signed integers shared by the languages.
    Address,
    /// Binary floating point.
    Floating,
    /// Two floating point numbers: real, imaginary.
    Complex,
    /// LOGICAL of Fortran.
    Logical,
    /// `bool`.
    Bool,
    /// Text: MPI_CHAR, MPI_CHARACTER, MPI_WCHAR; no reductions.
    Character,
    /// MPI_BYTE: never converted.
    Byte,
    /// MPI_PACKED: never converted.
    Packed,
    /// A value and an index, for MINLOC and MAXLOC: a structure of two basics.
    Pair(Basic, Basic),
}

/// What every operation asks of a basic.
#[derive(Clone, Copy)]
struct Row {
    kind: Kind,
    size: u8,
    alignment: u8,
}

macro_rules! basics {
    ($($variant:ident = $handle:literal, $name:literal, $kind:expr, $size:expr, $alignment:expr;)*) => {
        /// A predefined datatype; the discriminant is its handle value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Basic {
            $(#[doc = $name] $variant = $handle,)*
        }

        /// All predefined datatypes in the order of their handle values.
        pub const ALL: &[Basic] = &[$(Basic::$variant,)*];

        impl Basic {
            /// The basic with this handle value.
            pub const fn from_handle(handle: u32) -> Option<Self> {
                match handle {
                    $($handle => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Name of the constant; of two names for one value the older (as MPI_Type_get_name gives it).
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        /// One for each basic, at the low byte of its handle value. Without names, whose addresses each process would
        /// have to fill in: so the table is shared by all processes of a node.
        static ROWS: [Row; 256] = {
            let mut rows = [Row { kind: Kind::Packed, size: 0, alignment: 1 }; 256];
            $(rows[$handle & 0xff] = Row { kind: $kind, size: $size as u8, alignment: $alignment as u8 };)*
            rows
        };
    };
}

const SHORT: usize = size_of::<c_short>();
const INT: usize = size_of::<c_int>();
const LONG: usize = size_of::<c_long>();
const LONG_LONG: usize = size_of::<c_longlong>();
/// x86-64: the 80-bit format in 16 bytes; AArch64, s390x and others: IEEE binary128.
const LONG_DOUBLE: usize = 16;
const LONG_DOUBLE_ALIGNMENT: usize = if cfg!(target_arch = "s390x") { 8 } else { 16 };
const WCHAR: usize = 4;
const POINTER: usize = size_of::<usize>();

// variant = handle, name, kind, size, alignment. Fortran sizes are the usual ones of today's compilers.
basics! {
    Aint = 0x201, "MPI_AINT", Kind::Address, POINTER, POINTER;
    Count = 0x202, "MPI_COUNT", Kind::Address, 8, 8;
    Offset = 0x203, "MPI_OFFSET", Kind::Address, 8, 8;
    Packed = 0x207, "MPI_PACKED", Kind::Packed, 1, 1;
    Short = 0x208, "MPI_SHORT", Kind::Signed, SHORT, SHORT;
    Int = 0x209, "MPI_INT", Kind::Signed, INT, INT;
    Long = 0x20a, "MPI_LONG", Kind::Signed, LONG, LONG;
    LongLong = 0x20b, "MPI_LONG_LONG_INT", Kind::Signed, LONG_LONG, LONG_LONG;
    UnsignedShort = 0x20c, "MPI_UNSIGNED_SHORT", Kind::Unsigned, SHORT, SHORT;
    Unsigned = 0x20d, "MPI_UNSIGNED", Kind::Unsigned, INT, INT;
    UnsignedLong = 0x20e, "MPI_UNSIGNED_LONG", Kind::Unsigned, LONG, LONG;
    UnsignedLongLong = 0x20f, "MPI_UNSIGNED_LONG_LONG", Kind::Unsigned, LONG_LONG, LONG_LONG;
    Float = 0x210, "MPI_FLOAT", Kind::Floating, 4, 4;
    FloatComplex = 0x212, "MPI_C_COMPLEX", Kind::Complex, 8, 4;
    CxxFloatComplex = 0x213, "MPI_CXX_FLOAT_COMPLEX", Kind::Complex, 8, 4;
    Double = 0x214, "MPI_DOUBLE", Kind::Floating, 8, 8;
    DoubleComplex = 0x216, "MPI_C_DOUBLE_COMPLEX", Kind::Complex, 16, 8;
    CxxDoubleComplex = 0x217, "MPI_CXX_DOUBLE_COMPLEX", Kind::Complex, 16, 8;
    FortranLogical = 0x218, "MPI_LOGICAL", Kind::Logical, 4, 4;
    FortranInteger = 0x219, "MPI_INTEGER", Kind::FortranInteger, 4, 4;
    FortranReal = 0x21a, "MPI_REAL", Kind::Floating, 4, 4;
    FortranComplex = 0x21b, "MPI_COMPLEX", Kind::Complex, 8, 4;
    FortranDoublePrecision = 0x21c, "MPI_DOUBLE_PRECISION", Kind::Floating, 8, 8;
    FortranDoubleComplex = 0x21d, "MPI_DOUBLE_COMPLEX", Kind::Complex, 16, 8;
    FortranCharacter = 0x21e, "MPI_CHARACTER", Kind::Character, 1, 1;
    LongDouble = 0x220, "MPI_LONG_DOUBLE", Kind::Floating, LONG_DOUBLE, LONG_DOUBLE_ALIGNMENT;
    LongDoubleComplex = 0x224, "MPI_C_LONG_DOUBLE_COMPLEX", Kind::Complex, 2 * LONG_DOUBLE, LONG_DOUBLE_ALIGNMENT;
    CxxLongDoubleComplex = 0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX", Kind::Complex, 2 * LONG_DOUBLE, LONG_DOUBLE_ALIGNMENT;
    FloatInt = 0x228, "MPI_FLOAT_INT", Kind::Pair(Basic::Float, Basic::Int), 4 + INT, 4;
    DoubleInt = 0x229, "MPI_DOUBLE_INT", Kind::Pair(Basic::Double, Basic::Int), 8 + INT, 8;
    LongInt = 0x22a, "MPI_LONG_INT", Kind::Pair(Basic::Long, Basic::Int), LONG + INT, LONG;
    TwoInt = 0x22b, "MPI_2INT", Kind::Pair(Basic::Int, Basic::Int), 2 * INT, INT;
    ShortInt = 0x22c, "MPI_SHORT_INT", Kind::Pair(Basic::Short, Basic::Int), SHORT + INT, INT;
    LongDoubleInt = 0x22d, "MPI_LONG_DOUBLE_INT", Kind::Pair(Basic::LongDouble, Basic::Int), LONG_DOUBLE + INT, LONG_DOUBLE_ALIGNMENT;
    TwoReal = 0x230, "MPI_2REAL", Kind::Pair(Basic::FortranReal, Basic::FortranReal), 8, 4;
    TwoDoublePrecision = 0x231, "MPI_2DOUBLE_PRECISION", Kind::Pair(Basic::FortranDoublePrecision, Basic::FortranDoublePrecision), 16, 8;
    TwoInteger = 0x232, "MPI_2INTEGER", Kind::Pair(Basic::FortranInteger, Basic::FortranInteger), 8, 4;
    Bool = 0x238, "MPI_C_BOOL", Kind::Bool, 1, 1;
    CxxBool = 0x239, "MPI_CXX_BOOL", Kind::Bool, 1, 1;
    Wchar = 0x23c, "MPI_WCHAR", Kind::Character, WCHAR, WCHAR;
    Int8 = 0x240, "MPI_INT8_T", Kind::Signed, 1, 1;
    Uint8 = 0x241, "MPI_UINT8_T", Kind::Unsigned, 1, 1;
    Char = 0x243, "MPI_CHAR", Kind::Character, 1, 1;
    SignedChar = 0x244, "MPI_SIGNED_CHAR", Kind::Signed, 1, 1;
    UnsignedChar = 0x245, "MPI_UNSIGNED_CHAR", Kind::Unsigned, 1, 1;
    Byte = 0x247, "MPI_BYTE", Kind::Byte, 1, 1;
    Int16 = 0x248, "MPI_INT16_T", Kind::Signed, 2, 2;
    Uint16 = 0x249, "MPI_UINT16_T", Kind::Unsigned, 2, 2;
    Int32 = 0x250, "MPI_INT32_T", Kind::Signed, 4, 4;
    Uint32 = 0x251, "MPI_UINT32_T", Kind::Unsigned, 4, 4;
    Int64 = 0x258, "MPI_INT64_T", Kind::Signed, 8, 8;
    Uint64 = 0x259, "MPI_UINT64_T", Kind::Unsigned, 8, 8;
    Logical1 = 0x2c0, "MPI_LOGICAL1", Kind::Logical, 1, 1;
    Integer1 = 0x2c1, "MPI_INTEGER1", Kind::FortranInteger, 1, 1;
    Logical2 = 0x2c8, "MPI_LOGICAL2", Kind::Logical, 2, 2;
    Integer2 = 0x2c9, "MPI_INTEGER2", Kind::FortranInteger, 2, 2;
    Real2 = 0x2ca, "MPI_REAL2", Kind::Floating, 2, 2;
    Logical4 = 0x2d0, "MPI_LOGICAL4", Kind::Logical, 4, 4;
    Integer4 = 0x2d1, "MPI_INTEGER4", Kind::FortranInteger, 4, 4;
    Real4 = 0x2d2, "MPI_REAL4", Kind::Floating, 4, 4;
    Complex4 = 0x2d3, "MPI_COMPLEX4", Kind::Complex, 4, 2;
    Logical8 = 0x2d8, "MPI_LOGICAL8", Kind::Logical, 8, 8;
    Integer8 = 0x2d9, "MPI_INTEGER8", Kind::FortranInteger, 8, 8;
    Real8 = 0x2da, "MPI_REAL8", Kind::Floating, 8, 8;
    Complex8 = 0x2db, "MPI_COMPLEX8", Kind::Complex, 8, 4;
    Logical16 = 0x2e0, "MPI_LOGICAL16", Kind::Logical, 16, 16;
    Integer16 = 0x2e1, "MPI_INTEGER16", Kind::FortranInteger, 16, 16;
    Real16 = 0x2e2, "MPI_REAL16", Kind::Floating, 16, 16;
    Complex16 = 0x2e3, "MPI_COMPLEX16", Kind::Complex, 16, 8;
    Complex32 = 0x2eb, "MPI_COMPLEX32", Kind::Complex, 32, 16;
}

impl Basic {
    #[inline]
    const fn row(self) -> &'static Row {
        &ROWS[self as usize & 0xff]
    }

    /// Handle value in the ABI.
    pub const fn handle(self) -> u32 {
        self as u32
    }

    /// What it holds.
    #[inline]
    pub const fn kind(self) -> Kind {
        self.row().kind
    }

    /// Bytes of data (padding excluded).
    #[inline]
    pub const fn size(self) -> usize {
        self.row().size as usize
    }

    /// Alignment in a C structure, bytes.
    pub const fn alignment(self) -> usize {
        self.row().alignment as usize
    }

    /// Distance of two consecutive values in memory, bytes.
    pub const fn extent(self) -> usize {
        match self.kind() {
            Kind::Pair(_, index) => (self.index_offset() + index.size()).next_multiple_of(self.alignment()),
            _ => self.size(),
        }
    }

    /// Bytes of the index of a pair; 0 for what is not a pair.
    pub const fn index_size(self) -> usize {
        match self.kind() {
            Kind::Pair(_, index) => index.size(),
            _ => 0,
        }
    }

    /// Offset in memory of the index of a pair, bytes; 0 for what is not a pair.
    pub const fn index_offset(self) -> usize {
        match self.kind() {
            Kind::Pair(value, index) => value.size().next_multiple_of(index.alignment()),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_unique_and_come_back() {
        assert_eq!(ALL.len(), 70);
        for pair in ALL.windows(2) {
            assert!(pair[0].handle() < pair[1].handle());
        }
        for &basic in ALL {
            assert_eq!(Basic::from_handle(basic.handle()), Some(basic));
        }
        assert_eq!(Basic::from_handle(0x200), None);
    }

    #[test]
    fn sizes_agree_with_the_handles_that_encode_them() {
        for &basic in ALL.iter().filter(|b| b.handle() >= 0x240) {
            assert_eq!(basic.size(), 1 << ((basic.handle() >> 3) & 7), "{}", basic.name());
        }
    }

    #[test]
    fn pairs_have_the_layout_of_c_structures() {
        let layout = |b: Basic| (b.size(), b.extent(), b.index_offset());
        assert_eq!(layout(Basic::FloatInt), (8, 8, 4));
        assert_eq!(layout(Basic::DoubleInt), (12, 16, 8));
        assert_eq!(layout(Basic::ShortInt), (6, 8, 4));
        assert_eq!(layout(Basic::TwoDoublePrecision), (16, 16, 8));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(layout(Basic::LongInt), (12, 16, 8));
            assert_eq!(layout(Basic::LongDoubleInt), (20, 32, 16));
        }
    }
}
