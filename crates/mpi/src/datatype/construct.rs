// SPDX-License-Identifier: Apache-2.0
//! Constructors of datatypes (MPI 5.0 section 5.1), each with its large-count twin `_c`.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_datatype::{Datatype, Distribution, Order, TypeError};

use super::{find_any, give};
use crate::c::Number;
use crate::c::{In, Out, count};
use crate::call::call;
use crate::entry::{Bytes, Width, entry};

/// Most dimensions of an array; more is taken for a mistake.
const MOST_DIMENSIONS: usize = 4096;

type New = Out<h::Datatype>;

/// A new datatype, which tells in MPI_Type_get_envelope whether the call that made it had large counts.
fn made<N: Width>(datatype: Datatype) -> Datatype {
    if N::LARGE { datatype.large() } else { datatype }
}

/// Makes a datatype of one other.
fn derive<N: Width>(
    new: New,
    old: h::Datatype,
    make: impl FnOnce(&Datatype) -> Result<std::result::Result<Datatype, TypeError>>,
) -> Result<()> {
    give(new, || {
        make(find_any(old).about("oldtype")?)?.map(made::<N>).map_err(refused)
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
    n: C,
    lengths: In<C>,
    displacements: In<D>,
    old: &Datatype,
    make: impl Fn(&[i64], &[i64], &Datatype) -> std::result::Result<Datatype, TypeError>,
) -> Result<std::result::Result<Datatype, TypeError>> {
    let n = count("count", n.wide())?;
    let lengths = list("array_of_blocklengths", lengths, n)?;
    Ok(make(&lengths, &list("array_of_displacements", displacements, n)?, old))
}

fn blocks<C: Number, D: Number>(
    n: C,
    displacements: In<D>,
    make: impl Fn(&[i64]) -> std::result::Result<Datatype, TypeError>,
) -> Result<std::result::Result<Datatype, TypeError>> {
    Ok(make(&list(
        "array_of_displacements",
        displacements,
        count("count", n.wide())?,
    )?))
}

fn structure<C: Number, D: Number>(
    n: C,
    lengths: In<C>,
    displacements: In<D>,
    types: In<h::Datatype>,
) -> Result<Datatype> {
    let n = count("count", n.wide())?;
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
            argument("ndims"),
            "is {n}, an array has 1 to {MOST_DIMENSIONS} dimensions"
        ),
    }
}

fn order(value: c_int) -> Result<Order> {
    match value {
        abi::MPI_ORDER_C => Ok(Order::C),
        abi::MPI_ORDER_FORTRAN => Ok(Order::Fortran),
        _ => fail!(
            abi::MPI_ERR_ARG,
            argument("order"),
            "is {value}, expected MPI_ORDER_C or MPI_ORDER_FORTRAN"
        ),
    }
}

/// Array arguments of a subarray.
struct Subarray<C: Copy> {
    dimensions: c_int,
    sizes: In<C>,
    subsizes: In<C>,
    starts: In<C>,
    order: c_int,
}

impl<C: Number> Subarray<C> {
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
                argument("size"),
                "is {}, but array_of_psizes describes a grid of another size",
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

entry! {
    isthmus_MPI_Type_contiguous<c_int>, isthmus_MPI_Type_contiguous_c<Count>:
    (count: N, old: h::Datatype, new: New) => {
        derive::<N>(new, old, |old| Ok(Datatype::contiguous_type(count.wide(), old)))
    }
}

entry! {
    isthmus_MPI_Type_vector<c_int>, isthmus_MPI_Type_vector_c<Count>:
    (count: N, length: N, stride: N, old: h::Datatype, new: New) => {
        derive::<N>(new, old, |old| Ok(Datatype::vector(count.wide(), length.wide(), stride.wide(), old)))
    }
}

entry! {
    isthmus_MPI_Type_create_hvector<c_int>, isthmus_MPI_Type_create_hvector_c<Count>:
    (count: N, length: N, stride: Bytes<N>, old: h::Datatype, new: New) => {
        derive::<N>(new, old, |old| Ok(Datatype::hvector(count.wide(), length.wide(), stride.wide(), old)))
    }
}

entry! {
    isthmus_MPI_Type_indexed<c_int>, isthmus_MPI_Type_indexed_c<Count>:
    (count: N, lengths: In<N>, places: In<N>, old: h::Datatype, new: New) => {
        derive::<N>(new, old, |old| indexed(count, lengths, places, old, Datatype::indexed))
    }
}

entry! {
    isthmus_MPI_Type_create_hindexed<c_int>, isthmus_MPI_Type_create_hindexed_c<Count>:
    (count: N, lengths: In<N>, places: In<Bytes<N>>, old: h::Datatype, new: New) => {
        derive::<N>(new, old, |old| indexed(count, lengths, places, old, Datatype::hindexed))
    }
}

entry! {
    isthmus_MPI_Type_create_indexed_block<c_int>, isthmus_MPI_Type_create_indexed_block_c<Count>:
    (count: N, length: N, places: In<N>, old: h::Datatype, new: New) => {
        derive::<N>(new, old, |old| {
            blocks(count, places, |places| Datatype::indexed_block(length.wide(), places, old))
        })
    }
}

entry! {
    isthmus_MPI_Type_create_hindexed_block<c_int>, isthmus_MPI_Type_create_hindexed_block_c<Count>:
    (count: N, length: N, places: In<Bytes<N>>, old: h::Datatype, new: New) => {
        derive::<N>(new, old, |old| {
            blocks(count, places, |places| Datatype::hindexed_block(length.wide(), places, old))
        })
    }
}

entry! {
    isthmus_MPI_Type_create_struct<c_int>, isthmus_MPI_Type_create_struct_c<Count>:
    (count: N, lengths: In<N>, places: In<Bytes<N>>, types: In<h::Datatype>, new: New) => {
        give(new, || Ok(made::<N>(structure(count, lengths, places, types)?)))
    }
}

entry! {
    isthmus_MPI_Type_create_resized<c_int>, isthmus_MPI_Type_create_resized_c<Count>:
    (old: h::Datatype, lower: Bytes<N>, extent: Bytes<N>, new: New) => {
        derive::<N>(new, old, |old| Ok(Datatype::resized(old, lower.wide(), extent.wide())))
    }
}

entry! {
    isthmus_MPI_Type_create_subarray<c_int>, isthmus_MPI_Type_create_subarray_c<Count>:
    (
        dimensions: c_int,
        sizes: In<N>,
        subsizes: In<N>,
        starts: In<N>,
        order: c_int,
        old: h::Datatype,
        new: New
    ) => {
        derive::<N>(new, old, |old| Subarray { dimensions, sizes, subsizes, starts, order }.of(old))
    }
}

entry! {
    isthmus_MPI_Type_create_darray<c_int>, isthmus_MPI_Type_create_darray_c<Count>:
    (
        size: c_int,
        rank: c_int,
        dimensions: c_int,
        sizes: In<N>,
        distributions: In<c_int>,
        arguments: In<c_int>,
        grid: In<c_int>,
        order: c_int,
        old: h::Datatype,
        new: New
    ) => {
        derive::<N>(new, old, |old| {
            Share { size, rank, dimensions, sizes, distributions, arguments, grid, order }.of(old)
        })
    }
}
