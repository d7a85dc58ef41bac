// SPDX-License-Identifier: Apache-2.0
//! What the ABI is like (MPI 5.0 chapter 20): its version and sizes, and the Fortran that it was told about.
//!
//! The library has no Fortran of its own, so sizes and truth values are unknown until somebody sets them, once; then
//! they are given to whoever asks.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::info::Info;

use crate::c::{In, Out, flag};
use crate::call::call_anytime;

/// Lengths that a LOGICAL can have, bytes.
const LOGICALS: [c_int; 5] = [1, 2, 4, 8, 16];

/// Keys that tell the size of a type, bytes.
const SIZES: [&str; 4] = [
    "mpi_logical_size",
    "mpi_integer_size",
    "mpi_real_size",
    "mpi_double_precision_size",
];

/// Types that a Fortran may lack: `mpi_…_supported` is true or false.
const OPTIONAL: [&str; 18] = [
    "logical1",
    "logical2",
    "logical4",
    "logical8",
    "logical16",
    "integer1",
    "integer2",
    "integer4",
    "integer8",
    "integer16",
    "real2",
    "real4",
    "real8",
    "real16",
    "complex4",
    "complex8",
    "complex16",
    "complex32",
];

/// LOGICAL values of one size.
struct Booleans {
    yes: Vec<u8>,
    no: Vec<u8>,
}

static FORTRAN: Mutex<Option<Info>> = Mutex::new(None);
static BOOLEANS: Mutex<Option<Booleans>> = Mutex::new(None);

fn check_key(key: &str, value: &str) -> Result<()> {
    if SIZES.contains(&key) {
        if !value.parse().is_ok_and(|size| LOGICALS.contains(&size)) {
            fail!(
                abi::MPI_ERR_INFO_VALUE,
                argument("info"),
                "has \"{value}\" for the key {key}, expected a size of 1 to 16 bytes"
            );
        }
        return Ok(());
    }
    let optional = key.strip_prefix("mpi_").and_then(|k| k.strip_suffix("_supported"));
    let known = optional.is_some_and(|k| OPTIONAL.contains(&k) || k == "double_complex");
    if known && !matches!(value, "true" | "false") {
        fail!(
            abi::MPI_ERR_INFO_VALUE,
            argument("info"),
            "has \"{value}\" for the key {key}, expected true or false"
        );
    }
    Ok(())
}

fn set_fortran(info: h::Info) -> Result<()> {
    let given = crate::info::find(info)?;
    if info == h::MPI_INFO_NULL {
        fail!(abi::MPI_ERR_INFO, argument("info"), "is MPI_INFO_NULL");
    }
    let keys = (0..given.len()).map(|n| given.nth_key(n)).collect::<Result<Vec<_>>>()?;
    for key in keys {
        check_key(key, given.get(key)?.unwrap_or_default())?;
    }
    let mut kept = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_some() {
        fail!(
            abi::MPI_ERR_ABI,
            "the Fortran info is set already; it can be set once only"
        );
    }
    *kept = Some(given);
    Ok(())
}

fn logical_size(size: c_int) -> Result<usize> {
    if !LOGICALS.contains(&size) {
        fail!(
            abi::MPI_ERR_ARG,
            argument("logical_size"),
            "is {size}, expected 1, 2, 4, 8 or 16 bytes"
        );
    }
    Ok(size as usize)
}

fn set_booleans(size: c_int, yes: In<u8>, no: In<u8>) -> Result<()> {
    let size = logical_size(size)?;
    let (yes, no) = (yes.slice("logical_true", size)?, no.slice("logical_false", size)?);
    if yes == no {
        fail!(
            abi::MPI_ERR_ARG,
            "arguments logical_true and logical_false have the same value"
        );
    }
    let mut kept = BOOLEANS.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_some() {
        fail!(
            abi::MPI_ERR_ABI,
            "the Fortran truth values are set already; they can be set once only"
        );
    }
    *kept = Some(Booleans {
        yes: yes.to_vec(),
        no: no.to_vec(),
    });
    Ok(())
}

fn get_booleans(size: c_int, yes: Out<u8>, no: Out<u8>, is_set: Out<c_int>) -> Result<()> {
    let size = logical_size(size)?;
    let kept = BOOLEANS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept.as_ref().filter(|b| b.yes.len() == size);
    is_set.set("is_set", flag(known.is_some()))?;
    let Some(known) = known else { return Ok(()) };
    yes.slice("logical_true", size)?.copy_from_slice(&known.yes);
    no.slice("logical_false", size)?.copy_from_slice(&known.no);
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Abi_get_version(major: Out<c_int>, minor: Out<c_int>) -> c_int {
    call_anytime("MPI_Abi_get_version", || {
        major.set("abi_major", abi::MPI_ABI_VERSION)?;
        minor.set("abi_minor", abi::MPI_ABI_SUBVERSION)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Abi_get_info(info: Out<h::Info>) -> c_int {
    call_anytime("MPI_Abi_get_info", || {
        let mut sizes = Info::default();
        sizes.set("mpi_aint_size", &size_of::<isthmus_abi::Aint>().to_string())?;
        sizes.set("mpi_count_size", &size_of::<isthmus_abi::Count>().to_string())?;
        sizes.set("mpi_offset_size", &size_of::<isthmus_abi::Offset>().to_string())?;
        info.set("info", h::MPI_INFO_NULL)?;
        info.set("info", crate::info::insert(sizes))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Abi_set_fortran_info(info: h::Info) -> c_int {
    call_anytime("MPI_Abi_set_fortran_info", || set_fortran(info))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Abi_get_fortran_info(info: Out<h::Info>) -> c_int {
    call_anytime("MPI_Abi_get_fortran_info", || {
        info.set("info", h::MPI_INFO_NULL)?;
        let kept = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner).clone();
        kept.map_or(Ok(()), |kept| info.set("info", crate::info::insert(kept)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Abi_set_fortran_booleans(size: c_int, yes: In<u8>, no: In<u8>) -> c_int {
    call_anytime("MPI_Abi_set_fortran_booleans", || set_booleans(size, yes, no))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Abi_get_fortran_booleans(
    size: c_int,
    yes: Out<u8>,
    no: Out<u8>,
    is_set: Out<c_int>,
) -> c_int {
    call_anytime("MPI_Abi_get_fortran_booleans", || get_booleans(size, yes, no, is_set))
}
