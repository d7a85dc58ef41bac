// SPDX-License-Identifier: Apache-2.0
//! The forms in which a job can be described. All of them are read into one [`Job`], and a job can be written in all
//! of them; what a form has no words for is named.
//!
//! What a job is does not depend on how it is written: nothing outside this folder knows of it but the root of the
//! room.

mod described;
pub mod document;
pub mod hostfile;
pub mod hosts;
mod input;
mod losses;
mod machines;
pub mod mpiexec;
pub mod nodes;
mod pacx;
pub mod rsl;
pub mod sites;
mod slurm;
mod toml;

pub use described::{Described, Form, Written};
pub use input::Input;

use crate::error::{JobError, JobErrors};
use crate::model::Job;
use hostfile::Host;

/// The nodes of the job step or job that these variables of Slurm describe, and their local network.
pub fn allocated(text: &str) -> Result<(Vec<Host>, String), JobErrors> {
    slurm::nodes(text)
}

impl Form {
    /// Reads a description.
    pub fn read(self, input: &Input<'_>) -> Result<Described, JobErrors> {
        if self.names_program() {
            return match self {
                Self::Toml => document::parse(input.text, input.file, input.catalogue).map(Described::of),
                _ => rsl::job(input.text, input.file, input.bindings, input.contact),
            };
        }
        let Some(program) = input.program else {
            let problem = format!("'{}' says where to run, but not what", input.file);
            return Err(JobError::new(problem).hint("name the program and its arguments").into());
        };
        match self {
            Self::Pacx => pacx::read(input, program),
            Self::Machines => machines::read(input, program),
            Self::Slurm => slurm::read(input, program),
            _ => hosts::read(input, program),
        }
    }

    /// What to tell of a machine that the description takes for this one, and which has another name.
    pub fn note_of_home(self, job: &Job, is_own: &mut dyn FnMut(&str) -> bool) -> Option<JobError> {
        match self {
            Self::Pacx => pacx::is_elsewhere(job, is_own),
            _ => None,
        }
    }

    /// Writes a description.
    pub fn write(self, job: &Job) -> Written {
        // Only our own form knows subjobs of several programs.
        let several = job
            .subjobs()
            .iter()
            .filter(|s| s.sections.len() > 1 && self != Self::Toml);
        let several: Vec<String> = several.map(|s| s.site.clone()).collect();
        let apart;
        let job = match several.is_empty() {
            true => job,
            false => {
                apart = job.apart();
                &apart
            }
        };
        let text = match self {
            Self::Toml => toml::write(job),
            Self::Rsl => rsl::job::write(job),
            Self::Pacx => pacx::write(job),
            Self::Machines => machines::write(job),
            Self::Mpich => hosts::write(job, |host, n| format!("{host}:{n}\n")),
            Self::OpenMpi => hosts::write(job, |host, n| format!("{host} slots={n}\n")),
            Self::Slurm => slurm::write(job),
        };
        Written {
            text,
            lost: losses::of(self, job, &several),
        }
    }
}

#[cfg(test)]
mod tests;
