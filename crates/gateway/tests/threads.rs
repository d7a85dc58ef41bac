// SPDX-License-Identifier: Apache-2.0
//! A gateway with two threads: streams that began on the first one move to the connection of the second, whichever end
//! can make that.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use common::{Gate, PATIENCE, ask, run, settle_in};
use isthmus_wire::gateway::{WISH_BULK, WISH_STREAM};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// Processes of each site.
const RANKS: u32 = 4;
/// Bytes on a connection that is used.
const USED: usize = 8 << 20;

/// Passes connections on to a port and counts what the dialler says on each.
async fn tap(port: u16) -> (u16, Rc<RefCell<Vec<usize>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let counts = Rc::new(RefCell::new(Vec::new()));
    let kept = counts.clone();
    tokio::task::spawn_local(async move {
        loop {
            let (from, _) = listener.accept().await.unwrap();
            let to = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (mut from_reader, mut from_writer) = from.into_split();
            let (mut to_reader, mut to_writer) = to.into_split();
            tokio::task::spawn_local(async move { tokio::io::copy(&mut to_reader, &mut from_writer).await });
            let kept = kept.clone();
            let index = kept.borrow().len();
            kept.borrow_mut().push(0);
            tokio::task::spawn_local(async move {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(n @ 1..) = from_reader.read(&mut buffer).await {
                    kept.borrow_mut()[index] += n;
                    if to_writer.write_all(&buffer[..n]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (own, counts)
}

/// A process that talks until it is told to stop: what it says comes back, and where its stream ends it begins another
/// one, as channels do. How often that was.
async fn talk(gate: u16, from: u32, wish: u8, stop: Rc<Cell<bool>>) -> usize {
    let mut streams = 0;
    while !stop.get() {
        let Some(mut stream) = ask(gate, from, RANKS + from, wish).await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        streams += 1;
        let mut number = 0u8;
        while !stop.get() {
            number = number.wrapping_add(1);
            let said = vec![number; 32 << 10];
            let mut heard = vec![0; said.len()];
            let (mut reader, mut writer) = stream.split();
            let (written, read) = tokio::join!(writer.write_all(&said), reader.read_exact(&mut heard));
            if written.is_err() || read.is_err() {
                break;
            }
            assert!(heard == said, "rank {from}");
        }
    }
    streams
}

/// Two gateways; the first one dials the second when `dials`, else the other way round. Bytes on each connection
/// between them when the second was `used`, or after so long; and the streams of each process.
async fn exchange(threads: (u8, u8), dials: bool, wish: u8, patience: Duration) -> (Vec<usize>, Vec<usize>) {
    let mut a = Gate::with_threads(0, threads.0).await;
    let mut b = Gate::with_threads(1, threads.1).await;
    settle_in([&mut a, &mut b], RANKS).await;
    let (port, counts) = tap(if dials { b.port } else { a.port }).await;
    if dials {
        b.meet(0, 0).await;
        a.meet(1, port).await;
        a.until_settled(|s| !s.outward.is_empty()).await;
    } else {
        a.meet(1, 0).await;
        b.meet(0, port).await;
        a.until_settled(|s| s.inward).await;
    }
    let stop = Rc::new(Cell::new(false));
    let talking: Vec<_> = (0..RANKS)
        .map(|rank| tokio::task::spawn_local(talk(a.port, rank, wish, stop.clone())))
        .collect();
    let used = async {
        while counts.borrow().get(1).is_none_or(|bytes| *bytes < USED) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = timeout(patience, used).await;
    stop.set(true);
    let mut streams = Vec::new();
    for process in talking {
        streams.push(timeout(PATIENCE, process).await.unwrap().unwrap());
    }
    let counts = counts.borrow().clone();
    (counts, streams)
}

#[test]
fn streams_move_to_the_second_thread() {
    run(async {
        let (bytes, streams) = exchange((2, 2), true, WISH_STREAM, PATIENCE).await;
        assert!(bytes.len() >= 2 && bytes[1] >= USED, "bytes on connections: {bytes:?}");
        assert!(bytes[0] > 0);
        assert!(streams.iter().any(|n| *n > 1), "nobody moved: {streams:?}");
    });
}

#[test]
fn the_other_end_connects_the_second_thread_where_this_one_cannot() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("skipped: with one processor the other gateway has one thread");
        return;
    }
    run(async {
        let (bytes, streams) = exchange((2, 0), false, WISH_STREAM, PATIENCE).await;
        assert!(bytes.len() >= 2 && bytes[1] >= USED, "bytes on connections: {bytes:?}");
        assert!(streams.iter().any(|n| *n > 1), "nobody moved: {streams:?}");
    });
}

#[test]
fn one_thread_is_enough_for_who_wants_one_and_for_streams_that_make_way() {
    run(async {
        let while_others_would = Duration::from_secs(3);
        for (threads, wish) in [((1, 1), WISH_STREAM), ((2, 2), WISH_BULK)] {
            let (bytes, streams) = exchange(threads, true, wish, while_others_would).await;
            assert_eq!(bytes.len(), 1, "connections with wish {wish}");
            assert!(bytes[0] > 0);
            assert_eq!(streams, [1; RANKS as usize]);
        }
    });
}
