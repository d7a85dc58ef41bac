// SPDX-License-Identifier: Apache-2.0
//! What can go wrong while measuring.

use std::fmt;
use std::io;

/// Why something could not be measured.
#[derive(Debug)]
pub(crate) enum Error {
    /// The user asked for something that there is not.
    Unknown {
        kind: &'static str,
        name: String,
        known: String,
    },
    /// The operating system refused.
    System { doing: String, source: io::Error },
    /// A program of a peer failed or took too long.
    Run { what: String, said: String },
    /// The testbed.
    Testbed(isthmus_testbed::Error),
}

impl Error {
    /// Makes an [`Error::System`]; meant for `map_err`.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { kind, name, known } => write!(f, "no {kind} named \"{name}\"\n  hint: there are {known}"),
            Self::System { doing, source } => write!(f, "failed to {doing}: {source}"),
            Self::Run { what, said } => write!(f, "{what}: {}", said.trim_end()),
            Self::Testbed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<isthmus_testbed::Error> for Error {
    fn from(error: isthmus_testbed::Error) -> Self {
        Self::Testbed(error)
    }
}
