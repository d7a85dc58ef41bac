// SPDX-License-Identifier: Apache-2.0
//! The job's authority, key pairs and signing requests.

use std::time::{Duration, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};

use crate::clock::Clock;

/// Certificates are valid from this long before they were signed: what a process takes for the time of the job differs
/// a little from what its coordinator does, since the way of a certificate takes time and clocks run unequally.
pub const SKEW: Duration = Duration::from_secs(3600);

/// Longest validity that [`Authority::sign`] grants: 400 days, longer than any scheduler lets a job run.
pub const MAX_VALIDITY: Duration = Duration::from_secs(400 * 86_400);

/// Largest signing request that is looked at, bytes. A request with a P-256 key has about 250.
pub const MAX_REQUEST: usize = 4096;

/// Why an identity could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentityError {
    /// The peer's signing request is not acceptable; the text says why.
    Request(String),
    /// Certificates that were handed to us do not fit together: wrong authority, wrong rank, not a certificate.
    Certificate(String),
    /// The cryptographic library failed: no random numbers, or a bug of ours.
    Cryptography(String),
}

impl std::fmt::Display for IdentityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Request(why) => write!(f, "certificate signing request refused: {why}"),
            Self::Certificate(why) => write!(f, "certificate of this process cannot be used: {why}"),
            Self::Cryptography(why) => write!(f, "failed to make a key or certificate: {why}"),
        }
    }
}

impl std::error::Error for IdentityError {}

/// The name that a certificate of this rank carries: `rank-17.JOB.isthmus`.
///
/// A job name that is not a plain host name label is replaced by a readable remainder and a hash.
pub fn rank_name(job: &str, rank: u32) -> String {
    format!("rank-{rank}.{}.isthmus", label(job))
}

/// The authority of one job. Lives in the coordinator's memory and dies with it.
pub struct Authority {
    job: String,
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
    clock: Clock,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority")
            .field("job", &self.job)
            .finish_non_exhaustive()
    }
}

impl Authority {
    /// A new authority with a key of its own.
    pub fn new(job: &str) -> Result<Self, IdentityError> {
        Self::begun(job, Clock::of_machine())
    }

    /// A job whose time this clock shows.
    pub(crate) fn begun(job: &str, clock: Clock) -> Result<Self, IdentityError> {
        let key = generate()?;
        let mut params = validity(&clock, MAX_VALIDITY);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name = name(&format!("authority.{}.isthmus", label(job)));
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Self {
            job: job.to_owned(),
            certificate,
            key,
            clock,
        })
    }

    /// The authority's certificate (DER): goes to every process of the job.
    pub fn certificate(&self) -> &[u8] {
        self.certificate.der()
    }

    /// Name of the job.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// A certificate (DER) for this rank with the key of `request` (PKCS#10, DER), valid from now
    /// (the time of the job) - [`SKEW`] to now + `valid`, at most [`MAX_VALIDITY`]. Names and uses that the
    /// request asks for are ignored.
    pub fn sign(&self, request: &[u8], rank: u32, valid: Duration) -> Result<Vec<u8>, IdentityError> {
        if request.len() > MAX_REQUEST {
            return Err(IdentityError::Request(format!(
                "{} bytes are more than the {MAX_REQUEST} allowed",
                request.len()
            )));
        }
        // Reading it checks the signature: whoever asks has the private key.
        let mut parsed = CertificateSigningRequestParams::from_der(&request.into())
            .map_err(|e| IdentityError::Request(e.to_string()))?;
        if rcgen::PublicKeyData::algorithm(&parsed.public_key) != &PKCS_ECDSA_P256_SHA256 {
            return Err(IdentityError::Request("its key is not ECDSA on P-256".into()));
        }
        parsed.params = rank_params(&self.clock, &self.job, rank, valid)?;
        self.issue(parsed)
    }

    pub(crate) fn issue(&self, parsed: CertificateSigningRequestParams) -> Result<Vec<u8>, IdentityError> {
        let certificate = parsed.signed_by(&self.certificate, &self.key).map_err(failed)?;
        Ok(certificate.der().to_vec())
    }
}

/// The key pair of one process. The private half never leaves it.
pub struct KeyPair(rcgen::KeyPair);

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyPair")
    }
}

impl KeyPair {
    /// A new ECDSA key pair on P-256.
    pub fn generate() -> Result<Self, IdentityError> {
        Ok(Self(generate()?))
    }

    /// A PKCS#10 request (DER) for a certificate with this key. It names nobody: the authority decides who we are.
    pub fn signing_request(&self) -> Result<Vec<u8>, IdentityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&self.0).map_err(failed)?;
        Ok(request.der().to_vec())
    }

    /// A certificate (DER) with this key for a name, signed with the key itself, valid for [`MAX_VALIDITY`].
    pub(crate) fn self_signed(&self, common: &str) -> Result<Vec<u8>, IdentityError> {
        let mut params = validity(&Clock::of_machine(), MAX_VALIDITY);
        params.distinguished_name = name(common);
        params.subject_alt_names = vec![SanType::DnsName(common.to_owned().try_into().map_err(failed)?)];
        let certificate = params.self_signed(&self.0).map_err(failed)?;
        Ok(certificate.der().to_vec())
    }

    /// PKCS#8 form of the private key, for the TLS library in this process.
    pub(crate) fn private(&self) -> Vec<u8> {
        self.0.serialize_der()
    }
}

fn generate() -> Result<rcgen::KeyPair, IdentityError> {
    rcgen::KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)
}

fn failed(error: rcgen::Error) -> IdentityError {
    IdentityError::Cryptography(error.to_string())
}

pub(crate) fn rank_params(
    clock: &Clock,
    job: &str,
    rank: u32,
    valid: Duration,
) -> Result<CertificateParams, IdentityError> {
    let text = rank_name(job, rank);
    let mut params = validity(clock, valid.min(MAX_VALIDITY));
    params.distinguished_name = name(&text);
    params.subject_alt_names = vec![SanType::DnsName(text.try_into().map_err(failed)?)];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn validity(clock: &Clock, valid: Duration) -> CertificateParams {
    let now = UNIX_EPOCH + clock.now();
    let mut params = CertificateParams::default();
    params.not_before = (now - SKEW).into();
    params.not_after = (now + valid).into();
    params.use_authority_key_identifier_extension = true;
    params
}

fn name(common: &str) -> DistinguishedName {
    let mut out = DistinguishedName::new();
    out.push(DnType::CommonName, common);
    out
}

/// A host name label (at most 40 characters) for any job name.
fn label(job: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let usable =
        !job.is_empty() && job.len() <= 40 && job.chars().all(plain) && !job.starts_with('-') && !job.ends_with('-');
    if usable {
        return job.to_owned();
    }
    let readable: String = job
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .filter(|c| c.is_ascii_alphanumeric())
        .take(20)
        .collect();
    let hash = ring::digest::digest(&ring::digest::SHA256, job.as_bytes());
    let hash: String = hash.as_ref()[..8].iter().map(|b| format!("{b:02x}")).collect();
    format!("j{readable}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_not_sane_are_refused() {
        let authority = Authority::new("job-1").unwrap();
        let hour = Duration::from_secs(3600);
        let mut request = KeyPair::generate().unwrap().signing_request().unwrap();
        assert!(authority.sign(&request, 1, hour).is_ok());
        let last = request.len() - 1;
        request[last] ^= 1;
        assert!(
            matches!(authority.sign(&request, 1, hour), Err(IdentityError::Request(_))),
            "signature does not fit"
        );
        assert!(matches!(
            authority.sign(&[0; MAX_REQUEST + 1], 1, hour),
            Err(IdentityError::Request(_))
        ));
        assert!(matches!(authority.sign(b"", 1, hour), Err(IdentityError::Request(_))));
        let other = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let request = CertificateParams::default().serialize_request(&other).unwrap();
        assert!(
            matches!(authority.sign(request.der(), 1, hour), Err(IdentityError::Request(_))),
            "other kind of key"
        );
    }

    #[test]
    fn any_job_name_gives_a_host_name() {
        assert_eq!(rank_name("job-1", 17), "rank-17.job-1.isthmus");
        for job in ["", "Größe/1", "-x", "a b", &"x".repeat(300), "UPPER_case"] {
            let name = rank_name(job, u32::MAX);
            assert!(name.is_ascii());
            assert!(rustls::pki_types::ServerName::try_from(name.clone()).is_ok(), "{name}");
        }
        assert_ne!(rank_name("A", 1), rank_name("a", 1));
    }
}
