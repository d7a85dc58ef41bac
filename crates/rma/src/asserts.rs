// SPDX-License-Identifier: Apache-2.0
//! Asserts (MPI 5.0 section 12.5.5).

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;

/// Asserts that fence, start, post and lock take.
pub(crate) const FENCE: i32 =
    abi::MPI_MODE_NOSTORE | abi::MPI_MODE_NOPUT | abi::MPI_MODE_NOPRECEDE | abi::MPI_MODE_NOSUCCEED;
pub(crate) const POST: i32 = abi::MPI_MODE_NOCHECK | abi::MPI_MODE_NOSTORE | abi::MPI_MODE_NOPUT;
pub(crate) const START: i32 = abi::MPI_MODE_NOCHECK;
pub(crate) const LOCK: i32 = abi::MPI_MODE_NOCHECK;

/// Refuses what the function does not take.
pub(crate) fn check_assert(assert: i32, allowed: i32, names: &str) -> Result<()> {
    if assert & !allowed == 0 {
        return Ok(());
    }
    fail!(
        abi::MPI_ERR_ASSERT,
        argument("assert"),
        "is {assert}, expected 0 or a sum of {names}"
    )
}
