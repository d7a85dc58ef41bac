// SPDX-License-Identifier: Apache-2.0
//! What stands in a certificate, for sentences: whose it is, of what job, from when to when it is valid.

use rcgen::{CertificateParams, SanType};
use rustls::pki_types::CertificateDer;

use crate::authority::SKEW;
use crate::clock::Clock;
use isthmus_wire::calendar::instant;

/// When a certificate of a job was signed, since 1970; nothing if it cannot be read.
pub(crate) fn signed(certificate: &CertificateDer<'_>) -> Option<std::time::Duration> {
    let begin = CertificateParams::from_ca_cert_der(certificate).ok()?.not_before;
    let begin = u64::try_from(begin.unix_timestamp()).ok()?;
    Some(std::time::Duration::from_secs(begin) + SKEW)
}

/// `certificate of rank 3 of job X, valid from … to …`. It may be anybody's: nothing of it is repeated but a name that
/// a job gives.
pub(crate) fn described(certificate: &CertificateDer<'_>) -> String {
    let Ok(params) = CertificateParams::from_ca_cert_der(certificate) else {
        return "what was shown is no certificate".to_owned();
    };
    let name = params.subject_alt_names.iter().find_map(|name| match name {
        SanType::DnsName(name) => whose(name.as_str()),
        _ => None,
    });
    let whose = name.unwrap_or_else(|| "of no job".to_owned());
    let (from, to) = (params.not_before.unix_timestamp(), params.not_after.unix_timestamp());
    format!("certificate {whose}, valid from {} to {}", instant(from), instant(to))
}

/// The time of the job, for the same sentences.
pub(crate) fn now(clock: &Clock) -> String {
    instant(i64::try_from(clock.now().as_secs()).unwrap_or(i64::MAX))
}

/// `rank-3.JOB.isthmus` in words.
fn whose(name: &str) -> Option<String> {
    let (rank, job) = name.strip_prefix("rank-")?.strip_suffix(".isthmus")?.split_once('.')?;
    let rank: u32 = rank.parse().ok()?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = !job.is_empty() && job.len() <= 63 && job.chars().all(is_plain);
    is_label.then(|| format!("of rank {rank} of job {job}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_job_gives_are_repeated() {
        assert_eq!(whose("rank-3.job-1.isthmus").as_deref(), Some("of rank 3 of job job-1"));
        for name in [
            "rank-3.isthmus",
            "rank-x.job.isthmus",
            "rank-3.a\u{1b}[2J.isthmus",
            "rank-3..isthmus",
            "www.example.org",
            "",
        ] {
            assert_eq!(whose(name), None, "{name}");
        }
        assert_eq!(
            described(&CertificateDer::from(&b"nonsense"[..])),
            "what was shown is no certificate"
        );
    }
}
