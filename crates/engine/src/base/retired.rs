// SPDX-License-Identifier: Apache-2.0
//! What stands in the place of a transport that has left, until another one gets its number.

use std::os::fd::BorrowedFd;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_transport::{Lent, Limits, Peer, SendError, Sink, Transport};
use isthmus_wire::frame::Header;

/// Nobody is reached by it.
pub(crate) struct Retired;

/// Its name, which no transport has.
const NAME: &str = "none";

/// Whether a transport stands for one that has left.
pub(crate) fn is_retired(transport: &dyn Transport) -> bool {
    transport.name() == NAME
}

fn nobody() -> SendError {
    SendError::Lost("it has been disconnected".to_owned())
}

impl Transport for Retired {
    fn name(&self) -> &'static str {
        NAME
    }
    fn limits(&self, _: Peer) -> Limits {
        Limits {
            frame: 4096,
            eager: 0,
            pull: false,
            bulk: false,
            far: false,
        }
    }
    fn send(&mut self, _: Peer, _: &Header, _: &[u8]) -> Result<(), SendError> {
        Err(nobody())
    }
    fn send_bulk(&mut self, _: Peer, _: u64, _: Lent<ReadMemory>, _: u64, _: u32, _: u64) -> Result<(), SendError> {
        Err(nobody())
    }
    fn pull(&mut self, _: Peer, _: &[u8], _: u64, _: WriteMemory, _: u64) -> Result<bool, SendError> {
        Err(nobody())
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
