// SPDX-License-Identifier: Apache-2.0
//! Intercommunicators (MPI 5.0 section 7.6).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::comm::{Comm, set_hints};
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_core::inter;

use super::create::{give, intra};
use super::find;
use super::handlers::call_for_new;
use crate::c::{Out, Text, flag};
use crate::call::call_on;
use crate::{group, info, process};

fn inter(handle: h::Comm) -> Result<&'static Comm> {
    let comm = find(handle)?;
    if comm.remote().is_none() {
        fail!(
            abi::MPI_ERR_COMM,
            argument("comm"),
            "is {}, which is not an intercommunicator",
            comm.describe()
        );
    }
    Ok(comm)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_test_inter(comm: h::Comm, yes: Out<c_int>) -> c_int {
    call_on("MPI_Comm_test_inter", comm, || {
        yes.set("flag", flag(find(comm)?.remote().is_some()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_remote_size(comm: h::Comm, size: Out<c_int>) -> c_int {
    call_on("MPI_Comm_remote_size", comm, || {
        size.set("size", inter(comm)?.peers() as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_remote_group(comm: h::Comm, out: Out<h::Group>) -> c_int {
    call_on("MPI_Comm_remote_group", comm, || {
        let remote = inter(comm)?.remote().cloned();
        group::give(out, || Ok(remote.unwrap_or_else(isthmus_core::group::Group::empty)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Intercomm_create(
    local: h::Comm,
    local_leader: c_int,
    peer: h::Comm,
    remote_leader: c_int,
    tag: c_int,
    new: Out<h::Comm>,
) -> c_int {
    call_on("MPI_Intercomm_create", local, || {
        give(new, || {
            let tag = isthmus_core::p2p::send_tag(tag)?;
            let peer = || Ok((find(peer).about("peer_comm")?, remote_leader));
            let local = intra(local).about("local_comm")?;
            inter::create(process::world()?, local, local_leader, peer, tag).map(Some)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Intercomm_create_from_groups(
    local: h::Group,
    local_leader: c_int,
    remote: h::Group,
    remote_leader: c_int,
    tag: Text,
    info: h::Info,
    handler: h::Errhandler,
    new: Out<h::Comm>,
) -> c_int {
    call_for_new("MPI_Intercomm_create_from_groups", handler, |handler| {
        give(new, || {
            let tag = tag.get("stringtag", abi::MPI_ERR_ARG)?;
            let (local, hints) = (group::find(local).about("local_group")?, info::find(info)?);
            let remote = || Ok((group::find(remote).about("remote_group")?, remote_leader));
            let made = inter::create_from_groups(process::world()?, &local, local_leader, remote, &tag)?;
            made.user().set_error_handler(handler);
            set_hints(process::world()?, &made, &hints);
            Ok(Some(made))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Intercomm_merge(comm: h::Comm, high: c_int, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Intercomm_merge", comm, || {
        give(new, || {
            inter::merge(process::world()?, inter(comm)?, high != 0).map(Some)
        })
    })
}
