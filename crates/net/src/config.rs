// SPDX-License-Identifier: Apache-2.0
//! What the transports of a job are told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use isthmus_identity::Identity;
use isthmus_transport::{Job, Processes};
use isthmus_wire::gate::Key;
use isthmus_wire::gateway::Paths;
use isthmus_wire::place::{PlaceTable, Rank};

use crate::listener::Listener;

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

/// Doors of gateways that lead to ranks, each with what is knocked with.
pub type Doors = BTreeMap<u32, Vec<(SocketAddr, Key)>>;

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
    /// How ranks are reached beside their own addresses.
    pub doors: Doors,
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
