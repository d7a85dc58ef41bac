// SPDX-License-Identifier: Apache-2.0
//! MPI_Alloc_mem and MPI_Free_mem: memory that the processes of the node can share, in case that it becomes a window,
//! or else from the allocator; aligned to pages or more.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_rma::{Location, Shareable};

use crate::process;

const PAGE: usize = 4096;

/// Largest alignment that anybody gets.
const MOST: usize = 1 << 30;

/// Most pieces that others can share: each is a file.
const MOST_SHARED: usize = 256;

/// Where memory comes from, and goes back to.
enum Origin {
    Allocator(Layout),
    Node(Shareable),
}

/// Every piece that there is.
struct Pieces {
    /// By their addresses.
    all: BTreeMap<usize, Origin>,
    /// How many of them others can share.
    shared: usize,
}

static PIECES: Mutex<Pieces> = Mutex::new(Pieces {
    all: BTreeMap::new(),
    shared: 0,
});

fn pieces() -> MutexGuard<'static, Pieces> {
    PIECES.lock().unwrap_or_else(PoisonError::into_inner)
}

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

/// Memory of at least `size` bytes, of which the program may make windows.
pub(crate) fn allocate_for_windows(size: usize, alignment: usize) -> Result<*mut c_void> {
    let is_possible = size > 0 && alignment <= PAGE && pieces().shared < MOST_SHARED;
    let world = process::world().ok().filter(|_| is_possible);
    let Some(piece) = world.and_then(|world| Shareable::new(world, size)) else {
        return allocate(size, alignment);
    };
    let address = piece.address();
    let mut pieces = pieces();
    pieces.all.insert(address, Origin::Node(piece));
    pieces.shared += 1;
    Ok(std::ptr::with_exposed_provenance_mut(address))
}

/// Where others of the node find these bytes, if they can.
pub(crate) fn location(address: usize, bytes: u64) -> Option<Location> {
    match pieces().all.range(..=address).next_back()?.1 {
        Origin::Node(piece) => piece.location(address, bytes),
        Origin::Allocator(_) => None,
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
        fail!(abi::MPI_ERR_NO_MEM, "cannot allocate {size} bytes");
    }
    pieces().all.insert(base as usize, Origin::Allocator(layout));
    Ok(base.cast())
}

/// Gives memory of [`allocate`] back.
pub(crate) fn release(base: *mut c_void) -> Result<()> {
    let mut pieces = pieces();
    let Some(origin) = pieces.all.remove(&(base as usize)) else {
        fail!(
            abi::MPI_ERR_BASE,
            argument("base"),
            "is {base:p}, which was not given by MPI_Alloc_mem, or was freed already"
        );
    };
    pieces.shared -= usize::from(matches!(origin, Origin::Node(_)));
    drop(pieces);
    match origin {
        // SAFETY: `allocate` made it with this layout, and the entry was there, so it was not freed yet.
        Origin::Allocator(layout) => unsafe { dealloc(base.cast(), layout) },
        Origin::Node(piece) => piece.release(process::world()?),
    }
    Ok(())
}
