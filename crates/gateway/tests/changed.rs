// SPDX-License-Identifier: Apache-2.0
//! Bytes that are changed, repeated, left out, put in another order or cut off between a process and its gateway,
//! between two gateways, and between a gateway and the process that it calls: whatever arrives is what was sent.
//!
//! `ISTHMUS_TEST_CHANGED=N`: a hundredth of so many tries; 3 otherwise. `ISTHMUS_TEST_SEED=N`: the first one.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;
#[path = "../../net/tests/common/mod.rs"]
mod net;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use common::{Gate, JOB, PAIR, SECRET, knock, run};
use isthmus_identity::Authority;
use isthmus_net::{Config, Listener, Reach, start};
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::gateway::{AreaPath, Paths, ToGateway};
use net::middle::{Harm, Middle};
use net::{LONG_DIAL, PATIENCE, Process, config, exchange, places, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// A frame of a trunk.
const DATA: u8 = 4;
const HERE: &[&str] = &["127.0.0.1"];

/// Two areas of one process each, which reach each other through their gateways only.
struct Job {
    processes: Vec<Process>,
    /// Ends the gateways when it is dropped.
    stop: Option<Sender<()>>,
    gateways: Option<JoinHandle<()>>,
}

impl Job {
    /// Lines that do this harm: seven times another seed.
    fn new(harm: Harm) -> Self {
        let line = move |to: u16, number: u64| {
            let seed = harm.seed.wrapping_mul(7) + number;
            Middle::harmful(to, Harm { seed, ..harm }).port
        };
        let listeners = [Listener::bind(None).unwrap(), Listener::bind(None).unwrap()];
        let called = [line(listeners[0].port(), 0), line(listeners[1].port(), 1)];
        let (stop, stopped) = channel();
        let (tell, told) = channel();
        let gateways = std::thread::spawn(move || run(gateways(called, move |to| line(to, 2), tell, stopped)));
        let doors: [u16; 2] = told.recv().unwrap();
        // Nobody is reached but through the gateways.
        let table = Arc::new(places(&[1, 1], HERE));
        let authority = Authority::new(JOB).unwrap();
        let each = |(me, listener): (Peer, Listener)| {
            let paths = Paths {
                port: line(doors[me.index()], 3 + me.index() as u64),
                addresses: vec!["127.0.0.1".into()],
                secret: SECRET,
                ways: vec![AreaPath::OnlyGateway; 2],
            };
            let config = config(me, &table, Reach::Tls, &authority, listener);
            let dial_time = LONG_DIAL;
            Process::of(
                start(Config {
                    paths,
                    dial_time,
                    ..config
                })
                .unwrap(),
            )
        };
        Self {
            processes: Peer::first(2).zip(listeners).map(each).collect(),
            stop: Some(stop),
            gateways: Some(gateways),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.gateways.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// Two gateways that know where their processes are called, until nobody wants them any more.
async fn gateways(called: [u16; 2], line: impl Fn(u16) -> u16, tell: Sender<[u16; 2]>, stopped: Receiver<()>) {
    let (mut a, mut b) = (Gate::start(0).await, Gate::start(1).await);
    for gate in [&mut a, &mut b] {
        gate.say(&ToGateway::Places(vec![0, 1], places(&called, HERE))).await;
    }
    b.meet(0, 0).await;
    a.meet(1, line(b.port)).await;
    tell.send([a.port, b.port]).unwrap();
    while stopped.try_recv() == Err(TryRecvError::Empty) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn bytes_that_are_changed_around_gateways_are_sent_again() {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let tries = number("ISTHMUS_TEST_CHANGED").map_or(3, |n| n.div_ceil(100));
    let first = number("ISTHMUS_TEST_SEED").unwrap_or(8);
    for seed in first..first + tries {
        println!("seed {seed}");
        let mut job = Job::new(Harm { seed, connections: 2 });
        exchange(&mut job.processes, 3, |_| {});
    }
}

#[test]
fn a_trunk_on_which_only_a_frame_grows_is_given_up() {
    run(async {
        let mut gate = Gate::start(0).await;
        gate.meet(1, 0).await;
        let mut stream = knock(gate.port, 1, 0, &PAIR).await.unwrap();
        // Where bytes were lost what follows is taken for this one.
        let begun = [DATA, 1, 0, 0, 0, 0, 0, 1];
        let _ = stream.write_all(&begun).await;
        let until_it_ends = async {
            let mut buffer = [0; 4096];
            while let Ok(1..) = stream.read(&mut buffer).await {
                // A sign of life for each question.
                let _ = stream.write_all(&[0; 16]).await;
            }
        };
        timeout(PATIENCE, until_it_ends).await.expect("it is kept");
    });
}

#[test]
fn who_is_given_up_through_gateways_hears_of_it() {
    let mut job = Job::new(Harm {
        seed: 0,
        connections: 0,
    });
    let all = &mut job.processes;
    exchange(all, 1, |_| {});
    all[1].transport.lose(Peer::new(0), "it broke the rules");
    let header = Header::new(Kind::Eager, 0, 0, 0, 0, 0);
    let _ = all[0].transport.send(Peer::new(1), &header, &[]);
    until(all, "the other one hears of it", |all| all[0].sink.lost.len() == 1);
    let (_, reason) = &all[0].sink.lost[0];
    assert!(reason.contains("has given this process up"), "{reason}");
}
