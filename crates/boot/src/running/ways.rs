// SPDX-License-Identifier: Apache-2.0
//! By what a process reaches others: what it brings to the rendezvous for that, and the transports.

use std::sync::Arc;

use isthmus_engine::{Job, Processes};
use isthmus_identity::{Identity, KeyPair};
use isthmus_net::{ArrivalHook, Config, Doors, Listener, Prober, Reach};
use isthmus_shm::ShmTransport;
use isthmus_topology::Topology;
use isthmus_transport::Transport;
use isthmus_vendor::VendorTransport;
use isthmus_wire::boot;
use isthmus_wire::place::{PlaceTable, Rank};

use crate::BootError;
use crate::reaching::{self, dial_time};
use crate::rendezvous::path_of;
use crate::routes::{TransportKind, node_peers, reach};
use crate::vendor;

/// What a process brings to the rendezvous.
pub(super) struct Offer {
    pub(super) listener: Option<Listener>,
    pub(super) key: Option<KeyPair>,
}

impl Offer {
    /// The agent says in `ISTHMUS_REACH` how far messages will go; when they stay on the node nothing listens.
    pub(super) fn new() -> Result<Self, BootError> {
        let reach = isthmus_settings::REACH.read(std::env::var_os);
        if reach == Some("node") {
            return Ok(Self {
                listener: None,
                key: None,
            });
        }
        let listener = reaching::listener();
        let listener = listener.map_err(|e| BootError::System(e.to_string()))?;
        let key = KeyPair::generate().map_err(|e| BootError::System(e.to_string()))?;
        Ok(Self {
            listener: Some(listener),
            key: Some(key),
        })
    }
}

pub(super) type Transports = Vec<(TransportKind, Box<dyn Transport>)>;
/// What else the transport between sites offers.
pub(super) type Wide = (ArrivalHook, Prober);

pub(super) fn transports(
    world: &boot::World,
    places: &Arc<PlaceTable>,
    topology: &Topology,
    (offer, vendor): (Offer, Option<VendorTransport>),
    processes: &Arc<Processes>,
) -> Result<(Transports, Option<Wide>), BootError> {
    let mut all: Transports = Vec::new();
    let peers = node_peers(places, world.rank);
    let meets = vendor.is_none() || vendor::is_on();
    if let Some(vendor) = vendor {
        all.push((TransportKind::Vendor, Box::new(vendor)));
    }
    // Over a vendor MPI no message goes this way, but short collective operations do.
    if peers.len() > 1 && meets {
        let slot = places.places[world.rank as usize].slot as usize;
        let (path, bells) = (&path_of(&world.shared_memory), &path_of(&world.node_directory));
        let shm = ShmTransport::join(path, bells, &world.job, slot, peers.len(), peers)
            .map_err(|e| BootError::System(e.to_string()))?;
        all.push((TransportKind::SharedMemory, Box::new(shm)));
    }
    let far = (0..topology.size()).any(|peer| reach(topology, world.rank, peer) != Reach::Otherwise);
    let mut offers = None;
    if far {
        let net = isthmus_net::start(config(world, places, topology, offer, processes)?)
            .map_err(|e| BootError::System(e.to_string()))?;
        if let Some(tcp) = net.tcp {
            all.push((TransportKind::Tcp, Box::new(tcp)));
        }
        if let Some(wide) = net.wide {
            offers = Some((wide.arrival_hook(), wide.prober()));
            all.push((TransportKind::Tls, Box::new(wide)));
        }
    }
    Ok((all, offers))
}

fn config(
    world: &boot::World,
    places: &Arc<PlaceTable>,
    topology: &Topology,
    offer: Offer,
    processes: &Arc<Processes>,
) -> Result<Config, BootError> {
    let Some(listener) = offer.listener else {
        return Err(BootError::agent(
            "the agent said that the job stays on this node, but it does not".into(),
        ));
    };
    let identity = match &offer.key {
        Some(key) if !world.certificate.is_empty() => Some(
            Identity::new(&world.job, world.rank, key, &world.certificate, &world.authority)
                .map_err(|e| BootError::agent(format!("the certificate from the agent does not fit: {e}")))?,
        ),
        _ => None,
    };
    let (topology, me) = (topology.clone(), world.rank);
    let areas = topology.clone();
    Ok(Config {
        processes: processes.clone(),
        job: Job::OWN,
        me: Rank(me),
        places: places.clone(),
        reach: Arc::new(move |rank| reach(&topology, me, rank.0)),
        secret: world.secret,
        identity,
        listener,
        paths: world.paths.clone(),
        doors: Doors::new(),
        area: Arc::new(move |rank| areas.clusters_of(rank.0)[0]),
        dial_time: dial_time(places),
        away_time: isthmus_settings::AWAY.read(std::env::var_os),
    })
}

pub(super) fn route(transports: &Transports, way: TransportKind) -> u8 {
    transports
        .iter()
        .position(|(w, _)| *w == way)
        .map_or(u8::MAX, |at| at as u8)
}
