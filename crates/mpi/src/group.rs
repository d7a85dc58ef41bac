// SPDX-License-Identifier: Apache-2.0
//! Groups (MPI 5.0 section 7.3).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_core::group::{Comparison, Group, ranges};

use crate::c::{In, Out, count};
use crate::call::call;
use crate::handle::{Kind, Table};

static GROUPS: Table<Group> = Table::new(Kind::Group);

/// The group of a handle.
pub(crate) fn find(handle: h::Group) -> Result<Group> {
    if handle == h::MPI_GROUP_EMPTY {
        return Ok(Group::empty());
    }
    match GROUPS.get(handle.0) {
        Some(group) => Ok(group.clone()),
        None if handle == h::MPI_GROUP_NULL => fail!(abi::MPI_ERR_GROUP, argument("group"), "is MPI_GROUP_NULL"),
        None => fail!(
            abi::MPI_ERR_GROUP,
            argument("group"),
            "is {:#x}, which is not the handle of a group",
            handle.0
        ),
    }
}

/// Two groups.
fn pair(a: h::Group, b: h::Group) -> Result<(Group, Group)> {
    Ok((find(a).about("group1")?, find(b).about("group2")?))
}

/// A handle for a group.
pub(crate) fn insert(group: Group) -> h::Group {
    if group.size() == 0 {
        h::MPI_GROUP_EMPTY
    } else {
        h::Group(GROUPS.insert(group))
    }
}

/// Gives a new group.
pub(crate) fn give(out: Out<h::Group>, make: impl FnOnce() -> Result<Group>) -> Result<()> {
    out.put(h::MPI_GROUP_NULL);
    let group = make()?;
    out.set("newgroup", h::MPI_GROUP_NULL)?;
    out.set("newgroup", insert(group))
}

/// MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
pub(crate) fn comparison(c: Comparison) -> c_int {
    match c {
        Comparison::Identical => abi::MPI_IDENT,
        Comparison::Similar => abi::MPI_SIMILAR,
        Comparison::Unequal => abi::MPI_UNEQUAL,
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_size(group: h::Group, size: Out<c_int>) -> c_int {
    call("MPI_Group_size", || size.set("size", find(group)?.size() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_rank(group: h::Group, rank: Out<c_int>) -> c_int {
    call("MPI_Group_rank", || {
        let mine = find(group)?.rank_of(crate::process::world()?.me());
        rank.set("rank", mine.map_or(abi::MPI_UNDEFINED, |r| r as c_int))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_compare(a: h::Group, b: h::Group, result: Out<c_int>) -> c_int {
    call("MPI_Group_compare", || {
        let (a, b) = pair(a, b)?;
        result.set("result", comparison(a.compare(&b)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_translate_ranks(
    a: h::Group,
    n: c_int,
    ranks: In<c_int>,
    b: h::Group,
    translated: Out<c_int>,
) -> c_int {
    call("MPI_Group_translate_ranks", || {
        let n = count("n", n)? as usize;
        let (a, b) = pair(a, b)?;
        let found = a.translate(ranks.slice("ranks1", n)?, &b).about("ranks1")?;
        for (to, from) in translated.slice("ranks2", n)?.iter_mut().zip(found) {
            *to = from.unwrap_or(abi::MPI_UNDEFINED);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_union(a: h::Group, b: h::Group, group: Out<h::Group>) -> c_int {
    call("MPI_Group_union", || {
        give(group, || pair(a, b).map(|(a, b)| a.union(&b)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_intersection(a: h::Group, b: h::Group, group: Out<h::Group>) -> c_int {
    call("MPI_Group_intersection", || {
        give(group, || pair(a, b).map(|(a, b)| a.intersection(&b)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_difference(a: h::Group, b: h::Group, group: Out<h::Group>) -> c_int {
    call("MPI_Group_difference", || {
        give(group, || pair(a, b).map(|(a, b)| a.difference(&b)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_incl(a: h::Group, n: c_int, ranks: In<c_int>, group: Out<h::Group>) -> c_int {
    call("MPI_Group_incl", || {
        give(group, || {
            find(a)?.include(ranks.slice("ranks", count("n", n)? as usize)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_excl(a: h::Group, n: c_int, ranks: In<c_int>, group: Out<h::Group>) -> c_int {
    call("MPI_Group_excl", || {
        give(group, || {
            find(a)?.exclude(ranks.slice("ranks", count("n", n)? as usize)?)
        })
    })
}

fn listed(group: &Group, n: c_int, triples: In<[c_int; 3]>) -> Result<Vec<c_int>> {
    ranges(triples.slice("ranges", count("n", n)? as usize)?, group.size())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_range_incl(
    a: h::Group,
    n: c_int,
    triples: In<[c_int; 3]>,
    group: Out<h::Group>,
) -> c_int {
    call("MPI_Group_range_incl", || {
        give(group, || {
            let a = find(a)?;
            a.include(&listed(&a, n, triples)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_range_excl(
    a: h::Group,
    n: c_int,
    triples: In<[c_int; 3]>,
    group: Out<h::Group>,
) -> c_int {
    call("MPI_Group_range_excl", || {
        give(group, || {
            let a = find(a)?;
            a.exclude(&listed(&a, n, triples)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_free(group: Out<h::Group>) -> c_int {
    call("MPI_Group_free", || {
        let handle = group.get("group")?;
        find(handle)?;
        GROUPS.remove(handle.0);
        group.set("group", h::MPI_GROUP_NULL)
    })
}
