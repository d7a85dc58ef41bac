// SPDX-License-Identifier: Apache-2.0
//! Texts of users in what people read: files of ours (TOML), and messages.

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

/// Longest text in a message, characters; of a longer one the begin is shown.
const MOST_SHOWN: usize = 300;

/// For a message: on one line, and letters of all languages as they are.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(MOST_SHOWN) {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    if text.chars().nth(MOST_SHOWN).is_some() {
        shown.push('\u{2026}');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stay_and_controls_do_not() {
        assert_eq!(
            shown("gr\u{fc}n\n\u{1b}[2J\u{10f8ff}"),
            "gr\u{fc}n\\n\\u{1b}[2J\u{10f8ff}"
        );
        assert_eq!(shown(&"h".repeat(100_000)).chars().count(), MOST_SHOWN + 1);
        assert_eq!(text("a\"\u{1b}\u{fc}"), "\"a\\\"\\u001B\u{fc}\"");
    }
}
