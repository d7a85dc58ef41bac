// SPDX-License-Identifier: Apache-2.0
//! The one port of a gateway: strangers, those who take their time, and repeated handshakes are closed and disturb
//! nobody.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use common::{Gate, PATIENCE, run};
use isthmus_wire::gateway::ToGateway;
use isthmus_wire::hello::{ANSWER_BYTES, KNOCK_BYTES};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Passes one connection on to a port; what the dialler says is kept.
async fn tap(port: u16) -> (u16, Rc<RefCell<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let heard = Rc::new(RefCell::new(Vec::new()));
    let kept = heard.clone();
    tokio::task::spawn_local(async move {
        let (from, _) = listener.accept().await.unwrap();
        let to = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (mut from_reader, mut from_writer) = from.into_split();
        let (mut to_reader, mut to_writer) = to.into_split();
        tokio::task::spawn_local(async move { tokio::io::copy(&mut to_reader, &mut from_writer).await });
        let mut buffer = vec![0; 4096];
        while let Ok(n @ 1..) = from_reader.read(&mut buffer).await {
            kept.borrow_mut().extend_from_slice(&buffer[..n]);
            to_writer.write_all(&buffer[..n]).await.unwrap();
        }
    });
    (own, heard)
}

/// What a connection gets until it is closed.
async fn heard(mut stream: TcpStream) -> Vec<u8> {
    let mut got = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        match timeout(PATIENCE, stream.read(&mut buffer)).await.expect("not closed") {
            Ok(0) | Err(_) => return got,
            Ok(n) => got.extend_from_slice(&buffer[..n]),
        }
    }
}

#[test]
fn a_handshake_that_was_overheard_is_of_no_use() {
    run(async {
        let (mut a, mut b) = (Gate::start(0).await, Gate::start(1).await);
        let (port, overheard) = tap(a.port).await;
        // It knows us, but not where we are: only one of the two dials.
        a.meet(1, 0).await;
        b.meet(0, port).await;
        b.until_settled(|s| !s.outward.is_empty()).await;
        a.until_settled(|s| s.inward).await;
        let all = overheard.borrow().clone();
        assert!(all.len() > KNOCK_BYTES + 33);
        let mut stream = TcpStream::connect(("127.0.0.1", a.port)).await.unwrap();
        stream.write_all(&all).await.unwrap();
        let got = heard(stream).await;
        // The knock is a good one, and says nothing about whoever repeats it: the reply must fit a number that was
        // never used before.
        assert!(
            got.len() <= ANSWER_BYTES,
            "{} bytes for a repeated handshake",
            got.len()
        );
        // The trunk goes on.
        b.say(&ToGateway::Measure(0)).await;
        b.until_settled(|s| s.rate.is_some()).await;
    });
}

#[test]
fn who_says_nothing_or_too_little_or_nonsense_is_closed_without_a_word() {
    run(async {
        let gate = Gate::start(0).await;
        let cases: [&[u8]; 4] = [b"", b"ISTHMUS", b"GET / HTTP/1.0\r\n\r\n", &[0x16; 5000]];
        let mut streams = Vec::new();
        for case in cases {
            let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).await.unwrap();
            stream.write_all(case).await.unwrap();
            streams.push(stream);
        }
        for stream in streams {
            assert_eq!(heard(stream).await, b"");
        }
    });
}

#[test]
fn who_dawdles_is_closed_though_it_never_stops_talking() {
    run(async {
        let gate = Gate::start(0).await;
        let stream = TcpStream::connect(("127.0.0.1", gate.port)).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let talking = tokio::task::spawn_local(async move {
            while writer.write_all(b"I").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        });
        let mut buffer = [0; 16];
        let read = timeout(PATIENCE, reader.read(&mut buffer)).await.expect("not closed");
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
        talking.abort();
    });
}

#[test]
fn a_crowd_at_the_door_keeps_nobody_out() {
    run(async {
        let (mut a, mut b) = (Gate::start(0).await, Gate::start(1).await);
        let mut crowd = Vec::new();
        for _ in 0..300 {
            crowd.push(TcpStream::connect(("127.0.0.1", a.port)).await.unwrap());
        }
        a.meet(1, 0).await;
        b.meet(0, a.port).await;
        b.until_settled(|s| !s.outward.is_empty()).await;
        b.say(&ToGateway::Measure(0)).await;
        b.until_settled(|s| s.rate.is_some()).await;
        drop(crowd);
    });
}
