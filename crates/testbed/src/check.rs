// SPDX-License-Identifier: Apache-2.0
//! How accurate the testbed is on this machine, by probes of its own: round trip by UDP, rate by TCP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::bed::Testbed;
use crate::error::Error;
use crate::link::LinkSpec;
use crate::topology::Topology;

/// Share of the rate that is TCP payload: 1448 of 1538 bytes of each packet on the line.
const PAYLOAD_SHARE: f64 = 1448.0 / 1538.0;
/// Time of a stream that is not counted: slow start.
const WARM_UP: Duration = Duration::from_millis(1500);

/// What to measure.
#[derive(Clone, Debug)]
pub struct CheckPlan {
    /// Round trips, each with the number of probes.
    pub round_trips: Vec<(Duration, u32)>,
    /// Round trips between two machines of one site, each with the number of probes.
    pub local_round_trips: Vec<(Duration, u32)>,
    /// Rates in bits per second, each with its round trip.
    pub rates: Vec<(u64, Duration)>,
    /// How long each stream is measured.
    pub stream: Duration,
}

/// One measurement beside what was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct CheckRow {
    /// What was measured, with its unit.
    pub what: String,
    /// What the link was set to.
    pub asked: f64,
    /// What was measured: the median of round trips in ms, Mbit/s of a stream.
    pub got: f64,
    /// How far it may be off, in the same unit.
    pub tolerance: f64,
    /// Why this row is not to be trusted, if it is not.
    pub distrust: Option<String>,
}

impl CheckRow {
    /// Whether the measurement is within the tolerance.
    #[must_use]
    pub fn good(&self) -> bool {
        (self.asked - self.got).abs() <= self.tolerance
    }
}

impl Default for CheckPlan {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            round_trips: vec![(ms(1), 300), (ms(10), 150), (ms(40), 50), (ms(75), 30)],
            local_round_trips: vec![(ms(1), 300), (ms(5), 150)],
            rates: vec![(10_000_000, ms(10)), (200_000_000, ms(40)), (1_000_000_000, ms(10))],
            stream: Duration::from_secs(4),
        }
    }
}

/// Builds a small testbed for each row and measures it.
///
/// # Errors
/// As [`Testbed::start`]; [`Error::System`] when a probe fails.
pub fn check(plan: &CheckPlan) -> Result<Vec<CheckRow>, Error> {
    let mut rows = Vec::new();
    for &(round_trip, probes) in &plan.round_trips {
        let bed = pair(LinkSpec {
            round_trip,
            rate: Some(1_000_000_000),
            ..LinkSpec::default()
        })?;
        rows.push(check_round_trip("round trip, ms", &bed, "b1", round_trip, probes)?);
    }
    for &(round_trip, probes) in &plan.local_round_trips {
        let bed = Topology::grid("2x2")?.local_round_trip(&format!("{}us", round_trip.as_micros()))?;
        rows.push(check_round_trip(
            "round trip in a site, ms",
            &bed,
            "a2",
            round_trip,
            probes,
        )?);
    }
    for &(rate, round_trip) in &plan.rates {
        rows.push(check_rate(rate, round_trip, plan.stream)?);
    }
    Ok(rows)
}

/// Probes between `a1` and `far`, which are to be `round_trip` apart.
fn check_round_trip(
    what: &str,
    topology: &Topology,
    far: &str,
    round_trip: Duration,
    probes: u32,
) -> Result<CheckRow, Error> {
    let bed = Testbed::start(topology)?;
    let got = udp_round_trip(&bed, far, probes)?.as_secs_f64() * 1e3;
    let asked = round_trip.as_secs_f64() * 1e3;
    let report = bed.stop()?;
    Ok(CheckRow {
        what: what.to_owned(),
        asked,
        got,
        tolerance: 0.3 + asked * 0.01,
        distrust: report.distrust(),
    })
}

fn check_rate(rate: u64, round_trip: Duration, time: Duration) -> Result<CheckRow, Error> {
    let bed = Testbed::start(&pair(LinkSpec {
        round_trip,
        rate: Some(rate),
        ..LinkSpec::default()
    })?)?;
    #[expect(clippy::cast_precision_loss, reason = "at most 100 Gbit/s")]
    let asked = rate as f64 / 1e6;
    let got = tcp_rate(&bed, time)? / PAYLOAD_SHARE;
    let report = bed.stop()?;
    let what = format!("rate at {} ms, Mbit/s", round_trip.as_millis());
    Ok(CheckRow {
        what,
        asked,
        got,
        tolerance: asked * 0.03,
        distrust: report.distrust(),
    })
}

fn pair(link: LinkSpec) -> Result<Topology, Error> {
    Ok(Topology {
        link,
        ..Topology::grid("2x1")?
    })
}

/// Median time of small datagrams from `a1` to `far` and back.
fn udp_round_trip(bed: &Testbed, far: &str, probes: u32) -> Result<Duration, Error> {
    let failed = || Error::system("probe the round trip");
    let (near, far) = (bed.host("a1")?, bed.host(far)?);
    let echo = far.in_network(|| UdpSocket::bind("0.0.0.0:7000"))?.map_err(failed())?;
    let probe = near.in_network(|| UdpSocket::bind("0.0.0.0:0"))?.map_err(failed())?;
    probe
        .connect(SocketAddr::from((far.address(), 7000)))
        .map_err(failed())?;
    for socket in [&echo, &probe] {
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .map_err(failed())?;
    }
    let times = std::thread::scope(|scope| {
        scope.spawn(move || reflect(&echo));
        exchange(&probe, probes)
    });
    let mut times = times.map_err(failed())?;
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Sends every datagram back until an empty one or silence.
fn reflect(socket: &UdpSocket) {
    let mut buffer = [0; 64];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        if length == 0 || socket.send_to(&buffer[..length], from).is_err() {
            return;
        }
    }
}

fn exchange(socket: &UdpSocket, probes: u32) -> std::io::Result<Vec<Duration>> {
    let mut buffer = [0; 64];
    let mut times = Vec::new();
    // The first exchange also finds the neighbours' addresses: not counted.
    for number in 0..=probes {
        let start = Instant::now();
        socket.send(b"probe")?;
        socket.recv(&mut buffer)?;
        if number > 0 {
            times.push(start.elapsed());
        }
    }
    socket.send(b"")?;
    Ok(times)
}

/// Mbit/s of payload of one TCP stream from `a1` to `b1` once it is up to speed.
fn tcp_rate(bed: &Testbed, time: Duration) -> Result<f64, Error> {
    let failed = || Error::system("probe the rate");
    let (near, far) = (bed.host("a1")?, bed.host("b1")?);
    let listener = far
        .in_network(|| TcpListener::bind("0.0.0.0:7001"))?
        .map_err(failed())?;
    let address = SocketAddr::from((far.address(), 7001));
    let stream = near
        .in_network(|| TcpStream::connect_timeout(&address, Duration::from_secs(5)))?
        .map_err(failed())?;
    stream
        .set_write_timeout(Some(Duration::from_secs(5)))
        .map_err(failed())?;
    let (inbound, _) = listener.accept().map_err(failed())?;
    let measured = std::thread::scope(|scope| {
        scope.spawn(move || pour(stream, WARM_UP + time));
        sink(inbound, time)
    });
    measured.map_err(failed())
}

fn pour(mut stream: TcpStream, time: Duration) {
    let start = Instant::now();
    let data = vec![0; 1 << 18];
    while start.elapsed() < time {
        if stream.write_all(&data).is_err() {
            return;
        }
    }
}

fn sink(mut stream: TcpStream, time: Duration) -> std::io::Result<f64> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut buffer = vec![0; 1 << 20];
    let start = Instant::now();
    while start.elapsed() < WARM_UP && stream.read(&mut buffer)? > 0 {}
    let (start, mut bytes) = (Instant::now(), 0usize);
    while start.elapsed() < time {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        bytes += length;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = bytes as f64 * 8.0 / 1e6 / start.elapsed().as_secs_f64();
    Ok(rate)
}
