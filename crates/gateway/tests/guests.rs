// SPDX-License-Identifier: Apache-2.0
//! Processes of other jobs come in with a key, and those of this area go out to gateways of others; nobody else is led
//! anywhere.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use std::net::SocketAddr;

use common::{Gate, JOB, PATIENCE, SECRET, run};
use isthmus_link::handshake::{Ends, Knocked};
use isthmus_net::Prover;
use isthmus_wire::entry::knock;
use isthmus_wire::gate::{GATEWAY, GONE, HERE, Key, MAX_MESSAGE, ToGate};
use isthmus_wire::gateway::{NO_WAY, READY, WISH_LEAD};
use isthmus_wire::hello::ANSWER_BYTES;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// A process of the area that says where keys lead; `None`: it does not know the secret.
async fn process(gate: &Gate, secret: &[u8; 32]) -> Option<TcpStream> {
    let prover = Prover::new(secret, JOB);
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).await.unwrap();
    let (knocked, bytes) = Knocked::new(&prover, Ends::of(1, GATEWAY)).unwrap();
    stream.write_all(&bytes).await.unwrap();
    let mut answer = [0; ANSWER_BYTES];
    timeout(PATIENCE, stream.read_exact(&mut answer))
        .await
        .expect("not closed")
        .ok()?;
    let reply = knocked.reply(&prover, &answer, WISH_LEAD)?;
    stream.write_all(&reply).await.ok()?;
    Some(stream)
}

async fn said(process: &mut TcpStream, bytes: &[u8]) -> Option<u8> {
    process.write_all(bytes).await.ok()?;
    timeout(PATIENCE, process.read_u8())
        .await
        .expect("an answer or the end")
        .ok()
}

async fn lead(process: &mut TcpStream, key: Key, to: u16, knock: Option<Key>) -> Option<u8> {
    let to = vec![SocketAddr::from(([127, 0, 0, 1], to))];
    said(process, &ToGate::Lead { key, to, knock }.encode()).await
}

/// What a gateway says to this key, and what comes back of a word then.
async fn guest(gate: &Gate, key: Key) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).await.unwrap();
    stream.write_all(&knock(&key)).await.unwrap();
    match timeout(PATIENCE, stream.read_u8())
        .await
        .expect("an answer or the end")
        .ok()?
    {
        HERE => {}
        GONE => return None,
        other => panic!("{other}"),
    }
    stream.write_all(b"word").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut heard = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut heard))
        .await
        .expect("the end")
        .unwrap();
    Some(heard)
}

/// A port that says again what it hears.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(async move {
                let (mut reader, mut writer) = stream.into_split();
                tokio::io::copy(&mut reader, &mut writer).await
            });
        }
    });
    port
}

const WORD: Option<&str> = Some("word");

#[test]
fn a_key_leads_in_and_out_as_long_as_its_process_says_so() {
    run(async {
        let (theirs, ours) = (Gate::start(0).await, Gate::start(1).await);
        let port = echo().await;
        let mut inside = process(&theirs, &SECRET).await.unwrap();
        assert_eq!(lead(&mut inside, [1; 16], port, None).await, Some(READY));
        assert_eq!(guest(&theirs, [1; 16]).await.as_deref(), WORD);
        // The own gateway leads out to that one.
        let mut outside = process(&ours, &SECRET).await.unwrap();
        assert_eq!(
            lead(&mut outside, [2; 16], theirs.port, Some([1; 16])).await,
            Some(READY)
        );
        assert_eq!(guest(&ours, [2; 16]).await.as_deref(), WORD);
        assert_eq!(
            said(&mut inside, &ToGate::Shut { key: [1; 16] }.encode()).await,
            Some(READY)
        );
        assert_eq!(guest(&theirs, [1; 16]).await, None);
        assert_eq!(guest(&ours, [2; 16]).await, None, "nobody is behind it any more");
        assert_eq!(lead(&mut inside, [3; 16], port, None).await, Some(READY));
        drop(inside);
        while guest(&theirs, [3; 16]).await.is_some() {}
    });
}

#[test]
fn nobody_else_is_led_anywhere() {
    run(async {
        let gate = Gate::start(0).await;
        let port = echo().await;
        assert!(process(&gate, &[9; 32]).await.is_none(), "another area's secret");
        let mut inside = process(&gate, &SECRET).await.unwrap();
        assert_eq!(lead(&mut inside, [1; 16], port, None).await, Some(READY));
        // Strangers at the door, who say nothing, or something else.
        let mut idle = Vec::new();
        for number in 0..300_u16 {
            let mut stream = TcpStream::connect(("127.0.0.1", gate.port)).await.unwrap();
            if number % 2 == 0 {
                let _ = stream.write_all(b"GET / HTTP/1.1\r\n").await;
            }
            idle.push(stream);
        }
        assert_eq!(guest(&gate, [2; 16]).await, None, "a key that nobody has given");
        assert_eq!(guest(&gate, [1; 16]).await.as_deref(), WORD);
        // Another process neither takes the key nor ends it.
        let mut other = process(&gate, &SECRET).await.unwrap();
        assert_eq!(lead(&mut other, [1; 16], 1, None).await, Some(NO_WAY));
        assert_eq!(
            said(&mut other, &ToGate::Shut { key: [1; 16] }.encode()).await,
            Some(NO_WAY)
        );
        assert_eq!(lead(&mut other, [4; 16], 1, None).await, Some(READY));
        assert_eq!(guest(&gate, [4; 16]).await, None, "nobody listens there");
        // Nonsense, and too much of it, ends the connection and with it what was said there.
        let long = [&(MAX_MESSAGE as u32 + 1).to_le_bytes()[..], &[1; 64]].concat();
        for nonsense in [&[1, 0, 0, 0, 9][..], &long] {
            let mut liar = process(&gate, &SECRET).await.unwrap();
            assert_eq!(said(&mut liar, nonsense).await, None);
        }
        assert_eq!(guest(&gate, [1; 16]).await.as_deref(), WORD);
    });
}
