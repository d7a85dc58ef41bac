// SPDX-License-Identifier: Apache-2.0
//! The machine over a vendor MPI.

pub(crate) mod native;
pub(crate) mod native_collective;
pub(crate) mod native_step;
