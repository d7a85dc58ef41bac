// SPDX-License-Identifier: Apache-2.0
//! What can go wrong, and who is to blame.

use std::fmt;
use std::io;

/// Why a testbed could not be built or used.
#[derive(Debug)]
pub enum Error {
    /// The description of the topology is wrong: where, what, and how to say it right.
    Topology {
        /// What is wrong, with its place in the user's text.
        what: String,
        /// What to write instead.
        hint: String,
    },
    /// The caller named something that this testbed does not have.
    Unknown {
        /// `host`, `site` or `testbed`.
        kind: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// This process may not make namespaces or network devices.
    NotPermitted {
        /// What was refused.
        doing: String,
        /// What would permit it.
        hint: String,
    },
    /// The operating system refused.
    System {
        /// What was being done.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A tool that the testbed needs is missing or failed.
    Tool {
        /// Its name.
        tool: String,
        /// What it was to do.
        doing: String,
        /// What it said.
        said: String,
    },
}

/// The description of the topology is wrong.
pub(crate) fn wrong(what: String, hint: &str) -> Error {
    Error::Topology {
        what,
        hint: hint.to_owned(),
    }
}

impl Error {
    /// Makes a [`Error::System`]; meant for `map_err`.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }

    /// Like [`Error::system`] for the results of system calls.
    pub(crate) fn call(doing: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        let doing = doing.into();
        move |errno| Self::System {
            doing,
            source: errno.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topology { what, hint } => write!(f, "topology: {what}\n  hint: {hint}"),
            Self::Unknown { kind, name, known } => write!(f, "no {kind} named \"{name}\"\n  hint: there are {known}"),
            Self::NotPermitted { doing, hint } => write!(f, "not permitted: {doing}\n  hint: {hint}"),
            Self::System { doing, source } => write!(f, "failed to {doing}: {source}"),
            Self::Tool { tool, doing, said } => {
                write!(f, "failed to {doing}: {tool}: {}", said.trim_end())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
