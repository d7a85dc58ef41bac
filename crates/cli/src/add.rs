// SPDX-License-Identifier: Apache-2.0
//! `isthmus add`: more processes for a running job.

use crate::diagnostic::refuse;
use crate::run::{Run, job_of};
use crate::{job, reach, sessions};
use clap::Args;
use isthmus_job::{Contact, Job, JobError, JobErrors};
use isthmus_launch::{Held, request};
use isthmus_stage::words;
use isthmus_wire::control::{Reply, Request};
use isthmus_wire::word::counted;
use std::process::ExitCode;

/// Add processes to a running job
///
/// They have an MPI_COMM_WORLD of their own. Their output is part of the job's output, and they end with the job.
#[derive(Args, Debug)]
#[command(override_usage = "isthmus add [--to PORT] JOB [OPTIONS] PROGRAM [ARGUMENT]...")]
pub(crate) struct Add {
    /// The job: its name, its identifier or the beginning of one of them
    job: String,
    /// Name that the job has published for a port (MPI_Publish_name), at which it accepts them (MPI_Comm_accept). They
    /// are its children then: MPI_Comm_get_parent
    #[arg(long, value_name = "PORT")]
    to: Option<String>,
    #[command(flatten)]
    run: Run,
}

/// `isthmus add`.
pub(crate) fn add(arguments: &Add) -> ExitCode {
    let (text, processes) = match described(&arguments.run) {
        Ok(described) => described,
        Err(errors) => return refuse(&errors),
    };
    sessions::with(Some(&arguments.job), |entry| {
        let mut wanted = Request::Add {
            job: text,
            to: arguments.to.clone().unwrap_or_default(),
        };
        loop {
            match request(&entry, &wanted)? {
                // The launcher answers when there is news.
                Reply::Adding(number) => wanted = Request::Adding(number),
                Reply::Done => {
                    let have = if processes == 1 { "has" } else { "have" };
                    let what = counted(processes, "process");
                    crate::complain(&format!("isthmus: {what} {have} been added to job {}", entry.name));
                    return Ok(ExitCode::SUCCESS);
                }
                Reply::Refused(why) => return Err(why),
                _ => return Err("the launcher of the job gave an unexpected answer".to_owned()),
            }
        }
    })
}

/// What is to be added, as a job file, and how many processes that are.
fn described(run: &Run) -> Result<(String, u32), JobErrors> {
    run.launch.is_for_added()?;
    let described = job_of(run)?.job.at_home(reach::is_home);
    let completed = reach::catalogue()?.complete(described)?;
    job::runnable(&completed)?;
    let directory = std::env::current_dir()
        .map_err(|error| JobError::new(format!("the current directory cannot be used: {error}")))?;
    let mut subjobs = job::absolute(completed.clone(), &directory)?.subjobs().to_vec();
    for subjob in &mut subjobs {
        subjob.stage &= !run.launch.leaves_programs();
        // The launcher may stand elsewhere.
        if subjob.contact == Contact::Home {
            let named = subjob.directory.as_deref().unwrap_or_default();
            if !named.starts_with(['/', '~']) {
                subjob.directory = Some(words::text(directory.join(words::path(named))));
            }
        }
    }
    let whole: Job = completed.with_subjobs(subjobs)?;
    let text = Held::describe(&whole).ok_or_else(|| {
        JobError::new("these processes cannot be described to the launcher of the job")
            .hint("leave out what a job file cannot express")
    })?;
    Ok((text, whole.processes()))
}

#[cfg(test)]
mod tests {
    use crate::Verb;
    use crate::help::LAUNCHER;
    use clap::FromArgMatches;

    #[test]
    fn what_the_help_does_not_show_is_refused_and_nothing_else() {
        let grammar = crate::grammar();
        let add = grammar.find_subcommand("add").unwrap();
        for argument in add.get_arguments().filter(|argument| argument.get_long().is_some()) {
            let (id, option) = (argument.get_id().as_str(), argument.get_long().unwrap());
            let mut line = vec!["isthmus".to_owned(), "add".to_owned(), "job".to_owned()];
            line.extend(match id {
                "at" => Some("--detach".to_owned()),
                "json" => Some("--dry-run".to_owned()),
                "place" => Some("--select=cores>1".to_owned()),
                _ => None,
            });
            line.push(match argument.get_action().takes_values() {
                false => format!("--{option}"),
                true => match argument.get_possible_values().first() {
                    Some(value) => format!("--{option}={}", value.get_name()),
                    None => format!("--{option}=1"),
                },
            });
            line.push("program".to_owned());
            let Ok(matches) = grammar.clone().try_get_matches_from(line) else {
                panic!("{option}");
            };
            let Verb::Add(parsed) = crate::Command::from_arg_matches(&matches).unwrap().verb else {
                panic!("{option}");
            };
            assert_eq!(
                parsed.run.launch.is_for_added().is_err(),
                LAUNCHER.contains(&id),
                "{option}"
            );
        }
    }
}
