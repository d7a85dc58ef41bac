// SPDX-License-Identifier: Apache-2.0
//! The standard command line.
use crate::error::JobError;
use crate::model::{Job, Program};
use crate::sites;

/// What the words ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To run a job.
    Run {
        /// The job.
        job: Job,
        /// Whether lines of output begin with their rank.
        label: bool,
    },
    /// The help text.
    Help,
    /// The version.
    Version,
}

/// Help text.
pub const HELP: &str = "mpiexec";

/// Reads it.
pub fn parse(words: &[String], _read: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<Request, JobError> {
    let [flag, n, program, rest @ ..] = words else { return Err(JobError::new("write mpiexec -n N PROGRAM")) };
    if flag != "-n" && flag != "-np" { return Err(JobError::new("write mpiexec -n N PROGRAM")) };
    let n = sites::parse_count(n)?;
    let mut template = sites::template(Program::one(program), rest.to_vec());
    template.count = n;
    Ok(Request::Run { job: Job::new(vec![template])?, label: false })
}
