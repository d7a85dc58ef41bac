// SPDX-License-Identifier: Apache-2.0
//! What `--json` prints: one object a command, as `spec/json.tsv` describes it.
//!
//! Numbers have their unit in the name (`_seconds`, `_bytes`, `bits_per_second`), several values are a list, and a word
//! means the same in all documents. Commands that look again and again print one object a line.

use isthmus_wire::word;
use serde_json::{Value, json};

/// Counted up when a field goes away or changes its meaning; new ones may come at any time.
pub(crate) const SCHEMA: u32 = 1;

/// The document of a command, with what all have at the top.
pub(crate) fn document(command: &str, fields: Value) -> Value {
    let mut all = json!({ "schema": SCHEMA, "command": command });
    if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), fields) {
        all.extend(fields);
    }
    all
}

/// Prints it.
pub(crate) fn print(command: &str, fields: Value) {
    crate::print(&text(command, fields));
}

/// As it is printed by commands that end then.
pub(crate) fn text(command: &str, fields: Value) -> String {
    let text = format!("{:#}", document(command, fields));
    escaped(&text, |c| {
        let units = c
            .encode_utf16(&mut [0; 2])
            .iter()
            .map(|u| format!("\\u{u:04x}"))
            .collect::<Vec<_>>();
        units.concat()
    })
}

/// A text of a language that has a way to write the characters that stand for bytes which are no text.
pub(crate) fn escaped(text: &str, way: impl Fn(char) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if word::stands_for_a_byte(c) {
            out.push_str(&way(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    const TABLE: &str = include_str!("../../../spec/json.tsv");

    fn rows() -> impl Iterator<Item = Vec<&'static str>> {
        TABLE.lines().skip(1).map(|line| line.split('\t').collect())
    }

    #[test]
    fn fields_have_units_and_types() {
        for row in rows() {
            assert_eq!(row.len(), 4, "{row:?}");
            let words: Vec<&str> = row[1].split(['.', '_', '[']).collect();
            let short = [
                "s",
                "ms",
                "us",
                "ns",
                "kb",
                "mb",
                "bit",
                "byte",
                "rtt",
                "nanoseconds",
                "milliseconds",
            ];
            assert!(!words.iter().any(|w| short.contains(w)), "{row:?}");
            let kind = row[2].trim_end_matches('?');
            assert!(
                ["text", "number", "flag", "any"].contains(&kind) || row[1].starts_with('='),
                "{row:?}"
            );
            let measured = ["seconds", "second", "bytes"].contains(words.last().unwrap_or(&""));
            assert!(!measured || kind == "number", "{row:?}");
        }
    }

    /// Names of all commands that take `--json`.
    fn with_json(command: &clap::Command, name: &str, found: &mut Vec<String>) {
        if command.get_arguments().any(|a| a.get_id() == "json") {
            found.push(name.to_owned());
        }
        // What isthmus runs itself prints for itself.
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            with_json(verb, format!("{name} {}", verb.get_name()).trim(), found);
        }
    }

    #[test]
    fn every_command_with_json_is_described() {
        let mut found = Vec::new();
        with_json(&crate::Command::command(), "", &mut found);
        for name in &found {
            // Verbs of the cache have one document, sites alone are their list, and `run` only tells what it would do,
            // as do those that take its words.
            let name = match name.as_str() {
                "join" | "add" => "run",
                name => name,
            };
            let of_cache = name.starts_with("cache");
            let of_list = |c: &str| name == "sites" && c == "sites list";
            let described =
                |c: &str| c == name || c.starts_with(&format!("{name} --")) || (of_cache && c == "cache") || of_list(c);
            assert!(rows().any(|row| described(row[0])), "{name}");
        }
        for name in [
            "ps",
            "where",
            "top",
            "discover",
            "doctor",
            "info",
            "links",
            "sites list",
            "explain",
            "simulate",
            "login",
        ] {
            assert!(found.iter().any(|f| f == name), "{name} has no --json");
        }
    }
}
