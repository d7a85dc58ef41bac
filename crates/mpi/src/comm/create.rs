// SPDX-License-Identifier: Apache-2.0
//! Construction of intracommunicators, and of communicators of either kind from one of theirs (MPI 5.0 section 7.4.2).

use std::ffi::c_int;
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attribute::{self, Attributes};
use isthmus_core::comm::{self, Comm, set_hints};
use isthmus_core::create::{self, SplitType};
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::info::Info;

use super::handlers::call_for_new;
use super::{find, insert};
use crate::c::{Out, Text};
use crate::call::call_on;
use crate::{group, info, process};

/// Gives a new communicator; none gives MPI_COMM_NULL.
pub(crate) fn give(out: Out<h::Comm>, make: impl FnOnce() -> Result<Option<Arc<Comm>>>) -> Result<()> {
    out.set("newcomm", h::MPI_COMM_NULL)?;
    out.set("newcomm", insert(make()?))
}

fn duplicate(handle: h::Comm, hints: Info) -> Result<Option<Arc<Comm>>> {
    let old = find(handle)?;
    let new = create::duplicate(process::world()?, old, hints)?;
    new.user().replace_attributes(copied(old, handle)?);
    Ok(Some(new))
}

/// The attributes that a duplicate gets.
pub(crate) fn copied(old: &Comm, handle: h::Comm) -> Result<Attributes> {
    let known = old.user().known_attributes();
    known.map_or_else(
        || Ok(Attributes::default()),
        |known| attribute::duplicate(known, handle.0),
    )
}

/// Hints that a program gives to a new communicator.
pub(crate) fn hints(handle: h::Info) -> Result<Info> {
    info::find(handle).map(|given| comm::kept(&given))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_dup(comm: h::Comm, new: Out<h::Comm>) -> c_int {
    // Hints are not copied (MPI 5.0 section 7.4.2).
    call_on("MPI_Comm_dup", comm, || give(new, || duplicate(comm, Info::default())))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_dup_with_info(comm: h::Comm, info: h::Info, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_dup_with_info", comm, || {
        let hints = hints(info)?;
        give(new, || duplicate(comm, hints))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_create(comm: h::Comm, group: h::Group, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_create", comm, || {
        give(new, || {
            create::create(process::world()?, find(comm)?, &group::find(group)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_create_group(comm: h::Comm, group: h::Group, tag: c_int, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_create_group", comm, || {
        give(new, || {
            let comm = intra(comm)?;
            let tag = isthmus_core::p2p::send_tag(tag)?;
            create::create_group(process::world()?, comm, &group::find(group)?, tag)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_create_from_group(
    group: h::Group,
    tag: Text,
    info: h::Info,
    handler: h::Errhandler,
    new: Out<h::Comm>,
) -> c_int {
    call_for_new("MPI_Comm_create_from_group", handler, |handler| {
        give(new, || {
            let tag = tag.get("stringtag", abi::MPI_ERR_ARG)?;
            let (group, hints) = (group::find(group)?, hints(info)?);
            if group.size() == 0 {
                return Ok(None);
            }
            let comm = create::from_group(process::world()?, &group, &tag)?;
            comm.user().set_error_handler(handler);
            set_hints(process::world()?, &comm, &hints);
            Ok(Some(comm))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_split(comm: h::Comm, color: c_int, key: c_int, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_split", comm, || {
        // Negative colours other than MPI_UNDEFINED are accepted: MPICH-G2's own example program uses -1.
        let color = (color != abi::MPI_UNDEFINED).then_some(color);
        give(new, || create::split(process::world()?, find(comm)?, color, key))
    })
}

/// An intracommunicator, for what has no meaning on an intercommunicator.
pub(crate) fn intra(handle: h::Comm) -> Result<&'static Comm> {
    let comm = find(handle)?;
    if comm.remote().is_some() {
        fail!(
            abi::MPI_ERR_COMM,
            argument("comm"),
            "is {}, an intercommunicator; this function takes an intracommunicator",
            comm.describe()
        );
    }
    Ok(comm)
}

/// What a split type and its info ask for.
fn split_type(split_type: c_int, info: &Info) -> Result<SplitType> {
    let value = |key| Ok::<_, isthmus_core::error::Error>(info.get(key)?.map(str::to_owned));
    let hardware = |name: Option<String>| name.map_or(SplitType::Nothing, SplitType::Hardware);
    Ok(match split_type {
        abi::MPI_COMM_TYPE_SHARED => SplitType::Shared,
        abi::MPI_COMM_TYPE_HW_UNGUIDED => SplitType::Unguided,
        abi::MPI_COMM_TYPE_HW_GUIDED => hardware(value("mpi_hw_resource_type")?),
        abi::MPI_COMM_TYPE_RESOURCE_GUIDED => match (value("mpi_hw_resource_type")?, value("mpi_pset_name")?) {
            (Some(_), Some(_)) => fail!(
                abi::MPI_ERR_INFO,
                "the info has both keys mpi_hw_resource_type and mpi_pset_name, expected one"
            ),
            (None, Some(set)) => SplitType::ProcessSet(set),
            (name, None) => hardware(name),
        },
        abi::MPI_UNDEFINED => SplitType::Nothing,
        other => fail!(
            abi::MPI_ERR_ARG,
            argument("split_type"),
            "is {other}, which is not a split type"
        ),
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_split_type(
    comm: h::Comm,
    by: c_int,
    key: c_int,
    info: h::Info,
    new: Out<h::Comm>,
) -> c_int {
    call_on("MPI_Comm_split_type", comm, || {
        let given = info::find(info)?;
        let wanted = split_type(by, &given)?;
        give(new, || {
            let made = create::split_type(process::world()?, find(comm)?, &wanted, key, &given)?;
            if let (SplitType::Unguided, Some(found)) = (&wanted, &made) {
                info::tell(info, "mpi_hw_resource_type", found.hints().get("mpi_hw_resource_type"))?;
            }
            Ok(made)
        })
    })
}
