// SPDX-License-Identifier: Apache-2.0
//! This process as an MPI process: before MPI_Init, running, after MPI_Finalize.

use std::ffi::c_int;
use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;

use isthmus_abi::constants as abi;
use isthmus_boot::{BootError, Running};
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_core::world::World;

const BEFORE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
const AFTER: u8 = 3;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
static PROCESS: OnceLock<Process> = OnceLock::new();

/// What a running MPI process has.
pub(crate) struct Process {
    running: Running,
    /// Granted level of thread support.
    pub(crate) level: c_int,
    /// The thread that called MPI_Init.
    pub(crate) main: ThreadId,
    /// MPI_COMM_WORLD.
    pub(crate) comm_world: Arc<Comm>,
    /// MPI_COMM_SELF.
    pub(crate) comm_self: Arc<Comm>,
}

/// Between MPI_Init and MPI_Finalize?
#[inline]
pub(crate) fn running() -> Result<()> {
    match PHASE.load(Ordering::Acquire) {
        RUNNING => Ok(()),
        AFTER => fail!(abi::MPI_ERR_OTHER, "called after MPI_Finalize"),
        _ => fail!(abi::MPI_ERR_OTHER, "called before MPI_Init"),
    }
}

/// The running process.
#[inline]
pub(crate) fn get() -> Result<&'static Process> {
    running()?;
    match PROCESS.get() {
        Some(process) => Ok(process),
        None => fail!(abi::MPI_ERR_INTERN, "MPI runs without a process"),
    }
}

/// The process's world.
#[inline]
pub(crate) fn world() -> Result<&'static World> {
    get().map(|p| p.running.world())
}

/// Has MPI_Init been called (and completed)?
pub(crate) fn was_started() -> bool {
    PHASE.load(Ordering::Acquire) >= RUNNING
}

/// Has MPI_Finalize completed?
pub(crate) fn was_finished() -> bool {
    PHASE.load(Ordering::Acquire) == AFTER
}

/// MPI_Init: gives the granted thread level.
pub(crate) fn start(required: c_int) -> Result<c_int> {
    let level = crate::environment::granted(required)?;
    crate::settings::begin()?;
    if PHASE
        .compare_exchange(BEFORE, STARTING, Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        fail!(
            abi::MPI_ERR_OTHER,
            "MPI_Init or MPI_Init_thread was called before; MPI is initialized once only"
        );
    }
    install_panic_hook();
    let running = match Running::start(level >= abi::MPI_THREAD_MULTIPLE) {
        Ok(running) => running,
        Err(error) => {
            PHASE.store(BEFORE, Ordering::Release);
            return Err(boot_error(&error));
        }
    };
    forget_token();
    crate::settings::tune(running.world().engine());
    crate::tool::begin(running.world().engine());
    let (comm_world, comm_self) = (running.world().comm_world(), running.world().comm_self());
    let main = std::thread::current().id();
    if PROCESS
        .set(Process {
            running,
            level,
            main,
            comm_world,
            comm_self,
        })
        .is_err()
    {
        fail!(abi::MPI_ERR_INTERN, "MPI was initialized by two threads at once");
    }
    PHASE.store(RUNNING, Ordering::Release);
    Ok(level)
}

/// MPI_Finalize.
pub(crate) fn finish() -> Result<()> {
    let process = get()?;
    crate::attribute::delete_all_at_end(&process.comm_self, isthmus_abi::handles::MPI_COMM_SELF)?;
    crate::attribute::delete_all_at_end(&process.comm_world, isthmus_abi::handles::MPI_COMM_WORLD)?;
    process.running.finish().map_err(|e| boot_error(&e))?;
    crate::tool::dispatch();
    PHASE.store(AFTER, Ordering::Release);
    Ok(())
}

/// Ends the job: tells the launcher why, and ends this process with `code`.
pub(crate) fn abort(code: c_int, reason: &str) -> ! {
    let status = if (1..=255).contains(&code) { code } else { 1 };
    match PROCESS.get() {
        Some(process) => process.running.abort(status, reason),
        None => {
            say(&format!("isthmus: {reason}"));
            leave(status)
        }
    }
}

#[expect(clippy::exit, reason = "MPI_Abort and fatal errors end the process")]
fn leave(status: c_int) -> ! {
    std::process::exit(status)
}

/// Host name, with the site when there are several.
pub(crate) fn processor_name() -> String {
    PROCESS.get().map_or_else(String::new, |p| p.running.host().to_owned())
}

/// MPI_INFO_ENV (MPI 5.0 section 11.2.1).
pub(crate) fn environment_info() -> Info {
    let mut info = Info::default();
    let mut put = |key: &str, value: String| {
        // Values longer than the standard allows are left out, as it says.
        let _ = info.set(key, &value);
    };
    let arguments: Vec<String> = std::env::args().collect();
    if let Some((command, rest)) = arguments.split_first() {
        put("command", command.clone());
        put("argv", rest.join(" "));
    }
    if let Ok(directory) = std::env::current_dir() {
        put("wdir", directory.display().to_string());
    }
    if let Some(process) = PROCESS.get() {
        put("host", process.running.host().to_owned());
        put("maxprocs", process.running.world().size().to_string());
        put("soft", process.running.world().size().to_string());
    }
    put("arch", std::env::consts::ARCH.to_owned());
    info
}

/// A line for the person who started a program without a launcher, or when there is nobody else to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn boot_error(error: &BootError) -> Error {
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
    unsafe { std::env::remove_var("ISTHMUS_TOKEN") };
    // SAFETY: as above.
    unsafe { std::env::remove_var("ISTHMUS_RENDEZVOUS") };
}
