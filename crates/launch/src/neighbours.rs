// SPDX-License-Identifier: Apache-2.0
//! Agents that are reached through the agent of another subjob at the same machine, which starts them beside itself: no
//! connection is made for them, and what the other one has said of the machine is known.

use isthmus_wire::grid::{AgentHello, MAX_CHUNK, MAX_NEIGHBOURS, NEIGHBOUR_WINDOW, ToAgent};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex};
use tokio::sync::{Semaphore, mpsc};

/// What is carried at once, bytes.
const PIECE: usize = 64 << 10;
/// What an agent may have said that its task has not read: output has credit of its own, and all else is little.
const MOST_UNREAD: usize = 16 << 20;

// A piece fits into the window and into a message.
const _: () = assert!(PIECE <= NEIGHBOUR_WINDOW as usize && PIECE <= MAX_CHUNK);

/// The way to agents beside the one of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours {
    all: Arc<Mutex<BTreeMap<u32, Neighbour>>>,
}

/// One of them.
#[derive(Debug)]
struct Neighbour {
    said: mpsc::UnboundedSender<Vec<u8>>,
    unread: Arc<AtomicUsize>,
    /// What may still be sent to it.
    window: Arc<Semaphore>,
}

/// How a new agent is reached: beside another one.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    /// Its number there.
    pub(crate) number: u32,
    /// Messages to the other one.
    pub(crate) commands: mpsc::UnboundedSender<Vec<u8>>,
    pub(crate) neighbours: Neighbours,
    /// What the other one has said of the machine.
    pub(crate) hello: AgentHello,
}

impl Beside {
    /// What the new agent reads and writes. It is started by the first thing that is written.
    pub(crate) fn open(&self) -> DuplexStream {
        let (ours, theirs) = duplex(PIECE);
        let (reader, writer) = tokio::io::split(theirs);
        let (said, queue) = mpsc::unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let window = Arc::new(Semaphore::new(NEIGHBOUR_WINDOW as usize));
        let neighbour = Neighbour {
            said,
            unread: Arc::clone(&unread),
            window: Arc::clone(&window),
        };
        self.neighbours.lock().insert(self.number, neighbour);
        tokio::spawn(deliver(queue, writer, unread));
        tokio::spawn(self.clone().carry(reader, window));
        ours
    }

    /// Passes on what is for it, as fast as it takes it.
    async fn carry(self, mut reader: ReadHalf<DuplexStream>, window: Arc<Semaphore>) {
        let mut buffer = vec![0; PIECE];
        while let Ok(n @ 1..) = reader.read(&mut buffer).await {
            let room = window.acquire_many(n as u32).await;
            let Ok(room) = room else { break };
            room.forget();
            self.say(buffer[..n].to_vec());
        }
        self.say(Vec::new());
        self.neighbours.lock().remove(&self.number);
    }

    fn say(&self, bytes: Vec<u8>) {
        let number = self.number;
        let _ = self.commands.send(ToAgent::Neighbour { number, bytes }.encode());
    }
}

impl Neighbours {
    /// Whether there may be one more.
    pub(crate) fn have_room(&self) -> bool {
        self.lock().len() < MAX_NEIGHBOURS
    }

    /// One has said something, or, when that is nothing, has ended. What comes late is for nobody.
    ///
    /// # Errors
    /// What the agent has done that carries it.
    pub(crate) fn hear(&self, number: u32, bytes: Vec<u8>) -> Result<(), String> {
        let mut all = self.lock();
        let Some(neighbour) = all.get(&number) else {
            return Ok(());
        };
        if bytes.is_empty() {
            neighbour.close();
            all.remove(&number);
            return Ok(());
        }
        let unread = neighbour.unread.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if unread > MOST_UNREAD {
            return Err(format!("an agent beside it sent {unread} bytes that nobody has read"));
        }
        let _ = neighbour.said.send(bytes);
        Ok(())
    }

    /// One has taken so much of what was sent.
    pub(crate) fn took(&self, number: u32, bytes: u32) {
        if let Some(neighbour) = self.lock().get(&number) {
            let room = (NEIGHBOUR_WINDOW as usize).saturating_sub(neighbour.window.available_permits());
            neighbour.window.add_permits(room.min(bytes as usize));
        }
    }

    /// The connection has ended, and with it the way to all of them.
    pub(crate) fn close(&self) {
        let mut all = self.lock();
        all.values().for_each(Neighbour::close);
        all.clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Neighbour>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Neighbour {
    /// Nothing goes there any more.
    fn close(&self) {
        self.window.close();
    }
}

/// Hands over what an agent says, up to its end.
async fn deliver(
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    mut writer: WriteHalf<DuplexStream>,
    unread: Arc<AtomicUsize>,
) {
    while let Some(piece) = queue.recv().await {
        if writer.write_all(&piece).await.is_err() {
            return;
        }
        unread.fetch_sub(piece.len(), Ordering::Relaxed);
    }
    let _ = writer.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::codec::Deframer;

    fn beside() -> (Beside, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (commands, sent) = mpsc::unbounded_channel();
        let beside = Beside {
            number: 5,
            commands,
            neighbours: Neighbours::default(),
            hello: AgentHello {
                version: 0,
                host: "h".into(),
                architecture: "x86_64".into(),
                addresses: Vec::new(),
                processors: 1,
            },
        };
        (beside, sent)
    }

    /// The next thing that goes to the agent that carries it, for which neighbour that is.
    async fn next(sent: &mut mpsc::UnboundedReceiver<Vec<u8>>) -> (u32, Vec<u8>) {
        let mut deframer = Deframer::default();
        deframer.feed(&sent.recv().await.unwrap());
        match ToAgent::decode(&deframer.next_body().unwrap().unwrap()).unwrap() {
            ToAgent::Neighbour { number, bytes } => (number, bytes),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn both_directions_are_carried_up_to_their_ends() {
        let (beside, mut sent) = beside();
        let mut ours = beside.open();
        ours.write_all(b"start").await.unwrap();
        assert_eq!(next(&mut sent).await, (5, b"start".to_vec()));
        beside.neighbours.hear(9, b"who?".to_vec()).unwrap();
        beside.neighbours.hear(5, b"started".to_vec()).unwrap();
        beside.neighbours.hear(5, Vec::new()).unwrap();
        beside.neighbours.hear(5, b"late".to_vec()).unwrap();
        let mut said = Vec::new();
        ours.read_to_end(&mut said).await.unwrap();
        assert_eq!(said, b"started");
        drop(ours);
        assert_eq!(
            next(&mut sent).await,
            (5, Vec::new()),
            "it is told that nothing comes any more"
        );
        // The end of the connection that carries one is its end.
        let mut ours = beside.open();
        beside.neighbours.close();
        assert_eq!(ours.read_to_end(&mut said).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn only_what_fits_is_sent_and_only_so_much_may_be_said() {
        let (beside, mut sent) = beside();
        let ours = beside.open();
        let (mut reader, mut writer) = tokio::io::split(ours);
        let window = NEIGHBOUR_WINDOW as usize;
        let writing = tokio::spawn(async move { writer.write_all(&vec![1; 3 * window]).await });
        let mut length = 0;
        while length < window {
            length += next(&mut sent).await.1.len();
        }
        assert!(length == window && sent.try_recv().is_err(), "{length}");
        // An agent that confirms more than it was sent gets no more than fits.
        beside.neighbours.took(5, u32::MAX);
        while length < 2 * window {
            length += next(&mut sent).await.1.len();
        }
        assert!(length == 2 * window && sent.try_recv().is_err(), "{length}");
        beside.neighbours.close();
        // What it waits for will not come.
        while !next(&mut sent).await.1.is_empty() {}
        assert!(writing.await.unwrap().is_err());
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.unwrap();

        let _ours = beside.open();
        let mut told = (0..=MOST_UNREAD / MAX_CHUNK + 1).map(|_| beside.neighbours.hear(5, vec![0; MAX_CHUNK]));
        assert!(told.any(|said| said.is_err()), "nobody reads it");
    }
}
