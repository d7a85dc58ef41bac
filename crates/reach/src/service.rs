// SPDX-License-Identifier: Apache-2.0
//! The launcher's end of the service at a site: one request, one answer.

use crate::connection::{Client, Connection, Verb};
use crate::failure::Failure;
use crate::sharing::Access;
use isthmus_job::Contact;
use isthmus_wire::codec::Deframer;
use isthmus_wire::service::{Answer, Ask, VERSION};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// How long nothing may be heard of a service that has been asked: while it works it says so every few seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An open connection to a service.
pub struct Service {
    reader: BufReader<ChildStdout>,
    writer: ChildStdin,
    client: Client,
    deframer: Deframer,
    /// Host name there.
    pub host: String,
    /// As `uname -m` prints it there.
    pub architecture: String,
    /// Bytes sent.
    pub sent: u64,
}

impl Service {
    /// Reaches a site.
    pub async fn open(access: &Access, contact: &Contact, setup: &[String]) -> Result<Self, Failure> {
        let gate = access.sharing.gate(contact).await;
        let Connection { reader, writer, client } =
            Connection::reach(access, contact, &Verb::Service, setup, || {}, |_| {}).await?;
        let mut service = Self {
            reader,
            writer,
            client,
            deframer: Deframer::default(),
            host: String::new(),
            architecture: String::new(),
            sent: 0,
        };
        let greeted = service.greet().await;
        drop(gate);
        match greeted {
            Ok(()) => Ok(service),
            Err(failure) => Err(service.client.explain(failure).await),
        }
    }

    async fn greet(&mut self) -> Result<(), Failure> {
        match self.receive(PATIENCE).await? {
            Answer::Hello {
                version: VERSION,
                host,
                architecture,
            } => (self.host, self.architecture) = (host, architecture),
            Answer::Hello { version, .. } => {
                let problem = format!("its service speaks version {version} of the protocol, we speak {VERSION}");
                return Err(Failure::new(problem, "use the same isthmus at both ends"));
            }
            _ => return Err(out_of_turn()),
        }
        self.client.establish();
        Ok(())
    }

    /// Sends a request without waiting for its answer.
    pub async fn send(&mut self, ask: &Ask) -> Result<(), Failure> {
        let bytes = ask.encode();
        let sent = async {
            self.writer.write_all(&bytes).await?;
            self.writer.flush().await
        };
        self.sent += bytes.len() as u64;
        sent.await.map_err(|_: std::io::Error| Failure::closed())
    }

    /// The next answer, within `limit`.
    pub async fn receive(&mut self, limit: Duration) -> Result<Answer, Failure> {
        let nonsense = |error| Failure::new(format!("its service sent nonsense: {error}"), "");
        let mut buffer = vec![0; 256 << 10];
        loop {
            if let Some(body) = self.deframer.next_body().map_err(nonsense)? {
                match Answer::decode(&body).map_err(nonsense)? {
                    Answer::Busy => continue,
                    answer => return Ok(answer),
                }
            }
            match tokio::time::timeout(limit, self.reader.read(&mut buffer)).await {
                Ok(Ok(0) | Err(_)) => return Err(Failure::closed()),
                Ok(Ok(n)) => self.deframer.feed(&buffer[..n]),
                Err(_) => {
                    // Whoever hangs is not asked again.
                    self.client.kill();
                    return Err(Failure::closed());
                }
            }
        }
    }

    /// A request and its answer.
    pub async fn ask(&mut self, ask: &Ask) -> Result<Answer, Failure> {
        self.send(ask).await?;
        match self.receive(PATIENCE).await? {
            Answer::Failed(why) => Err(Failure::new(why, "")),
            answer => Ok(answer),
        }
    }

    /// A request that is answered with `Done`.
    pub async fn perform(&mut self, ask: &Ask) -> Result<(), Failure> {
        match self.ask(ask).await? {
            Answer::Done => Ok(()),
            _ => Err(out_of_turn()),
        }
    }

    /// Replaces "the connection was closed" by the reason, in the client's own words.
    pub async fn explain(&mut self, failure: Failure) -> Failure {
        self.client.explain(failure).await
    }

    /// Until the connection is closed at the other end. Nothing may be under way.
    pub async fn closed(&mut self) {
        self.client.wait().await;
    }

    /// Lets it go without a word: nothing is to be heard of it any more.
    pub fn abandon(mut self) {
        self.client.give_up();
    }

    /// Lets it go in good order.
    pub async fn leave(mut self) {
        let left = self.perform(&Ask::Leave);
        let _ = tokio::time::timeout(Duration::from_secs(10), left).await;
    }
}

/// An answer to another question.
pub fn out_of_turn() -> Failure {
    Failure::new("its service answered out of turn", "please report this")
}
