// SPDX-License-Identifier: Apache-2.0
//! Neighbours: agents that this one starts beside itself, for subjobs that are added to its job at this machine. What
//! they and the coordinator say goes over this agent's connection.
//!
//! A neighbour is a process, so that what it starts, its directories, its umask and its end are its own. When this
//! connection ends, so does the way to it: it ends or waits until it is reached by itself, as any agent does.

use crate::link::Outbox;
use isthmus_stage::own;
use isthmus_wire::grid::{FromAgent, MAX_NEIGHBOURS, NEIGHBOUR_WINDOW};
use rustix::fs::Mode;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What is read of a neighbour at once, bytes.
const PIECE: usize = 64 << 10;

/// All of an agent.
pub(crate) struct Neighbours {
    binary: PathBuf,
    /// Those that can be reached.
    reached: BTreeMap<u32, Input>,
    /// Those that have been started. What comes late for one that has ended starts no other.
    started: BTreeSet<u32>,
    /// Those that run.
    running: Vec<Running>,
    /// The umask that this process began with, once it has taken another one.
    pub(crate) umask: Option<Mode>,
}

/// The way to one.
struct Input {
    pieces: mpsc::UnboundedSender<Vec<u8>>,
    /// Bytes that it has not taken.
    waiting: Arc<AtomicUsize>,
}

struct Running {
    pid: u32,
    /// Ends when the neighbour has ended and all that it said is on its way.
    carrying: JoinHandle<()>,
}

impl Neighbours {
    pub(crate) fn new(binary: &Path) -> Self {
        Self {
            binary: binary.to_owned(),
            reached: BTreeMap::new(),
            started: BTreeSet::new(),
            running: Vec::new(),
            umask: None,
        }
    }

    /// The coordinator says something to one, which is started when it is the first thing.
    pub(crate) fn pass(&mut self, number: u32, bytes: Vec<u8>, outbox: &Outbox) {
        if bytes.is_empty() {
            self.reached.remove(&number);
        } else if let Some(input) = self.reached.get(&number) {
            // The coordinator waits until what it has sent is taken.
            let waiting = input.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
            if waiting + bytes.len() > NEIGHBOUR_WINDOW as usize || input.pieces.send(bytes).is_err() {
                self.reached.remove(&number);
            }
        } else if self.started.insert(number) {
            match self.start(number, outbox) {
                Ok(input) => {
                    self.reached.insert(number, input);
                    self.pass(number, bytes, outbox);
                }
                // Whoever asked for it hears that there is none.
                Err(_) => outbox.send(&ended(number)),
            }
        }
    }

    /// Process ids of those that run.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let running = self.running.iter().filter(|one| !one.carrying.is_finished());
        running.map(|one| one.pid).collect()
    }

    /// Nothing reaches them any more.
    pub(crate) fn part(&mut self) {
        self.reached.clear();
    }

    /// Waits until none runs.
    pub(crate) async fn all_gone(&mut self) {
        while let Some(one) = self.running.last_mut() {
            let _ = (&mut one.carrying).await;
            self.running.pop();
        }
    }

    fn start(&mut self, number: u32, outbox: &Outbox) -> io::Result<Input> {
        self.running.retain(|one| !one.carrying.is_finished());
        if self.running.len() >= MAX_NEIGHBOURS {
            return Err(io::Error::other("there are too many"));
        }
        let mut command = Command::new(own::found(&self.binary));
        command.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped());
        let own = self.umask.map(rustix::process::umask);
        let child = command.spawn();
        own.map(rustix::process::umask);
        let mut child = child?;
        let (Some(pid), Some(input)) = (child.id(), child.stdin.take()) else {
            return Err(io::Error::other("it ended before it began"));
        };
        let (pieces, queue) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        tokio::spawn(feed(number, input, queue, Arc::clone(&waiting), outbox.clone()));
        let carrying = tokio::spawn(hear(number, child, outbox.clone()));
        self.running.push(Running { pid, carrying });
        Ok(Input { pieces, waiting })
    }
}

/// That one has ended.
fn ended(number: u32) -> FromAgent {
    FromAgent::Neighbour {
        number,
        bytes: Vec::new(),
    }
}

/// Passes on what one is told, until nobody tells it anything any more or it reads no more.
async fn feed(
    number: u32,
    mut input: ChildStdin,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    outbox: Outbox,
) {
    while let Some(piece) = queue.recv().await {
        if input.write_all(&piece).await.is_err() {
            return;
        }
        waiting.fetch_sub(piece.len(), Ordering::Relaxed);
        let bytes = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        outbox.send(&FromAgent::NeighbourTook { number, bytes });
    }
}

/// Passes on what one says, until it has ended. How much that may be its own credit says.
async fn hear(number: u32, mut child: Child, outbox: Outbox) {
    if let Some(mut output) = child.stdout.take() {
        let mut buffer = vec![0; PIECE];
        while let Ok(n @ 1..) = output.read(&mut buffer).await {
            let bytes = buffer[..n].to_vec();
            outbox.send(&FromAgent::Neighbour { number, bytes });
        }
    }
    let _ = child.wait().await;
    outbox.send(&ended(number));
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::codec::Deframer;
    use tokio::io::{AsyncRead, DuplexStream, duplex};

    /// In place of our binary a script, which does this. Another process writes it: what this one has open for writing
    /// another test's child may have as well, and then it does not run.
    fn binary(name: &str, what: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("isthmus-neighbour-{}-{name}", std::process::id()));
        let writes = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$2\" && chmod 700 \"$2\"";
        let mut writer = std::process::Command::new("sh");
        let written = writer.args(["-c", writes, "sh", what]).arg(&path).status();
        assert!(written.unwrap().success());
        path
    }

    fn bench(name: &str, what: &str) -> (Neighbours, Outbox, DuplexStream) {
        let (far, writer) = duplex(1 << 20);
        let (outbox, _) = Outbox::new(Box::new(writer), mpsc::channel(8).0);
        (Neighbours::new(&binary(name, what)), outbox, far)
    }

    /// What the coordinator hears until a number of neighbours have ended: what each has said and taken, who has ended.
    async fn heard(far: &mut (impl AsyncRead + Unpin), ends: usize) -> (BTreeMap<u32, (Vec<u8>, u32)>, Vec<u32>) {
        let (mut deframer, mut buffer) = (Deframer::default(), vec![0; PIECE]);
        let (mut all, mut ended) = (BTreeMap::<u32, (Vec<u8>, u32)>::new(), Vec::new());
        while ended.len() < ends {
            match deframer
                .next_body()
                .unwrap()
                .map(|body| FromAgent::decode(&body).unwrap())
            {
                Some(FromAgent::Neighbour { number, bytes }) if bytes.is_empty() => ended.push(number),
                Some(FromAgent::Neighbour { number, bytes }) => all.entry(number).or_default().0.extend(bytes),
                Some(FromAgent::NeighbourTook { number, bytes }) => all.entry(number).or_default().1 += bytes,
                Some(other) => panic!("{other:?}"),
                None => {
                    let n = far.read(&mut buffer).await.unwrap();
                    assert!(n > 0, "after {all:?}");
                    deframer.feed(&buffer[..n]);
                }
            }
        }
        (all, ended)
    }

    #[tokio::test]
    async fn each_hears_what_is_for_it_and_is_heard_until_it_has_ended() {
        let (mut neighbours, outbox, mut far) = bench("echo", "echo \"$1\"; exec cat");
        neighbours.pass(3, b"three".to_vec(), &outbox);
        neighbours.pass(7, b"seven".to_vec(), &outbox);
        assert_eq!(neighbours.pids().len(), 2);
        neighbours.pass(3, b" more".to_vec(), &outbox);
        neighbours.pass(3, Vec::new(), &outbox);
        neighbours.part();
        let (mut all, mut ended) = heard(&mut far, 2).await;
        ended.sort_unstable();
        assert_eq!(ended, [3, 7]);
        assert_eq!(all.remove(&3), Some((b"agent\nthree more".to_vec(), 10)));
        assert_eq!(all.remove(&7), Some((b"agent\nseven".to_vec(), 5)));
        neighbours.all_gone().await;
        // What comes late starts nothing.
        neighbours.pass(3, b"again".to_vec(), &outbox);
        assert!(neighbours.pids().is_empty() && neighbours.reached.is_empty());
    }

    #[tokio::test]
    async fn one_that_is_sent_more_than_it_may_have_is_given_up() {
        let (mut neighbours, outbox, mut far) = bench("deaf", "while ! [ -e \"$0.go\" ]; do sleep 0.05; done");
        let go = neighbours.binary.with_extension("go");
        let half = NEIGHBOUR_WINDOW as usize / 2;
        for _ in 0..2 {
            neighbours.pass(1, vec![7; half], &outbox);
        }
        assert!(neighbours.reached.contains_key(&1));
        neighbours.pass(1, vec![7; half], &outbox);
        assert!(!neighbours.reached.contains_key(&1), "it would keep it all");
        std::fs::write(&go, "").unwrap();
        assert_eq!(heard(&mut far, 1).await.1, [1]);
    }

    #[tokio::test]
    async fn there_are_only_so_many_and_who_gets_none_hears_so() {
        let (mut neighbours, outbox, mut far) = bench("many", "exec cat");
        let last = u32::try_from(MAX_NEIGHBOURS).unwrap();
        (0..=last).for_each(|number| neighbours.pass(number, b"x".to_vec(), &outbox));
        assert_eq!(neighbours.pids().len(), MAX_NEIGHBOURS);
        assert_eq!(heard(&mut far, 1).await.1, [last]);
        neighbours.part();
        neighbours.all_gone().await;
        neighbours.pass(last + 1, b"x".to_vec(), &outbox);
        assert_eq!(neighbours.pids().len(), 1, "there is room again");
        neighbours.part();
        neighbours.all_gone().await;
        neighbours.binary = PathBuf::from("/nowhere/isthmus");
        neighbours.pass(last + 2, b"x".to_vec(), &outbox);
        assert!(neighbours.pids().is_empty());
    }
}
