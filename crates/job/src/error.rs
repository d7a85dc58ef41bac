// SPDX-License-Identifier: Apache-2.0
//! What is wrong with what the user wrote, where, and what to do about it.

/// A place in a file of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// File as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The whole line.
    pub text: String,
    /// How many characters to underline, at least 1.
    pub length: usize,
}

/// A user's error in a job description. Displays as one message of a few lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// What is wrong, as a lowercase fragment that names the thing.
    pub problem: String,
    /// Where, when it came from a file.
    pub location: Option<Box<Location>>,
    /// What to do.
    pub hint: Option<String>,
}

impl JobError {
    /// An error without location.
    pub fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            location: None,
            hint: None,
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds where: a byte range of `source`.
    #[must_use]
    pub fn at(mut self, file: &str, source: &str, span: std::ops::Range<usize>) -> Self {
        self.location = Some(Box::new(Location::of(file, source, span)));
        self
    }
}

impl Location {
    /// The place of a byte range in a text. Ranges outside the text are clamped to it.
    pub fn of(file: &str, source: &str, span: std::ops::Range<usize>) -> Self {
        let start = floor_boundary(source, span.start);
        let end = floor_boundary(source, span.end.max(start));
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let text = source[line_start..line_end].trim_end_matches('\r').to_owned();
        let inside = &source[start..end.min(line_end).max(start)];
        Self {
            file: file.to_owned(),
            line: source[..start].matches('\n').count() + 1,
            column: source[line_start..start].chars().count() + 1,
            text,
            length: inside.chars().count().max(1),
        }
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl std::fmt::Display for JobError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(at) = &self.location {
            write!(f, "{}:{}:{}: ", at.file, at.line, at.column)?;
        }
        f.write_str(&self.problem)?;
        if let Some(at) = &self.location {
            let number = at.line.to_string();
            let margin = " ".repeat(number.len());
            let pad: String = at
                .text
                .chars()
                .take(at.column - 1)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            write!(
                f,
                "\n {number} | {}\n {margin} | {pad}{}",
                at.text,
                "^".repeat(at.length)
            )?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for JobError {}

/// The known word that is nearest to an unknown one, if one is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word: String = word.chars().take(40).collect();
    let length = word.chars().count();
    let limit = if length < 4 { 1 } else { (length / 3).max(2) };
    known
        .iter()
        .map(|k| (distance(&word, k), *k))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, k)| k)
}

/// Edits (insert, delete, replace) between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_underlines_what_is_wrong() {
        let source = "a = 1\ncuont = 4\n";
        let error = JobError::new("unknown key 'cuont'")
            .at("job.toml", source, 6..11)
            .hint("did you mean 'count'?");
        assert_eq!(
            error.to_string(),
            "job.toml:2:1: unknown key 'cuont'\n 2 | cuont = 4\n   | ^^^^^\n  hint: did you mean 'count'?"
        );
    }

    #[test]
    fn spans_outside_the_text_are_clamped() {
        let at = Location::of("f", "é", 1..99);
        assert_eq!((at.line, at.column, at.length), (1, 1, 1));
        let at = Location::of("f", "", 5..6);
        assert_eq!((at.line, at.column), (1, 1));
    }

    #[test]
    fn near_words_are_found() {
        assert_eq!(nearest("cuont", &["count", "site"]), Some("count"));
        assert_eq!(nearest("zebra", &["count", "site"]), None);
    }
}
