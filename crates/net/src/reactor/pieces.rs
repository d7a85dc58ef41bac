// SPDX-License-Identifier: Apache-2.0
//! What a handshake waits for, as it comes in pieces.

use std::os::fd::OwnedFd;

use isthmus_wire::hello::{Credential, MAX_CREDENTIAL};

use super::failure::Failure;
use crate::socket;

/// A message of fixed size that may come in pieces.
pub(super) struct Part<const N: usize> {
    pub(super) bytes: [u8; N],
    pub(super) have: usize,
}

impl<const N: usize> Part<N> {
    pub(super) fn new() -> Self {
        Self { bytes: [0; N], have: 0 }
    }

    /// Reads no further than the end of the message. True when it is complete.
    pub(super) fn read(&mut self, socket: &OwnedFd) -> Result<bool, Failure> {
        match socket::receive(socket, &mut self.bytes[self.have..]) {
            Ok(Some(0)) => return Err(Failure::Closed),
            Ok(Some(n)) => self.have += n,
            Ok(None) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(self.have == N)
    }
}

/// A credential that comes in pieces.
pub(super) struct Claim {
    bytes: Box<[u8; MAX_CREDENTIAL]>,
    have: usize,
    /// In the good reply in front of it.
    pub(super) verdict: u8,
}

impl Claim {
    pub(super) fn new(verdict: u8) -> Self {
        Self {
            bytes: Box::new([0; MAX_CREDENTIAL]),
            have: 0,
            verdict,
        }
    }

    /// As [`Part::read`].
    pub(super) fn read(&mut self, socket: &OwnedFd) -> Result<bool, Failure> {
        loop {
            let length = Credential::length(&self.bytes[..self.have]).ok_or(Failure::Stranger)?;
            if self.have == length {
                return Ok(true);
            }
            match socket::receive(socket, &mut self.bytes[self.have..length]) {
                Ok(Some(0)) => return Err(Failure::Closed),
                Ok(Some(n)) => self.have += n,
                Ok(None) => return Ok(false),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// What has come until now.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.have]
    }
}
