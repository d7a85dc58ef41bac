// SPDX-License-Identifier: Apache-2.0
//! What can happen to an agent.

use crate::happening::BatchEvent;
use crate::pipes::Pipes;
use crate::program::Refusal;
use isthmus_stage::words;
use isthmus_wire::boot::{Counters, Hello, LinkTraffic, Message};
use isthmus_wire::codec::Deframer;
use isthmus_wire::grid::{Commit, Exit, LauncherEnd, Resume, ToAgent};
use isthmus_wire::question::Question;
use isthmus_wire::time::Time;
use isthmus_wire::waiting::Waiting;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// The coordinator said something.
    FromCoordinator(ToAgent),
    /// The system or the user wants us to end.
    CoordinatorLost,
    /// The connection to the coordinator with this number has ended.
    LinkLost(u32),
    /// Another one follows.
    Resumed(Box<Resumed>),
    /// A process of ours (its token has yet to be checked) said hello.
    Hello {
        hello: Hello,
        process: mpsc::UnboundedSender<ToProcess>,
    },
    /// The process with this index finished its communication.
    Finished { index: u32, counters: Counters },
    /// What it has exchanged with other sites so far.
    Traffic { index: u32, traffic: Vec<LinkTraffic> },
    /// Where its time has gone.
    Time { index: u32, time: Time },
    /// What a process waits for; `None`: not any more.
    Waiting { index: u32, waiting: Option<Waiting> },
    /// It asks the coordinator.
    Asked { index: u32, question: Question },
    /// It ends the job.
    Aborted { index: u32, code: i32, reason: String },
    /// Its rendezvous connection is closed.
    Closed { index: u32 },
    /// The vendor MPI has started it, with this pid.
    Guarded {
        index: u32,
        pid: u32,
        pipes: Pipes,
        /// How it ends.
        exit: oneshot::Receiver<Exit>,
        /// To be dropped when its end is noted.
        noted: oneshot::Sender<()>,
    },
    /// The `mpiexec` of the vendor MPI has ended.
    LauncherEnded(LauncherEnd),
    /// It has started a process here that another node was to have.
    Misplaced(Refusal),
    /// It exited.
    Exited { index: u32, exit: Exit },
    /// It exited a while ago; its connection should be closed by now.
    ExitOverdue { index: u32 },
    /// It took so many bytes of input.
    InputTaken(u32),
    /// Processes that were told to end have had time for it.
    AbortOverdue,
    /// The gateway says.
    Gateway(Vec<u8>),
    /// The gateway has ended.
    GatewayEnded,
    /// It is time for another one.
    GatewayDue,
    /// This scheduler is here, and the processes run beside it.
    Beside(isthmus_wire::grid::Scheduler),
    /// At the machine's scheduler or a node that it allocated.
    Batch(BatchEvent),
}

/// A connection that follows another one.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) stream: UnixStream,
    /// With what came behind the first message.
    pub(crate) deframer: Deframer,
    pub(crate) resume: Resume,
}

/// What the agent tells the task that serves one process.
#[derive(Clone, Debug)]
pub(crate) enum ToProcess {
    /// The token was right: listen on, as this process.
    Accepted { index: u32 },
    /// The barrier is open.
    World(Arc<World>),
    /// Anything else, as it is.
    Message(Message),
}

/// What all processes of the subjob learn when the barrier opens.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) job: String,
    pub(crate) first_rank: u32,
    pub(crate) shared_memory: PathBuf,
    pub(crate) node_directory: PathBuf,
    /// What processes of other sites reach here.
    pub(crate) shared: Vec<String>,
    pub(crate) commit: Commit,
}

impl World {
    /// The message for one process.
    pub(crate) fn message(&self, index: u32) -> Message {
        Message::World(Box::new(isthmus_wire::boot::World {
            job: self.job.clone(),
            title: self.commit.title.clone(),
            rank: self.first_rank + index,
            places: self.commit.places.clone(),
            links: self.commit.links.clone(),
            shared_memory: words::text(&self.shared_memory),
            node_directory: words::text(&self.node_directory),
            secret: self.commit.secret,
            certificate: self
                .commit
                .certificates
                .get(index as usize)
                .cloned()
                .unwrap_or_default(),
            authority: self.commit.authority.clone(),
            paths: self.commit.paths.clone(),
            shared: self.shared.clone(),
        }))
    }
}
