// SPDX-License-Identifier: Apache-2.0
//! What a status tells (MPI 5.0 sections 3.2.5, 5.1.11 and 13.3).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Count, Status};
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::{Datatype, Foreign, Representation};

use crate::c::{In, Number, Out, count};
use crate::call::call_anytime;
use crate::datatype::find_any;
use crate::entry::entry;

const UNDEFINED: i64 = abi::MPI_UNDEFINED as i64;

fn bytes(status: In<Status>) -> Result<u64> {
    Ok(status.slice("status", 1)?[0].bytes().max(0) as u64)
}

/// How a message that was probed is represented, if its sender does that differently and this concerns the datatype.
fn foreign(status: In<Status>, ty: &Datatype) -> Result<Option<Foreign>> {
    let Some(form) = status.slice("status", 1)?[0].form() else {
        return Ok(None);
    };
    match Representation::decode(form) {
        Ok(form) => Ok(Foreign::new(ty, form)?),
        Err(error) => fail!(abi::MPI_ERR_ARG, "the status was overwritten: {error}"),
    }
}

/// Whole elements received, or MPI_UNDEFINED.
fn whole(status: In<Status>, datatype: h::Datatype) -> Result<i64> {
    let (bytes, ty) = (bytes(status)?, find_any(datatype)?);
    let size = match foreign(status, ty)? {
        None => ty.size(),
        Some(foreign) => foreign.bytes(1)?,
    };
    Ok(match (bytes, size) {
        (0, _) => 0,
        (_, 0) => UNDEFINED,
        _ if bytes % size == 0 => (bytes / size) as i64,
        _ => UNDEFINED,
    })
}

/// Basic elements received, or MPI_UNDEFINED.
fn basics(status: In<Status>, datatype: h::Datatype) -> Result<i64> {
    let (bytes, ty) = (bytes(status)?, find_any(datatype)?);
    let elements = match foreign(status, ty)? {
        None => ty.elements(bytes),
        Some(foreign) => Some(foreign.basics_in(bytes))
            .filter(|(_, rest)| *rest == 0)
            .map(|(n, _)| n),
    };
    Ok(elements.map_or(UNDEFINED, |n| n as i64))
}

/// MPI_UNDEFINED if it does not fit.
fn fitting<N: TryFrom<i64> + From<c_int>>(value: i64) -> N {
    N::try_from(value).unwrap_or_else(|_| abi::MPI_UNDEFINED.into())
}

fn set_elements(status: Out<Status>, datatype: h::Datatype, n: i64) -> Result<()> {
    let (n, ty) = (count("count", n)?, find_any(datatype)?);
    let mut changed = status.get("status")?;
    changed.set_bytes(bytes_of(n, ty)?);
    changed.set_form([0; 8]);
    status.set("status", changed)
}

/// Bytes of the first `n` basics of a stream of this type.
fn bytes_of(n: u64, ty: &Datatype) -> Result<i64> {
    let per_element = ty.signature().elements();
    if n == 0 || per_element == 0 {
        return Ok(0);
    }
    // The basics in a prefix are known; the shortest prefix that has enough is looked for by halving.
    let (mut low, mut high) = (0, ty.size());
    while low < high {
        let middle = low + (high - low) / 2;
        if ty.signature().elements_in(middle).0 < n % per_element {
            low = middle + 1
        } else {
            high = middle
        }
    }
    match ty
        .bytes(n / per_element)?
        .checked_add(low)
        .and_then(|b| i64::try_from(b).ok())
    {
        Some(bytes) => Ok(bytes),
        None => fail!(abi::MPI_ERR_COUNT, "{n} elements are more bytes than a status can hold"),
    }
}

fn change(status: Out<Status>, with: impl FnOnce(&mut Status)) -> Result<()> {
    let mut changed = status.get("status")?;
    with(&mut changed);
    status.set("status", changed)
}

entry! {
    isthmus_MPI_Get_count<c_int>, isthmus_MPI_Get_count_c<Count>:
    (status: In<Status>, datatype: h::Datatype, n: Out<N>) => n.set("count", fitting(whole(status, datatype)?))
}

entry! {
    isthmus_MPI_Get_elements<c_int>, isthmus_MPI_Get_elements_c<Count>, isthmus_MPI_Get_elements_x<Count>:
    (status: In<Status>, datatype: h::Datatype, n: Out<N>) => n.set("count", fitting(basics(status, datatype)?))
}

entry! {
    isthmus_MPI_Status_set_elements<c_int>,
    isthmus_MPI_Status_set_elements_c<Count>,
    isthmus_MPI_Status_set_elements_x<Count>:
    (status: Out<Status>, datatype: h::Datatype, n: N) => set_elements(status, datatype, n.wide())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Status_get_source(status: In<Status>, source: Out<c_int>) -> c_int {
    call_anytime("MPI_Status_get_source", || {
        source.set("source", status.slice("status", 1)?[0].source)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Status_get_tag(status: In<Status>, tag: Out<c_int>) -> c_int {
    call_anytime("MPI_Status_get_tag", || {
        tag.set("tag", status.slice("status", 1)?[0].tag)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Status_get_error(status: In<Status>, error: Out<c_int>) -> c_int {
    call_anytime("MPI_Status_get_error", || {
        error.set("error", status.slice("status", 1)?[0].error)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Status_set_source(status: Out<Status>, source: c_int) -> c_int {
    call_anytime("MPI_Status_set_source", || change(status, |s| s.source = source))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Status_set_tag(status: Out<Status>, tag: c_int) -> c_int {
    call_anytime("MPI_Status_set_tag", || change(status, |s| s.tag = tag))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Status_set_error(status: Out<Status>, error: c_int) -> c_int {
    call_anytime("MPI_Status_set_error", || change(status, |s| s.error = error))
}
