// SPDX-License-Identifier: Apache-2.0
//! Jobs whose coordinator is at another site: `SITE/JOB` in place of a job, `isthmus ps --site`. The command runs at
//! that site, through ssh, and what it prints comes here.

use crate::diagnostic::STATUS_UNREAD;
use crate::{Verb, reach};
use isthmus_job::JobError;
use isthmus_reach::{Access, Failure, Remote};
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
enum AtSite<'a> {
    /// The same as here, with this job.
    Same(&'a str),
    /// It writes a file here.
    Page(&'a str, &'a std::path::Path),
    /// It cannot.
    Refused(&'a str, &'static str),
}

/// The word for a job in a command that takes one.
fn way(verb: &Verb) -> Option<AtSite<'_>> {
    match verb {
        Verb::Attach(a) => a.job().map(AtSite::Same),
        Verb::Logs(a) => a.job().map(AtSite::Same),
        Verb::Signal(a) => Some(AtSite::Same(a.job())),
        Verb::Kill(a) => Some(AtSite::Same(a.job())),
        Verb::Edit(a) => Some(AtSite::Same(a.job())),
        Verb::Whereabouts(a) => a.job().map(AtSite::Same),
        Verb::Top(a) if a.serves() => a.job().map(|job| AtSite::Refused(job, SERVING)),
        Verb::Top(a) => a.job().map(AtSite::Same),
        Verb::Report(a) => match (a.job(), a.page_file()) {
            (Some(job), Some(file)) => Some(AtSite::Page(job, file)),
            (job, None) => job.map(AtSite::Same),
            (None, Some(_)) => None,
        },
        _ => None,
    }
}

const SERVING: &str = "the page is served on the site's own loopback interface: run isthmus top --serve there, and ssh -L PORT:localhost:PORT here";

/// Runs the command at the site that its job names, if it names one.
pub(crate) fn command(verb: &Verb) -> Option<ExitCode> {
    let way = way(verb)?;
    let (AtSite::Same(word) | AtSite::Page(word, _) | AtSite::Refused(word, _)) = way;
    let there = there(word)?;
    Some(match way {
        AtSite::Refused(_, hint) => {
            let error = JobError::new(format!(
                "this cannot be done for a job at site '{}' from here",
                there.site
            ));
            crate::diagnostic::refuse(&error.hint(hint))
        }
        AtSite::Same(_) => {
            // What processes print is theirs, here as at home; everything else is the site's.
            let heard = match verb {
                Verb::Attach(_) | Verb::Logs(_) => Heard::of_processes(),
                _ => Heard::default(),
            };
            passed(
                there,
                own_words(word, there.job),
                heard,
                matches!(verb, Verb::Attach(_)),
            )
        }
        AtSite::Page(_, file) => page(there, file),
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

fn passed(there: There<'_>, words: Vec<String>, mut heard: Heard, is_attached: bool) -> ExitCode {
    let ended = at_site(there.site, words, None, &mut |said| heard.say(said));
    match heard.is_unread {
        // The status of a job is not known where nobody reads on.
        true if is_attached => ExitCode::from(STATUS_UNREAD),
        true => ExitCode::SUCCESS,
        false => told(there.site, ended),
    }
}

fn page(there: There<'_>, file: &std::path::Path) -> ExitCode {
    let (mut text, mut heard) = (Vec::new(), Heard::default());
    let words = ["report", "--html", "-", there.job].map(str::to_owned);
    let words = words.into_iter().filter(|word| !word.is_empty()).collect();
    let ended = at_site(there.site, words, None, &mut |said| match said {
        Said::Output(bytes) => gather(&mut text, &bytes, MOST_GATHERED),
        other => heard.say(other),
    });
    if let Ok(0) = ended {
        if file == std::path::Path::new("-") {
            crate::put(&text);
            return ExitCode::SUCCESS;
        }
        return match std::fs::write(file, text) {
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

/// Says here what was said there: without what a terminal would take for commands, but for what processes print.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    of_processes: bool,
    /// Nobody reads what is printed any more, or it has no place.
    is_unread: bool,
    output: Plain,
    errors: Plain,
}

impl Heard {
    fn of_processes() -> Self {
        Self {
            of_processes: true,
            ..Self::default()
        }
    }

    pub(crate) fn say(&mut self, said: Said) -> io::Result<()> {
        let raw = self.of_processes;
        match said {
            // The site is silent.
            Said::Output(bytes) if bytes.is_empty() => self.while_read(crate::reader::waits(Duration::ZERO)),
            Said::Output(bytes) => {
                let shown = if raw { bytes } else { self.output.of(&bytes) };
                self.while_read(crate::put(&shown))
            }
            Said::Errors(bytes) => io::stderr().write_all(&if raw { bytes } else { self.errors.of(&bytes) }),
            Said::Ended(_) => Ok(()),
        }
    }

    fn while_read(&mut self, is_read: bool) -> io::Result<()> {
        self.is_unread = !is_read;
        match is_read {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Text that comes in pieces, which may end inside a letter.
#[derive(Debug, Default)]
struct Plain {
    /// The beginning of a letter: at most three bytes.
    rest: Vec<u8>,
}

impl Plain {
    fn of(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(piece);
        self.rest = all.split_off(all.len() - unfinished(&all));
        isthmus_reach::plain(&String::from_utf8_lossy(&all)).into_bytes()
    }
}

/// Bytes at the end that begin a letter of UTF-8 which goes on behind them.
fn unfinished(text: &[u8]) -> usize {
    let mut tail = text.iter().rev().zip(1..=3);
    let first = tail.find(|(byte, _)| **byte & 0xC0 != 0x80);
    let length = |byte: u8| match byte {
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
        _ => 1,
    };
    first
        .filter(|(byte, there)| length(**byte) > *there)
        .map_or(0, |(_, there)| there)
}

/// Adds to what a site says as a whole.
pub(crate) fn gather(all: &mut Vec<u8>, piece: &[u8], most: usize) -> io::Result<()> {
    if all.len() + piece.len() > most {
        return Err(io::Error::other("the answer of the site is too long"));
    }
    all.extend_from_slice(piece);
    Ok(())
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
    let error = JobError::new(failure.problem).accident();
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
    let (mut printed, mut heard) = (Vec::new(), Heard::default());
    let begin = Begin {
        words: ["ps", "--json"].map(str::to_owned).to_vec(),
        ..Begin::default()
    };
    let status = on(&access, site, &begin, Some(LISTING), &mut |said| match said {
        Said::Output(bytes) => gather(&mut printed, &bytes, MOST_GATHERED),
        other => heard.say(other),
    })?;
    let list: Value = serde_json::from_slice(&printed).unwrap_or_default();
    match list["jobs"].as_array() {
        Some(jobs) if status == u8::default() => Ok(jobs.clone()),
        _ => Err(JobError::new("it did not list its jobs").hint("use the same isthmus at both ends")),
    }
}

/// Largest list of jobs, and largest page of one, bytes.
const MOST_GATHERED: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_site_says_commands_no_terminal() {
        let mut plain = Plain::default();
        let said = "gr\u{fc}n \u{1b}[31m\u{9b}2J \u{20ac} \u{1f600}\n".as_bytes();
        for length in 1..said.len() {
            let shown: Vec<u8> = said.chunks(length).flat_map(|piece| plain.of(piece)).collect();
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown, "gr\u{fc}n \\u{1b}[31m\\u{9b}2J \u{20ac} \u{1f600}\n", "{length}");
        }
        // No letter: it is not waited for.
        assert_eq!(plain.of(b"\xff\x80\x80\x80\x80"), "\u{fffd}".repeat(5).into_bytes());
    }

    #[test]
    fn what_is_gathered_has_a_bound() {
        let mut all = Vec::new();
        assert!(gather(&mut all, b"abc", 4).is_ok() && gather(&mut all, b"de", 4).is_err());
        assert_eq!(all, b"abc");
    }

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
