// SPDX-License-Identifier: Apache-2.0
//! Every setting of Isthmus: its name, its values, its bounds and its default, from `spec/settings.tsv`.
//!
//! A setting is an environment variable `ISTHMUS_…`. Each has a constant here, whose type says how it is read:
//!
//! ```
//! let seconds = isthmus_settings::AWAY.read(std::env::var_os);
//! assert!(seconds.as_secs() >= 1);
//! ```
//!
//! * Where the value comes from is an argument: the environment of this process, or the variables of a job.
//! * A variable that is not set, is empty, or has a value that cannot be used counts as its default.
//! * Nobody who reads complains. [`complaints`] does, for all variables at once; the launcher and MPI_Init call it.
#![forbid(unsafe_code)]

mod complaint;
#[path = "generated/hints.rs"]
#[rustfmt::skip]
mod hints;
mod kind;
mod nearest;
mod others;
#[path = "generated/table.rs"]
#[rustfmt::skip]
mod table;

pub use complaint::{complaints, unknown_hint};
pub use hints::HINTS;
pub use kind::{Command, Flag, List, Number, Optional, PathName, Ports, Seconds, Switch, Text, Word};
pub use nearest::nearest;
pub use others::Others;
pub use table::*;

use std::ffi::OsString;

/// What the names of all settings begin with.
pub const PREFIX: &str = "ISTHMUS_";
/// Variables of our own tests and scripts begin with this; nobody complains of them.
pub const TEST_PREFIX: &str = "ISTHMUS_TEST_";
/// Info keys that are ours begin with this.
pub const HINT_PREFIX: &str = "isthmus_";

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// `ISTHMUS_…`
    pub name: &'static str,
    /// Unit of the value, or its type, for people.
    pub unit: &'static str,
    /// Value when it is not set, for people.
    pub default: &'static str,
    /// Why that is the default.
    pub reason: &'static str,
    /// Who reads it.
    pub scope: &'static str,
    /// One line for people.
    pub help: &'static str,
    /// How it is read.
    pub kind: Kind,
}

/// How a setting is read.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// On or off.
    Flag(Flag),
    /// On, off or not said.
    Switch(Switch),
    /// A time.
    Seconds(Seconds),
    /// A number.
    Number(Number),
    /// A number, or none.
    Optional(Optional),
    /// One of some words.
    Word(Word),
    /// A range of TCP ports.
    Ports(Ports),
    /// Words separated by commas.
    List(List),
    /// A command, with a default.
    Command(Command),
    /// Any text.
    Text(Text),
    /// Name of a file.
    Path(PathName),
}

impl Setting {
    /// The value as a number, if it is one: a flag is 0 or 1, a time is in seconds.
    pub fn number(&self, from: impl FnOnce(&'static str) -> Option<OsString>) -> Option<u64> {
        match self.kind {
            Kind::Flag(kind) => Some(u64::from(kind.read(from))),
            Kind::Seconds(kind) => Some(kind.read(from).as_secs()),
            Kind::Number(kind) => Some(kind.read(from)),
            Kind::Optional(kind) => kind.read(from),
            _ => None,
        }
    }

    /// Whether a value can be used; an empty one counts as none.
    fn takes(&self, value: OsString) -> bool {
        match self.kind {
            Kind::Flag(_) | Kind::Switch(_) => kind::flag(&value).is_some(),
            Kind::Seconds(kind) => kind.parse(&value).is_some(),
            Kind::Number(kind) => kind.parse(&value).is_some(),
            Kind::Optional(kind) => kind.parse(&value).is_some(),
            Kind::Word(kind) => kind.parse(&value).is_some(),
            Kind::Ports(_) => kind::ports(&value).is_some(),
            Kind::List(_) | Kind::Command(_) | Kind::Text(_) => value.to_str().is_some(),
            Kind::Path(_) => true,
        }
    }

    /// What it takes, in words.
    fn values(&self) -> String {
        match self.kind {
            Kind::Flag(_) | Kind::Switch(_) => "1 (yes, true, on) or 0 (no, false, off)".to_owned(),
            Kind::Seconds(kind) => format!("seconds from {} to {}", kind.least, kind.most),
            Kind::Number(kind) => kind::bounds(self.unit, kind.least, kind.most),
            Kind::Optional(kind) => {
                let or = kind.none.map_or(String::new(), |word| format!("{word}, or "));
                or + &kind::bounds(self.unit, kind.least, kind.most)
            }
            Kind::Word(kind) => kind::choice(kind.words),
            Kind::Ports(_) => "a range of ports such as 5000-5100".to_owned(),
            Kind::List(_) | Kind::Command(_) | Kind::Text(_) | Kind::Path(_) => "a text in UTF-8".to_owned(),
        }
    }
}

/// The setting with this name.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Variables in a list, of which the last with a name counts.
pub fn among(list: &[(String, String)]) -> impl Fn(&'static str) -> Option<OsString> {
    move |name| {
        let found = list.iter().rev().find(|(n, _)| n == name);
        found.map(|(_, value)| OsString::from(value))
    }
}
