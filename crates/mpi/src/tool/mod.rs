// SPDX-License-Identifier: Apache-2.0
//! The tool interface (MPI 5.0 chapter 15). Functions of this chapter return codes of their own and call no error
//! handler.
//!
//! * this file: MPI_T_init_thread, MPI_T_finalize and what all share;
//! * `control`: control variables, the settings of `spec/settings.tsv`;
//! * `variable`: which performance variables there are; `performance`: sessions and handles;
//! * `event`: which events there are and what they carry; `registration`: callbacks and how they are called;
//! * `category`, `enumeration`: how all that is grouped and named.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use isthmus_abi::constants as abi;

use crate::c::Out;

mod category;
mod control;
mod enumeration;
mod event;
mod performance;
mod registration;
mod types;
mod values;
mod variable;

pub(crate) use registration::{begin, dispatch};
use values::{code, initialized, set};

/// Was more than MPI_THREAD_FUNNELED asked for? Threads of a tool that take turns among themselves need not take turns
/// with those of the program, since the levels are independent (MPI 5.0 section 15.3.4). If it was before MPI_Init, the
/// engine is made for several.
static CONCURRENT: AtomicBool = AtomicBool::new(false);

/// May a thread use the tool interface while another one is inside MPI?
pub(crate) fn is_concurrent() -> bool {
    CONCURRENT.load(Ordering::SeqCst)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_init_thread(required: c_int, provided: Out<c_int>) -> c_int {
    code(|| {
        let mut granted = crate::process::granted(required).map_err(|_| abi::MPI_T_ERR_INVALID)?;
        if granted > abi::MPI_THREAD_FUNNELED {
            CONCURRENT.store(true, Ordering::SeqCst);
            if crate::process::takes_turns() {
                // The engine was made for threads that take turns.
                granted = abi::MPI_THREAD_FUNNELED;
            }
        }
        set(provided, granted)?;
        *initialized() += 1;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_finalize() -> c_int {
    code(|| {
        let mut count = initialized();
        match count.checked_sub(1) {
            None => return Err(abi::MPI_T_ERR_NOT_INITIALIZED),
            Some(rest) => *count = rest,
        }
        if *count == 0 {
            control::end();
            performance::end();
            registration::end();
        }
        Ok(())
    })
}

/// MPI_Pcontrol (section 15.2.4) is for profiling libraries; without one it has no effect. Its other arguments are
/// theirs.
#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Pcontrol(_level: c_int) -> c_int {
    abi::MPI_SUCCESS
}
