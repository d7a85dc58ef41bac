// SPDX-License-Identifier: Apache-2.0
//! Communicators that are revoked: by a member, before they are there, and by whoever is none.

use std::sync::{Arc, OnceLock};

use isthmus_abi::constants as abi;
use isthmus_core::comm::{self, Comm};
use isthmus_core::faults;
use isthmus_core::group::Group;
use isthmus_core::world::World;
use isthmus_datatype::Representation;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Engine, Policy, ReceiveBuffer, Request, Setup, Shared, losses, with_port};
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Peer, Processes};
use isthmus_wire::agreeing::Agreed;
use isthmus_wire::frame::{Header, Kind, protocol};
use isthmus_wire::place::{self, Node, Place, PlaceTable, Subjob};
use isthmus_wire::question::{Ask, Said};

const SIZE: u32 = 3;

/// Processes on machines of their own.
fn places() -> Arc<PlaceTable> {
    let subjob = |rank| Subjob {
        name: format!("site-{rank}"),
        lan: format!("lan-{rank}"),
        first_rank: rank,
        count: 1,
        programs: vec![(0, 0)],
    };
    let node = |rank| Node {
        host: format!("host-{rank}"),
        addresses: Vec::new(),
        subjob: rank,
        processes: 1,
        processors: 0,
    };
    let place = |rank| Place {
        subjob: rank,
        node: rank,
        port: 0,
        slot: 0,
        representation: place::Representation(Representation::LOCAL.encode()),
        vendor: None,
    };
    Arc::new(PlaceTable {
        subjobs: (0..SIZE).map(subjob).collect(),
        nodes: (0..SIZE).map(node).collect(),
        places: (0..SIZE).map(place).collect(),
    })
}

fn world(rank: u32, end: Memory) -> World {
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
    World::new(rank, places(), Shared::new(engine, policy)).with_id([1; 16])
}

fn worlds() -> Vec<World> {
    let (ends, _) = network(SIZE, Options::default()).expect("eventfd");
    (0..).zip(ends).map(|(rank, end)| world(rank, end)).collect()
}

fn progress(worlds: &[impl std::borrow::Borrow<World>]) {
    for _ in 0..50 {
        worlds.iter().for_each(|world| {
            world.borrow().engine().lock().progress();
        });
    }
}

/// A receive from anybody.
fn receive(world: &World, comm: &Comm) -> Request {
    let told = OwnMemory::new(0, 1);
    let buffer = ReceiveBuffer::contiguous(told.memory(), 0, 1);
    world.engine().lock().irecv(comm.channel(), None, None, buffer)
}

#[test]
fn what_is_pending_ends_at_all_members_and_other_communicators_stay() {
    let worlds = worlds();
    let comms: Vec<Arc<Comm>> = worlds.iter().map(comm::of_world).collect();
    let own = comm::of_self(&worlds[0]);
    let waiting: Vec<Request> = worlds
        .iter()
        .zip(&comms)
        .map(|(world, comm)| receive(world, comm))
        .collect();
    let kept = receive(&worlds[0], &own);
    assert!(faults::usable(&comms[1]).is_ok());
    faults::revoke(&worlds[2], &comms[2]).expect("it can be revoked");
    progress(&worlds);
    for ((world, comm), request) in worlds.iter().zip(&comms).zip(waiting) {
        assert!(comm.is_revoked());
        let error = world.wait(request).expect_err("it was revoked");
        assert_eq!(error.class, abi::MPIX_ERR_REVOKED);
        let later = receive(world, comm);
        assert_eq!(
            world.wait(later).expect_err("it was revoked").class,
            abi::MPIX_ERR_REVOKED
        );
        assert_eq!(
            faults::usable(comm).expect_err("it was revoked").class,
            abi::MPIX_ERR_REVOKED
        );
    }
    assert!(!own.is_revoked() && worlds[0].engine().lock().core.test(kept).is_none());
}

#[test]
fn a_word_that_comes_before_the_communicator_is_remembered() {
    let worlds = worlds();
    let first = comm::of_world(&worlds[0]);
    faults::revoke(&worlds[0], &first).expect("it can be revoked");
    progress(&worlds);
    for world in &worlds[1..] {
        assert!(comm::of_world(world).is_revoked());
    }
    progress(&worlds);
}

/// Says at once that all live, and by which number their new communicator goes.
struct Agrees(u32);

impl faults::Asker for Agrees {
    fn ask(&self, _: Ask) -> Result<Option<u64>, String> {
        Ok(Some(1))
    }

    fn look(&self, _: &mut Engine, _: u64) -> Option<Result<Said, String>> {
        Some(Ok(Said::Agreed(Box::new(Agreed {
            flag: 0,
            contexts: [self.0, 0, 0],
            news: false,
            lost: Vec::new(),
        }))))
    }

    fn answered(&self, _: u64) -> Option<Result<Said, String>> {
        None
    }

    fn forget(&self, _: u64) {}

    fn hear(&self, _: &mut Engine) {}
}

#[test]
fn a_word_that_was_early_is_passed_on_by_who_has_made_the_communicator_without_waiting() {
    const NUMBER: u32 = 16;
    let worlds: Vec<Arc<World>> = worlds().into_iter().map(Arc::new).collect();
    for world in &worlds {
        faults::set_asker(world, Some(Arc::new(Agrees(NUMBER))));
    }
    let shrunk = |world: &World| {
        let made = Arc::new(OnceLock::new());
        let place = made.clone();
        let request = faults::shrink_later(world, &comm::of_world(world), move |comm| _ = place.set(comm));
        world.wait(request.expect("it begins")).expect("all live");
        made.get().cloned().expect("it is made")
    };
    let others = shrunk(&worlds[2]);
    // Who revokes it fails before it has told the third one.
    with_port(&mut worlds[0].engine().lock(), protocol::REVOKE, |port| {
        port.tell(Peer::new(1), Header::control(Kind::Protocol, NUMBER.into(), 0, 0));
    });
    progress(&worlds);
    assert!(!others.is_revoked());
    let made = shrunk(&worlds[1]);
    progress(&worlds);
    assert!(made.is_revoked() && others.is_revoked());
}

#[test]
fn who_is_no_member_revokes_nothing_and_is_lost() {
    let worlds = worlds();
    let comms: Vec<Arc<Comm>> = worlds.iter().map(comm::of_world).collect();
    let own = comm::of_self(&worlds[0]);
    let tell = |from: usize, token: u64, cause: u64| {
        with_port(&mut worlds[from].engine().lock(), protocol::REVOKE, |port| {
            port.tell(Peer::new(0), Header::control(Kind::Protocol, token, cause, 0));
        });
        progress(&worlds);
    };
    // One that nobody has is only remembered, and so is one of another meeting.
    tell(1, 1 << 20, 0);
    tell(1, 1 << 32 | u64::from(own.context().number()), 1);
    assert!(losses(&worlds[0].engine().lock().core).is_empty());
    tell(1, own.context().number().into(), 0);
    assert_eq!(losses(&worlds[0].engine().lock().core), [Peer::new(1)]);
    tell(2, 1 << 20, 2);
    assert_eq!(losses(&worlds[0].engine().lock().core), [Peer::new(1), Peer::new(2)]);
    assert!(!own.is_revoked() && !comms[0].is_revoked());
}

#[test]
fn losses_are_acknowledged_in_their_order() {
    let worlds = worlds();
    let comm = comm::of_world(&worlds[0]);
    assert_eq!(faults::get_failed(&worlds[0], &comm).size(), 0);
    for peer in [2, 1] {
        worlds[0].engine().lock().lose_peers([Peer::new(peer)], "a test");
    }
    let group = |peers: &[u32]| Group::new(peers.iter().map(|&peer| Peer::new(peer)).collect::<Vec<_>>());
    let is = |found: Group, peers: &[u32]| assert_eq!(found.members(), group(peers).members());
    is(faults::get_failed(&worlds[0], &comm), &[2, 1]);
    is(faults::get_acknowledged(&worlds[0], &comm), &[]);
    assert_eq!(faults::acknowledge_failed(&worlds[0], &comm, 1), 1);
    is(faults::get_acknowledged(&worlds[0], &comm), &[2]);
    assert_eq!(faults::acknowledge_failed(&worlds[0], &comm, 0), 1, "never fewer");
    assert_eq!(faults::acknowledge_failed(&worlds[0], &comm, 9), 2);
    is(faults::get_acknowledged(&worlds[0], &comm), &[2, 1]);
    let own = comm::of_self(&worlds[0]);
    is(faults::get_failed(&worlds[0], &own), &[]);
}
