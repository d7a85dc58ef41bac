// SPDX-License-Identifier: Apache-2.0
//! Texts in files of ours that people read: TOML.

/// In quotes, on one line.
pub(crate) fn text(text: &str) -> String {
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

fn escape(c: char) -> String {
    match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    }
}
