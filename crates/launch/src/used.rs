// SPDX-License-Identifier: Apache-2.0
//! What the processes did with files, for people and as JSON.

use isthmus_wire::usage::{Sum, Usage};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// As JSON.
pub(crate) fn json(one: &Usage) -> Value {
    let calls = |sum: Sum| json!({"calls": sum.calls, "bytes": sum.bytes});
    let messages = |sum: Sum| json!({"messages": sum.calls, "bytes": sum.bytes});
    json!({
        "file": one.name, "site": one.site, "opens": one.opens, "direct": one.direct, "aggregators": one.aggregators,
        "reads": calls(one.read), "writes": calls(one.written),
        "sent_inside_sites": messages(one.near), "sent_between_sites": messages(one.far),
    })
}

/// A row per file: who reaches it, calls of the system, messages.
pub(crate) fn table(files: &[Usage]) -> String {
    let names = files.iter().map(|one| one.name.chars().count());
    let width = names.max().unwrap_or(0).clamp(4, 48);
    let mut text = format!(
        "files: opens by processes, those of processes that use it directly, those of aggregators; calls of the system; messages\n\
         {:<width$} {:<12} {:>6} {:>6} {:>6} | {:^25} | {:^25} | {:^25} | {:^25}",
        "FILE", "SITE", "OPENS", "DIRECT", "AGGR.", "READS, BYTES", "WRITES, BYTES", "INSIDE SITES", "BETWEEN SITES"
    );
    for one in files {
        let _ = write!(
            text,
            "\n{:<width$} {:<12} {:>6} {:>6} {:>6}",
            one.name, one.site, one.opens, one.direct, one.aggregators
        );
        for sum in [one.read, one.written, one.near, one.far] {
            let _ = write!(text, " | {:>10} {:>14}", sum.calls, sum.bytes);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_row_with_its_levels() {
        let one = Usage {
            name: "\"/data/x\"".into(),
            site: "lab".into(),
            opens: 4,
            direct: 2,
            aggregators: 1,
            read: Sum { calls: 5, bytes: 6 },
            written: Sum { calls: 7, bytes: 8 },
            near: Sum { calls: 9, bytes: 10 },
            far: Sum { calls: 11, bytes: 12 },
        };
        let table = table(std::slice::from_ref(&one));
        let words: Vec<&str> = table.lines().last().unwrap_or_default().split_whitespace().collect();
        assert_eq!(words.join(" "), "\"/data/x\" lab 4 2 1 | 5 6 | 7 8 | 9 10 | 11 12");
        assert_eq!(json(&one)["sent_between_sites"], json!({"messages": 11, "bytes": 12}));
    }
}
