// SPDX-License-Identifier: Apache-2.0
//! This process as an MPI process: whether it runs, and what it has meanwhile. Who uses it, from when to when, is
//! said by [`crate::life`].

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

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    Before,
    Starting,
    Running,
    After,
    /// A copy that fork made of a process of the job.
    Forked,
}

/// A phase that threads look at.
pub(crate) struct Stands(AtomicU8);

impl Stands {
    const fn before() -> Self {
        Self(AtomicU8::new(Phase::Before as u8))
    }

    #[inline]
    pub(crate) fn at(&self, phase: Phase) -> bool {
        self.0.load(Ordering::Acquire) == phase as u8
    }

    pub(crate) fn go_to(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Release);
    }

    /// Goes on from one phase to another, unless it was in a third one.
    pub(crate) fn go(&self, from: Phase, to: Phase) -> bool {
        let gone = self
            .0
            .compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire);
        gone.is_ok()
    }
}

/// Of the process: [`Phase::Running`] while it has users.
pub(crate) static PROCESS_STANDS: Stands = Stands::before();
/// Of the world model.
pub(crate) static WORLD_MODEL: Stands = Stands::before();
/// Thread support that the latest user was granted.
static LEVEL: AtomicI32 = AtomicI32::new(abi::MPI_THREAD_SINGLE);
/// The job is being ended.
static ABORTING: AtomicBool = AtomicBool::new(false);
/// Processes of the job represent data differently: known once there is a process.
static UNLIKE: AtomicBool = AtomicBool::new(false);
static PROCESS: OnceLock<Process> = OnceLock::new();

/// What a running MPI process has.
pub(crate) struct Process {
    pub(crate) running: Running,
    /// Several threads may call MPI at the same time.
    pub(crate) threads: bool,
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
    match PROCESS_STANDS.at(Phase::Running) {
        true => Ok(()),
        false => Err(not_running()),
    }
}

#[cold]
fn not_running() -> Error {
    let text = if PROCESS_STANDS.at(Phase::After) {
        "called after MPI_Finalize"
    } else if PROCESS_STANDS.at(Phase::Forked) {
        "called in a copy that fork made of a process of the job; only the process that called MPI_Init may call MPI, and \
         a copy may start another program"
    } else {
        "called before MPI_Init"
    };
    Error::new(abi::MPI_ERR_OTHER, text)
}

/// The running process.
#[inline]
pub(crate) fn get() -> Result<&'static Process> {
    running()?;
    match PROCESS.get() {
        Some(process) => Ok(process),
        None => Err(Error::new(abi::MPI_ERR_INTERN, "MPI runs without a process")),
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
    WORLD_MODEL.at(Phase::Running)
}

/// The process between MPI_Init and MPI_Finalize: only then there are MPI_COMM_WORLD and MPI_COMM_SELF.
#[inline]
pub(crate) fn world_model() -> Result<&'static Process> {
    if !is_in_world_model() {
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
    WORLD_MODEL.at(Phase::Running) || WORLD_MODEL.at(Phase::After)
}

/// Has MPI_Finalize completed?
pub(crate) fn was_finished() -> bool {
    WORLD_MODEL.at(Phase::After)
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

/// From now on this level of thread support is granted.
pub(crate) fn grant(level: c_int) {
    LEVEL.store(level, Ordering::Release);
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

/// The process that was begun, whoever uses it now.
pub(crate) fn begun() -> Option<&'static Process> {
    PROCESS.get()
}

/// From now on there is a process: this one, unless another was there before.
pub(crate) fn begin(process: Process) -> &'static Process {
    PROCESS.get_or_init(|| process)
}

/// Whether the job is being ended from here.
pub(crate) fn is_aborting() -> bool {
    ABORTING.load(Ordering::Acquire)
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

/// An error of the room that begins and ends a process.
pub(crate) fn boot_error(error: &BootError) -> Error {
    if let BootError::Aborted(_) = error {
        // The launcher ends the job and has said why: it has nothing to hear from every process that it ends.
        exit(crate::error::exit_status(abi::MPI_ERR_OTHER));
    }
    Error::new(abi::MPI_ERR_OTHER, error.to_string())
}
