// SPDX-License-Identifier: Apache-2.0
//! Constructors of datatypes (MPI 5.0 section 5.1), each with its large-count twin `_c`.

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count};
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_datatype::{Datatype, Distribution, Order, TypeError};

use super::{find_any, give};
use crate::c::Number;
use crate::c::{In, Out, count};
use crate::call::call;

/// Most dimensions of an array; more is taken for a mistake.
const MOST_DIMENSIONS: usize = 4096;

type New = Out<h::Datatype>;

/// Makes a datatype of one other. `large`: by the call with large counts, which MPI_Type_get_envelope tells.
fn derive(
    new: New,
    old: h::Datatype,
    large: bool,
    make: impl FnOnce(&Datatype) -> Result<std::result::Result<Datatype, TypeError>>,
) -> Result<()> {
    give(new, || {
        let made = make(find_any(old).about("oldtype")?)?.map_err(refused)?;
        Ok(if large { made.large() } else { made })
    })
}

/// What is wrong with the arguments of a constructor, as an error class.
fn refused(error: TypeError) -> isthmus_core::error::Error {
    let class = match &error {
        TypeError::Below { argument, .. } if *argument == "count" => abi::MPI_ERR_COUNT,
        _ => abi::MPI_ERR_ARG,
    };
    isthmus_core::error::Error::new(class, error.to_string())
}

/// An array argument with entries of any integer type.
fn list<T: Number>(argument: &str, array: In<T>, n: u64) -> Result<Vec<i64>> {
    Ok(array.slice(argument, n as usize)?.iter().map(|v| v.wide()).collect())
}

fn indexed<C: Number, D: Number>(
    n: i64,
    lengths: In<C>,
    displacements: In<D>,
    old: &Datatype,
    make: impl Fn(&[i64], &[i64], &Datatype) -> std::result::Result<Datatype, TypeError>,
) -> Result<std::result::Result<Datatype, TypeError>> {
    let n = count("count", n)?;
    let lengths = list("array_of_blocklengths", lengths, n)?;
    Ok(make(&lengths, &list("array_of_displacements", displacements, n)?, old))
}

fn blocks<D: Number>(
    n: i64,
    displacements: In<D>,
    make: impl Fn(&[i64]) -> std::result::Result<Datatype, TypeError>,
) -> Result<std::result::Result<Datatype, TypeError>> {
    Ok(make(&list(
        "array_of_displacements",
        displacements,
        count("count", n)?,
    )?))
}

fn structure<C: Number, D: Number>(
    n: i64,
    lengths: In<C>,
    displacements: In<D>,
    types: In<h::Datatype>,
) -> Result<Datatype> {
    let n = count("count", n)?;
    let lengths = list("array_of_blocklengths", lengths, n)?;
    let displacements = list("array_of_displacements", displacements, n)?;
    let handles = types.slice("array_of_types", n as usize)?;
    let types = handles
        .iter()
        .map(|t| find_any(*t).about("array_of_types").cloned())
        .collect::<Result<Vec<_>>>()?;
    Datatype::structure(&lengths, &displacements, &types).map_err(refused)
}

fn dimensions(n: c_int) -> Result<u64> {
    match u64::try_from(n) {
        Ok(n) if (1..=MOST_DIMENSIONS as u64).contains(&n) => Ok(n),
        _ => fail!(
            abi::MPI_ERR_ARG,
            "argument ndims is {n}, an array has 1 to {MOST_DIMENSIONS} dimensions"
        ),
    }
}

fn order(value: c_int) -> Result<Order> {
    match value {
        abi::MPI_ORDER_C => Ok(Order::C),
        abi::MPI_ORDER_FORTRAN => Ok(Order::Fortran),
        _ => fail!(
            abi::MPI_ERR_ARG,
            "argument order is {value}, expected MPI_ORDER_C or MPI_ORDER_FORTRAN"
        ),
    }
}

/// Array arguments of a subarray.
struct Part<C: Copy> {
    dimensions: c_int,
    sizes: In<C>,
    subsizes: In<C>,
    starts: In<C>,
    order: c_int,
}

impl<C: Number> Part<C> {
    fn of(&self, old: &Datatype) -> Result<std::result::Result<Datatype, TypeError>> {
        let n = dimensions(self.dimensions)?;
        let sizes = list("array_of_sizes", self.sizes, n)?;
        let subsizes = list("array_of_subsizes", self.subsizes, n)?;
        let starts = list("array_of_starts", self.starts, n)?;
        Ok(Datatype::subarray(&sizes, &subsizes, &starts, order(self.order)?, old))
    }
}

/// Array arguments of a distributed array.
struct Share<C: Copy> {
    size: c_int,
    rank: c_int,
    dimensions: c_int,
    sizes: In<C>,
    distributions: In<c_int>,
    arguments: In<c_int>,
    grid: In<c_int>,
    order: c_int,
}

impl<C: Number> Share<C> {
    fn of(&self, old: &Datatype) -> Result<std::result::Result<Datatype, TypeError>> {
        let n = dimensions(self.dimensions)?;
        let sizes = list("array_of_gsizes", self.sizes, n)?;
        let kinds = list("array_of_distribs", self.distributions, n)?;
        let arguments = list("array_of_dargs", self.arguments, n)?;
        let grid = list("array_of_psizes", self.grid, n)?;
        let processes = grid.iter().try_fold(1i64, |all, n| all.checked_mul(*n));
        if processes != Some(self.size.into()) {
            fail!(
                abi::MPI_ERR_ARG,
                "argument size is {}, but array_of_psizes describes a grid of another size",
                self.size
            );
        }
        let distributions = kinds
            .iter()
            .zip(&arguments)
            .map(|(k, a)| distribution(*k, *a))
            .collect::<Result<Vec<_>>>()?;
        let order = order(self.order)?;
        Ok(Datatype::darray(
            self.rank.into(),
            &sizes,
            &distributions,
            [&kinds, &arguments],
            &grid,
            order,
            old,
        ))
    }
}

fn distribution(kind: i64, argument: i64) -> Result<Distribution> {
    let size = (argument != i64::from(abi::MPI_DISTRIBUTE_DFLT_DARG)).then_some(argument);
    match kind as c_int {
        abi::MPI_DISTRIBUTE_NONE => Ok(Distribution::None),
        abi::MPI_DISTRIBUTE_BLOCK => Ok(Distribution::Block(size)),
        abi::MPI_DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic(size)),
        _ => fail!(
            abi::MPI_ERR_ARG,
            "an entry of array_of_distribs is {kind}, which is not a distribution"
        ),
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_commit(datatype: New) -> c_int {
    call("MPI_Type_commit", || super::commit(datatype.get("datatype")?))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_free(datatype: New) -> c_int {
    call("MPI_Type_free", || super::free(datatype))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_dup(old: h::Datatype, new: New) -> c_int {
    call("MPI_Type_dup", || super::duplicate(old, new))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_contiguous(n: c_int, old: h::Datatype, new: New) -> c_int {
    call("MPI_Type_contiguous", || {
        derive(new, old, false, |old| Ok(Datatype::contiguous_type(n.wide(), old)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_vector(n: c_int, length: c_int, stride: c_int, old: h::Datatype, new: New) -> c_int {
    call("MPI_Type_vector", || {
        derive(new, old, false, |old| {
            Ok(Datatype::vector(n.wide(), length.wide(), stride.wide(), old))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_hvector(
    n: c_int,
    length: c_int,
    stride: Aint,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_hvector", || {
        derive(new, old, false, |old| {
            Ok(Datatype::hvector(n.wide(), length.wide(), stride.wide(), old))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_indexed(
    n: c_int,
    lengths: In<c_int>,
    places: In<c_int>,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_indexed", || {
        derive(new, old, false, |old| {
            indexed(n.wide(), lengths, places, old, Datatype::indexed)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_hindexed(
    n: c_int,
    lengths: In<c_int>,
    places: In<Aint>,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_hindexed", || {
        derive(new, old, false, |old| {
            indexed(n.wide(), lengths, places, old, Datatype::hindexed)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_indexed_block(
    n: c_int,
    length: c_int,
    places: In<c_int>,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_indexed_block", || {
        derive(new, old, false, |old| {
            blocks(n.wide(), places, |places| {
                Datatype::indexed_block(length.wide(), places, old)
            })
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_hindexed_block(
    n: c_int,
    length: c_int,
    places: In<Aint>,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_hindexed_block", || {
        derive(new, old, false, |old| {
            blocks(n.wide(), places, |places| {
                Datatype::hindexed_block(length.wide(), places, old)
            })
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_struct(
    n: c_int,
    lengths: In<c_int>,
    places: In<Aint>,
    types: In<h::Datatype>,
    new: New,
) -> c_int {
    call("MPI_Type_create_struct", || {
        give(new, || structure(n.wide(), lengths, places, types))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_resized(old: h::Datatype, lower: Aint, extent: Aint, new: New) -> c_int {
    call("MPI_Type_create_resized", || {
        derive(new, old, false, |old| {
            Ok(Datatype::resized(old, lower.wide(), extent.wide()))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_subarray(
    dimensions: c_int,
    sizes: In<c_int>,
    subsizes: In<c_int>,
    starts: In<c_int>,
    order: c_int,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_subarray", || {
        derive(new, old, false, |old| {
            Part {
                dimensions,
                sizes,
                subsizes,
                starts,
                order,
            }
            .of(old)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_darray(
    size: c_int,
    rank: c_int,
    dimensions: c_int,
    sizes: In<c_int>,
    distributions: In<c_int>,
    arguments: In<c_int>,
    grid: In<c_int>,
    order: c_int,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_darray", || {
        derive(new, old, false, |old| {
            Share {
                size,
                rank,
                dimensions,
                sizes,
                distributions,
                arguments,
                grid,
                order,
            }
            .of(old)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_contiguous_c(n: Count, old: h::Datatype, new: New) -> c_int {
    call("MPI_Type_contiguous_c", || {
        derive(new, old, true, |old| Ok(Datatype::contiguous_type(n.wide(), old)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_vector_c(n: Count, length: Count, stride: Count, old: h::Datatype, new: New) -> c_int {
    call("MPI_Type_vector_c", || {
        derive(new, old, true, |old| {
            Ok(Datatype::vector(n.wide(), length.wide(), stride.wide(), old))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_hvector_c(
    n: Count,
    length: Count,
    stride: Count,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_hvector_c", || {
        derive(new, old, true, |old| {
            Ok(Datatype::hvector(n.wide(), length.wide(), stride.wide(), old))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_indexed_c(
    n: Count,
    lengths: In<Count>,
    places: In<Count>,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_indexed_c", || {
        derive(new, old, true, |old| {
            indexed(n.wide(), lengths, places, old, Datatype::indexed)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_hindexed_c(
    n: Count,
    lengths: In<Count>,
    places: In<Count>,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_hindexed_c", || {
        derive(new, old, true, |old| {
            indexed(n.wide(), lengths, places, old, Datatype::hindexed)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_indexed_block_c(
    n: Count,
    length: Count,
    places: In<Count>,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_indexed_block_c", || {
        derive(new, old, true, |old| {
            blocks(n.wide(), places, |places| {
                Datatype::indexed_block(length.wide(), places, old)
            })
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_hindexed_block_c(
    n: Count,
    length: Count,
    places: In<Count>,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_hindexed_block_c", || {
        derive(new, old, true, |old| {
            blocks(n.wide(), places, |places| {
                Datatype::hindexed_block(length.wide(), places, old)
            })
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_struct_c(
    n: Count,
    lengths: In<Count>,
    places: In<Count>,
    types: In<h::Datatype>,
    new: New,
) -> c_int {
    call("MPI_Type_create_struct_c", || {
        give(new, || structure(n.wide(), lengths, places, types).map(Datatype::large))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_resized_c(old: h::Datatype, lower: Count, extent: Count, new: New) -> c_int {
    call("MPI_Type_create_resized_c", || {
        derive(new, old, true, |old| {
            Ok(Datatype::resized(old, lower.wide(), extent.wide()))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_subarray_c(
    dimensions: c_int,
    sizes: In<Count>,
    subsizes: In<Count>,
    starts: In<Count>,
    order: c_int,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_subarray_c", || {
        derive(new, old, true, |old| {
            Part {
                dimensions,
                sizes,
                subsizes,
                starts,
                order,
            }
            .of(old)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Type_create_darray_c(
    size: c_int,
    rank: c_int,
    dimensions: c_int,
    sizes: In<Count>,
    distributions: In<c_int>,
    arguments: In<c_int>,
    grid: In<c_int>,
    order: c_int,
    old: h::Datatype,
    new: New,
) -> c_int {
    call("MPI_Type_create_darray_c", || {
        derive(new, old, true, |old| {
            Share {
                size,
                rank,
                dimensions,
                sizes,
                distributions,
                arguments,
                grid,
                order,
            }
            .of(old)
        })
    })
}
