// SPDX-License-Identifier: Apache-2.0
//! The life of a job over all its sites, as a state machine.
//!
//! ```text
//!  site:  unsubmitted -> stage-in -> pending -> active -> done
//!              \____________\___________\__________\-----> failed
//!  job:   gathering --all arrived--> running --all finished--> dismissed --all ended--> leaving --> over
//!              \________________________\__ a failure, an interrupt --> ending --grace--> leaving
//! ```
//! Events come in through `handle_*` with the time since the start of the job; what is to be done comes
//! out of [`Coallocation::poll_action`]; [`Coallocation::deadline`] says when to call
//! [`Coallocation::handle_time`]. The machine never waits and never fails to answer.

use crate::model::Job;
use isthmus_wire::grid::Exit;
use std::collections::VecDeque;
use std::time::Duration;

/// How long processes have between being asked to end and being killed.
pub const GRACE: Duration = Duration::from_millis(1500);
/// How long agents have to clean up once told to leave.
pub const LEAVE: Duration = Duration::from_millis(3000);
/// The same after a second interrupt.
pub const LEAVE_AT_ONCE: Duration = Duration::from_millis(700);
/// Exit status of a job that could not be started or lost a site.
pub const STATUS_LAUNCH_FAILED: i32 = 1;

/// Where a site stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not reached yet.
    Unsubmitted,
    /// Files are on their way.
    StageIn,
    /// In the queue of a scheduler, or its processes are started and expected in MPI_Init.
    Pending,
    /// Processes run as one MPI job.
    Active,
    /// All processes ended well.
    Done,
    /// The site ended the job.
    Failed,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unsubmitted => "unsubmitted",
            Self::StageIn => "stage-in",
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Done => "done",
            Self::Failed => "failed",
        })
    }
}

/// What the coordinator has to do, at every site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Everybody has arrived: number the ranks and open the barrier.
    Commit,
    /// Everybody has finished: let them exit.
    Dismiss,
    /// Tell the processes that the job ends.
    Abort {
        /// Exit status.
        code: i32,
        /// Why.
        reason: String,
    },
    /// Send a signal to all processes.
    Signal(u32),
    /// Kill what is left, clean up, leave.
    Leave,
}

/// How the job ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Exit status of the job.
    pub status: i32,
    /// What went wrong.
    pub problem: Option<String>,
    /// What to do about it; may be empty.
    pub hint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    /// Started or to be started; has not called MPI_Init.
    Expected,
    /// In MPI_Init, or beyond it once the job is committed.
    Arrived,
    /// In MPI_Finalize.
    Finished,
    /// Gone.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    Running,
    Dismissed,
    Ending { until: Duration },
    Leaving { until: Duration },
    Over,
}

#[derive(Debug)]
struct Site {
    name: String,
    first_rank: u32,
    state: State,
    started: bool,
    /// A scheduler lets it wait, for as long as that takes.
    queued: bool,
    gone: bool,
    processes: Vec<Process>,
}

impl Site {
    /// Whether processes run there, as far as is known.
    fn has_processes(&self) -> bool {
        self.started && !self.gone && self.processes.iter().any(|p| *p != Process::Ended)
    }
}

/// The state machine.
#[derive(Debug)]
pub struct Coallocation {
    sites: Vec<Site>,
    phase: Phase,
    verdict: Option<Verdict>,
    interrupts: u32,
    actions: VecDeque<Action>,
    last_progress: Duration,
    patience: Duration,
    expected: usize,
    arrived: usize,
    finished: usize,
    ended: usize,
}

impl Coallocation {
    /// A job nothing of which has happened; it fails when nothing happens for `patience` before it is committed.
    pub fn new(job: &Job, patience: Duration) -> Self {
        let sites = job
            .subjobs()
            .iter()
            .zip(job.first_ranks())
            .map(|(subjob, first_rank)| Site {
                name: subjob.site.clone(),
                first_rank,
                state: State::Unsubmitted,
                started: false,
                queued: false,
                gone: false,
                processes: vec![Process::Expected; subjob.count as usize],
            });
        Self {
            sites: sites.collect(),
            phase: Phase::Gathering,
            verdict: None,
            interrupts: 0,
            actions: VecDeque::new(),
            last_progress: Duration::ZERO,
            patience,
            expected: job.processes() as usize,
            arrived: 0,
            finished: 0,
            ended: 0,
        }
    }

    /// Where every site stands.
    pub fn states(&self) -> impl Iterator<Item = (&str, State)> {
        self.sites.iter().map(|s| (s.name.as_str(), s.state))
    }

    /// Whether every process has said hello and the barrier is open.
    pub fn is_committed(&self) -> bool {
        !matches!(self.phase, Phase::Gathering)
    }

    /// Whether nothing is left to do or to wait for.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// How the job ended, or stands when it is not over.
    pub fn verdict(&self) -> Verdict {
        self.verdict.clone().unwrap_or_default()
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Self::handle_time`] must be called at the latest.
    pub fn deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Gathering => self.waits_for_someone().then(|| self.last_progress + self.patience),
            Phase::Ending { until } | Phase::Leaving { until } => Some(until),
            Phase::Running | Phase::Dismissed | Phase::Over => None,
        }
    }

    /// Files are being staged to a site, or staging goes on.
    pub fn handle_staging(&mut self, site: usize, now: Duration) {
        self.last_progress = now;
        self.advance(site, State::StageIn);
    }

    /// A site's scheduler has the subjob in its queue: no time limit applies until it has left it.
    pub fn handle_queued(&mut self, site: usize, now: Duration) {
        self.last_progress = now;
        self.sites[site].queued = !self.sites[site].started;
        self.advance(site, State::Pending);
    }

    /// A site's processes have been forked.
    pub fn handle_started(&mut self, site: usize, now: Duration) {
        self.last_progress = now;
        self.sites[site].started = true;
        self.sites[site].queued = false;
        self.advance(site, State::Pending);
    }

    /// A process is in MPI_Init. False when it cannot be (the agent is confused): ignore its message.
    pub fn handle_arrived(&mut self, site: usize, index: u32, now: Duration) -> bool {
        self.last_progress = now;
        if self.replace(site, index, Process::Expected, Process::Arrived).is_none() {
            return false;
        }
        self.arrived += 1;
        if self.phase == Phase::Gathering && self.arrived == self.expected {
            self.phase = Phase::Running;
            (0..self.sites.len()).for_each(|site| self.advance(site, State::Active));
            self.actions.push_back(Action::Commit);
        }
        self.look_for_hopeless_barrier(now);
        true
    }

    /// A process has finished its communication.
    pub fn handle_finished(&mut self, site: usize, index: u32) {
        if self.replace(site, index, Process::Arrived, Process::Finished).is_none() {
            return;
        }
        self.finished += 1;
        if self.phase == Phase::Running && self.finished == self.expected {
            self.phase = Phase::Dismissed;
            self.actions.push_back(Action::Dismiss);
        }
    }

    /// A process called MPI_Abort or met an error that ends the job.
    pub fn handle_aborted(&mut self, site: usize, index: u32, code: i32, reason: &str, now: Duration) {
        let status = if code & 0xff == 0 { 1 } else { code & 0xff };
        let who = self.who(site, index);
        let reason = if reason.is_empty() {
            format!("called MPI_Abort with code {code}")
        } else {
            reason.to_owned()
        };
        // The library says itself which rank speaks.
        let problem = if reason.starts_with("rank ") {
            reason
        } else {
            format!("{who}: {reason}")
        };
        self.fail(
            Some(site),
            Verdict {
                status,
                problem: Some(problem),
                hint: String::new(),
            },
            now,
        );
    }

    /// A process ended.
    pub fn handle_exited(&mut self, site: usize, index: u32, exit: Exit, now: Duration) {
        let Some(process) = self.process(site, index) else {
            return;
        };
        let was = std::mem::replace(process, Process::Ended);
        if was == Process::Ended {
            return;
        }
        self.ended += 1;
        if let Some(verdict) = self.judge_exit(site, index, was, exit) {
            self.fail(Some(site), verdict, now);
        }
        if self.sites[site].processes.iter().all(|p| *p == Process::Ended) {
            self.advance(site, State::Done);
        }
        self.look_for_hopeless_barrier(now);
        if self.ended == self.expected {
            self.leave(now + LEAVE);
        }
    }

    /// A site cannot be reached or cannot start its processes.
    pub fn handle_site_failed(&mut self, site: usize, problem: &str, hint: &str, now: Duration) {
        let name = &self.sites[site].name;
        let verdict = Verdict {
            status: STATUS_LAUNCH_FAILED,
            problem: Some(format!("site '{name}': {problem}")),
            hint: hint.to_owned(),
        };
        self.fail(Some(site), verdict, now);
    }

    /// The user asked for the end: the first time orderly, then at once.
    pub fn handle_interrupt(&mut self, signal: u32, now: Duration) {
        self.interrupts += 1;
        let status = 128 + signal as i32;
        if self.interrupts > 1 {
            self.verdict = Some(Verdict {
                status,
                ..self.verdict()
            });
            return self.leave(now + LEAVE_AT_ONCE);
        }
        self.verdict = Some(Verdict {
            status,
            problem: Some(interruption(signal).to_owned()),
            hint: String::new(),
        });
        if !matches!(self.phase, Phase::Leaving { .. } | Phase::Over) {
            self.phase = Phase::Ending { until: now + GRACE };
            self.actions.push_back(Action::Signal(15));
        }
    }

    /// The connection to a site is closed: as it should be when the job leaves, otherwise the site is lost.
    pub fn handle_closed(&mut self, site: usize, detail: &str, hint: &str, now: Duration) {
        if std::mem::replace(&mut self.sites[site].gone, true) {
            return;
        }
        if !matches!(self.phase, Phase::Leaving { .. } | Phase::Over) {
            self.handle_site_failed(site, detail, hint, now);
        }
        // Its agent ends what it started; nothing more will be heard of it.
        for process in &mut self.sites[site].processes {
            self.ended += usize::from(std::mem::replace(process, Process::Ended) != Process::Ended);
        }
        if matches!(self.phase, Phase::Leaving { .. }) {
            if self.sites.iter().all(|s| s.gone) {
                self.phase = Phase::Over;
            }
        } else if self.ended == self.expected {
            self.leave(now + LEAVE);
        }
    }

    /// Time has passed.
    pub fn handle_time(&mut self, now: Duration) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.phase {
            Phase::Gathering => self.give_up_waiting(now),
            Phase::Ending { .. } => self.leave(now + LEAVE),
            Phase::Leaving { .. } => self.phase = Phase::Over,
            Phase::Running | Phase::Dismissed | Phase::Over => {}
        }
    }

    /// Name of a process for people.
    pub fn who(&self, site: usize, index: u32) -> String {
        let s = &self.sites[site];
        format!("rank {} (site '{}')", s.first_rank + index, s.name)
    }

    fn judge_exit(&self, site: usize, index: u32, was: Process, exit: Exit) -> Option<Verdict> {
        let who = self.who(site, index);
        let (status, problem) = match exit {
            Exit::Status(0) if was == Process::Arrived => {
                (1, format!("{who} exited with status 0 without calling MPI_Finalize"))
            }
            Exit::Status(0) => return None,
            Exit::Status(status) => (exit.shell_status(), format!("{who} exited with status {status}")),
            Exit::Signal(signal) => (
                exit.shell_status(),
                format!("{who} was killed by signal {signal}{}", signal_name(signal)),
            ),
        };
        Some(Verdict {
            status,
            problem: Some(problem),
            hint: String::new(),
        })
    }

    /// Ends the job with this verdict unless it already has one.
    fn fail(&mut self, site: Option<usize>, verdict: Verdict, now: Duration) {
        if self.verdict.is_some() || matches!(self.phase, Phase::Leaving { .. } | Phase::Over) {
            return;
        }
        if let Some(site) = site {
            self.advance(site, State::Failed);
        }
        let reason = verdict.problem.clone().unwrap_or_default();
        let code = verdict.status;
        self.verdict = Some(verdict);
        // After MPI_Finalize the others need nothing from the one that failed: they may end by themselves first.
        if self.phase != Phase::Dismissed {
            self.actions.push_back(Action::Abort { code, reason });
        }
        self.phase = Phase::Ending { until: now + GRACE };
        if !self.sites.iter().any(Site::has_processes) {
            self.leave(now + LEAVE);
        }
    }

    fn leave(&mut self, until: Duration) {
        if self.phase == Phase::Over {
            return;
        }
        self.phase = Phase::Leaving { until };
        self.actions.push_back(Action::Leave);
        if self.sites.iter().all(|s| s.gone) {
            self.phase = Phase::Over;
        }
    }

    /// Some wait in MPI_Init for others that have ended without it: they would wait for ever.
    fn look_for_hopeless_barrier(&mut self, now: Duration) {
        if self.phase != Phase::Gathering || self.arrived == 0 || self.ended == 0 {
            return;
        }
        let ended = self.ranks_in(Process::Ended);
        let problem = format!(
            "{} ended without calling MPI_Init while {} of the job wait in it",
            ended,
            self.ranks_in(Process::Arrived)
        );
        let hint = "run one program that calls MPI_Init on all processes, or none".to_owned();
        self.fail(
            None,
            Verdict {
                status: STATUS_LAUNCH_FAILED,
                problem: Some(problem),
                hint,
            },
            now,
        );
    }

    fn give_up_waiting(&mut self, now: Duration) {
        let mut missing: Vec<String> = Vec::new();
        for site in &self.sites {
            match site.state {
                State::Unsubmitted => missing.push(format!("site '{}' (not reached)", site.name)),
                State::StageIn => missing.push(format!("site '{}' (staging)", site.name)),
                _ => {}
            }
        }
        if missing.is_empty() {
            missing.push(format!("{} (not in MPI_Init)", self.ranks_in(Process::Expected)));
        }
        missing.truncate(8);
        let seconds = self.patience.as_secs();
        let verdict = Verdict {
            status: STATUS_LAUNCH_FAILED,
            problem: Some(format!(
                "nothing happened for {seconds} s while waiting for {}",
                missing.join(", ")
            )),
            hint: "ISTHMUS_START_TIMEOUT sets the number of seconds".into(),
        };
        self.fail(None, verdict, now);
    }

    /// Whether a time limit applies: a site is not there yet, or some wait in MPI_Init for others.
    fn waits_for_someone(&self) -> bool {
        let waits = |s: &Site| matches!(s.state, State::Unsubmitted | State::StageIn);
        let queued = self.sites.iter().any(|s| s.queued && !s.gone);
        !queued && (self.arrived > 0 || self.sites.iter().any(waits))
    }

    fn ranks_in(&self, state: Process) -> String {
        let mut ranks = Vec::new();
        for site in &self.sites {
            let in_state = (0u32..).zip(&site.processes).filter(|(_, p)| **p == state);
            ranks.extend(in_state.map(|(index, _)| site.first_rank + index));
        }
        list_of_ranks(&ranks)
    }

    fn process(&mut self, site: usize, index: u32) -> Option<&mut Process> {
        self.sites.get_mut(site)?.processes.get_mut(index as usize)
    }

    fn replace(&mut self, site: usize, index: u32, from: Process, to: Process) -> Option<()> {
        let process = self.process(site, index).filter(|p| **p == from)?;
        *process = to;
        Some(())
    }

    /// Moves a site on, never back and never out of failure.
    fn advance(&mut self, site: usize, to: State) {
        let state = &mut self.sites[site].state;
        if *state != State::Failed && (to as u8) > (*state as u8) {
            *state = to;
        }
    }
}

/// `rank 3`, `ranks 0-3, 7`.
fn list_of_ranks(ranks: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < ranks.len() && parts.len() < 8 {
        let mut end = at;
        while end + 1 < ranks.len() && ranks[end + 1] == ranks[end] + 1 {
            end += 1;
        }
        parts.push(if end > at {
            format!("{}-{}", ranks[at], ranks[end])
        } else {
            ranks[at].to_string()
        });
        at = end + 1;
    }
    if at < ranks.len() {
        parts.push(format!("and {} more", ranks.len() - at));
    }
    format!(
        "{} {}",
        if ranks.len() == 1 { "rank" } else { "ranks" },
        parts.join(", ")
    )
}

fn interruption(signal: u32) -> &'static str {
    if signal == 13 {
        "nobody reads the output any more"
    } else {
        "interrupted"
    }
}

/// ` (SIGSEGV)` for the signals that people meet.
fn signal_name(signal: u32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        14 => " (SIGALRM)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ)",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
