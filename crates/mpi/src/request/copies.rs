// SPDX-License-Identifier: Apache-2.0
//! Buffers that the Fortran layer copies: a contiguous copy stands for an array section while a request uses it.
//!
//! `libmpifort_abi` knows arrays, this library knows when an operation begins and is complete. So the layer gives each
//! such request functions that copy in and back.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// The functions, as `bindings/fortran/src/section.c` declares them; a part is a partition, or -1 for all.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Hooks {
    begin: unsafe extern "C" fn(*mut c_void, c_int),
    end: unsafe extern "C" fn(*mut c_void, c_int),
    release: unsafe extern "C" fn(*mut c_void),
}

/// Copies of the buffers of a request; they are gone with the last holder.
pub(super) struct Copies {
    hooks: Hooks,
    state: *mut c_void,
}

// SAFETY: the layer's functions copy memory that the program has lent to the operation; they keep nothing of a thread.
unsafe impl Send for Copies {}
// SAFETY: as above. Parts are copied at once by threads that own them, as MPI_Pready asks.
unsafe impl Sync for Copies {}

const ALL: c_int = -1;

impl Copies {
    /// With what the layer has given; it has promised that the functions take this state.
    pub(super) fn new(hooks: Hooks, state: *mut c_void) -> Self {
        Self { hooks, state }
    }

    /// The operation begins: what the program has in its arrays goes into the copies.
    pub(super) fn begin(&self) {
        self.begin_part(ALL);
    }

    pub(super) fn begin_part(&self, part: c_int) {
        // SAFETY: `state` is what the layer gave with the functions, and it is not released yet.
        unsafe { (self.hooks.begin)(self.state, part) }
    }

    /// The operation is complete: what has changed goes back. It may be said twice.
    pub(super) fn end(&self) {
        self.end_part(ALL);
    }

    pub(super) fn end_part(&self, part: c_int) {
        // SAFETY: as above.
        unsafe { (self.hooks.end)(self.state, part) }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        // SAFETY: nobody else has the state.
        unsafe { (self.hooks.release)(self.state) }
    }
}

/// Copies of an operation that nobody waits for any more: what has changed goes back when the last holder is gone.
pub(super) struct Left(pub(super) Arc<Copies>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.end();
    }
}
