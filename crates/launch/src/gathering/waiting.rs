// SPDX-License-Identifier: Apache-2.0
//! A part while others are missing: what other commands on this machine are answered, and how it ends before its time.

use crate::console::Console;
use crate::happening::Event;
use crate::{Options, Session, control};
use isthmus_job::{Job, Subjob};
use isthmus_wire::control::{Reply, Request, Standing};
use tokio::sync::mpsc;

/// What a signal is called that `isthmus kill` stands for.
const KILLED: u32 = 15;

/// The user ends this part: by which signal. Meanwhile other commands are answered.
pub(super) async fn interrupted(job: &Job, events: &mut mpsc::UnboundedReceiver<Event>) -> u32 {
    loop {
        match events.recv().await {
            Some(event) => {
                if let Some(signal) = heard(job, event) {
                    return signal;
                }
            }
            None => std::future::pending().await,
        }
    }
}

/// By which signal the part ends now, if it does.
pub(super) fn heard(job: &Job, event: Event) -> Option<u32> {
    match event {
        Event::Interrupt(signal) => Some(signal),
        Event::Control { request, reply } => {
            // Who asked may be gone.
            let _ = reply.send(answer(job, &request));
            (request == Request::End).then_some(KILLED)
        }
        _ => None,
    }
}

fn answer(job: &Job, request: &Request) -> Reply {
    match request {
        Request::Status => Reply::Status {
            committed: false,
            subjobs: job.subjobs().iter().map(|subjob| standing(subjob, "waiting")).collect(),
            joined: Vec::new(),
        },
        Request::Names => Reply::Names(Vec::new()),
        Request::End => Reply::Done,
        _ => {
            Reply::Refused("this is a part of a world that was put together by hand, and others are missing".to_owned())
        }
    }
}

/// How a subjob of a part stands.
pub(super) fn standing(subjob: &Subjob, state: &str) -> Standing {
    Standing {
        name: subjob.site.clone(),
        state: state.to_owned(),
        detail: "of a world that was put together by hand".to_owned(),
        processes: subjob.count,
        starts: 0,
        since: 0,
    }
}

/// Other commands are answered from now on, by who hears these events.
pub(super) fn serve(options: &mut Options, events: &mpsc::UnboundedSender<Event>) -> std::io::Result<()> {
    match options.session.as_mut().and_then(Session::take_listener) {
        Some(listener) => control::serve(listener, events.clone()).map(drop),
        None => Ok(()),
    }
}

/// A part that is to run in the background leaves the terminal: it may wait for the others for long, and whoever has
/// started it may start them next.
pub(super) fn leave_terminal(options: &mut Options, console: &mut dyn Console) {
    if std::mem::take(&mut options.detach) {
        options.terminal = false;
        console.begun();
    }
}
