// SPDX-License-Identifier: Apache-2.0
//! Memory that others may have pointers to, and the pointers.

use std::ffi::{c_char, c_int};

use isthmus_abi::Aint;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::{About, Result};
use isthmus_core::{fail, p2p};
use isthmus_requests::{POINTER_BYTES, Pointer, Target as Memory, to_process, words};

use crate::c::{In, Out, Target};
use crate::call::call_in_handlers;
use crate::{check, comm, process};

/// A pointer that the program gives.
pub(super) fn pointer(argument: &str, given: In<[u8; POINTER_BYTES]>) -> Result<Pointer> {
    let bytes = given.slice(argument, 1)?;
    match bytes.first().map(Pointer::decode) {
        Some(Ok(pointer)) => Ok(pointer),
        _ => fail!(
            abi::MPI_ERR_ARG,
            argument(argument),
            "is not a global pointer: its bytes were changed, or never set"
        ),
    }
}

/// A number of bytes that is not negative.
pub(crate) fn size(argument: &str, value: Aint) -> Result<u64> {
    match u64::try_from(value) {
        Ok(size) => Ok(size),
        Err(_) => fail!(
            abi::MPI_ERR_SIZE,
            argument(argument),
            "is {value}, expected 0 bytes or more"
        ),
    }
}

/// Gives a pointer to memory of this process.
pub(crate) fn give(pointer: Out<[u8; POINTER_BYTES]>, target: Memory) -> Result<()> {
    let world = process::world()?;
    let mut made = to_process(world, world.me())?;
    made.target = target;
    pointer.set("pointer", made.encode())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_memory_register(base: Target, bytes: Aint, memory: Out<c_int>) -> c_int {
    call_in_handlers("isthmus_memory_register", h::MPI_COMM_NULL, || {
        memory.set("memory", 0)?;
        let length = size("size", bytes)?;
        check::memory(abi::MPI_ERR_BASE, "base", base.address(), length)?;
        let number = process::get()?.requests.add_memory(base.address(), length)?;
        memory.set("memory", number as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_memory_unregister(memory: Out<c_int>) -> c_int {
    call_in_handlers("isthmus_memory_unregister", h::MPI_COMM_NULL, || {
        let number = memory.get("memory")?;
        process::get()?.requests.remove_memory(number as u32)?;
        memory.set("memory", 0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_pointer_to_process(rank: c_int, comm: h::Comm, pointer: Out<[u8; POINTER_BYTES]>) -> c_int {
    call_in_handlers("isthmus_pointer_to_process", comm, || {
        let comm = comm::find(comm)?;
        let Some(rank) = p2p::destination(comm, rank).about("rank")? else {
            fail!(
                abi::MPI_ERR_RANK,
                argument("rank"),
                "is MPI_PROC_NULL, which no pointer leads to"
            );
        };
        let peer = comm.channel().members.peer(rank);
        pointer.set("pointer", to_process(process::world()?, peer)?.encode())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_pointer_to_memory(
    memory: c_int,
    offset: Aint,
    bytes: Aint,
    pointer: Out<[u8; POINTER_BYTES]>,
) -> c_int {
    call_in_handlers("isthmus_pointer_to_memory", h::MPI_COMM_NULL, || {
        let (offset, length) = (size("offset", offset)?, size("bytes", bytes)?);
        give(pointer, process::get()?.requests.part(memory as u32, offset, length)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_pointer_text(given: In<[u8; POINTER_BYTES]>, text: Out<c_char>, capacity: c_int) -> c_int {
    call_in_handlers("isthmus_pointer_text", h::MPI_COMM_NULL, || {
        let capacity = match usize::try_from(capacity) {
            Ok(capacity) if capacity > 0 => capacity,
            _ => fail!(
                abi::MPI_ERR_ARG,
                argument("size"),
                "is {capacity}, expected 1 byte or more"
            ),
        };
        let words = words(&pointer("pointer", given)?);
        text.text("text", &words, capacity).map(drop)
    })
}
