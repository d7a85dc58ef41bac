// SPDX-License-Identifier: Apache-2.0
//! This process as an MPI process: whether it runs, and what it has meanwhile. `life`: who uses it, from when to when.

use std::ffi::c_int;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;

use isthmus_abi::constants as abi;
use isthmus_boot::{BootError, Running};
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_requests::Requests;
use isthmus_wire::boot::LinkTraffic;

pub(crate) mod life;

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

/// This process has met others, who may represent data differently.
pub(crate) fn has_met(world: &World) {
    UNLIKE.store(world.unlike(), Ordering::Relaxed);
}

/// Do processes of the job, or others that it has met, represent data differently?
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

/// The thread level that a program gets: what it asked for, in the order of the standard.
pub(crate) fn granted(required: c_int) -> Result<c_int> {
    let levels = [
        abi::MPI_THREAD_SINGLE,
        abi::MPI_THREAD_FUNNELED,
        abi::MPI_THREAD_SERIALIZED,
        abi::MPI_THREAD_MULTIPLE,
    ];
    if !levels.contains(&required) {
        fail!(abi::MPI_ERR_ARG, "{required} is not a level of thread support");
    }
    Ok(required)
}

/// Granted level of thread support.
pub(crate) fn level() -> Result<c_int> {
    running().map(|()| LEVEL.load(Ordering::Acquire))
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
    if let Some(handler) = isthmus_settings::INITIAL_ERRHANDLER.read(std::env::var_os) {
        // As below.
        let _ = info.set("mpi_initial_errhandler", handler);
    }
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
