// SPDX-License-Identifier: Apache-2.0
//! Starting, ending and asking about the environment (MPI 5.0 chapters 9, 11 and 20).

use std::ffi::{c_char, c_int, c_void};
use std::time::Instant;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::fail;
use isthmus_lock::untrapped;

use crate::c::{Out, Source, flag};
use crate::call::{call, call_anytime, call_in_handlers};
use crate::life;
use crate::process;

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Init(_argc: Out<c_int>, _argv: Out<*mut *mut c_char>) -> c_int {
    call_anytime("MPI_Init", || life::start(abi::MPI_THREAD_SINGLE).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Init_thread(
    _argc: Out<c_int>,
    _argv: Out<*mut *mut c_char>,
    required: c_int,
    provided: Out<c_int>,
) -> c_int {
    call_anytime("MPI_Init_thread", || provided.set("provided", life::start(required)?))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Finalize() -> c_int {
    // A callback that refuses is told of, and the process leaves the job all the same: others wait for it.
    let refused = call("MPI_Finalize", life::delete_at_end);
    if refused != abi::MPI_SUCCESS && process::world_model().is_err() {
        return refused;
    }
    let ended = call("MPI_Finalize", life::finish);
    if refused == abi::MPI_SUCCESS { ended } else { refused }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Initialized(yes: Out<c_int>) -> c_int {
    call_anytime("MPI_Initialized", || yes.set("flag", flag(process::was_started())))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Finalized(yes: Out<c_int>) -> c_int {
    call_anytime("MPI_Finalized", || yes.set("flag", flag(process::was_finished())))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Query_thread(provided: Out<c_int>) -> c_int {
    call("MPI_Query_thread", || provided.set("provided", process::level()?))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Is_thread_main(yes: Out<c_int>) -> c_int {
    call("MPI_Is_thread_main", || {
        yes.set("flag", flag(process::get()?.main == std::thread::current().id()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Abort(comm: h::Comm, code: c_int) -> c_int {
    call_in_handlers("MPI_Abort", comm, || {
        process::abort(code, &format!("called MPI_Abort with error code {code}"))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Get_version(version: Out<c_int>, subversion: Out<c_int>) -> c_int {
    call_anytime("MPI_Get_version", || {
        version.set("version", abi::MPI_VERSION)?;
        subversion.set("subversion", abi::MPI_SUBVERSION)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Get_library_version(text: Out<c_char>, length: Out<c_int>) -> c_int {
    call_anytime("MPI_Get_library_version", || {
        let version = concat!("Isthmus ", env!("CARGO_PKG_VERSION"), ", MPI 5.0, standard ABI 1.0");
        let n = text.text("version", version, abi::MPI_MAX_LIBRARY_VERSION_STRING as usize)?;
        length.set("resultlen", n as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Get_processor_name(name: Out<c_char>, length: Out<c_int>) -> c_int {
    call("MPI_Get_processor_name", || {
        let n = name.text("name", &process::processor_name(), abi::MPI_MAX_PROCESSOR_NAME as usize)?;
        length.set("resultlen", n as c_int)
    })
}

static CLOCK: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Wtime() -> f64 {
    let time = CLOCK.get_or_init(Instant::now).elapsed();
    untrapped(|| time.as_secs_f64())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Wtick() -> f64 {
    // The clock behind Instant counts nanoseconds.
    1e-9
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Alloc_mem(size: isthmus_abi::Aint, info: h::Info, base: Out<*mut c_void>) -> c_int {
    call("MPI_Alloc_mem", || {
        let Ok(size) = usize::try_from(size) else {
            fail!(
                abi::MPI_ERR_ARG,
                argument("size"),
                "is {size}, a size must not be negative"
            )
        };
        base.set("baseptr", std::ptr::null_mut())?;
        let alignment = crate::memory::alignment(&crate::info::find(info)?)?;
        base.set("baseptr", crate::memory::allocate_for_windows(size, alignment)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Free_mem(base: *mut c_void) -> c_int {
    call("MPI_Free_mem", || crate::memory::release(base))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Get_address(location: Source, address: Out<isthmus_abi::Aint>) -> c_int {
    call_anytime("MPI_Get_address", || {
        address.set("address", location.address() as isthmus_abi::Aint)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Aint_add(base: isthmus_abi::Aint, displacement: isthmus_abi::Aint) -> isthmus_abi::Aint {
    base.wrapping_add(displacement)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Aint_diff(a: isthmus_abi::Aint, b: isthmus_abi::Aint) -> isthmus_abi::Aint {
    a.wrapping_sub(b)
}
