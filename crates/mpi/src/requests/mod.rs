// SPDX-License-Identifier: Apache-2.0
//! Remote service requests and global pointers (`include/isthmus.h`).
//!
//! * this file: handlers; `running`: what a handler may ask while it runs;
//! * `send`: requests; `pointer`: memory and global pointers.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use isthmus_abi::Count;
use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_engine::Caller;
use isthmus_requests::{Call, Function};

use crate::c::{Out, Text};
use crate::call::{self, call, call_in_handlers};
use crate::process;

mod pointer;
mod running;
mod send;

pub(crate) use pointer::{give, size};

/// Flag of a handler: the library's thread may call it.
const SHORT: c_int = 1;

/// What C passes as a handler.
type CFunction = extern "C" fn(call: *mut c_void, data: *const c_void, bytes: Count, user: User);

/// A pointer that the program gets back.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct User(*mut c_void);

// SAFETY: an address that is given back to the program and never read here.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

/// What is done around calls of MPI when there are handlers.
const HOOKS: call::Hooks = call::Hooks {
    before: outside_of_handlers,
    after: run_due,
};

/// Flags that a function knows.
fn flags(given: c_int, known: c_int) -> Result<c_int> {
    if given & !known != 0 {
        fail!(
            abi::MPI_ERR_ARG,
            argument("flags"),
            "is {given:#x}, known here are {known:#x}"
        );
    }
    Ok(given)
}

/// What calls a function of the program.
fn function(function: CFunction, user: User) -> Function {
    Arc::new(move |call: &mut Call| {
        let cookie = running::enter(call);
        function(cookie, call.data.as_ptr().cast(), call.data.len() as Count, user);
        running::leave(call);
    })
}

/// Around a function of MPI that is no handler's business.
fn outside_of_handlers() -> Result<()> {
    if running::is_here() {
        return Err(Error::new(
            abi::MPI_ERR_OTHER,
            "is called in a handler of remote service requests, which may call isthmus_call_…, isthmus_request_send, \
             isthmus_request_send_to and isthmus_pointer_…, but no function of MPI that communicates",
        ));
    }
    Ok(())
}

/// After a call: handlers that are due.
fn run_due() {
    let Ok(world) = process::world() else { return };
    let callbacks = world.engine().callbacks();
    if callbacks.are_due() && !running::is_here() {
        callbacks.call(Caller::Program);
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_handler_register(
    name: Text,
    called: Option<CFunction>,
    user: User,
    given: c_int,
    handler: Out<c_int>,
) -> c_int {
    call("isthmus_handler_register", || {
        handler.set("handler", 0)?;
        let name = name.get("name", abi::MPI_ERR_ARG)?;
        let short = flags(given, SHORT)? & SHORT != 0;
        let process = process::get()?;
        let called = called.map(|called| function(called, user));
        if called.is_some() {
            if short {
                process.keep_progress()?;
            }
            call::handlers_are_there(HOOKS);
        }
        let number = process.requests.register(&name, called, short)?;
        process.world().engine().watch();
        handler.set("handler", number as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_handler_unregister(handler: Out<c_int>) -> c_int {
    call_in_handlers(
        "isthmus_handler_unregister",
        isthmus_abi::handles::MPI_COMM_NULL,
        || {
            let number = handler.get("handler")?;
            let process = process::get()?;
            process.requests.unregister(process.world(), number as u32)?;
            handler.set("handler", 0)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_handlers_run(wait: c_int, ran: Out<c_int>) -> c_int {
    call_in_handlers("isthmus_handlers_run", isthmus_abi::handles::MPI_COMM_NULL, || {
        let process = process::get()?;
        let count = process.requests.serve(process.world(), wait != 0)?;
        ran.put(count.try_into().unwrap_or(c_int::MAX));
        Ok(())
    })
}
