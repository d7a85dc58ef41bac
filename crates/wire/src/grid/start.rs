// SPDX-License-Identifier: Apache-2.0
//! What an agent is told to start.

use super::{Allocation, flag};
use crate::codec::{DecodeError, Reader, Writer};
use crate::place::check_firsts;
use crate::shared;

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Name of the job.
    pub job: String,
    /// Index of the subjob.
    pub subjob: u32,
    /// Index within the subjob of the first process that this agent starts.
    pub first: u32,
    /// Number of processes.
    pub count: u32,
    /// Number of processes of the subjob, on all its nodes.
    pub of: u32,
    /// What the processes run, in order of their index: one program at least, at most
    /// [`MAX_PROGRAMS`](crate::place::MAX_PROGRAMS).
    pub sections: Vec<Section>,
    /// Variables to set, whichever program it is.
    pub environment: Vec<(String, String)>,
    /// Working directory; empty means the agent's own.
    pub directory: String,
    /// When `directory` does not exist the agent makes one; where it cannot, and on nodes, the home directory serves.
    pub directory_optional: bool,
    /// Directory below `directory` where the processes work, made where `directory` is made. Empty: `directory` itself.
    pub below: String,
    /// Who gets the standard input that will come.
    pub input: Input,
    /// File that is the standard input of the processes; empty for none.
    pub stdin: String,
    /// File that gets their standard output; empty: it goes to the coordinator.
    pub stdout: String,
    /// The same for standard error; both may be one file.
    pub stderr: String,
    /// The agent ends the job at its machine when it has heard nothing for so long, seconds.
    pub silence: u32,
    /// How far messages of the job go.
    pub reach: Reach,
    /// What to ask of the machine's scheduler; without it the agent starts the processes itself.
    pub allocation: Option<Allocation>,
    /// The command of the vendor MPI that starts parallel programs (`mpiexec`); the processes become a job of
    /// that MPI. Empty: none. An agent that starts only some of them is told when all nodes are ready
    /// ([`ToAgent::Launch`]).
    pub vendor: String,
    /// Directory with the files of the subjob, which stays as long as the agent lives. Empty: none.
    pub files: String,
    /// What processes of other sites reach there beside the job's own directories: absolute paths, those that begin
    /// with `~`, and relative ones, below the working directory. At most [`shared::MOST`].
    pub shared: Vec<String>,
}

/// What some of the processes run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Index among the processes that this agent starts of the first one; that of the first section is 0.
    pub first: u32,
    /// Program: an absolute path, a path relative to the working directory, or a name to look up in PATH.
    pub program: String,
    /// Arguments after the program's name.
    pub arguments: Vec<String>,
    /// Variables to set beside those of all.
    pub environment: Vec<(String, String)>,
    /// Their working directory; a relative one is below that of the others, and made where that is. Empty: the same.
    pub directory: String,
    /// Directories of the MPI library and of others for LD_LIBRARY_PATH; empty for none.
    pub library: String,
}

impl Section {
    fn write(&self, w: &mut Writer) {
        w.u32(self.first).text(&self.program);
        w.list(&self.arguments, |w, a| {
            w.text(a);
        });
        write_variables(w, &self.environment);
        w.text(&self.directory).text(&self.library);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            first: r.u32("first process of a program")?,
            program: r.text("program")?,
            arguments: r.list("arguments", |r| r.text("argument"))?,
            environment: read_variables(r)?,
            directory: r.text("directory of a program")?,
            library: r.text("library")?,
        })
    }
}

/// Which processes of a subjob get the standard input that the coordinator sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// None.
    Nobody,
    /// The one with this index.
    One(u32),
    /// Each gets all of it.
    All,
}

/// How far messages of a job go; processes learn it as `ISTHMUS_REACH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One node, or those that the vendor MPI joins: nothing listens.
    Node = 0,
    /// Several nodes: processes listen and need certificates.
    Wide = 2,
    /// Through the gateway on its own node only: it listens for that alone.
    Gateway = 3,
}

impl Start {
    pub(super) fn write(&self, w: &mut Writer) {
        w.text(&self.job).u32(self.subjob).u32(self.first).u32(self.count);
        w.u32(self.of);
        w.list(&self.sections, |w, section| section.write(w));
        write_variables(w, &self.environment);
        w.text(&self.directory)
            .u8(self.directory_optional.into())
            .text(&self.below);
        w.u8(self.reach as u8);
        match self.input {
            Input::Nobody => w.u8(0).u32(0),
            Input::One(index) => w.u8(1).u32(index),
            Input::All => w.u8(2).u32(0),
        };
        w.text(&self.stdin)
            .text(&self.stdout)
            .text(&self.stderr)
            .u32(self.silence);
        w.u8(self.allocation.is_some().into());
        if let Some(allocation) = &self.allocation {
            allocation.write(w);
        }
        w.text(&self.vendor).text(&self.files);
        shared::write(w, &self.shared);
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (job, subjob) = (r.text("job")?, r.u32("subjob")?);
        let (first, count, of) = (r.u32("first")?, r.u32("count")?, r.u32("of")?);
        let sections = r.list("programs", Section::read)?;
        check_firsts(sections.iter().map(|section| section.first), count)?;
        Ok(Self {
            job,
            subjob,
            first,
            count,
            of,
            sections,
            environment: read_variables(r)?,
            directory: r.text("directory")?,
            directory_optional: flag(r, "directory optional")?,
            below: r.text("directory below")?,
            reach: read_reach(r)?,
            input: read_input(r)?,
            stdin: r.text("stdin")?,
            stdout: r.text("stdout")?,
            stderr: r.text("stderr")?,
            silence: r.u32("silence")?,
            allocation: flag(r, "allocated")?.then(|| Allocation::read(r)).transpose()?,
            vendor: r.text("command of the machine's own MPI")?,
            files: r.text("directory of files")?,
            shared: shared::read(r)?,
        })
    }
}

fn write_variables(w: &mut Writer, variables: &[(String, String)]) {
    w.list(variables, |w, (name, value)| {
        w.text(name).text(value);
    });
}

fn read_variables(r: &mut Reader<'_>) -> Result<Vec<(String, String)>, DecodeError> {
    r.list("environment", |r| Ok((r.text("name")?, r.text("value")?)))
}

fn read_input(r: &mut Reader<'_>) -> Result<Input, DecodeError> {
    let (kind, index) = (r.u8("input")?, r.u32("index")?);
    match (kind, index) {
        (0, 0) => Ok(Input::Nobody),
        (1, index) => Ok(Input::One(index)),
        (2, 0) => Ok(Input::All),
        (other, _) => Err(DecodeError::Invalid {
            field: "input",
            value: u64::from(other),
        }),
    }
}

fn read_reach(r: &mut Reader<'_>) -> Result<Reach, DecodeError> {
    match r.u8("reach")? {
        0 => Ok(Reach::Node),
        2 => Ok(Reach::Wide),
        3 => Ok(Reach::Gateway),
        other => Err(DecodeError::Invalid {
            field: "reach",
            value: u64::from(other),
        }),
    }
}
