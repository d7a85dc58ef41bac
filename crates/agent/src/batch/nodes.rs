// SPDX-License-Identifier: Apache-2.0
//! The connection to one node of a submission: staging what it lacks, then messages both ways.

use super::door::{Door, Files, StagedFile};
use crate::event::Event;
use crate::happening::{BatchEvent, FromNode, Ready};
use isthmus_wire::codec::Deframer;
use isthmus_wire::grid::{AgentHello, FileState, FromAgent, MAX_CHUNK, NodeHello, ToAgent, VERSION};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

/// How often a node hears of us when there is nothing to say.
const PING: Duration = Duration::from_secs(1);
/// A node from which nothing is heard for so long while it is made ready is lost.
const SILENCE: Duration = Duration::from_secs(60);
/// A node that is ready answers pings; when it does not for so long, the scheduler is asked about it.
const MISSING: Duration = Duration::from_secs(7);
/// How often in a row that may happen before the node is lost: a busy machine is not.
const MISSED: u32 = 8;

/// Serves a node that has proven itself until its connection ends.
pub(super) async fn serve(plain: DuplexStream, deframer: Deframer, who: &NodeHello, door: &Door) {
    let (reader, writer) = tokio::io::split(plain);
    let mut link = Link {
        reader,
        writer,
        deframer,
    };
    let node = who.node;
    let tell = |event| door.events.send(Event::Batch(BatchEvent::Node(node, event)));
    let (hello, paths) = match link.set_up(&door.files).await {
        Ok(ready) => ready,
        Err(why) => {
            let _ = tell(FromNode::Unfit(why)).await;
            return;
        }
    };
    let (sender, queue) = mpsc::unbounded_channel();
    let ready = Ready {
        node,
        nodes: who.nodes,
        slots: who.slots,
        name: who.name.clone(),
        hello,
        paths,
        sender,
    };
    if tell(FromNode::Ready(Box::new(ready))).await.is_err() {
        return;
    }
    let Link {
        mut reader,
        writer,
        mut deframer,
    } = link;
    let writing = tokio::spawn(write(writer, queue));
    let mut missed = 0;
    loop {
        let event = match tokio::time::timeout(MISSING, next(&mut reader, &mut deframer)).await {
            Ok(Ok(message)) => {
                missed = 0;
                FromNode::Said(message)
            }
            Ok(Err(_)) => break,
            Err(_) => {
                missed += 1;
                FromNode::Silent { lost: missed >= MISSED }
            }
        };
        if tell(event).await.is_err() {
            break;
        }
    }
    writing.abort();
    let _ = tell(FromNode::Lost).await;
}

async fn write(mut writer: WriteHalf<DuplexStream>, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    let mut pings = 0;
    loop {
        let bytes = match tokio::time::timeout(PING, queue.recv()).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return,
            Err(_) => {
                pings += 1;
                ToAgent::Ping(pings).encode()
            }
        };
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

struct Link {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
    deframer: Deframer,
}

impl Link {
    async fn set_up(&mut self, files: &Files) -> Result<(AgentHello, Vec<(PathBuf, String)>), String> {
        let FromAgent::Hello(hello) = self.receive().await? else {
            return Err(out_of_turn());
        };
        if hello.version != VERSION {
            return Err(format!(
                "node {} runs another isthmus (protocol version {}, ours {VERSION})",
                hello.host, hello.version
            ));
        }
        let mut paths = Vec::with_capacity(files.len());
        for file in files.iter() {
            let there = self
                .put(file)
                .await
                .map_err(|why| format!("node {}: {why}", hello.host))?;
            paths.push((file.path.clone(), there));
        }
        Ok((hello, paths))
    }

    /// The path of a file at the node, which gets it unless it sees it already.
    async fn put(&mut self, file: &StagedFile) -> Result<String, String> {
        let offer = ToAgent::Offer {
            hash: file.hash,
            size: file.size,
            name: file.name.clone(),
        };
        self.send(&offer).await?;
        let mut state = self.receive_file().await?;
        if state == FileState::Wanted {
            self.send_content(file).await?;
            state = self.receive_file().await?;
        }
        match state {
            FileState::Here(path) => Ok(path),
            FileState::Failed(why) => Err(format!("'{}' could not be staged: {why}", file.name)),
            FileState::Wanted => Err(out_of_turn()),
        }
    }

    async fn send_content(&mut self, file: &StagedFile) -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("cannot read '{}': {error}", file.path.display());
        let mut content = tokio::fs::File::open(&file.path).await.map_err(cannot)?.take(file.size);
        let mut buffer = vec![0; MAX_CHUNK];
        loop {
            let n = content.read(&mut buffer).await.map_err(cannot)?;
            if n == 0 {
                break;
            }
            self.send(&ToAgent::Chunk(buffer[..n].to_vec())).await?;
        }
        match content.limit() {
            0 => Ok(()),
            _ => Err(format!("'{}' changed while it was staged", file.path.display())),
        }
    }

    async fn send(&mut self, message: &ToAgent) -> Result<(), String> {
        self.writer.write_all(&message.encode()).await.map_err(|_| closed())
    }

    async fn receive(&mut self) -> Result<FromAgent, String> {
        tokio::time::timeout(SILENCE, next(&mut self.reader, &mut self.deframer))
            .await
            .map_err(|_| format!("its agent was silent for {} s", SILENCE.as_secs()))?
    }

    async fn receive_file(&mut self) -> Result<FileState, String> {
        match self.receive().await? {
            FromAgent::File { state, .. } => Ok(state),
            _ => Err(out_of_turn()),
        }
    }
}

async fn next(reader: &mut ReadHalf<DuplexStream>, deframer: &mut Deframer) -> Result<FromAgent, String> {
    let nonsense = |error| format!("its agent sent nonsense: {error}");
    let mut buffer = vec![0; 64 << 10];
    loop {
        if let Some(body) = deframer.next_body().map_err(nonsense)? {
            return FromAgent::decode(&body).map_err(nonsense);
        }
        match reader.read(&mut buffer).await {
            Ok(0) | Err(_) => return Err(closed()),
            Ok(n) => deframer.feed(&buffer[..n]),
        }
    }
}

fn closed() -> String {
    "the connection to its agent was closed".to_owned()
}

fn out_of_turn() -> String {
    "its agent answered out of turn".to_owned()
}
