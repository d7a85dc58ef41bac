// SPDX-License-Identifier: Apache-2.0
//! Rust sources with comments and literals blanked out, so that rules see code and nothing else.

use std::ops::Range;

use crate::tree::{self, Result};

/// A broken rule: one line, beginning with the file.
pub(super) type Finding = String;

/// One Rust file.
pub(super) struct Source {
    /// Relative to the top.
    pub(super) path: String,
    /// As it is.
    pub(super) text: String,
    /// The same length in bytes; comments, strings and characters are spaces, and so are modules of tests.
    pub(super) code: String,
    /// Where modules of tests stand, in bytes.
    tests: Vec<Range<usize>>,
}

impl Source {
    /// A file with this text.
    pub(super) fn of(path: &str, text: &str) -> Self {
        let blank = blank(text);
        let tests = test_modules(&blank);
        let code = tests.iter().fold(blank, |code, range| without(&code, range));
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
            tests,
        }
    }

    /// Contents of string literals outside modules of tests.
    pub(super) fn strings(&self) -> Vec<&str> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(c) = self.text[at..].chars().next() {
            let length = literal_length(&self.text[at..], self.text[..at].chars().next_back());
            let literal = &self.text[at..at + length];
            if literal.starts_with(['"', 'r']) && !self.tests.iter().any(|range| range.contains(&at)) {
                found.push(literal.trim_start_matches('r').trim_matches('#').trim_matches('"'));
            }
            at += if length == 0 { c.len_utf8() } else { length };
        }
        found
    }

    /// Directory name of the crate: `schedule` for `crates/schedule/src/…`; `xtask` and `fuzz` for themselves.
    pub(super) fn room(&self) -> &str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            other => other.unwrap_or_default(),
        }
    }

    /// Whether the file is itself a test, an example or a measurement.
    pub(super) fn is_test(&self) -> bool {
        let inside = |directory: &str| self.path.contains(&format!("/{directory}/"));
        let file = self.path.rsplit('/').next().unwrap_or_default();
        inside("tests") || inside("benches") || inside("examples") || matches!(file, "tests.rs" | "test.rs")
    }

    /// Whether `cargo xtask codegen` wrote it.
    pub(super) fn is_generated(&self) -> bool {
        self.path.contains("/generated/")
    }
}

/// All Rust files of the workspace.
pub(super) fn load() -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for directory in ["crates", "xtask", "fuzz"] {
        for path in tree::files(directory, ".rs")? {
            let text = tree::read(&path)?;
            sources.push(Source::of(&path, &text));
        }
    }
    Ok(sources)
}

/// Modules with a body behind `#[cfg(test)]`, from that to the closing brace.
fn test_modules(code: &str) -> Vec<Range<usize>> {
    const MARK: &str = "#[cfg(test)]";
    let module = |(at, _): (usize, &str)| {
        let after = &code[at + MARK.len()..];
        let open = after.find(['{', ';'])?;
        let is_module = after[open..].starts_with('{') && after[..open].contains("mod ");
        is_module.then(|| at..at + MARK.len() + open + block(&after[open..]))
    };
    code.match_indices(MARK).filter_map(module).collect()
}

/// Bytes of the block in braces that the code begins with.
fn block(code: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in code.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The code with this part as spaces.
fn without(code: &str, part: &Range<usize>) -> String {
    [&code[..part.start], &spaces(&code[part.clone()]), &code[part.end..]].concat()
}

/// As many bytes, and the same lines.
fn spaces(text: &str) -> String {
    text.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect()
}

/// Replaces comments, strings and character literals by spaces; line breaks stay.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = literal_length(rest, out.chars().next_back());
        if length == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.push_str(&spaces(&rest[..length]));
            rest = &rest[length..];
        }
    }
    out
}

/// Bytes of the comment or literal that `text` begins with; 0 for code.
fn literal_length(text: &str, before: Option<char>) -> usize {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    if text.starts_with('"') {
        return quoted(text, '"');
    }
    if text.starts_with('\'') {
        return character(text);
    }
    if !in_word && (text.starts_with("r\"") || text.starts_with("r#")) {
        return raw_string(text);
    }
    0
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A character literal; a lifetime or label is code.
fn character(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(text, '\''),
        _ => 0,
    }
}

fn raw_string(text: &str) -> usize {
    let hashes = text[1..].chars().take_while(|c| *c == '#').count();
    if !text[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = 2 + hashes;
    text[start..].find(&end).map_or(text.len(), |at| start + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        assert_eq!(blank("a // b\nc"), "a     \nc");
        assert_eq!(blank("x(\"y\\\"z\", 'q', '\\n')"), "x(      ,    ,     )");
        assert_eq!(blank("a /* b /* c */ d */ e"), "a                   e");
        assert_eq!(blank("r#\"un\"safe\"# + 1"), "             + 1");
    }

    #[test]
    fn lifetimes_are_code() {
        assert_eq!(blank("fn f<'a>(x: &'a u8) {}"), "fn f<'a>(x: &'a u8) {}");
    }

    #[test]
    fn tests_at_the_bottom_are_blanked_and_test_imports_are_not() {
        let code = |text: &str| Source::of("a.rs", text).code;
        assert_eq!(code("a\n#[cfg(test)]\nmod tests { b }\n").trim_end(), "a");
        assert_eq!(code("#[cfg(test)]\nmod tests;\na"), "#[cfg(test)]\nmod tests;\na");
    }

    #[test]
    fn what_follows_a_module_of_tests_is_code() {
        let code = Source::of("a.rs", "a\n#[cfg(test)]\nmod tests { fn f() { \"}\" } }\nfn late() {}").code;
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "fn", "late()", "{}"]);
    }

    #[test]
    fn places_in_code_are_places_in_the_text() {
        let text = "let é = \"größer\"; // ö\nlate";
        let source = Source::of("a.rs", text);
        assert_eq!(source.code.find("late"), text.find("late"));
        assert_eq!(source.strings(), ["größer"]);
        assert_eq!(
            Source::of("a.rs", "#[cfg(test)]\nmod t { \"x\" }\nr#\"y\"#").strings(),
            ["y"]
        );
    }
}
