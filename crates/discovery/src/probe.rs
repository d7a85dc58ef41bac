// SPDX-License-Identifier: Apache-2.0
//! Measuring the link between two sites: one listens for some seconds, the other dials.

use isthmus_stage::guarded::random;
use isthmus_wire::service::Answer;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long somebody is waited for.
const OPEN: Duration = Duration::from_secs(20);
/// How long to try one address.
const CONNECT: Duration = Duration::from_secs(3);
/// How long either side may be silent.
const SILENCE: Duration = Duration::from_secs(5);
/// For how long and how much is sent to see how fast it arrives.
const BURST: Duration = Duration::from_millis(800);
const MAX_BURST: u64 = 256 << 20;
/// Bytes that come back one by one.
const PINGS: usize = 5;
/// Strangers that are heard before nobody is.
const STRANGERS: usize = 16;

/// Waits in a thread of its own, which ends after one measurement or [`OPEN`].
pub(crate) fn listen() -> Result<Answer, String> {
    let cannot = |e: io::Error| format!("cannot listen: {e}");
    let token = random::<32>().map_err(cannot)?;
    let listener = bind().map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let port = listener.local_addr().map_err(cannot)?.port();
    std::thread::spawn(move || {
        let began = Instant::now();
        let mut strangers = 0;
        while began.elapsed() < OPEN && strangers < STRANGERS {
            match listener.accept() {
                Ok((stream, _)) => match serve(stream, &token) {
                    Ok(()) => return,
                    Err(_) => strangers += 1,
                },
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    });
    Ok(Answer::Listening { port, token })
}

/// In the range of ports that the site has for us, if it has one.
fn bind() -> io::Result<TcpListener> {
    let Some(mut ports) = isthmus_settings::PORTS.read(std::env::var_os) else {
        return TcpListener::bind(("0.0.0.0", 0));
    };
    let (first, last) = (*ports.start(), *ports.end());
    let bound = ports.find_map(|port| TcpListener::bind(("0.0.0.0", port)).ok());
    bound.ok_or_else(|| io::Error::other(format!("no port from {first} to {last} is free")))
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))
}

fn serve(mut stream: TcpStream, token: &[u8; 32]) -> io::Result<()> {
    prepare(&stream)?;
    let mut said = [0; 32];
    stream.read_exact(&mut said)?;
    // Every byte is compared, so that time tells nothing.
    if said.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b)) != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut one = [0; 1];
    for _ in 0..PINGS {
        stream.read_exact(&mut one)?;
        stream.write_all(&one)?;
    }
    let mut buffer = vec![0; 256 << 10];
    let mut count = 0_u64;
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            n => count += n as u64,
        }
        if count > MAX_BURST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    stream.write_all(&count.to_le_bytes())
}

/// Measures the link to whoever listens at one of these addresses.
pub(crate) fn dial(addresses: &[String], port: u16, token: &[u8; 32]) -> Result<Answer, String> {
    let mut problems = Vec::new();
    for address in addresses.iter().take(8) {
        let Ok(ip) = address.parse::<IpAddr>() else { continue };
        match measure(SocketAddr::new(ip, port), token) {
            Ok((round_trip, rate)) => {
                return Ok(Answer::Measured {
                    round_trip,
                    rate,
                    address: address.clone(),
                });
            }
            Err(error) => problems.push(format!("{address}: {error}")),
        }
    }
    Err(format!("no direct connection ({})", problems.join("; ")))
}

fn measure(address: SocketAddr, token: &[u8; 32]) -> io::Result<(u64, u64)> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT)?;
    prepare(&stream)?;
    stream.write_all(token)?;
    let mut best = Duration::MAX;
    let mut one = [7; 1];
    for _ in 0..PINGS {
        let began = Instant::now();
        stream.write_all(&one)?;
        stream.read_exact(&mut one)?;
        best = best.min(began.elapsed());
    }
    let zeros = vec![0; 64 << 10];
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < BURST && sent + (zeros.len() as u64) < MAX_BURST {
        stream.write_all(&zeros)?;
        sent += zeros.len() as u64;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut count = [0; 8];
    stream.read_exact(&mut count)?;
    // The answer took half a round trip that the bytes did not, and the first bytes another half.
    let took = began.elapsed().saturating_sub(best).max(Duration::from_millis(1));
    let rate = u64::from_le_bytes(count) as f64 * 8.0 / took.as_secs_f64();
    Ok((u64::try_from(best.as_nanos()).unwrap_or(u64::MAX), rate as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_measured_and_strangers_learn_nothing() {
        let Ok(Answer::Listening { port, token }) = listen() else {
            panic!("nobody listens")
        };
        let here = ["nonsense".to_owned(), "127.0.0.1".to_owned()];
        assert!(dial(&here, port, &[0; 32]).is_err());
        let Ok(Answer::Measured {
            round_trip,
            rate,
            address,
        }) = dial(&here, port, &token)
        else {
            panic!("nothing measured")
        };
        assert!(round_trip > 0 && rate > 0 && address == "127.0.0.1");
        assert!(dial(&here, 1, &token).unwrap_err().contains("no direct connection"));
    }
}
