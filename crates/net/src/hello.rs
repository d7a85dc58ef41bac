// SPDX-License-Identifier: Apache-2.0
//! The plain handshake: both sides prove that they know the job's secret, and which rank they are.
//! Bytes: `isthmus_wire::hello`.

use isthmus_identity::{Identity, IdentityError};
use isthmus_wire::hello::{
    ANSWER, ANSWER_BYTES, Credential, GREETING_BYTES, Greeting, KNOCK, KNOCK_BYTES, Knock, REPLY, REPLY_BYTES, USE,
};
use isthmus_wire::place::Rank;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// Chosen at random.
type Nonce = [u8; 32];

/// What both sides of every handshake of this process have in common.
#[derive(Clone)]
pub struct Prover {
    key: hmac::Key,
    job: String,
}

impl std::fmt::Debug for Prover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prover({})", self.job)
    }
}

impl Prover {
    /// For this job.
    pub fn new(secret: &[u8; 32], job: &str) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            job: job.to_owned(),
        }
    }

    /// For the same job, with another secret.
    pub fn with_secret(&self, secret: &[u8; 32]) -> Self {
        Self::new(secret, &self.job)
    }

    fn message(&self, label: &[u8; 8], ends: Ends, dialler: &Nonce, acceptor: &Nonce) -> Vec<u8> {
        let job = self.job.as_bytes();
        let (length, from, to) = (
            (job.len() as u32).to_le_bytes(),
            ends.from.0.to_le_bytes(),
            ends.to.0.to_le_bytes(),
        );
        [label, &length[..], job, &from, &to, dialler, acceptor].concat()
    }

    fn prove(&self, label: &[u8; 8], ends: Ends, dialler: &Nonce, acceptor: &Nonce) -> [u8; 32] {
        let mut out = [0; 32];
        out.copy_from_slice(hmac::sign(&self.key, &self.message(label, ends, dialler, acceptor)).as_ref());
        out
    }

    fn check(&self, label: &[u8; 8], ends: Ends, dialler: &Nonce, acceptor: &Nonce, proof: &[u8]) -> bool {
        // Takes the same time wherever the first wrong byte is.
        hmac::verify(&self.key, &self.message(label, ends, dialler, acceptor), proof).is_ok()
    }
}

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

/// The dialler between its knock and the answer.
#[derive(Debug)]
pub struct Knocked {
    ends: Ends,
    nonce: Nonce,
}

impl Knocked {
    /// The first message, and what is needed to understand the answer.
    pub fn new(prover: &Prover, ends: Ends) -> Option<(Self, [u8; KNOCK_BYTES])> {
        let nonce = random()?;
        let proof = prover.prove(KNOCK, ends, &nonce, &[0; 32]);
        let knock = Knock {
            from: ends.from.0,
            to: ends.to.0,
            nonce,
            proof,
        };
        Some((Self { ends, nonce }, knock.encode()))
    }

    /// What both have said, when this is a good answer; `None` of a wrong one.
    pub fn heard(&self, prover: &Prover, answer: &[u8; ANSWER_BYTES]) -> Option<Answered> {
        let acceptor: Nonce = answer[..32].try_into().ok()?;
        let good = prover.check(ANSWER, self.ends, &self.nonce, &acceptor, &answer[32..]);
        good.then_some(Answered {
            ends: self.ends,
            dialler: self.nonce,
            acceptor,
        })
    }

    /// The reply to a good answer; `None` to a wrong one.
    pub fn reply(&self, prover: &Prover, answer: &[u8; ANSWER_BYTES], verdict: u8) -> Option<[u8; REPLY_BYTES]> {
        Some(self.heard(prover, answer)?.reply(prover, verdict))
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
pub(crate) enum Side {
    /// It gives its credential with the reply.
    Dialler,
    /// It gives its credential with the answer.
    Acceptor,
}

impl Answered {
    /// The answer to a knock of this job for this rank; `None` to any other.
    pub(crate) fn new(prover: &Prover, me: Rank, bytes: &[u8; KNOCK_BYTES]) -> Option<(Self, [u8; ANSWER_BYTES])> {
        Self::to_anybody(prover, bytes).filter(|(answered, _)| answered.ends.to == me)
    }

    /// As [`Answered::new`], whomever the knock is for.
    pub fn to_anybody(prover: &Prover, bytes: &[u8; KNOCK_BYTES]) -> Option<(Self, [u8; ANSWER_BYTES])> {
        let knock = Knock::decode(bytes)?;
        let ends = Ends {
            from: Rank(knock.from),
            to: Rank(knock.to),
        };
        if ends.to == ends.from || !prover.check(KNOCK, ends, &knock.nonce, &[0; 32], &knock.proof) {
            return None;
        }
        let acceptor = random()?;
        let mut out = [0; ANSWER_BYTES];
        out[..32].copy_from_slice(&acceptor);
        out[32..].copy_from_slice(&prover.prove(ANSWER, ends, &knock.nonce, &acceptor));
        Some((
            Self {
                ends,
                dialler: knock.nonce,
                acceptor,
            },
            out,
        ))
    }

    /// What the dialler says last.
    pub(crate) fn reply(&self, prover: &Prover, verdict: u8) -> [u8; REPLY_BYTES] {
        let mut out = [verdict; REPLY_BYTES];
        out[..32].copy_from_slice(&prover.prove(REPLY, self.ends, &self.dialler, &self.acceptor));
        out
    }

    /// The verdict in a good reply; `None` of a wrong one.
    pub(crate) fn verdict(&self, prover: &Prover, reply: &[u8; REPLY_BYTES]) -> Option<u8> {
        self.wish(prover, reply).filter(|verdict| *verdict <= USE)
    }

    /// The last byte of a good reply, which is a wish where a gateway was dialled; `None` of a wrong one.
    pub fn wish(&self, prover: &Prover, reply: &[u8; REPLY_BYTES]) -> Option<u8> {
        let good = prover.check(REPLY, self.ends, &self.dialler, &self.acceptor, &reply[..32]);
        good.then_some(reply[32])
    }

    fn signed(&self, prover: &Prover, side: Side) -> Vec<u8> {
        let label = match side {
            Side::Dialler => REPLY,
            Side::Acceptor => ANSWER,
        };
        prover.message(label, self.ends, &self.dialler, &self.acceptor)
    }

    /// Proves that this process is the rank that it says it is.
    pub(crate) fn credential(&self, prover: &Prover, side: Side, own: &Identity) -> Result<Vec<u8>, IdentityError> {
        let signature = own.sign(&self.signed(prover, side))?;
        let credential = Credential {
            certificate: own.certificate(),
            signature: &signature,
        };
        let too_long = || IdentityError::Certificate("it is longer than any that is needed".into());
        credential.encode().ok_or_else(too_long)
    }

    /// Checks that the other end, which is this side, is the rank that it says it is.
    pub(crate) fn check(
        &self,
        prover: &Prover,
        side: Side,
        own: &Identity,
        credential: &[u8],
    ) -> Result<(), IdentityError> {
        let peer = match side {
            Side::Dialler => self.ends.from,
            Side::Acceptor => self.ends.to,
        };
        let nonsense = || IdentityError::Certificate(format!("what rank {peer} showed is none"));
        let credential = Credential::decode(credential).ok_or_else(nonsense)?;
        let message = self.signed(prover, side);
        own.verify(credential.certificate, peer.0, &message, credential.signature)
    }
}

/// Body of a fuzz target: everything that is parsed before a peer is known.
pub fn fuzz_hello(bytes: &[u8]) {
    let prover = Prover::new(&[7; 32], "fuzz");
    if let Some(Ok(knock)) = bytes.get(..KNOCK_BYTES).map(<&[u8; KNOCK_BYTES]>::try_from) {
        // Without the secret nothing gets an answer.
        assert!(Answered::new(&prover, Rank(1), knock).is_none());
    }
    if let Some(Ok(answer)) = bytes.get(..ANSWER_BYTES).map(<&[u8; ANSWER_BYTES]>::try_from) {
        let knocked = Knocked {
            ends: Ends::of(0, 1),
            nonce: [1; 32],
        };
        assert!(knocked.reply(&prover, answer, USE).is_none());
    }
    if let Some(Ok(reply)) = bytes.get(..REPLY_BYTES).map(<&[u8; REPLY_BYTES]>::try_from) {
        let answered = Answered {
            ends: Ends::of(0, 1),
            dialler: [1; 32],
            acceptor: [2; 32],
        };
        assert!(answered.verdict(&prover, reply).is_none());
    }
    if let Some(credential) = Credential::decode(bytes) {
        assert_eq!(credential.encode().as_deref(), Some(bytes));
    }
    if let Some(Ok(greeting)) = bytes.get(..GREETING_BYTES).map(<&[u8; GREETING_BYTES]>::try_from) {
        if let Some(decoded) = Greeting::decode(greeting) {
            assert_eq!(&decoded.encode(), greeting);
        }
    }
}

/// Body of a fuzz target: a credential in which bytes were changed proves no other rank, and none at all on another
/// connection.
pub fn fuzz_credential(bytes: &[u8]) {
    use isthmus_identity::{Authority, KeyPair};
    static MEMBERS: std::sync::OnceLock<Option<[Identity; 2]>> = std::sync::OnceLock::new();
    let member = |authority: &Authority, rank| {
        let key = KeyPair::generate().ok()?;
        let valid = std::time::Duration::from_secs(400 * 86_400);
        let certificate = authority.sign(&key.signing_request().ok()?, rank, valid).ok()?;
        Identity::new(authority.job(), rank, &key, &certificate, authority.certificate()).ok()
    };
    let members = MEMBERS.get_or_init(|| {
        let authority = Authority::new("fuzz").ok()?;
        Some([member(&authority, 1)?, member(&authority, 2)?])
    });
    let Some([one, other]) = members else { return };
    let prover = Prover::new(&[7; 32], "fuzz");
    let handshake = |from, acceptor| Answered {
        ends: Ends::of(from, 2),
        dialler: [3; 32],
        acceptor,
    };
    let said = handshake(1, [4; 32]);
    let Ok(mut credential) = said.credential(&prover, Side::Dialler, one) else {
        return;
    };
    for (byte, change) in credential.iter_mut().zip(bytes) {
        *byte ^= change;
    }
    let check = |answered: Answered| answered.check(&prover, Side::Dialler, other, &credential);
    assert!(check(handshake(3, [4; 32])).is_err(), "another rank");
    assert!(check(handshake(1, [5; 32])).is_err(), "another connection");
    let unchanged = bytes.iter().all(|change| *change == 0);
    assert!(check(said).is_ok() || !unchanged, "its own");
}

fn random() -> Option<Nonce> {
    let mut out = [0; 32];
    SystemRandom::new().fill(&mut out).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_know_the_secret_meet() {
        let prover = Prover::new(&[1; 32], "job");
        let ends = Ends::of(3, 4);
        let (knocked, knock) = Knocked::new(&prover, ends).unwrap();
        let (answered, answer) = Answered::new(&prover, Rank(4), &knock).unwrap();
        let reply = knocked.reply(&prover, &answer, USE).unwrap();
        assert_eq!(answered.verdict(&prover, &reply), Some(USE));
        assert_eq!(answered.ends, ends);
    }

    #[test]
    fn others_do_not() {
        let prover = Prover::new(&[1; 32], "job");
        let ends = Ends::of(3, 4);
        let (knocked, knock) = Knocked::new(&prover, ends).unwrap();
        assert!(
            Answered::new(&prover, Rank(5), &knock).is_none(),
            "meant for another rank"
        );
        assert!(
            Answered::new(&Prover::new(&[1; 32], "other"), Rank(4), &knock).is_none(),
            "another job"
        );
        assert!(
            Answered::new(&Prover::new(&[2; 32], "job"), Rank(4), &knock).is_none(),
            "another secret"
        );
        let mut bent = knock;
        bent[8] ^= 1;
        assert!(
            Answered::new(&prover, Rank(4), &bent).is_none(),
            "another rank than proven"
        );
        let (answered, answer) = Answered::new(&prover, Rank(4), &knock).unwrap();
        // An echo of what was said is no proof.
        let mut echo = [0; ANSWER_BYTES];
        echo.copy_from_slice(&knock[16..]);
        assert!(knocked.reply(&prover, &echo, USE).is_none());
        let (other, _) = Knocked::new(&prover, ends).unwrap();
        assert!(other.reply(&prover, &answer, USE).is_none(), "answer to another knock");
        let mut reply = knocked.reply(&prover, &answer, USE).unwrap();
        reply[0] ^= 1;
        assert_eq!(answered.verdict(&prover, &reply), None);
    }

    #[test]
    fn every_byte_of_a_credential_counts() {
        fuzz_credential(&[]);
        let length = 2 + 450 + 64;
        for at in (0..length).step_by(7).chain(length - 70..length) {
            let mut change = vec![0; at + 1];
            change[at] = 0x10;
            fuzz_credential(&change);
        }
    }

    #[test]
    fn the_fuzz_target_stands_noise() {
        let mut state = 1u32;
        for length in 0..200 {
            let noise: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            fuzz_hello(&noise);
        }
        let (_, knock) = Knocked::new(&Prover::new(&[1; 32], "job"), Ends::of(0, 1)).unwrap();
        fuzz_hello(&knock);
    }
}
