// SPDX-License-Identifier: Apache-2.0
//! Kinds of settings: what their values look like and what they mean.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// On or off.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Of the variable.
    pub name: &'static str,
    /// What holds when nothing is said.
    pub default: bool,
}

/// On or off, or not said: then it depends on where the program runs.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Of the variable.
    pub name: &'static str,
}

/// A time in seconds, with a fraction if one likes.
#[derive(Clone, Copy, Debug)]
pub struct Seconds {
    /// Of the variable.
    pub name: &'static str,
    /// What holds when nothing is said.
    pub default: u64,
    /// Shortest.
    pub least: u64,
    /// Longest.
    pub most: u64,
}

/// A number.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Of the variable.
    pub name: &'static str,
    /// What holds when nothing is said.
    pub default: u64,
    /// Smallest.
    pub least: u64,
    /// Largest.
    pub most: u64,
}

/// A number that need not be there.
#[derive(Clone, Copy, Debug)]
pub struct Optional {
    /// Of the variable.
    pub name: &'static str,
    /// A word that says the same as nothing.
    pub none: Option<&'static str>,
    /// Smallest.
    pub least: u64,
    /// Largest.
    pub most: u64,
}

/// One of some words.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// Of the variable.
    pub name: &'static str,
    /// What holds when nothing is said, if that is always the same.
    pub default: Option<&'static str>,
    /// All of them.
    pub words: &'static [&'static str],
}

/// A range of TCP ports: `5000-5100`, or one port.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// Of the variable.
    pub name: &'static str,
}

/// Words separated by commas.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// Of the variable.
    pub name: &'static str,
}

/// A command and its first arguments.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Of the variable.
    pub name: &'static str,
    /// What holds when nothing is said.
    pub default: &'static str,
}

/// Any text.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Of the variable.
    pub name: &'static str,
}

/// The name of a file or directory.
#[derive(Clone, Copy, Debug)]
pub struct PathName {
    /// Of the variable.
    pub name: &'static str,
}

impl Flag {
    /// Whether it is on.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> bool {
        said(from(self.name)).and_then(|v| flag(&v)).unwrap_or(self.default)
    }
}

impl Switch {
    /// Whether it is on, if somebody says so.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Option<bool> {
        said(from(self.name)).and_then(|v| flag(&v))
    }
}

impl Seconds {
    /// The time.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Duration {
        let found = said(from(self.name)).and_then(|v| self.parse(&v));
        found.unwrap_or_else(|| self.usual())
    }

    /// What holds when nothing is said.
    pub const fn usual(&self) -> Duration {
        Duration::from_secs(self.default)
    }

    pub(crate) fn parse(&self, value: &OsStr) -> Option<Duration> {
        let seconds: f64 = text(value)?.parse().ok()?;
        let inside = (self.least as f64..=self.most as f64).contains(&seconds);
        inside.then(|| Duration::from_secs_f64(seconds))
    }
}

impl Number {
    /// The number.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> u64 {
        let found = said(from(self.name)).and_then(|v| self.parse(&v));
        found.unwrap_or(self.default)
    }

    pub(crate) fn parse(&self, value: &OsStr) -> Option<u64> {
        between(value, self.least..=self.most)
    }
}

impl Optional {
    /// The number, if one is said.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Option<u64> {
        said(from(self.name)).and_then(|v| self.parse(&v)).flatten()
    }

    /// `Some(None)`: the word for none.
    pub(crate) fn parse(&self, value: &OsStr) -> Option<Option<u64>> {
        if self.none.is_some_and(|none| text(value) == Some(none)) {
            return Some(None);
        }
        between(value, self.least..=self.most).map(Some)
    }
}

impl Word {
    /// The word, which is one of [`Word::words`].
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Option<&'static str> {
        said(from(self.name)).and_then(|v| self.parse(&v)).or(self.default)
    }

    pub(crate) fn parse(&self, value: &OsStr) -> Option<&'static str> {
        let value = text(value)?;
        self.words.iter().find(|word| **word == value).copied()
    }
}

impl Ports {
    /// The ports, if only some may be used.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Option<RangeInclusive<u16>> {
        said(from(self.name)).and_then(|v| ports(&v))
    }
}

impl List {
    /// The words that are not empty.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Vec<String> {
        let value = said(from(self.name)).unwrap_or_default();
        let words = text(&value).unwrap_or_default().split(',').map(str::trim);
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}

impl Command {
    /// The command.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> String {
        self.said(from).unwrap_or_else(|| self.default.to_owned())
    }

    /// The command that somebody has named.
    pub fn said(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Option<String> {
        Text { name: self.name }.read(from)
    }
}

impl Text {
    /// The text, if there is one.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Option<String> {
        said(from(self.name))?.into_string().ok()
    }
}

impl PathName {
    /// The name, if there is one.
    pub fn read(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Option<PathBuf> {
        said(from(self.name)).map(PathBuf::from)
    }
}

/// A value that says something: an empty variable is how a shell takes one back.
fn said(value: Option<OsString>) -> Option<OsString> {
    value.filter(|v| !v.to_string_lossy().trim().is_empty())
}

fn text(value: &OsStr) -> Option<&str> {
    value.to_str().map(str::trim)
}

pub(crate) fn flag(value: &OsStr) -> Option<bool> {
    match text(value)?.to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "on" => Some(true),
        "0" | "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

pub(crate) fn ports(value: &OsStr) -> Option<RangeInclusive<u16>> {
    let value = text(value)?;
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first > 0 && first <= last).then_some(first..=last)
}

fn between(value: &OsStr, bounds: RangeInclusive<u64>) -> Option<u64> {
    let number: u64 = text(value)?.parse().ok()?;
    bounds.contains(&number).then_some(number)
}

/// Words as a choice: `a, b or c`.
pub(crate) fn choice(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Bounds in words. `unit` names the number where it is more than one.
pub(crate) fn bounds(unit: &str, least: u64, most: u64) -> String {
    let what = match unit {
        "bytes" | "microseconds" => unit,
        _ => "a number",
    };
    match most {
        u64::MAX => format!("{what} from {least} up"),
        most => format!("{what} from {least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(value: &str) -> impl Fn(&'static str) -> Option<OsString> {
        move |_| Some(value.into())
    }

    const FLAG: Flag = Flag {
        name: "F",
        default: true,
    };
    const TIME: Seconds = Seconds {
        name: "T",
        default: 300,
        least: 1,
        most: 1000,
    };
    const THREADS: Optional = Optional {
        name: "N",
        none: Some("auto"),
        least: 1,
        most: 8,
    };

    #[test]
    fn flags_have_four_words_for_each_side() {
        for on in ["1", "yes", "true", "on", "ON", " 1 "] {
            assert!(FLAG.read(is(on)), "{on}");
        }
        for off in ["0", "no", "false", "Off"] {
            assert!(!FLAG.read(is(off)), "{off}");
        }
        for nothing in ["", " ", "2", "perhaps"] {
            assert!(FLAG.read(is(nothing)), "{nothing}");
        }
        assert!(FLAG.read(|_| None));
    }

    #[test]
    fn numbers_outside_their_bounds_count_as_the_default() {
        assert_eq!(TIME.read(is("1.5")), Duration::from_millis(1500));
        for wrong in ["0.5", "1001", "NaN", "inf", "-3", "5s", ""] {
            assert_eq!(TIME.read(is(wrong)), Duration::from_secs(300), "{wrong}");
        }
        let read = |v| THREADS.read(is(v));
        assert_eq!(
            ["1", "8", "0", "9", "auto", "many"].map(read),
            [Some(1), Some(8), None, None, None, None]
        );
    }

    #[test]
    fn ports_are_one_or_a_range() {
        let ports = |v| Ports { name: "P" }.read(is(v));
        assert_eq!(ports("5000-5100"), Some(5000..=5100));
        assert_eq!(ports(" 5000 "), Some(5000..=5000));
        assert_eq!(
            ["0", "9-8", "70000", "a-b", ""].map(ports),
            [None, None, None, None, None]
        );
    }

    #[test]
    fn words_and_lists_are_taken_apart() {
        let scope = Word {
            name: "W",
            default: Some("shared"),
            words: &["shared", "local"],
        };
        let read = |v| scope.read(is(v));
        assert_eq!(
            ["local", "Local", ""].map(read),
            [Some("local"), Some("shared"), Some("shared")]
        );
        assert_eq!(List { name: "L" }.read(is("a, b,,c ")), ["a", "b", "c"]);
    }
}
