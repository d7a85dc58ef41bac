// SPDX-License-Identifier: Apache-2.0
//! The buffer of buffered mode (MPI 5.0 section 3.6). The library keeps copies by itself; what the program attaches
//! says how much it may have under way, and is given back on detach.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use isthmus_abi::Count;
use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;

use crate::c::{Out, Target};
use crate::call::call;

/// Address and bytes.
static ATTACHED: Mutex<Option<(usize, u64)>> = Mutex::new(None);

/// Would a message of this length fit?
pub(crate) fn check(length: u64) -> Result<()> {
    let attached = *ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let needed = length + abi::MPI_BSEND_OVERHEAD as u64;
    match attached {
        Some((address, _)) if address == abi::MPI_BUFFER_AUTOMATIC => Ok(()),
        Some((_, size)) if needed <= size => Ok(()),
        Some((_, size)) => fail!(
            abi::MPI_ERR_BUFFER,
            "a buffered send needs {needed} bytes, the attached buffer has {size}; attach a larger one with MPI_Buffer_attach"
        ),
        None => fail!(
            abi::MPI_ERR_BUFFER,
            "a buffered send needs a buffer; attach one with MPI_Buffer_attach"
        ),
    }
}

fn attach(buffer: Target, size: i64) -> Result<()> {
    let size = crate::c::count("size", size)?;
    let mut attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    if attached.is_some() {
        fail!(abi::MPI_ERR_BUFFER, "a buffer is attached already; detach it first");
    }
    *attached = Some((buffer.address(), size));
    Ok(())
}

fn detach(buffer: Out<usize>) -> Result<u64> {
    let Some((address, size)) = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        fail!(abi::MPI_ERR_BUFFER, "no buffer is attached");
    };
    // The engine keeps copies in memory of its own, so the program's memory is free at once.
    buffer.set("buffer_addr", address)?;
    Ok(size)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Buffer_attach(buffer: Target, size: c_int) -> c_int {
    call("MPI_Buffer_attach", || attach(buffer, size.into()))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Buffer_attach_c(buffer: Target, size: Count) -> c_int {
    call("MPI_Buffer_attach_c", || attach(buffer, size))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Buffer_detach(buffer: Out<usize>, size: Out<c_int>) -> c_int {
    call("MPI_Buffer_detach", || size.set("size", detach(buffer)? as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Buffer_detach_c(buffer: Out<usize>, size: Out<Count>) -> c_int {
    call("MPI_Buffer_detach_c", || size.set("size", detach(buffer)? as Count))
}
