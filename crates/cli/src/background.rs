// SPDX-License-Identifier: Apache-2.0
//! `isthmus run --detach`: the same command once more, which stays at the terminal until its processes have begun, or
//! until it waits for other parts of its world or has joined them, and leaves it then.
//!
//! ```text
//!  the command that was typed           the same one, BACKGROUND=1: the launcher
//!    |  starts it, waits                  |  asks and tells at the terminal; what processes print goes into its logs
//!    |                                    |  that is so: a session of its own, no terminal
//!    |  <--- name of the job \n  ---------|
//!    |  prints it, ends                   |  goes on
//! ```
//! Where the first one ends before it has the name, so does the second one; where the second one ends first, its status
//! is that of the first.

use crate::diagnostic::note;
use isthmus_job::{Job, JobError, JobName};
use isthmus_launch::Outcome;
use isthmus_launch::session::{About, Refused, Session};
use isthmus_stage::own;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use rustix::stdio;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// Tells the second command that it is the one in the background.
pub(crate) const VARIABLE: &str = isthmus_settings::BACKGROUND.name;
/// How often the launcher looks whether the command that was typed is still there.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// The launcher has left the terminal.
static HAS_LEFT: AtomicBool = AtomicBool::new(false);
/// Whether this is the command in the background.
pub(crate) fn is() -> bool {
    isthmus_settings::BACKGROUND.read(std::env::var_os)
}

/// The command in the background leaves the terminal behind.
pub(crate) fn leave_terminal() {
    if is() {
        // It fails for the leader of a group, which this is not.
        let _ = rustix::process::setsid();
    }
}

/// Starts the command in the background and waits until it leaves the terminal or has failed.
pub(crate) fn start() -> ExitCode {
    match wait_for_it() {
        Ok(status) => status,
        Err(error) => {
            crate::complain(&format!(
                "isthmus: error: cannot start the job in the background: {error}"
            ));
            ExitCode::FAILURE
        }
    }
}

fn wait_for_it() -> io::Result<ExitCode> {
    // What is typed to end the job goes to both: the launcher ends it and says so.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let _ignored = [signal(SignalKind::interrupt())?, signal(SignalKind::quit())?];
    let mut child = spawn()?;
    let mut name = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut name)?;
    }
    if !name.trim().is_empty() {
        crate::print(name.trim());
        return Ok(ExitCode::SUCCESS);
    }
    let ended = child.wait()?;
    Ok(match status(ended) {
        Some(status) => ExitCode::from(status),
        None => {
            let problem = format!("its launcher ended before the processes had started ({ended})");
            return Err(io::Error::other(problem));
        }
    })
}

/// The status of a launcher that was not there for the job to begin. What is typed while it starts ends it as the
/// system does; one that somebody else has killed is told of.
fn status(ended: ExitStatus) -> Option<u8> {
    let typed = [Signal::INT, Signal::QUIT].map(Signal::as_raw);
    let by_typing = ended.signal().filter(|signal| typed.contains(signal));
    let status = ended.code().or_else(|| by_typing.map(|signal| 128 + signal))?;
    u8::try_from(status).ok().filter(|status| *status != 0)
}

fn spawn() -> io::Result<Child> {
    let input = if io::stdin().is_terminal() {
        Stdio::null()
    } else {
        Stdio::inherit()
    };
    Command::new(own::found(&std::env::current_exe()?))
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, "1")
        .stdin(input)
        .stdout(Stdio::piped())
        .spawn()
}

/// The job does not begin without the command that was typed: whoever has ended that wants no job.
pub(crate) fn end_with_command() {
    let watch = || {
        while !HAS_LEFT.load(Ordering::Relaxed) {
            // Of a pipe that is written to only its end is told.
            let mut output = [PollFd::from_borrowed_fd(stdio::stdout(), PollFlags::empty())];
            let is_gone = poll(&mut output, Some(&LOOK)).is_ok_and(|ready| ready > 0);
            if is_gone && !HAS_LEFT.load(Ordering::Relaxed) {
                let _ = kill_process(getpid(), Signal::TERM);
                return;
            }
        }
    };
    // Without a thread the job is only harder to end.
    let _ = std::thread::Builder::new().name("command".to_owned()).spawn(watch);
}

/// The job needs nobody any more: the command that was typed gets the name of the job, and the terminal is left to
/// others.
pub(crate) fn leave(name: &str) {
    leave_terminal();
    let null = File::options().read(true).write(true).open("/dev/null");
    // Without it what is printed later is lost as well: nobody reads it.
    let _ = null.as_ref().map(stdio::dup2_stderr);
    HAS_LEFT.store(true, Ordering::Relaxed);
    say_ready(name);
    let _ = null.as_ref().map(stdio::dup2_stdout);
}

/// A job in the background has ended. One that ended well before anybody was told has begun all the same; what one that
/// did not has printed is in its logs.
pub(crate) fn conclude(outcome: &Outcome, name: &str, place: Option<&Path>) {
    if HAS_LEFT.load(Ordering::Relaxed) {
        return;
    }
    if outcome.status == 0 {
        return leave(name);
    }
    if place.is_some_and(|p| std::fs::metadata(p.join("output")).is_ok_and(|log| log.len() > 0)) {
        crate::complain(&format!(
            "isthmus: what its processes have printed: isthmus logs {name}"
        ));
    }
}

/// The first line of a command in the background, or what it has complained of.
pub(crate) fn await_word(mut child: Child) -> io::Result<Result<String, String>> {
    let mut name = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut name)?;
    }
    if !name.trim().is_empty() {
        return Ok(Ok(name.trim().to_owned()));
    }
    let mut errors = String::new();
    if let Some(mut said) = child.stderr.take() {
        said.read_to_string(&mut errors)?;
    }
    child.wait()?;
    Ok(Err(errors))
}

/// Tells whoever started the command the name of the job.
pub(crate) fn say_ready(name: &str) {
    let mut output = io::stdout();
    // Whoever started it may be gone: the job runs all the same.
    let _ = writeln!(output, "{name}").and_then(|()| output.flush());
}

/// What to do where nothing can be kept on this machine.
const PLACE: &str = "let HOME or XDG_CACHE_HOME be a directory that can be written";

/// What a job has from elsewhere, or leaves.
pub(crate) struct Again<'a> {
    /// The identifier that it has already.
    pub(crate) identifier: Option<&'a str>,
    /// Options for a launcher that follows this one.
    pub(crate) options: &'a [String],
}

/// Where the job has its place on this machine. One in the foreground does without if it must.
pub(crate) fn session(job: &Job, words: &[String], again: &Again<'_>) -> Result<Option<Session>, JobError> {
    let environment = crate::variables::settings(false, &[VARIABLE]);
    let about = About {
        words,
        processes: job.processes(),
        name: job.name().map(JobName::as_str),
        identifier: again.identifier,
        options: again.options,
        environment: &environment,
    };
    match Session::create(&about, is()) {
        Ok(session) => Ok(Some(session)),
        Err(Refused::Taken(other)) => {
            let name = about.name.unwrap_or_default();
            let error = JobError::new(format!("a job called '{name}' runs here already: {other}"));
            Err(error.hint(format!(
                "give this one another name, or end that one: isthmus kill {other}"
            )))
        }
        Err(Refused::NoPlace(error)) if !is() => {
            let problem =
                format!("isthmus ps, top and where will not see this job: no place for it in ~/.cache: {error}");
            note(&JobError::new(problem).hint(PLACE));
            Ok(None)
        }
        Err(Refused::NoPlace(error)) => {
            let error = JobError::new(format!("there is no place for the logs of the job: {error}")).accident();
            Err(error.hint(PLACE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_before_the_launcher_knows_of_signals_is_130() {
        let of = |raw| status(ExitStatus::from_raw(raw));
        assert_eq!((of(2), of(3)), (Some(130), Some(131)));
        assert_eq!((of(9), of(15), of(0)), (None, None, None));
        assert_eq!(of(2 << 8), Some(2));
    }
}
