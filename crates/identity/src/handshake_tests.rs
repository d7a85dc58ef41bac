// SPDX-License-Identifier: Apache-2.0
//! Who is let in and who is not: whole handshakes in memory.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rcgen::CertificateSigningRequestParams;
use rustls::{ClientConfig, ClientConnection, ServerConnection};

use crate::authority::rank_params;
use crate::clock::Clock;
use crate::{Authority, Identity, IdentityError, KeyPair};

const HOUR: Duration = Duration::from_secs(3600);

fn identity(authority: &Authority, rank: u32) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = authority.sign(&key.signing_request().unwrap(), rank, HOUR).unwrap();
    Identity::new(authority.job(), rank, &key, &certificate, authority.certificate()).unwrap()
}

/// Runs a handshake to its end or to the first refusal. The error says who refused.
fn shake(
    client: Arc<ClientConfig>,
    server: &Identity,
    dialled: &Identity,
    rank: u32,
) -> Result<ServerConnection, String> {
    let mut client = ClientConnection::new(client, dialled.server_name(rank).unwrap()).unwrap();
    let mut server = ServerConnection::new(server.server()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets().map_err(|e| format!("server: {e}"))?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets().map_err(|e| format!("client: {e}"))?;
    }
    Ok(server)
}

#[test]
fn two_ranks_of_a_job_meet() {
    let authority = Authority::new("job-1").unwrap();
    let (a, b) = (identity(&authority, 0), identity(&authority, 17));
    let server = shake(a.client(), &b, &a, 17).unwrap();
    assert_eq!(server.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    b.check(server.peer_certificates(), 0).unwrap();
    assert!(
        b.check(server.peer_certificates(), 1).is_err(),
        "claims another rank than its certificate"
    );
    assert!(b.check(None, 0).is_err());
}

#[test]
fn the_wrong_rank_is_refused_by_who_dialled() {
    let authority = Authority::new("job-1").unwrap();
    let (a, b) = (identity(&authority, 0), identity(&authority, 17));
    let refused = shake(a.client(), &b, &a, 1).unwrap_err();
    assert!(
        refused.starts_with("client: ") && refused.contains("not valid for"),
        "{refused}"
    );
}

#[test]
fn a_certificate_of_another_job_is_refused_by_both() {
    let (one, two) = (Authority::new("job-1").unwrap(), Authority::new("job-1").unwrap());
    let (a, stranger) = (identity(&one, 0), identity(&two, 1));
    let refused = shake(a.client(), &stranger, &a, 1).unwrap_err();
    assert!(
        refused.starts_with("client: ") && refused.contains("certificate"),
        "{refused}"
    );
    // A stranger who believes everybody still cannot get in.
    let mut gullible = (*stranger.client()).clone();
    gullible.dangerous().set_certificate_verifier(Arc::new(Gullible));
    let refused = shake(gullible.into(), &a, &a, 0).unwrap_err();
    assert!(
        refused.starts_with("server: ") && refused.contains("certificate"),
        "{refused}"
    );
}

#[test]
fn no_certificate_is_refused() {
    let authority = Authority::new("job-1").unwrap();
    let (a, b) = (identity(&authority, 0), identity(&authority, 1));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.certificate().to_vec().into()).unwrap();
    let anonymous = ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let refused = shake(anonymous.into(), &b, &a, 1).unwrap_err();
    assert!(
        refused.starts_with("server: ") && refused.contains("certificate"),
        "{refused}"
    );
}

#[test]
fn an_expired_certificate_is_refused_by_both() {
    let authority = Authority::new("job-1").unwrap();
    let key = KeyPair::generate().unwrap();
    let request = key.signing_request().unwrap();
    let mut parsed = CertificateSigningRequestParams::from_der(&request.as_slice().into()).unwrap();
    let clock = Clock::of_machine();
    parsed.params = rank_params(&clock, "job-1", 1, HOUR).unwrap();
    parsed.params.not_after = (UNIX_EPOCH + clock.now() - Duration::from_secs(10)).into();
    let certificate = authority.issue(parsed).unwrap();
    let late = Identity::new("job-1", 1, &key, &certificate, authority.certificate()).unwrap();
    let a = identity(&authority, 0);
    let refused = shake(a.client(), &late, &a, 1).unwrap_err();
    let named = |refused: &str| {
        let parts = [
            "certificate of rank 1 of job job-1, valid from 20",
            "Z to 20",
            "Z, has expired: ",
            "Z in this job",
        ];
        assert!(parts.iter().all(|part| refused.contains(part)), "{refused}");
    };
    assert!(refused.starts_with("client: "), "{refused}");
    named(&refused);
    let refused = shake(late.client(), &a, &a, 0).unwrap_err();
    assert!(refused.starts_with("server: "), "{refused}");
    named(&refused);
    let refused = a.verify(late.certificate(), 1, b"message", &late.sign(b"message").unwrap());
    named(&refused.unwrap_err().to_string());
}

/// The machine's clock is far from the job's: it was set, after the job began or before.
#[test]
fn the_time_of_the_job_decides_and_no_clock_of_a_machine() {
    let now = Clock::of_machine().now();
    let years = Duration::from_secs(3 * 365 * 86_400);
    for begun in [now - years, now - 3 * HOUR, now + 3 * HOUR, now + years] {
        let authority = Authority::begun("job-1", Clock::showing(begun)).unwrap();
        let (a, b) = (identity(&authority, 0), identity(&authority, 17));
        let server = shake(a.client(), &b, &a, 17).unwrap();
        b.check(server.peer_certificates(), 0).unwrap();
        a.verify(b.certificate(), 17, b"message", &b.sign(b"message").unwrap())
            .unwrap();
    }
}

#[test]
fn a_certificate_is_only_taken_for_its_own_rank() {
    let authority = Authority::new("job-1").unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = authority.sign(&key.signing_request().unwrap(), 4, HOUR).unwrap();
    let wrong = Identity::new("job-1", 5, &key, &certificate, authority.certificate());
    assert!(matches!(wrong, Err(IdentityError::Certificate(_))), "{wrong:?}");
}

#[test]
fn names_in_a_request_are_ignored() {
    let authority = Authority::new("job-1").unwrap();
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let params = rcgen::CertificateParams::new(vec!["rank-0.job-1.isthmus".to_owned()]).unwrap();
    let request = params.serialize_request(&key).unwrap();
    let certificate = authority.sign(request.der(), 9, HOUR).unwrap();
    let a = identity(&authority, 1);
    let shown = [certificate.into()];
    a.check(Some(&shown), 9).unwrap();
    assert!(
        a.check(Some(&shown), 0).is_err(),
        "it must not be rank 0 because it asked to be"
    );
}

#[derive(Debug)]
struct Gullible;

impl rustls::client::danger::ServerCertVerifier for Gullible {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        vec![rustls::SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
