// SPDX-License-Identifier: Apache-2.0
//! Processes of two jobs join: one engine at each, one context for all of them.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use isthmus_abi::constants as abi;
use isthmus_core::comm::{self, Comm, Resource, SplitType, create};
use isthmus_core::error::{Error, Result};
use isthmus_core::info::Info;
use isthmus_core::joining::{
    self, Contact, Crossing, Exchange, Held, Outcome, Prepared, Reacher, Sealed, Start, Started, Ways,
};
use isthmus_core::world::World;
use isthmus_core::{inter, links};
use isthmus_datatype::Representation;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Engine, Mode, Policy, ReceiveBuffer, SendBuffer, Setup, Shared};
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Peer, Processes};
use isthmus_wire::entry::Entry;
use isthmus_wire::place::{self, Node, Place, PlaceTable, Subjob};

/// Processes of each job.
const SIZE: u32 = 2;

/// A job of one machine.
fn places(name: &str) -> Arc<PlaceTable> {
    let subjob = Subjob {
        name: name.to_owned(),
        lan: "home".to_owned(),
        first_rank: 0,
        count: SIZE,
        appnum: 0,
    };
    let node = Node {
        host: name.to_owned(),
        addresses: Vec::new(),
        subjob: 0,
        processes: SIZE,
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
        places: (0..SIZE).map(place).collect(),
    })
}

/// Networks of meetings, by name: what is left of each.
type Hub = Arc<Mutex<HashMap<String, Vec<Option<Memory>>>>>;

/// Reaches others by memory.
struct Near {
    hub: Hub,
    machine: u8,
}

struct Ready(Near);

impl Reacher for Near {
    fn prepare(&self) -> Outcome<Box<dyn Prepared>> {
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

    fn enter(&self, _port: u16) -> Outcome<Option<Entry>> {
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
        }
    }

    fn start(self: Box<Self>, start: Start<'_>) -> Outcome<Started> {
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
        let next = start.engine.lock().processes().count();
        let end = end.with_peers_from(Peer::new(next - new));
        let way = start
            .engine
            .add_transport(Box::new(end))
            .map_err(|error| error.to_string())?;
        Ok(Started {
            ways: Ways {
                near: Some(way),
                far: Some(way),
            },
            held: Vec::new(),
        })
    }
}

/// Leaders that talk through channels.
struct Pipe(Sender<Vec<u8>>, Receiver<Vec<u8>>);

impl Exchange for &Pipe {
    fn exchange(&mut self, mine: &[u8]) -> Result<Vec<u8>> {
        let gone = |_| Error::new(abi::MPI_ERR_OTHER, "the other one is gone");
        self.0.send(mine.to_vec()).map_err(|_| gone(()))?;
        self.1.recv().map_err(|_| gone(()))
    }
}

fn start(job: u8, rank: u32, end: Memory, hub: &Hub) -> World {
    let engine = Engine::new(Setup {
        me: Peer::new(rank),
        processes: Processes::of("home", SIZE),
        transports: vec![Box::new(end)],
        routes: vec![0; SIZE as usize],
        levels: vec![4; SIZE as usize],
        representations: Vec::new(),
    });
    let policy = Policy {
        threads: false,
        guests: false,
    };
    let name = format!("machine-{job}");
    let world = World::new(rank, places(&name), Shared::new(engine, policy)).with_id([job; 16]);
    let near = Near {
        hub: hub.clone(),
        // Each job on a machine of its own.
        machine: job,
    };
    joining::set_reacher(&world, Box::new(near));
    world
}

fn send(world: &World, comm: &Comm, to: u32, byte: u8) {
    let data = OwnMemory::with(&[byte]);
    let buffer = SendBuffer::contiguous(data.reading(), 0, 1);
    let request = world
        .engine()
        .lock()
        .isend(comm.channel(), to, 9, Mode::Standard, buffer);
    world.wait(request).expect("it is received");
}

/// The byte of a message of anybody, and of whom it is.
fn receive_any(world: &World, comm: &Comm) -> (u32, u8) {
    let told = OwnMemory::new(0, 1);
    let buffer = ReceiveBuffer::contiguous(told.memory(), 0, 1);
    let request = world.engine().lock().irecv(comm.channel(), None, None, buffer);
    let done = world.wait(request).expect("it is sent");
    (done.source, told.content()[0])
}

/// Everybody tells everybody in the communicator, who hears it from any source.
fn talk(world: &World, comm: &Comm) {
    let (me, size) = (comm.rank(), comm.size());
    for to in (0..size).filter(|&to| to != me) {
        send(world, comm, to, me as u8);
    }
    let mut heard: Vec<u32> = (1..size)
        .map(|_| {
            let (source, byte) = receive_any(world, comm);
            assert_eq!(u32::from(byte), source);
            source
        })
        .collect();
    heard.sort_unstable();
    assert!(heard.into_iter().eq((0..size).filter(|&from| from != me)));
}

/// A communicator of all four, and what is made of it.
fn check_merged(world: &World, inter: &Comm, job: u8) {
    let merged = inter::merge(world, inter, job == 2).expect("nobody is lost");
    assert_eq!(
        (merged.size(), merged.rank()),
        (2 * SIZE, u32::from(job - 1) * SIZE + world.rank())
    );
    assert!(comm::is_joined(&merged) && links::spans_areas(world, &merged));
    talk(world, &merged);
    let copy = create::duplicate(world, &merged, Info::default()).expect("nobody is lost");
    assert_ne!(copy.context(), merged.context());
    talk(world, &copy);
    // One of each job.
    let mixed = create::split(world, &copy, Some((copy.rank() % 2) as i32), 0);
    let mixed = mixed.expect("nobody is lost").expect("all have a colour");
    assert_eq!(mixed.size(), 2);
    talk(world, &mixed);
    // Who shares a node is of one job, also where the numbers of nodes are equal.
    let near = comm::split_type(world, &copy, &SplitType::Shared, 0, &Info::default());
    let near = near.expect("nobody is lost").expect("all are somewhere");
    assert_eq!((near.size(), near.rank()), (SIZE, world.rank()));
    let unguided = comm::split_type(world, &copy, &SplitType::Unguided, 0, &Info::default());
    let unguided = unguided.expect("nobody is lost").expect("they are at two sites");
    assert_eq!(
        unguided.hints().all().get("mpi_hw_resource_type"),
        Ok(Some(Resource::Site.name()))
    );
    assert_eq!(unguided.size(), SIZE);
    // An intercommunicator of the halves of what was merged.
    let half = create::split(world, &merged, Some((merged.rank() % 2) as i32), 0);
    let half = half.expect("nobody is lost").expect("all have a colour");
    let other = i32::from(merged.rank() % 2 == 0);
    let crossed = inter::create(world, &half, 0, || Ok((&*merged, other)), 3).expect("nobody is lost");
    assert_eq!((crossed.size(), crossed.peers()), (2, 2));
    let all = inter::merge(world, &crossed, merged.rank() % 2 == 1).expect("nobody is lost");
    talk(world, &all);
}

fn process(job: u8, rank: u32, end: Memory, hub: &Hub, pipe: Option<Pipe>, ended: &Barrier) {
    let world = start(job, rank, end, hub);
    let everybody = comm::of_world(&world);
    // Again and again: what was disconnected is met anew.
    for _ in 0..3 {
        let to_other = || match &pipe {
            Some(pipe) => Ok(Box::new(pipe) as Box<dyn Exchange>),
            None => Err(Error::new(abi::MPI_ERR_INTERN, "not the leader")),
        };
        let inter = joining::join(&world, &everybody, 1, to_other).expect("nobody is lost");
        assert_eq!((inter.size(), inter.peers(), inter.rank()), (SIZE, SIZE, rank));
        let there = inter.remote().expect("an intercommunicator").members().clone();
        assert!(
            there.iter().all(|&peer| world.rank_of(peer).is_none()),
            "they are of another job"
        );
        if job == 1 {
            send(&world, &inter, rank, rank as u8);
        } else {
            assert_eq!(receive_any(&world, &inter), (rank, rank as u8));
        }
        check_merged(&world, &inter, job);
        joining::disconnect(&world, &inter).expect("nobody is lost");
        drop(inter);
        joining::part(&world);
    }
    // The end is one for all who are connected.
    let to_other = || match &pipe {
        Some(pipe) => Ok(Box::new(pipe) as Box<dyn Exchange>),
        None => Err(Error::new(abi::MPI_ERR_INTERN, "not the leader")),
    };
    let inter = joining::join(&world, &everybody, 1, to_other).expect("nobody is lost");
    // One of them leaves before: nobody waits for it, nor it for others.
    let leaves = u32::from(job == 2 && rank == 1);
    let merged = inter::merge(&world, &inter, job == 2).expect("nobody is lost");
    let left = create::split(&world, &merged, Some(leaves as i32), 0);
    let left = left.expect("nobody is lost").expect("all have a colour");
    for comm in [&*inter, &merged] {
        joining::disconnect(&world, comm).expect("nobody is lost");
    }
    drop((inter, merged));
    if leaves == 0 {
        joining::stay_connected(&left);
    }
    drop(left);
    joining::part(&world);
    assert_eq!(joining::is_alone(&world), leaves == 1);
    joining::wait_for_all(&world);
    world.engine().wait(|engine| engine.settle().then_some(()));
    // The last word of one may be on its way to another, who has to find its end of the network there.
    ended.wait();
}

#[test]
fn two_jobs_join_talk_part_and_join_again() {
    let hub = Hub::default();
    let (to_second, from_first) = channel();
    let (to_first, from_second) = channel();
    let mut pipes = [Some(Pipe(to_second, from_second)), Some(Pipe(to_first, from_first))];
    let mut threads = Vec::new();
    let ended = Arc::new(Barrier::new(2 * SIZE as usize));
    for job in [1, 2] {
        let (ends, _) = network(SIZE, Options::default()).expect("eventfd");
        for (rank, end) in (0..).zip(ends) {
            let hub = hub.clone();
            let pipe = pipes[usize::from(job - 1)].take_if(|_| rank == 1);
            let ended = ended.clone();
            threads.push(thread::spawn(move || process(job, rank, end, &hub, pipe, &ended)));
        }
    }
    for thread in threads {
        thread.join().expect("all is as it should be");
    }
}

#[test]
fn what_the_leader_cannot_do_all_members_hear() {
    let hub = Hub::default();
    let (ends, _) = network(SIZE, Options::default()).expect("eventfd");
    let threads: Vec<_> = (0..)
        .zip(ends)
        .map(|(rank, end)| {
            let hub = hub.clone();
            thread::spawn(move || {
                let world = start(1, rank, end, &hub);
                let everybody = comm::of_world(&world);
                let refuse = || Err(Error::new(abi::MPI_ERR_PORT, "the port is closed"));
                let error = joining::join(&world, &everybody, 0, refuse).expect_err("there is nobody");
                assert!(error.message.contains("the port is closed"), "{error}");
                if rank == 0 {
                    assert_eq!(error.class, abi::MPI_ERR_PORT);
                }
                world.engine().wait(|engine| engine.settle().then_some(()));
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("all is as it should be");
    }
}
