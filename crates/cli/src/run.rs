// SPDX-License-Identifier: Apache-2.0
//! `isthmus run`, `mpiexec`, `mpirun`: from words to a job to an exit status.

mod arguments;
mod beside;
mod bound;
pub(crate) mod carry;
mod described;
mod how;
mod losing;
mod options;
mod places;
mod repeated;
mod session;
mod spawned;

pub(crate) use self::arguments::Run;
pub(crate) use self::described::job_of;
pub(crate) use self::how::Launch;
pub(crate) use self::options::{library, overrides, plain_options};
pub(crate) use self::session::go_on;
pub(crate) use self::spawned::spawned;
use crate::allocated;
use crate::background;
use crate::diagnostic::{note, refuse};
use crate::job;
use crate::plan;
use crate::reach;
use isthmus_job::forms::{Described, Form};
use isthmus_job::hostfile::Host;
use isthmus_job::{JobError, JobErrors, JobName, mpiexec};
use isthmus_stage::words;
use std::process::ExitCode;

/// `isthmus run`.
pub(crate) fn run(arguments: &Run) -> ExitCode {
    let named = |described: Described| -> Result<Described, JobErrors> {
        let name = arguments.name.as_deref().map(JobName::parse).transpose()?;
        let job = losing::as_said(described.job.called(name), arguments.on_loss.as_deref())?;
        Ok(Described { job, ..described })
    };
    match job_of(arguments).and_then(named) {
        Ok(described) => show_or_launch(described, &arguments.launch),
        Err(errors) => refuse(&errors),
    }
}

/// `mpiexec` and `mpirun`.
pub(crate) fn run_mpiexec(words: &[String]) -> ExitCode {
    match mpiexec::parse(words, &mut Outside) {
        Ok(mpiexec::Request::Help) => {
            crate::print(mpiexec::HELP);
            ExitCode::SUCCESS
        }
        Ok(mpiexec::Request::Version) => {
            crate::print(&format!("mpiexec of isthmus {}", env!("CARGO_PKG_VERSION")));
            ExitCode::SUCCESS
        }
        Ok(mpiexec::Request::Run {
            described,
            label,
            dump,
            launcher,
        }) => show_or_launch(
            described,
            &Launch {
                label,
                dump_rsl: dump,
                time: launcher.limit,
                stdin: launcher.stdin,
                outfile_pattern: launcher.outfile_pattern,
                output_dir: launcher.output_dir,
                ..Launch::default()
            },
        ),
        Err(errors) => refuse(&errors),
    }
}

/// A job is run unless only its description is wanted.
fn show_or_launch(described: Described, how: &Launch) -> ExitCode {
    described.notes.iter().for_each(note);
    let job = described.job.at_home(reach::is_home);
    let described = Described {
        job: losing::as_set(job),
        ..described
    };
    let plain = described.job.clone();
    let completed = reach::catalogue().and_then(|c| Ok(c.complete(plain.clone())?));
    let described = match completed {
        Ok(job) => Described { job, ..described },
        Err(errors) => return refuse(&errors),
    };
    let shown = if how.dump_rsl {
        let directory = std::env::current_dir().unwrap_or_default();
        job::absolute(described.job, &directory).map(|job| job::write(Form::Rsl, &job))
    } else if how.dry_run || described.dry_run {
        if how.json {
            crate::json::print("run --dry-run", plan::json(&described.job));
        } else {
            crate::print(&plan::text(&described.job));
        }
        if !how.dry_run {
            note(&JobError::new("nothing is started: the description says dryRun=yes"));
        }
        Ok(())
    } else {
        let runnable = job::runnable(&described.job).and_then(|()| match how.is_one_of_several() || background::is() {
            true => Ok(()),
            false => Ok(repeated::check()?),
        });
        return match runnable {
            Ok(()) if how.at.is_some() => carry::start(&described.job, how),
            Ok(()) if how.detach && !background::is() => background::start(),
            Ok(()) => session::launch(described.job, plain, how),
            Err(errors) => refuse(&errors),
        };
    };
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error),
    }
}

struct Outside;

impl mpiexec::Outside for Outside {
    fn read(&mut self, path: &str) -> Result<String, String> {
        crate::given::read(&words::path(path)).map_err(|e| e.to_string())
    }
    fn variable(&mut self, name: &str) -> Option<String> {
        std::env::var_os(name).map(words::text)
    }
    fn parts(&mut self, part: isthmus_topology::processors::HardwareType) -> usize {
        isthmus_agent::count_parts(part)
    }
    fn is_own(&mut self, host: &str) -> bool {
        reach::is_home(host)
    }
    fn allocated(&mut self) -> Result<Option<(Vec<Host>, String)>, JobErrors> {
        allocated::hosts()
    }
}
