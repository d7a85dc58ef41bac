// SPDX-License-Identifier: Apache-2.0
//! Handles of partitioned requests, and copies of the Fortran layer that requests have.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;

use super::copies::{Copies, Hooks};
use super::{Entry, Operation, Partitioned, REQUESTS, Role, Starter, find, insert_object};

/// A handle for an inactive partitioned operation.
pub(crate) fn insert_partitioned(comm: h::Comm, starter: Starter, role: Partitioned) -> h::Request {
    insert_object(comm, None, Role::Partitioned(starter, role))
}

/// A partitioned request and, if it is active, its operation.
pub(crate) fn partitioned(handle: h::Request) -> Result<(Partitioned, Option<Operation>)> {
    let object = find(handle)?;
    let Role::Partitioned(_, role) = &object.role else {
        fail!(
            abi::MPI_ERR_REQUEST,
            argument("request"),
            "is not partitioned; only MPI_Psend_init and MPI_Precv_init make such requests"
        );
    };
    Ok((*role, object.state().clone()))
}

/// For `libmpifort_abi`: the buffers of a request that was just made are copies. MPI_SUCCESS: the request has them from
/// now on.
///
/// # Safety
///
/// `hooks` points to functions that take `state` until `release` was called, which is once.
#[unsafe(no_mangle)]
unsafe extern "C" fn isthmus_request_copies(request: h::Request, hooks: *const Hooks, state: *mut c_void) -> c_int {
    if find(request).is_err() {
        return abi::MPI_ERR_REQUEST;
    }
    // SAFETY: the caller's promise.
    let hooks = unsafe { *hooks };
    let copies = Arc::new(Copies::new(hooks, state));
    REQUESTS.update(request.0, |entry| {
        if let Entry::Full(object) = entry {
            object.copies = Some(copies);
        }
    });
    abi::MPI_SUCCESS
}

/// The copies of a request that has them.
fn copies_of(request: h::Request) -> Option<Arc<Copies>> {
    match REQUESTS.get(request.0)? {
        Entry::Full(object) => object.copies.clone(),
        Entry::Quick(_) => None,
    }
}

/// Partitions of a request get what the program has in them, or have arrived.
pub(crate) fn part(request: h::Request, part: c_int, arrived: bool) {
    match copies_of(request) {
        Some(copies) if arrived => copies.end_part(part),
        Some(copies) => copies.begin_part(part),
        None => {}
    }
}
