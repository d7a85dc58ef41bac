// SPDX-License-Identifier: Apache-2.0
//! The socket where processes say hello.
//!
//! Only processes of the same user get that far (directory and peer credentials); only those with the token
//! of their index are heard. Before its hello a connection costs at most [`MAX_HELLO`] bytes and
//! [`HELLO_TIME`].

use crate::event::{Event, ToProcess};
use crate::link::Outbox;
use crate::sink::Sink;
use isthmus_wire::boot::Message;
use isthmus_wire::codec::{Deframer, MAX_MESSAGE};
use isthmus_wire::grid::Stream;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

/// Longest hello, bytes.
const MAX_HELLO: usize = 64 << 10;
/// Longest message afterwards: what the agent passes on of it must fit into one of its own.
const MAX_WORD: usize = MAX_MESSAGE - (64 << 10);
/// Longest time from connection to hello.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// Most connections that have not said hello.
const MAX_STRANGERS: usize = 256;

/// Where processes come in; closed when this is dropped, so that nobody who waits for the last outbox waits for a task
/// that never ends.
#[derive(Debug)]
pub(crate) struct Door(AbortHandle);

impl Drop for Door {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Listens; every valid hello becomes an event. What traced processes record goes to the coordinator.
pub(crate) fn listen(path: &Path, events: mpsc::Sender<Event>, outbox: &Outbox) -> io::Result<Door> {
    let trace = Sink::Coordinator(outbox.clone());
    let listener = UnixListener::bind(path)?;
    let strangers = Arc::new(Semaphore::new(MAX_STRANGERS));
    let listening = tokio::spawn(async move {
        loop {
            let Ok(stranger) = Arc::clone(&strangers).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, _)) if is_same_user(&stream) => {
                    tokio::spawn(serve(stream, events.clone(), trace.clone(), stranger));
                }
                Ok(_) => {}
                // Out of descriptors, most likely: leave others time to close some.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    });
    Ok(Door(listening.abort_handle()))
}

fn is_same_user(stream: &UnixStream) -> bool {
    stream
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}

async fn serve(
    stream: UnixStream,
    events: mpsc::Sender<Event>,
    trace: Sink,
    stranger: tokio::sync::OwnedSemaphorePermit,
) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = Messages {
        reader,
        deframer: Deframer::default(),
    };
    let Ok(Some(Message::Hello(hello))) = tokio::time::timeout(HELLO_TIME, reader.hello()).await else {
        return;
    };
    drop(stranger);
    let (sender, mut queue) = mpsc::unbounded_channel();
    if events.send(Event::Hello { hello, process: sender }).await.is_err() {
        return;
    }
    // A wrong token: the sender is dropped and with it this connection.
    let index = match queue.recv().await {
        Some(ToProcess::Accepted { index }) => index,
        Some(ToProcess::Message(why)) => return drop(writer.write_all(&why.encode()).await),
        _ => return,
    };
    let write = tokio::spawn(write(writer, queue, index));
    while let Some(message) = reader.next(MAX_WORD).await {
        let event = match message {
            Message::Finished(counters) => Event::Finished { index, counters },
            Message::Traffic(traffic) => Event::Traffic { index, traffic },
            Message::Time(time) => Event::Time { index, time },
            Message::Waiting(waiting) => Event::Waiting { index, waiting },
            Message::Trace(records) => {
                // The process waits while the coordinator has no room; it then drops what it cannot keep.
                trace.write(index, Stream::Trace, records).await;
                continue;
            }
            Message::Question(question) => Event::Asked { index, question },
            Message::Abort { code, reason } => Event::Aborted { index, code, reason },
            Message::Hello(_) | Message::World(_) | Message::Dismissed | Message::Gone(_) | Message::Answer(_) => {
                let reason = "sent a message that only an agent may send".to_owned();
                Event::Aborted { index, code: 1, reason }
            }
        };
        if events.send(event).await.is_err() {
            return;
        }
    }
    write.abort();
    let _ = events.send(Event::Closed { index }).await;
}

async fn write(mut writer: OwnedWriteHalf, mut queue: mpsc::UnboundedReceiver<ToProcess>, index: u32) {
    while let Some(message) = queue.recv().await {
        // Encoded here, one at a time, so that memory does not grow with the square of the processes.
        let bytes = match message {
            ToProcess::World(world) => world.message(index).encode(),
            ToProcess::Message(message) => message.encode(),
            ToProcess::Accepted { .. } => continue,
        };
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

struct Messages {
    reader: OwnedReadHalf,
    deframer: Deframer,
}

impl Messages {
    async fn hello(&mut self) -> Option<Message> {
        self.next(MAX_HELLO).await
    }

    /// The next message; `None` at the end, at nonsense, or after `limit` bytes without a whole message.
    async fn next(&mut self, limit: usize) -> Option<Message> {
        let mut buffer = [0; 8192];
        let mut received = 0;
        loop {
            if let Some(body) = self.deframer.next_body().ok()? {
                return Message::decode(&body).ok();
            }
            let n = self.reader.read(&mut buffer).await.ok()?;
            received += n;
            if n == 0 || received > limit {
                return None;
            }
            self.deframer.feed(&buffer[..n]);
        }
    }
}
