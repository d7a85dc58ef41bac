// SPDX-License-Identifier: Apache-2.0
//! What can happen to a subjob that the scheduler of the machine starts.

use crate::program::Refusal;
use isthmus_sched::{JobId, State};
use isthmus_wire::grid::{AgentHello, FromAgent};
use std::path::PathBuf;
use tokio::sync::mpsc;

/// What can happen to a submission.
#[derive(Debug)]
pub(crate) enum BatchEvent {
    /// The scheduler took the job or did not.
    Submitted(Result<JobId, Refusal>),
    /// Where the job stands.
    Polled(State),
    /// Asked because something failed: where the job stands, if that is known.
    Judged(Option<State>),
    /// At a node.
    Node(u32, FromNode),
}

/// What can happen at a node.
#[derive(Debug)]
pub(crate) enum FromNode {
    /// Its agent is ready.
    Ready(Box<Ready>),
    /// Its agent cannot be used.
    Unfit(String),
    /// Its agent says.
    Said(FromAgent),
    /// Its agent says nothing; `lost`: for so long that a busy machine is no reason.
    Silent { lost: bool },
    /// The connection is closed.
    Lost,
}

/// A node whose agent is ready to start processes.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) node: u32,
    pub(crate) nodes: u32,
    pub(crate) slots: u32,
    /// What the scheduler calls it.
    pub(crate) name: String,
    pub(crate) hello: AgentHello,
    /// Paths here, and what they are there.
    pub(crate) paths: Vec<(PathBuf, String)>,
    pub(crate) sender: mpsc::UnboundedSender<Vec<u8>>,
}
