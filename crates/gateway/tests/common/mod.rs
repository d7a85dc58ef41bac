// SPDX-License-Identifier: Apache-2.0
//! Gateways as their coordinator sees them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use isthmus_wire::codec::Deframer;
use isthmus_wire::gateway::{Area, FromGateway, Open, Settled, ToGateway, Ways};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::LocalSet;
use tokio::time::timeout;

pub(crate) const JOB: &str = "test-job";
pub(crate) const SECRET: [u8; 32] = [7; 32];

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
