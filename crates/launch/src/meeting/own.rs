// SPDX-License-Identifier: Apache-2.0
//! Parents and children of one launcher that cannot reach each other: both are reached by that launcher, whose ssh
//! connections to their sites carry what goes between them.
//!
//! ```text
//!  process      site A                    this launcher                    site B      process
//!    dials ---> ssh -R: a port there ---> crossing ---> ssh -L: a socket here --->  listens
//! ```
//! An entry is good with this launcher alone: what it names is looked up here, and no port that it names is dialled.

use super::beyond::{Beyond, Spot};
use super::crossing::Crossings;
use super::entering::{Barred, Entering, Place};
use super::entries::Entries;
use super::wish::{When, Wish};
use crate::happening::{Event, Met, Process};
use isthmus_stage::guarded::random;
use isthmus_wire::entry::{Entry, is_host};
use isthmus_wire::question::{Ask, Kind, Refusal, Said};
use tokio::sync::mpsc;

/// What it is called where the name of this machine cannot stand.
const NAMELESS: &str = "the-launcher";

pub(super) struct Own {
    entering: Entering,
    crossings: Crossings,
    place: Place,
    events: mpsc::UnboundedSender<Event>,
}

impl Own {
    /// An error: what is missing here.
    pub(super) fn new(events: &mpsc::UnboundedSender<Event>) -> Result<Self, String> {
        let directory = isthmus_reach::sharing::directory()
            .ok_or("there is no private directory below /tmp or XDG_RUNTIME_DIR for sockets of ssh")?;
        let entries = Entries::default();
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self {
            crossings: Crossings::to(entries.clone()),
            entering: Entering { entries, directory },
            place: Place {
                host: if is_host(&name) { name } else { NAMELESS.to_owned() },
                place: random().map_err(|error| format!("no random number: {error}"))?,
                port: 0,
            },
            events: events.clone(),
        })
    }

    /// Until the job ends.
    pub(super) async fn run(mut self, mut wishes: mpsc::UnboundedReceiver<Wish>) {
        while let Some(wish) = wishes.recv().await {
            match wish {
                Wish::Asked(by, number, ask, spot) => {
                    let verdict = self.consider(by, ask, &spot).await;
                    let _ = self.events.send(Event::Met(Met::Answer(by, number, verdict)));
                }
                Wish::Forget(by) => {
                    self.entering.entries.forget(by);
                    self.crossings.forget(by);
                }
                Wish::End => return,
            }
        }
    }

    async fn consider(&mut self, by: Process, ask: Ask, spot: &Spot) -> Result<Said, Refusal> {
        let at = spot.at.as_ref();
        match ask {
            Ask::Enter { port, gate } => {
                let place = self.place.clone();
                // Most are never needed: whoever spawns looks for a direct connection first.
                let entered = self.entering.enter(by, port, gate, spot, place, When::Wanted).await;
                entered.map(Said::Entry).map_err(|Barred { refusal, .. }| refusal)
            }
            Ask::Cross { entries } => {
                let ports = self.cross(by, &entries, at).await?;
                let at_gateway = spot.gateway.is_some();
                Ok(Said::Ports { ports, at_gateway })
            }
            Ask::Leave { keys, ports } => {
                keys.iter().for_each(|key| self.entering.entries.close(by, key));
                ports.iter().for_each(|port| self.crossings.close(by, *port, at));
                Ok(Said::Done)
            }
            _ => Err(Refusal::new(
                Kind::Unable,
                "a launcher that meets others at no host does not do this",
            )),
        }
    }

    async fn cross(&mut self, by: Process, entries: &[Entry], at: Option<&Beyond>) -> Result<Vec<u16>, Refusal> {
        if let Some(other) = entries.iter().find(|entry| entry.place != self.place.place) {
            let why = format!("'{}' is reached by another launcher than this one", other.host);
            return Err(Refusal::new(Kind::Unable, why));
        }
        let mut ports = Vec::with_capacity(entries.len());
        for entry in entries {
            ports.push(self.crossings.open(by, entry, at).await?);
        }
        Ok(ports)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    fn asked(own: &mpsc::UnboundedSender<Wish>, by: Process, ask: Ask) {
        let wish = Wish::Asked(by, 1, ask, Spot::default());
        assert!(own.send(wish).is_ok(), "it runs");
    }

    async fn answered(events: &mut mpsc::UnboundedReceiver<Event>) -> Result<Said, Refusal> {
        match events.recv().await {
            Some(Event::Met(Met::Answer(_, 1, verdict))) => verdict,
            _ => panic!("it does not answer"),
        }
    }

    #[test]
    fn what_has_entered_is_reached_until_it_leaves_and_nothing_else_is() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("threads").block_on(async {
            let (events, mut said) = mpsc::unbounded_channel();
            let (own, wishes) = mpsc::unbounded_channel();
            let task = tokio::spawn(Own::new(&events).expect("a directory").run(wishes));
            let process = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
            let port = process.local_addr().expect("it has one").port();
            asked(&own, (0, 1), Ask::Enter { port, gate: None });
            let Ok(Said::Entry(entry)) = answered(&mut said).await else {
                panic!("no entry")
            };
            let across = |entry: Entry| Ask::Cross { entries: vec![entry] };
            asked(&own, (1, 0), across(entry.clone()));
            let Ok(Said::Ports {
                ports,
                at_gateway: false,
            }) = answered(&mut said).await
            else {
                panic!("no way")
            };
            let mut dialled = TcpStream::connect(("127.0.0.1", ports[0])).await.expect("it listens");
            let (mut accepted, _) = process.accept().await.expect("it is reached");
            dialled.write_all(b"word").await.expect("it is open");
            let mut heard = [0; 4];
            accepted.read_exact(&mut heard).await.expect("it is open");
            assert_eq!(&heard, b"word");
            // The port that an entry names is nobody's, whatever it is; a key that nobody has leads nowhere.
            let strange = Entry {
                port,
                key: [9; 16],
                ..entry.clone()
            };
            asked(&own, (1, 0), across(strange));
            let Ok(Said::Ports { ports: nowhere, .. }) = answered(&mut said).await else {
                panic!("no way")
            };
            let mut lost = TcpStream::connect(("127.0.0.1", nowhere[0])).await.expect("it listens");
            assert_eq!(lost.read(&mut heard).await.expect("it is closed"), 0);
            let elsewhere = Entry {
                place: [0; 8],
                ..entry.clone()
            };
            asked(&own, (1, 0), across(elsewhere));
            let refused = answered(&mut said).await.expect_err("it is not ours");
            assert!(refused.why.contains("another launcher"), "{refused:?}");
            let leave = |keys| Ask::Leave {
                keys,
                ports: Vec::new(),
            };
            asked(&own, (1, 0), leave(vec![entry.key]));
            assert_eq!(answered(&mut said).await, Ok(Said::Done));
            let mut again = TcpStream::connect(("127.0.0.1", ports[0])).await.expect("it listens");
            drop(
                process
                    .accept()
                    .await
                    .expect("who has not entered takes nobody's entry away"),
            );
            assert_eq!(again.read(&mut heard).await.expect("it is closed"), 0);
            asked(&own, (0, 1), leave(vec![entry.key]));
            assert_eq!(answered(&mut said).await, Ok(Said::Done));
            let mut gone = TcpStream::connect(("127.0.0.1", ports[0]))
                .await
                .expect("it still listens");
            assert_eq!(gone.read(&mut heard).await.expect("it is closed"), 0);
            assert!(own.send(Wish::End).is_ok());
            task.await.expect("it ends");
        });
    }
}
