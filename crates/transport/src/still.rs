// SPDX-License-Identifier: Apache-2.0
//! A transport that moves nothing: in the place of one that has left, and in tests.

use std::os::fd::BorrowedFd;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_wire::frame::Header;

use crate::{Lent, Limits, Peer, SendError, Sink, Transport};

/// What a transport is told to do for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// [`Transport::gather`].
    Gather(Peer),
    /// To send a frame or data, or to fetch some.
    Send(Peer),
    /// [`Transport::send_gathered`].
    SendGathered(Peer),
}

/// A transport whose maker hears what it is told, and says what becomes of that. Nothing ever comes by it.
pub struct Still<H> {
    name: &'static str,
    limits: Limits,
    hear: H,
}

impl<H: FnMut(Told) -> Result<(), SendError> + Send> Still<H> {
    /// With this name; the same limits towards all.
    pub fn new(name: &'static str, limits: Limits, hear: H) -> Self {
        Self { name, limits, hear }
    }

    fn hear(&mut self, told: Told) -> Result<(), SendError> {
        (self.hear)(told)
    }
}

impl<H: FnMut(Told) -> Result<(), SendError> + Send> Transport for Still<H> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn limits(&self, _: Peer) -> Limits {
        self.limits
    }
    fn gather(&mut self, peer: Peer) {
        // What fails is told of what is sent.
        let _ = self.hear(Told::Gather(peer));
    }
    fn send_gathered(&mut self, peer: Peer) {
        let _ = self.hear(Told::SendGathered(peer));
    }
    fn send(&mut self, peer: Peer, _: &Header, _: &[u8]) -> Result<(), SendError> {
        self.hear(Told::Send(peer))
    }
    fn send_bulk(&mut self, peer: Peer, _: u64, _: Lent<ReadMemory>, _: u64, _: u32, _: u64) -> Result<(), SendError> {
        self.hear(Told::Send(peer)).and(Err(SendError::WouldBlock))
    }
    fn pull(&mut self, peer: Peer, _: &[u8], _: u64, _: WriteMemory, _: u64) -> Result<bool, SendError> {
        self.hear(Told::Send(peer)).map(|()| false)
    }
    fn poll(&mut self, _: &mut dyn Sink) -> bool {
        false
    }
    fn lose(&mut self, _: Peer, _: &str) {}
    fn arm(&mut self) -> bool {
        true
    }
    fn disarm(&mut self) {}
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn close(&mut self, _: &mut dyn Sink) -> bool {
        true
    }
}
