// SPDX-License-Identifier: Apache-2.0
//! Around every entry body: is MPI running, and what becomes of an error.

use std::borrow::Cow;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::errhandler::ErrorHandler;
use isthmus_core::error::{Error, Result};

use crate::{called, process};

/// The function that the program called last: its name's address, and in the lower bits its length. One store a call;
/// people who ask why a program hangs want to know it.
static CALLED: AtomicU64 = AtomicU64::new(0);

/// Bits of the length.
const LENGTH: u32 = 8;

/// What is done around calls besides, by bits; nearly always nothing.
static SPECIAL: AtomicU8 = AtomicU8::new(0);

/// Somebody has registered a callback for events.
const OBSERVING: u8 = 1;
/// The program has handlers of remote service requests.
const HANDLERS: u8 = 2;

/// What handlers of remote service requests want done before and after calls.
static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// `before` says whether the calling thread may call MPI, `after` calls handlers that are due.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    pub(crate) before: fn() -> Result<()>,
    pub(crate) after: fn(),
}

/// The program has handlers.
pub(crate) fn handlers_are_there(hooks: Hooks) {
    let _ = HOOKS.set(hooks);
    set_special(HANDLERS, true);
}

/// What callbacks for events want done.
static OBSERVERS: OnceLock<Observers> = OnceLock::new();

/// `raised` hears of errors that go to error handlers, `dispatch` calls callbacks after a call.
#[derive(Clone, Copy)]
pub(crate) struct Observers {
    pub(crate) raised: fn(c_int),
    pub(crate) dispatch: fn(),
}

/// Whether somebody has registered a callback for events.
pub(crate) fn observe(observers: Observers, on: bool) {
    let _ = OBSERVERS.set(observers);
    set_special(OBSERVING, on);
}

/// Switches a bit.
fn set_special(bit: u8, on: bool) {
    match on {
        true => SPECIAL.fetch_or(bit, Ordering::Relaxed),
        false => SPECIAL.fetch_and(!bit, Ordering::Relaxed),
    };
}

/// Whether a bit is set.
#[inline]
fn is_special(bit: u8) -> bool {
    SPECIAL.load(Ordering::Relaxed) & bit != 0
}

#[cold]
fn before_special() -> Result<()> {
    match is_special(HANDLERS) {
        true => HOOKS.get().map_or(Ok(()), |hooks| (hooks.before)()),
        false => Ok(()),
    }
}

#[cold]
fn after_special() {
    if let Some(observers) = OBSERVERS.get().filter(|_| is_special(OBSERVING)) {
        (observers.dispatch)();
    }
    if let Some(hooks) = HOOKS.get().filter(|_| is_special(HANDLERS)) {
        (hooks.after)();
    }
}

#[inline]
fn note(function: &'static str) {
    // Addresses of programs have fewer than 56 bits, names of functions fewer than 256 bytes.
    let length = function.len() as u64 & ((1 << LENGTH) - 1);
    CALLED.store((function.as_ptr() as u64) << LENGTH | length, Ordering::Relaxed);
}

/// The function that some thread of the program called last; empty before the first call.
pub(crate) fn last() -> &'static str {
    let called = CALLED.load(Ordering::Relaxed);
    if called == 0 {
        return "";
    }
    let (address, length) = ((called >> LENGTH) as usize, (called & ((1 << LENGTH) - 1)) as usize);
    // SAFETY: `note` alone writes the value, in one piece, from a `&'static str`, whose bytes stay where they are.
    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, length) };
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// Runs a body that needs MPI to be initialized and raises its error on MPI_COMM_SELF's handler
/// (MPI 5.0 section 9.3: errors without a communicator).
#[inline]
pub(crate) fn call(function: &'static str, body: impl FnOnce() -> Result<()>) -> c_int {
    call_on(function, h::MPI_COMM_NULL, body)
}

/// What has an error handler that a call's errors go to.
pub(crate) trait Holder: Copy {
    /// The handle that the handler is told, and the handler.
    fn handler(self) -> (usize, ErrorHandler);

    /// The error with what it is about, where that has a name.
    fn named(self, error: &Error) -> Cow<'_, Error> {
        Cow::Borrowed(error)
    }
}

/// Runs a body that needs MPI to be initialized and raises its error on the handler of the communicator, file or
/// window.
#[inline]
pub(crate) fn call_on(function: &'static str, comm: impl Holder, body: impl FnOnce() -> Result<()>) -> c_int {
    note(function);
    let special = SPECIAL.load(Ordering::Relaxed) != 0;
    let allowed = if special { before_special() } else { Ok(()) };
    let result = process::running().and(allowed).and_then(|()| body());
    let code = match result {
        Ok(()) => abi::MPI_SUCCESS,
        Err(error) => raise(function, comm, &error),
    };
    if special {
        after_special();
    }
    code
}

/// The same for functions of which most calls are over with `first`, which makes no errors: an error of its is what is
/// left for the body. Without the frame that errors need.
#[inline(always)]
pub(crate) fn call_first<L: Default>(
    function: &'static str,
    comm: impl Holder,
    first: impl FnOnce() -> std::result::Result<(), L>,
    body: impl FnOnce(L) -> Result<()>,
) -> c_int {
    let mut left = L::default();
    let first = || first().map_err(|begun| left = begun);
    match try_first(function, first) {
        true => abi::MPI_SUCCESS,
        false => the_rest(|| call_on(function, comm, || body(left))),
    }
}

/// The same for a body that is a whole call.
#[inline(always)]
pub(crate) fn first_of(
    function: &'static str,
    first: impl FnOnce() -> std::result::Result<(), ()>,
    body: impl FnOnce() -> c_int,
) -> c_int {
    match try_first(function, first) {
        true => abi::MPI_SUCCESS,
        false => the_rest(body),
    }
}

#[inline(always)]
fn try_first(function: &'static str, first: impl FnOnce() -> std::result::Result<(), ()>) -> bool {
    if SPECIAL.load(Ordering::Relaxed) != 0 {
        return false;
    }
    note(function);
    first().is_ok()
}

/// Not part of its caller, which then needs no more registers and memory than what is first takes.
#[inline(never)]
fn the_rest(body: impl FnOnce() -> c_int) -> c_int {
    body()
}

/// The same for functions that handlers of remote service requests may call, too.
pub(crate) fn call_in_handlers(
    function: &'static str,
    holder: impl Holder,
    body: impl FnOnce() -> Result<()>,
) -> c_int {
    if SPECIAL.load(Ordering::Relaxed) == 0 || before_special().is_ok() {
        note(function);
    }
    match process::running().and_then(|()| body()) {
        Ok(()) => abi::MPI_SUCCESS,
        Err(error) => raise(function, holder, &error),
    }
}

/// Runs a body that may be called at any time.
pub(crate) fn call_anytime(function: &'static str, body: impl FnOnce() -> Result<()>) -> c_int {
    note(function);
    match body() {
        Ok(()) => abi::MPI_SUCCESS,
        Err(error) => raise(function, h::MPI_COMM_NULL, &error),
    }
}

/// Gives an error to the handler of the communicator, file or window and returns the code for the program.
#[cold]
pub(crate) fn raise(function: &'static str, holder: impl Holder, error: &Error) -> c_int {
    let (object, handler) = holder.handler();
    raise_to(
        function,
        object,
        handler,
        &holder.named(&called::in_terms_of(function, error)),
    )
}

/// Gives an error to a handler, which is told the handle of the object.
pub(crate) fn raise_to(function: &'static str, object: usize, handler: ErrorHandler, error: &Error) -> c_int {
    if let Some(observers) = OBSERVERS.get().filter(|_| is_special(OBSERVING)) {
        (observers.raised)(error.class);
    }
    let error = &*called::in_terms_of(function, error);
    crate::error::remember(function, error);
    if error.class == abi::MPIX_ERR_PROC_FAILED {
        // A program that does the same again and again in vain has to hear what the others do about it.
        let _ = process::world().map(|world| world.engine().lock().progress());
    }
    match handler {
        ErrorHandler::Return => error.class,
        ErrorHandler::Fatal | ErrorHandler::Abort => {
            let text = format!("{function} failed: {error} ({})", crate::error::class_name(error.class));
            process::abort(crate::error::exit_status(error.class), &text)
        }
        // The handler gets the code by reference, and what it leaves there is returned.
        ErrorHandler::User(handler) => (handler.call)(object, error.class),
    }
}

/// Called by the generated shells of functions that are not implemented.
#[unsafe(no_mangle)]
extern "C" fn isthmus_unsupported(function: crate::c::Text, comm: h::Comm) -> c_int {
    let name = function
        .get("function", abi::MPI_ERR_INTERN)
        .unwrap_or_default()
        .into_owned();
    let error = Error::new(
        abi::MPI_ERR_UNSUPPORTED_OPERATION,
        format!("{name} is not implemented in this version of Isthmus; isthmus info --functions lists what is"),
    );
    raise("an MPI function", comm, &error)
}
