// SPDX-License-Identifier: Apache-2.0
//! Rates, amounts and times for people, and what a rate stands on. All commands say them alike.

use isthmus_job::quantity::{show_amount, show_rate};
use isthmus_topology::Rate;
use serde_json::{Value, json};

/// A rate with how far off it may be: `182.1 Mbit/s +- 3 %`, `at least 912 Mbit/s`. The same in all commands.
pub(crate) fn rate_in_words(rate: &Rate) -> String {
    let shown = show_rate(rounded(rate.bytes_per_second));
    match rate {
        rate if rate.at_least => format!("at least {shown}"),
        rate if rate.busy == 0 => shown,
        rate => format!("{shown} +- {} %", (rate.spread / 10).max(1)),
    }
}

/// What a rate stands on: `3.0 MB in 0.42 s`.
pub(crate) fn evidence(rate: &Rate) -> String {
    if rate.busy == 0 {
        return String::new();
    }
    let seconds = rate.busy as f64 / 1e9;
    let digits = if seconds < 0.1 { 3 } else { 2 };
    format!("{} in {seconds:.digits$} s", show_amount(rate.bytes))
}

/// Both in one.
pub(crate) fn rate_with_evidence(rate: &Rate) -> String {
    match evidence(rate) {
        seen if seen.is_empty() => rate_in_words(rate),
        seen => format!("{}, from {seen}", rate_in_words(rate)),
    }
}

/// Adds a rate and what it stands on to what is told as JSON.
pub(crate) fn add_rate(link: &mut Value, rate: Option<&Rate>) {
    link["bits_per_second"] = json!(rate.map(|r| r.bytes_per_second as f64 * 8.0));
    link["at_least"] = json!(rate.is_some_and(|r| r.at_least));
    link["spread"] = json!(rate.map(|r| f64::from(r.spread) / 1e3));
    link["seen_bytes"] = json!(rate.map(|r| r.bytes));
    link["seen_seconds"] = json!(rate.map(|r| r.busy as f64 / 1e9));
}

/// Four digits.
pub(crate) fn rounded(value: u64) -> u64 {
    let unit = 10u64.pow(value.max(1).ilog10().saturating_sub(3));
    (value + unit / 2) / unit * unit
}

/// A time in its two largest units.
pub(crate) fn span(seconds: u32) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let mut left = seconds;
    let mut parts = Vec::new();
    for (length, unit) in units {
        if left >= length && parts.len() < 2 {
            parts.push(format!("{}{unit}", left / length));
            left %= length;
        }
    }
    if parts.is_empty() {
        "0s".to_owned()
    } else {
        parts.join(" ")
    }
}
