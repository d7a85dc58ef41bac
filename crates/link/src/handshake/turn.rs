// SPDX-License-Identifier: Apache-2.0
//! What comes of each step of a handshake: what is to be said, what comes next, or why nothing does.

use isthmus_wire::hello::Purpose;
use isthmus_wire::place::Rank;

use super::proof::Credentials;

/// Why a connection is not the one. `E`: what may be wrong with a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal<E> {
    /// It has taken too long.
    NoAnswer,
    /// The other end closed the connection before it was proven.
    Closed,
    /// The other end is not a process of this job.
    Stranger,
    /// The two have a connection already.
    Taken,
    /// The gateways have no way to the peer.
    NoWay,
    /// There is none, or the system has no random numbers.
    NoGateway,
    /// This process has none.
    NoCertificate,
    /// The system has no random numbers.
    NoRandom,
    /// A certificate or a signature is wrong.
    Credential(E),
    /// The owner of the machine has made a mistake.
    Bug(&'static str),
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Then {
    /// What the other end says, as far as [`super::Handshake::wants`] it.
    Listen,
    /// TLS; this has been read of it already.
    Seal(Vec<u8>),
    /// The connection is the one to this rank. Behind its part of the handshake it has said so much.
    Proven {
        /// Who is at the other end.
        peer: Rank,
        /// What the connection is for.
        purpose: Purpose,
        /// What came right behind, inside TLS.
        early: Vec<u8>,
    },
    /// Nothing: the peer that we want has been asked to dial us.
    Asked,
    /// Nothing: this peer asks to be dialled.
    Called(Rank),
    /// Nothing: this peer, which counts as lost, has heard so.
    Over(Rank),
}

/// What the owner of the connection is to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Turn {
    /// First: say this.
    pub say: Vec<u8>,
    /// Afterwards.
    pub then: Then,
}

impl Turn {
    pub(super) fn new(say: Vec<u8>, then: Then) -> Self {
        Self { say, then }
    }

    pub(super) fn quiet(then: Then) -> Self {
        Self::new(Vec::new(), then)
    }

    pub(super) fn listen() -> Self {
        Self::quiet(Then::Listen)
    }
}

/// A turn, or why there are no more.
pub type Next<C> = Result<Turn, Refusal<<C as Credentials>::Error>>;
