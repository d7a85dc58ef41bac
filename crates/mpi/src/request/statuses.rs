// SPDX-License-Identifier: Apache-2.0
//! Statuses of requests, as they are given to programs.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_engine::Completion;

use crate::c::Out;

/// Status of a completed receive.
pub(crate) fn receive_status(completion: &Completion) -> Status {
    if completion.cancelled {
        let mut status = Status::empty();
        status.set_cancelled(true);
        return status;
    }
    Status::new(completion.source as c_int, completion.tag, completion.bytes as i64)
}

/// Status of a receive from MPI_PROC_NULL.
pub(crate) fn null_status() -> Status {
    Status::new(abi::MPI_PROC_NULL, abi::MPI_ANY_TAG, 0)
}

/// Copies source, tag and the library's part; MPI_ERROR is left as it is (MPI 5.0 section 3.2.5).
pub(crate) fn give_status(out: Out<Status>, status: Status) {
    if !out.is_null() {
        let error = out.get("status").map_or(0, |old| old.error);
        out.put(with_error(status, error));
    }
}

/// Gives the empty status of null and inactive requests, whose MPI_ERROR is MPI_SUCCESS (MPI 5.0 section 3.7.3).
pub(super) fn give_empty(out: Out<Status>) {
    out.put(Status::empty());
}

pub(super) fn with_error(mut status: Status, error: c_int) -> Status {
    status.error = error;
    status
}
