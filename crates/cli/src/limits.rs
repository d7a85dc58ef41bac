// SPDX-License-Identifier: Apache-2.0
//! Limits of the system under which a command would break in the middle of its work. They are looked at before, so that
//! the user reads one sentence. Programs that are started have the user's own limits.

use isthmus_job::JobError;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::panic;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use tokio::signal::unix::{SignalKind, signal};

/// Stack that every command has enough of, bytes.
const STACK: usize = 8 << 20;
/// A stack that is smaller is not used.
const LEAST_STACK: u64 = 1 << 20;
/// Open files without which no command can work.
const FILES: u64 = 24;
/// Largest file without which no command can work, bytes.
const FILE_SIZE: u64 = 1 << 20;
/// Threads that a command starts at once: two that work, one for signals, one that reads.
const THREADS: usize = 4;

/// What breaks in spite of that is told in a sentence, and ends the command: a library's thread that cannot start where
/// memory is limited (`ulimit -v`), or a mistake of ours.
pub(crate) fn tell_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            usual(info);
        }
        let payload = info.payload();
        let words = payload.downcast_ref::<&str>().copied();
        let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        crate::complain(&broken(words.unwrap_or_default(), &place.unwrap_or_default()));
        end();
    }));
}

fn broken(words: &str, place: &str) -> String {
    format!(
        "isthmus: error: isthmus cannot go on: {words} ({place})\n  hint: a limit may be too low (ulimit -a shows them); \
         otherwise this is a mistake in isthmus, which is worth a report"
    )
}

#[expect(clippy::exit, reason = "nothing can go on, and a core file would help no user")]
fn end() {
    std::process::exit(1)
}

/// Signals whose disposition, as it was inherited, would end a command, or take from it what it works with. A file that
/// is to be larger than it may (`ulimit -f`) is an error of what writes it; where that signal is ignored it stays so,
/// also for the programs that are started. Where that of children is ignored, the system forgets how they have ended.
/// Programs have no handler of ours.
pub(crate) fn settle_signals() {
    const SIGCHLD: i32 = 17;
    const SIGXFSZ: i32 = 25;
    let writes_less = getrlimit(Resource::Fsize).current.is_some() && !is_ignored(SIGXFSZ);
    let wanted = [(SIGCHLD, is_ignored(SIGCHLD)), (SIGXFSZ, writes_less)];
    if wanted.iter().all(|(_, is_wanted)| !is_wanted) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let Ok(runtime) = runtime else { return };
    let _inside = runtime.enter();
    for (number, _) in wanted.iter().filter(|(_, is_wanted)| *is_wanted) {
        // The handler stays when nobody listens any more. Without one all is as it was.
        let _ = signal(SignalKind::from_raw(*number));
    }
}

fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// Runs a command where its stack is large enough.
pub(crate) fn with_stack(command: fn() -> ExitCode) -> ExitCode {
    if getrlimit(Resource::Stack)
        .current
        .is_none_or(|limit| limit >= LEAST_STACK)
    {
        return command();
    }
    match thread::Builder::new().stack_size(STACK).spawn(command) {
        // One that panicked has said why.
        Ok(thread) => thread.join().unwrap_or(ExitCode::FAILURE),
        Err(error) => crate::diagnostic::refuse(&no_thread(&error)),
    }
}

/// Whether there is room for what a command opens and starts.
pub(crate) fn check() -> Result<(), JobError> {
    if let Some(limit) = getrlimit(Resource::Nofile).current.filter(|limit| *limit < FILES) {
        let problem = format!("isthmus needs {FILES} open files, and the limit is {limit}");
        return Err(JobError::new(problem).hint("raise the limit: ulimit -n 1024"));
    }
    if let Some(limit) = getrlimit(Resource::Fsize).current.filter(|limit| *limit < FILE_SIZE) {
        let problem = format!("isthmus writes files of up to {FILE_SIZE} bytes, and the limit is {limit}");
        return Err(JobError::new(problem).hint("raise the limit: ulimit -f unlimited"));
    }
    threads(THREADS).map_err(|error| no_thread(&error))
}

/// So many threads at a time, for a moment.
fn threads(count: usize) -> io::Result<()> {
    let mut held = Vec::new();
    for _ in 0..count {
        let (hold, wait) = mpsc::channel::<()>();
        // It ends when its sender is dropped.
        let thread = thread::Builder::new().stack_size(64 << 10).spawn(move || wait.recv())?;
        held.push((hold, thread));
    }
    for (hold, thread) in held {
        drop(hold);
        let _ = thread.join();
    }
    Ok(())
}

fn no_thread(error: &io::Error) -> JobError {
    JobError::new(format!("isthmus cannot start the threads that it needs: {error}"))
        .hint("raise the limit on processes and threads (ulimit -u), or end some that run")
}

#[cfg(test)]
mod tests {
    #[test]
    fn threads_start_and_end() {
        super::threads(5).unwrap();
        super::check().unwrap();
        assert!(
            super::broken("no thread", "a.rs:7")
                .starts_with("isthmus: error: isthmus cannot go on: no thread (a.rs:7)\n")
        );
    }
}
