// SPDX-License-Identifier: Apache-2.0
//! The coordinator: reaches the sites, stages, co-allocates, collects output, ends the job.
//!
//! ```text
//!              site task per subjob                 console thread
//!  agent <--->  connect, stage, start  --events-->      ^   |
//!               then carry messages                output  printed
//!                        ^                              |   v
//!                        '------commands------  coordinator (one loop around job::coallocation)
//! ```
//! Everything here talks to the user through the [`Console`] it is given; it prints nothing itself.
#![forbid(unsafe_code)]

mod claims;
mod connections;
mod console;
mod control;
mod coordinator;
mod credentials;
mod directories;
mod doctor;
mod emptying;
mod events;
mod files;
mod gathering;
pub mod hang;
mod happening;
mod hold;
mod input;
mod inputs;
mod left;
mod link;
mod links;
mod meeting;
mod neighbours;
mod output;
mod outputs;
mod parts;
mod passed;
mod paths;
mod piece;
mod programs;
mod progress;
mod proving;
mod question;
mod reached;
pub mod record;
pub mod session;
mod shared;
mod site;
mod spawned;
mod staged;
mod statistics;
pub mod times;
mod trace;
pub mod traces;
mod used;
mod whereabouts;
mod worlds;

pub use console::Console;
pub use control::request;
pub use gathering::{World, read_ticket, tickets};
pub use hold::Held;
pub use input::{InputTo, check_input};
pub use isthmus_job::coallocation::State;
pub use isthmus_wire::grid::Stream;
pub use links::{LinkOptions, LinkReport, Sighting, believe, cache_file, now, read_cache, site_name, write_cache};
pub use meeting::can_meet_at;
pub use output::OutputPattern;
pub use outputs::check_results;
pub use progress::{Progress, expected, queued};
pub use session::Session;
pub use spawned::spawned_alone;
pub use statistics::Statistics;

pub use doctor::{Examination, SiteReport, is_our_version};
pub use paths::{PathReport, Policy};

use isthmus_job::catalogue::Catalogue;
use isthmus_job::{Job, JobError, Subjob};
use std::path::PathBuf;
use std::time::Duration;

/// What the coordinator must know beside the job.
#[derive(Debug)]
pub struct Options {
    /// The `isthmus` binary itself: agent at home, staged to sites.
    pub binary: PathBuf,
    /// `libmpi_abi.so.1`, when it is known where it is; staged to sites.
    pub library: Option<PathBuf>,
    /// Command of the ssh client, split into words by the shell.
    pub ssh: String,
    /// Whether somebody can answer questions at a terminal, those of the ssh client too.
    pub terminal: bool,
    /// Whether the terminal is left behind as soon as the processes have begun, or this part of a world waits for
    /// others or has joined them.
    pub detach: bool,
    /// Whether programs are staged; otherwise they are looked for at each site.
    pub stage: bool,
    /// How long to wait for something to happen before the job is complete.
    pub patience: Duration,
    /// Variables of the user that all processes get.
    pub environment: Vec<(String, String)>,
    /// Working directory of the user.
    pub directory: PathBuf,
    /// Who gets our standard input.
    pub input: InputTo,
    /// Files for the output of the processes; otherwise it goes to the console.
    pub output: Option<OutputPattern>,
    /// How long the processes may run.
    pub limit: Option<Duration>,
    /// After how long in which all processes only wait the user is told what for.
    pub hang: Option<Duration>,
    /// How long a site may be silent, or out of reach, before it is taken for lost.
    pub silence: Duration,
    /// How long outputs wait at a site for a launcher that is gone.
    pub lease: Duration,
    /// The place of the job on this machine, if it has one.
    pub session: Option<Session>,
    /// File for a trace of all processes.
    pub trace: Option<PathBuf>,
    /// How links between sites are remembered and measured.
    pub links: LinkOptions,
    /// What is known of sites: whose files the job names, where a subjob may be substituted.
    pub catalogue: Catalogue,
    /// The subjobs without what is known of their sites: what a substitute is made of. None: they are as they were
    /// described.
    pub described: Vec<Subjob>,
    /// The job runs already: what its last launcher has left.
    pub held: Option<Held>,
    /// Host at which the job meets others that cannot be reached.
    pub meet: Option<String>,
    /// The job is a part of a world that is put together by hand.
    pub world: Option<World>,
}

impl Options {
    /// How long an agent may hear nothing before it ends what it has started: longer than the coordinator waits for it,
    /// because the two directions of a connection come back one after the other, and who is heard decides.
    pub(crate) fn agents_silence(&self) -> Duration {
        self.silence + self.silence / 2
    }

    /// The place of a job that ends before this launcher has begun. What an earlier one has left stays for others.
    fn unbegun(&mut self) -> Option<Session> {
        self.session.take().filter(|_| self.held.is_none())
    }
}

/// How a job ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Exit status of the job.
    pub status: i32,
    /// Whether the processes ever began.
    pub began: bool,
    /// Whether that is because a site was not reached, or was lost.
    pub unreached: bool,
    /// What went wrong.
    pub problem: Option<String>,
    /// What to do about it; may be empty.
    pub hint: String,
    /// What the processes counted.
    pub statistics: Statistics,
    /// What is known of the links between its local areas.
    pub links: Vec<LinkReport>,
    /// How its local areas are connected.
    pub paths: Vec<PathReport>,
    /// What the user should know beside that.
    pub notice: Option<String>,
}

/// Runs a job to its end. Nothing of it is left when this returns, short of a site that cannot be reached any more.
pub fn run(job: Job, mut options: Options, console: impl Console) -> Outcome {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return Outcome::unstarted(&error).closing(options.unbegun()),
    };
    let outcome = runtime.block_on(gathering::run(job, options, Box::new(console)));
    // A read of standard input may hang for ever in a thread of its own; nobody waits for it.
    runtime.shutdown_background();
    outcome
}

/// Finds out what is there and how it is connected, without starting anything but agents and gateways.
///
/// # Errors
/// What this machine lacks for that.
pub fn examine(job: &Job, options: Options) -> std::io::Result<Examination> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(doctor::examine(job, options));
    runtime.shutdown_background();
    found
}

impl Outcome {
    /// What the user wants cannot be.
    fn refused(error: JobError) -> Self {
        Self {
            hint: error.hint.unwrap_or_default(),
            ..Self::failure(error.problem)
        }
    }

    /// The user ended a part of a world that is put together by hand.
    fn interrupted(signal: u32) -> Self {
        Self {
            status: 128 + i32::try_from(signal).unwrap_or(0),
            ..Self::failure("this part was interrupted".to_owned())
        }
    }

    fn failure(problem: String) -> Self {
        Self {
            status: 1,
            problem: Some(problem),
            ..Self::default()
        }
    }

    /// The launcher itself lacks something.
    fn unstarted(error: &std::io::Error) -> Self {
        Self::failure(format!("cannot start the launcher: {error}"))
    }

    /// The job has ended so: whoever asks for it later is told.
    fn closing(self, session: Option<Session>) -> Self {
        if let Some(session) = session {
            session.close(self.status, self.problem.as_deref(), &self.hint);
        }
        self
    }
}
