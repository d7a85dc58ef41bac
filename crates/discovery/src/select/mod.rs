// SPDX-License-Identifier: Apache-2.0
//! The language of `--select`, and how processes are dealt out to what it selects.
//!
//! ```text
//! or          = and { "||" and }
//! and         = term { "&&" term }
//! term        = "!" term | "(" or ")" | comparison
//! comparison  = value ( "<" | "<=" | ">" | ">=" | "==" | "!=" | "~" ) value          ~: contains
//! value       = FIELD | rtt(SITE) | rate(SITE) | NUMBER [UNIT] | 'TEXT' | WORD
//! ```
//! A comparison with something that is not known of a site is false, and so is its opposite: a site is not taken on
//! hope.

mod condition;
mod lexer;
mod parser;
mod place;

pub use place::{Candidate, Placement, place};

use condition::Node;
pub use condition::{FIELDS, Kind, MAX_LENGTH, View};
use isthmus_job::JobError;
use std::fmt;

/// A condition that a site meets or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection(Node);

impl Selection {
    /// Reads a selection.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        parser::parse(text).map(Self)
    }

    /// Whether a site meets it.
    pub fn matches(&self, site: &impl View) -> bool {
        self.0.holds(site) == Some(true)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
