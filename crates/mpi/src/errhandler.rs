// SPDX-License-Identifier: Apache-2.0
//! Error handlers (MPI 5.0 section 9.3): the objects. What has one sets it and asks for it in a file of its own.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::errhandler::{ErrorHandler, Owner, UserHandler};
use isthmus_core::error::Result;
use isthmus_core::fail;

use crate::c::Out;
use crate::call::call_anytime;
use crate::fortran::Looks;
use crate::handle::{Kind, Table};

/// `MPI_Comm_errhandler_function`: variadic in C, called with the two arguments that the standard promises.
pub(crate) type HandlerFunction = unsafe extern "C" fn(*mut usize, *mut c_int, ...);

static HANDLERS: Table<Arc<UserHandler>> = Table::new(Kind::Errhandler);

/// How often the program has been given each handle, and not freed it: who asks twice gets the same handle, as programs
/// compare them.
static GIVEN: Mutex<Vec<Given>> = Mutex::new(Vec::new());

/// What becomes of errors where the program has not said anything (MPI 5.0 section 9.3.4).
pub(crate) fn initial() -> ErrorHandler {
    match isthmus_settings::INITIAL_ERRHANDLER.read(std::env::var_os) {
        Some("mpi_errors_return") => ErrorHandler::Return,
        Some("mpi_errors_abort") => ErrorHandler::Abort,
        _ => ErrorHandler::Fatal,
    }
}

struct Given {
    handle: usize,
    /// The address of the handler, which the table keeps there.
    handler: usize,
    times: u64,
}

/// The handle of a handler; one more that the program has to free.
fn give(handler: Arc<UserHandler>) -> h::Errhandler {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Arc::as_ptr(&handler).addr();
    if let Some(known) = given.iter_mut().find(|known| known.handler == place) {
        known.times += 1;
        return h::Errhandler(known.handle);
    }
    let handle = HANDLERS.insert(handler);
    given.push(Given {
        handle,
        handler: place,
        times: 1,
    });
    h::Errhandler(handle)
}

/// The program has freed a handle once.
fn take_back(handle: h::Errhandler) {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(index) = given.iter().position(|known| known.handle == handle.0) {
        given[index].times -= 1;
        if given[index].times == 0 {
            given.swap_remove(index);
            HANDLERS.remove(handle.0);
        }
    }
}

/// The handler of a handle.
fn find(handle: h::Errhandler) -> Result<ErrorHandler> {
    Ok(match handle {
        h::MPI_ERRORS_ARE_FATAL => ErrorHandler::Fatal,
        h::MPI_ERRORS_ABORT => ErrorHandler::Abort,
        h::MPI_ERRORS_RETURN => ErrorHandler::Return,
        h::MPI_ERRHANDLER_NULL => fail!(
            abi::MPI_ERR_ERRHANDLER,
            argument("errhandler"),
            "is MPI_ERRHANDLER_NULL"
        ),
        _ => match HANDLERS.get(handle.0) {
            Some(handler) => ErrorHandler::User(handler.clone()),
            None => fail!(
                abi::MPI_ERR_ERRHANDLER,
                argument("errhandler"),
                "is {:#x}, which is not the handle of an error handler",
                handle.0
            ),
        },
    })
}

/// The handler of a handle, if it is one for objects of this kind.
pub(crate) fn find_for(owner: Owner, handle: h::Errhandler) -> Result<ErrorHandler> {
    let found = find(handle)?;
    if let ErrorHandler::User(handler) = &found {
        if handler.owner != owner {
            let ((function, wanted), (_, made)) = (owner.names(), handler.owner.names());
            fail!(
                abi::MPI_ERR_ERRHANDLER,
                argument("errhandler"),
                "is an error handler for {made}, expected one for {wanted}, which MPI_{function}_create_errhandler makes"
            );
        }
    }
    Ok(found)
}

/// A handle for the handler of an object; the program frees it.
pub(crate) fn handle_of(handler: &ErrorHandler) -> h::Errhandler {
    match handler {
        ErrorHandler::Fatal => h::MPI_ERRORS_ARE_FATAL,
        ErrorHandler::Abort => h::MPI_ERRORS_ABORT,
        ErrorHandler::Return => h::MPI_ERRORS_RETURN,
        ErrorHandler::User(handler) => give(handler.clone()),
    }
}

/// A handle for a handler that the program makes.
pub(crate) fn create(owner: Owner, function: Option<HandlerFunction>, out: Out<h::Errhandler>) -> Result<()> {
    out.set("errhandler", h::MPI_ERRHANDLER_NULL)?;
    let Some(function) = function else {
        let argument = owner.names().0.to_lowercase();
        fail!(
            abi::MPI_ERR_ARG,
            argument(format!("{argument}_errhandler_fn")),
            "is a null pointer"
        )
    };
    let looks = Looks::of(function as usize);
    let call = Box::new(move |mut handle: usize, mut code: i32| {
        // SAFETY: a handler function of the program gets pointers to the handle and the code.
        unsafe { function(looks.place(&mut handle), &raw mut code) };
        code
    });
    out.set("errhandler", give(Arc::new(UserHandler { owner, call })))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Errhandler_free(handler: Out<h::Errhandler>) -> c_int {
    call_anytime("MPI_Errhandler_free", || {
        let handle = handler.get("errhandler")?;
        find(handle)?;
        take_back(handle);
        handler.set("errhandler", h::MPI_ERRHANDLER_NULL)
    })
}
