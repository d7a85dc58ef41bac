// SPDX-License-Identifier: Apache-2.0
//! The MPI 5.0 Standard ABI as data: handle and constant values, C types, status, error classes.
//!
//! * [`constants`]: integers under their names in C (`MPI_ANY_SOURCE`, `MPI_THREAD_MULTIPLE`, …); pointer sentinels
//!   (`MPI_IN_PLACE`, …) and predefined functions (`MPI_COMM_DUP_FN`, …) are `usize` addresses.
//! * [`handles`]: one transparent type per kind of handle, and the predefined handles.
//! * [`callbacks`]: types of functions that C code passes in. A parameter of such a type may also be one of
//!   the predefined small constants, so take it as `usize` and compare before converting.
//! * [`Status`], [`ERROR_CLASSES`], [`FUNCTIONS`].
//!
//! The files in `src/generated/` come from the tables in `spec/` (`cargo xtask codegen`).

#![forbid(unsafe_code)]

#[path = "generated/callbacks.rs"]
#[rustfmt::skip]
pub mod callbacks;
#[path = "generated/constants.rs"]
#[rustfmt::skip]
pub mod constants;
#[path = "generated/handles.rs"]
#[rustfmt::skip]
pub mod handles;
mod status;
mod tables;

pub use status::Status;
pub use tables::{ERROR_CLASSES, ErrorClass, FUNCTIONS, Function, error_class};

/// `MPI_Aint`: a signed integer as wide as a pointer.
pub type Aint = isize;
/// `MPI_Count`
pub type Count = i64;
/// `MPI_Offset`, bytes in a file.
pub type Offset = i64;

/// Handle values below this are predefined; a handle made at run time is never below it.
pub const PREDEFINED_HANDLES_END: usize = 0x1000;
