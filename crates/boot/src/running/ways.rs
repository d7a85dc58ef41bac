// SPDX-License-Identifier: Apache-2.0
//! By what a process reaches others: what it brings to the rendezvous for that, and the transports.

use std::sync::Arc;

use isthmus_engine::{Job, Processes};
use isthmus_identity::{Identity, KeyPair};
use isthmus_net::{ArrivalHook, Config, Doors, Listener, Prober, Reach};
use isthmus_shm::ShmTransport;
use isthmus_topology::Topology;
use isthmus_transport::Transport;
use isthmus_vendor::{Vendor, VendorNative};
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

/// What else the transport between sites offers.
type Wide = (ArrivalHook, Prober);

/// Communicators of the vendor MPI.
pub(super) struct Native {
    pub(super) comms: VendorNative,
    /// All processes of the job are processes of the vendor's.
    pub(super) everybody: bool,
}

/// The transports of a process.
pub(super) struct Ways {
    pub(super) transports: Vec<(TransportKind, Box<dyn Transport>)>,
    pub(super) wide: Option<Wide>,
    pub(super) native: Option<Native>,
    /// The vendor MPI, if its job is on several nodes.
    pub(super) apart: Option<Vendor>,
}

impl Ways {
    /// Opens all that lead to processes of this world. `threads`: several threads of the program may call MPI.
    pub(super) fn open(
        told: &boot::World,
        places: &Arc<PlaceTable>,
        topology: &Topology,
        (offer, vendor): (Offer, Option<Vendor>),
        processes: &Arc<Processes>,
        threads: bool,
    ) -> Result<Self, BootError> {
        let mut ways = Self {
            transports: Vec::new(),
            wide: None,
            native: None,
            apart: None,
        };
        let peers = node_peers(places, told.rank);
        let meets = vendor.is_none() || vendor::is_on();
        if let Some(vendor) = vendor {
            ways.open_vendor(vendor, told, places, threads)?;
        }
        // Over a vendor MPI no message goes this way, but short collective operations do.
        if peers.len() > 1 && meets {
            let slot = places.places[told.rank as usize].slot as usize;
            let (path, bells) = (&path_of(&told.shared_memory), &path_of(&told.node_directory));
            let shm = ShmTransport::join(path, bells, &told.job, slot, peers.len(), peers)
                .map_err(|e| BootError::System(e.to_string()))?;
            ways.transports.push((TransportKind::SharedMemory, Box::new(shm)));
        }
        if (0..topology.size()).any(|peer| reach(topology, told.rank, peer) != Reach::Otherwise) {
            ways.open_net(config(told, places, topology, offer, processes)?)?;
        }
        Ok(ways)
    }

    fn open_vendor(
        &mut self,
        vendor: Vendor,
        told: &boot::World,
        places: &PlaceTable,
        threads: bool,
    ) -> Result<(), BootError> {
        let directory = path_of(&told.node_directory);
        let made = vendor::underneath(vendor, places, told.rank, &directory, threads)?;
        let everybody = made.everybody;
        self.native = made.native.map(|comms| Native { comms, everybody });
        self.apart = made.apart;
        self.transports.push((TransportKind::Vendor, Box::new(made.transport)));
        Ok(())
    }

    fn open_net(&mut self, config: Config) -> Result<(), BootError> {
        let net = isthmus_net::start(config).map_err(|e| BootError::System(e.to_string()))?;
        if let Some(tcp) = net.tcp {
            self.transports.push((TransportKind::Tcp, Box::new(tcp)));
        }
        if let Some(wide) = net.wide {
            self.wide = Some((wide.arrival_hook(), wide.prober()));
            self.transports.push((TransportKind::Tls, Box::new(wide)));
        }
        Ok(())
    }

    /// Whether messages leave the node.
    pub(super) fn leave_the_node(&self) -> bool {
        let is_net = |kind: &TransportKind| matches!(kind, TransportKind::Tcp | TransportKind::Tls);
        self.transports.iter().any(|(kind, _)| is_net(kind))
    }

    /// Whether messages stay inside the site.
    pub(super) fn stay_inside(&self) -> bool {
        self.transports.iter().any(|(kind, _)| *kind != TransportKind::Tls)
    }

    /// The number of the transport of a kind; `u8::MAX`: there is none.
    pub(super) fn route(&self, kind: TransportKind) -> u8 {
        let found = self.transports.iter().position(|(this, _)| *this == kind);
        found.map_or(u8::MAX, |at| at as u8)
    }
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
