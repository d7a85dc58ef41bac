// SPDX-License-Identifier: Apache-2.0
//! Requests of other commands of the same user: the socket of a session, and the commands' end of it.

use crate::happening::Event;
use crate::session::{self, Entry};
use isthmus_wire::codec::Deframer;
use isthmus_wire::control::{MAX_REQUEST, Reply, Request};
use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

/// Longest time that a request may take to come, and its answer to be taken.
const TIME: Duration = Duration::from_secs(5);

/// Takes requests until the runtime ends, or the task. Processes of other users are not answered.
pub(crate) fn serve(
    listener: std::os::unix::net::UnixListener,
    events: mpsc::UnboundedSender<Event>,
) -> io::Result<AbortHandle> {
    let listener = UnixListener::from_std(listener)?;
    let task = tokio::spawn(async move {
        loop {
            match listener.accept().await {
                // One at a time: they are short, and nobody waits long for a silent one.
                Ok((stream, _)) => {
                    let _ = tokio::time::timeout(TIME, answer(stream, &events)).await;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    });
    Ok(task.abort_handle())
}

async fn answer(mut stream: UnixStream, events: &mpsc::UnboundedSender<Event>) -> io::Result<()> {
    if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let mut deframer = Deframer::default();
    let mut buffer = [0; 1024];
    let mut received = 0;
    let body = loop {
        if let Some(body) = deframer.next_body().map_err(io::Error::other)? {
            break body;
        }
        let n = stream.read(&mut buffer).await?;
        received += n;
        if n == 0 || received > MAX_REQUEST {
            return Ok(());
        }
        deframer.feed(&buffer[..n]);
    };
    let reply = match Request::decode(&body) {
        Ok(request) => {
            let (reply, replied) = oneshot::channel();
            let _ = events.send(Event::Control { request, reply });
            replied
                .await
                .unwrap_or_else(|_| Reply::Refused("the job has ended".to_owned()))
        }
        Err(error) => Reply::Refused(format!("the request makes no sense: {error}")),
    };
    stream.write_all(&reply.encode()).await
}

/// Sends a request to the coordinator of a job.
pub fn request(entry: &Entry, request: &Request) -> Result<Reply, String> {
    let cannot = |error: io::Error| format!("the launcher of job {} does not answer: {error}", entry.name);
    let talk = || -> io::Result<Vec<u8>> {
        let directory = File::open(&entry.path)?;
        let mut stream = std::os::unix::net::UnixStream::connect(session::short(&directory, "socket"))?;
        stream.set_read_timeout(Some(2 * TIME))?;
        stream.set_write_timeout(Some(2 * TIME))?;
        stream.write_all(&request.encode())?;
        let mut deframer = Deframer::default();
        let mut buffer = [0; 4096];
        loop {
            if let Some(body) = deframer.next_body().map_err(io::Error::other)? {
                return Ok(body);
            }
            match stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => deframer.feed(&buffer[..n]),
            }
        }
    };
    if !entry.lives {
        let name = &entry.name;
        return Err(match entry.seconds_left() {
            Some(left) => {
                format!("job {name} has lost its launcher, {left} s are left; isthmus attach {name} takes it up again")
            }
            None => format!("job {name} has ended"),
        });
    }
    let body = talk().map_err(cannot)?;
    Reply::decode(&body).map_err(|error| cannot(io::Error::other(error)))
}
