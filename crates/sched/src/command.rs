// SPDX-License-Identifier: Apache-2.0
//! Command lines as data, and what a command said.

/// Longest piece of a scheduler's words that is passed on to people, characters.
const MAX_WORDS: usize = 300;

/// A command to run: no shell is involved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Program, looked up in PATH.
    pub program: &'static str,
    /// Arguments.
    pub arguments: Vec<String>,
    /// What it reads on standard input.
    pub input: String,
    /// Variables that say in which form it prints.
    pub form: Vec<(&'static str, &'static str)>,
}

impl Command {
    pub(crate) fn new(program: &'static str) -> Self {
        Self {
            program,
            ..Self::default()
        }
    }

    pub(crate) fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub(crate) fn arg_if(self, condition: bool, argument: impl Into<String>) -> Self {
        if condition { self.arg(argument) } else { self }
    }

    pub(crate) fn form(mut self, name: &'static str, value: &'static str) -> Self {
        self.form.push((name, value));
        self
    }

    pub(crate) fn input(mut self, text: String) -> Self {
        self.input = text;
        self
    }
}

/// What a command said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// Standard output, at most [`crate::run`]'s limit.
    pub output: String,
    /// Standard error, likewise.
    pub errors: String,
}

impl Output {
    pub(crate) fn succeeded(&self) -> bool {
        self.status == Some(0)
    }

    /// Its complaints on one line, without `prefix` in front of each.
    pub(crate) fn complaint(&self, prefix: &str) -> String {
        let text = if self.errors.trim().is_empty() {
            &self.output
        } else {
            &self.errors
        };
        let lines = text
            .lines()
            .map(|l| l.trim().trim_start_matches(prefix).trim())
            .filter(|l| !l.is_empty());
        let joined = words(&lines.take(16).collect::<Vec<_>>().join("; "));
        match (joined.is_empty(), self.status) {
            (false, _) => joined,
            (true, Some(status)) => format!("exit status {status}"),
            (true, None) => "it was killed".to_owned(),
        }
    }
}

/// Printable and not too long.
pub(crate) fn words(text: &str) -> String {
    text.trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_WORDS)
        .collect()
}

/// As one word of a POSIX shell, whatever it contains.
pub(crate) fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for text in [
            "",
            "plain/path.1",
            "a b",
            "it's",
            "$(id)`id`",
            "a\nb",
            "\\",
            "-n",
            "!",
            "*",
            "ä;|&<>\"~#",
        ] {
            let script = format!("printf %s {}", quote(text));
            let said = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), text);
        }
    }

    #[test]
    fn complaints_are_one_line() {
        let said = Output {
            status: Some(1),
            output: String::new(),
            errors: "sbatch: error: no such thing\nsbatch: error: failed\u{7}\n".into(),
        };
        assert_eq!(said.complaint("sbatch: error: "), "no such thing; failed");
        assert_eq!(Output::default().complaint(""), "it was killed");
    }
}
