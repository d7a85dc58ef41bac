// SPDX-License-Identifier: Apache-2.0
//! The one listening socket of a process.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketFlags;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::NetError;

/// Connections that wait in the kernel. The kernel lowers it to its own limit.
const BACKLOG: i32 = 4096;

/// TCP ports a process may listen on, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// First port.
    pub first: u16,
    /// Last port, at least `first`.
    pub last: u16,
}

/// The socket on which a process can be reached, on all its addresses, IPv4 and IPv6.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    port: u16,
}

/// What came of an attempt to accept.
pub(crate) enum Accepted {
    Socket(OwnedFd),
    /// Nobody waits.
    Nobody,
    /// The process or the machine has no descriptors or memory left: pause.
    Exhausted,
}

impl Listener {
    /// Listens on a free port of the range, or on any. When [`start`](crate::start) has not been called yet,
    /// connections wait.
    pub fn bind(range: Option<PortRange>) -> Result<Self, NetError> {
        let PortRange { first, last } = range.unwrap_or(PortRange { first: 0, last: 0 });
        if first > last {
            return Err(NetError::Listen(format!("the port range {first}-{last} is empty")));
        }
        // Processes of one node begin at different ports, lest each tries all those that others have taken.
        let count = u32::from(last - first) + 1;
        let begin = std::process::id() % count;
        let mut reason = None;
        for i in 0..count {
            let port = first + ((begin + i) % count) as u16;
            match listen(port) {
                Ok(listener) => return Ok(listener),
                Err(e) => reason = Some(e),
            }
        }
        let reason = reason.map_or_else(String::new, |e| e.to_string());
        Err(NetError::Listen(match range {
            Some(_) => format!(
                "no port of the range {first}-{last} is free ({reason}); every process of a node needs one: widen the range"
            ),
            None => reason,
        }))
    }

    /// Listens on a free port for connections from this node only.
    pub fn bind_here() -> Result<Self, NetError> {
        let here = listen_on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        here.or_else(|_| listen_on(SocketAddr::from((Ipv6Addr::LOCALHOST, 0))))
            .map_err(|e| NetError::Listen(e.to_string()))
    }

    /// The port, for `Hello::port`.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn accept(&self) -> Accepted {
        match rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => Accepted::Socket(socket),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Accepted::Exhausted,
            Err(_) => Accepted::Nobody,
        }
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> Self {
        listener.socket
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn listen(port: u16) -> std::io::Result<Listener> {
    let both = listen_on(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    match both {
        // A machine without IPv6.
        Err(e)
            if [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL]
                .iter()
                .any(|n| e.raw_os_error() == Some(n.raw_os_error())) =>
        {
            listen_on(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
        }
        other => other,
    }
}

fn listen_on(address: SocketAddr) -> std::io::Result<Listener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    if address.port() != 0 {
        // A port of a set range is wanted again right after the last job.
        socket.set_reuse_address(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    // Connections inherit it: whoever takes this place after us is not kept out by those that have not ended yet.
    socket.set_reuse_address(true)?;
    socket.listen(BACKLOG)?;
    let port = socket.local_addr()?.as_socket().map_or(0, |a| a.port());
    Ok(Listener {
        socket: socket.into(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_a_range_are_used_up_one_by_one() {
        let probe = Listener::bind(None).unwrap();
        assert_ne!(probe.port(), 0);
        let range = PortRange {
            first: probe.port(),
            last: probe.port(),
        };
        let error = Listener::bind(Some(range)).unwrap_err();
        assert!(error.to_string().contains("widen the range"), "{error}");
        drop(probe);
        assert_eq!(Listener::bind(Some(range)).unwrap().port(), range.first);
        assert!(Listener::bind(Some(PortRange { first: 2, last: 1 })).is_err());
    }

    #[test]
    fn both_families_reach_it() {
        let listener = Listener::bind(None).unwrap();
        std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port())).unwrap();
        if std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            std::net::TcpStream::connect((Ipv6Addr::LOCALHOST, listener.port())).unwrap();
        }
    }
}
