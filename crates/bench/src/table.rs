// SPDX-License-Identifier: Apache-2.0
//! The table for people and the JSON for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::goals::Verdict;
use crate::peers::Peer;
use crate::samples::{Key, Samples, Spread};

/// Values as median [least-greatest]; behind each peer's the ratio of the first library's to it.
pub(crate) fn render(samples: &Samples, peers: &[Peer], verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    let mut last = None;
    for (key, values) in &samples.lines {
        let group = (key.set.clone(), key.ranks);
        if last.as_ref() != Some(&group) {
            heading(&mut text, key, peers);
            last = Some(group);
        }
        line(&mut text, key, values, peers);
    }
    for verdict in verdicts {
        let Spread { median, min, max } = verdict.measured;
        let word = if verdict.met { "met    " } else { "NOT MET" };
        let _ = writeln!(
            text,
            "{word} {:<60} {} [{}-{}]",
            verdict.goal,
            short(median),
            short(min),
            short(max)
        );
    }
    for (reason, times) in &samples.failures {
        let _ = writeln!(text, "failed {times} times: {reason}");
    }
    for (set, reason) in &samples.distrusted {
        let _ = writeln!(text, "measure {set} again: {reason}");
    }
    text
}

/// All samples, spreads, ratios and verdicts.
pub(crate) fn json(samples: &Samples, peers: &[Peer], verdicts: &[Verdict]) -> String {
    let first = peers.first().map_or("", |peer| peer.name.as_str());
    let lines: Vec<_> = samples
        .lines
        .iter()
        .map(|(key, values)| {
            let spreads: BTreeMap<_, _> = values.iter().map(|(peer, v)| (peer, Spread::of(v))).collect();
            let ours = values.get(first).map_or(&[][..], Vec::as_slice);
            let ratios: BTreeMap<_, _> = values
                .iter()
                .map(|(peer, v)| (peer, Spread::of_ratios(ours, v)))
                .collect();
            serde_json::json!({ "test": key, "samples": values, "spread": spreads, "ratio_of_first": ratios })
        })
        .collect();
    let versions: BTreeMap<_, _> = peers.iter().map(|peer| (&peer.name, &peer.version)).collect();
    let all = serde_json::json!({
        "versions": versions, "first": first, "lines": lines, "goals": verdicts,
        "failures": samples.failures, "distrusted": samples.distrusted,
    });
    format!("{all:#}\n")
}

fn heading(text: &mut String, key: &Key, peers: &[Peer]) {
    let _ = write!(text, "\n{:<26}", format!("{}, {} ranks", key.set, key.ranks));
    for peer in peers {
        let _ = write!(text, "{:<34}", peer.name);
    }
    text.push('\n');
}

fn line(text: &mut String, key: &Key, values: &BTreeMap<String, Vec<f64>>, peers: &[Peer]) {
    let bytes = if key.bytes == 0 {
        String::new()
    } else {
        format!(" {}", key.bytes)
    };
    let _ = write!(text, "{:<26}", format!("{}{bytes}, {}", key.test, key.unit));
    let first = peers.first().and_then(|peer| values.get(&peer.name));
    for (number, peer) in peers.iter().enumerate() {
        let own = values.get(&peer.name);
        let ratio = first
            .zip(own)
            .filter(|_| number > 0)
            .and_then(|(a, b)| Spread::of_ratios(a, b));
        let _ = write!(text, "{:<34}", cell(own, ratio, key));
    }
    let trimmed = text.trim_end().len();
    text.truncate(trimmed);
    text.push('\n');
}

fn cell(values: Option<&Vec<f64>>, ratio: Option<Spread>, key: &Key) -> String {
    let Some(own) = values.and_then(|v| Spread::of(v)) else {
        return "-".to_owned();
    };
    let mut text = format!("{} [{}-{}]", short(own.median), short(own.min), short(own.max));
    if let Some(ratio) = ratio {
        let _ = write!(text, " x{}", short(ratio.median));
        let better = if key.is_rate() {
            ratio.median >= 1.0
        } else {
            ratio.median <= 1.0
        };
        text.push(if better { ' ' } else { '!' });
    }
    text
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [12_345.6, 12.34, 1.234, 0.1234, 0.0].map(short),
            ["12346", "12.3", "1.23", "0.123", "0"]
        );
    }
}
