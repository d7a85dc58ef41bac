// SPDX-License-Identifier: Apache-2.0
//! Commands of ours that run at a site: what they print comes here, and they end when we do.

use crate::connection::{Client, Connection, Verb};
use crate::failure::Failure;
use crate::remote::{Remote, block};
use crate::service::Service;
use crate::staging;
use isthmus_job::Contact;
use isthmus_wire::codec::Deframer;
use isthmus_wire::relay::{Begin, Said};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// Whoever hears what a site says is asked so often whether it still does, while the site says nothing.
const SILENT: Duration = Duration::from_millis(200);

impl Remote<'_> {
    /// Runs a command of ours there and passes on what it prints; its exit status. `limit` bounds how long all of it
    /// may take. While nothing comes `hear` gets empty pieces of output now and then, so that it can end the command.
    ///
    /// # Errors
    /// The site was not reached or was lost, or `hear` cannot pass on what it is told.
    pub fn run(
        &self,
        begin: &Begin,
        limit: Option<Duration>,
        hear: &mut dyn FnMut(Said) -> io::Result<()>,
    ) -> Result<u8, Failure> {
        block(within(limit, self.contact, async {
            let gate = self.access.sharing.gate(self.contact).await;
            let reached = Connection::reach(self.access, self.contact, &Verb::Relay, self.setup, || {}, |_| {}).await;
            drop(gate);
            let Connection {
                reader,
                writer,
                mut client,
            } = reached?;
            client.establish();
            match talk(reader, writer, begin, hear).await {
                Ok(status) => {
                    settle(client).await;
                    Ok(status)
                }
                Err(failure) => Err(client.explain(failure).await),
            }
        }))
    }

    /// Whether the site is reached, and what of ours is there then.
    ///
    /// # Errors
    /// Why it is not.
    pub fn reach(&self, limit: Duration) -> Result<(), Failure> {
        block(within(Some(limit), self.contact, async {
            let service = Service::open(self.access, self.contact, self.setup).await?;
            service.leave().await;
            Ok(())
        }))
    }

    /// Shared libraries of a program here that the site lacks, as files here.
    ///
    /// # Errors
    /// The site was not reached, or this machine lacks one too.
    pub fn lacks(&self, program: &Path) -> Result<Vec<PathBuf>, Failure> {
        block(async {
            let wanted = staging::wanted(program, Vec::new()).await;
            staging::lacking(self.access, self.contact, self.setup, wanted).await
        })
    }
}

/// The program of a job on this machine, as its launcher would look for it.
///
/// # Errors
/// It is not there, or cannot be executed.
pub fn program_here(program: &str, directory: &Path) -> Result<PathBuf, Failure> {
    staging::find_file(program, directory)
}

async fn within<T>(
    limit: Option<Duration>,
    contact: &Contact,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Some(limit) = limit else { return work.await };
    let answered = tokio::time::timeout(limit, work).await;
    answered.unwrap_or_else(|_| Err(late(limit, contact)))
}

/// Nothing has come of it for so long.
fn late(limit: Duration, contact: &Contact) -> Failure {
    let problem = format!(
        "it did not answer within {} s, and is not waited for any longer",
        limit.as_secs()
    );
    let hint = format!(
        "check that this ends by itself: ssh {contact} true; login scripts that start another shell or wait for something are a common cause"
    );
    Failure::new(problem, hint).unreached()
}

async fn talk(
    mut reader: BufReader<ChildStdout>,
    mut writer: ChildStdin,
    begin: &Begin,
    hear: &mut dyn FnMut(Said) -> io::Result<()>,
) -> Result<u8, Failure> {
    let sent = async {
        writer.write_all(&begin.encode()).await?;
        writer.flush().await
    };
    sent.await.map_err(|_: io::Error| Failure::closed())?;
    let nonsense = |error| {
        Failure::new(
            format!("what it sent makes no sense: {error}"),
            "use the same isthmus at both ends",
        )
    };
    let unprinted = |error| Failure::new(format!("cannot print: {error}"), "");
    let mut deframer = Deframer::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        while let Some(body) = deframer.next_body().map_err(nonsense)? {
            match Said::decode(&body).map_err(nonsense)? {
                Said::Ended(status) => return Ok(status),
                said => hear(said).map_err(unprinted)?,
            }
        }
        match tokio::time::timeout(SILENT, reader.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => return Err(Failure::closed()),
            Ok(Ok(n)) => deframer.feed(&buffer[..n]),
            Err(_) => hear(Said::Output(Vec::new())).map_err(unprinted)?,
        }
    }
}

/// The client ends by itself once both directions are closed; one that hangs is not waited for.
async fn settle(mut client: Client) {
    let _ = tokio::time::timeout(Duration::from_secs(5), client.wait()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_site_is_told_of_with_what_to_try() {
        let silent = async {
            std::future::pending::<()>().await;
            Ok(())
        };
        let limit = Duration::from_millis(5);
        let told = block(within(Some(limit), &Contact::Ssh("me@lab".to_owned()), silent)).unwrap_err();
        assert!(
            told.is_unreached() && told.problem.contains("did not answer within 0 s"),
            "{told:?}"
        );
        assert!(
            told.hint.contains("ssh me@lab true") && told.hint.contains("login scripts"),
            "{told:?}"
        );
    }
}
