// SPDX-License-Identifier: Apache-2.0
//! A launcher that takes up the job of one that has died: `isthmus attach` starts it in the background.

use crate::background;
use crate::run::{self, Launch};
use clap::Args;
use isthmus_job::JobError;
use isthmus_launch::session::{Entry, Session};
use isthmus_stage::{own, words};
use std::process::{Command, ExitCode, Stdio};

/// What the launcher is told by the command that starts it.
#[derive(Args, Debug)]
pub(crate) struct TakeUp {
    job: String,
    #[command(flatten)]
    launch: Launch,
}

/// The job with a launcher: one that has lost it gets another one.
pub(crate) fn with_launcher(entry: Entry) -> Result<Entry, String> {
    let Some(held) = entry.held().filter(|_| entry.seconds_left().is_some()) else {
        return Ok(entry);
    };
    let cannot = |error: std::io::Error| format!("the job {} cannot be taken up: {error}", entry.name);
    let child = Command::new(own::found(&std::env::current_exe().map_err(cannot)?))
        .args(["take-up", &entry.name])
        .args(held.words.iter().map(|word| words::path(word)))
        .envs(held.environment.iter().map(|(name, value)| (name, words::path(value))))
        .env(background::VARIABLE, "1")
        .current_dir(words::path(&held.directory))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    background::await_word(child).map_err(cannot)?.map_err(|errors| {
        let text = errors.trim();
        text.strip_prefix("isthmus: error: ").unwrap_or(text).to_owned()
    })?;
    Ok(entry.again())
}

/// `isthmus take-up`: the launcher.
pub(crate) fn take_up(arguments: &TakeUp) -> ExitCode {
    background::leave_terminal();
    match taken(arguments) {
        Ok(status) => status,
        Err(error) => crate::diagnostic::refuse(&error),
    }
}

fn taken(arguments: &TakeUp) -> Result<ExitCode, JobError> {
    let cannot = |why: String| JobError::new(format!("the job {} cannot be taken up: {why}", arguments.job));
    let entry = Entry::find(&arguments.job).map_err(JobError::new)?;
    let lost = || cannot("it has a launcher, or has ended".to_owned());
    let held = entry
        .held()
        .filter(|_| entry.seconds_left().is_some())
        .ok_or_else(lost)?;
    let job = held
        .job()
        .ok_or_else(|| cannot("what was kept of it makes no sense".to_owned()))?;
    let session = Session::take_up(&entry).map_err(|error| cannot(error.to_string()))?;
    run::go_on(job, session, held, &arguments.launch)
}
