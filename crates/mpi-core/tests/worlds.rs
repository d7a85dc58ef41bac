// SPDX-License-Identifier: Apache-2.0
//! A process in the worlds of two jobs: two place tables, one engine.

use std::sync::Arc;
use std::thread;

use isthmus_core::comm::{self, Comm, create};
use isthmus_core::links;
use isthmus_core::universe::{Invitation, Universe};
use isthmus_core::world::World;
use isthmus_datatype::Representation;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Engine, Mode, Policy, ReceiveBuffer, SendBuffer, Setup, Shared};
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Peer, Processes};
use isthmus_wire::place::{self, Node, Place, PlaceTable, Subjob};

/// Processes of each job.
const SIZE: u32 = 4;

/// A job whose processes are on machines of so many processes, each at a site of its own.
fn places(name: &str, each: u32) -> Arc<PlaceTable> {
    let machines = SIZE / each;
    let subjob = |machine: u32| Subjob {
        name: format!("{name}-{machine}"),
        lan: format!("{name}-{machine}"),
        first_rank: machine * each,
        count: each,
        appnum: 0,
    };
    let node = |machine: u32| Node {
        host: format!("{name}-{machine}"),
        addresses: Vec::new(),
        subjob: machine,
        processes: each,
        processors: 0,
    };
    let place = |rank: u32| Place {
        subjob: rank / each,
        node: rank / each,
        port: 0,
        slot: rank % each,
        representation: place::Representation(Representation::LOCAL.encode()),
        vendor: None,
    };
    Arc::new(PlaceTable {
        subjobs: (0..machines).map(subjob).collect(),
        nodes: (0..machines).map(node).collect(),
        places: (0..SIZE).map(place).collect(),
    })
}

/// The job in which it is started.
fn start(rank: u32, end: Memory) -> Universe {
    let engine = Engine::new(Setup {
        me: Peer::new(rank),
        processes: Processes::of("home", SIZE),
        transports: vec![Box::new(end)],
        routes: vec![0; SIZE as usize],
        levels: vec![0; SIZE as usize],
        representations: Vec::new(),
    });
    let policy = Policy {
        threads: false,
        guests: false,
    };
    let engine = Shared::new(engine, policy);
    Universe::new(Arc::new(World::new(rank, places("home", 2), engine)))
}

/// Becomes this rank of another job.
fn join(universe: &Universe, rank: u32, end: Memory) -> Arc<World> {
    let first = universe.engine().lock().processes().count();
    let end = Box::new(end.with_peers_from(Peer::new(first)));
    let route = universe.engine().add_transport(end).expect("there is room");
    let invitation = Invitation {
        job: "other",
        rank,
        places: places("other", 1),
        routes: vec![route; SIZE as usize],
    };
    universe.join(invitation).expect("a new job")
}

/// Even and odd ranks part, and the last of each half tells the first one its rank in the world.
fn part(world: &World, comm: &Comm) -> Vec<u32> {
    let half = create::split(world, comm, Some((world.rank() % 2) as i32), 0)
        .expect("nobody is lost")
        .expect("all have a colour");
    let told = OwnMemory::new(0, 4);
    if half.rank() == half.size() - 1 {
        let data = OwnMemory::with(&world.rank().to_le_bytes());
        let buffer = SendBuffer::contiguous(data.reading(), 0, 4);
        let request = world
            .engine()
            .lock()
            .isend(half.channel(), 0, 9, Mode::Standard, buffer);
        world.wait(request).expect("it is received");
    }
    if half.rank() == 0 {
        let buffer = ReceiveBuffer::contiguous(told.memory(), 0, 4);
        let request = world.engine().lock().irecv(half.channel(), None, None, buffer);
        world.wait(request).expect("it is sent");
        let last = u32::from_le_bytes(told.content().try_into().expect("four bytes"));
        assert_eq!(last, world.rank() + 2);
    }
    let members = half.group().members().iter();
    members
        .map(|&peer| world.rank_of(peer).expect("of this world"))
        .collect()
}

/// What one process does.
fn process(rank: u32, own: Memory, other: Memory) {
    let universe = start(rank, own);
    let mine = rank ^ 1;
    let other = join(&universe, mine, other);
    let own = universe.own().clone();
    assert_eq!((own.rank(), other.rank()), (rank, mine));
    let (everybody, others) = (comm::of_world(&own), comm::of_world(&other));
    assert_eq!(everybody.context().number(), others.context().number());
    assert_ne!(everybody.context(), others.context());
    // Two sites there, four here.
    assert!(links::spans_areas(&own, &everybody) && links::spans_areas(&other, &others));
    assert_eq!(own.place_of(other.me()), None, "a peer of another world");
    assert!(Arc::ptr_eq(&universe.world_of(other.peer(0)).expect("known"), &other));
    // Ranks 0 and 2 of one world are 1 and 3 of the other: the halves are the same processes, in unlike worlds.
    let (here, there) = (part(&own, &everybody), part(&other, &others));
    let even = |rank: u32| if rank % 2 == 0 { vec![0, 2] } else { vec![1, 3] };
    assert_eq!((here, there), (even(rank), even(mine)));
    universe.engine().wait(|engine| engine.settle().then_some(()));
}

#[test]
fn a_process_is_a_member_of_two_jobs() {
    let (own, _) = network(SIZE, Options::default()).expect("eventfd");
    let (other, _) = network(SIZE, Options::default()).expect("eventfd");
    let mut other: Vec<Option<Memory>> = other.into_iter().map(Some).collect();
    let threads: Vec<_> = (0..)
        .zip(own)
        .map(|(rank, own): (u32, Memory)| {
            let other = other[(rank ^ 1) as usize].take().expect("one each");
            thread::spawn(move || process(rank, own, other))
        })
        .collect();
    for thread in threads {
        thread.join().expect("all is as it should be");
    }
}

#[test]
fn nobody_joins_a_job_twice() {
    let (own, _) = network(SIZE, Options::default()).expect("eventfd");
    let universe = start(0, own.into_iter().next().expect("one each"));
    let (other, _) = network(SIZE, Options::default()).expect("eventfd");
    join(&universe, 0, other.into_iter().next().expect("one each"));
    let invitation = |rank| Invitation {
        job: "other",
        rank,
        places: places("other", 1),
        routes: vec![1; SIZE as usize],
    };
    assert!(universe.join(invitation(0)).is_err(), "twice");
    assert!(universe.join(invitation(SIZE)).is_err(), "no such rank");
}
