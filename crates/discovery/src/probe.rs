// SPDX-License-Identifier: Apache-2.0
//! Measuring the link between two sites: one listens for some seconds, the other dials. Bytes are metered where they
//! arrive.

use isthmus_link::meter::{MAX_STREAM, Read as Came, Sounding};
use isthmus_stage::guarded::random;
use isthmus_wire::rate::{RATE_BYTES, Rate};
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
/// How long what was sent too much is still taken, so that the answer arrives before the end.
const REST: Duration = Duration::from_secs(1);
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
    let mut round_trip = Duration::MAX;
    for number in 0..PINGS {
        let waited = Instant::now();
        stream.read_exact(&mut one)?;
        // The next byte comes when the other side has got this one.
        if number > 0 {
            round_trip = round_trip.min(waited.elapsed());
        }
        stream.write_all(&one)?;
    }
    let rate = sound(&mut stream, round_trip)?;
    stream.write_all(&Rate::encode(rate))?;
    let (end, mut buffer) = (Instant::now() + REST, vec![0; 256 << 10]);
    stream.set_read_timeout(Some(REST))?;
    while Instant::now() < end && stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
    Ok(())
}

/// Reads until that says enough.
fn sound(stream: &mut TcpStream, round_trip: Duration) -> io::Result<Option<Rate>> {
    let mut buffer = vec![0; 256 << 10];
    let mut sounding = Sounding::new(Instant::now(), round_trip);
    while let Some(left) = sounding.left(Instant::now()) {
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                let (bytes, emptied) = (n as u64, n < buffer.len());
                sounding.arrived(Instant::now(), Came { bytes, emptied });
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // It was silent for so long.
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(sounding.end())
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

fn measure(address: SocketAddr, token: &[u8; 32]) -> io::Result<(u64, Option<Rate>)> {
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
    let mut sending = stream.try_clone()?;
    let sender = std::thread::spawn(move || {
        let zeros = vec![0; 64 << 10];
        // It fails when the answer is there, or nobody takes anything any more.
        (0..2 * MAX_STREAM / zeros.len() as u64).all(|_| sending.write_all(&zeros).is_ok())
    });
    let mut said = [0; RATE_BYTES];
    let answer = stream.read_exact(&mut said);
    let _ = stream.shutdown(std::net::Shutdown::Both);
    let _ = sender.join();
    answer?;
    let rate = Rate::decode(&said).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
    Ok((u64::try_from(best.as_nanos()).unwrap_or(u64::MAX), rate))
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
        assert!(round_trip > 0 && address == "127.0.0.1");
        assert!(rate.is_some_and(|r| r.bytes_per_second > 1_000_000), "{rate:?}");
        assert!(dial(&here, 1, &token).unwrap_err().contains("no direct connection"));
    }
}
