// SPDX-License-Identifier: Apache-2.0
//! The standard command line.
use crate::error::JobError;
use crate::model::Job;

/// Reads it.
pub fn parse(_words: &[String], _read: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<Job, JobError> {
    Err(JobError::new("not yet"))
}
