// SPDX-License-Identifier: Apache-2.0
//! Latency and bandwidth of both transports between two threads: on loopback, or between two network namespaces:
//! `measure [NAMESPACE-A ADDRESS-A NAMESPACE-B ADDRESS-B]`, namespaces as paths (`/var/run/netns/a`,
//! `/proc/123/ns/net`).
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for developers")]

use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_identity::{Authority, Identity, KeyPair};
use isthmus_net::{Config, Listener, Reach, start};
use isthmus_transport::{Job, Lease, Peer, Placement, Processes, Sink, Transport, wait};
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::place::{Node, Place, PlaceTable, Rank, Representation, Subjob};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

const BULK: usize = 64 << 20;

#[derive(Default)]
struct Counts {
    frames: usize,
    received: usize,
    sent: usize,
    writable: usize,
}

impl Sink for Counts {
    fn frame(&mut self, _: Peer, _: &Header, _: &[u8]) {
        self.frames += 1;
    }
    fn place(&mut self, _: Peer, _: &Header) -> Placement {
        Placement::Collect
    }
    fn placed(&mut self, _: Peer, _: &Header) {}
    fn received(&mut self, _: Peer, _: u64) {
        self.received += 1;
    }
    fn sent(&mut self, _: Peer, _: u64) {
        self.sent += 1;
    }
    fn writable(&mut self, _: Peer) {
        self.writable += 1;
    }
    fn lost(&mut self, peer: Peer, reason: &str) {
        panic!("rank {peer}: {reason}");
    }
}

struct Side {
    rank: u32,
    transport: Box<dyn Transport>,
    counts: Counts,
}

impl Side {
    /// Waits as the engine does: a few looks, then sleep.
    fn until(&mut self, done: impl Fn(&Counts) -> bool) {
        let mut idle = 0;
        while !done(&self.counts) {
            if self.transport.poll(&mut self.counts) {
                idle = 0;
                continue;
            }
            idle += 1;
            if idle > 50 {
                if self.transport.arm() {
                    let fds: Vec<_> = self.transport.descriptor().into_iter().collect();
                    wait(&fds, Some(Duration::from_secs(1)));
                }
                self.transport.disarm();
            }
        }
    }

    fn send(&mut self, payload: &[u8]) {
        let header = Header::new(Kind::Eager, 0, 0, 0, payload.len() as u64, 0);
        while self.transport.send(Peer::new(1 - self.rank), &header, payload).is_err() {
            let before = self.counts.writable;
            self.until(|c| c.writable > before);
        }
    }

    /// Median of half a round trip, seconds.
    fn ping_pong(&mut self, payload: &[u8], rounds: usize) -> f64 {
        let mut times = Vec::new();
        for _ in 0..rounds {
            let (began, before) = (Instant::now(), self.counts.frames);
            if self.rank == 0 {
                self.send(payload);
            }
            self.until(|c| c.frames > before);
            if self.rank == 1 {
                self.send(payload);
            }
            times.push(began.elapsed().as_secs_f64() / 2.0);
        }
        times.sort_by(f64::total_cmp);
        times[rounds / 2]
    }

    /// One message of [`BULK`] bytes, with an acknowledgement; seconds.
    fn bulk(&mut self, memory: &mut [u8], barrier: &Barrier) -> f64 {
        let before = (self.counts.frames, self.counts.received, self.counts.sent);
        if self.rank == 1 {
            // SAFETY: `memory` is not touched until the transport says received.
            let lease = Lease::new(unsafe { WriteMemory::new(memory.as_mut_ptr(), 0, BULK as isize) });
            self.transport.expect(Peer::new(0), 7, lease.lent(), BULK as u64);
            barrier.wait();
            let began = Instant::now();
            self.until(|c| c.received > before.1);
            self.send(&[]);
            return began.elapsed().as_secs_f64();
        }
        barrier.wait();
        let began = Instant::now();
        // SAFETY: `memory` is not written until the transport says sent.
        let lease = Lease::new(unsafe { ReadMemory::new(memory.as_ptr(), 0, BULK as isize) });
        self.transport
            .send_bulk(Peer::new(1), 7, lease.lent(), BULK as u64, 0, 9)
            .unwrap();
        self.until(|c| c.sent > before.2 && c.frames > before.0);
        began.elapsed().as_secs_f64()
    }
}

fn table(ports: [u16; 2], addresses: &[String; 2]) -> PlaceTable {
    let site = |i: u32| Subjob {
        name: format!("site-{i}"),
        lan: format!("{i}"),
        first_rank: i,
        count: 1,
        programs: vec![(0, 0)],
    };
    let node = |i: u32| Node {
        host: format!("host-{i}"),
        addresses: vec![addresses[i as usize].clone()],
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
        subjobs: vec![site(0), site(1)],
        nodes: vec![node(0), node(1)],
        places: vec![place(0), place(1)],
    }
}

struct Plan {
    way: Reach,
    addresses: [String; 2],
    namespaces: [Option<String>; 2],
    authority: Authority,
    rounds: usize,
    barrier: Barrier,
}

fn begin(rank: u32, plan: &Plan, port: &Sender<u16>, ports: &Receiver<[u16; 2]>) -> Side {
    if let Some(path) = &plan.namespaces[rank as usize] {
        let file = std::fs::File::open(path).unwrap();
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }
    let listener = Listener::bind(None).unwrap();
    port.send(listener.port()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = plan
        .authority
        .sign(&key.signing_request().unwrap(), rank, Duration::from_secs(3600))
        .unwrap();
    let way = plan.way;
    let transports = start(Config {
        processes: Processes::of("measure", 2),
        job: Job::OWN,
        me: Rank(rank),
        places: Arc::new(table(ports.recv().unwrap(), &plan.addresses)),
        reach: Arc::new(move |other| if other == Rank(rank) { Reach::Otherwise } else { way }),
        secret: [1; 32],
        identity: Some(Identity::new("measure", rank, &key, &certificate, plan.authority.certificate()).unwrap()),
        listener,
        paths: Default::default(),
        doors: Default::default(),
        area: Arc::new(|rank| rank.0),
        dial_time: Config::DIAL_TIME,
        away_time: Config::AWAY_TIME,
    })
    .unwrap();
    let transport: Box<dyn Transport> = match (transports.tcp, transports.wide) {
        (Some(tcp), _) => Box::new(tcp),
        (_, Some(wide)) => Box::new(wide),
        _ => unreachable!("there is a peer"),
    };
    Side {
        rank,
        transport,
        counts: Counts::default(),
    }
}

fn run(mut side: Side, plan: &Plan) {
    let first = side.ping_pong(&[0; 8], 1);
    let small = side.ping_pong(&[0; 8], plan.rounds);
    let medium = side.ping_pong(&vec![0; 32 << 10], plan.rounds / 2);
    let large = side.ping_pong(&vec![0; 256 << 10], plan.rounds / 5);
    let mut memory = vec![1; BULK];
    let bulk: Vec<f64> = (0..7).map(|_| side.bulk(&mut memory, &plan.barrier)).collect();
    if side.rank == 0 {
        let rates: Vec<String> = bulk
            .iter()
            .map(|t| format!("{:.0}", BULK as f64 * 8.0 / 1e6 / t))
            .collect();
        let (name, us) = (side.transport.name(), 1e6);
        println!(
            "{name:4} first {:.3} ms; one way 8 B {:.1} us, 32 KiB {:.1} us, 256 KiB {:.1} us; 64 MiB, one after the other: {} Mbit/s",
            first * 2e3,
            small * us,
            medium * us,
            large * us,
            rates.join(" ")
        );
    }
    while !side.transport.close(&mut side.counts) {
        std::thread::sleep(Duration::from_millis(1));
    }
    plan.barrier.wait();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (addresses, namespaces) = match arguments.as_slice() {
        [a, address_a, b, address_b] => (
            [address_a.clone(), address_b.clone()],
            [Some(a.clone()), Some(b.clone())],
        ),
        _ => (["127.0.0.1".into(), "127.0.0.1".into()], [None, None]),
    };
    let rounds = if arguments.is_empty() { 5000 } else { 50 };
    for way in [Reach::Tcp, Reach::Tls] {
        let authority = Authority::new("measure").unwrap();
        let (addresses, namespaces, barrier) = (addresses.clone(), namespaces.clone(), Barrier::new(2));
        let plan = Plan {
            way,
            addresses,
            namespaces,
            authority,
            rounds,
            barrier,
        };
        std::thread::scope(|scope| {
            let mut ends = Vec::new();
            for rank in 0..2 {
                let ((port, port_of), (tell, ports)) = (channel(), channel());
                let plan = &plan;
                scope.spawn(move || run(begin(rank, plan, &port, &ports), plan));
                ends.push((port_of, tell));
            }
            let ports = [ends[0].0.recv().unwrap(), ends[1].0.recv().unwrap()];
            ends.iter().for_each(|(_, tell)| tell.send(ports).unwrap());
        });
    }
}
