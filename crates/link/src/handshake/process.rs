// SPDX-License-Identifier: Apache-2.0
//! What a handshake needs to know of the process it belongs to.

use isthmus_wire::hello::{Purpose, USE};
use isthmus_wire::place::Rank;

use super::proof::{Answered, Credentials, Secret, Side};
use super::turn::Refusal;

/// How the connections to a rank are protected. Both ends know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// Not, but for proofs at the begin: the site's network is trusted.
    Plain,
    /// By TLS.
    Tls,
}

/// What a handshake needs to know of the process it belongs to.
pub struct Process<'a, S, C> {
    /// Its rank.
    pub me: Rank,
    /// That of the job.
    pub secret: &'a S,
    /// Of connections with gateways, where there are any.
    pub gate: Option<&'a S>,
    /// Its key, if it has one.
    pub own: Option<&'a C>,
    /// Whether this rank is a process that is reached so.
    pub knows: &'a dyn Fn(Rank, Cover) -> bool,
    /// Whether another connection to this rank, for this purpose, is wanted.
    pub admits: &'a dyn Fn(Rank, Purpose) -> bool,
    /// Whether it counts as lost, and is to hear so.
    pub given_up: &'a dyn Fn(Rank) -> bool,
}

impl<S: Secret, C: Credentials> Process<'_, S, C> {
    /// The rank that a stranger claims to be, if it is reached so.
    pub(super) fn claimed(&self, rank: Rank, cover: Cover) -> Result<Rank, Refusal<C::Error>> {
        (self.knows)(rank, cover).then_some(rank).ok_or(Refusal::Stranger)
    }

    /// Of two connections that both ends have dialled at once, whether this process says which one counts: both find
    /// the same answer.
    pub(super) fn decides(&self, peer: Rank, purpose: Purpose) -> bool {
        self.me < peer && !purpose.is_more()
    }

    pub(super) fn own(&self) -> Result<&C, Refusal<C::Error>> {
        self.own.ok_or(Refusal::NoCertificate)
    }

    /// Whether the other end, which is this side, is the rank that it says it is.
    pub(super) fn check(&self, answered: &Answered, side: Side, credential: &[u8]) -> Result<(), Refusal<C::Error>> {
        let checked = self
            .own()?
            .check(&answered.signed(side), answered.rank(side), credential);
        checked.map_err(Refusal::Credential)
    }

    /// Proves at our side that we are the rank that we say we are.
    pub(super) fn credential(&self, answered: &Answered, side: Side) -> Result<Vec<u8>, Refusal<C::Error>> {
        self.own()?.sign(&answered.signed(side)).map_err(Refusal::Credential)
    }

    /// At the acceptor: whether this connection is the one. `Ok(true)`: we decided so and must say it.
    pub(super) fn settle(&self, peer: Rank, verdict: u8, purpose: Purpose) -> Result<bool, Refusal<C::Error>> {
        let deciding = self.decides(peer, purpose);
        if !(self.admits)(peer, purpose) || (!deciding && verdict != USE) {
            return Err(Refusal::Taken);
        }
        Ok(deciding)
    }
}
