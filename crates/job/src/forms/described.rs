// SPDX-License-Identifier: Apache-2.0
//! The forms by name, what is read of a description, and what is written.

use crate::error::JobError;
use crate::model::Job;
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
pub(super) const FORMS: [(&str, Form); 7] = [
    ("toml", Form::Toml),
    ("rsl", Form::Rsl),
    ("pacx", Form::Pacx),
    ("machines", Form::Machines),
    ("mpich", Form::Mpich),
    ("openmpi", Form::OpenMpi),
    ("slurm", Form::Slurm),
];

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

impl Form {
    /// The form of this name.
    pub fn parse(name: &str) -> Result<Self, JobError> {
        let found = FORMS.iter().find(|(known, _)| *known == name);
        found.map(|(_, form)| *form).ok_or_else(|| {
            let names = FORMS.map(|(name, _)| name);
            let hint = match nearest(name, &names) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("known formats: {}", names.join(", ")),
            };
            JobError::new(format!("'{name}' is not a format of job descriptions")).hint(hint)
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
