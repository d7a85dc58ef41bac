// SPDX-License-Identifier: Apache-2.0
//! The checks of the TLS library; what they refuse is named.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme};

use crate::clock::Clock;
use crate::shown;

/// Refuses what `inner` refuses, and says whose certificate it was.
#[derive(Debug)]
pub(crate) struct Naming<V: ?Sized> {
    inner: Arc<V>,
    clock: Clock,
}

impl<V: ?Sized> Naming<V> {
    pub(crate) fn new(inner: Arc<V>, clock: Clock) -> Self {
        Self { inner, clock }
    }

    fn named(&self, certificate: &CertificateDer<'_>, error: Error) -> Error {
        match error {
            Error::InvalidCertificate(why) => {
                let why = Refused(sentence(certificate, &self.clock, reason(&why)));
                CertificateError::Other(OtherError(Arc::new(why))).into()
            }
            other => other,
        }
    }
}

/// The same for a certificate that was checked outside TLS.
pub(crate) fn refused(certificate: &CertificateDer<'_>, clock: &Clock, why: &webpki::Error) -> String {
    let reason = match why {
        webpki::Error::CertExpired { .. } => Reason::Expired,
        webpki::Error::CertNotValidYet { .. } => Reason::Early,
        webpki::Error::UnknownIssuer => Reason::Stranger,
        other => Reason::Other(other.to_string()),
    };
    sentence(certificate, clock, reason)
}

enum Reason {
    Expired,
    Early,
    Stranger,
    Other(String),
}

fn reason(why: &CertificateError) -> Reason {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Reason::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Reason::Early,
        CertificateError::UnknownIssuer => Reason::Stranger,
        other => Reason::Other(other.to_string()),
    }
}

fn sentence(certificate: &CertificateDer<'_>, clock: &Clock, reason: Reason) -> String {
    let (which, now) = (shown::described(certificate), shown::now(clock));
    match reason {
        Reason::Expired => format!("{which}, has expired: it is {now} in this job"),
        Reason::Early => format!("{which}, is not valid yet: it is {now} in this job"),
        Reason::Stranger => format!("{which}, was signed by another job"),
        Reason::Other(why) => format!("{which}, is refused: {why}"),
    }
}

/// A certificate that was not accepted.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl ServerCertVerifier for Naming<WebPkiServerVerifier> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(certificate, others, name, ocsp, now);
        verified.map_err(|error| self.named(certificate, error))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

impl ClientCertVerifier for Naming<dyn ClientCertVerifier> {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(certificate, others, now);
        verified.map_err(|error| self.named(certificate, error))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
