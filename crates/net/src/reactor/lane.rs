// SPDX-License-Identifier: Apache-2.0
//! One connection of a channel.

use std::net::SocketAddr;
use std::time::Duration;

use isthmus_link::channel::Vigil;
use isthmus_transport::Path;

use crate::receiver::Reading;
use crate::secure::Secure;
use crate::socket::{Interest, Mark};
use crate::tcpinfo::tcp_info;
use crate::writing::Writing;

/// An answer of the other end's kernel is of late: sooner than to a question before the last one.
const OF_LATE: Duration = Duration::from_millis(1500);

pub(super) struct Connection {
    pub(super) secure: Secure,
    /// Of its slot.
    pub(super) number: u64,
    /// What the poller watches for; `None` when it does not.
    pub(super) watched: Option<Interest>,
    pub(super) reading: Reading,
    /// Bytes that came at once, the last time.
    pub(super) came: usize,
    pub(super) writing: Writing,
    pub(super) vigil: Vigil,
    pub(super) opened: Duration,
    /// The peer has said what it has, or never had anything.
    pub(super) ready: bool,
    /// The farewell was said on it.
    pub(super) farewell: bool,
    /// What kind of connection it is, as far as that is known.
    pub(super) path: Option<Path>,
    /// For messages that ask for its kind, and for no others.
    pub(super) apart: bool,
    /// A gateway passes on what it carries: what TCP tells of it is not of the link.
    pub(super) relayed: bool,
    /// The same, or it came from this node's own address, from which only gateways call for others.
    pub(super) carried: bool,
    /// It is there instead of those that a gateway passes on.
    pub(super) better: bool,
    /// How its packets are marked.
    pub(super) mark: Mark,
    /// Bytes that TCP had acknowledged at the last look.
    pub(super) acknowledged: u64,
}

impl Connection {
    pub(super) fn new(secure: Secure, number: u64, now: Duration, ready: bool) -> Self {
        Self {
            secure,
            number,
            watched: None,
            reading: Reading::new(),
            came: 0,
            writing: Writing::default(),
            vigil: Vigil::new(now),
            opened: now,
            ready,
            farewell: false,
            path: None,
            apart: false,
            relayed: false,
            carried: false,
            better: false,
            mark: Mark::Normal,
            acknowledged: 0,
        }
    }

    /// Whether everything it was given is with the kernel.
    pub(super) fn is_flushed(&self) -> bool {
        self.writing.is_between() && !self.secure.full()
    }

    /// The kernel of the other end answers, so that the network is whole. What a gateway answers says nothing.
    pub(super) fn reaches(&self) -> bool {
        let answered = || tcp_info(&self.secure.socket)?.answered;
        !self.relayed && answered().is_some_and(|time| time < OF_LATE)
    }

    /// Of the other end, or of what stands for it.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let address = socket2::SockRef::from(&self.secure.socket).peer_addr().ok()?;
        address.as_socket()
    }
}
