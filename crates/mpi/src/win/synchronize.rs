// SPDX-License-Identifier: Apache-2.0
//! Fences, posts, locks, flushes (MPI 5.0 section 12.5).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_rma::LockKind;

use super::find;
use crate::c::{Out, flag};
use crate::call::call_on;
use crate::group;

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_fence(assert: c_int, win: h::Win) -> c_int {
    call_on("MPI_Win_fence", win, || find(win)?.window.fence(assert))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_start(group: h::Group, assert: c_int, win: h::Win) -> c_int {
    call_on("MPI_Win_start", win, || {
        find(win)?.window.start(&group::find(group)?, assert)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_complete(win: h::Win) -> c_int {
    call_on("MPI_Win_complete", win, || find(win)?.window.complete())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_post(group: h::Group, assert: c_int, win: h::Win) -> c_int {
    call_on("MPI_Win_post", win, || {
        find(win)?.window.post(&group::find(group)?, assert)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_wait(win: h::Win) -> c_int {
    call_on("MPI_Win_wait", win, || find(win)?.window.wait())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_test(win: h::Win, over: Out<c_int>) -> c_int {
    call_on("MPI_Win_test", win, || {
        let window = &find(win)?.window;
        // Before anything ends of which the program would not hear.
        over.set("flag", flag(false))?;
        over.set("flag", flag(window.test()?))
    })
}

fn kind(lock_type: c_int) -> Result<LockKind> {
    match lock_type {
        abi::MPI_LOCK_SHARED => Ok(LockKind::Shared),
        abi::MPI_LOCK_EXCLUSIVE => Ok(LockKind::Exclusive),
        other => fail!(
            abi::MPI_ERR_LOCKTYPE,
            argument("lock_type"),
            "is {other}, expected MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE"
        ),
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: h::Win) -> c_int {
    call_on("MPI_Win_lock", win, || {
        find(win)?.window.lock(kind(lock_type)?, rank, assert)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_unlock(rank: c_int, win: h::Win) -> c_int {
    call_on("MPI_Win_unlock", win, || find(win)?.window.unlock(rank))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_lock_all(assert: c_int, win: h::Win) -> c_int {
    call_on("MPI_Win_lock_all", win, || find(win)?.window.lock_all(assert))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_unlock_all(win: h::Win) -> c_int {
    call_on("MPI_Win_unlock_all", win, || find(win)?.window.unlock_all())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_flush(rank: c_int, win: h::Win) -> c_int {
    call_on("MPI_Win_flush", win, || find(win)?.window.flush(Some(rank)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_flush_local(rank: c_int, win: h::Win) -> c_int {
    call_on("MPI_Win_flush_local", win, || find(win)?.window.flush_local(Some(rank)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_flush_all(win: h::Win) -> c_int {
    call_on("MPI_Win_flush_all", win, || find(win)?.window.flush(None))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_flush_local_all(win: h::Win) -> c_int {
    call_on("MPI_Win_flush_local_all", win, || find(win)?.window.flush_local(None))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_sync(win: h::Win) -> c_int {
    call_on("MPI_Win_sync", win, || {
        find(win)?.window.sync();
        Ok(())
    })
}
