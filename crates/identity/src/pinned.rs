// SPDX-License-Identifier: Apache-2.0
//! An agent that is known by the hash of its certificate: nodes that a scheduler starts learn the hash from their
//! script, which need not be secret, and then prove themselves inside the connection.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};

use crate::authority::{IdentityError, KeyPair};

/// SHA-256 of a certificate.
pub type Fingerprint = [u8; 32];

/// The name that such a certificate carries; it says nothing.
const NAME: &str = "agent.isthmus";

/// A server with a key of its own, made for one submission.
pub struct Pinned {
    server: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

impl Pinned {
    /// A new key and certificate.
    pub fn new() -> Result<Self, IdentityError> {
        let key = KeyPair::generate()?;
        let certificate = key.self_signed(NAME)?;
        let fingerprint = hash(&certificate);
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.private()));
        let mut server = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .and_then(|b| {
                b.with_no_client_auth()
                    .with_single_cert(vec![certificate.into()], private)
            })
            .map_err(unusable)?;
        server.send_tls13_tickets = 0;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Self {
            server: server.into(),
            fingerprint,
        })
    }

    /// For connections that we accept. Whoever connects is a stranger until it has proven itself inside.
    pub fn server(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// What a client must know.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// For a connection to the server with this fingerprint and to no other.
pub fn pinned_client(fingerprint: Fingerprint) -> Result<(Arc<ClientConfig>, ServerName<'static>), IdentityError> {
    let provider = provider();
    let verifier = Arc::new(Verifier {
        fingerprint,
        provider: provider.clone(),
    });
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    client.enable_sni = false;
    client.resumption = Resumption::disabled();
    Ok((client.into(), ServerName::try_from(NAME).map_err(unusable)?))
}

/// Believes one certificate, whose owner must show that it has the key.
#[derive(Debug)]
struct Verifier {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if hash(certificate) == self.fingerprint {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(crate::tls::suites())
}

fn hash(certificate: &[u8]) -> Fingerprint {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest.as_ref());
    fingerprint
}

fn unusable(error: impl std::fmt::Display) -> IdentityError {
    IdentityError::Certificate(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{ClientConnection, ServerConnection};

    fn shake(fingerprint: Fingerprint, server: &Pinned) -> Result<(), String> {
        let (config, name) = pinned_client(fingerprint).unwrap();
        let mut client = ClientConnection::new(config, name).unwrap();
        let mut server = ServerConnection::new(server.server()).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets().map_err(|e| e.to_string())?;
            wire.clear();
            server.write_tls(&mut wire).unwrap();
            client.read_tls(&mut wire.as_slice()).unwrap();
            client.process_new_packets().map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    #[test]
    fn only_the_agent_with_the_fingerprint_is_believed() {
        let (agent, impostor) = (Pinned::new().unwrap(), Pinned::new().unwrap());
        assert_eq!(shake(agent.fingerprint(), &agent), Ok(()));
        assert!(shake(agent.fingerprint(), &impostor).is_err());
        assert_ne!(agent.fingerprint(), impostor.fingerprint());
    }
}
