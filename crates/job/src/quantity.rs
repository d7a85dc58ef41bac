// SPDX-License-Identifier: Apache-2.0
//! Sizes, times and rates as users write them: a decimal number and a unit, `64 KiB`, `7.5ms`, `100 Mbit/s`.

use crate::error::JobError;

/// Largest value in the smallest unit; sums of a few stay far below the range of `u64`.
const MOST: f64 = 1e18;

const SIZES: [(&str, f64); 9] = [
    ("", 1.0),
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const RATES: [(&str, f64); 7] = [
    ("kbit/s", 125.0),
    ("Mbit/s", 125e3),
    ("Gbit/s", 125e6),
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
];

/// Bytes.
pub fn size(text: &str) -> Result<u64, JobError> {
    read(text, &SIZES, "a size", "512, 64KiB or 16MiB")
}

/// Nanoseconds.
pub fn time(text: &str) -> Result<u64, JobError> {
    read(text, &TIMES, "a time", "\"300 ns\", \"5 us\" or \"20 ms\"")
}

/// Bytes per second, at least 1.
pub fn rate(text: &str) -> Result<u64, JobError> {
    match read(text, &RATES, "a rate", "\"100 Mbit/s\" or \"5 GB/s\"")? {
        0 => Err(JobError::new(format!("'{text}' is less than one byte per second"))),
        rate => Ok(rate),
    }
}

/// Nanoseconds, exactly.
pub fn show_time(nanoseconds: u64) -> String {
    show(
        nanoseconds,
        &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)],
    )
}

/// Bytes per second, exactly, as bits per second.
pub fn show_rate(bytes_per_second: u64) -> String {
    match bytes_per_second.checked_mul(8) {
        Some(bits) if bits >= 1000 => show(
            bits,
            &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000)],
        ),
        _ => format!("{bytes_per_second} B/s"),
    }
}

/// Bytes for people, in three digits or fewer: `3.0 MB`.
pub fn show_amount(bytes: u64) -> String {
    show_rounded(bytes as f64, &["B", "kB", "MB", "GB", "TB"])
}

/// A number for people, with the largest of these units, a thousand apart, in which it is at least one.
pub fn show_rounded(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$} {}", units.get(unit).unwrap_or(&""))
}

fn show(value: u64, units: &[(&str, u64)]) -> String {
    let found = units
        .iter()
        .find(|(_, factor)| value >= *factor)
        .or_else(|| units.last());
    let (unit, factor) = found.copied().unwrap_or(("", 1));
    let digits = factor.ilog10() as usize;
    let fraction = format!("{:0digits$}", value % factor);
    let fraction = if digits == 0 {
        ""
    } else {
        fraction.trim_end_matches('0')
    };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction} {unit}", value / factor)
}

fn read(text: &str, units: &[(&str, f64)], what: &str, like: &str) -> Result<u64, JobError> {
    let shown: String = text.chars().take(40).collect();
    let wrong = |why: &str| Err(JobError::new(format!("'{shown}' is {why}")).hint(format!("write for example {like}")));
    let text = text.trim();
    let digits = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let (number, unit) = (text[..digits].parse::<f64>(), text[digits..].trim_start());
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    let (Ok(number), Some(factor)) = (number, factor) else {
        return wrong(&format!("not {what}"));
    };
    let value = (number * factor).round();
    if value > MOST {
        return wrong("too large");
    }
    Ok(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!(size("8MiB"), Ok(8 << 20));
        assert_eq!(size("17"), Ok(17));
        assert_eq!(time("37.5 ms"), Ok(37_500_000));
        assert_eq!(rate("100 Mbit/s"), Ok(12_500_000));
    }

    #[test]
    fn what_is_shown_is_read_again() {
        for ns in [0, 1, 999, 1500, 20_100_001, 37_500_000, 3_000_000_000] {
            assert_eq!(time(&show_time(ns)), Ok(ns), "{}", show_time(ns));
        }
        for bytes in [1, 124, 125, 126, 12_500_000, 11_768_751, 1_250_000_000, 1 << 50] {
            assert_eq!(rate(&show_rate(bytes)), Ok(bytes), "{}", show_rate(bytes));
        }
        assert_eq!(show_time(20_100_000), "20.1 ms");
        assert_eq!(show_rate(12_500_000), "100 Mbit/s");
    }

    #[test]
    fn amounts_are_shown_in_three_digits() {
        let shown = [0, 999, 1000, 99_900, 123_456, u64::MAX].map(show_amount);
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "99.9 kB", "123 kB", "18446744 TB"]);
    }

    #[test]
    fn wrong_ones_say_what_was_meant() {
        for text in ["", "x", "-1", "1.2.3 B", "1 mb", "1e3", "999999999 TiB", "\u{e9}"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(time("5").unwrap_err().to_string().contains("'5' is not a time"));
        assert!(rate("0 B/s").is_err());
    }
}
