// SPDX-License-Identifier: Apache-2.0
//! What stands in a certificate, for sentences: whose it is, of what job, from when to when it is valid.

use rcgen::{CertificateParams, SanType};
use rustls::pki_types::CertificateDer;

use crate::authority::SKEW;
use crate::clock::Clock;

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

/// `2026-11-28T12:00:00Z`, of seconds since 1970. (Days from the civil calendar: H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms".)
fn instant(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_everybody_does() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_867_200, "2026-11-28T12:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(instant(seconds), text);
        }
        assert!(!instant(i64::MAX).is_empty() && !instant(i64::MIN).is_empty());
    }

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
