// SPDX-License-Identifier: Apache-2.0
//! Processes on other machines than their launcher's: the launcher's own ssh connection to their site carries what
//! goes to and from the host at which jobs meet.
//!
//! ```text
//!  site                          this machine                              the host
//!    process listens  <--- ssh -L: a socket here  <--- door  <---------------
//!    process dials  ---> ssh -R: a port there ---> crossing  --------------->
//! ```
//! Where the process is on a node behind that site's machine, these ports are those of the machine, and the gateway of
//! the local area, which is there, leads from them to the node and back ([`isthmus_wire::gate`]).
//!
//! Ways belong to that connection: when it has broken, those to a process that listens are made again when somebody
//! comes, those for a process that dials when it asks again.

use isthmus_job::{Contact, Subjob};
use isthmus_reach::Access;
use isthmus_wire::entry::knock;
use isthmus_wire::gate::{HERE, Key};
use isthmus_wire::question::{Kind, Refusal};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, copy_buf};
use tokio::net::{TcpStream, UnixStream};

/// Bytes that are passed on at once.
pub(super) const PIECE: usize = 128 << 10;
/// How long a gateway may take to reach a process, and an ssh client to take a connection.
const ANSWER: Duration = Duration::from_secs(6);
/// When a connection is tried again for which an ssh client had no room.
const AGAIN: Duration = Duration::from_millis(10);

/// A site that this launcher reaches by ssh.
#[derive(Clone, Debug)]
pub(crate) struct Beyond {
    pub(crate) access: Arc<Access>,
    pub(crate) destination: String,
}

impl Beyond {
    /// A port there that leads to one of this machine.
    pub(super) async fn port_to(&self, port: u16) -> Result<u16, String> {
        let told = self.tell("forward", "-R", &back(port)).await?;
        told.trim()
            .parse()
            .map_err(|_| "the ssh client has not said which port the server has chosen".to_owned())
    }

    /// It is not needed any more.
    pub(super) async fn end_port_to(&self, port: u16) {
        // With the connection it ends in any case.
        let _ = self.tell("cancel", "-R", &back(port)).await;
    }

    /// The ssh client that has the connection is told something.
    async fn tell(&self, verb: &str, direction: &str, way: &str) -> Result<String, String> {
        let told = self
            .access
            .tell_client(&self.destination, &["-O", verb, direction, way])
            .await;
        told.map_err(|why| {
            format!(
                "the ssh connection to '{}' carries nothing else: {why}",
                self.destination
            )
        })
    }
}

fn back(port: u16) -> String {
    format!("127.0.0.1:0:127.0.0.1:{port}")
}

/// The machine to which the ways of a process lead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spot {
    /// The site; `None`: it is this machine.
    pub(crate) at: Option<Beyond>,
    /// The process is on a node that only the gateway on that machine reaches, which listens at this port.
    pub(crate) gateway: Option<u16>,
}

/// Where the ways of processes of a subjob are to lead; `gateway`: the machine that has the one of their local area,
/// and its port.
pub(crate) fn spot(access: &Arc<Access>, subjob: &Subjob, gateway: Option<(&Contact, u16)>) -> Result<Spot, Refusal> {
    let at = |contact: &Contact| match contact {
        Contact::Home => Some(None),
        Contact::Ssh(destination) => Some(Some(Beyond {
            access: access.clone(),
            destination: destination.clone(),
        })),
        Contact::Part(_) => None,
    };
    if let Contact::Part(_) = subjob.contact {
        let why = format!(
            "site '{}' belongs to another part, whose launcher has no --meet; give it there too",
            subjob.site
        );
        return Err(Refusal::new(Kind::Unable, why));
    }
    let spot = match (&subjob.allocation, gateway) {
        (None, _) => at(&subjob.contact).map(|at| Spot { at, gateway: None }),
        (Some(_), Some((contact, port))) => at(contact).map(|at| Spot {
            at,
            gateway: Some(port),
        }),
        (Some(_), None) => None,
    };
    spot.ok_or_else(|| {
        let why = format!(
            "connections through the meeting host (--meet) lead to nodes of a scheduler by the gateway of their site, and site \
             '{}' has none that this launcher reaches: path=direct forbids it, or it belongs to another part",
            subjob.site
        );
        Refusal::new(Kind::Unable, why)
    })
}

/// That a site's processes have no ways through the host, for people.
pub(crate) fn without_ways(why: &str) -> String {
    format!("{why}; its processes are reached by other jobs directly, or not at all")
}

/// Where a process listens.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    pub(super) port: Port,
    /// What is knocked with there: it is the gateway's port.
    pub(super) knock: Option<Key>,
}

/// A port to which connections are made.
#[derive(Clone, Debug)]
pub(super) enum Port {
    /// Of this machine.
    Here(u16),
    /// Of another machine, to which a socket here leads.
    There(Arc<There>),
}

/// A port at a site.
#[derive(Debug)]
pub(super) struct There {
    pub(super) site: Beyond,
    pub(super) port: u16,
    /// Of the socket.
    pub(super) path: PathBuf,
}

/// A connection to a process.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Inside {
    /// The process; `None`: nobody listens.
    pub(super) async fn connect(&self) -> Option<Box<dyn Stream>> {
        let mut stream = self.port.connect().await?;
        if let Some(key) = &self.knock {
            stream.write_all(&knock(key)).await.ok()?;
            let answer = tokio::time::timeout(ANSWER, stream.read_u8()).await;
            answer.ok()?.ok().filter(|said| *said == HERE)?;
        }
        Some(stream)
    }

    /// It is not needed any more.
    pub(super) fn end(&self) {
        if let Port::There(there) = &self.port {
            let there = Arc::clone(there);
            tokio::spawn(async move { there.end().await });
        }
    }
}

impl Port {
    async fn connect(&self) -> Option<Box<dyn Stream>> {
        match self {
            Self::Here(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port)).await.ok()?;
                let _ = stream.set_nodelay(true);
                Some(Box::new(stream))
            }
            Self::There(there) => {
                if let Ok(stream) = by_socket(&there.path).await {
                    return Some(Box::new(stream));
                }
                there.make().await.ok()?;
                Some(Box::new(by_socket(&there.path).await.ok()?))
            }
        }
    }
}

/// Connects with an ssh client here. That takes one after the other, and a few more wait: the others try again.
pub(super) async fn by_socket(path: &Path) -> std::io::Result<UnixStream> {
    let until = Instant::now() + ANSWER;
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                tokio::time::sleep(AGAIN).await
            }
            other => return other,
        }
    }
}

impl There {
    fn way(&self) -> String {
        let path: &Path = &self.path;
        format!("{}:127.0.0.1:{}", path.display(), self.port)
    }

    /// The socket leads there from now on.
    pub(super) async fn make(&self) -> Result<(), String> {
        // That of a connection that has ended stays.
        let _ = std::fs::remove_file(&self.path);
        self.site.tell("forward", "-L", &self.way()).await.map(drop)
    }

    /// It is not needed any more.
    async fn end(&self) {
        let _ = self.site.tell("cancel", "-L", &self.way()).await;
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Passes on what comes from either until both have ended.
pub(super) async fn both_ways(a: impl Stream, b: impl Stream) {
    let ((from_a, to_a), (from_b, to_b)) = (tokio::io::split(a), tokio::io::split(b));
    tokio::join!(one_way(from_a, to_b), one_way(from_b, to_a));
}

async fn one_way(from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let mut from = BufReader::with_capacity(PIECE, from);
    let _ = copy_buf(&mut from, &mut to).await;
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_job::transfer::Transfers;

    #[test]
    fn a_site_of_another_part_has_its_ways_by_the_launcher_of_that_part() {
        let site = |contact| Subjob {
            site: "lab".to_owned(),
            contact,
            count: 1,
            lan: "lab".to_owned(),
            sections: Vec::new(),
            environment: Vec::new(),
            directory: None,
            allocation: None,
            forks: false,
            stage: true,
            requests: Vec::new(),
            setup: Vec::new(),
            files: Transfers::default(),
        };
        let access = Arc::new(Access::new(Path::new("/bin/true"), "ssh", false));
        assert!(spot(&access, &site(Contact::Home), None).is_ok_and(|spot| spot.at.is_none()));
        // Whatever gateway its local area has.
        for gateway in [None, Some((&Contact::Home, 7))] {
            let refused = spot(&access, &site(Contact::Part(2)), gateway).expect_err("it is not ours");
            assert!(refused.why.contains("'lab' belongs to another part"), "{refused:?}");
        }
    }

    #[test]
    fn the_client_that_has_the_connection_is_asked_and_its_refusal_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        let client = place.path().join("client");
        let script = "case \"$*\" in *-O\\ forward\\ -R\\ 127.0.0.1:0:127.0.0.1:7\\ --\\ lab) echo 40001;; \
                      *) echo no such master >&2; exit 255;; esac\n";
        std::fs::write(&client, script).expect("it is ours");
        let site = Beyond {
            access: Arc::new(Access::new(
                Path::new("/bin/true"),
                &format!("sh {}", client.display()),
                false,
            )),
            destination: "lab".to_owned(),
        };
        let there = There {
            site: site.clone(),
            port: 9,
            path: place.path().join("in"),
        };
        let inside = Inside {
            port: Port::There(Arc::new(there)),
            knock: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("threads").block_on(async {
            assert_eq!(site.port_to(7).await, Ok(40001));
            let why = site.port_to(8).await.expect_err("the client refuses");
            assert!(why.contains("'lab'") && why.contains("no such master"), "{why}");
            assert!(inside.connect().await.is_none(), "no way leads there");
        });
    }
}
