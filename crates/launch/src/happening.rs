// SPDX-License-Identifier: Apache-2.0
//! What happens to a coordinator.

use isthmus_reach::Failure;
use isthmus_reach::asking::Turn;
use isthmus_wire::control::{Reply, Request};
use isthmus_wire::grid::{AgentHello, FromAgent};
use isthmus_wire::question::{Refusal, Said};
use tokio::sync::oneshot;

/// What happens to a coordinator.
#[derive(Debug)]
pub(crate) enum Event {
    /// On a connection.
    Site(usize, SiteEvent),
    /// Output has been printed.
    Printed { connection: usize, bytes: usize },
    /// Output can no longer be printed.
    PrintFailed,
    /// Output can no longer be written into its file, for this reason; and what to do, unless the reason says it.
    FileFailed { why: String, hint: &'static str },
    /// Everything before a mark has been printed.
    Marked,
    /// Standard input has been read.
    Input { source: usize, bytes: Vec<u8> },
    /// It cannot be read any further, for this reason: its end comes next.
    InputFailed(String),
    /// What a subjob gives back is on its way: how far.
    Fetching { site: usize, how: String },
    /// The user (or the system) asks for the end.
    Interrupt(u32),
    /// The same of whoever started another part: which one, and on which machine.
    PartInterrupt { part: String, signal: u32 },
    /// A signal that is for the processes.
    Forward(u32),
    /// The terminal is gone.
    HangUp,
    /// An ssh client asks something at the terminal.
    Asking(Turn),
    /// At the host where jobs meet.
    Met(Met),
    /// The user typed an answer.
    Typed(String),
    /// Another command asks.
    Control {
        request: Request,
        reply: oneshot::Sender<Reply>,
    },
}

/// What a site task tells the coordinator.
#[derive(Debug)]
pub(crate) enum SiteEvent {
    /// Something moves on.
    Progress,
    /// Files are on their way: how far.
    Staging(String),
    /// The agent runs, on this machine.
    Hello(Box<AgentHello>),
    /// It has been told to start.
    Serving,
    /// The agent says.
    Message(FromAgent),
    /// The client behind the connection says.
    Notice(String),
    /// The connection is closed, for this reason.
    Closed(Failure),
}

impl SiteEvent {
    /// Whether the site is heard by it. What our own client says of the connection is no sign of life.
    pub(crate) fn is_heard(&self) -> bool {
        !matches!(self, Self::Notice(_) | Self::Closed(_))
    }
}

/// A process: subjob and index.
pub(crate) type Process = (usize, u32);

/// What becomes of what was asked of the host at which jobs meet.
#[derive(Debug)]
pub(crate) enum Met {
    /// A question is answered.
    Answer(Process, u64, Result<Said, Refusal>),
    /// A name of this process, for this port, is not published after all.
    Unpublished(Process, String, String),
    /// The user should know.
    Notice(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_closing_is_no_sign_of_life() {
        assert!(SiteEvent::Message(FromAgent::Pong(1, 1)).is_heard() && SiteEvent::Progress.is_heard());
        assert!(!SiteEvent::Closed(Failure::new("nothing was heard", "")).is_heard());
        assert!(!SiteEvent::Notice("the connection is slow".to_owned()).is_heard());
    }
}
