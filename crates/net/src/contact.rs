// SPDX-License-Identifier: Apache-2.0
//! First contact: a TLS connection to a process that is known by the hash of its certificate, before the two have any
//! other way to talk. It carries messages with their lengths, and never blocks.
//!
//! The one that connects knows the other by the fingerprint. It is a stranger itself until it has proven inside the
//! connection that it may speak: until then it may send short messages only ([`Contact::trust`]).

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use isthmus_identity::{Fingerprint, Pinned, pinned_client};
use isthmus_wire::codec::MAX_MESSAGE;
use isthmus_wire::entry::knock;
use isthmus_wire::gate::{HERE, Key};
use rustls::{ClientConnection, Connection, ServerConnection};

use crate::listener::Listener;
use crate::socket::send_several;

/// Longest message of a stranger.
pub const MAX_OF_STRANGER: usize = 256;
/// Bytes that are encrypted before the socket has taken earlier ones.
const AHEAD: usize = 256 << 10;
/// Bytes of one read.
const READ: usize = 16 << 10;

/// One end of such a connection.
pub struct Contact {
    socket: TcpStream,
    tls: Connection,
    /// What has arrived and is no whole message yet.
    came: Vec<u8>,
    /// What is to be sent, from a position on.
    leaves: (Vec<u8>, usize),
    longest: usize,
    /// Something has come.
    heard: bool,
    /// The other end has said that it sends no more.
    ended: bool,
}

impl std::fmt::Debug for Contact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contact").finish_non_exhaustive()
    }
}

/// Where first contacts come in.
#[derive(Debug)]
pub struct Contacts(TcpListener);

impl Contacts {
    /// Those that come to this socket.
    pub fn at(listener: Listener) -> Self {
        Self(TcpListener::from(std::os::fd::OwnedFd::from(listener)))
    }

    /// The next one, if somebody waits. Errors are those of the system: pause.
    pub fn next(&self, pinned: &Pinned) -> Result<Option<Contact>, String> {
        let socket = match self.0.accept() {
            Ok((socket, _)) => socket,
            Err(error) if is_later(&error) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let tls = ServerConnection::new(pinned.server()).map_err(|error| error.to_string())?;
        Contact::over(socket, tls.into(), MAX_OF_STRANGER).map(Some)
    }
}

impl AsFd for Contacts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn is_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl Contact {
    /// To the process with this fingerprint. Waits for the connection so long at most.
    pub fn dial(address: SocketAddr, fingerprint: Fingerprint, patience: Duration) -> Result<Self, String> {
        Self::with(dialled(address, patience)?, fingerprint)
    }

    /// The same through the door of a gateway that leads there.
    pub fn dial_behind(
        address: SocketAddr,
        key: &Key,
        fingerprint: Fingerprint,
        patience: Duration,
    ) -> Result<Self, String> {
        let mut socket = dialled(address, patience)?;
        let mut said = [0];
        let asked = socket.set_read_timeout(Some(patience));
        let knocked = asked.and_then(|()| socket.write_all(&knock(key)));
        let heard = knocked.and_then(|()| socket.read_exact(&mut said));
        heard.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => "the gateway there does not answer".to_owned(),
            ErrorKind::UnexpectedEof => "what answers there is no gateway of this version".to_owned(),
            _ => error.to_string(),
        })?;
        match said {
            [HERE] => Self::with(socket, fingerprint),
            _ => Err("the gateway there does not reach the process, or that has ended".to_owned()),
        }
    }

    fn with(socket: TcpStream, fingerprint: Fingerprint) -> Result<Self, String> {
        let (config, name) = pinned_client(fingerprint).map_err(|error| error.to_string())?;
        let tls = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        Self::over(socket, tls.into(), MAX_MESSAGE)
    }

    fn over(socket: TcpStream, tls: Connection, longest: usize) -> Result<Self, String> {
        let ready = socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true));
        ready.map_err(|error| error.to_string())?;
        Ok(Self {
            socket,
            tls,
            came: Vec::new(),
            leaves: (Vec::new(), 0),
            longest,
            heard: false,
            ended: false,
        })
    }

    /// The other end has proven who it is: its messages may be long.
    pub fn trust(&mut self) {
        self.longest = MAX_MESSAGE;
    }

    /// A message is on its way from now on; [`Contact::advance`] moves it.
    pub fn send(&mut self, message: &[u8]) {
        self.leaves.0.extend((message.len() as u32).to_le_bytes());
        self.leaves.0.extend(message);
    }

    /// Whether all that was sent has left.
    pub fn has_left(&self) -> bool {
        self.leaves.1 == self.leaves.0.len() && !self.tls.wants_write()
    }

    /// Whether the two ends have yet to agree on keys.
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the other end has said anything yet.
    pub fn has_heard(&self) -> bool {
        self.heard
    }

    /// Moves what can be moved without waiting. An error ends the connection.
    pub fn advance(&mut self) -> Result<(), String> {
        self.read()?;
        self.write()
    }

    /// The next whole message. `Err`: none can come any more.
    pub fn receive(&mut self) -> Result<Option<Vec<u8>>, String> {
        let Some(head) = self.came.first_chunk::<4>() else {
            return self.nothing();
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > self.longest {
            return Err(format!("it sent a message of {length} bytes"));
        }
        if self.came.len() < 4 + length {
            return self.nothing();
        }
        let rest = self.came.split_off(4 + length);
        let message = std::mem::replace(&mut self.came, rest);
        Ok(Some(message[4..].to_vec()))
    }

    fn nothing(&self) -> Result<Option<Vec<u8>>, String> {
        match self.ended {
            true => Err("the other end has closed the connection".to_owned()),
            false => Ok(None),
        }
    }

    fn read(&mut self) -> Result<(), String> {
        let mut bytes = [0; READ];
        // What is not taken out yet bounds what is read.
        while !self.ended && self.came.len() <= self.longest + 4 {
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => self.ended = true,
                Ok(_) => self.heard = true,
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
            if let Err(error) = self.tls.process_new_packets() {
                // The other end hears why.
                let _ = self.tls.write_tls(&mut Quiet(&self.socket));
                return Err(error.to_string());
            }
            loop {
                match self.tls.reader().read(&mut bytes) {
                    Ok(0) => {
                        self.ended = true;
                        break;
                    }
                    Ok(count) => self.came.extend(&bytes[..count]),
                    Err(error) if is_later(&error) => break,
                    // Cut off without a farewell.
                    Err(_) => {
                        self.ended = true;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), String> {
        loop {
            let (bytes, at) = &mut self.leaves;
            if !self.tls.is_handshaking() && *at < bytes.len() && !self.tls.wants_write() {
                let end = bytes.len().min(*at + AHEAD);
                let written = self.tls.writer().write(&bytes[*at..end]);
                *at += written.map_err(|error| error.to_string())?;
                if *at == bytes.len() {
                    self.leaves = (Vec::new(), 0);
                }
            }
            if !self.tls.wants_write() {
                return Ok(());
            }
            match self.tls.write_tls(&mut Quiet(&self.socket)) {
                Ok(_) => {}
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// Writes to a socket whose other end may be gone, which must not end the program (SIGPIPE).
struct Quiet<'s>(&'s TcpStream);

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> std::io::Result<usize> {
        send_several(self.0, pieces)?.ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn dialled(address: SocketAddr, patience: Duration) -> Result<TcpStream, String> {
    TcpStream::connect_timeout(&address, patience).map_err(|error| error.to_string())
}

impl AsFd for Contact {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves both until `done`.
    fn run(ends: &mut [&mut Contact], mut done: impl FnMut(&mut [&mut Contact]) -> bool) -> Result<(), String> {
        for _ in 0..1_000_000 {
            for end in ends.iter_mut() {
                end.advance()?;
            }
            if done(ends) {
                return Ok(());
            }
        }
        Err("it does not end".to_owned())
    }

    fn pair() -> (Contact, Contact) {
        let pinned = Pinned::new().expect("a key");
        let listener = Listener::bind_here().expect("a port");
        let address = SocketAddr::from(([127, 0, 0, 1], listener.port()));
        let contacts = Contacts::at(listener);
        let dialled = Contact::dial(address, pinned.fingerprint(), Duration::from_secs(5)).expect("it listens");
        loop {
            if let Some(accepted) = contacts.next(&pinned).expect("descriptors") {
                return (dialled, accepted);
            }
        }
    }

    #[test]
    fn messages_go_both_ways_and_long_ones_need_trust() {
        let (mut a, mut b) = pair();
        a.send(b"hello");
        let mut heard = None;
        run(&mut [&mut a, &mut b], |ends| {
            heard = ends[1].receive().expect("it lives");
            heard.is_some()
        })
        .expect("all is well");
        assert_eq!(heard.as_deref(), Some(&b"hello"[..]));
        b.trust();
        let long = vec![7; 3 << 20];
        a.send(&long);
        b.send(&long);
        let mut heard = [None, None];
        run(&mut [&mut a, &mut b], |ends| {
            for (heard, end) in heard.iter_mut().zip(ends) {
                if heard.is_none() {
                    *heard = end.receive().expect("it lives");
                }
            }
            heard.iter().all(Option::is_some)
        })
        .expect("all is well");
        assert!(heard.iter().all(|heard| heard.as_ref() == Some(&long)));
    }

    #[test]
    fn a_stranger_is_not_heard_for_long() {
        let (mut a, mut b) = pair();
        a.send(&[0; MAX_OF_STRANGER + 1]);
        let mut refused = false;
        run(&mut [&mut a, &mut b], |ends| {
            refused = ends[1].receive().is_err();
            refused
        })
        .expect("the connection itself is fine");
        assert!(refused);
    }

    #[test]
    fn another_key_is_not_believed() {
        let (pinned, other) = (Pinned::new().expect("a key"), Pinned::new().expect("a key"));
        let listener = Listener::bind_here().expect("a port");
        let address = SocketAddr::from(([127, 0, 0, 1], listener.port()));
        let contacts = Contacts::at(listener);
        let mut dialled = Contact::dial(address, other.fingerprint(), Duration::from_secs(5)).expect("it listens");
        let mut accepted = loop {
            if let Some(accepted) = contacts.next(&pinned).expect("descriptors") {
                break accepted;
            }
        };
        let failed = run(&mut [&mut dialled, &mut accepted], |ends| !ends[0].is_handshaking());
        assert!(failed.is_err());
    }
}
