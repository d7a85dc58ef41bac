// SPDX-License-Identifier: Apache-2.0
//! Connections that do not belong to the job are closed and disturb no one.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::*;
use isthmus_identity::Authority;
use isthmus_net::{Config, HANDSHAKE_TIME, Listener, MAX_HANDSHAKES, Reach, start};
use isthmus_transport::{Peer, SendError};
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::hello::MAGIC;

/// A job of two with the port of rank 0.
fn job_with_port(way: Reach, authority: &Authority) -> (Vec<Process>, u16) {
    let listeners = [Listener::bind(None).unwrap(), Listener::bind(None).unwrap()];
    let table = Arc::new(places(&[listeners[0].port(), listeners[1].port()], &["127.0.0.1"]));
    let port = listeners[0].port();
    let each = |(rank, listener)| {
        Process::of(start(config(Peer::new(rank as u32), &table, way, authority, listener)).unwrap())
    };
    (listeners.into_iter().enumerate().map(each).collect(), port)
}

fn ping(all: &mut [Process]) {
    let before = all[1].sink.frames.len();
    all[0].send(Peer::new(1), b"ping", 0);
    until(all, "ping", |all| all[1].sink.frames.len() == before + 1);
}

/// What the connection got until it was closed.
fn heard(mut stream: TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return got,
            Ok(n) => got.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return got,
            Err(e) => panic!("not closed: {e}"),
        }
    }
}

#[test]
fn the_silent_and_the_noisy_are_closed_without_a_word() {
    let authority = Authority::new(JOB).unwrap();
    for way in [Reach::Tcp, Reach::Tls] {
        let (mut all, port) = job_with_port(way, &authority);
        ping(&mut all);
        assert!(HANDSHAKE_TIME < Duration::from_secs(5));
        let cases: [&[u8]; 5] = [
            b"",
            b"GET / HTTP/1.0\r\n\r\n",
            b"ISTHMUS",
            &[0x16; 300],
            &[0xff; 100_000],
        ];
        let streams = cases.map(|case| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let _ = stream.write_all(case);
            stream
        });
        for (case, stream) in cases.into_iter().zip(streams) {
            let got = heard(stream);
            // What looks like TLS may get an alert; nothing else gets a byte.
            assert!(
                got.is_empty() || (case.first() == Some(&0x16) && got[0] == 0x15),
                "{case:?} got {got:?}"
            );
        }
        let mut forged = [7u8; 80];
        forged[..8].copy_from_slice(&MAGIC);
        forged[8..16].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(&forged).unwrap();
        assert_eq!(heard(stream), b"", "a knock without the secret");
        ping(&mut all);
        close(all);
    }
}

#[test]
fn a_thousand_at_once_disturb_no_one() {
    let authority = Authority::new(JOB).unwrap();
    for way in [Reach::Tcp, Reach::Tls] {
        let (mut all, port) = job_with_port(way, &authority);
        let half_hello = &[0x16, 3, 1, 2, 0, 1, 0][..];
        let cases: [&[u8]; 4] = [b"", b"garbage", half_hello, b"ISTHMUS\x02half"];
        let mut crowd = Vec::new();
        for i in 0..1000 {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let _ = stream.write_all(cases[i % cases.len()]);
            crowd.push(stream);
            if i == 500 {
                // The first connection of the job is made in the middle of it.
                ping(&mut all);
            }
        }
        ping(&mut all);
        let began = Instant::now();
        crowd.into_iter().for_each(|stream| drop(heard(stream)));
        assert!(began.elapsed() < PATIENCE);
        ping(&mut all);
        close(all);
    }
    const { assert!(MAX_HANDSHAKES <= 64) };
}

/// A process of another job with the same name and ranks, which believes rank 0 lives on this port.
fn impostor(way: Reach, port: u16, authority: &Authority, secret: [u8; 32]) -> Process {
    let listener = Listener::bind(None).unwrap();
    let table = Arc::new(places(&[port, listener.port()], &["127.0.0.1"]));
    let mut config = config(Peer::new(1), &table, way, authority, listener);
    config.secret = secret;
    config.dial_time = Duration::from_secs(1);
    Process::of(start(config).unwrap())
}

#[test]
fn another_job_never_gets_in() {
    let (ours, other) = (Authority::new(JOB).unwrap(), Authority::new(JOB).unwrap());
    for way in [Reach::Tcp, Reach::Tls] {
        let (mut all, port) = job_with_port(way, &ours);
        let mut stranger = [impostor(way, port, &other, [1; 32])];
        let header = Header::new(Kind::Eager, 0, 0, 0, 4, 0);
        stranger[0].transport.send(Peer::new(0), &header, b"evil").unwrap();
        until(&mut stranger, "refusal", |s| !s[0].sink.lost.is_empty());
        let reason = &stranger[0].sink.lost[0].1;
        for part in ["rank 0 (host host-0 of site site-0)", "rank 1 (host", "127.0.0.1:"] {
            assert!(reason.contains(part), "{part} is missing: {reason}");
        }
        ping(&mut all);
        assert!(all[0].sink.frames.is_empty(), "nothing of the stranger arrived");
        close(all);
    }
}

/// Somebody between: connections to the port that is given back go on to `port`. What the dialling side of the first
/// one says is kept.
fn tap(port: u16) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let here = listener.local_addr().unwrap().port();
    let said = Arc::new(Mutex::new(Vec::new()));
    let kept = said.clone();
    std::thread::spawn(move || {
        for (number, from) in listener.incoming().map_while(Result::ok).enumerate() {
            let to = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut back, mut home) = (to.try_clone().unwrap(), from.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut back, &mut home);
                let _ = home.shutdown(Shutdown::Both);
            });
            let (mut from, mut to, kept) = (from, to, kept.clone());
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(n @ 1..) = from.read(&mut buffer) {
                    if number == 0 {
                        kept.lock().unwrap().extend_from_slice(&buffer[..n]);
                    }
                    if to.write_all(&buffer[..n]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
    (here, said)
}

#[test]
fn what_was_overheard_is_of_no_use() {
    let authority = Authority::new(JOB).unwrap();
    for way in [Reach::Tcp, Reach::Tls] {
        let listeners = [Listener::bind(None).unwrap(), Listener::bind(None).unwrap()];
        let ports = [listeners[0].port(), listeners[1].port()];
        let (tapped, said) = tap(ports[0]);
        let tables = [
            Arc::new(places(&ports, &["127.0.0.1"])),
            Arc::new(places(&[tapped, ports[1]], &["127.0.0.1"])),
        ];
        let each = |((rank, listener), table)| {
            Process::of(start(config(Peer::new(rank as u32), table, way, &authority, listener)).unwrap())
        };
        let mut all: Vec<Process> = listeners.into_iter().enumerate().zip(&tables).map(each).collect();
        all[1].send(Peer::new(0), b"hello", 0);
        until(&mut all, "hello", |all| all[0].sink.frames.len() == 1);
        let said = said.lock().unwrap().clone();
        assert!(said.len() > 80, "{} bytes", said.len());
        let again = |bytes: &[u8], more: &[u8]| {
            let mut stream = TcpStream::connect(("127.0.0.1", ports[0])).unwrap();
            // The other end may close before all is said.
            let _ = stream.write_all(bytes).and_then(|()| stream.write_all(more));
            let _ = stream.shutdown(Shutdown::Write);
            heard(stream)
        };
        // All of it once more; parts of it; a part and far too much after it.
        again(&said, b"");
        for length in [1, 7, 31, 64, 79, 80, said.len() - 1] {
            again(&said[..length], b"");
        }
        again(&said[..40], &vec![0xff; 1 << 20]);
        ping(&mut all);
        all[1].send(Peer::new(0), b"still", 0);
        until(&mut all, "still", |all| all[0].sink.frames.len() == 2);
        assert_eq!(
            all[0].sink.frames[1].2, b"still",
            "nothing of what was said again arrived"
        );
        close(all);
    }
}

#[test]
fn those_who_dawdle_are_closed_in_time() {
    let authority = Authority::new(JOB).unwrap();
    let (mut all, port) = job_with_port(Reach::Tls, &authority);
    let beginnings: [&[u8]; 2] = [b"ISTHMUS\x02", &[0x16, 3, 1, 2, 0, 1, 0]];
    let dawdle = |bytes: &'static [u8]| {
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let mut writer = stream.try_clone().unwrap();
            std::thread::spawn(move || {
                // A byte now and then, for ever.
                for byte in bytes.iter().chain(std::iter::repeat(&1)) {
                    if writer.write_all(&[*byte]).is_err() {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
            let mut rest = [0; 64];
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            while let Ok(1..) = stream.read(&mut rest) {}
        })
    };
    let began = Instant::now();
    let all_of_them: Vec<_> = (0..20).map(|i| dawdle(beginnings[i % 2])).collect();
    ping(&mut all);
    all_of_them.into_iter().for_each(|one| one.join().unwrap());
    assert!(began.elapsed() < PATIENCE, "they are not closed");
    ping(&mut all);
    close(all);
}

#[test]
fn a_rank_reached_otherwise_is_refused() {
    let authority = Authority::new(JOB).unwrap();
    let (mut all, port) = job_with_port(Reach::Tls, &authority);
    // Knows the secret, but is at another site and must come with TLS.
    let mut plain = [impostor(Reach::Tcp, port, &authority, SECRET)];
    plain[0]
        .transport
        .send(Peer::new(0), &Header::new(Kind::Eager, 0, 0, 0, 0, 0), b"")
        .unwrap();
    until(&mut plain, "refusal", |s| !s[0].sink.lost.is_empty());
    ping(&mut all);
    close(all);
}

/// Three ranks of a site; where rank 2 should be a process waits that has the certificate of rank 1.
fn with_a_liar(authority: &Authority) -> Vec<Process> {
    let listeners: Vec<Listener> = (0..3).map(|_| Listener::bind(None).unwrap()).collect();
    let ports: Vec<u16> = listeners.iter().map(Listener::port).collect();
    let table = Arc::new(places(&ports, &["127.0.0.1"]));
    let each = |(rank, listener)| {
        let mut config = config(Peer::new(rank as u32), &table, Reach::Tcp, authority, listener);
        config.dial_time = Duration::from_secs(1);
        if rank == 2 {
            config.identity = Some(identity(authority, 1));
        }
        Process::of(start(config).unwrap())
    };
    listeners.into_iter().enumerate().map(each).collect()
}

#[test]
fn a_member_is_not_taken_for_another_rank() {
    let authority = Authority::new(JOB).unwrap();
    // It dials: both the one that decides and the other one refuse it.
    let mut all = with_a_liar(&authority);
    for to in [0, 1] {
        let header = Header::new(Kind::Eager, 0, 2, 0, 4, 0);
        all[2].transport.send(Peer::new(to), &header, b"evil").unwrap();
    }
    until(&mut all, "refusals", |all| all[2].sink.lost.len() == 2);
    for honest in &all[..2] {
        assert!(honest.sink.frames.is_empty() && honest.sink.lost.is_empty());
    }
    ping(&mut all);
    // It is dialled: nothing of a message is said to it.
    let mut all = with_a_liar(&authority);
    for from in [0, 1] {
        all[from].send(Peer::new(2), b"secret", 0);
        until(&mut all, "refusal", |all| !all[from].sink.lost.is_empty());
        let (peer, reason) = all[from].sink.lost[0].clone();
        assert!(
            peer == Peer::new(2) && reason.contains("it is not that of rank 2"),
            "{reason}"
        );
    }
    assert!(all[2].sink.frames.is_empty());
    ping(&mut all);
}

#[test]
fn an_unreachable_peer_is_reported_with_every_address() {
    let authority = Authority::new(JOB).unwrap();
    // A port that was free a moment ago, and an address that is none.
    let closed = Listener::bind(None).unwrap().port();
    for way in [Reach::Tcp, Reach::Tls] {
        let listener = Listener::bind(None).unwrap();
        let table = Arc::new(places(&[listener.port(), closed], &["127.0.0.1", "::1", "localhost"]));
        let mut config = config(Peer::new(0), &table, way, &authority, listener);
        config.dial_time = Duration::from_millis(700);
        let mut all = [Process::of(start(config).unwrap())];
        all[0].send(Peer::new(1), b"hello", 0);
        until(&mut all, "failure", |all| !all[0].sink.lost.is_empty());
        let reason = all[0].sink.lost[0].1.clone();
        for part in [
            "rank 1 (host host-1 of site site-1)",
            "rank 0 (host host-0",
            &format!("127.0.0.1:{closed} ("),
            "[::1]:",
            "localhost (not an address",
            "Check that",
        ] {
            assert!(reason.contains(part), "{part} is missing: {reason}");
        }
        let refused = all[0]
            .transport
            .send(Peer::new(1), &Header::new(Kind::Eager, 0, 0, 0, 0, 0), b"");
        assert_eq!(refused, Err(SendError::Lost(reason)));
    }
}

#[test]
fn the_address_that_works_is_found_among_others() {
    let authority = Authority::new(JOB).unwrap();
    for way in [Reach::Tcp, Reach::Tls] {
        // Before the right one: an address nobody has on this network (documentation range), and one where others
        // listen.
        let other = TcpListener::bind("127.0.0.2:0").unwrap();
        let listeners = [Listener::bind(None).unwrap(), Listener::bind(None).unwrap()];
        let table = Arc::new(places(
            &[listeners[0].port(), listeners[1].port()],
            &["127.0.0.9", "127.0.0.1"],
        ));
        let each = |(rank, listener)| {
            Process::of(start(config(Peer::new(rank as u32), &table, way, &authority, listener)).unwrap())
        };
        let mut all: Vec<Process> = listeners.into_iter().enumerate().map(each).collect();
        ping(&mut all);
        close(all);
        drop(other);
    }
}

#[test]
fn peers_may_begin_late() {
    let authority = Authority::new(JOB).unwrap();
    let listeners = [Listener::bind(None).unwrap(), Listener::bind(None).unwrap()];
    let table = Arc::new(places(&[listeners[0].port(), listeners[1].port()], &["127.0.0.1"]));
    let [a, b] = listeners;
    let mut all = vec![Process::of(
        start(config(Peer::new(0), &table, Reach::Tls, &authority, a)).unwrap(),
    )];
    all[0].send(Peer::new(1), b"early", 0);
    for _ in 0..20 {
        all[0].poll();
        std::thread::sleep(Duration::from_millis(5));
    }
    all.push(Process::of(
        start(Config {
            ..config(Peer::new(1), &table, Reach::Tls, &authority, b)
        })
        .unwrap(),
    ));
    until(&mut all, "the early frame", |all| all[1].sink.frames.len() == 1);
    close(all);
}
