// SPDX-License-Identifier: Apache-2.0
//! What handshakes prove with: the job's secret, this process's key, the certificates of others. What is said when is
//! [`isthmus_link::handshake`]'s.

use isthmus_identity::{Identity, IdentityError};
use isthmus_link::handshake::{Answered, Credentials, Ends, Knocked, Nonce, Secret, Side, Statement};
use isthmus_wire::hello::{ANSWER_BYTES, Credential, GREETING_BYTES, Greeting, KNOCK_BYTES, REPLY_BYTES, USE};
use isthmus_wire::place::Rank;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::CertificateDer;

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
}

impl Secret for Prover {
    fn prove(&self, what: &Statement<'_>) -> [u8; 32] {
        let mut out = [0; 32];
        out.copy_from_slice(hmac::sign(&self.key, &what.encode(&self.job)).as_ref());
        out
    }

    fn check(&self, what: &Statement<'_>, proof: &[u8]) -> bool {
        hmac::verify(&self.key, &what.encode(&self.job), proof).is_ok()
    }

    fn nonce(&self) -> Option<Nonce> {
        let mut out = [0; 32];
        SystemRandom::new().fill(&mut out).ok()?;
        Some(out)
    }
}

/// The rank of this process, with what proves it, on one connection.
pub(crate) struct Own<'a> {
    pub(crate) prover: &'a Prover,
    pub(crate) identity: &'a Identity,
    /// What the other end has shown, where it has.
    pub(crate) shown: Option<&'a [CertificateDer<'static>]>,
}

impl Credentials for Own<'_> {
    type Error = IdentityError;

    fn sign(&self, what: &Statement<'_>) -> Result<Vec<u8>, IdentityError> {
        let signature = self.identity.sign(&what.encode(&self.prover.job))?;
        let credential = Credential {
            certificate: self.identity.certificate(),
            signature: &signature,
        };
        let too_long = || IdentityError::Certificate("it is longer than any that is needed".into());
        credential.encode().ok_or_else(too_long)
    }

    fn check(&self, what: &Statement<'_>, rank: Rank, credential: &[u8]) -> Result<(), IdentityError> {
        let nonsense = || IdentityError::Certificate(format!("what rank {rank} showed is none"));
        let credential = Credential::decode(credential).ok_or_else(nonsense)?;
        let message = what.encode(&self.prover.job);
        self.identity
            .verify(credential.certificate, rank.0, &message, credential.signature)
    }

    fn has_shown(&self, rank: Rank) -> Result<(), IdentityError> {
        self.identity.check(self.shown, rank.0)
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
        if let Some((knocked, _)) = Knocked::new(&prover, Ends::of(0, 1)) {
            assert!(knocked.reply(&prover, answer, USE).is_none());
        }
    }
    if let Some(Ok(reply)) = bytes.get(..REPLY_BYTES).map(<&[u8; REPLY_BYTES]>::try_from) {
        let knock = Knocked::new(&prover, Ends::of(0, 1));
        let answered = knock.and_then(|(_, knock)| Answered::to_anybody(&prover, &knock));
        assert!(answered.is_none_or(|(answered, _)| answered.verdict(&prover, reply).is_none()));
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
    // Each time other random numbers: another connection.
    let handshake = |from| {
        let (_, knock) = Knocked::new(&prover, Ends::of(from, 2))?;
        Answered::to_anybody(&prover, &knock).map(|(answered, _)| answered)
    };
    let own = |identity| Own {
        prover: &prover,
        identity,
        shown: None,
    };
    let [Some(said), Some(elsewhere), Some(forged)] = [1, 1, 3].map(handshake) else {
        return;
    };
    let Ok(mut credential) = own(one).sign(&said.signed(Side::Dialler)) else {
        return;
    };
    for (byte, change) in credential.iter_mut().zip(bytes) {
        *byte ^= change;
    }
    let check = |answered: &Answered| {
        let rank = answered.rank(Side::Dialler);
        own(other).check(&answered.signed(Side::Dialler), rank, &credential)
    };
    assert!(check(&forged).is_err(), "another rank");
    assert!(check(&elsewhere).is_err(), "another connection");
    let unchanged = bytes.iter().all(|change| *change == 0);
    assert!(check(&said).is_ok() || !unchanged, "its own");
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
