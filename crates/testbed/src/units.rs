// SPDX-License-Identifier: Apache-2.0
//! Numbers with units as people write them: `40ms`, `200mbit`, `0.1%`.

use std::time::Duration;

use crate::error::Error;
use crate::link::Queue;

/// `40ms`, `1.5s`, `250us`; a bare number is refused except 0.
pub(crate) fn duration(text: &str) -> Result<Duration, Error> {
    let (number, unit) = split(text).ok_or_else(|| bad("time", text, "a number and a unit: 40ms, 0.5s, 250us"))?;
    let nanos = match unit.as_str() {
        "s" => 1e9,
        "ms" => 1e6,
        "us" | "µs" => 1e3,
        "ns" => 1.0,
        "" if number == 0.0 => 0.0,
        _ => return Err(bad("time", text, "a number and a unit: 40ms, 0.5s, 250us")),
    };
    let total = number * nanos;
    if total > 60e9 {
        return Err(bad("time", text, "at most 60s"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "split() refuses negative numbers"
    )]
    Ok(Duration::from_nanos(total.round() as u64))
}

/// Bits per second: `200mbit`, `1gbit`, `64kbit`; `None` for `unlimited`.
pub(crate) fn rate(text: &str) -> Result<Option<u64>, Error> {
    const HINT: &str = "a number and a unit: 200mbit, 1gbit, 64kbit, or unlimited";
    if text.trim() == "unlimited" {
        return Ok(None);
    }
    let (number, unit) = split(text).ok_or_else(|| bad("rate", text, HINT))?;
    let factor = match unit.as_str() {
        "kbit" | "kbit/s" => 1e3,
        "mbit" | "mbit/s" => 1e6,
        "gbit" | "gbit/s" => 1e9,
        "bit" | "bit/s" => 1.0,
        _ => return Err(bad("rate", text, HINT)),
    };
    let bits = number * factor;
    if !(1e3..=1e11).contains(&bits) {
        return Err(bad("rate", text, "between 1kbit and 100gbit"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked above"
    )]
    Ok(Some(bits as u64))
}

/// A probability: `0.1%` or `0.001`.
pub(crate) fn probability(text: &str) -> Result<f64, Error> {
    const HINT: &str = "a share from 0 to 1 or a percentage: 0.001, 0.1%";
    let (number, unit) = split(text).ok_or_else(|| bad("loss", text, HINT))?;
    let share = match unit.as_str() {
        "%" => number / 100.0,
        "" => number,
        _ => return Err(bad("loss", text, HINT)),
    };
    if share <= 1.0 {
        Ok(share)
    } else {
        Err(bad("loss", text, HINT))
    }
}

/// A queue: `auto`, `100p` packets or `500kb` bytes.
pub(crate) fn queue(text: &str) -> Result<Queue, Error> {
    const HINT: &str = "auto, a number of packets (100p) or of bytes (500kb, 4mb)";
    if text.trim() == "auto" {
        return Ok(Queue::Auto);
    }
    let (number, unit) = split(text).ok_or_else(|| bad("queue", text, HINT))?;
    if !(1.0..=1e9).contains(&number) {
        return Err(bad("queue", text, HINT));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked above"
    )]
    let whole = |factor: f64| (number * factor) as u64;
    match unit.as_str() {
        "p" | "packets" => Ok(Queue::Packets(whole(1.0))),
        "b" => Ok(Queue::Bytes(whole(1.0))),
        "kb" => Ok(Queue::Bytes(whole(1e3))),
        "mb" => Ok(Queue::Bytes(whole(1e6))),
        _ => Err(bad("queue", text, HINT)),
    }
}

/// The number and the lower-cased unit of `text`; `None` when it does not begin with a finite number >= 0.
fn split(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim().to_lowercase()))
}

fn bad(kind: &str, text: &str, hint: &str) -> Error {
    Error::Topology {
        what: format!("\"{text}\" is not a {kind}"),
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(duration("40ms").unwrap(), Duration::from_millis(40));
        assert_eq!(duration("1.5 s").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("0").unwrap(), Duration::ZERO);
        assert_eq!(rate("200Mbit").unwrap(), Some(200_000_000));
        assert_eq!(rate("unlimited").unwrap(), None);
        assert_eq!(probability("0.1%").unwrap(), 0.001);
        assert_eq!(queue("100p").unwrap(), Queue::Packets(100));
        assert_eq!(queue("4mb").unwrap(), Queue::Bytes(4_000_000));
    }

    #[test]
    fn refuses_with_a_hint() {
        for text in ["40", "-1ms", "ms", "1e9s", "61s", "∞s"] {
            let error = duration(text).unwrap_err().to_string();
            assert!(error.contains("hint"), "{text}: {error}");
        }
        assert!(rate("200").is_err());
        assert!(rate("0mbit").is_err());
        assert!(probability("101%").is_err());
        assert!(queue("0p").is_err());
    }
}
