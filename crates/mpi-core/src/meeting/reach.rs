// SPDX-License-Identifier: Apache-2.0
//! What the room that knows transports does for groups that meet.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;

use isthmus_engine::{Job, Shared};
use isthmus_topology::Topology;
use isthmus_wire::entry::Entry;
use isthmus_wire::gate::{Gate, Key};
use isthmus_wire::joined::Group;
use isthmus_wire::joining::Memory;
use isthmus_wire::place::PlaceTable;
use isthmus_wire::port::Proof;

use crate::error::Result;

/// What the room that knows transports has to say; an error is a sentence for people.
pub type Outcome<T> = std::result::Result<T, String>;

/// How a leader talks to the leader of the other group.
pub trait Exchange {
    /// Gives these bytes, and gets as many as the other one gives.
    fn exchange(&mut self, mine: &[u8]) -> Result<Vec<u8>>;

    /// The same for the last time. What this end gives binds its group: only the loss of the other leader is a reason
    /// to end without an answer.
    fn conclude(&mut self, mine: &[u8]) -> Result<Vec<u8>> {
        self.exchange(mine)
    }
}

/// Makes connections to processes of other jobs. Errors are sentences for people.
pub trait Reacher: Send + Sync {
    /// This process can be reached from now on by those that it will be introduced to. `shares`: in memory too, by
    /// those of its node.
    fn prepare(&self, shares: bool) -> Outcome<Box<dyn Prepared>>;

    /// Processes of one node will not share memory in a meeting, for this reason.
    fn apart(&self, why: &str) {
        let _ = why;
    }

    /// From now on the launcher of this process carries what it and others of that launcher that it meets cannot send
    /// directly or through gateways.
    fn carry(&self) {}

    /// An authority for this meeting, which signs these requests: certificates for the ranks from 0 on.
    fn seal(&self, requests: &[&[u8]]) -> Outcome<Sealed>;

    /// How others come to a TCP port of this process through the host at which its job meets others; `None`: it meets
    /// at none. `gate`: how they come to it through the gateway of its local area.
    fn enter(&self, port: u16, gate: Option<&Gate>) -> Outcome<Option<Entry>>;

    /// Ways that lead through that host to others.
    fn cross(&self, entries: &[Entry]) -> Outcome<Crossing>;

    /// How others come to a TCP port of this process through the gateway of its local area, as long as what is given is
    /// kept; `None`: it has no gateway.
    fn gate(&self, port: u16) -> Option<(Gate, Held)> {
        let _ = port;
        None
    }

    /// Doors of that gateway that lead out to others: to the first of these addresses that answers, where it is knocked
    /// with this key, if with any.
    fn pass(&self, to: Vec<SocketAddr>, knock: Option<Key>) -> Option<Passage> {
        let _ = (to, knock);
        None
    }

    /// What shows at a port that the job has keys of its user: of these names, or of no names all that there are.
    fn prove(&self, secret: &[u8; 16], fingerprint: &[u8; 32], keys: &[String]) -> Outcome<Vec<Proof>>;

    /// This process is connected with these others, by a meeting of this number, as long as what is given is kept:
    /// whoever looks at the job sees it.
    fn show(&self, meeting: [u8; 16], with: Vec<Group>) -> Option<Held>;
}

/// Where a connection is made, and what is knocked with there: with nothing at a port of this machine.
pub type Door = (SocketAddr, Option<Key>);

/// Ways that lead to processes of another job, as long as this lives.
pub struct Crossing {
    /// For each entry, where to try.
    pub doors: Vec<Vec<Door>>,
    /// What keeps them.
    pub held: Held,
}

/// Ways out through the own gateway, as long as this lives.
pub struct Passage {
    /// Where to knock, and with what.
    pub doors: Vec<(SocketAddr, Key)>,
    /// What keeps them.
    pub held: Held,
}

/// What lasts as long as it is kept.
pub type Held = Box<dyn Any + Send + Sync>;

/// A meeting of which this process is the authority.
pub struct Sealed {
    /// 32 hexadecimal digits, drawn by chance.
    pub name: String,
    /// Drawn by chance.
    pub secret: [u8; 32],
    /// Certificate of the authority.
    pub authority: Vec<u8>,
    /// One for each request.
    pub certificates: Vec<Vec<u8>>,
}

/// Where a process can be reached.
pub struct Contact {
    /// Equal at processes that reach each other over the loopback interface.
    pub machine: [u8; 32],
    /// Addresses, most promising first.
    pub addresses: Vec<String>,
    /// The port on which it listens.
    pub port: u16,
    /// For a certificate.
    pub request: Vec<u8>,
    /// How it is reached where its addresses lead nowhere.
    pub entry: Option<Entry>,
    /// The same through the gateway of its local area.
    pub gate: Option<Gate>,
    /// How others of its node reach it in memory.
    pub memory: Option<Memory>,
}

/// A process that listens, and has a key.
pub trait Prepared {
    /// What others must know.
    fn contact(&self) -> Contact;

    /// What others may be about to open, also where nothing is started here: it stays there as long as what is given is
    /// kept.
    fn keep(&self) -> Held;

    /// From now on the engine has transports to those that `reach` names.
    fn start(self: Box<Self>, start: Start<'_>) -> std::result::Result<Started, Hindrance>;
}

/// Why nothing can be started; sentences for people.
pub enum Hindrance {
    /// Processes of one node cannot share memory: they can reach each other as those of different nodes do.
    Memory(String),
    /// Anything else.
    Other(String),
}

impl From<String> for Hindrance {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

/// Transports of a meeting.
#[derive(Default)]
pub struct Started {
    /// Their numbers.
    pub ways: Ways,
    /// What they need as long as they are there.
    pub held: Vec<Held>,
}

/// How another process is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// On the same node, where it shares memory with this process.
    Node,
    /// In the same local area.
    Near,
    /// At another site.
    Far,
}

/// How each rank of a meeting is reached; `None`: not by what is started for it.
pub type ReachOf = Arc<dyn Fn(u32) -> Option<Reach> + Send + Sync>;

/// What transports of a meeting are told.
pub struct Start<'a> {
    /// The engine.
    pub engine: &'a Shared,
    /// The meeting, as processes are numbered that are known.
    pub job: Job,
    /// Its name, which certificates have.
    pub name: &'a str,
    /// Own rank in it.
    pub me: u32,
    /// Where its members are.
    pub places: Arc<PlaceTable>,
    /// How members are reached where their addresses lead nowhere.
    pub entries: Vec<Option<Entry>>,
    /// The same through gateways of their local areas.
    pub gates: Vec<Option<Gate>>,
    /// How those of one node reach each other.
    pub memories: Vec<Option<Memory>>,
    /// Who is to be reached.
    pub reach: ReachOf,
    /// Distances between the members.
    pub area: Topology,
    /// Secret for connections inside a local area.
    pub secret: [u8; 32],
    /// Of this process.
    pub certificate: &'a [u8],
    /// Of the authority.
    pub authority: &'a [u8],
}

/// Numbers of transports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// To processes of the same node.
    pub node: Option<u8>,
    /// To processes of the same local area.
    pub near: Option<u8>,
    /// To processes of other sites.
    pub far: Option<u8>,
}

impl Ways {
    /// The one by which a process is reached.
    pub(crate) fn of(&self, reach: Reach) -> u8 {
        let way = match reach {
            Reach::Node => self.node,
            Reach::Near => self.near,
            Reach::Far => self.far,
        };
        way.unwrap_or(u8::MAX)
    }

    pub(crate) fn all(self) -> impl Iterator<Item = u8> {
        self.node.into_iter().chain(self.near).chain(self.far)
    }
}

/// The name of a meeting as a number; `None`: it is none.
pub(crate) fn id_of(name: &str) -> Option<[u8; 16]> {
    let plain = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(name, 16).ok().filter(|_| plain)?;
    Some(number.to_be_bytes())
}
