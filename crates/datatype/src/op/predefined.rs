// SPDX-License-Identifier: Apache-2.0
//! The operations, by name.

use std::fmt;

use crate::basic::{Basic, Kind};

/// A predefined operation; the discriminant is the handle value of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
#[expect(missing_docs, reason = "the names are those of the standard, MPI_SUM ...")]
pub enum Predefined {
    Sum = 0x21,
    Min = 0x22,
    Max = 0x23,
    Prod = 0x24,
    Band = 0x28,
    Bor = 0x29,
    Bxor = 0x2a,
    Land = 0x30,
    Lor = 0x31,
    Lxor = 0x32,
    Minloc = 0x38,
    Maxloc = 0x39,
    Replace = 0x3c,
    NoOp = 0x3d,
}

/// Why an operation cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpError {
    /// The standard does not define the operation for the type: the caller's mistake (MPI_ERR_OP).
    Undefined {
        /// The operation.
        op: Predefined,
        /// The type.
        basic: Basic,
    },
    /// The standard defines it, this library cannot do it on this machine (MPI_ERR_UNSUPPORTED_OPERATION).
    Unsupported {
        /// The operation.
        op: Predefined,
        /// The type.
        basic: Basic,
    },
}

/// How the elements of a slice follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// As in user memory: [`Basic::extent`] apart. (The last element may lack its padding.)
    Memory,
    /// As in the packed stream: [`Basic::size`] apart. Differs for some pairs only.
    Packed,
}

/// The operations at their handle values: asked for with every reduction.
const BY_HANDLE: &[Option<Predefined>; 64] = &{
    let mut all = [None; 64];
    let mut at = 0;
    while at < Predefined::ALL.len() {
        all[Predefined::ALL[at].handle() as usize] = Some(Predefined::ALL[at]);
        at += 1;
    }
    all
};

impl Predefined {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Sum,
        Self::Min,
        Self::Max,
        Self::Prod,
        Self::Band,
        Self::Bor,
        Self::Bxor,
        Self::Land,
        Self::Lor,
        Self::Lxor,
        Self::Minloc,
        Self::Maxloc,
        Self::Replace,
        Self::NoOp,
    ];

    /// The operation with this handle value.
    #[inline]
    pub fn from_handle(handle: u32) -> Option<Self> {
        *BY_HANDLE.get(handle as usize)?
    }

    /// Handle value in the ABI.
    pub const fn handle(self) -> u32 {
        self as u32
    }

    /// Name of the constant.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "MPI_SUM",
            Self::Min => "MPI_MIN",
            Self::Max => "MPI_MAX",
            Self::Prod => "MPI_PROD",
            Self::Band => "MPI_BAND",
            Self::Bor => "MPI_BOR",
            Self::Bxor => "MPI_BXOR",
            Self::Land => "MPI_LAND",
            Self::Lor => "MPI_LOR",
            Self::Lxor => "MPI_LXOR",
            Self::Minloc => "MPI_MINLOC",
            Self::Maxloc => "MPI_MAXLOC",
            Self::Replace => "MPI_REPLACE",
            Self::NoOp => "MPI_NO_OP",
        }
    }

    /// Whether the order of the operands does not matter.
    pub const fn commutative(self) -> bool {
        !matches!(self, Self::Replace | Self::NoOp)
    }
}

/// What a program uses instead of a type that an operation is not defined for.
fn instead(op: Predefined, basic: Basic) -> &'static str {
    match basic.kind() {
        Kind::Character if basic.size() == 1 => {
            ": it stands for text; for small numbers use MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_INT8_T or MPI_UINT8_T"
        }
        Kind::Character => ": it stands for text; for numbers use MPI_INT32_T or another integer type",
        Kind::Packed => ": what is packed cannot be computed with; unpack it first",
        Kind::Byte => "; for numbers use MPI_UINT8_T, for bits MPI_BAND, MPI_BOR or MPI_BXOR",
        Kind::Pair(..) => "; pairs are for MPI_MINLOC and MPI_MAXLOC",
        _ if matches!(op, Predefined::Minloc | Predefined::Maxloc) => "; it takes pairs, such as MPI_DOUBLE_INT",
        _ => "",
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { op, basic } => {
                write!(
                    f,
                    "{} is not defined for {} (MPI 5.0, section 6.9.2){}",
                    op.name(),
                    basic.name(),
                    instead(*op, *basic)
                )
            }
            Self::Unsupported { op, basic } => {
                write!(
                    f,
                    "{} on {} is not implemented for this kind of processor",
                    op.name(),
                    basic.name()
                )
            }
        }
    }
}

impl std::error::Error for OpError {}
