// SPDX-License-Identifier: Apache-2.0
//! 512 processes at each of two sites, here tasks that say what processes say: all of them talk at once, through one
//! listening port at each site and the connections of one trunk.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use std::time::Duration;

use common::{Gate, PATIENCE, ask, run, settle_in};
use isthmus_wire::gateway::{FromGateway, WISH_STREAM};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Processes of a site.
const RANKS: u32 = 512;
/// What each says and hears.
const BYTES: usize = 64 << 10;

fn pattern(rank: u32) -> Vec<u8> {
    (0..BYTES)
        .map(|i| (rank as usize * 31 + i * 7 + i / 251) as u8)
        .collect()
}

/// A process of the first site: asks its gateway, again as processes do, and what it says comes back.
async fn process(gate: u16, from: u32, to: u32) {
    let mut pause = Duration::from_millis(100);
    let mut stream = loop {
        if let Some(stream) = ask(gate, from, to, WISH_STREAM).await {
            break stream;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    };
    let said = pattern(from);
    stream.write_all(&to.to_le_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let mut heard = vec![0; BYTES + 4];
    let (written, read) = tokio::join!(writer.write_all(&said), reader.read_exact(&mut heard));
    written.unwrap();
    read.unwrap();
    assert!(heard[..4] == to.to_le_bytes() && heard[4..] == said, "rank {from}");
}

/// Until what has been sent is told: so many bytes at least, over so few connections.
async fn until_told(gate: &mut Gate, bytes: u64) {
    loop {
        if let FromGateway::Carried(carried) = gate.hear().await {
            assert!(carried.connections <= 2, "{carried:?}");
            if carried.sent >= bytes {
                return;
            }
        }
    }
}

/// A stream that begins and ends between two looks is told about too.
#[test]
fn what_a_short_stream_carries_is_told() {
    run(async {
        let (mut a, mut b) = (Gate::start(0).await, Gate::start(1).await);
        settle_in([&mut a, &mut b], 1).await;
        a.meet(1, b.port).await;
        b.meet(0, a.port).await;
        a.until_settled(|s| !s.outward.is_empty() && s.inward).await;
        for _ in 0..2 {
            process(a.port, 0, 1).await;
        }
        until_told(&mut a, 2 * BYTES as u64).await;
    });
}

#[test]
fn a_thousand_processes_share_one_trunk() {
    run(async {
        let (mut a, mut b) = (Gate::start(0).await, Gate::start(1).await);
        settle_in([&mut a, &mut b], RANKS).await;
        a.meet(1, b.port).await;
        b.meet(0, a.port).await;
        a.until_settled(|s| !s.outward.is_empty() && s.inward).await;
        let mut all = JoinSet::new();
        for rank in 0..RANKS {
            all.spawn_local(process(a.port, rank, RANKS + rank * 7 % RANKS));
        }
        while let Some(done) = timeout(PATIENCE, all.join_next()).await.unwrap() {
            done.unwrap();
        }
        until_told(&mut a, u64::from(RANKS) * BYTES as u64).await;
    });
}
