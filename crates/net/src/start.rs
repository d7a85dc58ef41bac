// SPDX-License-Identifier: Apache-2.0
//! From a place table to transports.

use std::sync::Arc;
use std::time::Duration;

use isthmus_identity::Identity;
use isthmus_transport::{Job, Processes};
use isthmus_wire::gateway::Paths;
use isthmus_wire::place::{PlaceTable, Rank};

use crate::driver::Handle;
use crate::link::Link;
use crate::listener::Listener;
use crate::places::Places;
use crate::reactor::Reactor;
use crate::tcp::TcpTransport;
use crate::wide::WideTransport;

/// How a peer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Not by this room (the process itself, the same node).
    Otherwise,
    /// Plain TCP: another node or machine of the same local area.
    Tcp,
    /// TLS: another site.
    Tls,
}

/// How each rank of a job is reached.
pub(crate) type ReachOf = Arc<dyn Fn(Rank) -> Reach + Send + Sync>;
/// The local area of each rank of a job.
pub(crate) type AreaOf = Arc<dyn Fn(Rank) -> u32 + Send + Sync>;

/// What the transports of one job need to know. Everything but the callbacks comes from the agent's `World` message.
pub struct Config {
    /// Which peer is which rank of which job.
    pub processes: Arc<Processes>,
    /// The job that these transports serve.
    pub job: Job,
    /// Rank of this process there.
    pub me: Rank,
    /// Everybody's place, by rank.
    pub places: Arc<PlaceTable>,
    /// How each rank is reached. Both ends must agree: a connection of the other kind is refused.
    pub reach: ReachOf,
    /// Secret of the job, proven on plain connections before anything is signed.
    pub secret: [u8; 32],
    /// Certificate and key; needed when any peer is reached by this room.
    pub identity: Option<Identity>,
    /// Bound before the agent was told its port.
    pub listener: Listener,
    /// What is known of ways to other areas, and the gateway of ours.
    pub paths: Paths,
    /// Local area of each rank.
    pub area: AreaOf,
    /// How long to try to reach a peer before it counts as lost. Default [`Config::DIAL_TIME`].
    pub dial_time: Duration,
    /// How long a peer at another site may stay away, once it was reached, before it counts as lost. Default
    /// [`Config::AWAY_TIME`].
    pub away_time: Duration,
}

impl Config {
    /// Default of [`Config::dial_time`]: long enough for lost packets of the first handshake to be sent three times.
    pub const DIAL_TIME: Duration = Duration::from_secs(10);
    /// Default of [`Config::away_time`]: routers restart and routes change in less.
    pub const AWAY_TIME: Duration = isthmus_settings::AWAY.usual();
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("me", &self.me)
            .field("job", &self.processes.job_name(self.job))
            .finish_non_exhaustive()
    }
}

/// What [`start`] gives.
#[derive(Debug)]
pub struct Transports {
    /// For the peers reached by [`Reach::Tcp`]; `None` when there are none.
    pub tcp: Option<TcpTransport>,
    /// For the peers reached by [`Reach::Tls`]; `None` when there are none.
    pub wide: Option<WideTransport>,
}

/// Why networking could not start. Always a matter of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetError {
    /// No port to listen on; the text names the range and the reason.
    Listen(String),
    /// A system call failed; the text names it.
    System(String),
    /// Peers on other nodes, but no certificate.
    NoIdentity,
}

impl std::fmt::Display for NetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen(why) => write!(f, "failed to listen for connections of other ranks: {why}"),
            Self::System(why) => write!(f, "failed to set up connections to other ranks: {why}"),
            Self::NoIdentity => f.write_str("this process got no certificate although ranks of its job are on other nodes; the agent that started it is at fault"),
        }
    }
}

impl std::error::Error for NetError {}

/// Starts the thread and makes the transports. The thread ends when both have been dropped.
pub fn start(config: Config) -> Result<Transports, NetError> {
    let places = Arc::new(Places::new(&config));
    let any = |way: Reach| places.ranks().any(|rank| places.reach(rank) == way);
    let (tcp, tls) = (any(Reach::Tcp), any(Reach::Tls));
    if (tcp || tls) && config.identity.is_none() {
        return Err(NetError::NoIdentity);
    }
    let system = |what: &'static str| move |e: rustix::io::Errno| NetError::System(format!("{what}: {e}"));
    let link = Arc::new(Link::new().map_err(system("eventfd"))?);
    let reactor = Reactor::new(config, places.clone(), link.clone()).map_err(system("epoll"))?;
    let handle = Arc::new(Handle::spawn(link, reactor).map_err(|e| NetError::System(format!("new thread: {e}")))?);
    Ok(Transports {
        tcp: if tcp {
            Some(TcpTransport::new(handle.clone(), places.clone()).map_err(system("epoll"))?)
        } else {
            None
        },
        wide: if tls {
            Some(WideTransport::new(handle, places).map_err(system("epoll"))?)
        } else {
            None
        },
    })
}
