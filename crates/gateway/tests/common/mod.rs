// SPDX-License-Identifier: Apache-2.0
//! Gateways as their coordinator sees them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use isthmus_link::handshake::{Ends, Knocked};
use isthmus_net::Prover;
use isthmus_wire::codec::Deframer;
use isthmus_wire::gateway::{Area, FromGateway, Open, READY, Settled, ToGateway, Ways, area_number, thread_wish};
use isthmus_wire::hello::ANSWER_BYTES;
use isthmus_wire::place::{Node, Place, PlaceTable, Representation, Subjob};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::timeout;

pub(crate) const JOB: &str = "test-job";
/// Of the processes of an area and its gateway.
pub(crate) const SECRET: [u8; 32] = [7; 32];
/// Of two gateways.
pub(crate) const PAIR: [u8; 32] = [8; 32];

/// Long enough for a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway as its coordinator sees it.
pub(crate) struct Gate {
    pub(crate) port: u16,
    to: DuplexStream,
    from: DuplexStream,
    deframer: Deframer,
}

impl Gate {
    pub(crate) async fn start(area: u32) -> Self {
        Self::with_threads(area, 1).await
    }

    pub(crate) async fn with_threads(area: u32, threads: u8) -> Self {
        let (to, input) = tokio::io::duplex(1 << 20);
        let (output, from) = tokio::io::duplex(1 << 20);
        tokio::task::spawn_local(isthmus_gateway::serve(input, output));
        let mut gate = Self {
            port: 0,
            to,
            from,
            deframer: Deframer::default(),
        };
        let open = Open {
            job: JOB.into(),
            area,
            secret: SECRET,
            ports: (0, 0),
            streams: 1,
            threads,
            addresses: vec!["127.0.0.1".into()],
        };
        gate.say(&ToGateway::Open(open)).await;
        match gate.hear().await {
            FromGateway::Listening { port, .. } => gate.port = port,
            other => panic!("{other:?}"),
        }
        gate
    }

    pub(crate) async fn say(&mut self, message: &ToGateway) {
        let body = message.encode();
        self.to.write_all(&(body.len() as u32).to_le_bytes()).await.unwrap();
        self.to.write_all(&body).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> FromGateway {
        let mut buffer = vec![0; 4096];
        loop {
            if let Some(body) = self.deframer.next_body().unwrap() {
                return FromGateway::decode(&body).unwrap();
            }
            let n = timeout(PATIENCE, self.from.read(&mut buffer)).await.unwrap().unwrap();
            assert!(n > 0, "the gateway has ended");
            self.deframer.feed(&buffer[..n]);
        }
    }

    /// Tells it where another area's gateway is.
    pub(crate) async fn meet(&mut self, area: u32, port: u16) {
        let area = Area {
            area,
            epoch: 1,
            ways: Ways::Any,
            port,
            secret: PAIR,
            addresses: vec!["127.0.0.1".into()],
        };
        self.say(&ToGateway::Areas(vec![area])).await;
    }

    pub(crate) async fn until_settled(&mut self, so: impl Fn(&Settled) -> bool) {
        loop {
            if let FromGateway::Settled(settled) = self.hear().await {
                if so(&settled) {
                    return;
                }
            }
        }
    }
}

pub(crate) fn run<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test);
}

/// Two sites with so many processes each, all of which listen at this port.
fn places(ranks: u32, port: u16) -> PlaceTable {
    let subjob = |first_rank, name: &str| Subjob {
        name: name.into(),
        lan: name.into(),
        first_rank,
        count: ranks,
        programs: vec![(0, 0)],
    };
    let node = |subjob| Node {
        host: "host".into(),
        addresses: vec!["127.0.0.1".into()],
        subjob,
        processes: ranks,
        processors: 0,
    };
    let place = |rank: u32| Place {
        subjob: rank / ranks,
        node: rank / ranks,
        port,
        slot: rank % ranks,
        representation: Representation([1; 8]),
        vendor: None,
    };
    PlaceTable {
        subjobs: vec![subjob(0, "a"), subjob(ranks, "b")],
        nodes: vec![node(0), node(1)],
        places: (0..2 * ranks).map(place).collect(),
    }
}

/// Processes at a port that say again what they hear, of which both gateways know.
pub(crate) async fn settle_in(gates: [&mut Gate; 2], ranks: u32) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let table = places(ranks, listener.local_addr().unwrap().port());
    tokio::task::spawn_local(echo(listener));
    let areas: Vec<u32> = (0..2 * ranks).map(|rank| rank / ranks).collect();
    for gate in gates {
        gate.say(&ToGateway::Places(areas.clone(), table.clone())).await;
    }
}

/// Says what a gateway of area `from` says; `None`: it was not believed.
pub(crate) async fn knock(gate: u16, from: u32, to: u32, secret: &[u8; 32]) -> Option<TcpStream> {
    let prover = Prover::new(secret, JOB);
    let mut stream = TcpStream::connect(("127.0.0.1", gate)).await.unwrap();
    let ends = Ends::of(area_number(from), area_number(to));
    let (knocked, knock) = Knocked::new(&prover, ends).unwrap();
    stream.write_all(&knock).await.unwrap();
    let mut answer = [0; ANSWER_BYTES];
    timeout(PATIENCE, stream.read_exact(&mut answer))
        .await
        .expect("not closed")
        .ok()?;
    stream
        .write_all(&knocked.reply(&prover, &answer, thread_wish(0))?)
        .await
        .unwrap();
    Some(stream)
}

/// A stream between two processes; `None`: the gateway had no time for us, or no way.
pub(crate) async fn ask(gate: u16, from: u32, to: u32, wish: u8) -> Option<TcpStream> {
    let prover = Prover::new(&SECRET, JOB);
    let mut stream = TcpStream::connect(("127.0.0.1", gate)).await.ok()?;
    let (knocked, knock) = Knocked::new(&prover, Ends::of(from, to))?;
    stream.write_all(&knock).await.ok()?;
    let mut answer = [0; ANSWER_BYTES];
    stream.read_exact(&mut answer).await.ok()?;
    let reply = knocked.reply(&prover, &answer, wish)?;
    stream.write_all(&reply).await.ok()?;
    (stream.read_u8().await.ok()? == READY).then_some(stream)
}

/// Processes that say again what they hear.
async fn echo(listener: TcpListener) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::task::spawn_local(async move {
            let (mut reader, mut writer) = stream.into_split();
            tokio::io::copy(&mut reader, &mut writer).await
        });
    }
}
