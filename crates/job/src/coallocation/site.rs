// SPDX-License-Identifier: Apache-2.0
//! One subjob as the state machine sees it.

use super::Verdict;
use crate::model::Subjob;
use crate::terms::{StartType, Terms};
use std::collections::BTreeSet;
use std::time::Duration;

/// Where a subjob stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not reached yet.
    Connecting,
    /// Files are on their way.
    Staging,
    /// In the queue of a scheduler, or its processes are started and expected in MPI_Init.
    Starting,
    /// Processes run.
    Running,
    /// Its scheduler has stopped it for a while.
    Suspended,
    /// Results are on their way back.
    Fetching,
    /// All processes ended well.
    Done,
    /// It failed.
    Failed,
}

impl State {
    /// In the order in which a subjob passes through them.
    pub const ALL: [Self; 8] = [
        Self::Connecting,
        Self::Staging,
        Self::Starting,
        Self::Running,
        Self::Suspended,
        Self::Fetching,
        Self::Done,
        Self::Failed,
    ];
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connecting => "connecting",
            Self::Staging => "staging",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Fetching => "fetching",
            Self::Done => "done",
            Self::Failed => "failed",
        })
    }
}

/// How far the start of its processes has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing has been heard.
    Awaited,
    /// A scheduler lets it wait, for as long as that takes.
    Queued,
    /// They have been started.
    Begun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// Started or to be started; has not called MPI_Init.
    Expected,
    /// In MPI_Init, or beyond it once its barrier is open.
    Arrived,
    /// In MPI_Finalize.
    Finished,
    /// Gone.
    Ended,
}

#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: String,
    /// Where each of several programs begins, and its name; empty: there is one.
    programs: Vec<(u32, String)>,
    pub(super) terms: Terms,
    /// Files are fetched when its processes have ended.
    pub(super) gives_back: bool,
    /// Number of its first process: its rank in the world of the job when it is part of that.
    pub(super) first: u32,
    pub(super) state: State,
    pub(super) start: Start,
    pub(super) suspended: bool,
    /// Its connection is closed.
    pub(super) gone: bool,
    /// The job goes on without it.
    pub(super) dropped: bool,
    /// It was added to a job that ran: with all that have the same number.
    pub(super) added: Option<usize>,
    /// It was added, and all its processes have ended.
    pub(super) retired: bool,
    /// Its barrier is open: the number of its world.
    pub(super) world: Option<usize>,
    /// What went wrong, while the user is asked what to do.
    pub(super) asked: Option<Verdict>,
    /// Since when it is expected to be there.
    pub(super) since: Duration,
    /// Substitutes that were tried.
    pub(super) tried: usize,
    pub(super) processes: Vec<Process>,
    pub(super) arrived: usize,
    pub(super) ended: usize,
    /// Of those that have ended, the ones that the job goes on without.
    pub(super) lost: usize,
    /// Why, of the first of them.
    pub(super) first_loss: String,
    /// Of one that was added: processes that are connected with others than their world, as far as is known.
    pub(super) connected: BTreeSet<u32>,
    /// Its world was apart and is lost.
    pub(super) cast_off: bool,
}

impl Site {
    pub(super) fn has_begun(&self) -> bool {
        self.start == Start::Begun
    }

    pub(super) fn is_queued(&self) -> bool {
        self.start == Start::Queued
    }

    /// The program of a process, where there are several, as it stands before the site: `ocean, `.
    pub(super) fn program_of(&self, index: u32) -> String {
        let begun = self.programs.iter().rev().find(|(first, _)| *first <= index);
        begun.map_or_else(String::new, |(_, name)| format!("{name}, "))
    }

    pub(super) fn new(subjob: &Subjob, first: u32) -> Self {
        Self {
            name: subjob.site.clone(),
            programs: match &subjob.sections[..] {
                [_] => Vec::new(),
                several => several.iter().map(|s| (s.first, s.program.name().to_owned())).collect(),
            },
            // A job is valid by construction.
            terms: Terms::of(subjob).unwrap_or_default(),
            gives_back: subjob.files.gives_back(),
            first,
            state: State::Connecting,
            start: Start::Awaited,
            suspended: false,
            gone: false,
            dropped: false,
            added: None,
            retired: false,
            world: None,
            asked: None,
            since: Duration::ZERO,
            tried: 0,
            processes: vec![Process::Expected; subjob.count as usize],
            arrived: 0,
            ended: 0,
            lost: 0,
            first_loss: String::new(),
            connected: (0..subjob.count).collect(),
            cast_off: false,
        }
    }

    /// As it was before anything happened, at `now`.
    pub(super) fn begin_again(&mut self, now: Duration) {
        self.state = State::Connecting;
        (self.start, self.suspended, self.gone) = (Start::Awaited, false, false);
        self.asked = None;
        self.since = now;
        self.processes.fill(Process::Expected);
        (self.arrived, self.ended) = (0, 0);
    }

    /// Number of its processes.
    pub(super) fn size(&self) -> u32 {
        u32::try_from(self.processes.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn shown_state(&self) -> State {
        match self.state {
            State::Starting | State::Running if self.suspended => State::Suspended,
            state => state,
        }
    }

    /// Whether it is a part of the job.
    pub(super) fn is_live(&self) -> bool {
        !self.dropped
    }

    /// Whether the barrier of the job waits for it.
    pub(super) fn holds_barrier(&self) -> bool {
        self.is_live() && self.added.is_none() && self.terms.start == StartType::Strict
    }

    /// Whether all of its processes are in MPI_Init.
    pub(super) fn is_complete(&self) -> bool {
        self.is_live() && self.arrived == self.processes.len() && self.ended == 0
    }

    /// Whether all of its processes have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended == self.processes.len()
    }

    /// Whether processes run there, as far as is known.
    pub(super) fn has_processes(&self) -> bool {
        self.has_begun() && !self.gone && !self.has_ended()
    }

    /// Indices of processes in a state.
    pub(super) fn indices(&self, state: Process) -> impl Iterator<Item = u32> + '_ {
        let all = (0u32..).zip(&self.processes);
        all.filter(move |(_, p)| **p == state).map(|(index, _)| index)
    }

    /// Replaces a process's state, if it is `from`.
    pub(super) fn replace(&mut self, index: u32, from: Process, to: Process) -> Option<()> {
        let process = self.processes.get_mut(index as usize).filter(|p| **p == from)?;
        *process = to;
        Some(())
    }

    /// All its processes are taken for ended.
    pub(super) fn end(&mut self) {
        self.processes.fill(Process::Ended);
        self.ended = self.processes.len();
    }

    /// Moves on, never back and never out of failure.
    pub(super) fn advance(&mut self, to: State) {
        if self.state != State::Failed && (to as u8) > (self.state as u8) {
            self.state = to;
        }
    }
}
