// SPDX-License-Identifier: Apache-2.0
//! A peer that counts as lost here may live, and wait for what will never come: it is told.
//!
//! Its connections end without a word, since what they carry may stand still for minutes. It then makes a new one, as
//! for any connection that broke, and hears on that one that it was given up. Where it had been dialled it may have no
//! way back, and is dialled once more.

use std::os::fd::{AsFd, BorrowedFd};

use isthmus_transport::Peer;
use isthmus_wire::segment::{Hello, Kind, Segment};

use super::failure::Failure;
use crate::secure::{Scratch, Secure};

/// The other end of a connection has been told, and may still read: it ends the connection.
pub(super) struct LastWord {
    pub(super) peer: Peer,
    secure: Box<Secure>,
}

impl LastWord {
    /// Says it to whoever has proven to be this peer, behind the end of the handshake.
    pub(super) fn say(peer: Peer, mut secure: Box<Secure>, verdict: &[u8]) -> Result<Self, Failure> {
        let given_up = Segment::control(Kind::GivenUp, 0).encode();
        let all = [verdict, &Hello::default().encode(), &given_up].concat();
        secure.write_short(&all)?;
        Ok(Self { peer, secure })
    }

    /// Reads on, for what was not read would make the system take back what was said.
    /// True: it was heard, or there is nobody any more.
    pub(super) fn go_on(&mut self, scratch: &mut Scratch) -> Result<bool, Failure> {
        self.secure.flush()?;
        while !self.secure.ended && self.secure.read(scratch, &mut |_| {})? > 0 {}
        Ok(self.secure.ended)
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.secure.socket.as_fd()
    }
}

/// What is said of a peer that has given this process up.
pub(super) fn heard(name: &str) -> String {
    format!("{name} has given this process up and accepts nothing from it any more; its own messages say why")
}
