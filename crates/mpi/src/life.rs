// SPDX-License-Identifier: Apache-2.0
//! Who uses this process, from when to when.
//!
//! The world model (MPI_Init … MPI_Finalize, once) and any number of sessions use one process underneath, which starts
//! with its first user. Between users it rests and can be used again. It parts from the job for good
//! * at MPI_Finalize, if the program never had a session: the processes of the job wait for each other there;
//! * otherwise when the program exits, since any later session may want to talk to the others again. Messages that
//!   nobody has received a second after the last user has gone are kept until then, in memory of the library.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_boot::{Hearer, Running};
use isthmus_core::comm;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_lock::{OneAtATime, untrapped};
use isthmus_requests::Requests;
use isthmus_wire::frame::protocol;

use crate::process::{
    self, PROCESS_STANDS, Phase, Process, WORLD_MODEL, abort, boot_error, get, granted, say, world_model,
};

static USERS: Mutex<Users> = Mutex::new(Users {
    count: 0,
    sessions: false,
    parted: false,
});

/// The world model, if it is active, and the open sessions.
struct Users {
    count: u32,
    /// There was a session.
    sessions: bool,
    /// The process has left the job.
    parted: bool,
}

fn users() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// MPI_Init: gives the granted thread level.
pub(crate) fn start(required: c_int) -> Result<c_int> {
    let level = granted(required)?;
    if !WORLD_MODEL.go(Phase::Before, Phase::Starting) {
        fail!(
            abi::MPI_ERR_OTHER,
            "MPI_Init or MPI_Init_thread was called before; MPI is initialized once only"
        );
    }
    match enter(&mut users(), level, level >= abi::MPI_THREAD_MULTIPLE) {
        Ok(level) => {
            WORLD_MODEL.go_to(Phase::Running);
            Ok(level)
        }
        Err(error) => {
            WORLD_MODEL.go_to(Phase::Before);
            Err(error)
        }
    }
}

/// MPI_Session_init: gives the granted thread level.
pub(crate) fn start_session(level: c_int) -> Result<c_int> {
    let mut users = users();
    // A later session may ask for more than this one, so the engine is made ready for threads at once.
    let level = enter(&mut users, level, true)?;
    if !users.sessions {
        users.sessions = true;
        at_exit()?;
    }
    Ok(level)
}

/// Another user. `threads`: if it is the first, prepare for several threads.
fn enter(users: &mut Users, level: c_int, threads: bool) -> Result<c_int> {
    let process = match process::begun() {
        Some(process) => process,
        // Settings and rates of links are reckoned there.
        None => untrapped(|| begin(threads || crate::tool::is_concurrent(), level == abi::MPI_THREAD_SINGLE))?,
    };
    if users.parted && process.running.world().size() > 1 {
        fail!(
            abi::MPI_ERR_OTHER,
            "the processes of this job parted in MPI_Finalize; to use sessions after it, initialize one before it"
        );
    }
    users.count += 1;
    PROCESS_STANDS.go_to(Phase::Running);
    let level = if process.threads {
        level
    } else {
        level.min(abi::MPI_THREAD_SERIALIZED)
    };
    process::grant(level);
    Ok(level)
}

fn begin(threads: bool, single: bool) -> Result<&'static Process> {
    install_panic_hook();
    crate::settings::begin();
    // SAFETY: below MPI_THREAD_MULTIPLE the program has promised that its threads call MPI in turns (MPI 5.0 section
    // 11.6); the library's own threads use an engine that is made for several.
    let promise = (!threads).then(|| unsafe { OneAtATime::promised() });
    let calls = isthmus_io::Calls::default();
    let mut hearers = vec![Hearer {
        protocol: protocol::FILES,
        make: calls.machine(),
    }];
    let requests = Requests::default();
    let makers = requests.machines();
    hearers.extend(makers.map(|(protocol, make)| Hearer { protocol, make }));
    let running = Running::start(promise, single, hearers).map_err(|e| boot_error(&e))?;
    forget_token();
    mark_copies()?;
    running.watch(crate::call::last);
    running.world().set_overrides(crate::settings::overrides()?);
    crate::settings::tune(running.world().engine());
    running.prepare().map_err(|e| boot_error(&e))?;
    crate::tool::begin(running.world().engine());
    process::has_met(running.world());
    let (comm_world, comm_self) = (comm::of_world(running.world()), comm::of_self(running.world()));
    let main = std::thread::current().id();
    let process = process::begin(Process {
        running,
        threads,
        main,
        comm_world,
        comm_self,
        requests,
    });
    process.requests.begin(process.world());
    isthmus_io::allow(process.running.reached());
    calls.begin(process.running.world());
    crate::spawn::meet_parents(&process.running, &process.comm_world)?;
    Ok(process)
}

/// A copy of this process has its memory, sockets and rank, but is not the process that the others know: where it takes
/// part in an operation, this one waits for ever.
fn mark_copies() -> Result<()> {
    extern "C" fn copied() {
        PROCESS_STANDS.go_to(Phase::Forked);
        // Who finalizes at the end of a program whatever is not finalized leaves a copy alone.
        WORLD_MODEL.go(Phase::Running, Phase::After);
    }
    unsafe extern "C" {
        /// What pthread_atfork calls, which is in no shared library.
        fn __register_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
            owner: *const std::ffi::c_void,
        ) -> c_int;
    }
    // SAFETY: keeps the address of a function, which lives as long as the program (no owner: it is never taken back).
    if unsafe { __register_atfork(None, None, Some(copied), std::ptr::null()) } != 0 {
        fail!(
            abi::MPI_ERR_NO_MEM,
            "the C library has no memory for a function to call in copies of this process"
        );
    }
    Ok(())
}

/// What MPI_Finalize does first: the values that are cached on MPI_COMM_SELF and MPI_COMM_WORLD are deleted.
pub(crate) fn delete_at_end() -> Result<()> {
    // Who may not call it hears that from what follows.
    let Ok(process) = world_model() else { return Ok(()) };
    let own = crate::comm::delete_all_at_end(&process.comm_self, isthmus_abi::handles::MPI_COMM_SELF);
    let all = crate::comm::delete_all_at_end(&process.comm_world, isthmus_abi::handles::MPI_COMM_WORLD);
    own.and(all)
}

/// MPI_Finalize.
pub(crate) fn finish() -> Result<()> {
    let process = world_model()?;
    // Afterwards there is no engine to ask; callbacks must not run while the users of MPI are counted.
    crate::tool::dispatch();
    let mut users = users();
    leave(&mut users, process)?;
    if users.count > 0 {
        process.running.give_memory_back();
    }
    WORLD_MODEL.go_to(Phase::After);
    Ok(())
}

/// MPI_Session_finalize.
pub(crate) fn finish_session() -> Result<()> {
    leave(&mut users(), get()?)
}

fn leave(users: &mut Users, process: &Process) -> Result<()> {
    users.count -= 1;
    if users.count > 0 {
        return Ok(());
    }
    if users.sessions {
        // Nobody makes progress until the next session or the exit.
        process.running.rest();
    } else {
        part(users, process)?;
    }
    PROCESS_STANDS.go_to(Phase::After);
    Ok(())
}

/// Leaves the job, together with all other processes.
fn part(users: &mut Users, process: &Process) -> Result<()> {
    if !std::mem::replace(&mut users.parted, true) {
        let end = if users.sessions {
            "the end of the program"
        } else {
            "MPI_Finalize"
        };
        isthmus_dynamic::close_all();
        // Whoever is still connected, of other jobs, comes to its end too.
        isthmus_core::joining::wait_for_all(process.running.world());
        process.requests.close(process.world());
        let finished = process.running.finish(end, isthmus_io::used);
        finished.map_err(|e| boot_error(&e))?;
    }
    Ok(())
}

/// The end of a program that has used sessions.
fn at_exit() -> Result<()> {
    extern "C" fn end() {
        // The others wait for the process, not for a copy of it.
        if PROCESS_STANDS.at(Phase::Forked) {
            return;
        }
        // A thread that ends the job may do so while another one is at work with this.
        let Ok(mut users) = USERS.try_lock() else { return };
        // Whoever exits with an open session is missed by the launcher, as after MPI_Init without MPI_Finalize.
        if let (0, false, Some(process)) = (users.count, process::is_aborting(), process::begun()) {
            if let Err(error) = part(&mut users, process) {
                say(&format!("isthmus: {error}"));
            }
        }
    }
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> c_int;
    }
    // SAFETY: a function of the C library that keeps the address of a function, which lives as long as the program.
    if unsafe { atexit(end) } != 0 {
        fail!(
            abi::MPI_ERR_NO_MEM,
            "the C library has no memory for a function to call at exit"
        );
    }
    Ok(())
}

fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        abort(134, &format!("a bug in Isthmus, please report it: {info}"));
    }));
}

/// The one-time token is used up; programs that this process starts must not see it.
fn forget_token() {
    // SAFETY: called once, inside MPI_Init, which the standard lets only one thread call; programs that change the
    // environment in other threads meanwhile race with their own getenv as well.
    unsafe { std::env::remove_var(isthmus_settings::TOKEN.name) };
    // SAFETY: as above.
    unsafe { std::env::remove_var(isthmus_settings::RENDEZVOUS.name) };
}
