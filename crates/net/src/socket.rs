// SPDX-License-Identifier: Apache-2.0
//! System calls on sockets, as values: how far they came, would block, or an error.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

/// Unsent bytes that the kernel holds before it calls a socket full. It keeps what TCP needs for a long
/// fat link in flight (that is not counted) but lets a short message overtake a long one in our queues.
const NOT_SENT_LOW_WATER: u32 = 512 << 10;

/// Bytes that a connection can have under way, as far as buffers go: what the kernel lets a send buffer grow to, less
/// what it needs for itself (measured with 4 MiB: 2.9 to 4.2 MB). Zero where it does not tell.
pub(crate) fn window() -> u64 {
    static WINDOW: OnceLock<u64> = OnceLock::new();
    *WINDOW.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").unwrap_or_default();
        let most = text.split_whitespace().nth(2).and_then(|n| n.parse::<u64>().ok());
        most.unwrap_or_default() / 10 * 6
    })
}

/// `None` when it would block. Never raises SIGPIPE: the program may not expect it.
pub(crate) fn send(socket: impl AsFd, first: &[u8], second: &[u8]) -> Result<Option<usize>, Errno> {
    let slices = [IoSlice::new(first), IoSlice::new(second)];
    let slices = if second.is_empty() { &slices[..1] } else { &slices[..] };
    send_several(socket, slices)
}

/// The same with any number of pieces. (`write_vectored` of the standard library does raise SIGPIPE.)
pub(crate) fn send_several(socket: impl AsFd, slices: &[IoSlice<'_>]) -> Result<Option<usize>, Errno> {
    loop {
        let done = rustix::net::sendmsg(
            &socket,
            slices,
            &mut SendAncillaryBuffer::default(),
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        );
        match done {
            Err(Errno::INTR) => {}
            other => return blocking(other),
        }
    }
}

/// `Some(0)` at the end of the stream.
pub(crate) fn receive(socket: impl AsFd, into: &mut [u8]) -> Result<Option<usize>, Errno> {
    loop {
        match rustix::net::recv(&socket, &mut *into, RecvFlags::DONTWAIT) {
            Err(Errno::INTR) => {}
            Ok((n, _)) => return Ok(Some(n)),
            Err(e) => return blocking(Err(e)),
        }
    }
}

/// As [`receive`], into two places. The socket must not block.
pub(crate) fn receive_into(socket: impl AsFd, first: &mut [u8], second: &mut [u8]) -> Result<Option<usize>, Errno> {
    let mut slices = [IoSliceMut::new(first), IoSliceMut::new(second)];
    loop {
        match rustix::io::readv(&socket, &mut slices) {
            Err(Errno::INTR) => {}
            other => return blocking(other),
        }
    }
}

fn blocking(result: Result<usize, Errno>) -> Result<Option<usize>, Errno> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(Errno::AGAIN) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Begins to connect. Writable when it is decided; then ask [`connected`].
pub(crate) fn connect(to: SocketAddr) -> std::io::Result<OwnedFd> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {}
        Err(e) => return Err(e),
    }
    Ok(socket.into())
}

/// Whether a [`connect`] has succeeded.
pub(crate) fn connected(socket: impl AsFd) -> Result<(), Errno> {
    sockopt::socket_error(socket)?
}

/// What every connection of ours wants. Failures do no harm.
pub(crate) fn tune(socket: &OwnedFd) {
    let _ = sockopt::set_tcp_nodelay(socket, true);
    let _ = sockopt::set_socket_keepalive(socket, true);
    let _ = socket2::SockRef::from(socket).set_tcp_notsent_lowat(NOT_SENT_LOW_WATER);
}

/// The kernel takes no more while so many bytes wait to be sent.
pub(crate) fn hold_little(socket: &OwnedFd, bytes: usize) {
    let _ = socket2::SockRef::from(socket).set_tcp_notsent_lowat(u32::try_from(bytes).unwrap_or(u32::MAX));
}

/// How routers may treat packets: the upper six bits of a byte of their headers (DSCP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    /// As any others.
    #[default]
    Normal = 0,
    /// Low-latency data, AF21 (RFC 4594).
    Latency = 18 << 2,
    /// Least effort: yields to everything else (LE, RFC 8622).
    Bulk = 1 << 2,
}

/// Marks what is sent from now on. Failures do no harm: most networks ignore it.
pub(crate) fn mark(socket: &OwnedFd, mark: Mark) {
    // IPv4 inside of IPv6 sockets has the first one too.
    let _ = sockopt::set_ip_tos(socket, mark as u8);
    let _ = sockopt::set_ipv6_tclass(socket, mark as u32);
}

/// Address of the other end, or of what stands for it.
pub(crate) fn peer_address(socket: &OwnedFd) -> Option<SocketAddr> {
    socket2::SockRef::from(socket).peer_addr().ok()?.as_socket()
}

/// For people: the other end's address and the congestion control of a connection.
pub(crate) fn describe(socket: &OwnedFd) -> String {
    let address = peer_address(socket).map_or_else(
        || "an unknown address".into(),
        |a| SocketAddr::new(a.ip().to_canonical(), a.port()).to_string(),
    );
    let control = sockopt::tcp_congestion(socket).unwrap_or_else(|_| "unknown".into());
    format!("{address}, congestion control {control}")
}

/// No more from us; the peer can still send.
pub(crate) fn shut(socket: impl AsFd) {
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
}

/// Descriptors that can become ready, each with a number.
#[derive(Debug)]
pub(crate) struct Poller(OwnedFd);

/// What a descriptor is watched for. Errors and hang-ups are always reported as readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) const READ: Self = Self {
        read: true,
        write: false,
    };
    pub(crate) const WRITE: Self = Self {
        read: false,
        write: true,
    };

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, self.read);
        flags.set(epoll::EventFlags::OUT, self.write);
        flags
    }
}

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) number: u64,
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Poller {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    pub(crate) fn add(&self, fd: impl AsFd, number: u64, interest: Interest) -> Result<(), Errno> {
        epoll::add(&self.0, fd, epoll::EventData::new_u64(number), interest.flags())
    }

    pub(crate) fn change(&self, fd: impl AsFd, number: u64, interest: Interest) -> Result<(), Errno> {
        epoll::modify(&self.0, fd, epoll::EventData::new_u64(number), interest.flags())
    }

    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.0, fd);
    }

    /// Waits for at most this long (`None`: for ever) and fills `ready`. Interrupted: nothing is ready.
    pub(crate) fn wait(&self, ready: &mut Vec<Ready>, timeout: Option<std::time::Duration>) {
        let timeout = timeout.map(|t| rustix::event::Timespec {
            tv_sec: t.as_secs() as i64,
            tv_nsec: i64::from(t.subsec_nanos()),
        });
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 64];
        ready.clear();
        let Ok((events, _)) = epoll::wait(&self.0, &mut events[..], timeout.as_ref()) else {
            return;
        };
        let failed = epoll::EventFlags::ERR | epoll::EventFlags::HUP | epoll::EventFlags::RDHUP;
        ready.extend(events.iter().map(|event| {
            let flags = event.flags;
            Ready {
                number: event.data.u64(),
                read: flags.intersects(epoll::EventFlags::IN | failed),
                write: flags.intersects(epoll::EventFlags::OUT | failed),
            }
        }));
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A bell between threads.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> Result<Self, Errno> {
        use rustix::event::{EventfdFlags, eventfd};
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn ring(&self) {
        // Fails only when it has been rung 2^64 - 2 times without being heard; then it rings anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(crate) fn quiet(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}
