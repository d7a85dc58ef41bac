// SPDX-License-Identifier: Apache-2.0
//! Jobs whose coordinator is at another site: `SITE/JOB` in place of a job, `isthmus ps --site`. The command runs at
//! that site, through ssh, and what it prints comes here.

use crate::{Verb, reach};
use isthmus_job::JobError;
use isthmus_launch::{Access, Failure, Remote};
use isthmus_wire::relay::{Begin, Said};
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// How long a site may take to list its jobs.
const LISTING: Duration = Duration::from_secs(20);

/// A job at another site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct There<'a> {
    site: &'a str,
    job: &'a str,
}

/// `SITE/JOB`. A destination of ssh may have slashes, a job has none.
fn there(word: &str) -> Option<There<'_>> {
    let (site, job) = word.rsplit_once('/')?;
    (!site.is_empty()).then_some(There { site, job })
}

/// What a command does at another site.
enum Way<'a> {
    /// The same as here, with this job.
    Same(&'a str),
    /// It writes a file here.
    Page(&'a str, &'a std::path::Path),
    /// It cannot.
    Refused(&'a str, &'static str),
}

/// The word for a job in a command that takes one.
fn way(verb: &Verb) -> Option<Way<'_>> {
    match verb {
        Verb::Attach(a) => a.job().map(Way::Same),
        Verb::Logs(a) => a.job().map(Way::Same),
        Verb::Signal(a) => Some(Way::Same(a.job())),
        Verb::Kill(a) => Some(Way::Same(a.job())),
        Verb::Edit(a) => Some(Way::Same(a.job())),
        Verb::Whereabouts(a) => a.job().map(Way::Same),
        Verb::Top(a) if a.serves() => a.job().map(|job| Way::Refused(job, SERVING)),
        Verb::Top(a) => a.job().map(Way::Same),
        Verb::Report(a) => match (a.job(), a.page_file()) {
            (Some(job), Some(file)) => Some(Way::Page(job, file)),
            (job, None) => job.map(Way::Same),
            (None, Some(_)) => None,
        },
        _ => None,
    }
}

const SERVING: &str = "the page is served on the site's own loopback interface: run isthmus top --serve there, and ssh -L PORT:localhost:PORT here";

/// Runs the command at the site that its job names, if it names one.
pub(crate) fn command(verb: &Verb) -> Option<ExitCode> {
    let way = way(verb)?;
    let (Way::Same(word) | Way::Page(word, _) | Way::Refused(word, _)) = way;
    let there = there(word)?;
    Some(match way {
        Way::Refused(_, hint) => {
            let error = JobError::new(format!(
                "this cannot be done for a job at site '{}' from here",
                there.site
            ));
            crate::diagnostic::refuse(&error.hint(hint))
        }
        Way::Same(_) => passed(there, own_words(word, there.job)),
        Way::Page(_, file) => page(there, file),
    })
}

/// Our own words with the job as it is called at its site.
fn own_words(word: &str, job: &str) -> Vec<String> {
    let mut replaced = false;
    let words = crate::words().into_iter().map(|own| match own == word && !replaced {
        true => {
            replaced = true;
            job.to_owned()
        }
        false => own,
    });
    words.filter(|word| !word.is_empty()).collect()
}

fn passed(there: There<'_>, words: Vec<String>) -> ExitCode {
    told(there.site, at_site(there.site, words, None, &mut print))
}

fn page(there: There<'_>, file: &std::path::Path) -> ExitCode {
    let mut text = Vec::new();
    let words = ["report", "--html", "-", there.job].map(str::to_owned);
    let words = words.into_iter().filter(|word| !word.is_empty()).collect();
    let ended = at_site(there.site, words, None, &mut |said| match said {
        Said::Output(bytes) => text.write_all(&bytes),
        other => print(other),
    });
    if let Ok(0) = ended {
        let written = match file == std::path::Path::new("-") {
            true => print(Said::Output(text)),
            false => std::fs::write(file, text),
        };
        return match written {
            Ok(()) if file == std::path::Path::new("-") => ExitCode::SUCCESS,
            Ok(()) => {
                crate::print(&format!("wrote {}", file.display()));
                ExitCode::SUCCESS
            }
            Err(error) => {
                crate::complain(&format!("isthmus: error: cannot write '{}': {error}", file.display()));
                ExitCode::FAILURE
            }
        };
    }
    told(there.site, ended)
}

/// What was said there is said here.
pub(crate) fn print(said: Said) -> io::Result<()> {
    match said {
        Said::Output(bytes) => {
            let mut output = io::stdout();
            output.write_all(&bytes).and_then(|()| output.flush())
        }
        Said::Errors(bytes) => io::stderr().write_all(&bytes),
        Said::Ended(_) => Ok(()),
    }
}

/// The exit status, or why the site was not reached.
pub(crate) fn told(site: &str, ended: Result<u8, JobError>) -> ExitCode {
    match ended {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let problem = format!("site '{site}': {}", error.problem);
            crate::diagnostic::refuse(&JobError { problem, ..error });
            ExitCode::FAILURE
        }
    }
}

/// Runs a command of ours at a site.
fn at_site(
    site: &str,
    words: Vec<String>,
    limit: Option<Duration>,
    hear: &mut dyn FnMut(Said) -> io::Result<()>,
) -> Result<u8, JobError> {
    let access = reach::access(None)?;
    let begin = Begin {
        words,
        ..Begin::default()
    };
    on(&access, site, &begin, limit, hear)
}

/// The same with how sites are reached.
pub(crate) fn on(
    access: &Access,
    site: &str,
    begin: &Begin,
    limit: Option<Duration>,
    hear: &mut dyn FnMut(Said) -> io::Result<()>,
) -> Result<u8, JobError> {
    let catalogue = reach::catalogue().map_err(first)?;
    let entry = reach::site(&catalogue, site)?;
    let remote = Remote {
        access,
        contact: &entry.contact,
        setup: &entry.setup,
    };
    remote.run(begin, limit, hear).map_err(failed)
}

pub(crate) fn failed(failure: Failure) -> JobError {
    let error = JobError::new(failure.problem);
    match failure.hint.is_empty() {
        true => error,
        false => error.hint(failure.hint),
    }
}

/// The first of several errors.
pub(crate) fn first(errors: isthmus_job::JobErrors) -> JobError {
    let first = errors.iter().next().cloned();
    first.unwrap_or_else(|| JobError::new("the sites file cannot be used"))
}

/// The jobs at a site, as `isthmus ps --json` lists them there.
pub(crate) fn jobs(site: &str) -> Result<Vec<Value>, JobError> {
    let binary =
        std::env::current_exe().map_err(|e| JobError::new(format!("cannot find the isthmus binary itself: {e}")))?;
    // Nobody is asked for a passphrase while others are waited for.
    let access = Access::new(&binary, &reach::ssh_command(None), false);
    let mut printed = Vec::new();
    let begin = Begin {
        words: ["ps", "--json"].map(str::to_owned).to_vec(),
        ..Begin::default()
    };
    let status = on(&access, site, &begin, Some(LISTING), &mut |said| match said {
        Said::Output(bytes) if printed.len() + bytes.len() <= MOST_LISTED => printed.write_all(&bytes),
        Said::Output(_) => Err(io::Error::other("the list of its jobs is too long")),
        other => print(other),
    })?;
    let list: Value = serde_json::from_slice(&printed).unwrap_or_default();
    match list["jobs"].as_array() {
        Some(jobs) if status == u8::default() => Ok(jobs.clone()),
        _ => Err(JobError::new("it did not list its jobs").hint("use the same isthmus at both ends")),
    }
}

/// Largest list of jobs, bytes.
const MOST_LISTED: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_at_a_site_has_a_slash() {
        assert_eq!(there("3f2a"), None);
        assert_eq!(there("/3f2a"), None);
        let lab = |site, job| Some(There { site, job });
        assert_eq!(there("lab/3f2a"), lab("lab", "3f2a"));
        assert_eq!(there("ssh://me@lab:2222/tides"), lab("ssh://me@lab:2222", "tides"));
        assert_eq!(there("lab/"), lab("lab", ""));
    }
}
