// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with a datatype that a user describes.

use std::fmt;

/// Why a datatype cannot be made or used. Always the caller's mistake; the text names the argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeError {
    /// A count, block length or dimension is below its smallest value.
    Below {
        /// Name of the argument in the MPI standard.
        argument: &'static str,
        /// Index within the argument, for arrays.
        index: usize,
        /// The value given.
        value: i64,
        /// The smallest value allowed.
        least: i64,
    },
    /// A value is above its largest value.
    Above {
        /// Name of the argument in the MPI standard.
        argument: &'static str,
        /// Index within the argument, for arrays.
        index: usize,
        /// The value given.
        value: i64,
        /// The largest value allowed.
        most: i64,
    },
    /// Arrays that must have one length have several.
    Lengths {
        /// Name of the argument whose length differs.
        argument: &'static str,
        /// Its length.
        length: usize,
        /// The length of the others.
        expected: usize,
    },
    /// An offset, extent or size does not fit 63 bits (MPI_Aint, MPI_Count).
    Overflow {
        /// The quantity that was being computed.
        quantity: &'static str,
    },
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below {
                argument,
                index,
                value,
                least,
            } => {
                write!(
                    f,
                    "{argument} [{index}] is {value}; the smallest value allowed is {least}"
                )
            }
            Self::Above {
                argument,
                index,
                value,
                most,
            } => {
                write!(
                    f,
                    "{argument} [{index}] is {value}; the largest value allowed is {most}"
                )
            }
            Self::Lengths {
                argument,
                length,
                expected,
            } => {
                write!(f, "{argument} has {length} entries where {expected} are needed")
            }
            Self::Overflow { quantity } => {
                write!(
                    f,
                    "the {quantity} of the datatype does not fit the 63 bits of MPI_Aint and MPI_Count"
                )
            }
        }
    }
}

impl std::error::Error for TypeError {}

/// Narrows an exact result to what MPI can say.
pub(crate) fn narrow(value: i128, quantity: &'static str) -> Result<i64, TypeError> {
    i64::try_from(value).map_err(|_| TypeError::Overflow { quantity })
}

/// Refuses negative counts.
pub(crate) fn natural(argument: &'static str, index: usize, value: i64) -> Result<u64, TypeError> {
    u64::try_from(value).map_err(|_| TypeError::Below {
        argument,
        index,
        value,
        least: 0,
    })
}
