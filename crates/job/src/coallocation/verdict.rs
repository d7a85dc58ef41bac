// SPDX-License-Identifier: Apache-2.0
//! How a job ends.

/// Exit status of a job that could not be started or lost a site.
pub const STATUS_LAUNCH_FAILED: i32 = 1;

/// How the job ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Exit status of the job.
    pub status: i32,
    /// What went wrong.
    pub problem: Option<String>,
    /// What to do about it; may be empty.
    pub hint: String,
    /// A subjob was not there in time; it may still come.
    pub(super) late: bool,
}

impl Verdict {
    pub(super) fn launch(problem: String, hint: &str) -> Self {
        Self {
            status: STATUS_LAUNCH_FAILED,
            problem: Some(problem),
            hint: hint.to_owned(),
            late: false,
        }
    }

    pub(super) fn late(problem: String, hint: &str) -> Self {
        Self {
            late: true,
            ..Self::launch(problem, hint)
        }
    }
}
