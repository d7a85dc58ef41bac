// SPDX-License-Identifier: Apache-2.0
//! Callbacks for events, and how they are called.
//!
//! Events are queued where they happen and given to callbacks when the MPI call that was under way ends: then no lock
//! of the library is held, so a callback may do everything that the safety level MPI_T_CB_REQUIRE_NONE allows, and that
//! is what it is told. One thread at a time calls callbacks, so they never run concurrently. As long as nobody has
//! registered, a call pays for one look at a flag.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use isthmus_abi::Count;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_engine::{EventKind, Observed, Shared};

use super::event::{Instance, no_hints};
use super::types::{ERROR_RAISED, TYPES};
use super::values::{Code, Value, nth, set, tool};
use crate::c::Out;
use crate::call::{Observers, observe};
use crate::handle::{Kind, Table};

/// What the program wants back with a callback.
type UserData = usize;
type EventFunction = unsafe extern "C" fn(h::TEventInstance, h::TEventRegistration, c_int, *mut c_void);
type FreeFunction = unsafe extern "C" fn(h::TEventRegistration, c_int, *mut c_void);
type DroppedFunction = unsafe extern "C" fn(Count, h::TEventRegistration, c_int, c_int, *mut c_void);

/// Levels of safety, weakest demands first.
const LEVELS: [c_int; 4] = [
    abi::MPI_T_CB_REQUIRE_NONE,
    abi::MPI_T_CB_REQUIRE_MPI_RESTRICTED,
    abi::MPI_T_CB_REQUIRE_THREAD_SAFE,
    abi::MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
];

/// Errors that wait for their callbacks at most.
const MOST_ERRORS: usize = 256;

#[derive(Clone, Copy)]
struct Callback {
    function: EventFunction,
    data: UserData,
}

#[derive(Clone, Copy, Default)]
struct Callbacks {
    by_level: [Option<Callback>; LEVELS.len()],
    dropped: Option<DroppedFunction>,
}

impl Callbacks {
    /// The one with the weakest demands: what the library offers satisfies all.
    fn chosen(&self) -> Option<Callback> {
        self.by_level.iter().flatten().next().copied()
    }
}

struct Registration {
    event: usize,
    callbacks: Mutex<Callbacks>,
}

static REGISTRATIONS: Table<Arc<Registration>> = Table::new(Kind::EventRegistration);
/// The registrations, oldest first.
static ALL: Mutex<Vec<h::TEventRegistration>> = Mutex::new(Vec::new());
/// Held by the thread that calls callbacks.
static TURN: Mutex<()> = Mutex::new(());
/// What to call when the thread whose turn it is has ended.
static FREED: Mutex<Vec<Freed>> = Mutex::new(Vec::new());
/// Errors raised, and how many more.
static ERRORS: Mutex<(VecDeque<(Instant, c_int)>, u64)> = Mutex::new((VecDeque::new(), 0));

struct Freed {
    registration: h::TEventRegistration,
    function: FreeFunction,
    data: UserData,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// MPI_Init: the engine is there.
pub(crate) fn begin(engine: &Shared) {
    engine.lock().core.tools().observe(&wanted_kinds());
}

/// MPI_T_finalize: registrations are gone.
pub(super) fn end() {
    lock(&ALL).clear();
    REGISTRATIONS.clear();
    refresh();
}

/// An error goes to an error handler, while somebody observes.
fn error_raised(class: c_int) {
    let mut errors = lock(&ERRORS);
    if errors.0.len() < MOST_ERRORS {
        errors.0.push_back((Instant::now(), class));
    } else {
        errors.1 += 1;
    }
}

fn registered() -> Vec<(h::TEventRegistration, Arc<Registration>)> {
    let all = lock(&ALL).clone();
    let known = |handle: h::TEventRegistration| Some((handle, REGISTRATIONS.get(handle.0)?.clone()));
    all.into_iter().filter_map(known).collect()
}

/// Types of events that have a callback.
fn wanted() -> Vec<usize> {
    let all = registered();
    let with_callback = all.iter().filter(|(_, r)| lock(&r.callbacks).chosen().is_some());
    with_callback.map(|(_, r)| r.event).collect()
}

fn wanted_kinds() -> Vec<EventKind> {
    wanted().into_iter().filter_map(|event| TYPES[event].kind).collect()
}

/// After a change of callbacks: what is queued from now on.
fn refresh() {
    let observers = Observers {
        raised: error_raised,
        dispatch,
    };
    observe(observers, !wanted().is_empty());
    if let Ok(world) = crate::process::world() {
        world.engine().lock().core.tools().observe(&wanted_kinds());
    }
}

/// Gives what has happened to the callbacks, unless another thread, or a callback's caller, is doing so.
#[cold]
pub(crate) fn dispatch() {
    {
        let Ok(_turn) = TURN.try_lock() else { return };
        while let Some((instances, dropped)) = take() {
            for instance in instances {
                deliver(instance);
            }
            for (event, count) in dropped {
                tell_dropped(event, count);
            }
        }
    }
    call_freed();
}

/// Types of events, and how many of each were dropped.
type Dropped = Vec<(usize, u64)>;

/// Everything that has happened; `None`: nothing, or a call that holds the engine is under way in this thread.
fn take() -> Option<(Vec<Instance>, Dropped)> {
    let observed = match crate::process::world() {
        Ok(world) => world.engine().try_lock()?.core.tools().observed(),
        Err(_) => Observed::default(),
    };
    let (errors, more) = std::mem::take(&mut *lock(&ERRORS));
    let mut all: Vec<Instance> = observed.events.into_iter().map(|(at, e)| Instance::of(at, e)).collect();
    all.extend(errors.into_iter().map(|(at, class)| Instance {
        event: ERROR_RAISED,
        at,
        values: vec![Value::Int(class)],
    }));
    all.sort_by_key(|instance| instance.at);
    let number = |(kind, count): (EventKind, u64)| Some((TYPES.iter().position(|t| t.kind == Some(kind))?, count));
    let mut dropped: Dropped = EventKind::ALL
        .into_iter()
        .zip(observed.dropped)
        .filter_map(number)
        .collect();
    dropped.push((ERROR_RAISED, more));
    dropped.retain(|(_, count)| *count > 0);
    (!all.is_empty() || !dropped.is_empty()).then_some((all, dropped))
}

fn deliver(instance: Instance) {
    instance.with_handle(|instance, handle| {
        for (registration, found) in registered() {
            let callback = lock(&found.callbacks)
                .chosen()
                .filter(|_| found.event == instance.event);
            if let Some(Callback { function, data }) = callback {
                // SAFETY: a callback function of the tool gets the event, its registration, the safety level that it
                // may rely on, and the pointer that was registered with it.
                unsafe { function(handle, registration, abi::MPI_T_CB_REQUIRE_NONE, data as *mut c_void) };
            }
        }
    });
}

fn tell_dropped(event: usize, count: u64) {
    for (registration, found) in registered().into_iter().filter(|(_, r)| r.event == event) {
        let callbacks = *lock(&found.callbacks);
        let data = callbacks.chosen().map_or(0, |c| c.data) as *mut c_void;
        let count = count.try_into().unwrap_or(Count::MAX);
        if let Some(function) = callbacks.dropped {
            // SAFETY: a dropped handler of the tool gets how many, of which registration and source, the safety level,
            // and the pointer of the callback.
            unsafe { function(count, registration, 0, abi::MPI_T_CB_REQUIRE_NONE, data) };
        }
    }
}

/// Tells the tool that callbacks of freed registrations will not be called any more, as soon as none can be running.
fn call_freed() {
    // While a callback runs, its thread holds the turn and comes here afterwards.
    let Ok(turn) = TURN.try_lock() else { return };
    let freed = std::mem::take(&mut *lock(&FREED));
    drop(turn);
    for Freed {
        registration,
        function,
        data,
    } in freed
    {
        // SAFETY: the function that the tool gave for this registration, with its pointer.
        unsafe { function(registration, abi::MPI_T_CB_REQUIRE_NONE, data as *mut c_void) };
    }
}

fn find(handle: h::TEventRegistration) -> Code<&'static Arc<Registration>> {
    REGISTRATIONS.get(handle.0).ok_or(abi::MPI_T_ERR_INVALID_HANDLE)
}

fn level(safety: c_int) -> Code<usize> {
    LEVELS.iter().position(|l| *l == safety).ok_or(abi::MPI_T_ERR_INVALID)
}

/// The registration has a callback of this level.
fn find_callback(handle: h::TEventRegistration, safety: c_int) -> Code {
    let registration = find(handle)?;
    let callback = lock(&registration.callbacks).by_level[level(safety)?];
    callback.map(drop).ok_or(abi::MPI_T_ERR_INVALID)
}

/// An info argument: hints are ignored, since none is known, but it must be an info.
fn hints(info: h::Info) -> Code {
    crate::info::find(info).map(drop).map_err(|_| abi::MPI_T_ERR_INVALID)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_handle_alloc(
    index: c_int,
    _object: usize,
    info: h::Info,
    out: Out<h::TEventRegistration>,
) -> c_int {
    tool(|| {
        nth(&TYPES, index)?;
        hints(info)?;
        set(out, h::TEventRegistration(0))?;
        let registration = Arc::new(Registration {
            event: index as usize,
            callbacks: Mutex::default(),
        });
        let handle = h::TEventRegistration(REGISTRATIONS.insert(registration));
        lock(&ALL).push(handle);
        set(out, handle)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_handle_free(
    handle: h::TEventRegistration,
    data: UserData,
    function: Option<FreeFunction>,
) -> c_int {
    tool(|| {
        find(handle)?;
        lock(&ALL).retain(|kept| *kept != handle);
        REGISTRATIONS.remove(handle.0);
        refresh();
        lock(&FREED).extend(function.map(|function| Freed {
            registration: handle,
            function,
            data,
        }));
        call_freed();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_handle_set_info(handle: h::TEventRegistration, info: h::Info) -> c_int {
    tool(|| {
        find(handle)?;
        hints(info)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_handle_get_info(handle: h::TEventRegistration, info: Out<h::Info>) -> c_int {
    tool(|| {
        find(handle)?;
        no_hints(info)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_register_callback(
    handle: h::TEventRegistration,
    safety: c_int,
    info: h::Info,
    data: UserData,
    function: Option<EventFunction>,
) -> c_int {
    tool(|| {
        let registration = find(handle)?;
        let level = level(safety)?;
        hints(info)?;
        lock(&registration.callbacks).by_level[level] = function.map(|function| Callback { function, data });
        refresh();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_callback_set_info(
    handle: h::TEventRegistration,
    safety: c_int,
    info: h::Info,
) -> c_int {
    tool(|| {
        find_callback(handle, safety)?;
        hints(info)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_callback_get_info(
    handle: h::TEventRegistration,
    safety: c_int,
    info: Out<h::Info>,
) -> c_int {
    tool(|| {
        find_callback(handle, safety)?;
        no_hints(info)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_event_set_dropped_handler(
    handle: h::TEventRegistration,
    function: Option<DroppedFunction>,
) -> c_int {
    tool(|| {
        lock(&find(handle)?.callbacks).dropped = function;
        Ok(())
    })
}
