// SPDX-License-Identifier: Apache-2.0
//! Processes of several jobs in one: an engine each, and networks of memory. Other rooms' tests use it too.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::joining::{
    self, Contact, Crossing, Exchange, Held, Hindrance, Outcome, Prepared, Reacher, Sealed, Start, Started, Ways,
};
use isthmus_core::world::World;
use isthmus_datatype::Representation;
use isthmus_engine::{Engine, Policy, Setup, Shared};
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Peer, Processes};
use isthmus_wire::entry::Entry;
use isthmus_wire::gate::Gate;
use isthmus_wire::place::{self, Node, Place, PlaceTable, Subjob};

/// A job of one machine.
fn places(name: &str, size: u32) -> Arc<PlaceTable> {
    let subjob = Subjob {
        name: name.to_owned(),
        lan: "home".to_owned(),
        first_rank: 0,
        count: size,
        programs: vec![(0, 0)],
    };
    let node = Node {
        host: name.to_owned(),
        addresses: Vec::new(),
        subjob: 0,
        processes: size,
        processors: 0,
    };
    let place = |slot: u32| Place {
        subjob: 0,
        node: 0,
        port: 0,
        slot,
        representation: place::Representation(Representation::LOCAL.encode()),
        vendor: None,
    };
    Arc::new(PlaceTable {
        subjobs: vec![subjob],
        nodes: vec![node],
        places: (0..size).map(place).collect(),
    })
}

/// Networks of meetings, by name: what is left of each.
pub(crate) type Hub = Arc<Mutex<HashMap<String, Vec<Option<Memory>>>>>;

/// Reaches others by memory.
struct Near {
    hub: Hub,
    machine: u8,
}

struct Ready(Near);

impl Reacher for Near {
    fn prepare(&self, _shares: bool) -> Outcome<Box<dyn Prepared>> {
        Ok(Box::new(Ready(Self {
            hub: self.hub.clone(),
            machine: self.machine,
        })))
    }

    fn seal(&self, requests: &[&[u8]]) -> Outcome<Sealed> {
        static NEXT: Mutex<u64> = Mutex::new(1);
        let mut next = NEXT.lock().expect("nobody panics");
        *next += 1;
        Ok(Sealed {
            name: format!("{:016x}{0:016x}", *next),
            secret: [*next as u8; 32],
            authority: Vec::new(),
            certificates: vec![Vec::new(); requests.len()],
        })
    }

    fn enter(&self, _port: u16, _gate: Option<&Gate>) -> Outcome<Option<Entry>> {
        Ok(None)
    }

    fn cross(&self, _entries: &[Entry]) -> Outcome<Crossing> {
        Err("there is no host at which they meet".to_owned())
    }

    fn prove(&self, _: &[u8; 16], _: &[u8; 32], _: &[String]) -> Outcome<Vec<isthmus_wire::port::Proof>> {
        Err("nobody has keys here".to_owned())
    }

    fn show(&self, _meeting: [u8; 16], _with: Vec<isthmus_wire::joined::Group>) -> Option<Held> {
        None
    }
}

impl Prepared for Ready {
    fn contact(&self) -> Contact {
        Contact {
            machine: [self.0.machine; 32],
            addresses: Vec::new(),
            port: 1,
            request: Vec::new(),
            entry: None,
            gate: None,
            memory: None,
        }
    }

    fn keep(&self) -> Held {
        Box::new(())
    }

    fn start(self: Box<Self>, start: Start<'_>) -> std::result::Result<Started, Hindrance> {
        let count = start.places.places.len() as u32;
        let mut hub = self.0.hub.lock().expect("nobody panics");
        let ends = hub.entry(start.name.to_owned()).or_insert_with(|| {
            let (ends, _) = network(count, Options::default()).expect("eventfd");
            ends.into_iter().map(Some).collect()
        });
        let end = ends[start.me as usize].take().expect("one each");
        // The first one that is new is the next peer, and the others follow.
        let new = (0..count)
            .find(|&rank| (start.reach)(rank).is_some())
            .expect("somebody is new");
        let next = start.engine.lock().core.processes().count();
        let end = end.with_peers_from(Peer::new(next - new));
        let way = start
            .engine
            .add_transport(Box::new(end))
            .map_err(|error| error.to_string())?;
        Ok(Started {
            ways: Ways {
                node: None,
                near: Some(way),
                far: Some(way),
            },
            held: Vec::new(),
        })
    }
}

/// Leaders that talk through channels.
pub(crate) struct Pipe(Sender<Vec<u8>>, Receiver<Vec<u8>>);

impl Exchange for &Pipe {
    fn exchange(&mut self, mine: &[u8]) -> Result<Vec<u8>> {
        let gone = |_| Error::new(abi::MPI_ERR_OTHER, "the other one is gone");
        self.0.send(mine.to_vec()).map_err(|_| gone(()))?;
        self.1.recv().map_err(|_| gone(()))
    }
}

/// Those of two jobs.
pub(crate) fn pipes() -> [Option<Pipe>; 2] {
    let (to_second, from_first) = channel();
    let (to_first, from_second) = channel();
    [Some(Pipe(to_second, from_second)), Some(Pipe(to_first, from_first))]
}

/// A process: its job, its rank there, and how many there are.
pub(crate) fn start(
    (job, rank, size): (u8, u32, u32),
    end: Memory,
    hub: &Hub,
    prepare: impl FnOnce(&mut Engine),
) -> World {
    let mut engine = Engine::new(Setup {
        me: Peer::new(rank),
        processes: Processes::of("home", size),
        transports: vec![Box::new(end)],
        routes: vec![0; size as usize],
        levels: vec![4; size as usize],
        representations: Vec::new(),
    });
    prepare(&mut engine);
    let policy = Policy {
        threads: false,
        guests: false,
    };
    let name = format!("machine-{job}");
    let world = World::new(rank, places(&name, size), Shared::new(engine, policy)).with_id([job; 16]);
    let near = Near {
        hub: hub.clone(),
        // Each job on a machine of its own.
        machine: job,
    };
    joining::set_reacher(&world, Box::new(near));
    world
}
