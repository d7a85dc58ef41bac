// SPDX-License-Identifier: Apache-2.0
//! What both ends of a plain handshake say to prove that they know a secret, and which rank they are. Bytes:
//! [`isthmus_wire::hello`]. The secrets, the keys and the random numbers are whoever's who has them.

use isthmus_wire::hello::{ANSWER, ANSWER_BYTES, KNOCK, KNOCK_BYTES, Knock, REPLY, REPLY_BYTES, USE};
use isthmus_wire::place::Rank;

/// Chosen at random.
pub type Nonce = [u8; 32];

/// Who dials whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The dialler.
    pub from: Rank,
    /// Whom it wants.
    pub to: Rank,
}

impl Ends {
    /// The process with rank `from` dials the one with rank `to`.
    pub const fn of(from: u32, to: u32) -> Self {
        Self {
            from: Rank(from),
            to: Rank(to),
        }
    }
}

/// What is proven or signed.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    label: &'static [u8; 8],
    ends: Ends,
    dialler: &'a Nonce,
    acceptor: &'a Nonce,
}

impl Statement<'_> {
    /// Its bytes in the job of this name.
    pub fn encode(&self, job: &str) -> Vec<u8> {
        let job = job.as_bytes();
        let (length, from, to) = (
            (job.len() as u32).to_le_bytes(),
            self.ends.from.0.to_le_bytes(),
            self.ends.to.0.to_le_bytes(),
        );
        [self.label, &length[..], job, &from, &to, self.dialler, self.acceptor].concat()
    }
}

/// A secret that both ends have.
pub trait Secret {
    /// Proves that it is known.
    fn prove(&self, what: &Statement<'_>) -> [u8; 32];

    /// Whether that is the proof. Takes the same time wherever the first wrong byte is.
    fn check(&self, what: &Statement<'_>, proof: &[u8]) -> bool;

    /// A number that nobody can guess, if the system has any.
    fn nonce(&self) -> Option<Nonce>;
}

/// The key of this process, and what there is to know the keys of others by.
pub trait Credentials {
    /// What is wrong with a certificate or a signature.
    type Error;

    /// Signs as the rank that this process is.
    fn sign(&self, what: &Statement<'_>) -> Result<Vec<u8>, Self::Error>;

    /// Whether this rank has signed that.
    fn check(&self, what: &Statement<'_>, rank: Rank, credential: &[u8]) -> Result<(), Self::Error>;

    /// Whether the other end of the TLS connection has shown the certificate of this rank.
    fn has_shown(&self, rank: Rank) -> Result<(), Self::Error>;
}

const NOBODY: Nonce = [0; 32];

/// The dialler between its knock and the answer.
#[derive(Debug)]
pub struct Knocked {
    ends: Ends,
    nonce: Nonce,
}

impl Knocked {
    /// The first message, and what is needed to understand the answer.
    pub fn new(secret: &impl Secret, ends: Ends) -> Option<(Self, [u8; KNOCK_BYTES])> {
        let nonce = secret.nonce()?;
        let what = Statement {
            label: KNOCK,
            ends,
            dialler: &nonce,
            acceptor: &NOBODY,
        };
        let knock = Knock {
            from: ends.from.0,
            to: ends.to.0,
            nonce,
            proof: secret.prove(&what),
        };
        Some((Self { ends, nonce }, knock.encode()))
    }

    /// What both have said, when this is a good answer; `None` of a wrong one.
    pub fn heard(&self, secret: &impl Secret, answer: &[u8; ANSWER_BYTES]) -> Option<Answered> {
        let (nonce, proof) = answer.split_first_chunk()?;
        let answered = Answered {
            ends: self.ends,
            dialler: self.nonce,
            acceptor: *nonce,
        };
        secret.check(&answered.states(ANSWER), proof).then_some(answered)
    }

    /// The reply to a good answer; `None` to a wrong one.
    pub fn reply(&self, secret: &impl Secret, answer: &[u8; ANSWER_BYTES], verdict: u8) -> Option<[u8; REPLY_BYTES]> {
        Some(self.heard(secret, answer)?.reply(secret, verdict))
    }
}

/// Both ends between the answer and the reply.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Who dials whom.
    pub ends: Ends,
    dialler: Nonce,
    acceptor: Nonce,
}

/// One end of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It gives its credential with the reply.
    Dialler,
    /// It gives its credential with the answer.
    Acceptor,
}

impl Answered {
    /// The answer to a knock of this job for this rank; `None` to any other.
    pub fn new(secret: &impl Secret, me: Rank, bytes: &[u8; KNOCK_BYTES]) -> Option<(Self, [u8; ANSWER_BYTES])> {
        Self::to_anybody(secret, bytes).filter(|(answered, _)| answered.ends.to == me)
    }

    /// As [`Answered::new`], whomever the knock is for.
    pub fn to_anybody(secret: &impl Secret, bytes: &[u8; KNOCK_BYTES]) -> Option<(Self, [u8; ANSWER_BYTES])> {
        let knock = Knock::decode(bytes)?;
        let ends = Ends::of(knock.from, knock.to);
        let what = Statement {
            label: KNOCK,
            ends,
            dialler: &knock.nonce,
            acceptor: &NOBODY,
        };
        if ends.to == ends.from || !secret.check(&what, &knock.proof) {
            return None;
        }
        let answered = Self {
            ends,
            dialler: knock.nonce,
            acceptor: secret.nonce()?,
        };
        let mut out = [0; ANSWER_BYTES];
        out[..32].copy_from_slice(&answered.acceptor);
        out[32..].copy_from_slice(&secret.prove(&answered.states(ANSWER)));
        Some((answered, out))
    }

    /// What the dialler says last.
    pub fn reply(&self, secret: &impl Secret, verdict: u8) -> [u8; REPLY_BYTES] {
        let mut out = [verdict; REPLY_BYTES];
        out[..32].copy_from_slice(&secret.prove(&self.states(REPLY)));
        out
    }

    /// The verdict in a good reply; `None` of a wrong one.
    pub fn verdict(&self, secret: &impl Secret, reply: &[u8; REPLY_BYTES]) -> Option<u8> {
        self.wish(secret, reply).filter(|verdict| *verdict <= USE)
    }

    /// The last byte of a good reply, which is a wish where a gateway was dialled; `None` of a wrong one.
    pub fn wish(&self, secret: &impl Secret, reply: &[u8; REPLY_BYTES]) -> Option<u8> {
        secret.check(&self.states(REPLY), &reply[..32]).then_some(reply[32])
    }

    /// What this side signs.
    pub fn signed(&self, side: Side) -> Statement<'_> {
        self.states(match side {
            Side::Dialler => REPLY,
            Side::Acceptor => ANSWER,
        })
    }

    /// Which rank this side says it is.
    pub fn rank(&self, side: Side) -> Rank {
        match side {
            Side::Dialler => self.ends.from,
            Side::Acceptor => self.ends.to,
        }
    }

    fn states(&self, label: &'static [u8; 8]) -> Statement<'_> {
        Statement {
            label,
            ends: self.ends,
            dialler: &self.dialler,
            acceptor: &self.acceptor,
        }
    }
}
