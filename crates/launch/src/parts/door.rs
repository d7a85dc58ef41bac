// SPDX-License-Identifier: Apache-2.0
//! Where the other parts of a world come in. A stranger has four seconds and [`MAX_KNOCK`] bytes to show the secret of
//! the ticket, inside TLS; more strangers than there are places wait in the system's queue.

use super::stream::{receive, send};
use isthmus_agent::secure;
use isthmus_identity::Pinned;
use isthmus_net::{Listener, PortRange};
use isthmus_wire::gathering::{Come, FromPart, MAX_COME, MAX_KNOCK, ToPart, VERSION};
use isthmus_wire::port::PortName;
use rustls::ServerConnection;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

/// Connections that have not shown the secret.
const MAX_STRANGERS: usize = 64;
/// How long they have for that.
const KNOCK_TIME: Duration = Duration::from_secs(4);
/// How long a part may take to say what it brings.
const COME_TIME: Duration = Duration::from_secs(10);
/// How long a refusal may take to leave.
const REFUSAL_TIME: Duration = Duration::from_secs(2);

/// What happens at the door, and afterwards to those who came in.
pub(crate) enum News {
    /// Somebody with the ticket.
    Came(Box<Came>),
    /// This part has gone.
    Left(u32),
}

/// Somebody with the ticket.
pub(crate) struct Came {
    pub(crate) come: Come,
    pub(crate) stream: DuplexStream,
}

impl Came {
    /// It is no part of this world.
    pub(crate) async fn refuse(mut self, why: &str) {
        let message = ToPart::Refused(why.to_owned()).encode();
        let _ = tokio::time::timeout(REFUSAL_TIME, send(&mut self.stream, &message)).await;
    }
}

/// An open door, at which nobody answers yet.
pub(crate) struct Door {
    pub(crate) ticket: PortName,
    pinned: Pinned,
    listener: Listener,
}

/// Somebody answers as long as this lives.
pub(crate) struct Answering(JoinHandle<()>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Door {
    pub(crate) fn open() -> io::Result<Self> {
        let ports = isthmus_settings::PORTS.read(std::env::var_os);
        let ports = ports.map(|range| PortRange {
            first: *range.start(),
            last: *range.end(),
        });
        let listener = Listener::bind(ports).map_err(io::Error::other)?;
        let pinned = Pinned::new().map_err(io::Error::other)?;
        let wanted = isthmus_settings::ADDRESS.read(std::env::var_os);
        let addresses = match wanted.is_empty() {
            true => isthmus_net::local_addresses(),
            false => isthmus_net::pinned_addresses(&wanted.join(",")).map_err(io::Error::other)?,
        };
        let ticket = PortName {
            proofs: false,
            secret: isthmus_stage::guarded::random()?,
            fingerprint: pinned.fingerprint(),
            port: listener.port(),
            addresses: addresses.iter().filter_map(|address| address.parse().ok()).collect(),
            entry: None,
            gate: None,
        };
        Ok(Self {
            ticket,
            pinned,
            listener,
        })
    }

    /// Answers whoever comes; parts are told to `news`.
    pub(crate) fn serve(self, news: mpsc::UnboundedSender<News>) -> Answering {
        let Self {
            ticket,
            pinned,
            listener,
        } = self;
        Answering(tokio::spawn(async move {
            let socket = std::net::TcpListener::from(OwnedFd::from(listener));
            let Ok(listener) = socket
                .set_nonblocking(true)
                .and_then(|()| TcpListener::from_std(socket))
            else {
                return;
            };
            let strangers = Arc::new(Semaphore::new(MAX_STRANGERS));
            while let Ok(place) = Arc::clone(&strangers).acquire_owned().await {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let (config, secret, news) = (pinned.server(), ticket.secret, news.clone());
                        tokio::spawn(async move {
                            let _ = stream.set_nodelay(true);
                            let known = ServerConnection::new(config).ok().map(|tls| secure(stream, tls));
                            let Some(mut stream) = known else { return };
                            let knocked = tokio::time::timeout(KNOCK_TIME, knock(&mut stream, &secret)).await;
                            drop(place);
                            if let Ok(Some(())) = knocked {
                                let_in(stream, &news).await;
                            }
                        });
                    }
                    // Out of descriptors, most likely: leave others time to close some.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        }))
    }
}

/// Whether somebody shows the secret. A launcher of another version is told so.
async fn knock(stream: &mut DuplexStream, secret: &[u8; 16]) -> Option<()> {
    let body = receive(stream, MAX_KNOCK).await.ok()?;
    let Ok(FromPart::Knock { version, secret: shown }) = FromPart::decode(&body) else {
        return None;
    };
    // Without telling where the first difference is.
    let differs = secret.iter().zip(&shown).fold(0, |sum, (a, b)| sum | (a ^ b)) != 0;
    let why = match (differs, version) {
        (true, _) => "the ticket is not for this world, or is an old one".to_owned(),
        (_, VERSION) => return Some(()),
        (_, other) => format!("the two launchers are of different versions ({VERSION} here, {other} there)"),
    };
    let _ = send(stream, &ToPart::Refused(why).encode()).await;
    None
}

async fn let_in(mut stream: DuplexStream, news: &mpsc::UnboundedSender<News>) {
    let body = tokio::time::timeout(COME_TIME, receive(&mut stream, MAX_COME)).await;
    if let Ok(Ok(FromPart::Come(come))) = body
        .map(|body| body.map(|body| FromPart::decode(&body).ok()))
        .map(|b| b.ok().flatten().ok_or(()))
    {
        let _ = news.send(News::Came(Box::new(Came { come, stream })));
    }
}

/// The door of whoever gathers, from another part.
pub(crate) async fn dial(ticket: &PortName) -> Result<DuplexStream, String> {
    let mut tries = tokio::task::JoinSet::new();
    for address in &ticket.addresses {
        let to = (*address, ticket.port);
        tries.spawn(async move {
            let connected = tokio::time::timeout(KNOCK_TIME, TcpStream::connect(to)).await;
            let reached = connected
                .map_err(|_| "no answer".to_owned())
                .and_then(|r| r.map_err(|e| e.to_string()));
            reached.map_err(|why| format!("{} port {}: {why}", to.0, to.1))
        });
    }
    let mut refused = Vec::new();
    while let Some(tried) = tries.join_next().await {
        match tried {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return believe(stream, ticket);
            }
            Ok(Err(why)) => refused.push(why),
            Err(_) => {}
        }
    }
    match refused.is_empty() {
        true => Err("the ticket has no address".to_owned()),
        false => Err(refused.join("; ")),
    }
}

/// TLS on a connection that leads to whoever has the certificate of the ticket.
pub(crate) fn believe(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    ticket: &PortName,
) -> Result<DuplexStream, String> {
    let (config, name) = isthmus_identity::pinned_client(ticket.fingerprint).map_err(|e| e.to_string())?;
    let tls = rustls::ClientConnection::new(config, name).map_err(|e| e.to_string())?;
    Ok(secure(stream, tls))
}
