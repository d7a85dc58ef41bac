// SPDX-License-Identifier: Apache-2.0
//! Global pointers to memory of windows (`include/isthmus.h`).

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use isthmus_abi::Aint;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::fail;
use isthmus_requests::POINTER_BYTES;
use isthmus_rma::Flavor;

use super::{find, locked};
use crate::c::Out;
use crate::call::call_in_handlers;
use crate::process;
use crate::requests::{give, size};

/// Memory of windows that have pointers to them, by the handles of the windows.
static KNOWN: Mutex<BTreeMap<usize, u32>> = Mutex::new(BTreeMap::new());

/// The window is freed: pointers to it lead nowhere.
pub(super) fn forget(win: h::Win) {
    if let (Some(number), Ok(process)) = (locked(&KNOWN).remove(&win.0), process::get()) {
        // It was registered with this number.
        let _ = process.requests.remove_memory(number);
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_pointer_to_window(
    win: h::Win,
    disp: Aint,
    bytes: Aint,
    pointer: Out<[u8; POINTER_BYTES]>,
) -> c_int {
    call_in_handlers("isthmus_pointer_to_window", win, || {
        let window = &find(win)?.window;
        if window.flavor() == Flavor::Dynamic {
            fail!(
                abi::MPI_ERR_RMA_FLAVOR,
                argument("win"),
                "was made by MPI_Win_create_dynamic; for pointers to memory that is attached to it, register the memory \
                 with isthmus_memory_register"
            );
        }
        let (disp, length) = (size("disp", disp)?, size("bytes", bytes)?);
        let requests = &process::get()?.requests;
        let mut known = locked(&KNOWN);
        let number = match known.get(&win.0) {
            Some(&number) => number,
            None => {
                let number = requests.add_memory(window.base(), window.size())?;
                known.insert(win.0, number);
                number
            }
        };
        give(
            pointer,
            requests.part(number, disp.saturating_mul(window.unit()), length)?,
        )
    })
}
