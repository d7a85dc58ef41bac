// SPDX-License-Identifier: Apache-2.0
//! Processes of two jobs join: one engine at each, one context for all of them.

use std::sync::{Arc, Barrier};
use std::thread;

use isthmus_abi::constants as abi;
use isthmus_core::comm::{self, Comm};
use isthmus_core::create::{self, Resource, SplitType};
use isthmus_core::error::Error;
use isthmus_core::info::Info;
use isthmus_core::joining::{self, Exchange};
use isthmus_core::world::World;
use isthmus_core::{inter, links};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Mode, ReceiveBuffer, SendBuffer};
use isthmus_transport::memory::{Memory, Options, network};

mod jobs;

use jobs::{Hub, Pipe, pipes};

/// Processes of each job.
const SIZE: u32 = 2;

fn start(job: u8, rank: u32, end: Memory, hub: &Hub) -> World {
    jobs::start((job, rank, SIZE), end, hub, |_| {})
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
    let near = create::split_type(world, &copy, &SplitType::Shared, 0, &Info::default());
    let near = near.expect("nobody is lost").expect("all are somewhere");
    assert_eq!((near.size(), near.rank()), (SIZE, world.rank()));
    let unguided = create::split_type(world, &copy, &SplitType::Unguided, 0, &Info::default());
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
    let mut pipes = pipes();
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

/// A leader that gives up when it hears that its own group has lost somebody: at its third word, the last one.
struct GivesUp<'p> {
    pipe: &'p Pipe,
    words: u32,
}

impl Exchange for GivesUp<'_> {
    fn exchange(&mut self, mine: &[u8]) -> Result<Vec<u8>, Error> {
        self.words += 1;
        let theirs = self.pipe.exchange(mine)?;
        match self.words {
            3 => Err(Error::new(abi::MPIX_ERR_PROC_FAILED, "somebody is lost")),
            _ => Ok(theirs),
        }
    }

    fn conclude(&mut self, mine: &[u8]) -> Result<Vec<u8>, Error> {
        self.pipe.exchange(mine)
    }
}

/// Whatever the one group has said at last, the other one may have heard: it must not be the only one that has met.
#[test]
fn who_is_lost_after_the_last_word_is_lost_by_both_groups() {
    let hub = Hub::default();
    let mut pipes = pipes();
    let threads = [1, 2].map(|job| {
        let (mut ends, _) = network(1, Options::default()).expect("eventfd");
        let (end, hub, pipe) = (ends.remove(0), hub.clone(), pipes[usize::from(job - 1)].take());
        thread::spawn(move || {
            let world = jobs::start((job, 0, 1), end, &hub, |_| {});
            let pipe = pipe.expect("one each");
            let to_other = || Ok(Box::new(GivesUp { pipe: &pipe, words: 0 }) as Box<dyn Exchange>);
            let inter = joining::join(&world, &comm::of_world(&world), 0, to_other).expect("both have met");
            assert_eq!((inter.size(), inter.peers()), (1, 1));
            joining::disconnect(&world, &inter).expect("nobody is lost");
            drop(inter);
            joining::part(&world);
            world.engine().wait(|engine| engine.settle().then_some(()));
        })
    });
    for thread in threads {
        thread.join().expect("all is as it should be");
    }
}
