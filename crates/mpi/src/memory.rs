// SPDX-License-Identifier: Apache-2.0
//! MPI_Alloc_mem and MPI_Free_mem: page-aligned memory from the allocator.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;

const PAGE: usize = 4096;

static SIZES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Memory of at least `size` bytes.
pub(crate) fn allocate(size: usize) -> Result<*mut c_void> {
    let Ok(layout) = Layout::from_size_align(size.max(1), PAGE) else {
        fail!(
            abi::MPI_ERR_NO_MEM,
            "{size} bytes are more than this machine can address"
        );
    };
    // SAFETY: the layout has a size above 0.
    let base = unsafe { alloc_zeroed(layout) };
    if base.is_null() {
        fail!(abi::MPI_ERR_NO_MEM, "the system has no {size} bytes");
    }
    SIZES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((base as usize, layout.size()));
    Ok(base.cast())
}

/// Gives memory of [`allocate`] back.
pub(crate) fn release(base: *mut c_void) -> Result<()> {
    let mut sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = sizes.iter().position(|(address, _)| *address == base as usize) else {
        fail!(
            abi::MPI_ERR_BASE,
            "{base:p} was not given by MPI_Alloc_mem, or was freed already"
        );
    };
    let (_, size) = sizes.swap_remove(at);
    let Ok(layout) = Layout::from_size_align(size, PAGE) else {
        return Ok(());
    };
    // SAFETY: `allocate` made it with this layout, and the entry was there, so it was not freed yet.
    unsafe { dealloc(base.cast(), layout) };
    Ok(())
}
