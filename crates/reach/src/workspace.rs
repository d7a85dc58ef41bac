// SPDX-License-Identifier: Apache-2.0
//! The directory of a subjob at its site while the job lives: a service is kept there; when its connection is lost,
//! another one enters.

use crate::failure::Failure;
use crate::service::{Service, out_of_turn};
use crate::sharing::Access;
use isthmus_job::Contact;
use isthmus_wire::service::{Answer, Ask};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How often a service hears of us while the job runs; the lease of the directory begins anew then.
const PING: Duration = Duration::from_secs(30);
/// A service that is asked to go on may have a ping to answer first.
const ANSWER: Duration = Duration::from_secs(2);
/// Pauses between attempts to reach a site again.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// A directory of a job.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Where its files are.
    pub files: String,
    name: String,
    terms: Terms,
}

/// How a directory is kept.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How long it outlives us and its agent.
    pub lease: Duration,
    /// How long either side may be away.
    pub silence: Duration,
}

impl Workspace {
    /// The one whose files are there.
    pub fn at(files: String, terms: Terms) -> Option<Self> {
        let above = files.strip_suffix("/files").and_then(|above| above.rsplit('/').next());
        let name = above?.to_owned();
        Some(Self { files, name, terms })
    }

    /// Enters it over another connection.
    pub async fn enter(&self, service: &mut Service) -> Result<(), Failure> {
        match service.ask(&self.terms.enter(&self.name)).await {
            Ok(Answer::Path(_)) => Ok(()),
            Ok(_) => Err(out_of_turn()),
            Err(failure) if failure.is_closed() => Err(failure),
            Err(failure) => Err(failure.finally()),
        }
    }
}

impl Terms {
    /// The question with which a service enters a directory, or has one made if it has no name.
    pub fn enter(self, directory: &str) -> Ask {
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        Ask::Enter {
            directory: directory.to_owned(),
            lease: seconds(self.lease),
            silence: seconds(self.silence),
        }
    }
}

/// A service that is kept in a directory.
pub struct Attended {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Option<Service>>,
}

impl Attended {
    /// Keeps it there, or one that enters the directory first.
    pub fn begin(
        access: Arc<Access>,
        (contact, setup): (Contact, Vec<String>),
        workspace: Workspace,
        service: Option<Service>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let again = || async {
                let mut service = Service::open(&access, &contact, &setup).await?;
                workspace.enter(&mut service).await?;
                Ok(service)
            };
            attend(service, stopped, PING.min(workspace.terms.silence / 3), again).await
        });
        Self { stop, task }
    }

    /// The service, if it is there at the moment.
    pub async fn end(self) -> Option<Service> {
        let _ = self.stop.send(());
        self.task.await.ok().flatten()
    }
}

async fn attend<F: Future<Output = Result<Service, Failure>>>(
    mut kept: Option<Service>,
    mut stopped: oneshot::Receiver<()>,
    ping: Duration,
    again: impl Fn() -> F,
) -> Option<Service> {
    let mut pause = PAUSE;
    loop {
        match &mut kept {
            Some(service) => {
                let lost = tokio::select! {
                    _ = &mut stopped => return kept,
                    () = service.closed() => true,
                    () = tokio::time::sleep(ping) => false,
                };
                if lost {
                    (kept, pause) = (None, PAUSE);
                    continue;
                }
                if service.send(&Ask::Ping).await.is_err() {
                    kept = None;
                    continue;
                }
                // A site that is away for a while answers late: whether it is lost others decide.
                let answer = tokio::select! {
                    _ = &mut stopped => None,
                    answer = service.receive(Duration::MAX) => Some(answer),
                };
                match answer {
                    Some(Ok(Answer::Done)) => {}
                    Some(_) => kept = None,
                    None => {
                        let answer = tokio::time::timeout(ANSWER, service.receive(Duration::MAX)).await;
                        return kept.filter(|_| matches!(answer, Ok(Ok(Answer::Done))));
                    }
                }
            }
            None => {
                tokio::select! {
                    _ = &mut stopped => return None,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
                tokio::select! {
                    _ = &mut stopped => return None,
                    reached = again() => match reached {
                        Ok(service) => kept = Some(service),
                        Err(failure) if failure.is_final() => return None,
                        Err(_) => {}
                    },
                }
            }
        }
    }
}
