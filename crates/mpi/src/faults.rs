// SPDX-License-Identifier: Apache-2.0
//! Going on after processes have failed: the functions of `include/mpi-ext.h`.

use std::ffi::c_int;
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::error::Result;
use isthmus_core::{fail, faults};

use crate::c::{Later, Out};
use crate::call::call_on;
use crate::comm::{find, give};
use crate::comm_later::later;
use crate::request::{self, Operation};
use crate::{group, process};

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_revoke(comm: h::Comm) -> c_int {
    call_on("MPIX_Comm_revoke", comm, || {
        faults::revoke(process::world()?, find(comm)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_is_revoked(comm: h::Comm, flag: Out<c_int>) -> c_int {
    call_on("MPIX_Comm_is_revoked", comm, || {
        let comm = find(comm)?;
        if !comm.is_revoked() {
            // The word may have come.
            process::world()?.engine().lock().progress();
        }
        flag.set("flag", comm.is_revoked().into())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_shrink(comm: h::Comm, new: Out<h::Comm>) -> c_int {
    call_on("MPIX_Comm_shrink", comm, || {
        give(new, || faults::shrink(process::world()?, find(comm)?).map(Some))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_ishrink(comm: h::Comm, new: Out<h::Comm>, request: Out<h::Request>) -> c_int {
    call_on("MPIX_Comm_ishrink", comm, || {
        later(comm, new, request, |place| {
            faults::shrink_later(process::world()?, find(comm)?, move |comm: Arc<Comm>| place(comm))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_agree(comm: h::Comm, flag: Out<c_int>) -> c_int {
    call_on("MPIX_Comm_agree", comm, || {
        let mine = flag.get("flag")?;
        let (agreed, done) = faults::agree(process::world()?, find(comm)?, mine as u32)?;
        flag.set("flag", agreed as c_int)?;
        done
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_iagree(comm: h::Comm, flag: Out<c_int>, request: Out<h::Request>) -> c_int {
    call_on("MPIX_Comm_iagree", comm, || {
        request.set("request", h::MPI_REQUEST_NULL)?;
        let mine = flag.get("flag")?;
        let place = Later::from(flag);
        let then = move |agreed: u32| place.put(agreed as c_int);
        let begun = faults::agree_later(process::world()?, find(comm)?, mine as u32, then)?;
        request.set("request", request::insert(comm, Operation::Other(begun)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_get_failed(comm: h::Comm, failed: Out<h::Group>) -> c_int {
    call_on("MPIX_Comm_get_failed", comm, || {
        group::give(failed, || Ok(faults::get_failed(process::world()?, find(comm)?)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_ack_failed(comm: h::Comm, most: c_int, acknowledged: Out<c_int>) -> c_int {
    call_on("MPIX_Comm_ack_failed", comm, || {
        let most = count(most)?;
        let known = faults::acknowledge_failed(process::world()?, find(comm)?, most);
        acknowledged.set("num_acked", known as c_int)
    })
}

fn count(given: c_int) -> Result<usize> {
    match usize::try_from(given) {
        Ok(count) => Ok(count),
        Err(_) => fail!(
            abi::MPI_ERR_ARG,
            argument("num_to_ack"),
            "is {given}, it must not be negative"
        ),
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_failure_ack(comm: h::Comm) -> c_int {
    call_on("MPIX_Comm_failure_ack", comm, || {
        faults::acknowledge_failed(process::world()?, find(comm)?, usize::MAX);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPIX_Comm_failure_get_acked(comm: h::Comm, failed: Out<h::Group>) -> c_int {
    call_on("MPIX_Comm_failure_get_acked", comm, || {
        group::give(failed, || Ok(faults::get_acknowledged(process::world()?, find(comm)?)))
    })
}
