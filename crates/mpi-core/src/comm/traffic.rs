// SPDX-License-Identifier: Apache-2.0
//! How the messages of a communicator are treated between sites: info hints that say so.
//!
//! | key | value | meaning |
//! |---|---|---|
//! | `isthmus_class` | `latency`, `normal`, `bulk` | which goes first where a link is the bottleneck |
//! | `isthmus_rate` | bytes per second, with K, M or G; or bits with `kbit`, `mbit`, `gbit` | each process sends no faster to each peer |
//! | `isthmus_streams` | 1 to 64 | connections side by side |
//! | `isthmus_compress` | `true`, `false` | whether messages may be compressed where it pays |
//! | `isthmus_path` | `auto`, `direct`, `gateway` | by which kind of connection, where both kinds can be had |

use isthmus_engine::{TrafficClass, TrafficPath, TrafficTuning};

use crate::info::Info;

/// Keys of these hints.
pub(super) const KEYS: [&str; 5] = [
    "isthmus_class",
    "isthmus_rate",
    "isthmus_streams",
    "isthmus_compress",
    "isthmus_path",
];

const MAX_STREAMS: u16 = 64;

/// Whether the value makes sense for one of [`KEYS`].
pub(super) fn makes_sense(key: &str, value: &str) -> bool {
    match key {
        "isthmus_class" => class(value).is_some(),
        "isthmus_rate" => rate(value).is_some(),
        "isthmus_streams" => streams(value).is_some(),
        "isthmus_path" => value == "auto" || path(value).is_some(),
        _ => matches!(value, "true" | "false"),
    }
}

fn class(text: &str) -> Option<TrafficClass> {
    Some(match text {
        "latency" => TrafficClass::Latency,
        "normal" => TrafficClass::Normal,
        "bulk" => TrafficClass::Bulk,
        _ => return None,
    })
}

/// Bytes per second.
fn rate(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (factor, divisor) = match unit {
        "" => (1, 1),
        "K" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "kbit" => (1_000, 8),
        "mbit" => (1_000_000, 8),
        "gbit" => (1_000_000_000, 8),
        _ => return None,
    };
    let rate = number.parse::<u64>().ok()?.checked_mul(factor)? / divisor;
    // Less than a frame per second would be a standstill.
    (rate >= 1000).then_some(rate)
}

fn streams(text: &str) -> Option<u16> {
    text.parse().ok().filter(|n| (1..=MAX_STREAMS).contains(n))
}

fn path(text: &str) -> Option<TrafficPath> {
    match text {
        "direct" => Some(TrafficPath::Direct),
        "gateway" => Some(TrafficPath::Gateway),
        _ => None,
    }
}

/// What these hints ask for.
pub(super) fn tuning(hints: &Info) -> TrafficTuning {
    let value = |key: &str| hints.get(key).ok().flatten();
    TrafficTuning {
        class: value(KEYS[0]).and_then(class).unwrap_or_default(),
        rate: value(KEYS[1]).and_then(rate),
        streams: value(KEYS[2]).and_then(streams),
        compress: (value(KEYS[3]) == Some("false")).then_some(false),
        path: value(KEYS[4]).and_then(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_ask_for_nothing() {
        let mut hints = Info::default();
        for (key, value) in [
            ("isthmus_class", "normal"),
            ("isthmus_compress", "true"),
            ("isthmus_path", "auto"),
        ] {
            hints.set(key, value).unwrap();
        }
        assert_eq!(tuning(&hints), TrafficTuning::default());
        hints.set("isthmus_compress", "false").unwrap();
        assert_ne!(tuning(&hints), TrafficTuning::default());
    }

    #[test]
    fn values_that_make_sense() {
        for (key, value) in [
            ("isthmus_class", "latency"),
            ("isthmus_rate", "2000"),
            ("isthmus_rate", "80mbit"),
            ("isthmus_streams", "64"),
            ("isthmus_compress", "false"),
            ("isthmus_path", "gateway"),
            ("isthmus_path", "auto"),
        ] {
            assert!(makes_sense(key, value), "{key} {value}");
        }
        for (key, value) in [
            ("isthmus_class", "fast"),
            ("isthmus_rate", "10"),
            ("isthmus_rate", "-5M"),
            ("isthmus_rate", "99999999999999999999"),
            ("isthmus_rate", "5 M"),
            ("isthmus_streams", "0"),
            ("isthmus_streams", "65"),
            ("isthmus_compress", "perhaps"),
            ("isthmus_path", "ssh"),
        ] {
            assert!(!makes_sense(key, value), "{key} {value}");
        }
        assert_eq!((rate("80mbit"), rate("3M")), (Some(10_000_000), Some(3_000_000)));
    }
}
