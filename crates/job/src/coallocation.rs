// SPDX-License-Identifier: Apache-2.0
//! The life of a job over all its subjobs, as a state machine.
//!
//! ```text
//!  subjob: connecting -> staging -> starting -> running (<-> suspended) -> fetching -> done
//!              \____________\__________\___________\______________________\----> failed
//!  job:    gathering --the barrier opens--> running --all ended--> leaving --> over
//!              \_________________________\__ a failure, an interrupt, a limit --> ending --grace--> leaving
//! ```
//! Events come in through `handle_*` with the time since the start of the job; what is to be done comes
//! out of [`Coallocation::poll_action`]; [`Coallocation::deadline`] says when to call
//! [`Coallocation::handle_time`]. The machine never waits and never fails to answer.
//!
//! Before its barrier is open a subjob may fail, or not be there in time. What then happens is a matter of its
//! [`crate::Terms`]: a substitute is tried, the user is asked, the job goes on without it, or the job ends. Subjobs are
//! released in *worlds*: the world of the job, and one for each subjob that is not part of that. Nobody is released
//! before all of their world are in MPI_Init. What is lost after that ends the job, or the job goes on without it.

mod apart;
mod barrier;
mod edit;
mod ending;
mod exits;
mod later;
mod losses;
mod site;
mod subjobs;
mod verdict;
mod words;

pub use apart::set_apart;
pub use later::add;
pub use site::State;
pub use subjobs::{Subjobs, others, takes_part, world_of};
pub use verdict::{STATUS_LAUNCH_FAILED, Verdict};

use crate::model::Job;
use crate::terms::Substitute;
use isthmus_wire::word::counted;
use losses::{Losses, ranges};
use site::{Process, Site, Start};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;
use subjobs::{Listeners, begun, go_on_without, world_apart};

/// How long processes have between being asked to end and being killed.
pub const GRACE: Duration = Duration::from_millis(1500);
/// How long processes that have been started may take to call MPI_Init before they count as begun without it.
pub const SETTLING: Duration = Duration::from_secs(1);
/// How long agents have to clean up once told to leave.
pub const LEAVE: Duration = Duration::from_millis(3000);
/// The same after a second interrupt.
pub const LEAVE_AT_ONCE: Duration = Duration::from_millis(700);
/// Deaths that the others are told of while a job ends: those that died together are among the first. Of a large job
/// that ends all die, and nobody needs to hear of each.
const TOLD_AT_THE_END: u32 = 64;

/// Exit status of a job that reached its time limit.
pub const STATUS_LIMIT: i32 = 124;

/// What the coordinator has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// These subjobs are there: number their ranks as one world and open its barrier.
    Commit(Vec<usize>),
    /// These subjobs were added and cannot begin: end what there is of them. The job goes on.
    NotStarted {
        /// Which.
        sites: Vec<usize>,
        /// Why.
        problem: String,
        /// What may help; may be empty.
        hint: String,
    },
    /// All processes of these subjobs, which were added, have ended: nothing is needed there any more.
    Retire(Vec<usize>),
    /// Everybody in the world of these subjobs has finished: let them exit.
    Dismiss(Vec<usize>),
    /// End this subjob, for this reason.
    Drop {
        /// Which.
        site: usize,
        /// Why.
        problem: String,
        /// Whether the job goes on without it; otherwise it was the last one, and the job ends.
        goes_on: bool,
    },
    /// End what there is of this subjob and start it here instead.
    Substitute {
        /// Which.
        site: usize,
        /// Where; `None`: where it was.
        place: Option<Substitute>,
        /// Why.
        problem: String,
    },
    /// Ask the user what to do about this subjob; [`Coallocation::answer`] takes the answer.
    Ask {
        /// Which.
        site: usize,
        /// What went wrong.
        problem: String,
        /// What may help; may be empty.
        hint: String,
    },
    /// The question is no longer one.
    Settled {
        /// Which.
        site: usize,
    },
    /// These processes of this subjob are lost, and the job goes on without them.
    Lost {
        /// Which subjob.
        site: usize,
        /// Which processes of it, by index.
        indices: Vec<u32>,
        /// Whether all that is left of it is lost with them: nothing it says counts any more.
        whole: bool,
        /// What happened.
        problem: String,
    },
    /// Tell the processes of these subjobs, who are a world, that others of it are gone, and all other worlds too.
    Gone {
        /// Whom to tell.
        sites: Vec<usize>,
        /// The subjob of the dead.
        of: usize,
        /// Whether the job goes on without them.
        goes_on: bool,
        /// How many deaths of this job were decided before the first of these.
        number: u32,
        /// Rank in that world of the first one.
        first: u32,
        /// How many, one after the other.
        count: u32,
        /// Who and why.
        reason: String,
    },
    /// Tell all processes that the job ends.
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

/// What the user wants to be done about a subjob that has not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Go on without it.
    Drop,
    /// Run it here.
    Substitute(Substitute),
    /// Try again, or wait on.
    Retry,
    /// End the job.
    Abort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    Running,
    /// `asked`: the signal that the processes got last.
    Ending {
        until: Duration,
        asked: Option<u32>,
    },
    Leaving {
        until: Duration,
    },
    Over,
}

impl Phase {
    /// Whether the job has not come to its end.
    fn is_open(self) -> bool {
        matches!(self, Self::Gathering | Self::Running)
    }
}

/// How a job is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// How long nothing may happen before the barrier opens.
    pub patience: Duration,
    /// How long the processes may run.
    pub limit: Option<Duration>,
    /// Whether somebody can be asked.
    pub answers: bool,
}

/// Whether all processes have begun, or wait in queues of schedulers that have accepted them. Programs without
/// MPI_Init begin as well: a moment after they were started, in which those fail that cannot be loaded.
pub fn has_begun(job: &Coallocation, now: Duration) -> bool {
    let settled = |since: Duration| now >= since + SETTLING;
    let mut live = job.subjobs.iter().filter(|s| s.is_live());
    let waits = live.clone().any(Site::is_queued);
    job.phase.is_open()
        && live.all(|s| s.asked.is_none() && s.start != Start::Awaited)
        && (waits || job.is_committed() || job.running_since.is_some_and(settled))
}

/// The state machine.
#[derive(Debug)]
pub struct Coallocation {
    subjobs: Subjobs,
    phase: Phase,
    verdict: Option<Verdict>,
    interrupts: u32,
    /// Deaths that the others were told of since the job ends.
    told_at_the_end: u32,
    /// Processes that the job goes on without.
    losses: Losses,
    first_loss: Option<Verdict>,
    actions: VecDeque<Action>,
    last_progress: Duration,
    /// Since when all processes run.
    running_since: Option<Duration>,
    watch: Watch,
}

impl Coallocation {
    /// A job nothing of which has happened.
    pub fn new(job: &Job, watch: Watch) -> Self {
        Self {
            subjobs: Subjobs::new(job),
            phase: Phase::Gathering,
            verdict: None,
            interrupts: 0,
            told_at_the_end: 0,
            losses: Losses::default(),
            first_loss: None,
            actions: VecDeque::new(),
            last_progress: Duration::ZERO,
            running_since: None,
            watch,
        }
    }

    /// Where the subjobs stand.
    pub fn subjobs(&self) -> &Subjobs {
        &self.subjobs
    }

    /// Whether the barrier of the job is open.
    pub fn is_committed(&self) -> bool {
        !matches!(self.phase, Phase::Gathering)
    }

    /// Whether nothing is left to do or to wait for.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// How the job ended, or stands when it is not over.
    pub fn verdict(&self) -> Verdict {
        self.verdict.clone().or_else(|| loss_of(self)).unwrap_or_default()
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Self::handle_time`] must be called at the latest.
    pub fn deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Ending { until, .. } | Phase::Leaving { until } => Some(until),
            Phase::Over => None,
            Phase::Gathering | Phase::Running => {
                let waits = self.subjobs.waits_for_someone();
                let patience = waits.then(|| self.last_progress + self.watch.patience);
                let limit = self
                    .running_since
                    .zip(self.watch.limit)
                    .map(|(since, limit)| since + limit);
                [patience, limit, self.subjobs.first_due()].into_iter().flatten().min()
            }
        }
    }

    /// Files are being staged to a site, or staging goes on.
    pub fn handle_staging(&mut self, site: usize, now: Duration) {
        self.last_progress = now;
        self.subjobs.site_mut(site).advance(State::Staging);
    }

    /// A site's scheduler has the subjob in its queue: only its own time-out applies until it has left it.
    pub fn handle_queued(&mut self, site: usize, now: Duration) {
        self.last_progress = now;
        let site = self.subjobs.site_mut(site);
        if site.start == Start::Awaited {
            site.start = Start::Queued;
        }
        site.advance(State::Starting);
    }

    /// A site's processes have been forked.
    pub fn handle_started(&mut self, site: usize, now: Duration) {
        self.last_progress = now;
        let started = self.subjobs.site_mut(site);
        started.start = Start::Begun;
        started.advance(State::Starting);
        self.settle(site);
        self.look_for_start(now);
    }

    /// A site's scheduler has stopped the subjob, or let it go on.
    pub fn handle_suspended(&mut self, site: usize, suspended: bool) {
        self.subjobs.site_mut(site).suspended = suspended;
    }

    /// What subjobs gave back is here.
    pub fn handle_staged_out(&mut self) {
        self.subjobs.stage_out();
    }

    /// A process is in MPI_Init. False when it cannot be (the agent is confused): ignore its message.
    pub fn handle_arrived(&mut self, site: usize, index: u32, now: Duration) -> bool {
        self.last_progress = now;
        let arrived = self.subjobs.site_mut(site);
        if !arrived.is_live() || arrived.replace(index, Process::Expected, Process::Arrived).is_none() {
            return false;
        }
        arrived.arrived += 1;
        self.settle(site);
        self.open_barriers(now);
        self.look_for_hopeless_barrier(now);
        true
    }

    /// A process has finished its communication. False when it cannot have (see [`Self::handle_arrived`]).
    pub fn handle_finished(&mut self, site: usize, index: u32) -> bool {
        let Some(all) = self.subjobs.finish(site, index) else {
            return false;
        };
        // MPI_Finalize has waited for all that were connected.
        self.subjobs.site_mut(site).connected.remove(&index);
        if let Some(sites) = all.filter(|_| self.phase.is_open()) {
            self.actions.push_back(Action::Dismiss(sites));
        }
        true
    }

    /// A process called MPI_Abort or met an error that ends the job.
    pub fn handle_aborted(&mut self, site: usize, index: u32, code: i32, reason: &str, now: Duration) {
        if is_lost(self, site, index) {
            return;
        }
        let status = if code & 0xff == 0 { 1 } else { code & 0xff };
        // A reason is a whole sentence of the library, which knows the rank and its host. One that speaks of somebody
        // else is told as the word of who has said it.
        let problem = match reason {
            "" => format!("{}: called MPI_Abort with code {code}", self.subjobs.who(site, index)),
            _ if self.subjobs.is_word_of(site, index, reason) => reason.to_owned(),
            _ => format!("{}: {reason}", self.subjobs.who(site, index)),
        };
        let verdict = Verdict {
            status,
            problem: Some(problem),
            hint: String::new(),
            late: false,
        };
        self.fail_site(site, verdict, now);
    }

    /// A site cannot be reached or cannot start its processes, or its scheduler has ended them.
    pub fn handle_site_failed(&mut self, site: usize, problem: &str, hint: &str, now: Duration) {
        let name = &self.subjobs.site(site).name;
        let verdict = Verdict::launch(format!("site '{name}': {problem}"), hint);
        if goes_on(self, site) {
            return lose_site(self, site, &verdict, now);
        }
        if !self.phase.is_open() || world_apart(&self.subjobs, site).is_none() {
            self.tell_gone(site, 0..self.subjobs.site(site).size(), &verdict);
        }
        self.fail_site(site, verdict, now);
    }

    /// The job cannot go on, whatever its subjobs do.
    pub fn handle_failed(&mut self, problem: &str, hint: &str, now: Duration) {
        self.fail(Verdict::launch(problem.to_owned(), hint), now);
    }

    /// The connection to a site is closed: as it should be when the job leaves, otherwise the site is lost.
    pub fn handle_closed(&mut self, site: usize, detail: &str, hint: &str, now: Duration) {
        if std::mem::replace(&mut self.subjobs.site_mut(site).gone, true) {
            return;
        }
        let leaving = matches!(self.phase, Phase::Leaving { .. } | Phase::Over);
        let closed = self.subjobs.site(site);
        if !leaving && closed.is_live() && closed.asked.is_none() && !closed.retired && !closed.cast_off {
            self.handle_site_failed(site, detail, hint, now);
        }
        if self.subjobs.site(site).gone && self.subjobs.site(site).asked.is_none() {
            // Its agent ends what it started; nothing more will be heard of it.
            self.subjobs.site_mut(site).end();
        }
        match self.phase {
            Phase::Leaving { .. } if self.subjobs.iter().all(|s| s.gone) => self.phase = Phase::Over,
            Phase::Leaving { .. } => {}
            _ => self.leave_when_ended(now),
        }
    }

    /// Tells the world of a subjob that these of its processes are gone, before the job ends or goes on without them.
    fn tell_gone(&mut self, site: usize, indices: Range<u32>, verdict: &Verdict) {
        // When several die together the first one ends the job. Who waits for another one must hear of that, too, or
        // waits until it is killed.
        let tells = match self.phase {
            Phase::Gathering | Phase::Running => true,
            Phase::Ending { .. } => {
                self.told_at_the_end += 1;
                self.told_at_the_end <= TOLD_AT_THE_END
            }
            Phase::Leaving { .. } | Phase::Over => false,
        };
        let listeners = self.subjobs.listeners(site, &indices).filter(|_| tells);
        let Some(Listeners { sites, first }) = listeners else {
            return;
        };
        let count = indices.end - indices.start;
        self.actions.push_back(Action::Gone {
            sites,
            of: site,
            goes_on: goes_on(self, site),
            number: self.losses.decide(count),
            first,
            count,
            reason: verdict.problem.clone().unwrap_or_default(),
        });
    }
}

/// Whether the job goes on when processes of this subjob are lost: they have begun, and its terms say so.
fn goes_on(job: &Coallocation, site: usize) -> bool {
    let subject = job.subjobs.site(site);
    job.phase.is_open() && subject.is_live() && subject.world.is_some() && subject.terms.goes_on()
}

/// Whether the job goes on without this process, which was lost.
pub fn is_lost(job: &Coallocation, site: usize, index: u32) -> bool {
    job.losses.has(site, index)
}

/// What is lost of a subjob at once.
struct Loss {
    site: usize,
    /// With these processes all that there is of it at its site.
    whole: bool,
    /// Processes, in the order of their indices, and how they were before.
    processes: Vec<(u32, Process)>,
}

/// The job goes on without these, whose end is noted already.
fn lose(job: &mut Coallocation, loss: &Loss, verdict: &Verdict, now: Duration) {
    let (site, indices) = (loss.site, loss.processes.iter().map(|(index, _)| *index));
    let indices: Vec<u32> = indices.collect();
    job.last_progress = now;
    job.first_loss.get_or_insert_with(|| verdict.clone());
    job.losses.add(site, &indices);
    let problem = verdict.problem.clone().unwrap_or_default();
    let subject = job.subjobs.site_mut(site);
    if subject.lost == 0 {
        subject.first_loss.clone_from(&problem);
    }
    subject.lost += indices.len();
    for range in ranges(&indices) {
        job.tell_gone(site, range, verdict);
    }
    job.actions.push_back(Action::Lost {
        site,
        indices,
        whole: loss.whole,
        problem,
    });
    // Whoever waits in MPI_Finalize does not wait for them.
    for (_, was) in &loss.processes {
        if let Some(sites) = go_on_without(&mut job.subjobs, site, *was) {
            job.actions.push_back(Action::Dismiss(sites));
        }
    }
}

/// All that is left of a subjob is lost.
fn lose_site(job: &mut Coallocation, site: usize, verdict: &Verdict, now: Duration) {
    let subject = job.subjobs.site_mut(site);
    let all = (0u32..).zip(subject.processes.iter().copied());
    let processes: Vec<(u32, Process)> = all.filter(|(_, was)| *was != Process::Ended).collect();
    if processes.is_empty() {
        return;
    }
    subject.advance(State::Failed);
    subject.end();
    let whole = true;
    let loss = Loss { site, whole, processes };
    lose(job, &loss, verdict, now);
    job.leave_when_ended(now);
}

/// How a job ends that has lost processes and has no other reason to end badly: as the first loss.
fn loss_of(job: &Coallocation) -> Option<Verdict> {
    let first = job.first_loss.as_ref()?;
    let (lost, all) = (job.losses.count(), counted(begun(&job.subjobs), "process"));
    let words = match lost {
        1 => "was lost",
        _ => "were lost; the first loss",
    };
    let problem = first.problem.clone().unwrap_or_default();
    Some(Verdict {
        problem: Some(format!("{lost} of {all} {words}: {problem}")),
        ..first.clone()
    })
}

#[cfg(test)]
mod losing;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
