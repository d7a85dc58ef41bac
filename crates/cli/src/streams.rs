// SPDX-License-Identifier: Apache-2.0
//! Where the standard input of `isthmus run` goes, and the output of its processes.

use crate::overwritten::{self, Kind};
use isthmus_job::{Job, JobError};
use isthmus_launch::{InputTo, Options, OutputPattern, check_input, check_results};

/// What is wrong with where input and output are to go.
pub(crate) fn check(output_dir: Option<&str>, options: &Options, job: &Job) -> Result<(), JobError> {
    if let InputTo::Rank(rank) = options.input {
        let last = job.processes() - 1;
        if rank > last {
            let error = JobError::new(format!("--stdin {rank}: there is no such rank"));
            return Err(error.hint(format!("the ranks of this job are 0 to {last}")));
        }
    }
    check_input(job, options.input)?;
    if let Some(file) = &options.trace {
        overwritten::prepare("--trace", file, Kind::Json)?;
    }
    check_results(job, &options.directory)?;
    let directory = output_dir.map(|d| options.directory.join(isthmus_stage::words::path(d)));
    match directory.map(|d| (std::fs::create_dir_all(&d), d)) {
        Some((Err(error), directory)) => {
            let error = JobError::new(format!(
                "--output-dir: cannot create '{}': {error}",
                directory.display()
            ));
            Err(error.hint("name a directory in which you may write"))
        }
        _ => Ok(()),
    }
}

/// Who gets our standard input.
pub(crate) fn input(to: Option<&str>) -> Result<InputTo, JobError> {
    match to {
        None => Ok(InputTo::First),
        Some("all") => Ok(InputTo::All),
        Some("none") => Ok(InputTo::Nobody),
        Some(rank) => rank
            .parse()
            .map(InputTo::Rank)
            .map_err(|_| JobError::new(format!("--stdin {rank} is not a rank")).hint("write a rank, all or none")),
    }
}

/// Files for output, if it is to go there.
pub(crate) fn output(directory: Option<&str>, pattern: Option<&str>) -> Result<Option<OutputPattern>, JobError> {
    match (directory, pattern) {
        (Some(directory), _) => Ok(Some(OutputPattern::in_directory(directory))),
        (None, Some(pattern)) => {
            overwritten::check("--outfile-pattern", &isthmus_stage::words::path(pattern), Kind::Output)?;
            OutputPattern::parse(pattern).map(Some)
        }
        (None, None) => Ok(None),
    }
}
