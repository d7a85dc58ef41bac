// SPDX-License-Identifier: Apache-2.0
//! MPI_Type_create_f90_* (MPI 5.0 section 19.1.9): like predefined datatypes they are committed, the same arguments
//! give the same handle, and they cannot be freed.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::{Datatype, Parametric};

use super::{insert, is_parametric};
use crate::c::Out;
use crate::call::call;

/// Those that were asked for, with their handles.
static MADE: Mutex<Vec<(Parametric, h::Datatype)>> = Mutex::new(Vec::new());

/// The handle of a datatype that was made here.
pub(super) fn handle_of(datatype: &Datatype) -> Option<h::Datatype> {
    if !is_parametric(datatype) {
        return None;
    }
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |handle: h::Datatype| {
        super::find_any(handle).is_ok_and(|of| {
            let (a, b) = (of.contents(), datatype.contents());
            a.combiner == b.combiner && a.integers == b.integers
        })
    };
    made.iter().map(|(_, handle)| *handle).find(|handle| same(*handle))
}

fn digits(argument: &str, value: c_int) -> Result<Option<u32>> {
    match u32::try_from(value) {
        Ok(digits) => Ok(Some(digits)),
        Err(_) if value == abi::MPI_UNDEFINED => Ok(None),
        Err(_) => fail!(
            abi::MPI_ERR_ARG,
            argument(argument),
            "is {value}, expected a number of decimal digits or MPI_UNDEFINED"
        ),
    }
}

fn both(p: c_int, r: c_int) -> Result<(Option<u32>, Option<u32>)> {
    let (precision, range) = (digits("p", p)?, digits("r", r)?);
    if precision.is_none() && range.is_none() {
        fail!(
            abi::MPI_ERR_ARG,
            "arguments p and r are both MPI_UNDEFINED, at least one must be given"
        );
    }
    Ok((precision, range))
}

fn give(out: Out<h::Datatype>, wanted: Parametric) -> Result<()> {
    out.set("newtype", h::MPI_DATATYPE_NULL)?;
    let Some(datatype) = wanted.datatype(abi::MPI_UNDEFINED.into()) else {
        fail!(
            abi::MPI_ERR_ARG,
            "arguments ask for {wanted:?}, but there is no type of this precision and range"
        );
    };
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = made
        .iter()
        .find(|(which, _)| *which == wanted)
        .map(|(_, handle)| *handle);
    let handle = known.unwrap_or_else(|| {
        let handle = insert(datatype, true);
        made.push((wanted, handle));
        handle
    });
    out.set("newtype", handle)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_f90_real(p: c_int, r: c_int, out: Out<h::Datatype>) -> c_int {
    call("MPI_Type_create_f90_real", || {
        let (precision, range) = both(p, r)?;
        give(out, Parametric::Real { precision, range })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_f90_complex(p: c_int, r: c_int, out: Out<h::Datatype>) -> c_int {
    call("MPI_Type_create_f90_complex", || {
        let (precision, range) = both(p, r)?;
        give(out, Parametric::Complex { precision, range })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_f90_integer(r: c_int, out: Out<h::Datatype>) -> c_int {
    call("MPI_Type_create_f90_integer", || match digits("r", r)? {
        Some(range) => give(out, Parametric::Integer { range }),
        None => fail!(
            abi::MPI_ERR_ARG,
            argument("r"),
            "is MPI_UNDEFINED, expected a number of decimal digits"
        ),
    })
}
