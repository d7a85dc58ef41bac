// SPDX-License-Identifier: Apache-2.0
//! A subjob that the machine's scheduler starts.
//!
//! ```text
//!  coordinator  <-ssh->  this agent  --submit-->  scheduler
//!                            ^                        | starts the script on the first node,
//!                            |                        v which starts an agent on every node
//!                            '---- TLS, secret ----  node agents, each a whole agent with a part of the processes
//! ```
//! Towards its nodes this agent speaks as a coordinator, towards the coordinator as the agent of all processes: it
//! moves indices, gathers `Started`, and lets the scheduler say why when processes or nodes are lost.

mod door;
mod judging;
mod listen;
mod nodes;
mod part;
mod stage;
mod watch;

pub(crate) use door::StagedFile;

use crate::asked::Questions;
use crate::event::Event;
use crate::happening::{BatchEvent, FromNode, Ready};
use crate::link::Outbox;
use crate::program::Refusal;
use crate::sink::{self, Sink, Sinks};
use isthmus_sched::{Adaptor, Cause, JobId, State, Wait};
use isthmus_stage::guarded::Guarded;
use isthmus_wire::grid::{Exit, FromAgent, Start, ToAgent};
use isthmus_wire::question::{Answer, Question};
use isthmus_wire::word::counted;
use listen::Listener;
use part::AllocatedNode;
use stage::{Inquiry, Stage, Submission, Waiting};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long a running job may take to get all its agents connected.
const CONNECTING: Duration = Duration::from_secs(120);
/// So many nodes are heard when they tell of files that were made there.
const MADE: usize = 4;

/// A submission.
#[derive(Debug)]
pub(crate) struct Batch {
    start: Start,
    adaptor: &'static dyn Adaptor,
    spool: Guarded,
    outbox: Outbox,
    events: mpsc::Sender<Event>,
    _listener: Listener,
    submission: Submission,
    /// How it waits, as far as people know.
    waiting: Waiting,
    stage: Stage,
    /// The scheduler has stopped it for a while.
    suspended: bool,
    /// What has failed.
    inquiry: Inquiry,
    /// Nodes by index; all of them once their processes begin.
    parts: Vec<AllocatedNode>,
    /// So many nodes have told of files that were made there.
    made: usize,
    /// Bytes of input that each node has taken, and what the coordinator knows of it.
    taken: Vec<u64>,
    given: u64,
    /// What processes have asked the coordinator.
    asked: Questions,
    /// Files that get the output of all nodes.
    sinks: Option<Sinks>,
}

impl Batch {
    /// Begins to submit.
    pub(crate) fn start(
        start: &Start,
        binary: &Path,
        files: Vec<StagedFile>,
        outbox: &Outbox,
        events: &mpsc::Sender<Event>,
    ) -> Result<Self, Refusal> {
        let Some(allocation) = start.allocation.clone() else {
            return Err(Refusal::new("no scheduler is named", ""));
        };
        let cannot = |error: std::io::Error| Refusal::new(format!("cannot prepare the submission: {error}"), "");
        let spool =
            Guarded::in_cache(&crate::place_for_files().map_err(|why| Refusal::new(why, ""))?).map_err(cannot)?;
        let secret = isthmus_stage::guarded::random::<32>().map_err(cannot)?;
        let listener = listen::listen(secret, binary.to_owned(), Arc::new(files), events.clone()).map_err(cannot)?;
        let adaptor = isthmus_sched::adaptor(allocation.scheduler);
        let sinks = sinks(start, outbox)?;
        let submission = watch::Submission {
            adaptor,
            allocation,
            count: start.count,
            name: start.job.clone(),
            binary: binary.to_owned(),
            spool: spool.path().to_owned(),
            secret,
            port: listener.port,
            fingerprint: listener.fingerprint,
        };
        tokio::spawn(watch::submit(submission, events.clone()));
        Ok(Self {
            start: start.clone(),
            adaptor,
            spool,
            outbox: outbox.clone(),
            events: events.clone(),
            _listener: listener,
            submission: Submission::Asked,
            waiting: Waiting::default(),
            stage: Stage::Waiting,
            suspended: false,
            inquiry: Inquiry::default(),
            parts: Vec::new(),
            made: 0,
            taken: Vec::new(),
            given: 0,
            asked: Questions::default(),
            sinks,
        })
    }

    /// Handles what happened.
    pub(crate) fn handle(&mut self, event: BatchEvent) {
        match event {
            BatchEvent::Submitted(Ok(id)) => {
                self.tell_queued(&id, Wait::default());
                tokio::spawn(watch::poll(self.adaptor, id.clone(), self.events.clone()));
                self.submission = Submission::Taken(id);
            }
            BatchEvent::Submitted(Err(refusal)) => {
                self.submission = Submission::Refused;
                self.refuse(refusal);
            }
            BatchEvent::Polled(state) => self.handle_state(state),
            BatchEvent::Judged(state) => self.judge(state),
            BatchEvent::Node(_, FromNode::Ready(ready)) => self.take_node(*ready),
            BatchEvent::Node(_, FromNode::Unfit(why)) => self.refuse(Refusal::new(why, "")),
            BatchEvent::Node(node, FromNode::Said(message)) => self.handle_node(node, message),
            BatchEvent::Node(node, FromNode::Silent { lost }) => self.miss(node, lost),
            BatchEvent::Node(node, FromNode::Lost) => self.lose(node),
        }
    }

    /// Handles what the coordinator said.
    pub(crate) fn handle_coordinator(&self, message: ToAgent) {
        match message {
            ToAgent::Commit(commit) => {
                for part in &self.parts {
                    part.send(&ToAgent::Commit(Box::new(part.share_of(&commit))));
                }
            }
            ToAgent::Input(bytes) => {
                let readers = self.parts.iter().filter(|p| p.reads(self.start.input));
                readers.for_each(|part| part.send(&ToAgent::Input(bytes.clone())));
            }
            message @ (ToAgent::Dismiss | ToAgent::Gone(_) | ToAgent::Abort { .. } | ToAgent::Signal(_)) => {
                self.send_all(&message);
            }
            // The rest is handled by the agent itself.
            _ => {}
        }
    }

    /// The coordinator answers a process.
    pub(crate) fn answer(&mut self, index: u32, answer: Answer) {
        if self.asked.answered(index, &answer) {
            let part = self.parts.iter().find(|part| part.holds(index));
            part.into_iter().for_each(|part| part.answer(index, answer.clone()));
        }
    }

    /// What has not been answered, or lasts.
    pub(crate) fn asked(&self) -> &Questions {
        &self.asked
    }

    fn send_all(&self, message: &ToAgent) {
        self.parts.iter().for_each(|part| part.send(message));
    }

    /// The scheduler's name for it, once it is submitted.
    fn id(&self) -> Option<&JobId> {
        match &self.submission {
            Submission::Taken(id) => Some(id),
            Submission::Asked | Submission::Refused => None,
        }
    }

    fn scheduler_job(&self) -> String {
        let id = self.id().map_or("", JobId::as_str);
        format!("{} job {id}", self.adaptor.scheduler())
    }

    fn tell_queued(&mut self, id: &JobId, wait: Wait) {
        self.outbox.send(&FromAgent::Queued {
            scheduler: self.adaptor.scheduler(),
            id: id.as_str().to_owned(),
            why: wait.why.clone(),
            start: wait.start.unwrap_or(0),
        });
        self.waiting.told = Some(wait);
    }

    /// Ends the subjob, once.
    fn refuse(&mut self, refusal: Refusal) {
        if !matches!(std::mem::replace(&mut self.stage, Stage::Over), Stage::Over) {
            self.outbox.send(&refusal.into());
        }
    }

    fn handle_state(&mut self, state: State) {
        self.tell_suspended(state == State::Suspended);
        match state {
            State::Suspended => {}
            State::Never(why) => {
                let reason = format!("{} can never start: {why}", self.scheduler_job());
                self.refuse(Refusal::new(reason, "ask for less, or for another queue or account"));
            }
            State::Queued(wait) => {
                if let (true, Some(id)) = (self.waiting.is_news(&wait), self.id().cloned()) {
                    self.tell_queued(&id, wait);
                }
            }
            State::Running => self.check_connected(),
            // What it ran to its end is no failure.
            _ if matches!(self.stage, Stage::Running { ended, .. } if ended == self.start.count) => {}
            // Why, it may say a little later.
            State::Ending(Cause::Unsaid) | State::Ended(Cause::Unsaid) => self.ask(true),
            State::Ending(why) | State::Ended(why) => self.end_of_job(&why),
            State::Unknown => self.end_of_job(&Cause::Unsaid),
        }
    }

    fn tell_suspended(&mut self, suspended: bool) {
        if std::mem::replace(&mut self.suspended, suspended) != suspended {
            self.outbox.send(&FromAgent::Suspended(suspended));
        }
    }

    fn check_connected(&mut self) {
        self.stage.run();
        if matches!(self.stage, Stage::Gathering { since } if since.elapsed() > CONNECTING) {
            let (here, all) = (self.parts.len(), self.parts.first().map_or(0, |p| p.nodes));
            let nodes = if all == 0 {
                "no node".to_owned()
            } else {
                format!("{here} of {}", counted(all, "node"))
            };
            let reason = format!(
                "{} runs but after {} s {nodes} connected to the agent that submitted it{}",
                self.scheduler_job(),
                CONNECTING.as_secs(),
                self.last_words()
            );
            self.refuse(Refusal::new(
                reason,
                "nodes must be able to open TCP connections to the machine that submits",
            ));
        }
    }

    fn take_node(&mut self, ready: Ready) {
        self.stage.run();
        let (all, known) = (ready.nodes, self.parts.first().map_or(ready.nodes, |p| p.nodes));
        let distributed = matches!(self.stage, Stage::Running { .. });
        if distributed || all != known || self.parts.iter().any(|p| p.node == ready.node) {
            // A scheduler that runs the script twice: the first one counts.
            return;
        }
        let sinks = self.sinks.clone().unwrap_or_else(|| {
            let coordinator = Sink::Coordinator(self.outbox.clone());
            Sinks {
                output: coordinator.clone(),
                error: coordinator,
            }
        });
        self.parts.push(AllocatedNode::new(ready, self.outbox.clone(), sinks));
        if let (true, Stage::Gathering { since }) = (self.parts.len() as u64 == u64::from(all), &self.stage) {
            self.distribute(*since);
        }
    }

    /// All nodes are there: each gets its part of the processes.
    fn distribute(&mut self, since: Instant) {
        self.stage = Stage::Running {
            since,
            started: false,
            ended: 0,
        };
        let even = self.start.allocation.as_ref().is_some_and(|a| a.nodes > 0);
        part::distribute(&mut self.parts, self.start.count, even);
        for part in self.parts.iter().filter(|p| p.count > 0) {
            part.send(&ToAgent::Start(Box::new(part.start(&self.start))));
        }
    }

    fn handle_node(&mut self, node: u32, message: FromAgent) {
        let Some(part) = self.parts.iter_mut().find(|p| p.node == node) else {
            return;
        };
        let Some(message) = part.translate(message) else {
            let reason = format!(
                "node {}: its agent spoke for a process that it does not have",
                part.hello.host
            );
            return self.refuse(Refusal::new(reason, ""));
        };
        match message {
            FromAgent::Started(of_node) => {
                part.started = true;
                // It has read which of its addresses the user wants to be used.
                if let Some(found) = of_node.into_iter().next() {
                    part.hello.addresses = found.addresses;
                }
                self.tell_started();
            }
            FromAgent::Refused { reason, hint } => {
                let reason = format!("node {}: {reason}", part.hello.host);
                self.refuse(Refusal { reason, hint });
            }
            FromAgent::Output { .. } => part.print(message),
            FromAgent::Exited(list) => {
                let (well, badly): (Vec<_>, Vec<_>) = list.into_iter().partition(|(_, exit)| *exit == Exit::Status(0));
                let ended = well.iter().chain(&badly);
                ended.for_each(|(index, _)| self.asked.forget(*index));
                if let Stage::Running { ended, .. } = &mut self.stage {
                    *ended += u32::try_from(well.len() + badly.len()).unwrap_or(u32::MAX);
                }
                if !well.is_empty() {
                    // An orderly end is told after the last line of output.
                    part.print(FromAgent::Exited(well));
                }
                if !badly.is_empty() {
                    self.hold(FromAgent::Exited(badly));
                }
            }
            message @ FromAgent::Aborted { .. } => self.hold(message),
            FromAgent::Gone => part.gone = true,
            FromAgent::Asked { index, question } => self.pass_on(index, question),
            FromAgent::InputCredit(bytes) => self.take_credit(node, bytes),
            message @ (FromAgent::Arrived(_)
            | FromAgent::Finished { .. }
            | FromAgent::Traffic { .. }
            | FromAgent::Time(..)
            | FromAgent::Waiting { .. }
            | FromAgent::Conditions(_)) => {
                self.outbox.send(&message);
            }
            // One says where the others have made theirs.
            message @ FromAgent::Made(_) if self.made < MADE => {
                self.made += 1;
                self.outbox.send(&message);
            }
            FromAgent::Made(_) => {}
            FromAgent::LauncherEnded(end) => {
                // The other nodes know which of their processes it has not started.
                let others = self.parts.iter().filter(|p| p.node != node && p.count > 0);
                others.for_each(|part| part.send(&ToAgent::LauncherEnded(end.clone())));
            }
            // Answers to what was asked before; nothing else is asked, and nodes have no gateway and no neighbours.
            FromAgent::Gateway(_)
            | FromAgent::Neighbour { .. }
            | FromAgent::NeighbourTook { .. }
            | FromAgent::Hello(_)
            | FromAgent::File { .. }
            | FromAgent::Pong(..)
            | FromAgent::Queued { .. }
            | FromAgent::Beside(_)
            | FromAgent::Suspended(_) => {}
        }
    }

    /// A process asks. Its node has looked whether it may.
    fn pass_on(&mut self, index: u32, question: Question) {
        if let Err(what) = self.asked.ask(index, question.clone()) {
            return self.refuse(Refusal::new(format!("a node of it broke the protocol: {what}"), ""));
        }
        self.outbox.send(&FromAgent::Asked { index, question });
    }

    /// What the slowest node has taken of the input counts.
    fn take_credit(&mut self, node: u32, bytes: u32) {
        self.taken.resize(self.parts.len(), 0);
        let readers = self.parts.iter().map(|p| p.reads(self.start.input));
        let mut slowest = u64::MAX;
        for ((part, reads), taken) in self.parts.iter().zip(readers).zip(&mut self.taken) {
            *taken += if part.node == node { u64::from(bytes) } else { 0 };
            if reads {
                slowest = slowest.min(*taken);
            }
        }
        let more = u32::try_from(slowest.saturating_sub(self.given)).unwrap_or(0);
        if more > 0 {
            self.given += u64::from(more);
            self.outbox.send(&FromAgent::InputCredit(more));
        }
    }

    fn tell_started(&mut self) {
        let Stage::Running { started, .. } = &mut self.stage else {
            return;
        };
        if *started || self.parts.iter().any(|p| p.count > 0 && !p.started) {
            return;
        }
        *started = true;
        self.outbox.send(&FromAgent::Started(
            self.parts.iter().map(AllocatedNode::place).collect(),
        ));
        self.launch();
    }

    /// Where the vendor MPI starts the processes, one node runs its `mpiexec` once all nodes are ready for what that
    /// starts. A node that has all of the processes has run it already.
    fn launch(&self) {
        let busy = || self.parts.iter().filter(|p| p.count > 0);
        if let (false, Some(first), 2..) = (self.start.vendor.is_empty(), busy().next(), busy().count()) {
            let hosts = busy().map(|p| (p.name.clone(), p.count));
            first.send(&ToAgent::Launch(hosts.collect()));
        }
    }
}

/// The files that get the output of all nodes, when any are named.
fn sinks(start: &Start, outbox: &Outbox) -> Result<Option<Sinks>, Refusal> {
    if start.stdout.is_empty() && start.stderr.is_empty() {
        return Ok(None);
    }
    let directory = crate::program::directory(start)?;
    sink::open(start, &directory, outbox).map(Some)
}

/// The end of a submission: agents on nodes leave, the scheduler forgets the job.
impl Batch {
    /// Tells the nodes to end, those that came late too.
    pub(crate) fn end(&mut self) {
        self.parts.iter_mut().for_each(AllocatedNode::end);
    }

    /// Whether the scheduler has yet to answer the submission: what it then has must be cancelled.
    pub(crate) fn is_submitting(&self) -> bool {
        matches!(self.submission, Submission::Asked)
    }

    /// Whether there is nobody to wait for.
    pub(crate) fn is_gone(&self) -> bool {
        !self.is_submitting() && self.parts.iter().all(|p| p.gone)
    }

    /// Cancels what the scheduler still has; waits for what has been printed until `deadline`.
    pub(crate) async fn close(mut self, deadline: Instant, patience: Duration) {
        for part in &mut self.parts {
            part.close(deadline).await;
        }
        if let Submission::Taken(id) = &self.submission {
            if let Err(refusal) = watch::cancel(self.adaptor, id, patience).await {
                self.refuse(Refusal {
                    reason: refusal.reason,
                    hint: refusal.hint,
                });
            }
        }
        // Dropping what is left removes the directory and closes the door.
    }
}
