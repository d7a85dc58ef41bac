// SPDX-License-Identifier: Apache-2.0
//! Sizes, bounds and the making of datatypes (MPI 5.0 sections 5.1.5 to 5.1.13).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count};
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_datatype::{ALL, Basic, Combiner, Contents, Datatype, Kind};

use super::is_parametric;
use super::parametric::handle_of;
use super::{find_any, insert};
use crate::c::{Out, count};
use crate::call::call;
use crate::entry::entry;

fn bounds<T>(datatype: h::Datatype, lower: Out<T>, extent: Out<T>, of: impl Fn(i64) -> T) -> Result<()> {
    let ty = find_any(datatype)?;
    lower.set("lb", of(ty.lower_bound()))?;
    extent.set("extent", of(ty.extent()))
}

fn true_bounds<T>(datatype: h::Datatype, lower: Out<T>, extent: Out<T>, of: impl Fn(i64) -> T) -> Result<()> {
    let ty = find_any(datatype)?;
    lower.set("true_lb", of(ty.true_lower_bound()))?;
    extent.set("true_extent", of(ty.true_extent()))
}

/// How a type was made, for the calls without large counts.
fn small_contents(datatype: h::Datatype) -> Result<&'static Contents> {
    let contents = find_any(datatype)?.contents();
    if !contents.counts.is_empty() {
        fail!(
            abi::MPI_ERR_TYPE,
            "the datatype was made with large counts; ask with the _c version of this call"
        );
    }
    Ok(contents)
}

fn decodable(contents: &Contents) -> Result<()> {
    if contents.combiner == Combiner::Named {
        fail!(abi::MPI_ERR_TYPE, "a predefined datatype has no contents");
    }
    Ok(())
}

/// Writes a list into an array of at least that many entries.
fn fill<T>(argument: &str, room: i64, out: Out<T>, values: impl ExactSizeIterator<Item = T>) -> Result<()> {
    let room = count(argument, room)?;
    if room < values.len() as u64 {
        fail!(
            abi::MPI_ERR_ARG,
            "{argument} is {room}, but there are {} to return",
            values.len()
        );
    }
    for (to, from) in out.slice(argument, values.len())?.iter_mut().zip(values) {
        *to = from;
    }
    Ok(())
}

/// The types that a type was made of: predefined ones as they are, others as new handles.
fn fill_types(room: i64, out: Out<h::Datatype>, types: &[Datatype]) -> Result<()> {
    let handle = |ty: &Datatype| match ty.basic() {
        Some(_) if is_parametric(ty) => handle_of(ty).unwrap_or(h::MPI_DATATYPE_NULL),
        Some(basic) => h::Datatype(basic.handle() as usize),
        None => insert(ty.clone(), true),
    };
    fill("max_datatypes", room, out, types.iter().map(handle))
}

/// The predefined type of a class with a size (MPI 5.0 section 19.1.9).
fn of_size(class: c_int, size: c_int) -> Result<Basic> {
    let of_class: &[Basic] = match class {
        abi::MPI_TYPECLASS_INTEGER => &[
            Basic::Integer1,
            Basic::Integer2,
            Basic::Integer4,
            Basic::Integer8,
            Basic::Integer16,
        ],
        abi::MPI_TYPECLASS_REAL => &[Basic::Real2, Basic::Real4, Basic::Real8, Basic::Real16],
        abi::MPI_TYPECLASS_COMPLEX => &[Basic::Complex4, Basic::Complex8, Basic::Complex16, Basic::Complex32],
        _ => fail!(
            abi::MPI_ERR_ARG,
            argument("typeclass"),
            "is {class}, which is not a class of types"
        ),
    };
    match of_class.iter().find(|b| usize::try_from(size) == Ok(b.size())) {
        Some(basic) => Ok(*basic),
        None => fail!(abi::MPI_ERR_ARG, "there is no type of {size} bytes in this class"),
    }
}

/// The pair of a value and an index, if there is one.
fn pair(value: h::Datatype, index: h::Datatype) -> Result<h::Datatype> {
    let value = find_any(value).about("value_type")?;
    let wanted = (value.basic(), find_any(index).about("index_type")?.basic());
    let same = |b: &&Basic| matches!(b.kind(), Kind::Pair(v, i) if (Some(v), Some(i)) == wanted);
    Ok(ALL
        .iter()
        .find(same)
        .map_or(h::MPI_DATATYPE_NULL, |b| h::Datatype(b.handle() as usize)))
}

entry! {
    isthmus_MPI_Type_size<c_int>, isthmus_MPI_Type_size_c<Count>, isthmus_MPI_Type_size_x<Count>:
    (datatype: h::Datatype, size: Out<N>) => {
        size.set("size", N::try_from(find_any(datatype)?.size()).unwrap_or(abi::MPI_UNDEFINED as N))
    }
}

entry! {
    isthmus_MPI_Type_get_extent<Aint>, isthmus_MPI_Type_get_extent_c<Count>, isthmus_MPI_Type_get_extent_x<Count>:
    (datatype: h::Datatype, lower: Out<N>, extent: Out<N>) => bounds(datatype, lower, extent, |v| v as N)
}

entry! {
    isthmus_MPI_Type_get_true_extent<Aint>,
    isthmus_MPI_Type_get_true_extent_c<Count>,
    isthmus_MPI_Type_get_true_extent_x<Count>:
    (datatype: h::Datatype, lower: Out<N>, extent: Out<N>) => true_bounds(datatype, lower, extent, |v| v as N)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_get_envelope(
    datatype: h::Datatype,
    integers: Out<c_int>,
    addresses: Out<c_int>,
    types: Out<c_int>,
    combiner: Out<c_int>,
) -> c_int {
    call("MPI_Type_get_envelope", || {
        let contents = small_contents(datatype)?;
        integers.set("num_integers", contents.integers.len() as c_int)?;
        addresses.set("num_addresses", contents.addresses.len() as c_int)?;
        types.set("num_datatypes", contents.types.len() as c_int)?;
        combiner.set("combiner", contents.combiner as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_get_envelope_c(
    datatype: h::Datatype,
    integers: Out<Count>,
    addresses: Out<Count>,
    counts: Out<Count>,
    types: Out<Count>,
    combiner: Out<c_int>,
) -> c_int {
    call("MPI_Type_get_envelope_c", || {
        let contents = find_any(datatype)?.contents();
        integers.set("num_integers", contents.integers.len() as Count)?;
        addresses.set("num_addresses", contents.addresses.len() as Count)?;
        counts.set("num_large_counts", contents.counts.len() as Count)?;
        types.set("num_datatypes", contents.types.len() as Count)?;
        combiner.set("combiner", contents.combiner as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_get_contents(
    datatype: h::Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_types: c_int,
    integers: Out<c_int>,
    addresses: Out<Aint>,
    types: Out<h::Datatype>,
) -> c_int {
    call("MPI_Type_get_contents", || {
        let contents = small_contents(datatype)?;
        decodable(contents)?;
        fill(
            "max_integers",
            max_integers.into(),
            integers,
            contents.integers.iter().map(|v| *v as c_int),
        )?;
        fill(
            "max_addresses",
            max_addresses.into(),
            addresses,
            contents.addresses.iter().map(|v| *v as Aint),
        )?;
        fill_types(max_types.into(), types, &contents.types)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_get_contents_c(
    datatype: h::Datatype,
    max_integers: Count,
    max_addresses: Count,
    max_counts: Count,
    max_types: Count,
    integers: Out<c_int>,
    addresses: Out<Aint>,
    counts: Out<Count>,
    types: Out<h::Datatype>,
) -> c_int {
    call("MPI_Type_get_contents_c", || {
        let contents = find_any(datatype)?.contents();
        decodable(contents)?;
        fill(
            "max_integers",
            max_integers,
            integers,
            contents.integers.iter().map(|v| *v as c_int),
        )?;
        fill(
            "max_addresses",
            max_addresses,
            addresses,
            contents.addresses.iter().map(|v| *v as Aint),
        )?;
        fill("max_large_counts", max_counts, counts, contents.counts.iter().copied())?;
        fill_types(max_types, types, &contents.types)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_match_size(class: c_int, size: c_int, datatype: Out<h::Datatype>) -> c_int {
    call("MPI_Type_match_size", || {
        datatype.set("datatype", h::MPI_DATATYPE_NULL)?;
        datatype.set("datatype", h::Datatype(of_size(class, size)?.handle() as usize))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_get_value_index(
    value: h::Datatype,
    index: h::Datatype,
    pair_type: Out<h::Datatype>,
) -> c_int {
    call("MPI_Type_get_value_index", || {
        pair_type.set("pair_type", h::MPI_DATATYPE_NULL)?;
        pair_type.set("pair_type", pair(value, index)?)
    })
}
