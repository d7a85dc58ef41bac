// SPDX-License-Identifier: Apache-2.0
//! The agent's end of the connection to the coordinator: framing, and the credit that bounds output.

use crate::event::Event;
use isthmus_wire::codec::Deframer;
use isthmus_wire::grid::{FromAgent, OUTPUT_WINDOW, ToAgent};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};

/// Sends messages to the coordinator. Everything but output is bounded by the number of processes;
/// output is bounded by credit.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    messages: mpsc::UnboundedSender<Vec<u8>>,
    /// Goes out when nothing else waits.
    last: mpsc::UnboundedSender<Vec<u8>>,
    credit: Arc<Semaphore>,
}

impl Outbox {
    /// An outbox and the task that empties it; the task ends when all outboxes are gone or writing fails.
    pub(crate) fn new<W: AsyncWrite + Unpin + Send + 'static>(
        writer: W,
        events: mpsc::Sender<Event>,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (messages, queue) = mpsc::unbounded_channel();
        let (last, rest) = mpsc::unbounded_channel();
        let credit = Arc::new(Semaphore::new(OUTPUT_WINDOW as usize));
        let task = tokio::spawn(async move {
            if write_all(writer, queue, rest).await.is_err() {
                let _ = events.send(Event::CoordinatorLost).await;
            }
        });
        (Self { messages, last, credit }, task)
    }

    /// Queues a message.
    pub(crate) fn send(&self, message: &FromAgent) {
        // A failure is noticed by the writing task.
        let _ = self.messages.send(message.encode());
    }

    /// Queues a message behind all others: data of processes between gateways, bounded by their credit.
    pub(crate) fn send_last(&self, message: &FromAgent) {
        let _ = self.last.send(message.encode());
    }

    /// Queues output when the coordinator has room for it. False: the job ends, nobody prints any more.
    pub(crate) async fn send_output(&self, message: &FromAgent, bytes: usize) -> bool {
        let permits = u32::try_from(bytes).unwrap_or(OUTPUT_WINDOW).min(OUTPUT_WINDOW);
        match self.credit.acquire_many(permits).await {
            Ok(permit) => permit.forget(),
            Err(_) => return false,
        }
        self.send(message);
        true
    }

    /// The coordinator has printed so many bytes.
    pub(crate) fn add_credit(&self, bytes: u32) {
        let room = (OUTPUT_WINDOW as usize).saturating_sub(self.credit.available_permits());
        self.credit.add_permits(room.min(bytes as usize));
    }

    /// Nobody prints any more.
    pub(crate) fn close_output(&self) {
        self.credit.close();
    }
}

async fn write_all<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    mut rest: mpsc::UnboundedReceiver<Vec<u8>>,
) -> std::io::Result<()> {
    let mut batch = Vec::new();
    loop {
        let some = tokio::select! {
            biased;
            n = queue.recv_many(&mut batch, 64) => n > 0,
            Some(message) = rest.recv() => {
                batch.push(message);
                true
            }
        };
        if !some {
            return Ok(());
        }
        let bytes: Vec<u8> = batch.drain(..).flatten().collect();
        writer.write_all(&bytes).await?;
        writer.flush().await?;
    }
}

/// Reads the coordinator's messages into events until the connection ends.
pub(crate) async fn read<R: AsyncRead + Unpin>(mut reader: R, events: mpsc::Sender<Event>) {
    let mut deframer = Deframer::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match deframer.next_body() {
            Ok(Some(body)) => {
                let Ok(message) = ToAgent::decode(&body) else { break };
                if events.send(Event::FromCoordinator(message)).await.is_err() {
                    return;
                }
            }
            Ok(None) => match reader.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(n) => deframer.feed(&buffer[..n]),
            },
            Err(_) => break,
        }
    }
    let _ = events.send(Event::CoordinatorLost).await;
}
