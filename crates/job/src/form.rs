// SPDX-License-Identifier: Apache-2.0
//! The forms in which a job can be described. All of them are read into one [`Job`], and a job can be written in all
//! of them; what a form has no words for is named.

pub mod hosts;
mod losses;
mod machines;
pub mod nodes;
mod pacx;
mod rsl;
mod slurm;
mod toml;

use crate::catalogue::Catalogue;
use crate::error::{JobError, JobErrors};
use crate::hostfile::Host;
use crate::model::{Job, Subjob};
use crate::{document, rsl as language};
use isthmus_settings::nearest;

/// A form of description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Our own job file.
    Toml,
    /// RSL 1.0 of Globus and MPICH-G2.
    Rsl,
    /// Host file of PACX-MPI.
    Pacx,
    /// Machines file of MPICH-G2.
    Machines,
    /// Host file of MPICH.
    Mpich,
    /// Host file of Open MPI.
    OpenMpi,
    /// Environment variables of a Slurm job, also a heterogeneous one; as text, `NAME=VALUE` lines.
    Slurm,
}

/// Name and form.
const FORMS: [(&str, Form); 7] = [
    ("toml", Form::Toml),
    ("rsl", Form::Rsl),
    ("pacx", Form::Pacx),
    ("machines", Form::Machines),
    ("mpich", Form::Mpich),
    ("openmpi", Form::OpenMpi),
    ("slurm", Form::Slurm),
];

/// A description and what it does not contain itself.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The description.
    pub text: &'a str,
    /// Its name for messages.
    pub file: &'a str,
    /// Variables of RSL that have values before it begins.
    pub bindings: &'a [(String, String)],
    /// Where an RSL request without contact runs.
    pub contact: Option<&'a str>,
    /// What to run, for forms that do not say so.
    pub program: Option<&'a Subjob>,
    /// Number of processes, for those forms.
    pub total: Option<u32>,
    /// Name of the local network that all hosts share, for those forms.
    pub lan: Option<&'a str>,
    /// Processes of each host, for those forms.
    pub per_host: Option<u32>,
    /// Whether a name or address is that of the machine that we are on.
    pub is_own: fn(&str) -> bool,
    /// What is known of sites.
    pub catalogue: Option<&'a Catalogue>,
}

impl<'a> Input<'a> {
    /// A description on its own.
    pub fn of(text: &'a str, file: &'a str) -> Self {
        Self {
            text,
            file,
            bindings: &[],
            contact: None,
            program: None,
            total: None,
            lan: None,
            per_host: None,
            is_own: |_| false,
            catalogue: None,
        }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The job.
    pub job: Job,
    /// What is worth knowing.
    pub notes: Vec<JobError>,
    /// Whether the description itself says that the job shall not run.
    pub dry_run: bool,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The description.
    pub text: String,
    /// What the form has no words for.
    pub lost: Vec<String>,
}

/// The nodes of the job step or job that these variables of Slurm describe, and their local network.
pub fn allocated(text: &str) -> Result<(Vec<Host>, String), JobErrors> {
    slurm::nodes(text)
}

impl Form {
    /// The form of this name.
    pub fn parse(name: &str) -> Result<Self, JobError> {
        let found = FORMS.iter().find(|(known, _)| *known == name);
        found.map(|(_, form)| *form).ok_or_else(|| {
            let names = FORMS.map(|(name, _)| name);
            let hint = match nearest(name, &names) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("there are {}", names.join(", ")),
            };
            JobError::new(format!("'{name}' is not a form of job description")).hint(hint)
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        FORMS
            .iter()
            .find(|(_, form)| *form == self)
            .map_or("", |(name, _)| name)
    }

    /// Whether it says what to run, and not only where.
    pub fn names_program(self) -> bool {
        matches!(self, Self::Toml | Self::Rsl)
    }

    /// The form of a file, from its name and from how it begins.
    pub fn detect(file: &str, text: &str) -> Self {
        let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
        if let "toml" | "rsl" = extension {
            return if extension == "toml" { Self::Toml } else { Self::Rsl };
        }
        let begin = text.trim_start();
        if begin.starts_with(['+', '&', '|', '(']) {
            return Self::Rsl;
        }
        // The first line of the file that is no comment.
        let line = text
            .lines()
            .map(|l| l.split('#').next().unwrap_or_default().trim())
            .find(|l| !l.is_empty());
        Self::of_line(line.unwrap_or_default())
    }

    fn of_line(line: &str) -> Self {
        let words: Vec<&str> = line.split_whitespace().take(3).collect();
        let number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
        match words.as_slice() {
            [first, ..] if first.starts_with("SLURM") => Self::Slurm,
            [first, ..] if first.starts_with('"') => Self::Machines,
            [first, ..] if first.starts_with("[[") => Self::Toml,
            [_, "=", ..] => Self::Toml,
            [_, "tcp" | "atm", ..] => Self::Pacx,
            [_, second] if number(second) => Self::Machines,
            [_, second, ..] if second.contains('=') => Self::OpenMpi,
            _ => Self::Mpich,
        }
    }

    /// Reads a description.
    pub fn read(self, input: &Input<'_>) -> Result<Described, JobErrors> {
        if self.names_program() {
            return match self {
                Self::Toml => document::parse(input.text, input.file, input.catalogue).map(Described::of),
                _ => language::job(input.text, input.file, input.bindings, input.contact),
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
        let text = match self {
            Self::Toml => toml::write(job),
            Self::Rsl => rsl::write(job),
            Self::Pacx => pacx::write(job),
            Self::Machines => machines::write(job),
            Self::Mpich => hosts::write(job, |host, n| format!("{host}:{n}\n")),
            Self::OpenMpi => hosts::write(job, |host, n| format!("{host} slots={n}\n")),
            Self::Slurm => slurm::write(job),
        };
        Written {
            text,
            lost: losses::of(self, job),
        }
    }
}

impl Described {
    /// A job about which there is nothing to say.
    pub fn of(job: Job) -> Self {
        Self {
            job,
            notes: Vec::new(),
            dry_run: false,
        }
    }
}

#[cfg(test)]
mod tests;
