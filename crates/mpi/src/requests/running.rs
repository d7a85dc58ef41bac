// SPDX-License-Identifier: Apache-2.0
//! What a handler may ask while it runs. The pointer that it gets is never followed: it is compared with that of the
//! call which this thread is in.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use isthmus_abi::Count;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::Peer;
use isthmus_requests::{Call, POINTER_BYTES, Target, to_process};

use crate::c::{Out, Source, count};
use crate::call::call_in_handlers;
use crate::{check, comm, process};

/// A call that goes on.
struct Now {
    cookie: usize,
    source: Peer,
    target: Option<Target>,
    reply: Option<Vec<u8>>,
}

thread_local! {
    static NOW: RefCell<Option<Now>> = const { RefCell::new(None) };
}

/// The thread enters a handler, which gets this pointer.
pub(super) fn enter(call: &Call) -> *mut c_void {
    let cookie = std::ptr::from_ref(call).addr();
    let now = Now {
        cookie,
        source: call.source,
        target: call.target,
        reply: None,
    };
    NOW.with(|place| *place.borrow_mut() = Some(now));
    std::ptr::without_provenance_mut(cookie)
}

/// It leaves it again.
pub(super) fn leave(call: &mut Call) {
    let now = NOW.with(|place| place.borrow_mut().take());
    call.reply = now.and_then(|now| now.reply);
}

/// Whether this thread is in a handler.
pub(super) fn is_here() -> bool {
    NOW.with(|place| place.borrow().is_some())
}

fn with<T>(call: usize, ask: impl FnOnce(&mut Now) -> Result<T>) -> Result<T> {
    NOW.with(|place| match &mut *place.borrow_mut() {
        Some(now) if now.cookie == call => ask(now),
        _ => fail!(
            abi::MPI_ERR_ARG,
            argument("call"),
            "is not that of the handler which this thread is in"
        ),
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_call_rank(call: usize, comm: h::Comm, rank: Out<c_int>) -> c_int {
    call_in_handlers("isthmus_call_rank", comm, || {
        let source = with(call, |now| Ok(now.source))?;
        let comm = comm::find(comm)?;
        let group = comm.remote().unwrap_or_else(|| comm.group());
        let found = group.rank_of(source).map(|rank| rank as c_int);
        rank.set("rank", found.unwrap_or(abi::MPI_UNDEFINED))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_call_sender(call: usize, sender: Out<[u8; POINTER_BYTES]>) -> c_int {
    call_in_handlers("isthmus_call_sender", h::MPI_COMM_NULL, || {
        let source = with(call, |now| Ok(now.source))?;
        sender.set("sender", to_process(process::world()?, source)?.encode())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_call_memory(call: usize, address: Out<usize>, bytes: Out<Count>) -> c_int {
    call_in_handlers("isthmus_call_memory", h::MPI_COMM_NULL, || {
        let target = with(call, |now| Ok(now.target))?;
        address.set("address", target.map_or(0, |target| target.address as usize))?;
        bytes.put(target.map_or(0, |target| target.length as Count));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_call_reply(call: usize, data: Source, bytes: Count) -> c_int {
    call_in_handlers("isthmus_call_reply", h::MPI_COMM_NULL, || {
        let length = count("bytes", bytes)?;
        check::memory(abi::MPI_ERR_BUFFER, "data", data.address(), length)?;
        let copy = isthmus_requests::copy(&data.memory(0, bytes), length)?;
        with(call, |now| {
            now.reply = Some(copy);
            Ok(())
        })
    })
}
