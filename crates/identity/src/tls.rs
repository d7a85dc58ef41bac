// SPDX-License-Identifier: Apache-2.0
//! TLS set-up of one process: TLS 1.3 only, both sides authenticated, one authority.

use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring as provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::authority::{IdentityError, KeyPair, rank_name};
use crate::clock::Clock;
use crate::proof::{Prover, Signature};
use crate::shown;
use crate::verifier::Naming;

/// A process that can prove its rank, and check that of others.
#[derive(Clone)]
pub struct Identity {
    job: String,
    rank: u32,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    prover: Arc<Prover>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("job", &self.job)
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// From what [`Authority::sign`](crate::Authority::sign) answered to the request of `key`.
    /// `certificate` and `authority` are DER. Checks that the certificate is this rank's.
    pub fn new(
        job: &str,
        rank: u32,
        key: &KeyPair,
        certificate: &[u8],
        authority: &[u8],
    ) -> Result<Self, IdentityError> {
        let certificate = CertificateDer::from(certificate.to_vec());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.to_vec())).map_err(unusable)?;
        check_rank(&certificate, job, rank)?;
        // Signed a moment ago: that is how this process learns the time of the job.
        let signed = shown::signed(&certificate).ok_or_else(|| unusable("it does not say when it was signed"))?;
        let clock = Clock::showing(signed);
        let (roots, provider) = (Arc::new(roots), Arc::new(suites()));
        let prover = Prover::new(certificate.clone(), key, roots.clone(), clock)?;
        Ok(Self {
            job: job.to_owned(),
            rank,
            client: client(&provider, &roots, clock, &certificate, key)?.into(),
            server: server(&provider, &roots, clock, &certificate, key)?.into(),
            prover: prover.into(),
        })
    }

    /// The certificate of this process (DER), for whoever is to check its signatures.
    pub fn certificate(&self) -> &[u8] {
        self.prover.certificate()
    }

    /// Signs a message: ECDSA on P-256 with SHA-256, both numbers with their full length. The first bytes of a message
    /// say what it is for, so that no signature can be taken for one of another protocol.
    pub fn sign(&self, message: &[u8]) -> Result<Signature, IdentityError> {
        self.prover.sign(message)
    }

    /// Checks that a certificate (DER) is of this job, that it is this rank's, and that its key has signed this
    /// message.
    pub fn verify(
        &self,
        certificate: &[u8],
        rank: u32,
        message: &[u8],
        signature: &Signature,
    ) -> Result<(), IdentityError> {
        let certificate = CertificateDer::from(certificate);
        check_rank(&certificate, &self.job, rank)?;
        self.prover
            .verify(&certificate, message, signature)
            .map_err(|e| IdentityError::Certificate(format!("rank {rank} has not proven who it is: {e}")))
    }

    /// For connections that we open. Use with [`Identity::server_name`] of the rank that is dialled: the
    /// handshake fails unless the peer is that rank of this job.
    pub fn client(&self) -> Arc<ClientConfig> {
        self.client.clone()
    }

    /// For connections that we accept. The handshake proves that the peer belongs to the job; which
    /// rank it is, is to be checked with [`Identity::check`].
    pub fn server(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// The name to dial this rank of the job with. Never sent in the clear.
    pub fn server_name(&self, rank: u32) -> Result<ServerName<'static>, IdentityError> {
        ServerName::try_from(rank_name(&self.job, rank)).map_err(unusable)
    }

    /// Checks that the certificates of an accepted, verified connection are those of the rank that the peer claims to
    /// be.
    pub fn check(&self, peer: Option<&[CertificateDer<'_>]>, claimed: u32) -> Result<(), IdentityError> {
        let Some(certificate) = peer.and_then(<[_]>::first) else {
            return Err(IdentityError::Certificate("the peer showed none".into()));
        };
        check_rank(certificate, &self.job, claimed)
    }
}

/// The suites of TLS 1.3; AES with 128-bit keys first where the processor has instructions for it.
pub(crate) fn suites() -> CryptoProvider {
    use provider::cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256};
    let mut suites = vec![
        TLS13_AES_128_GCM_SHA256,
        TLS13_AES_256_GCM_SHA384,
        TLS13_CHACHA20_POLY1305_SHA256,
    ];
    if !aes_instructions() {
        suites.rotate_right(1);
    }
    CryptoProvider {
        cipher_suites: suites,
        ..provider::default_provider()
    }
}

fn aes_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

fn client(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    clock: Clock,
    certificate: &CertificateDer<'static>,
    key: &KeyPair,
) -> Result<ClientConfig, IdentityError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
        .build()
        .map_err(unusable)?;
    let verifier = Arc::new(Naming::new(verifier, clock));
    let mut config = ClientConfig::builder_with_details(provider.clone(), Arc::new(clock))
        .with_protocol_versions(&[&TLS13])
        .and_then(|b| {
            b.dangerous()
                .with_custom_certificate_verifier(verifier)
                .with_client_auth_cert(vec![certificate.clone()], private(key))
        })
        .map_err(unusable)?;
    // The name would stand in the clear in the first message, and a connection is made once per job.
    config.enable_sni = false;
    config.resumption = Resumption::disabled();
    // Whoever has a connection makes its records (`isthmus-net`).
    config.enable_secret_extraction = true;
    Ok(config)
}

fn server(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    clock: Clock,
    certificate: &CertificateDer<'static>,
    key: &KeyPair,
) -> Result<ServerConfig, IdentityError> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
        // Names of acceptable authorities would tell a stranger the job's name.
        .clear_root_hint_subjects()
        .build()
        .map_err(unusable)?;
    let verifier = Arc::new(Naming::new(verifier, clock));
    let mut config = ServerConfig::builder_with_details(provider.clone(), Arc::new(clock))
        .with_protocol_versions(&[&TLS13])
        .and_then(|b| {
            b.with_client_cert_verifier(verifier)
                .with_single_cert(vec![certificate.clone()], private(key))
        })
        .map_err(unusable)?;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.enable_secret_extraction = true;
    Ok(config)
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.private()))
}

fn check_rank(certificate: &CertificateDer<'_>, job: &str, rank: u32) -> Result<(), IdentityError> {
    let parsed = ParsedCertificate::try_from(certificate).map_err(unusable)?;
    let name = ServerName::try_from(rank_name(job, rank)).map_err(unusable)?;
    verify_server_name(&parsed, &name)
        .map_err(|e| IdentityError::Certificate(format!("it is not that of rank {rank}: {e}")))
}

fn unusable(error: impl std::fmt::Display) -> IdentityError {
    IdentityError::Certificate(error.to_string())
}
