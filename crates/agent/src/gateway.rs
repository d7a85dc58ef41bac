// SPDX-License-Identifier: Apache-2.0
//! The gateway of this local area, if this agent has it: a process whose messages with the coordinator are handed on
//! unread. When it ends before its time it is started again, at the port that others know.

use crate::event::Event;
use isthmus_stage::own;
use isthmus_wire::codec::Deframer;
use isthmus_wire::gateway::{FromGateway, Open, ToGateway};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

/// How long after the end of a gateway the next one is started.
const AGAIN: Duration = Duration::from_millis(300);
/// Most gateways that are started one after the other.
const MOST: u32 = 20;

/// A gateway and what is needed to start it again.
#[derive(Debug)]
pub(crate) struct Gateway {
    binary: PathBuf,
    open: Open,
    events: mpsc::Sender<Event>,
    starts: u32,
    running: Option<(Child, mpsc::UnboundedSender<Vec<u8>>)>,
    /// The message with which it said where it listens.
    listening: Option<Vec<u8>>,
}

impl Gateway {
    /// Starts one; `first` must be its first message.
    pub(crate) fn start(binary: &Path, first: &[u8], events: &mpsc::Sender<Event>) -> Result<Self, String> {
        let Ok(ToGateway::Open(open)) = ToGateway::decode(first) else {
            return Err("the launcher sent nonsense".into());
        };
        let mut gateway = Self {
            binary: binary.to_owned(),
            open,
            events: events.clone(),
            starts: 0,
            running: None,
            listening: None,
        };
        gateway.spawn()?;
        Ok(gateway)
    }

    fn spawn(&mut self) -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("the gateway cannot be started: {error}");
        let mut child = Command::new(own::found(&self.binary))
            .arg("gateway")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the gateway has no pipes".into());
        };
        self.starts += 1;
        let (sender, queue) = mpsc::unbounded_channel();
        let _ = sender.send(ToGateway::Open(self.open.clone()).encode());
        tokio::spawn(write(input, queue));
        tokio::spawn(read(output, self.events.clone()));
        self.running = Some((child, sender));
        Ok(())
    }

    /// Hands a message on to it. What is under way is bounded by the credit that gateways give each other.
    pub(crate) fn send(&self, message: Vec<u8>) {
        if let Some((_, sender)) = &self.running {
            let _ = sender.send(message);
        }
    }

    /// It says; its port is remembered.
    pub(crate) fn said(&mut self, message: &[u8]) {
        if let Ok(FromGateway::Listening { port, .. }) = FromGateway::decode(message) {
            self.open.ports = (port, port);
            self.listening = Some(message.to_owned());
        }
    }

    /// What a coordinator that knows nothing of it has to hear.
    pub(crate) fn listening(&self) -> Option<Vec<u8>> {
        self.listening.clone().filter(|_| self.running.is_some())
    }

    /// It has ended; soon there will be another one.
    pub(crate) fn ended(&mut self) {
        self.running = None;
        if self.starts < MOST {
            let events = self.events.clone();
            tokio::spawn(async move {
                tokio::time::sleep(AGAIN).await;
                let _ = events.send(Event::GatewayDue).await;
            });
        }
    }

    /// It is time to start it again.
    pub(crate) fn again(&mut self) -> Result<(), String> {
        self.spawn()
    }
}

async fn write(mut input: ChildStdin, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(body) = queue.recv().await {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
        let bytes = [&length[..], &body].concat();
        if input.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read(mut output: ChildStdout, events: mpsc::Sender<Event>) {
    let mut deframer = Deframer::default();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n @ 1..) = output.read(&mut buffer).await {
        deframer.feed(&buffer[..n]);
        while let Ok(Some(body)) = deframer.next_body() {
            if events.send(Event::Gateway(body)).await.is_err() {
                return;
            }
        }
    }
    let _ = events.send(Event::GatewayEnded).await;
}
