// SPDX-License-Identifier: Apache-2.0
//! What the coordinator knows.

use super::board::Board;
use super::open::Asked;
use super::stop::Stop;
use crate::connections::Connections;
use crate::console::Printer;
use crate::credentials::Credentials;
use crate::directories::Directories;
use crate::happening::Event;
use crate::inputs::Inputs;
use crate::links::LinkOptions;
use crate::meeting::MeetingHost;
use crate::parts::Gathered;
use crate::passed::Tally;
use crate::paths::Crossings;
use crate::question::Questions;
use crate::session::Session;
use crate::shared::Shared;
use crate::staged::SiteContents;
use crate::trace::Clocks;
use crate::whereabouts::Waits;
use crate::worlds::Worlds;
use crate::{Options, Statistics};
use isthmus_job::Job;
use isthmus_job::Subjob;
use isthmus_job::coallocation::{Coallocation, Watch};
use isthmus_job::model::goes_on;
use isthmus_reach::Access;
use isthmus_stage::names::Names;
use isthmus_wire::grid::Reach;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How often agents are asked whether they are there, and the progress display is looked after. Silence is counted in
/// ticks that this process has lived through, not by the clock: when the whole machine stood still (suspended,
/// overloaded), what arrived meanwhile is looked at before anybody is given up.
pub(super) const TICK: Duration = Duration::from_millis(500);

fn reach(job: &Job) -> Reach {
    if job.spans_nodes() { Reach::Wide } else { Reach::Node }
}

pub(super) struct Coordinator {
    pub(super) name: String,
    pub(super) job: Job,
    /// The subjobs as they are placed now.
    pub(super) subjobs: Vec<Subjob>,
    pub(super) link_options: LinkOptions,
    pub(super) silence: Duration,
    pub(super) terminal: bool,
    /// Ways between local areas.
    pub(super) crossings: Crossings,
    /// Subjobs that are to begin as soon as the ways are settled.
    pub(super) committing: Vec<Vec<usize>>,
    pub(super) machine: Coallocation,
    pub(super) board: Board,
    pub(super) connections: Connections,
    pub(super) printer: Printer,
    pub(super) session: Option<Session>,
    pub(super) questions: Questions,
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) shared: Arc<Shared>,
    pub(super) began: Instant,
    pub(super) inputs: Inputs,
    pub(super) statistics: Statistics,
    /// What has passed so far.
    pub(super) tally: Tally,
    /// What processes have asked, and the names that they have published.
    pub(super) answering: Asked,
    pub(super) names: Names,
    pub(super) agreements: super::agreeing::Agreements,
    /// With whom processes are connected.
    pub(super) joined: super::joined::Meetings,
    /// Processes that were asked for and have not begun, and how often some were.
    pub(super) spawning: Vec<super::pending::Pending>,
    /// Roots of parents and children that meet.
    pub(super) leaders: super::leaders::Leaders,
    /// What the user has added.
    pub(super) added: super::added::Added,
    pub(super) spawned: u32,
    pub(super) worlds: Worlds,
    /// What the processes wait for.
    pub(super) waits: Waits,
    pub(super) clocks: Clocks,
    /// The terminal is to be left behind when the processes have begun, or their schedulers have accepted them.
    pub(super) detaching: bool,
    /// Output can no longer be printed.
    pub(super) unread: bool,
    /// Why output could not be written into its file.
    pub(super) unwritten: Option<String>,
    pub(super) leaving: bool,
    pub(super) ticks: u64,
    /// This process is about to stop.
    pub(super) stop: Stop,
    /// An ssh client asks something at the terminal.
    pub(super) asked: bool,
    /// A site was not reached, or lost, before anything else went wrong.
    pub(super) unreached: bool,
    /// The secret with which agents are reached again.
    pub(super) hold: Option<[u8; 32]>,
    /// What sites have told before others have told of the beginning.
    pub(super) early: super::early::Early,
    /// Where the job meets others, if it does.
    pub(super) meeting: Option<MeetingHost>,
    /// Where it meets others at no host: what carries for processes of the job, once one has asked for that.
    pub(super) carrying: Option<MeetingHost>,
    /// Sites that the ways there do not lead to, of which the user was told.
    pub(super) beyond_meeting: BTreeSet<usize>,
}

/// What a job needs of this machine before it begins.
pub(super) struct Prepared {
    /// Of the job, as all of it call it.
    pub(super) name: String,
    pub(super) printer: Printer,
    pub(super) credentials: Credentials,
    pub(super) crossings: Crossings,
    /// With jobs of others, if it may meet any.
    pub(super) meeting: Option<MeetingHost>,
}

fn share(job: &Job, name: &str, gathered: Gathered, options: Options) -> Arc<Shared> {
    Arc::new(Shared {
        reach: reach(job),
        job: name.to_owned(),
        access: Arc::new(Access::new(&options.binary, &options.ssh, options.terminal).patient(options.silence)),
        staged: SiteContents::default(),
        directories: Directories::default(),
        gathered,
        examine: false,
        planned: job.subjobs().len(),
        goes_on: goes_on(job.subjobs()),
        options,
    })
}

impl Coordinator {
    pub(super) fn new(
        job: Job,
        options: Options,
        session: Option<Session>,
        gathered: Gathered,
        prepared: Prepared,
        events: mpsc::UnboundedSender<Event>,
    ) -> Self {
        let Prepared {
            name,
            printer,
            credentials,
            crossings,
            meeting,
        } = prepared;
        let watch = Watch {
            patience: options.patience,
            limit: options.limit,
            answers: options.terminal || session.as_ref().is_some_and(Session::is_kept),
        };
        let shared = share(&job, &name, gathered, options);
        let options = &shared.options;
        let inputs = Inputs::new(options.input);
        let hook = events.clone();
        let tell = move |turn| drop(hook.send(Event::Asking(turn)));
        shared.access.asking.tell(Box::new(tell));
        Self {
            names: Names::new(&name),
            name,
            link_options: options.links.clone(),
            detaching: options.detach,
            silence: options.silence,
            terminal: options.terminal,
            crossings,
            committing: Vec::new(),
            machine: Coallocation::new(&job, watch),
            board: Board::new(job.subjobs().len()),
            subjobs: job.subjobs().to_vec(),
            job,
            connections: Connections::new(Arc::clone(&shared), events.clone()),
            printer,
            session,
            questions: Questions::default(),
            events,
            shared,
            began: Instant::now(),
            inputs,
            statistics: Statistics::default(),
            tally: Tally::default(),
            answering: Asked::default(),
            agreements: super::agreeing::Agreements::default(),
            joined: super::joined::Meetings::default(),
            spawning: Vec::new(),
            leaders: super::leaders::Leaders::default(),
            added: super::added::Added::default(),
            spawned: 0,
            worlds: Worlds::new(credentials),
            waits: Waits::default(),
            clocks: Clocks::default(),
            unread: false,
            unwritten: None,
            leaving: false,
            ticks: 0,
            stop: Stop::default(),
            asked: false,
            unreached: false,
            hold: None,
            early: super::early::Early::default(),
            meeting,
            carrying: None,
            beyond_meeting: BTreeSet::new(),
        }
    }
}
