// SPDX-License-Identifier: Apache-2.0
//! `isthmus run --detach`: the same command once more, in a session of its own, without a terminal.

use crate::diagnostic::note;
use isthmus_job::{Job, JobError, JobName};
use isthmus_launch::session::{About, Refused, Session};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};

/// Tells the second command that it is the one in the background.
pub(crate) const VARIABLE: &str = isthmus_settings::BACKGROUND.name;

/// Whether this is the command in the background.
pub(crate) fn is() -> bool {
    isthmus_settings::BACKGROUND.read(std::env::var_os)
}

/// The command in the background leaves the terminal behind; the earlier the better.
pub(crate) fn leave_terminal() {
    if is() {
        // It fails for the leader of a group, which this is not.
        let _ = rustix::process::setsid();
    }
}

/// Starts the command in the background and waits until its job has a name or it has refused.
pub(crate) fn start() -> ExitCode {
    match spawn().and_then(await_name) {
        Ok(status) => status,
        Err(error) => {
            crate::complain(&format!(
                "isthmus: error: cannot start the job in the background: {error}"
            ));
            ExitCode::FAILURE
        }
    }
}

fn spawn() -> io::Result<Child> {
    let input = if io::stdin().is_terminal() {
        Stdio::null()
    } else {
        Stdio::inherit()
    };
    Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, "1")
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// The first line of a command in the background, or what it has complained of.
pub(crate) fn await_word(mut child: Child) -> io::Result<Result<String, String>> {
    let said = first_word(&mut child)?;
    if said.is_err() {
        child.wait()?;
    }
    Ok(said)
}

fn first_word(child: &mut Child) -> io::Result<Result<String, String>> {
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
    Ok(Err(errors))
}

fn await_name(mut child: Child) -> io::Result<ExitCode> {
    match first_word(&mut child)? {
        Ok(name) => {
            crate::print(&name);
            return Ok(ExitCode::SUCCESS);
        }
        Err(errors) => crate::complain(errors.trim_end()),
    }
    let status = child.wait()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(status.filter(|s| *s != 0).unwrap_or(1)))
}

/// Tells whoever started the command the name of the job.
pub(crate) fn say_ready(name: &str) {
    let mut output = io::stdout();
    // Whoever started it may be gone: the job runs all the same.
    let _ = writeln!(output, "{name}").and_then(|()| output.flush());
}

/// What to do where nothing can be kept on this machine.
const PLACE: &str = "let HOME or XDG_CACHE_HOME be a directory that can be written";

/// Where the job has its place on this machine. One in the foreground does without if it must.
pub(crate) fn session(job: &Job, options: &[String]) -> Result<Option<Session>, JobError> {
    let environment = crate::variables::settings(false, &[VARIABLE]);
    let about = About {
        words: &crate::words(),
        processes: job.processes(),
        name: job.name().map(JobName::as_str),
        options,
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
            let error = JobError::new(format!("there is no place for the logs of the job: {error}"));
            Err(error.hint(PLACE))
        }
    }
}
