// SPDX-License-Identifier: Apache-2.0
//! A job from its description to the exit status: what it needs of this machine, how it runs, what is said at its end.

use super::carry;
use super::how::Launch;
use super::options::{options, plain_options};
use crate::diagnostic::{refuse, warn};
use crate::terminal::Terminal;
use crate::{background, overwritten, reach, streams};
use isthmus_job::{Job, JobError, JobErrors};
use isthmus_launch::session::Log;
use isthmus_launch::{Console, Held, Options, Outcome, Session};
use isthmus_stage::words;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Runs a job, up to its exit status. `plain`: without what is known of its sites.
pub(super) fn launch(job: Job, plain: Job, launch: &Launch) -> ExitCode {
    crate::diagnostic::mute(false);
    complain_of_settings(&job);
    match Prepared::of(job, plain, launch) {
        Ok(prepared) => prepared.run(launch),
        Err(errors) => refuse(&errors),
    }
}

/// A job that is about to run, with all that this machine says of it.
struct Prepared {
    job: Job,
    options: Options,
    terminal: Terminal,
    /// Where it is on this machine, if others are to find it.
    place: Option<PathBuf>,
}

impl Prepared {
    fn of(job: Job, plain: Job, launch: &Launch) -> Result<Self, JobErrors> {
        let job = job.with_staging()?;
        let described = plain.with_staging()?.subjobs().to_vec();
        let options = options(launch)?;
        crate::login::outlived(&job, options.limit);
        streams::check(launch.output_dir.as_deref(), &options, &job)?;
        let job = crate::links::pinned(job, launch.links.as_deref())?;
        let session = session(&job, launch)?;
        let place = session.as_ref().map(|session| session.path().to_owned());
        Ok(Self {
            terminal: terminal(launch, place.clone())?,
            options: Options {
                described,
                session,
                ..options
            },
            job,
            place,
        })
    }

    fn run(self, launch: &Launch) -> ExitCode {
        let Self {
            job,
            options,
            mut terminal,
            place,
        } = self;
        let name = options.session.as_ref().map_or("", Session::name).to_owned();
        if background::is() {
            let named = name.clone();
            terminal.in_background(Box::new(move || background::leave(&named)));
            background::end_with_command();
        }
        let near = reach::near_names(&options.described);
        let wide = (job.spans_wide_area() && wants_doctor()).then(|| job.clone());
        let outcome = isthmus_launch::run(job, options, terminal);
        let status = conclude(&outcome, place.clone());
        if background::is() {
            background::conclude(&outcome, &name, place.as_deref());
        }
        if outcome.unreached && !outcome.began {
            near.iter().for_each(|hint| crate::complain(hint));
            let failed = outcome.problem.is_some() && outcome.status < 128;
            wide.iter().filter(|_| failed).for_each(|job| ask_doctor(job, launch));
        }
        status
    }
}

/// Where others find the job while it runs.
fn session(job: &Job, launch: &Launch) -> Result<Option<Session>, JobError> {
    let (identifier, options) = (launch.carried(), launch.again());
    let words = identifier.map_or_else(crate::words, |_| carry::typed());
    let again = background::Again {
        identifier,
        options: &options,
    };
    background::session(job, &words, &again)
}

/// What is shown of the job, and where.
fn terminal(launch: &Launch, place: Option<PathBuf>) -> Result<Terminal, JobError> {
    let terminal = Terminal::new(launch.label, launch.progress, place);
    if let Some(file) = launch.events.as_deref().filter(|file| *file != "-") {
        overwritten::prepare("--events", &words::path(file), overwritten::Kind::Json)?;
    }
    terminal.with_events(launch.events.as_deref()).map_err(|error| {
        let file = launch.events.as_deref().unwrap_or_default();
        JobError::new(format!("cannot write the events file '{file}': {error}"))
    })
}

/// Why sites were not reached.
fn ask_doctor(job: &Job, launch: &Launch) {
    let options = plain_options(launch.ssh.as_deref()).ok();
    if let Some(words) = options.and_then(|options| crate::examined::after_failure(job, options)) {
        crate::complain(&format!("isthmus doctor says:\n{}", words.trim_end()));
    }
}

/// Tells, once for the whole job, of variables for Isthmus that mean nothing: of this environment, and of what the job
/// sets for its processes.
fn complain_of_settings(job: &Job) {
    let own = |(name, value): &(String, String)| (name.into(), value.into());
    let of_job = job
        .subjobs()
        .iter()
        .flat_map(|subjob| subjob.environment.iter().map(own));
    let all: BTreeSet<(OsString, OsString)> = std::env::vars_os().chain(of_job).collect();
    for text in isthmus_settings::complaints(all) {
        warn(&JobError::new(text));
    }
}

/// Goes on with a job that has lost its launcher.
///
/// # Errors
/// What the launcher lacks on this machine.
pub(crate) fn go_on(job: Job, session: Session, held: Held, launch: &Launch) -> Result<ExitCode, JobError> {
    let options = options(launch)?;
    let place = session.path().to_owned();
    let mut terminal = Terminal::new(launch.label, launch.progress, Some(place.clone()));
    terminal.hang_up();
    background::say_ready(session.name());
    let since = Duration::from_secs(isthmus_launch::now().saturating_sub(held.began));
    let left = |limit: Duration| limit.saturating_sub(since).max(Duration::from_secs(1));
    let options = Options {
        detach: false,
        limit: options.limit.map(left),
        patience: options.silence,
        input: isthmus_launch::InputTo::Nobody,
        session: Some(session),
        held: Some(held),
        ..options
    };
    let outcome = isthmus_launch::run(job, options, terminal);
    Ok(conclude(&outcome, Some(place)))
}

/// Says how a job has ended. `place`: where it was on this machine.
fn conclude(outcome: &Outcome, place: Option<PathBuf>) -> ExitCode {
    let statistics = isthmus_settings::STATS.read(std::env::var_os);
    if statistics && !outcome.statistics.is_empty() {
        crate::complain(&outcome.statistics.to_string());
        if !outcome.links.is_empty() {
            crate::complain(&crate::links::report(&outcome.links));
        }
        if outcome.paths.iter().any(|p| p.path != "none") {
            crate::complain(&crate::examined::paths(&outcome.paths));
        }
    }
    for line in outcome.statistics.links(statistics) {
        crate::complain(&format!("isthmus: {line}"));
    }
    if let Some(notice) = &outcome.notice {
        crate::complain(&format!("isthmus: {notice}"));
    }
    // The logs of a job in the background say how it ended.
    if let Some(place) = place.filter(|p| p.join("outcome").exists()) {
        if let Ok(mut log) = Log::open(&place, "errors") {
            let _ = log.write(told(outcome).as_bytes());
        }
    }
    report(outcome)
}

/// Whether the doctor is called after a start that failed: where somebody reads it, or the user says so.
fn wants_doctor() -> bool {
    use std::io::IsTerminal;
    let said = isthmus_settings::DOCTOR.read(std::env::var_os);
    said.unwrap_or_else(|| std::io::stderr().is_terminal())
}

/// What went wrong, and what to do about it.
fn told(outcome: &Outcome) -> String {
    let mut text = String::new();
    if let Some(problem) = &outcome.problem {
        text.push_str(&format!("isthmus: error: {problem}\n"));
        if !outcome.hint.is_empty() {
            text.push_str(&format!("  hint: {}\n", outcome.hint));
        }
    }
    crate::diagnostic::plain(&text)
}

fn report(outcome: &Outcome) -> ExitCode {
    let text = told(outcome);
    if !text.is_empty() {
        crate::complain(text.trim_end());
    }
    // A status that a shell cannot show must not look like success.
    let shown = (outcome.status & 0xff) as u8;
    ExitCode::from(if shown == 0 && outcome.status != 0 { 1 } else { shown })
}
