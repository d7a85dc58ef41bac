// SPDX-License-Identifier: Apache-2.0
//! Signatures of processes outside TLS: who speaks on a plain connection.

use std::sync::Arc;

use isthmus_wire::port;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use webpki::{EndEntityCert, KeyUsage};

use crate::authority::{IdentityError, KeyPair};
use crate::clock::Clock;
use crate::verifier::refused;

/// Both numbers of a signature, 32 bytes each, the most significant one first.
pub type Signature = [u8; 64];

/// What stands in front of the point in the public key (DER) of every certificate of a job: a key on P-256,
/// uncompressed.
const POINT: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A secret that is made of another one: who knows it knows neither that nor those with other labels.
pub fn derived(secret: &[u8; 32], label: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), label).as_ref());
    out
}

/// Shows at a port that somebody has a key of its user.
pub fn shown_at(key: &[u8; 32], secret: &[u8; 16], fingerprint: &[u8; 32]) -> port::Proof {
    let whole = derived(key, &port::to_prove(secret, fingerprint));
    std::array::from_fn(|at| whole[at])
}

/// The key of a process, its certificate, and whom it believes.
pub(crate) struct Prover {
    certificate: CertificateDer<'static>,
    key: EcdsaKeyPair,
    roots: Arc<RootCertStore>,
    clock: Clock,
}

impl Prover {
    pub(crate) fn new(
        certificate: CertificateDer<'static>,
        key: &KeyPair,
        roots: Arc<RootCertStore>,
        clock: Clock,
    ) -> Result<Self, IdentityError> {
        let rejected = |e: ring::error::KeyRejected| IdentityError::Cryptography(e.to_string());
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.private(), &random);
        Ok(Self {
            certificate,
            key: key.map_err(rejected)?,
            roots,
            clock,
        })
    }

    pub(crate) fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<Signature, IdentityError> {
        let failed = || IdentityError::Cryptography("it cannot sign".into());
        let signature = self.key.sign(&SystemRandom::new(), message).map_err(|_| failed())?;
        signature.as_ref().try_into().map_err(|_| failed())
    }

    /// Whether the owner of this certificate, which is of this job, has signed this.
    pub(crate) fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        message: &[u8],
        signature: &Signature,
    ) -> Result<(), String> {
        let (anchors, now) = (&self.roots.roots, self.clock.unix());
        let parsed = EndEntityCert::try_from(certificate).map_err(|e| e.to_string())?;
        let algorithms = [webpki::ring::ECDSA_P256_SHA256];
        parsed
            .verify_for_usage(&algorithms, anchors, &[], now, KeyUsage::client_auth(), None, None)
            .map_err(|e| refused(certificate, &self.clock, &e))?;
        let key = parsed.subject_public_key_info();
        let point = key.strip_prefix(POINT).ok_or("its key is not ECDSA on P-256")?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(message, signature)
            .map_err(|_| "its signature is wrong".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Authority, Identity, IdentityError, KeyPair};

    fn identity(authority: &Authority, rank: u32) -> Identity {
        let key = KeyPair::generate().unwrap();
        let request = key.signing_request().unwrap();
        let certificate = authority.sign(&request, rank, Duration::from_secs(3600)).unwrap();
        Identity::new(authority.job(), rank, &key, &certificate, authority.certificate()).unwrap()
    }

    #[test]
    fn a_rank_is_believed_by_its_signature_and_no_other_is() {
        let (ours, other) = (Authority::new("job-1").unwrap(), Authority::new("job-1").unwrap());
        let (a, b, c) = (identity(&ours, 1), identity(&ours, 2), identity(&ours, 3));
        let stranger = identity(&other, 2);
        let signature = b.sign(b"message").unwrap();
        assert_eq!(a.verify(b.certificate(), 2, b"message", &signature), Ok(()));
        let refused = |certificate: &[u8], rank, message: &[u8], signature| {
            let error = a.verify(certificate, rank, message, &signature);
            assert!(matches!(error, Err(IdentityError::Certificate(_))), "{error:?}");
        };
        refused(b.certificate(), 3, b"message", signature);
        refused(b.certificate(), 2, b"massage", signature);
        refused(c.certificate(), 2, b"message", c.sign(b"message").unwrap());
        // Certificates are no secret: the one of the rank and a signature of somebody else.
        refused(b.certificate(), 2, b"message", c.sign(b"message").unwrap());
        refused(
            stranger.certificate(),
            2,
            b"message",
            stranger.sign(b"message").unwrap(),
        );
        refused(b"", 2, b"message", signature);
        refused(&b.certificate()[..100], 2, b"message", signature);
        let mut bent = signature;
        bent[63] ^= 1;
        refused(b.certificate(), 2, b"message", bent);
    }
}
