// SPDX-License-Identifier: Apache-2.0
//! Functions of Fortran programs that get the address of a handle: operators and error handlers.
//!
//! They read an INTEGER there, C functions a pointer. A little-endian machine has both in the same place; on others the
//! INTEGER is its end. So the Fortran layer says which functions are Fortran's before it makes an operator or a handler
//! of them.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

static FUNCTIONS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// For `libmpifort_abi`: this function is Fortran's.
#[unsafe(no_mangle)]
extern "C" fn isthmus_fortran_function(function: *const c_void) {
    let mut functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    functions.insert(function.addr());
}

/// Where a function looks for a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    AtPointer,
    AtInteger,
}

impl Looks {
    /// Where the function with this address does.
    pub(crate) fn of(function: usize) -> Self {
        let functions = FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        if functions.contains(&function) {
            Self::AtInteger
        } else {
            Self::AtPointer
        }
    }

    /// The address that it gets.
    pub(crate) fn place(self, handle: &mut usize) -> *mut usize {
        let place: *mut usize = handle;
        match self {
            Self::AtInteger if cfg!(target_endian = "big") => {
                place.wrapping_byte_add(size_of::<usize>() - size_of::<i32>())
            }
            _ => place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fortran_finds_an_integer_and_c_a_pointer() {
        let mut handle = 0x123;
        isthmus_fortran_function(std::ptr::without_provenance(0x4000));
        let (fortran, c) = (Looks::of(0x4000), Looks::of(0x4001));
        assert_eq!((fortran, c), (Looks::AtInteger, Looks::AtPointer));
        // SAFETY: four bytes of `handle`, which lives on.
        let integer = unsafe { fortran.place(&mut handle).cast::<i32>().read() };
        assert_eq!(integer, 0x123);
        // SAFETY: all of it.
        assert_eq!(unsafe { c.place(&mut handle).read() }, 0x123);
    }
}
