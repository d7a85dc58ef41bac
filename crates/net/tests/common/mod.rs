// SPDX-License-Identifier: Apache-2.0
//! Small jobs inside one process, on loopback.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod middle;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_identity::{Authority, Identity, KeyPair};
use isthmus_net::{ArrivalHook, Config, Listener, Prober, Reach, Transports, start};
use isthmus_transport::{Job, Lease, Lent, Peer, Placement, Processes, Sink, Transport, wait};
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::place::{Node, Place, PlaceTable, Rank, Representation, Subjob};
use middle::{Harm, Middle};

pub(crate) const JOB: &str = "test-job";
pub(crate) const SECRET: [u8; 32] = [42; 32];

/// Long enough for a loaded machine; nothing is asserted about it but that it is not reached.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// As long as dialling may take where many processes share a processor, or several attempts come to nothing.
pub(crate) const LONG_DIAL: Duration = Duration::from_secs(40);

pub(crate) fn places(ports: &[u16], addresses: &[&str]) -> PlaceTable {
    let count = ports.len() as u32;
    let one = |i: u32| Subjob {
        name: format!("site-{i}"),
        lan: format!("lan-{i}"),
        first_rank: i,
        count: 1,
        programs: vec![(0, 0)],
    };
    let node = |i: u32| Node {
        host: format!("host-{i}"),
        addresses: addresses.iter().map(|a| (*a).to_owned()).collect(),
        subjob: i,
        processes: 1,
        processors: 0,
    };
    let place = |i: u32| Place {
        subjob: i,
        node: i,
        port: ports[i as usize],
        slot: 0,
        representation: Representation([1; 8]),
        vendor: None,
    };
    PlaceTable {
        subjobs: (0..count).map(one).collect(),
        nodes: (0..count).map(node).collect(),
        places: (0..count).map(place).collect(),
    }
}

pub(crate) fn identity(authority: &Authority, rank: u32) -> Identity {
    let key = KeyPair::generate().unwrap();
    let request = key.signing_request().unwrap();
    let certificate = authority.sign(&request, rank, Duration::from_secs(3600)).unwrap();
    Identity::new(authority.job(), rank, &key, &certificate, authority.certificate()).unwrap()
}

pub(crate) fn config(
    me: Peer,
    table: &Arc<PlaceTable>,
    way: Reach,
    authority: &Authority,
    listener: Listener,
) -> Config {
    let processes = Processes::of(JOB, table.places.len() as u32);
    config_of(Job::OWN, &processes, Rank(me.number()), table, way, authority, listener)
}

/// As [`config`], of any job.
pub(crate) fn config_of(
    job: Job,
    processes: &Arc<Processes>,
    me: Rank,
    table: &Arc<PlaceTable>,
    way: Reach,
    authority: &Authority,
    listener: Listener,
) -> Config {
    Config {
        processes: processes.clone(),
        job,
        me,
        places: table.clone(),
        reach: Arc::new(move |rank| if rank == me { Reach::Otherwise } else { way }),
        secret: SECRET,
        identity: Some(identity(authority, me.0)),
        listener,
        paths: Default::default(),
        doors: Default::default(),
        area: Arc::new(|rank| rank.0),
        dial_time: Config::DIAL_TIME,
        away_time: Config::AWAY_TIME,
    }
}

/// One process of a job.
pub(crate) struct Process {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) sink: Recorder,
    pub(crate) prober: Option<Prober>,
    pub(crate) hook: Option<ArrivalHook>,
}

impl Process {
    pub(crate) fn of(transports: Transports) -> Self {
        let prober = transports.wide.as_ref().map(isthmus_net::WideTransport::prober);
        let hook = transports.wide.as_ref().map(isthmus_net::WideTransport::arrival_hook);
        let transport: Box<dyn Transport> = match (transports.tcp, transports.wide) {
            (Some(tcp), _) => Box::new(tcp),
            (_, Some(wide)) => Box::new(wide),
            _ => panic!("no transport"),
        };
        Self {
            transport,
            sink: Recorder::default(),
            prober,
            hook,
        }
    }

    pub(crate) fn poll(&mut self) -> bool {
        self.transport.poll(&mut self.sink)
    }

    /// Sends, polling while there is no room.
    pub(crate) fn send(&mut self, peer: Peer, payload: &[u8], tag: i32) {
        let header = Header::new(Kind::Eager, 0, 0, tag, payload.len() as u64, 0);
        self.send_frame(peer, &header, payload);
    }

    /// False: there is no room for it.
    pub(crate) fn offer(&mut self, peer: Peer, payload: &[u8], tag: i32) -> bool {
        let header = Header::new(Kind::Eager, 0, 0, tag, payload.len() as u64, 0);
        match self.transport.send(peer, &header, payload) {
            Ok(()) => true,
            Err(e) => {
                assert_eq!(e, isthmus_transport::SendError::WouldBlock);
                false
            }
        }
    }

    pub(crate) fn send_frame(&mut self, peer: Peer, header: &Header, payload: &[u8]) {
        let end = Instant::now() + PATIENCE;
        while let Err(e) = self.transport.send(peer, header, payload) {
            assert_eq!(e, isthmus_transport::SendError::WouldBlock);
            assert!(Instant::now() < end, "no room for a minute");
            self.poll();
        }
    }
}

/// A job of processes that reach each other in this way, on these ports of loopback.
pub(crate) fn job(count: u32, way: Reach) -> Vec<Process> {
    job_with(count, way, Config::DIAL_TIME)
}

/// As [`job`]; nobody dials for longer.
pub(crate) fn job_with(count: u32, way: Reach, dial_time: Duration) -> Vec<Process> {
    let listeners: Vec<Listener> = (0..count).map(|_| Listener::bind(None).unwrap()).collect();
    let ports: Vec<u16> = listeners.iter().map(Listener::port).collect();
    let table = Arc::new(places(&ports, &["127.0.0.1"]));
    let authority = Authority::new(JOB).unwrap();
    let each = |(me, listener)| {
        let config = config(me, &table, way, &authority, listener);
        Process::of(start(Config { dial_time, ..config }).unwrap())
    };
    Peer::first(count).zip(listeners).map(each).collect()
}

/// As [`job`], of three; whatever rank 1 says and hears passes lines that harm it.
pub(crate) fn job_over_lines(way: Reach, harm: Harm) -> Vec<Process> {
    let listeners: Vec<Listener> = (0..3).map(|_| Listener::bind(None).unwrap()).collect();
    let ports: Vec<u16> = listeners.iter().map(Listener::port).collect();
    let line = |to: usize| {
        let seed = harm.seed.wrapping_mul(3) + to as u64;
        Middle::harmful(ports[to], Harm { seed, ..harm }).port
    };
    let of_others = Arc::new(places(&[ports[0], line(1), ports[2]], &["127.0.0.1"]));
    let of_one = Arc::new(places(&[line(0), ports[1], line(2)], &["127.0.0.1"]));
    let authority = Authority::new(JOB).unwrap();
    let each = |(me, listener): (Peer, Listener)| {
        let table = if me == Peer::new(1) { &of_one } else { &of_others };
        let config = config(me, table, way, &authority, listener);
        let dial_time = LONG_DIAL;
        Process::of(start(Config { dial_time, ..config }).unwrap())
    };
    Peer::first(3).zip(listeners).map(each).collect()
}

/// Short and long messages both ways, while `harm` happens now and then.
pub(crate) fn exchange(all: &mut [Process], rounds: usize, mut harm: impl FnMut(usize)) {
    let long = 700_000;
    let data = [pattern(long, 1), pattern(long, 2)];
    let mut places = [vec![0; long], vec![0; long]];
    for round in 0..rounds {
        let token = round as u64 + 1;
        for me in 0..2 {
            let place = writing(&mut places[me]);
            assert!(
                all[me]
                    .transport
                    .expect(Peer::new(1 - me as u32), token, lent(place), long as u64)
            );
            all[me].send(Peer::new(1 - me as u32), b"clear", -1);
        }
        // As in a rendezvous: the other end knows where before it is told that it may send.
        until(all, "clearance", |all| all.iter().all(|p| p.sink.frames.len() == 1));
        for me in 0..2 {
            let peer = 1 - me as u32;
            all[me].sink.frames.clear();
            all[me]
                .transport
                .send_bulk(Peer::new(peer), token, lent(reading(&data[me])), long as u64, 0, token)
                .unwrap();
            for i in 0..20 {
                all[me].send(Peer::new(peer), &pattern(i * i * 37, i as u32), (round * 20 + i) as i32);
            }
        }
        harm(round);
        until(all, "a round", |all| {
            all.iter()
                .all(|p| p.sink.received.len() > round && p.sink.sent.len() > round && p.sink.frames.len() >= 20)
        });
        for (me, process) in all.iter_mut().enumerate() {
            for i in 0..20 {
                let (_, header, payload) = process.sink.frames.pop_front().unwrap();
                assert_eq!(header.tag, (round * 20 + i) as i32);
                assert_eq!(payload, pattern(i * i * 37, i as u32));
            }
            assert!(process.sink.frames.is_empty() && process.sink.lost.is_empty());
            assert!(places[me] == data[1 - me], "round {round}");
        }
        places.iter_mut().for_each(|p| p.fill(0));
    }
}

/// Polls all until the condition holds.
pub(crate) fn until(all: &mut [Process], what: &str, mut done: impl FnMut(&mut [Process]) -> bool) {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut any = false;
        for process in all.iter_mut() {
            any |= process.poll();
        }
        if done(all) {
            return;
        }
        assert!(Instant::now() < end, "not within a minute: {what}");
        if !any && all.iter_mut().all(|p| p.transport.arm()) {
            let fds: Vec<_> = all.iter().filter_map(|p| p.transport.descriptor()).collect();
            wait(&fds, Some(Duration::from_millis(100)));
        }
        all.iter_mut().for_each(|p| p.transport.disarm());
    }
}

pub(crate) fn close(mut all: Vec<Process>) {
    let mut closed = vec![false; all.len()];
    until(&mut all, "close", |all| {
        for (done, process) in closed.iter_mut().zip(all) {
            *done |= process.transport.close(&mut process.sink);
        }
        closed.iter().all(|c| *c)
    });
    for process in &all {
        assert_eq!(process.sink.lost, [], "an orderly end loses nobody");
    }
}

#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) frames: VecDeque<(Peer, Header, Vec<u8>)>,
    pub(crate) place: Option<WriteMemory>,
    pub(crate) placed: usize,
    pub(crate) received: Vec<(Peer, u64)>,
    pub(crate) sent: Vec<(Peer, u64)>,
    pub(crate) writable: usize,
    pub(crate) lost: Vec<(Peer, String)>,
}

impl Sink for Recorder {
    fn frame(&mut self, peer: Peer, header: &Header, payload: &[u8]) {
        self.frames.push_back((peer, *header, payload.to_vec()));
    }
    fn place(&mut self, _: Peer, _: &Header) -> Placement {
        let place = self.place.take();
        place.map_or(Placement::Collect, |memory| Placement::Into(lent(memory)))
    }
    fn placed(&mut self, _: Peer, _: &Header) {
        self.placed += 1;
    }
    fn received(&mut self, peer: Peer, token: u64) {
        self.received.push((peer, token));
    }
    fn sent(&mut self, peer: Peer, token: u64) {
        self.sent.push((peer, token));
    }
    fn writable(&mut self, _: Peer) {
        self.writable += 1;
    }
    fn lost(&mut self, peer: Peer, reason: &str) {
        self.lost.push((peer, reason.to_owned()));
    }
}

/// Memory that is lent for ever.
pub(crate) fn lent<M>(memory: M) -> Lent<M> {
    let lease = Lease::new(memory);
    let lent = lease.lent();
    std::mem::forget(lease);
    lent
}

/// Bytes that differ from place to place.
pub(crate) fn pattern(length: usize, seed: u32) -> Vec<u8> {
    (0..length as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 24) as u8)
        .collect()
}

pub(crate) fn reading(data: &[u8]) -> ReadMemory {
    // SAFETY: the tests keep `data` and do not write it until the transport says sent.
    unsafe { ReadMemory::new(data.as_ptr(), 0, data.len() as isize) }
}

pub(crate) fn writing(data: &mut [u8]) -> WriteMemory {
    // SAFETY: the tests keep `data` and do not touch it until the transport says received or placed.
    unsafe { WriteMemory::new(data.as_mut_ptr(), 0, data.len() as isize) }
}
