// SPDX-License-Identifier: Apache-2.0
//! Where the nodes of a submission connect.
//!
//! A connection begins with TLS, or with a request for the `isthmus` binary, which anybody may have. Inside TLS only
//! the secret of the submission opens anything; a stranger costs at most [`MAX_NODE_HELLO`] bytes and [`HELLO_TIME`].

use super::door::{Door, Files};
use super::nodes;
use crate::event::Event;
use crate::secure::secure;
use isthmus_identity::Pinned;
use isthmus_stage::own;
use isthmus_wire::codec::Deframer;
use isthmus_wire::grid::{MAX_NODE_HELLO, NodeHello};
use rustls::ServerConnection;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Longest time from connection to hello.
const HELLO_TIME: Duration = Duration::from_secs(15);
/// Longest time for fetching the binary.
const FETCH_TIME: Duration = Duration::from_secs(120);
/// Most connections that have not proven themselves.
const MAX_STRANGERS: usize = 256;
/// First byte of a TLS connection.
const TLS: u8 = 22;

/// Listens on all interfaces until the submission is over.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) port: u16,
    pub(super) fingerprint: [u8; 32],
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn listen(
    secret: [u8; 32],
    binary: PathBuf,
    files: Files,
    events: mpsc::Sender<Event>,
) -> io::Result<Listener> {
    let pinned = Pinned::new().map_err(io::Error::other)?;
    // Both families where the system has both.
    let listener = std::net::TcpListener::bind("[::]:0").or_else(|_| std::net::TcpListener::bind("0.0.0.0:0"))?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let port = listener.local_addr()?.port();
    let door = Arc::new(Door {
        secret,
        binary,
        files,
        events,
        config: pinned.server(),
    });
    let task = tokio::spawn(accept(listener, door));
    Ok(Listener {
        port,
        fingerprint: pinned.fingerprint(),
        task,
    })
}

async fn accept(listener: TcpListener, door: Arc<Door>) {
    let strangers = Arc::new(Semaphore::new(MAX_STRANGERS));
    loop {
        let Ok(stranger) = Arc::clone(&strangers).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(admit(stream, Arc::clone(&door), stranger));
            }
            // Out of descriptors, most likely: leave others time to close some.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn admit(stream: TcpStream, door: Arc<Door>, stranger: OwnedSemaphorePermit) {
    let mut first = [0];
    let peeked = tokio::time::timeout(HELLO_TIME, stream.peek(&mut first)).await;
    match peeked {
        Ok(Ok(1)) if first[0] == TLS => {}
        Ok(Ok(1)) => {
            let _ = tokio::time::timeout(FETCH_TIME, give_binary(stream, &door.binary)).await;
            return;
        }
        _ => return,
    }
    let Ok(connection) = ServerConnection::new(door.config.clone()) else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let mut plain = secure(stream, connection);
    let mut deframer = Deframer::default();
    let hello = tokio::time::timeout(HELLO_TIME, hello(&mut plain, &mut deframer)).await;
    let Ok(Some(hello)) = hello else { return };
    if !is_equal(&hello.secret, &door.secret) {
        return;
    }
    drop(stranger);
    nodes::serve(plain, deframer, &hello, &door).await;
}

async fn give_binary(mut stream: TcpStream, binary: &std::path::Path) -> io::Result<()> {
    // To its newline: unread bytes would reset the connection at its end.
    let mut request = [0; isthmus_sched::FETCH.len() + 1];
    stream.read_exact(&mut request).await?;
    if request[..] != *format!("{}\n", isthmus_sched::FETCH).as_bytes() {
        return Ok(());
    }
    let mut file = tokio::fs::File::open(own::found(binary)).await?;
    tokio::io::copy(&mut file, &mut stream).await?;
    stream.shutdown().await
}

async fn hello(stream: &mut DuplexStream, deframer: &mut Deframer) -> Option<NodeHello> {
    let mut buffer = [0; MAX_NODE_HELLO];
    let mut received = 0;
    loop {
        if let Some(body) = deframer.next_body().ok()? {
            return NodeHello::decode(&body).ok();
        }
        // Not a byte of what follows the hello is taken from somebody who is not known yet.
        let wanted = MAX_NODE_HELLO.checked_sub(received).filter(|n| *n > 0)?;
        let n = stream.read(&mut buffer[..wanted]).await.ok()?;
        if n == 0 {
            return None;
        }
        received += n;
        deframer.feed(&buffer[..n]);
    }
}

/// Compares without telling where the first difference is.
fn is_equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
