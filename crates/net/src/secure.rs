// SPDX-License-Identifier: Apache-2.0
//! A TLS connection over a socket that does not block.
//!
//! The TLS library does the handshake; then it hands over its keys, and records are ours (`secure/records.rs`): one
//! large read, decrypted piece by piece where it lies; many records, encrypted straight from where the data lie, in one
//! large write.

mod aead;
mod records;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, InsufficientSizeError, UnbufferedStatus};
use rustls::{ClientConfig, ServerConfig};

pub use self::records::fuzz_records;
use self::records::{Failure, Records};
use crate::tcpinfo::TcpInfo;
use crate::{pacing, socket};

/// Plain bytes that are encrypted for one write. What is encrypted cannot be overtaken any more, so it is half of what
/// the kernel holds unsent anyway (`NOT_SENT_LOW_WATER` in `socket.rs`). With it 64 MiB go 0.82 times as quickly as
/// with [`LONG_BATCH`] (`docs/measured/connections.md`): at 2 GB/s or more, which no link with long round trips has.
const BATCH: usize = 256 << 10;
/// The same over short round trips, as long as the socket takes all of it at once. On a machine where two processes are
/// joined by a virtual cable and a bridge, 64 MiB took 5 % less time than with 1 MiB, 12 % less than with 512 KiB, 18 %
/// less than with 256 KiB.
const LONG_BATCH: usize = 2 << 20;
/// Room for them and the overhead of their records, and for a part of a handshake.
const BATCH_ROOM: usize = LONG_BATCH + LONG_BATCH / 64 + 4096;
/// Bytes of a handshake that may wait for their rest; above it the peer is not serious.
const MAX_TAIL: usize = 64 << 10;

/// Nobody writes before the handshake is over.
const NOT_OPEN: Broken = Broken::Internal("a TLS connection is written to before it is open");

/// Why a TLS connection ended.
#[derive(Clone, Debug)]
pub(crate) enum Broken {
    Socket(Errno),
    Tls(rustls::Error),
    Record(records::Violation),
    /// What was half sent cannot be ended, since its memory was taken back: the peer was lost meanwhile.
    Withdrawn,
    /// Bug of ours or of the TLS library.
    Internal(&'static str),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(e) => write!(f, "{}", std::io::Error::from(*e)),
            Self::Tls(e) => write!(f, "TLS: {e}"),
            Self::Record(e) => write!(f, "TLS: {e}"),
            Self::Withdrawn => f.write_str("the message that was being sent was withdrawn"),
            Self::Internal(what) => write!(f, "bug in Isthmus: {what}"),
        }
    }
}

impl From<rustls::Error> for Broken {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error)
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Peer(violation) => Self::Record(violation),
            Failure::Keys(e) => Self::Tls(e),
            Failure::Cipher => Self::Internal("a TLS record cannot be encrypted"),
            Failure::NoRoom => Self::Internal("no room for a TLS record"),
        }
    }
}

impl From<Errno> for Broken {
    fn from(error: Errno) -> Self {
        Self::Socket(error)
    }
}

/// Buffers of the thread, shared by all connections.
#[derive(Debug)]
pub(crate) struct Scratch {
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self {
            input: vec![0; MAX_TAIL + (256 << 10)],
            output: vec![0; BATCH_ROOM],
        }
    }
}

enum Session {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
    /// The handshake is over.
    Open(Records),
    /// It failed.
    Broken,
}

/// What one step of the record layer came to.
enum Step {
    Again,
    /// More from the peer is needed for the handshake.
    Blocked,
    Open,
    Ended,
}

pub(crate) struct Secure {
    pub(crate) socket: OwnedFd,
    session: Session,
    /// What the peer has shown, once open.
    certificates: Option<Vec<CertificateDer<'static>>>,
    /// Encrypted bytes that are not a whole record yet.
    tail: Vec<u8>,
    /// Encrypted bytes that the socket did not take, from `sent` on.
    pending: Vec<u8>,
    sent: usize,
    /// Plain bytes that the next write takes.
    batch: usize,
    /// Bytes to go until pacing and congestion control may smooth what the rate is measured by.
    measuring: u64,
    /// Bytes per second to which it is held.
    limit: Option<f64>,
    /// Packets leave at a pace.
    paced: bool,
    /// Its congestion control goes by the rate, not by losses.
    pub(crate) by_rate: bool,
    /// When that began; as far as anybody looked.
    begun: Option<Duration>,
    /// Round trips are so short that it does without both.
    pub(crate) near: bool,
    pub(crate) open: bool,
    /// The last reading found less than it had room for.
    pub(crate) emptied: bool,
    /// The peer will send no more.
    pub(crate) ended: bool,
}

impl Secure {
    pub(crate) fn dial(socket: OwnedFd, config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Broken> {
        Ok(Self::new(
            socket,
            Session::Client(UnbufferedClientConnection::new(config, name)?),
        ))
    }

    /// `first`: bytes that were read to find out that this is TLS.
    pub(crate) fn accept(socket: OwnedFd, config: Arc<ServerConfig>, first: &[u8]) -> Result<Self, Broken> {
        let mut out = Self::new(socket, Session::Server(UnbufferedServerConnection::new(config)?));
        out.tail.extend_from_slice(first);
        Ok(out)
    }

    fn new(socket: OwnedFd, session: Session) -> Self {
        Self {
            socket,
            session,
            certificates: None,
            tail: Vec::new(),
            pending: Vec::new(),
            sent: 0,
            batch: BATCH,
            measuring: pacing::MEASURING,
            limit: None,
            paced: false,
            by_rate: false,
            begun: None,
            near: false,
            open: false,
            emptied: false,
            ended: false,
        }
    }

    /// Holds what is sent to so many bytes per second, or to none in particular: `at_once`, or from the first time on
    /// that there is more to send than the socket takes.
    pub(crate) fn hold(&mut self, limit: Option<f64>, at_once: bool) {
        let begins = at_once && limit.is_some() && !self.paced;
        if self.limit != limit || begins {
            self.limit = limit;
            if at_once || self.paced {
                self.pace();
            }
        }
    }

    /// For good: a socket that has been paced once remains so.
    fn pace(&mut self) {
        self.paced = true;
        let _ = pacing::pace(&self.socket, self.limit);
    }

    /// Lets congestion control begin anew to look for the rate of the link.
    pub(crate) fn look_anew(&self) {
        if self.by_rate {
            pacing::look_anew(&self.socket);
        }
    }

    /// The same from time to time, at a moment without traffic, where it costs nothing: the rate is known.
    pub(crate) fn rest(&mut self, now: Duration, info: &TcpInfo) {
        if !self.by_rate {
            return;
        }
        let since = now.saturating_sub(*self.begun.get_or_insert(now));
        let quiet = info.under_way == 0 && info.unsent == 0 && !self.full();
        if quiet && self.limit.is_some() && pacing::is_stale(since) {
            self.begun = Some(now);
            self.look_anew();
        }
    }

    /// Certificates of the peer, once open.
    pub(crate) fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.certificates.as_deref()
    }

    /// Whether encrypted bytes wait for the socket.
    pub(crate) fn full(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Reads once and hands over what was decrypted. How many bytes were there, encrypted; 1 for the end of the stream.
    pub(crate) fn read(&mut self, scratch: &mut Scratch, to: &mut dyn FnMut(&[u8])) -> Result<usize, Broken> {
        let have = self.tail.len();
        scratch.input[..have].copy_from_slice(&self.tail);
        let room = if self.open {
            scratch.input.len()
        } else {
            have + (16 << 10)
        };
        let Some(n) = socket::receive(&self.socket, &mut scratch.input[have..room])? else {
            return Ok(0);
        };
        if n == 0 {
            self.ended = true;
            return Ok(1);
        }
        self.emptied = n < room - have;
        self.process(scratch, have + n, to)?;
        Ok(n)
    }

    /// Goes on with what is there already: the start of a handshake.
    pub(crate) fn go_on(&mut self, scratch: &mut Scratch, to: &mut dyn FnMut(&[u8])) -> Result<(), Broken> {
        let have = self.tail.len();
        scratch.input[..have].copy_from_slice(&self.tail);
        self.process(scratch, have, to)
    }

    fn process(&mut self, scratch: &mut Scratch, have: usize, to: &mut dyn FnMut(&[u8])) -> Result<(), Broken> {
        let Scratch { input, output } = scratch;
        let (mut start, mut used) = (0, 0);
        let mut result = Ok(());
        if !self.open {
            result = self.shake(&mut input[..have], &mut start, output, &mut used, to);
        }
        if result.is_ok() {
            result = self.unseal(&mut input[..have], &mut start, output, &mut used, to);
        }
        self.transmit(&output[..used])?;
        result?;
        if have - start > MAX_TAIL {
            return Err(Broken::Tls(rustls::Error::General("a record is too long".into())));
        }
        self.tail.clear();
        self.tail.extend_from_slice(&input[start..have]);
        Ok(())
    }

    /// Goes on with the handshake, from byte `start` of the input on. Open when it is over.
    fn shake(
        &mut self,
        input: &mut [u8],
        start: &mut usize,
        output: &mut [u8],
        used: &mut usize,
        to: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Broken> {
        loop {
            let (discard, step) = self.step(&mut input[*start..], output, used, to);
            *start += discard;
            match step {
                Ok(Step::Again) => {}
                Ok(Step::Blocked) => return Ok(()),
                Ok(Step::Open) => return self.take_over(),
                Ok(Step::Ended) => {
                    self.ended = true;
                    *start = input.len();
                    return Ok(());
                }
                Err(e) => {
                    if let Broken::Tls(_) = &e {
                        self.alert(&mut input[*start..], output, used);
                    }
                    return Err(e);
                }
            }
        }
    }

    /// Takes the keys from the TLS library, which has done its part.
    fn take_over(&mut self) -> Result<(), Broken> {
        let certificates = |seen: Option<&[CertificateDer<'static>]>| seen.map(<[_]>::to_vec);
        let records = match std::mem::replace(&mut self.session, Session::Broken) {
            Session::Client(session) => {
                self.certificates = certificates(session.peer_certificates());
                let (secrets, next) = session.dangerous_into_kernel_connection()?;
                Records::new(secrets.tx, secrets.rx, Box::new(next))
            }
            Session::Server(session) => {
                self.certificates = certificates(session.peer_certificates());
                let (secrets, next) = session.dangerous_into_kernel_connection()?;
                Records::new(secrets.tx, secrets.rx, Box::new(next))
            }
            Session::Open(_) | Session::Broken => return Err(Broken::Internal("a handshake was over twice")),
        };
        self.session = Session::Open(records?);
        self.open = true;
        Ok(())
    }

    /// Decrypts what is there, from byte `start` of the input on.
    fn unseal(
        &mut self,
        input: &mut [u8],
        start: &mut usize,
        output: &mut [u8],
        used: &mut usize,
        to: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Broken> {
        let Session::Open(records) = &mut self.session else {
            return Ok(());
        };
        match records.open(&mut input[*start..], to) {
            Ok(opened) => {
                self.ended |= opened.ended;
                *start = if opened.ended {
                    input.len()
                } else {
                    *start + opened.used
                };
                Ok(())
            }
            Err(failure) => {
                *used += records.alert(&failure, &mut output[*used..]);
                Err(failure.into())
            }
        }
    }

    fn step(
        &mut self,
        input: &mut [u8],
        output: &mut [u8],
        used: &mut usize,
        to: &mut dyn FnMut(&[u8]),
    ) -> (usize, Result<Step, Broken>) {
        match &mut self.session {
            Session::Client(c) => handle(c.process_tls_records(input), output, used, to),
            Session::Server(s) => handle(s.process_tls_records(input), output, used, to),
            Session::Open(_) | Session::Broken => (0, Err(Broken::Internal("no handshake is going on"))),
        }
    }

    /// Collects the alert that tells the peer what was wrong. `input` is what the failed step left: the TLS library
    /// remembers positions in it.
    fn alert(&mut self, mut input: &mut [u8], output: &mut [u8], used: &mut usize) {
        let before = *used;
        for _ in 0..4 {
            let (discard, step) = self.step(input, output, used, &mut |_| {});
            if *used > before || !matches!(step, Ok(Step::Again)) {
                return;
            }
            input = &mut input[discard..];
        }
    }

    /// Plain bytes that the next write takes at most.
    pub(crate) fn batch(&self) -> usize {
        self.batch
    }

    /// Encrypts and sends; what the socket does not take waits. Takes at most [`Secure::batch`] bytes, returns how
    /// many.
    pub(crate) fn write(&mut self, scratch: &mut Scratch, source: &mut dyn Source) -> Result<usize, Broken> {
        let Session::Open(records) = &mut self.session else {
            return Err(NOT_OPEN);
        };
        let (mut used, mut taken) = (0, 0);
        while taken < self.batch {
            let room = &mut scratch.output[used..];
            // Many short pieces make many records with overhead each.
            let most = Records::fits(room.len()).min(self.batch - taken);
            let n = source.next(&mut |first, second| {
                let first = &first[..first.len().min(most)];
                let second = &second[..second.len().min(most - first.len())];
                let before = records.seal(first, room)?;
                used += before + records.seal(second, &mut room[before..])?;
                Ok(first.len() + second.len())
            })?;
            if n == 0 {
                break;
            }
            taken += n;
            source.consume(n);
        }
        self.transmit(&scratch.output[..used])?;
        if !self.pending.is_empty() {
            self.batch = BATCH;
        } else if self.near && taken == self.batch {
            self.batch = (self.batch * 2).min(LONG_BATCH);
        }
        Ok(taken)
    }

    /// Sends these few bytes, outside of a source.
    pub(crate) fn write_short(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let Session::Open(records) = &mut self.session else {
            return Err(NOT_OPEN);
        };
        let mut output = [0; 512];
        let n = records.seal(bytes, &mut output)?;
        self.transmit(&output[..n])
    }

    /// Sends what waits. True when nothing waits any more.
    pub(crate) fn flush(&mut self) -> Result<bool, Broken> {
        while self.sent < self.pending.len() {
            match socket::send(&self.socket, &self.pending[self.sent..], &[])? {
                Some(n) => self.sent += n,
                None => return Ok(false),
            }
        }
        self.pending.clear();
        self.sent = 0;
        Ok(true)
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let mut n = 0;
        if self.pending.is_empty() && !bytes.is_empty() {
            n = socket::send(&self.socket, bytes, &[])?.unwrap_or(0);
        }
        self.pending.extend_from_slice(&bytes[n..]);
        if !self.paced && self.limit.is_some() && !self.pending.is_empty() {
            self.pace();
        }
        if self.measuring > 0 {
            self.measuring = self.measuring.saturating_sub(bytes.len() as u64);
            if self.measuring == 0 {
                self.smooth();
            }
        }
        Ok(())
    }

    /// From now on it is paced, and the rate that it finds is what it goes by. Where that is not to be had, rates are
    /// lower.
    pub(crate) fn smooth(&mut self) {
        self.measuring = 0;
        self.near = pacing::spare_the_near(&self.socket);
        if self.near {
            return;
        }
        self.pace();
        self.by_rate = pacing::control(&self.socket);
    }
}

/// Takes some of these bytes, the first slice first, and says how many.
pub(crate) type Seal<'a> = dyn FnMut(&[u8], &[u8]) -> Result<usize, Broken> + 'a;

/// Where plain bytes come from.
pub(crate) trait Source {
    /// Gives the next bytes, once, to `seal`, and returns what that returns; both empty: there are no more.
    fn next(&mut self, seal: &mut Seal<'_>) -> Result<usize, Broken>;
    fn consume(&mut self, n: usize);
}

fn handle<D>(
    status: UnbufferedStatus<'_, '_, D>,
    output: &mut [u8],
    used: &mut usize,
    to: &mut dyn FnMut(&[u8]),
) -> (usize, Result<Step, Broken>) {
    let mut discard = status.discard;
    let step = status
        .state
        .map_err(Broken::from)
        .and_then(|state| handle_state(state, &mut discard, output, used, to));
    (discard, step)
}

fn handle_state<D>(
    state: ConnectionState<'_, '_, D>,
    discard: &mut usize,
    output: &mut [u8],
    used: &mut usize,
    to: &mut dyn FnMut(&[u8]),
) -> Result<Step, Broken> {
    Ok(match state {
        ConnectionState::EncodeTlsData(mut data) => {
            *used += data.encode(&mut output[*used..]).map_err(encoding)?;
            Step::Again
        }
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Step::Again
        }
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(record) = traffic.next_record() {
                let record = record?;
                *discard += record.discard;
                to(record.payload);
            }
            Step::Again
        }
        ConnectionState::BlockedHandshake => Step::Blocked,
        ConnectionState::WriteTraffic(_) => Step::Open,
        ConnectionState::PeerClosed | ConnectionState::Closed => Step::Ended,
        _ => return Err(Broken::Internal("unknown state of TLS")),
    })
}

fn encoding(error: EncodeError) -> Broken {
    match error {
        EncodeError::InsufficientSize(InsufficientSizeError { .. }) => Broken::Internal("no room for a TLS record"),
        EncodeError::AlreadyEncoded => Broken::Internal("a TLS record was encoded twice"),
    }
}

#[cfg(test)]
mod tests;
