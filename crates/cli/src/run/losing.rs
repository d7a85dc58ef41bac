// SPDX-License-Identifier: Apache-2.0
//! What happens when a process is lost, as the command line and the environment say.

use isthmus_job::{Job, JobError, OnLoss};

/// The option counts more than what the job says.
pub(super) fn as_said(job: Job, option: Option<&str>) -> Result<Job, JobError> {
    match option.map(OnLoss::parse).transpose()? {
        Some(on_loss) => Ok(job.losing(on_loss, true)),
        None => Ok(job),
    }
}

/// The environment counts where the job says nothing.
pub(super) fn as_set(job: Job) -> Job {
    match isthmus_settings::ON_LOSS.read(std::env::var_os).map(OnLoss::parse) {
        Some(Ok(OnLoss::GoOn)) => job.losing(OnLoss::GoOn, false),
        _ => job,
    }
}
