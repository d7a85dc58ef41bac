// SPDX-License-Identifier: Apache-2.0
//! Connections to processes of other jobs, for groups that join (`isthmus_core::joining`).
//!
//! Each meeting has transports of its own: a listener, a key and a certificate of an authority that is made for it. So
//! a job that never left its node, or was started without a launcher, can be joined too, and what is lost with one job
//! leaves the others alone. Connections are made when the first message goes. Processes of one node talk in memory that
//! one of them has made for the meeting.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use isthmus_core::joining::{
    Contact, Crossing, Held, Hindrance, Outcome, Passage, Prepared, Reach, Reacher, Sealed, Start, Started,
};
use isthmus_core::world::World;
use isthmus_engine::retire_transport;
use isthmus_identity::{Authority, Identity, KeyPair, MAX_VALIDITY, shown_at};
use isthmus_net::{Config, Doors, Gatekeeper, Listener};
use isthmus_shm::{Brought, Company, ShmError, ShmTransport};
use isthmus_stage::keyring;
use isthmus_wire::entry::{Entry, MAX_ENTRIES};
use isthmus_wire::gate::{Gate, Key};
use isthmus_wire::gateway::Paths;
use isthmus_wire::joined::Group;
use isthmus_wire::place::{Node, PlaceTable, Rank};
use isthmus_wire::port::Proof;
use isthmus_wire::question::{Ask, Said};

use crate::asking::{Teller, ask};
use crate::gates;
pub use crate::reaching::{addresses, listener, random};
use crate::reaching::{dial_time, is_behind_gateway};
use crate::rendezvous::Agent;
use crate::saying::say;

/// How long the launcher has time to tell of the death of a process of this node, and why it has ended, before this
/// process tells that it is gone.
const GRACE: Duration = Duration::from_secs(2);

/// Reaches others by sockets, and in memory.
pub(crate) struct Sockets {
    world: Weak<World>,
    /// Where the job meets others at a host: whom the launcher is asked by for ways through it.
    launcher: Option<Launcher>,
    /// Who has the keys of the user: the launcher, if there is one.
    keeper: Option<Launcher>,
    /// The launcher carries what cannot go directly.
    carried: AtomicBool,
    /// The gateway of the local area, if there is one.
    gates: Option<Arc<Gatekeeper>>,
    /// Who is told of meetings: the launcher, if there is one.
    seen_by: Option<Teller>,
    /// Why this process has shared no memory with some that it has met, the first time.
    apart: OnceLock<String>,
}

/// Whom a process asks for ways through the host at which its job meets others, and for proofs.
#[derive(Clone)]
struct Launcher {
    world: Weak<World>,
    agent: Weak<Mutex<Agent>>,
}

impl Launcher {
    fn ask(&self, question: Ask) -> Outcome<Said> {
        let gone = || "this process has ended its communication".to_owned();
        let (world, agent) = (self.world.upgrade(), self.agent.upgrade());
        let (world, agent) = world.zip(agent).ok_or_else(gone)?;
        ask(&world, &agent, question).map_err(said)
    }
}

/// The launcher shows a meeting as long as this is there.
struct Shown {
    launcher: Teller,
    meeting: [u8; 16],
}

impl Drop for Shown {
    fn drop(&mut self) {
        let meeting = self.meeting;
        self.launcher.tell(Ask::Parted { meeting });
    }
}

/// Ways through the host: the launcher closes them when this goes.
struct HostWays {
    launcher: Launcher,
    keys: Vec<[u8; 16]>,
    ports: Vec<u16>,
}

impl Drop for HostWays {
    fn drop(&mut self) {
        let (keys, ports) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.ports));
        if !(keys.is_empty() && ports.is_empty()) {
            // Where nobody answers any more they have ended already.
            let _ = self.launcher.ask(Ask::Leave { keys, ports });
        }
    }
}

/// A process that can be reached at a port of its own.
struct Listening {
    world: Weak<World>,
    listener: Listener,
    key: KeyPair,
    request: Vec<u8>,
    entry: Option<(Entry, HostWays)>,
    launcher: Option<Launcher>,
    gate: Option<(Gate, Held)>,
    gates: Option<Arc<Gatekeeper>>,
    memory: Option<Arc<Brought>>,
    has_launcher: bool,
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Sockets {
    /// `agent`: that of this machine, if a launcher has started the process; `gates`: the gateway there, if there is
    /// one.
    pub(crate) fn of(
        world: &Arc<World>,
        agent: Option<&Arc<Mutex<Agent>>>,
        gates: Option<Arc<Gatekeeper>>,
    ) -> Box<Self> {
        let meets = isthmus_settings::MEET.read(std::env::var_os).is_some();
        let keeper = agent.map(|agent| Launcher {
            world: Arc::downgrade(world),
            agent: Arc::downgrade(agent),
        });
        Box::new(Self {
            world: Arc::downgrade(world),
            launcher: keeper.clone().filter(|_| meets),
            keeper,
            carried: AtomicBool::new(false),
            gates,
            seen_by: agent.map(|agent| Teller::of(agent)),
            apart: OnceLock::new(),
        })
    }
}

impl Sockets {
    /// Memory for a meeting; `None`: this process shares none.
    fn memory(&self) -> Option<Brought> {
        let made = || {
            let machine = isthmus_net::machine().ok_or("the system does not say which machine this is")?;
            Brought::new(random()?, machine).map_err(said)
        };
        made().inspect_err(|why| self.apart(why)).ok()
    }
}

impl Reacher for Sockets {
    fn prepare(&self, shares: bool) -> Outcome<Box<dyn Prepared>> {
        let key = KeyPair::generate().map_err(said)?;
        let listener = listener().map_err(said)?;
        let launcher = match self.carried.load(Ordering::Relaxed) {
            true => &self.keeper,
            false => &self.launcher,
        };
        // Without an entry it may still be reached directly, and the launcher has told the user.
        let port = listener.port();
        let gate = self.gate(port);
        let by = gate.as_ref().map(|(gate, _)| gate);
        let entry = enter(launcher.as_ref(), port, by).ok().flatten();
        let kept = |entry: Entry| {
            let kept = HostWays {
                launcher: launcher.clone()?,
                keys: vec![entry.key],
                ports: Vec::new(),
            };
            Some((entry, kept))
        };
        Ok(Box::new(Listening {
            world: self.world.clone(),
            listener,
            request: key.signing_request().map_err(said)?,
            key,
            entry: entry.and_then(kept),
            gate,
            gates: self.gates.clone(),
            launcher: launcher.clone(),
            memory: shares.then(|| self.memory()).flatten().map(Arc::new),
            has_launcher: self.keeper.is_some(),
        }))
    }

    fn apart(&self, why: &str) {
        let is_first = self.apart.set(why.to_owned()).is_ok();
        if is_first && isthmus_settings::STATS.read(std::env::var_os) {
            say(&format!("processes of this node that have met talk by TCP: {why}"));
        }
    }

    fn carry(&self) {
        self.carried.store(true, Ordering::Relaxed);
    }

    fn seal(&self, requests: &[&[u8]]) -> Outcome<Sealed> {
        let name: [u8; 16] = random()?;
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        let authority = Authority::new(&name).map_err(said)?;
        let certificates = (0..)
            .zip(requests)
            .map(|(rank, request)| authority.sign(request, rank, MAX_VALIDITY));
        Ok(Sealed {
            secret: random()?,
            certificates: certificates.collect::<Result<_, _>>().map_err(said)?,
            authority: authority.certificate().to_vec(),
            name,
        })
    }

    fn enter(&self, port: u16, gate: Option<&Gate>) -> Outcome<Option<Entry>> {
        enter(self.launcher.as_ref(), port, gate)
    }

    fn cross(&self, entries: &[Entry]) -> Outcome<Crossing> {
        cross(self.launcher.as_ref(), self.gates.as_ref(), entries)
    }

    fn gate(&self, port: u16) -> Option<(Gate, Held)> {
        gates::enter(self.gates.as_ref()?, port)
    }

    fn pass(&self, to: Vec<SocketAddr>, knock: Option<Key>) -> Option<Passage> {
        gates::pass(self.gates.as_ref()?, to, knock)
    }

    fn prove(&self, secret: &[u8; 16], fingerprint: &[u8; 32], keys: &[String]) -> Outcome<Vec<Proof>> {
        let Some(launcher) = &self.keeper else {
            let keys = keyring::keys(keys).map_err(|refusal| refusal.why)?;
            return Ok(keys.iter().map(|key| shown_at(key, secret, fingerprint)).collect());
        };
        let question = Ask::Prove {
            secret: *secret,
            fingerprint: *fingerprint,
            keys: keys.to_vec(),
        };
        match launcher.ask(question)? {
            Said::Proofs(proofs) => Ok(proofs),
            _ => Err("the launcher answered what was not asked; please report this".to_owned()),
        }
    }

    fn show(&self, meeting: [u8; 16], with: Vec<Group>) -> Option<Held> {
        let launcher = self.seen_by.clone()?;
        launcher.tell(Ask::Met { meeting, with });
        Some(Box::new(Shown { launcher, meeting }))
    }
}

fn enter(launcher: Option<&Launcher>, port: u16, gate: Option<&Gate>) -> Outcome<Option<Entry>> {
    let Some(launcher) = launcher else {
        return Ok(None);
    };
    let gate = gate.map(|gate| gate.key);
    match launcher.ask(Ask::Enter { port, gate })? {
        Said::Entry(entry) => Ok(Some(entry)),
        _ => Ok(None),
    }
}

fn cross(launcher: Option<&Launcher>, gateway: Option<&Arc<Gatekeeper>>, entries: &[Entry]) -> Outcome<Crossing> {
    let Some(launcher) = launcher else {
        let host = entries.first().map_or("HOST", |entry| &entry.host);
        return Err(format!(
            "it can be reached through '{host}', where this job meets nobody: start this job with isthmus run --meet {host}, too"
        ));
    };
    let mut kept = HostWays {
        launcher: launcher.clone(),
        keys: Vec::new(),
        ports: Vec::new(),
    };
    let mut there = false;
    for some in entries.chunks(MAX_ENTRIES) {
        let entries = some.to_vec();
        match launcher.ask(Ask::Cross { entries })? {
            Said::Ports { ports, at_gateway } if ports.len() == some.len() => {
                kept.ports.extend(ports);
                there = at_gateway;
            }
            _ => return Err("the launcher answered what was not asked; please report this".to_owned()),
        }
    }
    let here = |port: &u16| SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
    let all: Vec<SocketAddr> = kept.ports.iter().map(here).collect();
    if !there {
        return Ok(Crossing {
            doors: all.into_iter().map(|port| vec![(port, None)]).collect(),
            held: Box::new(kept),
        });
    }
    let led = gateway.and_then(|gateway| gates::lead(gateway, all));
    let (doors, led) = led.ok_or("the gateway of this local area does not lead to the ways of the launcher")?;
    Ok(Crossing {
        doors,
        held: Box::new((kept, led)),
    })
}

/// The members' places, with further addresses for those that are at another site and can be entered through the host
/// at which the jobs meet; and doors of the gateway that lead there.
fn with_crossing(
    start: &Start<'_>,
    launcher: Option<&Launcher>,
    gateway: Option<&Arc<Gatekeeper>>,
) -> (Arc<PlaceTable>, Doors, Option<Crossing>) {
    let far = |rank: u32| (start.reach)(rank) == Some(Reach::Far);
    let all = (0..).zip(&start.entries).filter(|(rank, _)| far(*rank));
    let (ranks, entries): (Vec<u32>, Vec<Entry>) = all.filter_map(|(rank, entry)| Some((rank, entry.clone()?))).unzip();
    let crossing = launcher.filter(|_| !entries.is_empty());
    // Without it they may still be reached directly.
    let Some(crossing) = crossing.and_then(|launcher| cross(Some(launcher), gateway, &entries).ok()) else {
        return (start.places.clone(), Doors::new(), None);
    };
    let mut table = PlaceTable::clone(&start.places);
    let mut knocked = Doors::new();
    for (rank, doors) in ranks.into_iter().zip(&crossing.doors) {
        let behind = doors.iter().filter_map(|(door, key)| Some((*door, (*key)?)));
        knocked.insert(rank, behind.collect());
        let place = &mut table.places[rank as usize];
        let node = &table.nodes[place.node as usize];
        let mut addresses = node.addresses.clone();
        addresses.extend(
            doors
                .iter()
                .filter(|(_, key)| key.is_none())
                .map(|(door, _)| door.to_string()),
        );
        let node = Node {
            addresses,
            processes: 1,
            ..node.clone()
        };
        place.node = table.nodes.len() as u32;
        table.nodes.push(node);
    }
    (Arc::new(table), knocked, Some(crossing))
}

/// Enters the memory of those of this node that this process gets to know; `None`: there are none.
fn share(brought: &Brought, start: &Start<'_>, grace: Duration) -> Result<Option<ShmTransport>, ShmError> {
    let ranks = 0..start.places.places.len() as u32;
    let peers: Vec<u32> = ranks.filter(|&rank| (start.reach)(rank) == Some(Reach::Node)).collect();
    if peers.is_empty() {
        return Ok(None);
    }
    // Those that know each other already have a place there, too: all members find the same places.
    let node = brought.memory().node;
    let members = (0..).zip(&start.memories);
    let members =
        members.filter_map(|(rank, memory)| Some((rank, memory.as_ref().filter(|memory| memory.node == node)?)));
    let members: Vec<_> = members.collect();
    let me = members.iter().position(|(rank, _)| *rank == start.me);
    let processes = start.engine.lock().core.processes().clone();
    let company = Company {
        me: me.unwrap_or(usize::MAX),
        members,
        peers,
        processes,
        grace,
    };
    ShmTransport::met(brought, company).map(Some)
}

impl Prepared for Listening {
    fn contact(&self) -> Contact {
        Contact {
            // It is near nobody then, whom it reaches as it does those of other sites.
            machine: isthmus_net::machine().unwrap_or_else(|| random().unwrap_or_default()),
            addresses: match is_behind_gateway() {
                // For those on this node.
                true => vec!["127.0.0.1".to_owned()],
                false => addresses(),
            },
            port: self.listener.port(),
            request: self.request.clone(),
            entry: self.entry.as_ref().map(|(entry, _)| entry.clone()),
            gate: self.gate.as_ref().map(|(gate, _)| gate.clone()),
            memory: self.memory.as_ref().map(|brought| brought.memory()),
        }
    }

    fn keep(&self) -> Held {
        Box::new(self.memory.clone())
    }

    fn start(self: Box<Self>, start: Start<'_>) -> Result<Started, Hindrance> {
        // Without a launcher nobody else tells of deaths.
        let grace = if self.has_launcher { GRACE } else { Duration::ZERO };
        let memory = self.memory.as_ref();
        let shared = memory.map(|memory| share(memory, &start, grace)).transpose();
        let shared = shared.map_err(|error| Hindrance::Memory(said(error)))?.flatten();
        let engine = start.engine;
        let node = shared.map(|shared| engine.add_transport(Box::new(shared))).transpose();
        let node = node.map_err(said)?;
        let mut ranks = 0..start.places.places.len() as u32;
        let goes_out = ranks.any(|rank| matches!((start.reach)(rank), Some(Reach::Near | Reach::Far)));
        let connected = match goes_out {
            true => self.connect(start),
            false => Ok(Started::default()),
        };
        match connected {
            Ok(mut started) => {
                started.ways.node = node;
                Ok(started)
            }
            Err(why) => {
                if let Some(node) = node {
                    let gone = retire_transport(&mut engine.lock(), node, &why);
                    // Its end takes a while, and others want the engine.
                    drop(gone);
                }
                Err(why.into())
            }
        }
    }
}

impl Listening {
    /// Transports to those that memory does not reach.
    fn connect(self, start: Start<'_>) -> Outcome<Started> {
        let (places, knocked, crossing) = with_crossing(&start, self.launcher.as_ref(), self.gates.as_ref());
        let (mut doors, passage) = gates::doors(&start, self.gates.as_ref());
        for (rank, some) in knocked {
            doors.entry(rank).or_default().extend(some);
        }
        let identity = Identity::new(start.name, start.me, &self.key, start.certificate, start.authority);
        let (reach, area) = (start.reach, start.area);
        let processes = start.engine.lock().core.processes().clone();
        let net = isthmus_net::start(Config {
            processes,
            job: start.job,
            me: Rank(start.me),
            dial_time: dial_time(&places),
            places,
            reach: Arc::new(move |rank| match reach(rank.0) {
                None | Some(Reach::Node) => isthmus_net::Reach::Otherwise,
                Some(Reach::Near) => isthmus_net::Reach::Tcp,
                Some(Reach::Far) => isthmus_net::Reach::Tls,
            }),
            secret: start.secret,
            identity: Some(identity.map_err(said)?),
            listener: self.listener,
            paths: Paths::default(),
            doors,
            area: Arc::new(move |rank| area.clusters_of(rank.0)[0]),
            away_time: isthmus_settings::AWAY.read(std::env::var_os),
        })
        .map_err(said)?;
        let mut started = Started::default();
        started.held.extend(crossing.map(|crossing| crossing.held));
        started.held.extend(passage);
        started.held.extend(self.gate.map(|(_, held)| held));
        if let Some((_, kept)) = self.entry {
            started.held.push(Box::new(kept));
        }
        let ways = &mut started.ways;
        if let Some(tcp) = net.tcp {
            ways.near = Some(start.engine.add_transport(Box::new(tcp)).map_err(said)?);
        }
        if let Some(wide) = net.wide {
            let hook = wide.arrival_hook();
            ways.far = Some(start.engine.add_transport(Box::new(wide)).map_err(said)?);
            // On a system without what that needs, progress is made in calls of MPI only.
            if start.engine.invite() {
                let world = self.world;
                hook.set(Arc::new(move || {
                    if let Some(world) = world.upgrade() {
                        world.engine().progress_from_thread();
                    }
                }));
            }
        }
        Ok(started)
    }
}
