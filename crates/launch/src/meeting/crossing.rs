// SPDX-License-Identifier: Apache-2.0
//! Ports of this machine that lead to processes which those of this job cannot reach themselves, one for each process
//! that somebody talks to: through the host to those of other jobs, or by this launcher's own connections to those of
//! this one.

use super::beyond::{Beyond, Inside, PIECE, both_ways, by_socket};
use super::client::Client;
use super::entries::Entries;
use crate::happening::Process;
use isthmus_wire::entry::{Entry, knock};
use isthmus_wire::question::{Kind, Refusal};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, copy_buf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// What the other launcher says first: the process listens.
pub(super) const HERE: u8 = 1;
/// It does not any more, or never has.
pub(super) const GONE: u8 = 0;
/// Most crossings of a job.
const MAX_CROSSINGS: usize = 8192;
/// A launcher to which no connection could be made for so long, while the host is reached, is gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the connection of ssh is to be had: by port at the host, the socket here. Those of an earlier connection are
/// gone.
type Sockets = Arc<Mutex<HashMap<u16, (u64, PathBuf)>>>;

/// Where crossings lead.
#[derive(Clone)]
enum Leads {
    /// Through the host.
    Host(Sockets),
    /// To processes that this launcher reaches.
    Own(Entries),
}

struct Crossing {
    entry: Entry,
    /// Who uses it, and how often it was opened.
    users: BTreeMap<Process, u32>,
    task: JoinHandle<()>,
}

impl Drop for Crossing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// All of a job, by port.
pub(super) struct Crossings {
    all: HashMap<u16, Crossing>,
    /// Ports at other sites that lead to those: by site and port there.
    backs: HashMap<(String, u16), (u16, Beyond)>,
    leads: Leads,
}

impl Crossings {
    /// They lead through the host.
    pub(super) fn through_host() -> Self {
        Self::leading(Leads::Host(Sockets::default()))
    }

    /// They lead to processes that have entered here.
    pub(super) fn to(entries: Entries) -> Self {
        Self::leading(Leads::Own(entries))
    }

    fn leading(leads: Leads) -> Self {
        Self {
            all: HashMap::new(),
            backs: HashMap::new(),
            leads,
        }
    }

    /// The port for an entry, of the machine where the process is.
    pub(super) async fn open(&mut self, by: Process, entry: &Entry, at: Option<&Beyond>) -> Result<u16, Refusal> {
        let port = self.open_here(by, entry)?;
        let Some(site) = at else { return Ok(port) };
        let leads_here =
            |((place, _), (here, _)): &(&(String, u16), &(u16, Beyond))| *here == port && *place == site.destination;
        // Processes of one launcher that meet ask at the same time, and share the way. Who comes to a port of another
        // job may come much later, when the connection that had the way has broken.
        let shared = matches!(self.leads, Leads::Own(_)).then(|| self.backs.iter().find(leads_here));
        if let Some(((_, there), _)) = shared.flatten() {
            return Ok(*there);
        }
        match site.port_to(port).await {
            Ok(there) => {
                self.backs
                    .insert((site.destination.clone(), there), (port, site.clone()));
                Ok(there)
            }
            Err(why) => {
                self.close(by, port, None);
                Err(Refusal::new(Kind::Unable, why))
            }
        }
    }

    fn open_here(&mut self, by: Process, entry: &Entry) -> Result<u16, Refusal> {
        let cannot = |why: String| Refusal::new(Kind::Unable, format!("no way through '{}': {why}", entry.host));
        let known = self
            .all
            .iter_mut()
            .find(|(_, one)| one.entry == *entry && !one.task.is_finished());
        if let Some((port, crossing)) = known {
            *crossing.users.entry(by).or_default() += 1;
            return Ok(*port);
        }
        if self.all.len() >= MAX_CROSSINGS {
            return Err(cannot(format!("this job has {MAX_CROSSINGS} already")));
        }
        let listener = listens().map_err(|error| cannot(error.to_string()))?;
        let port = listener.local_addr().map_err(|error| cannot(error.to_string()))?.port();
        let crossing = Crossing {
            entry: entry.clone(),
            users: BTreeMap::from([(by, 1)]),
            task: tokio::spawn(carry(listener, entry.clone(), self.leads.clone())),
        };
        self.all.insert(port, crossing);
        Ok(port)
    }

    /// The connection of ssh leads to this port at the host.
    pub(super) async fn lead_to(&self, port: u16, client: &Client) -> Result<(), String> {
        let Leads::Host(sockets) = &self.leads else {
            return Ok(());
        };
        let known =
            |sockets: &HashMap<u16, (u64, PathBuf)>| sockets.get(&port).is_some_and(|(turn, _)| *turn == client.turn());
        if known(&sockets.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        let path = client.forward(port).await?;
        let mut sockets = sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.insert(port, (client.turn(), path));
        Ok(())
    }

    /// The host is reached anew: so are all to whom there are crossings.
    pub(super) async fn renew(&self, client: &Client) {
        let mut ports: Vec<u16> = self.all.values().map(|crossing| crossing.entry.port).collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            // Without it connections fail, and who makes them tries again.
            let _ = self.lead_to(port, client).await;
        }
    }

    /// A process does not use a port of its machine any more.
    pub(super) fn close(&mut self, by: Process, port: u16, at: Option<&Beyond>) {
        let port = match at.map(|site| self.backs.get(&(site.destination.clone(), port))) {
            Some(Some((here, _))) => *here,
            Some(None) => return,
            None => port,
        };
        let Some(crossing) = self.all.get_mut(&port) else {
            return;
        };
        if let Some(count) = crossing.users.get_mut(&by) {
            *count -= 1;
            if *count == 0 {
                crossing.users.remove(&by);
            }
        }
        if crossing.users.is_empty() {
            self.all.remove(&port);
            self.end_backs();
        }
    }

    /// Ports at other sites that lead nowhere any more.
    fn end_backs(&mut self) {
        let all = &self.all;
        self.backs.retain(|_, (here, site)| {
            let leads = all.contains_key(here);
            if !leads {
                let (site, here) = (site.clone(), *here);
                tokio::spawn(async move { site.end_port_to(here).await });
            }
            leads
        });
    }

    /// A process has ended.
    pub(super) fn forget(&mut self, by: Process) {
        self.all.retain(|_, crossing| {
            crossing.users.remove(&by);
            !crossing.users.is_empty()
        });
        self.end_backs();
    }
}

/// Connections that wait in the system: all processes of a job may come at once, and one for which there is no room is
/// held up for seconds.
const QUEUE: u32 = 4096;

/// A port of this machine, for those here.
pub(super) fn listens() -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    socket.listen(QUEUE)
}

/// Tells how connections have ended.
type Tell = tokio::sync::mpsc::UnboundedSender<End>;

/// How a connection ended.
enum End {
    /// It was made.
    Served,
    /// The launcher at the other end says that the process is gone.
    Gone,
    /// Nobody answered there.
    Failed,
}

/// Serves connections to one process until that is gone: then nobody listens any more, and who dials knows.
async fn carry(listener: TcpListener, entry: Entry, leads: Leads) {
    let (tell, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let mut failing: Option<(Instant, u32)> = None;
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (tell, entry, leads) = (tell.clone(), entry.clone(), leads.clone());
                    tasks.spawn(async move {
                        let _ = stream.set_nodelay(true);
                        match leads {
                            Leads::Host(sockets) => through_host(stream, &sockets, &entry, &tell).await,
                            Leads::Own(entries) => straight(stream, entries.find(&entry.key), &tell).await,
                        }
                    });
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(end) = ends.recv() => match end {
                End::Served => failing = None,
                End::Gone => break,
                End::Failed => {
                    let (since, count) = failing.map_or_else(|| (Instant::now(), 1), |(since, count)| (since, count + 1));
                    failing = Some((since, count));
                    if count >= 3 && since.elapsed() >= PATIENCE {
                        break;
                    }
                }
            },
            Some(_) = tasks.join_next() => {}
        }
    }
    drop(listener);
    // Those that are there end by themselves.
    while tasks.join_next().await.is_some() {}
}

/// To a process that has entered here.
async fn straight(inner: TcpStream, known: Option<Inside>, tell: &Tell) {
    let Some(inside) = known else {
        let _ = tell.send(End::Gone);
        return;
    };
    let outer = inside.connect().await;
    let _ = tell.send(match &outer {
        Some(_) => End::Served,
        None => End::Failed,
    });
    if let Some(outer) = outer {
        both_ways(inner, outer).await;
    }
}

async fn through_host(inner: TcpStream, sockets: &Sockets, entry: &Entry, tell: &Tell) {
    let known = |sockets: &Sockets| {
        let sockets = sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.get(&entry.port).map(|(_, path)| path.clone())
    };
    let Some(path) = known(sockets) else { return };
    // Without the connection to the host nothing is known of the process.
    let Ok(mut outer) = by_socket(&path).await else {
        return;
    };
    if outer.write_all(&knock(&entry.key)).await.is_err() {
        return;
    }
    let (mut from_outer, mut to_outer) = outer.into_split();
    let (from_inner, mut to_inner) = inner.into_split();
    // What the process says is on its way before it is known whether somebody hears it: that saves a round trip.
    let out = tokio::spawn(async move {
        let mut from_inner = BufReader::with_capacity(PIECE, from_inner);
        let _ = copy_buf(&mut from_inner, &mut to_outer).await;
        let _ = to_outer.shutdown().await;
    });
    let end = match from_outer.read_u8().await {
        Ok(HERE) => End::Served,
        Ok(_) => End::Gone,
        Err(_) => End::Failed,
    };
    let served = matches!(end, End::Served);
    let _ = tell.send(end);
    if served {
        let mut from_outer = BufReader::with_capacity(PIECE, from_outer);
        let _ = copy_buf(&mut from_outer, &mut to_inner).await;
        let _ = to_inner.shutdown().await;
        let _ = out.await;
    } else {
        out.abort();
    }
}
