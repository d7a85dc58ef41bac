// SPDX-License-Identifier: Apache-2.0
//! MPI_Alloc_mem and MPI_Free_mem: memory from the allocator, aligned to pages or more.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::info::Info;

const PAGE: usize = 4096;

/// Largest alignment that anybody gets.
const MOST: usize = 1 << 30;

/// Address and layout of every piece.
static PIECES: Mutex<Vec<(usize, Layout)>> = Mutex::new(Vec::new());

/// Alignment that the info key `mpi_minimum_memory_alignment` asks for (MPI 5.0 section 9.2); at least a page.
pub(crate) fn alignment(info: &Info) -> Result<usize> {
    let Some(text) = info.get("mpi_minimum_memory_alignment")? else {
        return Ok(PAGE);
    };
    match text.trim().parse::<usize>() {
        Ok(wanted) if wanted.is_power_of_two() && wanted <= MOST => Ok(wanted.max(PAGE)),
        _ => fail!(
            abi::MPI_ERR_INFO_VALUE,
            argument("info"),
            "has \"{text}\" for the key mpi_minimum_memory_alignment, expected a power of two up to {MOST}"
        ),
    }
}

/// Memory of at least `size` bytes.
pub(crate) fn allocate(size: usize, alignment: usize) -> Result<*mut c_void> {
    let Ok(layout) = Layout::from_size_align(size.max(1), alignment) else {
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
    PIECES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((base as usize, layout));
    Ok(base.cast())
}

/// Gives memory of [`allocate`] back.
pub(crate) fn release(base: *mut c_void) -> Result<()> {
    let mut pieces = PIECES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = pieces.iter().position(|(address, _)| *address == base as usize) else {
        fail!(
            abi::MPI_ERR_BASE,
            argument("base"),
            "is {base:p}, which was not given by MPI_Alloc_mem, or was freed already"
        );
    };
    let (_, layout) = pieces.swap_remove(at);
    // SAFETY: `allocate` made it with this layout, and the entry was there, so it was not freed yet.
    unsafe { dealloc(base.cast(), layout) };
    Ok(())
}
