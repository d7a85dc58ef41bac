// SPDX-License-Identifier: Apache-2.0
//! How far a submission has come, and what is asked about it.

use isthmus_sched::{JobId, Wait};
use isthmus_wire::grid::FromAgent;
use tokio::time::Instant;

/// A job that was seen waiting so often waits long enough for people to be told.
const WORTH_TELLING: u32 = 3;

/// An estimate is told again when it has moved by so much, seconds: schedulers reckon anew all the time.
const MOVED: u64 = 60;

/// What the scheduler has said to it.
#[derive(Debug)]
pub(super) enum Submission {
    /// Nothing yet.
    Asked,
    /// Its name for the job.
    Taken(JobId),
    Refused,
}

/// How far it has come. Nodes may come before the scheduler has said what it calls the job, and something may have
/// failed at any time ([`Inquiry`]): those are apart.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nothing of it runs, as far as anybody has said.
    Waiting,
    /// It runs; its nodes connect.
    Gathering { since: Instant },
    /// All nodes are there, and each has its part of the processes. So many of those have ended.
    Running { since: Instant, started: bool, ended: u32 },
    /// It has failed, and the coordinator knows why. Nodes that come are told to end with the others.
    Over,
}

impl Stage {
    pub(super) fn since(&self) -> Option<Instant> {
        match self {
            Self::Gathering { since } | Self::Running { since, .. } => Some(*since),
            Self::Waiting | Self::Over => None,
        }
    }

    /// Something of it was seen to run.
    pub(super) fn run(&mut self) {
        if let Self::Waiting = self {
            *self = Self::Gathering { since: Instant::now() };
        }
    }
}

/// How a job waits, as far as people know.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) told: Option<Wait>,
    /// How often it was seen waiting.
    seen: u32,
}

impl Waiting {
    /// It was seen waiting so: whether people want to know.
    pub(super) fn is_news(&mut self, now: &Wait) -> bool {
        self.seen += 1;
        self.seen >= WORTH_TELLING && self.told.as_ref().is_none_or(|told| is_news(told, now))
    }
}

/// Whether people want to know that a job waits otherwise than before.
fn is_news(told: &Wait, now: &Wait) -> bool {
    let moved = match (told.start, now.start) {
        (Some(told), Some(now)) => told.abs_diff(now) >= MOVED,
        (told, now) => told != now,
    };
    moved || told.why != now.why
}

/// What has failed and waits for what the scheduler says of it.
#[derive(Debug, Default)]
pub(super) struct Inquiry {
    pub(super) asked: Option<Query>,
    /// Failures of processes.
    pub(super) held: Vec<FromAgent>,
    /// The host of a node that is lost.
    pub(super) lost: Option<String>,
    /// A node that says nothing.
    pub(super) silent: Option<u32>,
}

/// The scheduler was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    /// What has failed looks like its work.
    pub(super) suspected: bool,
}
