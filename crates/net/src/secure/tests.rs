// SPDX-License-Identifier: Apache-2.0
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use isthmus_identity::{Authority, Identity, KeyPair};

use super::*;

fn identity(authority: &Authority, rank: u32) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = authority
        .sign(&key.signing_request().unwrap(), rank, Duration::from_secs(3600))
        .unwrap();
    Identity::new(authority.job(), rank, &key, &certificate, authority.certificate()).unwrap()
}

fn sockets() -> (OwnedFd, OwnedFd) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let b = listener.accept().unwrap().0;
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a.into(), b.into())
}

fn pair() -> (Secure, Secure) {
    let authority = Authority::new("job").unwrap();
    let (a, b) = (identity(&authority, 0), identity(&authority, 1));
    let (left, right) = sockets();
    let dialler = Secure::dial(left, a.client(), a.server_name(1).unwrap()).unwrap();
    (dialler, Secure::accept(right, b.server(), &[]).unwrap())
}

/// Secrets of a handshake.
pub(super) fn traffic_secrets() -> rustls::ConnectionTrafficSecrets {
    let authority = Authority::new("job").unwrap();
    let (a, b) = (identity(&authority, 0), identity(&authority, 1));
    let mut client = rustls::ClientConnection::new(a.client(), a.server_name(1).unwrap()).unwrap();
    let mut server = rustls::ServerConnection::new(b.server()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut flight = Vec::new();
        client.write_tls(&mut flight).unwrap();
        server.read_tls(&mut &flight[..]).unwrap();
        server.process_new_packets().unwrap();
        flight.clear();
        server.write_tls(&mut flight).unwrap();
        client.read_tls(&mut &flight[..]).unwrap();
        client.process_new_packets().unwrap();
    }
    client.dangerous_extract_secrets().unwrap().tx.1
}

fn shake(a: &mut Secure, b: &mut Secure, scratch: &mut Scratch) -> Result<(), Broken> {
    a.go_on(scratch, &mut |_| {})?;
    for _ in 0..1000 {
        b.read(scratch, &mut |_| {})?;
        a.read(scratch, &mut |_| {})?;
        if a.open && b.open || a.ended || b.ended {
            return Ok(());
        }
    }
    Ok(())
}

#[test]
fn plain_bytes_survive_and_the_end_is_seen() {
    let ((mut a, mut b), mut scratch) = (pair(), Scratch::new());
    shake(&mut a, &mut b, &mut scratch).unwrap();
    assert!(a.open && b.open);
    for n in [1, 31, 300] {
        a.write_short(&vec![n as u8; n]).unwrap();
        let mut got = Vec::new();
        while got.len() < n {
            b.read(&mut scratch, &mut |bytes| got.extend_from_slice(bytes)).unwrap();
        }
        assert_eq!(got, vec![n as u8; n]);
    }
    socket::shut(&a.socket);
    while !b.ended {
        b.read(&mut scratch, &mut |_| {}).unwrap();
    }
    b.write_short(b"still").unwrap();
}

/// All of `0`, piece by piece.
struct Whole<'a>(&'a [u8]);

impl Source for Whole<'_> {
    fn next(&mut self, seal: &mut Seal<'_>) -> Result<usize, Broken> {
        let (first, second) = self.0.split_at(self.0.len().min(1000));
        seal(first, second)
    }
    fn consume(&mut self, n: usize) {
        self.0 = &self.0[n..];
    }
}

#[test]
fn long_data_arrive_while_keys_change_on_both_sides() {
    let ((mut a, mut b), mut scratch) = (pair(), Scratch::new());
    shake(&mut a, &mut b, &mut scratch).unwrap();
    for end in [&mut a, &mut b] {
        // As between hosts that are near.
        (end.near, end.measuring) = (true, 0);
        let Session::Open(records) = &mut end.session else {
            panic!("it is not open");
        };
        records.change_keys_after(7);
    }
    let data: Vec<u8> = (0..5_000_000u32).map(|i| (i >> 3) as u8).collect();
    let (mut here, mut there) = (Whole(&data), Whole(&data[..300_000]));
    let (mut at_a, mut at_b) = (Vec::new(), Vec::new());
    while at_b.len() < data.len() || at_a.len() < 300_000 {
        for (end, source) in [(&mut a, &mut here), (&mut b, &mut there)] {
            if end.flush().unwrap() {
                end.write(&mut scratch, source).unwrap();
            }
        }
        b.read(&mut scratch, &mut |bytes| at_b.extend_from_slice(bytes))
            .unwrap();
        a.read(&mut scratch, &mut |bytes| at_a.extend_from_slice(bytes))
            .unwrap();
    }
    assert!(at_b == data && at_a == data[..300_000]);
}

#[test]
fn bytes_changed_on_the_way_end_the_connection_and_nothing_else() {
    let mut scratch = Scratch::new();
    // Changes every 7th byte position of what the server hears, then of what the client hears.
    for position in (0..1200).step_by(7) {
        for to_server in [true, false] {
            let authority = Authority::new("job").unwrap();
            let (a, b) = (identity(&authority, 0), identity(&authority, 1));
            let ((left, middle_left), (middle_right, right)) = (sockets(), sockets());
            let mut dialler = Secure::dial(left, a.client(), a.server_name(1).unwrap()).unwrap();
            let mut acceptor = Secure::accept(right, b.server(), &[]).unwrap();
            dialler.go_on(&mut scratch, &mut |_| {}).unwrap();
            let mut seen = [0, 0];
            for _ in 0..8 {
                pass(&middle_left, &middle_right, &mut seen[0], to_server.then_some(position));
                if acceptor.read(&mut scratch, &mut |_| {}).is_err() || acceptor.ended {
                    break;
                }
                pass(
                    &middle_right,
                    &middle_left,
                    &mut seen[1],
                    (!to_server).then_some(position),
                );
                if dialler.read(&mut scratch, &mut |_| {}).is_err() || dialler.ended {
                    break;
                }
            }
            let changed = position < seen[usize::from(!to_server)];
            assert!(
                !(changed && acceptor.open),
                "byte {position} was changed and nobody noticed"
            );
        }
    }
}

/// Moves what is there, changing one byte of the stream.
fn pass(from: &OwnedFd, to: &OwnedFd, seen: &mut usize, position: Option<usize>) {
    let mut buffer = [0; 8192];
    // Loopback may need a moment.
    for _ in 0..50 {
        if let Ok(Some(n)) = socket::receive(from, &mut buffer) {
            if let Some(at) = position.and_then(|p| p.checked_sub(*seen)).filter(|at| *at < n) {
                buffer[at] ^= 0x55;
            }
            *seen += n;
            let _ = socket::send(to, &buffer[..n], &[]);
        }
        std::thread::yield_now();
    }
}

#[test]
fn bbr_begins_anew_where_the_rate_is_known_and_nothing_is_under_way() {
    let (mut a, _b) = pair();
    // What counts is what the connection is said to be; sockets without BBR stay as they are.
    a.by_rate = true;
    let (second, quiet) = (Duration::from_secs(1), TcpInfo::default());
    let busy = TcpInfo { under_way: 1, ..quiet };
    let begun = |a: &mut Secure, at: u32, info: &TcpInfo| {
        a.rest(second * at, info);
        a.begun.unwrap().as_secs()
    };
    a.limit = Some(1e6);
    assert_eq!(begun(&mut a, 1, &quiet), 1, "first seen");
    assert_eq!(begun(&mut a, 4, &quiet), 1, "not yet");
    assert_eq!(begun(&mut a, 9, &busy), 1, "at work");
    assert_eq!(begun(&mut a, 10, &quiet), 10);
    a.limit = None;
    assert_eq!(begun(&mut a, 20, &quiet), 10, "it would have to look for the rate");
}
