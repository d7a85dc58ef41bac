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
    /// What was written is in order, and something failed while it was done.
    pub is_accident: bool,
}

impl JobError {
    /// An error without location.
    pub fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            location: None,
            hint: None,
            is_accident: false,
        }
    }

    /// The same for what is no mistake of the user.
    #[must_use]
    pub fn accident(mut self) -> Self {
        self.is_accident = true;
        self
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

/// How messages are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// As plain text.
    Plain,
    /// With the colours of a terminal.
    Colours,
}

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colours => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    /// What is wrong.
    pub fn problem(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// The word that says that it is wrong.
    pub fn severe(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// The word that says that something is worth knowing.
    pub fn mild(self, text: &str) -> String {
        self.wrap("1;33", text)
    }

    fn margin(self, text: &str) -> String {
        self.wrap("34", text)
    }

    fn help(self, text: &str) -> String {
        self.wrap("36", text)
    }
}

impl JobError {
    /// The message with its place, the text underlined, and the hint.
    pub fn render(&self, paint: Paint) -> String {
        let mut text = String::new();
        if let Some(at) = &self.location {
            text = format!("{}:{}:{}: ", printable(&at.file), at.line, at.column);
        }
        text.push_str(&paint.problem(&printable(&self.problem)));
        if let Some(at) = &self.location {
            text.push_str(&at.drawn(paint));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n  {} {}", paint.help("hint:"), printable(hint)));
        }
        text
    }
}

/// Characters of a line that are shown at most.
const SHOWN: usize = 160;
/// Characters that are shown before what is underlined, when a line is longer than that.
const BEFORE: usize = 60;

impl Location {
    /// The line with what is wrong underlined; of a long line the part around it.
    fn drawn(&self, paint: Paint) -> String {
        let long = self.text.chars().count() > SHOWN;
        let skipped = if long {
            (self.column - 1).saturating_sub(BEFORE)
        } else {
            0
        };
        let shown: String = self.text.chars().skip(skipped).take(SHOWN).collect();
        let pad: String = shown
            .chars()
            .take(self.column - 1 - skipped)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let left = shown.chars().count().saturating_sub(pad.chars().count()).max(1);
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        format!(
            "\n {} {}\n {} {pad}{}",
            paint.margin(&format!("{number} |")),
            printable(&shown),
            paint.margin(&format!("{margin} |")),
            paint.severe(&"^".repeat(self.length.min(left)))
        )
    }
}

/// Text from a file without what a terminal would obey.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\t' && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

impl std::fmt::Display for JobError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render(Paint::Plain))
    }
}

impl std::error::Error for JobError {}

/// Most errors of one file that are told.
pub const MAX_ERRORS: usize = 50;

/// All that is wrong with what the user wrote, in the order of its places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobErrors {
    list: Vec<JobError>,
    omitted: usize,
}

impl JobErrors {
    /// One more.
    pub fn push(&mut self, error: JobError) {
        if self.list.len() < MAX_ERRORS {
            self.list.push(error);
        } else {
            self.omitted += 1;
        }
    }

    /// The value, or nothing and one more error.
    pub fn take<T>(&mut self, result: Result<T, JobError>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// All of another list.
    pub fn extend(&mut self, other: Self) {
        self.omitted += other.omitted;
        other.list.into_iter().for_each(|error| self.push(error));
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are, also those that are not told.
    pub fn count(&self) -> usize {
        self.list.len() + self.omitted
    }

    /// Whether nothing of it is a mistake of the user.
    pub fn are_accidents(&self) -> bool {
        self.list.iter().all(|error| error.is_accident)
    }

    /// Those that are told.
    pub fn iter(&self) -> std::slice::Iter<'_, JobError> {
        self.list.iter()
    }

    /// The value if nothing is wrong.
    pub fn or<T>(mut self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.is_empty() => Ok(value),
            _ => {
                let place = |e: &JobError| e.location.as_ref().map_or((0, 0), |at| (at.line, at.column));
                self.list.sort_by_key(place);
                Err(self)
            }
        }
    }
}

impl From<JobError> for JobErrors {
    fn from(error: JobError) -> Self {
        Self {
            list: vec![error],
            omitted: 0,
        }
    }
}

impl std::fmt::Display for JobErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, error) in self.list.iter().enumerate() {
            write!(f, "{}{error}", if number > 0 { "\n" } else { "" })?;
        }
        if self.omitted > 0 {
            write!(f, "\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for JobErrors {}

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
}
