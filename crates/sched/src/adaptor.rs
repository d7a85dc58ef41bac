// SPDX-License-Identifier: Apache-2.0
//! What every scheduler can be asked, and what it can answer.

use crate::command::{Command, Output, words};
use isthmus_wire::grid::{Allocation, Scheduler};

/// Longest identifier of a job, bytes.
pub(crate) const MAX_ID: usize = 64;

/// How far an adaptor has been tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Tests run it with the real scheduler.
    Live,
    /// Tests compare it with written examples only.
    Recorded,
}

/// What is submitted.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Name of the job for `squeue` and the like: letters, digits, `-`.
    pub name: &'a str,
    /// Number of processes.
    pub count: u32,
    /// What the user asks for.
    pub allocation: &'a Allocation,
    /// The agents to start on the nodes.
    pub agent: &'a crate::NodeAgent,
}

impl Request<'_> {
    /// Processes per node when the user says how many nodes.
    pub(crate) fn per_node(&self) -> Option<u32> {
        (self.allocation.nodes > 0).then(|| self.count.div_ceil(self.allocation.nodes))
    }
}

/// Identifier of a job at its scheduler: nothing that a command line could misread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobId(String);

impl JobId {
    /// If the text is one: it begins with a digit and has letters, digits, `.`, `-`, `_`, `[`, `]`.
    pub fn new(text: &str) -> Option<Self> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_[]".contains(&b);
        let valid = text.len() <= MAX_ID && text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(plain);
        valid.then(|| Self(text.to_owned()))
    }

    /// As the scheduler wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a scheduler does not do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub reason: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            hint: hint.into(),
        }
    }
}

/// How a job ended, as far as its scheduler says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It says nothing.
    Unsaid,
    /// It ran longer than it was allowed to.
    TimeLimit,
    /// It was killed, and more is not known; limits are often enforced this way.
    Killed,
    /// Something else, in words for people.
    Other(String),
}

impl Cause {
    /// What a scheduler says in its own words; nothing, when there are none.
    pub(crate) fn said(words: impl Into<String>) -> Self {
        let words = words.into();
        match words.is_empty() {
            true => Self::Unsaid,
            false => Self::Other(words),
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unsaid => "",
            Self::TimeLimit => "it reached its time limit",
            Self::Killed => "it was killed",
            Self::Other(words) => words,
        })
    }
}

/// How a job waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Why, in the scheduler's words; may be empty.
    pub why: String,
    /// When the scheduler expects to start it, seconds since 1970, if it says so.
    pub start: Option<u64>,
}

impl Wait {
    /// For a reason, without an estimate.
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            start: None,
        }
    }
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Queued(Wait),
    /// It waits for what will never be, for this reason in the scheduler's words.
    Never(String),
    /// It has its nodes.
    Running,
    /// It has its nodes and is stopped for a while.
    Suspended,
    /// The scheduler is about to end it, for this reason.
    Ending(Cause),
    /// It has ended, in this way.
    Ended(Cause),
    /// The scheduler does not know it (any more).
    Unknown,
}

/// A scheduler: four verbs.
pub trait Adaptor: Send + Sync + std::fmt::Debug {
    /// Which scheduler.
    fn scheduler(&self) -> Scheduler;

    /// How far this adaptor has been tried.
    fn verified(&self) -> Verified;

    /// Whether variables of the submitting command reach the job and nobody but its owner can see them on the way.
    /// Otherwise the site's nodes must share a directory.
    fn carries_environment(&self) -> bool;

    /// Submit: the command, or what cannot be asked of this scheduler.
    fn submit(&self, request: &Request<'_>) -> Result<Command, Refusal>;

    /// What submitting gave.
    fn submitted(&self, said: &Output) -> Result<JobId, Refusal>;

    /// Poll: the command.
    fn poll(&self, id: &JobId) -> Command;

    /// Where the job stands; an error when the scheduler did not answer.
    fn polled(&self, id: &JobId, said: &Output) -> Result<State, Refusal>;

    /// For a job that [`Self::poll`] no longer knows: the command that may say how it ended.
    fn inquire(&self, _id: &JobId) -> Option<Command> {
        None
    }

    /// How it ended, if that was said.
    fn cause(&self, _said: &Output) -> Option<Cause> {
        None
    }

    /// Cancel: the command.
    fn cancel(&self, id: &JobId) -> Command;

    /// Whether the job is gone or will be; that it was gone already is as good.
    fn cancelled(&self, id: &JobId, said: &Output) -> Result<(), Refusal>;

    /// Nodes: lines of a POSIX shell script, run on the first node, that run `sh -c "$ISTHMUS_NODE" isthmus NODE NODES
    /// SLOTS` (or the same from the file "$ISTHMUS_SPOOL/node") on every node and wait for all.
    fn nodes(&self) -> &'static str;
}

/// The identifier in a scheduler's answer to a submission.
pub(crate) fn identifier(scheduler: Scheduler, text: &str) -> Result<JobId, Refusal> {
    JobId::new(text).ok_or_else(|| {
        let said = words(text);
        Refusal::new(
            format!("{scheduler} took the job but its answer '{said}' holds no job identifier"),
            "look whether its commands are wrapped by something that prints",
        )
    })
}

/// The job was not taken.
pub(crate) fn refused(scheduler: Scheduler, complaint: String, hint: &str) -> Refusal {
    Refusal::new(format!("{scheduler} refused the job: {complaint}"), hint)
}

/// A scheduler that cannot be asked at the moment.
pub(crate) fn silent(scheduler: Scheduler, complaint: &str) -> Refusal {
    Refusal::new(format!("{scheduler} does not answer: {complaint}"), "")
}

/// Outcome of a cancellation: `gone` are words that mean that there is no such job.
pub(crate) fn judge_cancel(scheduler: Scheduler, id: &JobId, said: &Output, gone: &[&str]) -> Result<(), Refusal> {
    let already = || {
        gone.iter()
            .any(|words| said.errors.contains(words) || said.output.contains(words))
    };
    if said.succeeded() || already() {
        return Ok(());
    }
    Err(Refusal::new(
        format!("{scheduler} did not cancel job {}: {}", id.as_str(), said.complaint("")),
        "cancel it by hand",
    ))
}

/// Seconds as `HH:MM:SS`.
pub(crate) fn clock(seconds: u32) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests;
