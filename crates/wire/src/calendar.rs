// SPDX-License-Identifier: Apache-2.0
//! Days and instants as people write them. (Days from the civil calendar: H. Hinnant, "chrono-Compatible Low-Level Date
//! Algorithms".)

/// `2026-11-28`, of days since 1970-01-01.
pub fn day(days: i64) -> String {
    // Years that begin with March, so that leap days come last.
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-11-28`, of seconds since 1970.
pub fn day_of(seconds: u64) -> String {
    day(i64::try_from(seconds / 86_400).unwrap_or(i64::MAX))
}

/// `2026-11-28T12:00:00Z`, of seconds since 1970.
pub fn instant(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", day(days))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_instants_are_written_as_everybody_does() {
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
        assert_eq!(
            [0, 59, 11_016, 20_777].map(day),
            ["1970-01-01", "1970-03-01", "2000-02-29", "2026-11-20"]
        );
        assert!(!instant(i64::MAX).is_empty() && !instant(i64::MIN).is_empty() && !day(i64::MAX).is_empty());
        assert_eq!(day_of(1_795_867_200), "2026-11-28");
    }
}
