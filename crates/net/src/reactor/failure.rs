// SPDX-License-Identifier: Apache-2.0
//! What came of an attempt to reach a peer. Decisions are made on these values, never on their sentences:
//! the system's part of a sentence is in the language of the program that set its locale.

use std::fmt;

use isthmus_identity::IdentityError;
use isthmus_link::dial::Cause;
use isthmus_link::handshake::Refusal;
use rustix::io::Errno;
use rustls::{AlertDescription, Error as TlsError};

use crate::secure::Broken;

/// Why there is no connection, or not yet.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing came back in time.
    NoAnswer,
    /// The system's answer.
    System(Errno),
    /// The other end closed the connection before it was proven.
    Closed,
    /// What answered is not a process of this job.
    Stranger,
    /// The two have a connection already.
    Taken,
    TakesNothing,
    NoWay,
    NoGateway,
    /// Nobody is behind the door of a gateway.
    NobodyBehind,
    NoCertificate,
    NoRandom,
    /// The poller has no room.
    Unwatched,
    Secure(Broken),
    Identity(IdentityError),
    Bug(&'static str),
}

impl Cause for Failure {
    fn is_refused(&self) -> bool {
        matches!(self, Self::System(Errno::CONNREFUSED))
    }

    fn is_silent(&self) -> bool {
        matches!(self, Self::NoAnswer | Self::System(Errno::TIMEDOUT))
    }

    fn is_about_certificates(&self) -> bool {
        match self {
            Self::Identity(_) | Self::NoCertificate => true,
            Self::Secure(Broken::Tls(error)) => match error {
                TlsError::InvalidCertificate(_) | TlsError::NoCertificatesPresented => true,
                TlsError::AlertReceived(alert) => is_certificate_alert(*alert),
                _ => false,
            },
            _ => false,
        }
    }

    fn is_stranger(&self) -> bool {
        matches!(
            self,
            Self::Closed | Self::Stranger | Self::Secure(Broken::Tls(_) | Broken::Record(_))
        )
    }
}

fn is_certificate_alert(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::NoCertificate
            | AlertDescription::UnknownCA
    )
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAnswer => "no answer",
            Self::System(error) => return write!(f, "{}", std::io::Error::from(*error)),
            Self::Closed => "connected, but the connection was closed during the handshake",
            Self::Stranger => "connected, but what answered is not a process of this job",
            Self::Taken => "there is a connection already",
            Self::TakesNothing => "connected, but it takes no bytes",
            Self::NoWay => "the gateways have no way to it",
            Self::NoGateway => "there is no gateway, or the system has no random numbers",
            Self::NobodyBehind => "the gateway there does not reach it, or it has ended",
            Self::NoCertificate => "this process has no certificate",
            Self::NoRandom => "the system has no random numbers",
            Self::Unwatched => "the system watches no more connections",
            Self::Secure(error) => return write!(f, "connected, but {error}"),
            Self::Identity(error) => return write!(f, "{error}"),
            Self::Bug(what) => return write!(f, "bug in Isthmus: {what}"),
        })
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::System(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl From<Broken> for Failure {
    fn from(error: Broken) -> Self {
        Self::Secure(error)
    }
}

impl From<Refusal<IdentityError>> for Failure {
    fn from(refusal: Refusal<IdentityError>) -> Self {
        match refusal {
            Refusal::NoAnswer => Self::NoAnswer,
            Refusal::Closed => Self::Closed,
            Refusal::Stranger => Self::Stranger,
            Refusal::Taken => Self::Taken,
            Refusal::NoWay => Self::NoWay,
            Refusal::NoGateway => Self::NoGateway,
            Refusal::NoCertificate => Self::NoCertificate,
            Refusal::NoRandom => Self::NoRandom,
            Refusal::Credential(error) => Self::Identity(error),
            Refusal::Bug(what) => Self::Bug(what),
        }
    }
}

impl From<IdentityError> for Failure {
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_known_by_its_number() {
        let refused = std::io::Error::from_raw_os_error(Errno::CONNREFUSED.raw_os_error());
        assert!(Failure::from(refused).is_refused());
        // Words are nobody's business: not even these.
        assert!(!Failure::from(std::io::Error::other("Connection refused")).is_refused());
        assert!(!Failure::from(Errno::HOSTUNREACH).is_refused());
    }

    #[test]
    fn certificates_and_strangers_are_told_apart() {
        let tls = |error| Failure::from(Broken::Tls(error));
        let expired = tls(TlsError::AlertReceived(AlertDescription::CertificateExpired));
        assert!(expired.is_about_certificates());
        let other = tls(TlsError::AlertReceived(AlertDescription::HandshakeFailure));
        assert!(!other.is_about_certificates() && other.is_stranger());
        assert!(Failure::NoAnswer.is_silent() && Failure::from(Errno::TIMEDOUT).is_silent());
    }
}
