// SPDX-License-Identifier: Apache-2.0
//! Connections to processes of other jobs, for groups that join (`isthmus_core::joining`).
//!
//! Each meeting has transports of its own: a listener, a key and a certificate of an authority that is made for it. So
//! a job that never left its node, or was started without a launcher, can be joined too, and what is lost with one job
//! leaves the others alone. Connections are made when the first message goes.

use std::sync::{Arc, Weak};

use isthmus_core::joining::{Contact, Outcome, Prepared, Reach, Reacher, Sealed, Start, Ways};
use isthmus_core::world::World;
use isthmus_identity::{Authority, Identity, KeyPair, MAX_VALIDITY};
use isthmus_net::{Config, Listener, local_addresses, own_addresses};
use isthmus_wire::gateway::Paths;
use isthmus_wire::place::Rank;

use crate::reaching::dial_time;
pub use crate::reaching::ports;

/// Reaches others by sockets.
pub(crate) struct Sockets {
    world: Weak<World>,
}

/// A process that can be reached at a port of its own.
struct Listening {
    world: Weak<World>,
    listener: Listener,
    key: KeyPair,
    request: Vec<u8>,
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Bytes that nobody can guess.
pub fn random<const N: usize>() -> Result<[u8; N], String> {
    isthmus_stage::guarded::random().map_err(|error| format!("cannot read /dev/urandom: {error}"))
}

/// Addresses of this node for others.
pub fn addresses() -> Vec<String> {
    let pinned = isthmus_settings::ADDRESS.read(std::env::var_os);
    match pinned.is_empty() {
        true => local_addresses(),
        false => own_addresses(&pinned.join(",")),
    }
}

impl Sockets {
    pub(crate) fn of(world: &Arc<World>) -> Box<Self> {
        Box::new(Self {
            world: Arc::downgrade(world),
        })
    }
}

impl Reacher for Sockets {
    fn prepare(&self) -> Outcome<Box<dyn Prepared>> {
        let key = KeyPair::generate().map_err(said)?;
        Ok(Box::new(Listening {
            world: self.world.clone(),
            listener: Listener::bind(ports()).map_err(said)?,
            request: key.signing_request().map_err(said)?,
            key,
        }))
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
}

impl Prepared for Listening {
    fn contact(&self) -> Contact {
        Contact {
            // It is near nobody then, whom it reaches as it does those of other sites.
            machine: isthmus_net::machine().unwrap_or_else(|| random().unwrap_or_default()),
            addresses: addresses(),
            port: self.listener.port(),
            request: self.request.clone(),
        }
    }

    fn start(self: Box<Self>, start: Start<'_>) -> Outcome<Ways> {
        let identity = Identity::new(start.name, start.me, &self.key, start.certificate, start.authority);
        let (reach, area) = (start.reach, start.area);
        let processes = start.engine.lock().processes().clone();
        let net = isthmus_net::start(Config {
            processes,
            job: start.job,
            me: Rank(start.me),
            dial_time: dial_time(&start.places),
            places: start.places,
            reach: Arc::new(move |rank| match reach(rank.0) {
                None => isthmus_net::Reach::Otherwise,
                Some(Reach::Near) => isthmus_net::Reach::Tcp,
                Some(Reach::Far) => isthmus_net::Reach::Tls,
            }),
            secret: start.secret,
            identity: Some(identity.map_err(said)?),
            listener: self.listener,
            paths: Paths::default(),
            area: Arc::new(move |rank| area.clusters_of(rank.0)[0]),
            away_time: isthmus_settings::AWAY.read(std::env::var_os),
        })
        .map_err(said)?;
        let mut ways = Ways::default();
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
        Ok(ways)
    }
}
