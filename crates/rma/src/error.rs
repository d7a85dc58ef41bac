// SPDX-License-Identifier: Apache-2.0
//! Memory of another process that was not reached, as an error of MPI.

use isthmus_abi::constants as abi;
use isthmus_core::error::Error;
use isthmus_engine::Unreached;

/// The error of an operation.
pub(crate) fn unreached(error: &Unreached) -> Error {
    let class = match error {
        Unreached::Gone(_) => abi::MPIX_ERR_PROC_FAILED,
        Unreached::Nowhere(_) => abi::MPI_ERR_RMA_RANGE,
        Unreached::Refused(_) => abi::MPI_ERR_UNSUPPORTED_OPERATION,
    };
    Error::new(class, error.to_string())
}
