// SPDX-License-Identifier: Apache-2.0
//! The agent's end of the connection to the coordinator: framing, the credit that bounds output, and what a connection
//! that follows a broken one has to hear again.

use crate::event::Event;
use isthmus_wire::codec::Deframer;
use isthmus_wire::grid::{FromAgent, OUTPUT_WINDOW, Resume, ToAgent};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

/// Most messages that go out as one piece.
const BATCH: usize = 64;

/// Where messages are written.
pub(crate) type Writer = Box<dyn AsyncWrite + Unpin + Send>;

/// Sends messages to the coordinator. Everything but output is bounded by the number of processes;
/// output is bounded by credit.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    items: mpsc::UnboundedSender<Item>,
    /// Goes out when nothing else waits.
    last: mpsc::UnboundedSender<Vec<u8>>,
    credit: Arc<Semaphore>,
    /// Number of the connection: a write to an earlier one is given up.
    link: Arc<watch::Sender<u32>>,
}

/// What the writing task is told.
enum Item {
    Message(Kind, Vec<u8>),
    /// So many bytes of output have been printed.
    Printed(u32),
    /// The connection may be followed by another one.
    Hold,
    /// The connection has ended.
    Away,
    /// Another connection follows.
    Over(Box<Successor>),
}

/// What becomes of a message when its connection breaks.
enum Kind {
    /// It is repeated: it tells how the subjob stands.
    Standing,
    /// It is repeated until it is known to be printed. Its length.
    Output(usize),
    /// It is of no use later.
    Passing,
}

/// A connection that follows another one.
pub(crate) struct Successor {
    pub(crate) link: u32,
    pub(crate) writer: Writer,
    /// First message on it.
    pub(crate) hello: FromAgent,
    /// What its other end knows.
    pub(crate) resume: Resume,
}

impl Outbox {
    /// An outbox and the task that empties it; the task ends when all outboxes are gone, or when writing fails and
    /// nobody may follow.
    pub(crate) fn new(writer: Writer, events: mpsc::Sender<Event>) -> (Self, JoinHandle<()>) {
        let (items, queue) = mpsc::unbounded_channel();
        let (last, rest) = mpsc::unbounded_channel();
        let credit = Arc::new(Semaphore::new(OUTPUT_WINDOW as usize));
        let (link, current) = watch::channel(0);
        let writing = Writing {
            link: 0,
            writer: Some(writer),
            current,
            events,
            held: false,
            kept: Unconfirmed::default(),
            credit: Arc::clone(&credit),
        };
        let link = Arc::new(link);
        let outbox = Self {
            items,
            last,
            credit,
            link,
        };
        (outbox, tokio::spawn(writing.run(queue, rest)))
    }

    /// Queues a message.
    pub(crate) fn send(&self, message: &FromAgent) {
        let kind = match message {
            FromAgent::Output { bytes, .. } => Kind::Output(bytes.len()),
            message if message.is_standing() => Kind::Standing,
            _ => Kind::Passing,
        };
        self.queue(Item::Message(kind, message.encode()));
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
        give_back(&self.credit, bytes as usize);
        self.queue(Item::Printed(bytes));
    }

    /// Nobody prints any more.
    pub(crate) fn close_output(&self) {
        self.credit.close();
    }

    /// The connection may be followed by another one.
    pub(crate) fn hold(&self) {
        self.queue(Item::Hold);
    }

    /// The connection has ended: what is sent from here on waits for the next one.
    pub(crate) fn away(&self) {
        self.queue(Item::Away);
    }

    /// Another connection follows: it hears how the subjob stands.
    pub(crate) fn go_over(&self, successor: Successor) {
        let link = successor.link;
        self.queue(Item::Over(Box::new(successor)));
        self.link.send_replace(link);
    }

    fn queue(&self, item: Item) {
        // A failure is noticed by the writing task.
        let _ = self.items.send(item);
    }
}

fn give_back(credit: &Semaphore, bytes: usize) {
    let room = (OUTPUT_WINDOW as usize).saturating_sub(credit.available_permits());
    credit.add_permits(room.min(bytes));
}

/// The task that writes.
struct Writing {
    link: u32,
    /// Nothing between two connections.
    writer: Option<Writer>,
    /// Number of the newest connection.
    current: watch::Receiver<u32>,
    events: mpsc::Sender<Event>,
    held: bool,
    kept: Unconfirmed,
    credit: Arc<Semaphore>,
}

impl Writing {
    async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Item>, mut rest: mpsc::UnboundedReceiver<Vec<u8>>) {
        let mut batch = Vec::new();
        loop {
            let mut bytes = Vec::new();
            tokio::select! {
                biased;
                n = queue.recv_many(&mut batch, BATCH) => {
                    if n == 0 {
                        return;
                    }
                    for item in batch.drain(..) {
                        self.take(item, &mut bytes, &mut rest);
                    }
                }
                Some(message) = rest.recv() => bytes = message,
            }
            if !self.write(&bytes).await && !self.held {
                return;
            }
        }
    }

    fn take(&mut self, item: Item, bytes: &mut Vec<u8>, rest: &mut mpsc::UnboundedReceiver<Vec<u8>>) {
        match item {
            Item::Message(kind, message) => {
                bytes.extend_from_slice(&message);
                match kind {
                    Kind::Standing => self.kept.standings.push(message),
                    Kind::Output(length) => self.kept.outputs.push_back((length, message)),
                    Kind::Passing => {}
                }
            }
            Item::Printed(printed) => self.kept.forget_printed(printed as usize),
            Item::Hold => self.held = true,
            Item::Away => self.writer = None,
            Item::Over(successor) => {
                // What was for the other end of the broken connection alone is of no use at this one.
                while rest.try_recv().is_ok() {}
                let known = self.kept.forget_received(successor.resume.outputs);
                give_back(&self.credit, known);
                *bytes = successor.hello.encode();
                self.kept.repeat(successor.resume.standings, bytes);
                (self.link, self.writer) = (successor.link, Some(successor.writer));
            }
        }
    }

    /// Writes to the connection, if there is one; false: it has failed.
    async fn write(&mut self, bytes: &[u8]) -> bool {
        let Some(writer) = self.writer.as_mut().filter(|_| !bytes.is_empty()) else {
            return true;
        };
        let link = self.link;
        let written = async {
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        let failed = tokio::select! {
            written = written => written.is_err(),
            // A connection whose other end has vanished may hang for long. When the agent has gone nobody follows any
            // more: its last words are still written.
            Ok(_) = self.current.wait_for(|current| *current != link) => true,
        };
        if failed {
            self.writer = None;
            let _ = self.events.send(Event::LinkLost(link)).await;
        }
        !failed
    }
}

/// What has been sent and may have to be sent again.
#[derive(Default)]
struct Unconfirmed {
    standings: Vec<Vec<u8>>,
    /// Output that is not known to be printed: lengths and messages.
    outputs: VecDeque<(usize, Vec<u8>)>,
    /// Number of the first of these.
    first: u64,
    /// Bytes of it that are known to be printed.
    printed: usize,
}

impl Unconfirmed {
    fn forget_printed(&mut self, printed: usize) {
        self.printed += printed;
        while let Some((length, _)) = self.outputs.front() {
            let Some(left) = self.printed.checked_sub(*length) else {
                return;
            };
            self.printed = left;
            self.forget();
        }
        self.printed = 0;
    }

    /// Forgets what has been received; how many bytes nobody will tell of any more.
    fn forget_received(&mut self, outputs: u64) -> usize {
        let mut bytes = 0;
        while self.first < outputs {
            let Some((length, _)) = self.outputs.front() else { break };
            bytes += length;
            self.forget();
        }
        bytes - std::mem::take(&mut self.printed).min(bytes)
    }

    fn forget(&mut self) {
        self.outputs.pop_front();
        self.first += 1;
    }

    /// All that the other end has not received.
    fn repeat(&self, standings: u64, bytes: &mut Vec<u8>) {
        let known = usize::try_from(standings).unwrap_or(usize::MAX);
        self.standings
            .iter()
            .skip(known)
            .for_each(|m| bytes.extend_from_slice(m));
        self.outputs.iter().for_each(|(_, m)| bytes.extend_from_slice(m));
    }
}

/// Reads the coordinator's messages into events until the connection with this number ends.
pub(crate) async fn read<R: AsyncRead + Unpin>(
    mut reader: R,
    mut deframer: Deframer,
    events: mpsc::Sender<Event>,
    link: u32,
) {
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
    let _ = events.send(Event::LinkLost(link)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::grid::{Exit, Stream};
    use tokio::io::duplex;

    fn output(text: &str) -> FromAgent {
        FromAgent::Output {
            index: 0,
            stream: Stream::Output,
            bytes: text.into(),
        }
    }

    async fn heard(reader: &mut (impl AsyncRead + Unpin), count: usize) -> Vec<FromAgent> {
        let (mut deframer, mut buffer, mut all) = (Deframer::default(), [0; 512], Vec::new());
        while all.len() < count {
            match deframer.next_body().unwrap() {
                Some(body) => all.push(FromAgent::decode(&body).unwrap()),
                None => {
                    let n = reader.read(&mut buffer).await.unwrap();
                    assert!(n > 0, "the connection ends after {all:?}");
                    deframer.feed(&buffer[..n]);
                }
            }
        }
        all
    }

    fn successor(link: u32, writer: Writer, standings: u64, outputs: u64) -> Successor {
        Successor {
            link,
            writer,
            hello: FromAgent::Pong(0, 0),
            resume: Resume {
                secret: [0; 32],
                launcher: 0,
                standings,
                outputs,
            },
        }
    }

    #[tokio::test]
    async fn a_successor_hears_what_nobody_has_received() {
        let (events, mut lost) = mpsc::channel(8);
        let (mut first, writer) = duplex(1 << 16);
        let (outbox, _writing) = Outbox::new(Box::new(writer), events);
        outbox.hold();
        let exits = |index| FromAgent::Exited(vec![(index, Exit::Status(0))]);
        outbox.send(&exits(0));
        for text in ["one", "two", "three"] {
            assert!(outbox.send_output(&output(text), text.len()).await);
        }
        assert_eq!(heard(&mut first, 4).await.len(), 4);
        outbox.add_credit(3);
        drop(first);
        outbox.send(&FromAgent::Pong(7, 7));
        assert!(matches!(lost.recv().await, Some(Event::LinkLost(0))));
        outbox.send(&exits(1));

        // One that knows the first exit and two pieces of output.
        let (mut second, writer) = duplex(1 << 16);
        outbox.go_over(successor(1, Box::new(writer), 1, 2));
        let expected = [FromAgent::Pong(0, 0), exits(1), output("three")];
        assert_eq!(heard(&mut second, 3).await, expected);
        // Nobody tells any more that the second piece has been printed: its credit is back.
        assert_eq!(outbox.credit.available_permits(), OUTPUT_WINDOW as usize - 5);

        // One that knows nothing, while the last connection hangs.
        let (mut third, writer) = duplex(1 << 16);
        outbox.go_over(successor(2, Box::new(writer), 0, 0));
        let expected = [FromAgent::Pong(0, 0), exits(0), exits(1), output("three")];
        assert_eq!(heard(&mut third, 4).await, expected);
    }

    #[tokio::test]
    async fn the_last_words_are_heard_when_the_agent_has_gone() {
        for round in 0..64 {
            let (events, _lost) = mpsc::channel(8);
            let (mut first, writer) = duplex(4);
            let (outbox, writing) = Outbox::new(Box::new(writer), events);
            outbox.send(&FromAgent::Pong(round, 7));
            outbox.send(&FromAgent::Gone);
            drop(outbox);
            assert_eq!(heard(&mut first, 2).await, [FromAgent::Pong(round, 7), FromAgent::Gone]);
            writing.await.unwrap();
        }
    }

    #[tokio::test]
    async fn without_a_successor_the_end_of_a_connection_is_the_end() {
        let (events, mut lost) = mpsc::channel(8);
        let (first, writer) = duplex(64);
        let (outbox, writing) = Outbox::new(Box::new(writer), events);
        drop(first);
        outbox.send(&FromAgent::Gone);
        assert!(matches!(lost.recv().await, Some(Event::LinkLost(0))));
        writing.await.unwrap();
    }
}
