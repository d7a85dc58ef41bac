// SPDX-License-Identifier: Apache-2.0
//! Asking the scheduler: tasks that submit, poll, and find out who ended a job.

use crate::event::Event;
use crate::happening::BatchEvent;
use crate::node::{SECRET, SECRET_FILE};
use crate::program::Refusal;
use isthmus_sched::{Adaptor, Cause, JobId, NodeAgent, Request, State};
use isthmus_stage::content::{hex, sha256};
use isthmus_stage::{own, words};
use isthmus_wire::grid::Allocation;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a scheduler may take to answer.
const ANSWERING: Duration = Duration::from_secs(60);
/// How often a job is looked at: soon after its submission, and later.
const FIRST: Duration = Duration::from_secs(1);
/// Longest time between two looks.
pub(super) const SLOWEST: Duration = Duration::from_secs(10);
/// How long a scheduler may take to say that it was the cause.
const JUDGING: Duration = Duration::from_millis(2500);
/// Time between two such questions.
const AGAIN: Duration = Duration::from_millis(400);

/// What is to be submitted.
pub(super) struct Submission {
    pub(super) adaptor: &'static dyn Adaptor,
    pub(super) allocation: Allocation,
    pub(super) count: u32,
    pub(super) name: String,
    pub(super) binary: PathBuf,
    pub(super) spool: PathBuf,
    pub(super) secret: [u8; 32],
    pub(super) port: u16,
    pub(super) fingerprint: [u8; 32],
}

/// Submits and says what came of it.
pub(super) async fn submit(submission: Submission, events: mpsc::Sender<Event>) {
    let result = submission.submit().await;
    let _ = events.send(Event::Batch(BatchEvent::Submitted(result))).await;
}

impl Submission {
    async fn submit(&self) -> Result<JobId, Refusal> {
        let (asked, count) = (self.allocation.clone(), self.count);
        let never = tokio::task::spawn_blocking(move || isthmus_discovery::never(&asked, count)).await;
        if let Ok(Some(never)) = never {
            return Err(Refusal::new(never.reason, never.hint));
        }
        let agent = self.agent().await?;
        let cannot = |error| {
            Refusal::new(
                format!("cannot prepare the submission: {error}"),
                "check the space in ~/.cache",
            )
        };
        let secret = hex(&self.secret);
        private_file(&self.spool.join(SECRET_FILE), secret.as_bytes()).map_err(cannot)?;
        private_file(
            &self.spool.join("node"),
            &isthmus_wire::word::to_bytes(&agent.node_script()),
        )
        .map_err(cannot)?;
        private_file(&self.spool.join("output"), b"").map_err(cannot)?;
        let request = Request {
            name: &self.name,
            count: self.count,
            allocation: &self.allocation,
            agent: &agent,
        };
        let command = self.adaptor.submit(&request).map_err(refusal)?;
        let environment = match self.adaptor.carries_environment() {
            true => vec![(SECRET, secret)],
            false => Vec::new(),
        };
        let said = isthmus_sched::run(self.adaptor.scheduler(), &command, &environment, ANSWERING).await;
        self.adaptor.submitted(&said.map_err(refusal)?).map_err(refusal)
    }

    async fn agent(&self) -> Result<NodeAgent, Refusal> {
        let binary = own::found(&self.binary);
        let hashed = tokio::task::spawn_blocking(move || sha256(&binary)).await;
        let cannot = |error: String| Refusal::new(format!("cannot read {}: {error}", self.binary.display()), "");
        let (hash, size) = hashed
            .map_err(|e| cannot(e.to_string()))?
            .map_err(|e| cannot(e.to_string()))?;
        Ok(NodeAgent {
            binary: words::text(&self.binary),
            hash: hex(&hash),
            size,
            spool: words::text(&self.spool),
            addresses: isthmus_net::local_addresses(),
            port: self.port,
            fingerprint: hex(&self.fingerprint),
        })
    }
}

fn private_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)
}

fn refusal(refusal: isthmus_sched::Refusal) -> Refusal {
    Refusal::new(refusal.reason, refusal.hint)
}

/// Looks at a job, less and less often, until nobody wants to know. A scheduler that does not answer is asked again.
pub(super) async fn poll(adaptor: &'static dyn Adaptor, id: JobId, events: mpsc::Sender<Event>) {
    let mut pause = FIRST;
    let mut unknown = false;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 5 / 4).min(SLOWEST);
        let Some(state) = look(adaptor, &id).await else {
            continue;
        };
        // A job may be unknown for a moment between two tables of its scheduler.
        let told = state != State::Unknown || unknown;
        unknown = state == State::Unknown;
        if told && events.send(Event::Batch(BatchEvent::Polled(state))).await.is_err() {
            return;
        }
    }
}

/// Finds out whether the scheduler ends the job. A `patient` question is repeated: the signal that it sends may be
/// there before it says so itself.
pub(super) async fn judge(adaptor: &'static dyn Adaptor, id: JobId, patient: bool, events: mpsc::Sender<Event>) {
    let ask = async {
        loop {
            let state = look(adaptor, &id).await;
            let says_why = matches!(&state, Some(State::Ending(why) | State::Ended(why)) if *why != Cause::Unsaid);
            if says_why || !patient {
                return state;
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    let state = match tokio::time::timeout(JUDGING, ask).await {
        Ok(state) => state,
        Err(_) => tokio::time::timeout(JUDGING, look(adaptor, &id)).await.unwrap_or(None),
    };
    let _ = events.send(Event::Batch(BatchEvent::Judged(state))).await;
}

/// Where the job stands, if the scheduler says so.
async fn look(adaptor: &'static dyn Adaptor, id: &JobId) -> Option<State> {
    let said = isthmus_sched::run(adaptor.scheduler(), &adaptor.poll(id), &[], ANSWERING)
        .await
        .ok()?;
    let state = adaptor.polled(id, &said).ok()?;
    if state != State::Unknown {
        return Some(state);
    }
    let Some(command) = adaptor.inquire(id) else {
        return Some(state);
    };
    let said = isthmus_sched::run(adaptor.scheduler(), &command, &[], ANSWERING)
        .await
        .ok();
    Some(
        said.and_then(|said| adaptor.cause(&said))
            .map_or(State::Unknown, State::Ended),
    )
}

/// Cancels a job, however far it is.
pub(super) async fn cancel(
    adaptor: &'static dyn Adaptor,
    id: &JobId,
    patience: Duration,
) -> Result<(), isthmus_sched::Refusal> {
    let said = isthmus_sched::run(adaptor.scheduler(), &adaptor.cancel(id), &[], patience).await?;
    adaptor.cancelled(id, &said)
}
