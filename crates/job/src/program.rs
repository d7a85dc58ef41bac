// SPDX-License-Identifier: Apache-2.0
//! What processes run: a program, and the section of a subjob that runs it.

use std::collections::{BTreeMap, BTreeSet};

/// Most programs of one subjob.
pub const MAX_SECTIONS: usize = isthmus_wire::place::MAX_PROGRAMS;

/// One of the programs of a subjob. Its ranks follow those of the section before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Index within the subjob of its first process; that of the first section is 0.
    pub first: u32,
    /// Number of the program in a job of several programs (MPI_APPNUM).
    pub appnum: u32,
    /// What to run.
    pub program: Program,
    /// Arguments after the program's name.
    pub arguments: Vec<String>,
    /// Variables beside those of the subjob, which they replace.
    pub environment: Vec<(String, String)>,
    /// Working directory, where the subjob's is not its own. A relative one is below that.
    pub directory: Option<String>,
}

impl Section {
    /// The only one of a subjob.
    pub fn only(program: Program, arguments: Vec<String>) -> Self {
        Self {
            first: 0,
            appnum: 0,
            program,
            arguments,
            environment: Vec::new(),
            directory: None,
        }
    }
}

/// What to run, possibly one file per architecture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// For every architecture without an entry of its own.
    pub any: Option<String>,
    /// By machine hardware name (`x86_64`, `aarch64`).
    pub by_architecture: BTreeMap<String, String>,
}

impl Program {
    /// One file for all architectures.
    pub fn one(path: impl Into<String>) -> Self {
        Self {
            any: Some(path.into()),
            by_architecture: BTreeMap::new(),
        }
    }

    /// Its name without directories, for people.
    pub fn name(&self) -> &str {
        let path = self.paths().next().map_or("", String::as_str);
        path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// All its files.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.any.iter().chain(self.by_architecture.values())
    }

    /// The same, to be changed.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.any.iter_mut().chain(self.by_architecture.values_mut())
    }

    /// The file for an architecture.
    pub fn for_architecture(&self, architecture: &str) -> Option<&str> {
        self.by_architecture
            .get(architecture)
            .or(self.any.as_ref())
            .map(String::as_str)
    }
}

/// Of several variables of one name the last counts.
pub(crate) fn keep_last(environment: &mut Vec<(String, String)>) {
    let mut seen = BTreeSet::new();
    let all = std::mem::take(environment);
    *environment = all
        .into_iter()
        .rev()
        .filter(|(name, _)| seen.insert(name.clone()))
        .collect();
    environment.reverse();
}
