// SPDX-License-Identifier: Apache-2.0
//! This process as an MPI process: who uses it, from when to when.
//!
//! The world model (MPI_Init … MPI_Finalize, once) and any number of sessions use one process underneath, which starts
//! with its first user. Between users it rests and can be used again. It parts from the job for good
//! * at MPI_Finalize, if the program never had a session: the processes of the job wait for each other there;
//! * otherwise when the program exits, since any later session may want to talk to the others again. Messages that
//!   nobody has received a second after the last user has gone are kept until then, in memory of the library.

use std::ffi::c_int;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

use isthmus_abi::constants as abi;
use isthmus_boot::{BootError, Hearer, Running, Taker};
use isthmus_core::comm::{self, Comm};
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_lock::{OneAtATime, untrapped};
use isthmus_requests::Requests;
use isthmus_wire::boot::LinkTraffic;
use isthmus_wire::frame::protocol;

const BEFORE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const AFTER: u8 = 3;
/// A copy that fork made of a process of the job.
const FORKED: u8 = 4;

/// Of the process: [`RUNNING`] while it has users.
static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
/// Of the world model.
static WORLD_MODEL: AtomicU8 = AtomicU8::new(BEFORE);
/// Thread support that the latest user was granted.
static LEVEL: AtomicI32 = AtomicI32::new(abi::MPI_THREAD_SINGLE);
/// The job is being ended.
static ABORTING: AtomicBool = AtomicBool::new(false);
/// Processes of the job represent data differently: known once there is a process.
static UNLIKE: AtomicBool = AtomicBool::new(false);
static PROCESS: OnceLock<Process> = OnceLock::new();
static USERS: Mutex<Users> = Mutex::new(Users {
    count: 0,
    sessions: false,
    parted: false,
});

/// What a running MPI process has.
pub(crate) struct Process {
    running: Running,
    /// Several threads may call MPI at the same time.
    threads: bool,
    /// The thread that initialized MPI.
    pub(crate) main: ThreadId,
    /// MPI_COMM_WORLD.
    pub(crate) comm_world: Arc<Comm>,
    /// MPI_COMM_SELF.
    pub(crate) comm_self: Arc<Comm>,
    /// Remote service requests.
    pub(crate) requests: Requests,
}

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

/// Does anybody use MPI: between MPI_Init and MPI_Finalize, or with a session?
#[inline]
pub(crate) fn running() -> Result<()> {
    match PHASE.load(Ordering::Acquire) {
        RUNNING => Ok(()),
        phase => Err(not_running(phase)),
    }
}

#[cold]
fn not_running(phase: u8) -> Error {
    let text = match phase {
        RUNNING => "MPI runs without a process",
        AFTER => "called after MPI_Finalize",
        FORKED => {
            "called in a copy that fork made of a process of the job; only the process that called MPI_Init may call \
             MPI, and a copy may start another program"
        }
        _ => "called before MPI_Init",
    };
    let class = if phase == RUNNING {
        abi::MPI_ERR_INTERN
    } else {
        abi::MPI_ERR_OTHER
    };
    Error::new(class, text)
}

/// The running process.
#[inline]
pub(crate) fn get() -> Result<&'static Process> {
    running()?;
    match PROCESS.get() {
        Some(process) => Ok(process),
        None => Err(not_running(RUNNING)),
    }
}

impl Process {
    #[inline]
    pub(crate) fn world(&self) -> &World {
        self.running.world()
    }

    /// From now on there is progress while the program computes.
    pub(crate) fn keep_progress(&self) -> Result<()> {
        self.running.keep_progress().map_err(|e| boot_error(&e))
    }
}

/// Is this between MPI_Init and MPI_Finalize?
#[inline]
pub(crate) fn is_in_world_model() -> bool {
    WORLD_MODEL.load(Ordering::Acquire) == RUNNING
}

/// The process between MPI_Init and MPI_Finalize: only then there are MPI_COMM_WORLD and MPI_COMM_SELF.
#[inline]
pub(crate) fn world_model() -> Result<&'static Process> {
    if WORLD_MODEL.load(Ordering::Acquire) != RUNNING {
        return Err(no_world_model());
    }
    get()
}

#[cold]
fn no_world_model() -> Error {
    Error::new(
        abi::MPI_ERR_COMM,
        "MPI_COMM_WORLD and MPI_COMM_SELF are valid between MPI_Init and MPI_Finalize only; with sessions, make a \
         communicator from a process set",
    )
}

/// Do processes of the job represent data differently?
#[inline]
pub(crate) fn unlike() -> bool {
    UNLIKE.load(Ordering::Relaxed)
}

/// What has passed between this process and other sites.
pub(crate) fn traffic() -> Result<LinkTraffic> {
    get().map(|p| p.running.traffic())
}

/// What runs below: for what a whole process does.
pub(crate) fn underneath() -> Result<&'static Running> {
    get().map(|p| &p.running)
}

/// The process's world.
#[inline]
pub(crate) fn world() -> Result<&'static World> {
    get().map(|p| p.running.world())
}

/// Has MPI_Init been called (and completed)?
pub(crate) fn was_started() -> bool {
    WORLD_MODEL.load(Ordering::Acquire) >= RUNNING
}

/// Has MPI_Finalize completed?
pub(crate) fn was_finished() -> bool {
    WORLD_MODEL.load(Ordering::Acquire) == AFTER
}

/// Granted level of thread support.
pub(crate) fn level() -> Result<c_int> {
    running().map(|()| LEVEL.load(Ordering::Acquire))
}

/// MPI_Init: gives the granted thread level.
pub(crate) fn start(required: c_int) -> Result<c_int> {
    let level = crate::environment::granted(required)?;
    if WORLD_MODEL
        .compare_exchange(BEFORE, STARTING, Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        fail!(
            abi::MPI_ERR_OTHER,
            "MPI_Init or MPI_Init_thread was called before; MPI is initialized once only"
        );
    }
    match enter(&mut users(), level, level >= abi::MPI_THREAD_MULTIPLE) {
        Ok(level) => {
            WORLD_MODEL.store(RUNNING, Ordering::Release);
            Ok(level)
        }
        Err(error) => {
            WORLD_MODEL.store(BEFORE, Ordering::Release);
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
    let process = match PROCESS.get() {
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
    PHASE.store(RUNNING, Ordering::Release);
    let level = if process.threads {
        level
    } else {
        level.min(abi::MPI_THREAD_SERIALIZED)
    };
    LEVEL.store(level, Ordering::Release);
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
        taker: Taker::BetweenSites(calls.machine()),
    }];
    let requests = Requests::default();
    hearers.extend(requests.machines().map(|(protocol, make)| Hearer {
        protocol,
        taker: Taker::Later(make),
    }));
    let running = Running::start(promise, single, hearers).map_err(|e| boot_error(&e))?;
    forget_token();
    mark_copies()?;
    running.watch(crate::call::last);
    running.world().set_overrides(crate::settings::overrides()?);
    crate::settings::tune(running.world().engine());
    running.prepare().map_err(|e| boot_error(&e))?;
    crate::tool::begin(running.world().engine());
    UNLIKE.store(running.world().unlike(), Ordering::Relaxed);
    let (comm_world, comm_self) = (comm::of_world(running.world()), comm::of_self(running.world()));
    let main = std::thread::current().id();
    let process = PROCESS.get_or_init(|| Process {
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
    crate::spawn::meet_parents(process.running.world(), &process.comm_world)?;
    Ok(process)
}

/// A copy of this process has its memory, sockets and rank, but is not the process that the others know: where it takes
/// part in an operation, this one waits for ever.
fn mark_copies() -> Result<()> {
    extern "C" fn copied() {
        PHASE.store(FORKED, Ordering::Release);
        // Who finalizes at the end of a program whatever is not finalized leaves a copy alone.
        let _ = WORLD_MODEL.compare_exchange(RUNNING, AFTER, Ordering::AcqRel, Ordering::Relaxed);
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

/// Is MPI running in a process whose threads have promised to call it in turns?
#[inline]
pub(crate) fn takes_turns() -> bool {
    PROCESS.get().is_some_and(|process| !process.threads)
}

/// The running process, if its threads have promised to call MPI in turns.
#[inline]
pub(crate) fn of_turns() -> Option<&'static Process> {
    let process = PROCESS.get().filter(|process| !process.threads)?;
    running().is_ok().then_some(process)
}

/// What MPI_Finalize does first: the values that are cached on MPI_COMM_SELF and MPI_COMM_WORLD are deleted.
pub(crate) fn delete_at_end() -> Result<()> {
    // Who may not call it hears that from what follows.
    let Ok(process) = world_model() else { return Ok(()) };
    let own = crate::attribute::delete_all_at_end(&process.comm_self, isthmus_abi::handles::MPI_COMM_SELF);
    let all = crate::attribute::delete_all_at_end(&process.comm_world, isthmus_abi::handles::MPI_COMM_WORLD);
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
    WORLD_MODEL.store(AFTER, Ordering::Release);
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
    PHASE.store(AFTER, Ordering::Release);
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
        if PHASE.load(Ordering::Acquire) == FORKED {
            return;
        }
        // A thread that ends the job may do so while another one is at work with this.
        let Ok(mut users) = USERS.try_lock() else { return };
        // Whoever exits with an open session is missed by the launcher, as after MPI_Init without MPI_Finalize.
        if let (0, false, Some(process)) = (users.count, ABORTING.load(Ordering::Acquire), PROCESS.get()) {
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

/// Ends the job: tells the launcher why, and ends this process with `code`.
pub(crate) fn abort(code: c_int, reason: &str) -> ! {
    let status = if (1..=255).contains(&code) { code } else { 1 };
    ABORTING.store(true, Ordering::Release);
    match PROCESS.get() {
        Some(process) => process.running.abort(status, reason),
        None => {
            say(&format!("isthmus: {reason}"));
            exit(status)
        }
    }
}

/// Ends this process, and leaves it to the job whether that goes on.
pub(crate) fn end_alone(reason: &str) -> ! {
    say(&format!("isthmus: {reason}"));
    exit(1)
}

#[expect(clippy::exit, reason = "MPI_Abort and fatal errors end the process")]
fn exit(status: c_int) -> ! {
    std::process::exit(status)
}

/// Host name, with the site when there are several.
pub(crate) fn processor_name() -> String {
    PROCESS.get().map_or_else(String::new, |p| p.running.host().to_owned())
}

/// MPI_INFO_ENV (MPI 5.0 section 11.2.1): what MPI_Info_create_env gives, and what is known of the running job.
pub(crate) fn job_info() -> Info {
    let mut info = environment_info();
    let Some(process) = PROCESS.get() else { return info };
    let size = process.running.world().size().to_string();
    for (key, value) in [("host", process.running.host()), ("maxprocs", &size), ("soft", &size)] {
        // As below.
        let _ = info.set(key, value);
    }
    info
}

/// MPI_Info_create_env: what is known at any time.
pub(crate) fn environment_info() -> Info {
    let mut info = Info::default();
    let mut put = |key: &str, value: String| {
        // Values longer than the standard allows are left out, as it says.
        let _ = info.set(key, &value);
    };
    let words = std::env::args_os();
    let arguments: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).collect();
    if let Some((command, rest)) = arguments.split_first() {
        put("command", command.clone());
        put("argv", rest.join(" "));
    }
    if let Ok(directory) = std::env::current_dir() {
        put("wdir", directory.display().to_string());
    }
    put("arch", std::env::consts::ARCH.to_owned());
    info
}

/// Whether this process speaks for the job: the first one, or one that has no others yet.
pub(crate) fn speaks() -> bool {
    world().map_or(true, |world| world.rank() == 0)
}

/// A line for the person who started a program without a launcher, or when there is nobody else to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn boot_error(error: &BootError) -> Error {
    if let BootError::Aborted(_) = error {
        // The launcher ends the job and has said why: it has nothing to hear from every process that it ends.
        exit(crate::error::exit_status(abi::MPI_ERR_OTHER));
    }
    Error::new(abi::MPI_ERR_OTHER, error.to_string())
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
