// SPDX-License-Identifier: Apache-2.0
//! What is in a directory and has no content to copy.

use crate::failure::Failure;
use std::fmt;
use std::path::PathBuf;

/// Names that are told.
const SHOWN: usize = 3;

/// Pipes, sockets, devices and links to nothing that a copy left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uncopied {
    count: u64,
    first: Vec<String>,
}

/// What was brought home.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Where it is.
    pub path: PathBuf,
    /// What of it has no content to bring.
    pub uncopied: Uncopied,
}

impl Uncopied {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds what has this name.
    pub fn add(&mut self, name: &str) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(name.to_owned());
        }
    }

    /// Adds what another copy left out, in this directory; empty: in the one at hand.
    pub fn add_all(&mut self, directory: &str, others: &Self) {
        for name in &others.first {
            match directory {
                "" => self.add(name),
                directory => self.add(&format!("{directory}/{name}")),
            }
        }
        self.count += others.count - others.first.len() as u64;
    }

    /// What the user should know.
    pub fn note(&self) -> Option<String> {
        (self.count > 0).then(|| self.to_string())
    }
}

/// The user has named one of these by itself.
pub fn without_content(what: &str) -> Failure {
    Failure::new(
        format!("{what} is a pipe, a socket or a device"),
        "give a file or a directory",
    )
}

impl fmt::Display for Uncopied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.first.iter().map(|name| format!("'{name}'")).collect();
        let more = match self.count - self.first.len() as u64 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (was, what) = match self.count {
            1 => ("was", "a pipe, a socket, a device or a link to nothing"),
            _ => ("were", "pipes, sockets, devices or links to nothing"),
        };
        write!(f, "{}{more} {was} not copied: {what}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::Uncopied;

    #[test]
    fn what_is_left_out_is_counted_and_named() {
        let mut left = Uncopied::default();
        assert_eq!(left.note(), None);
        left.add("d/pipe");
        let one = "'d/pipe' was not copied: a pipe, a socket, a device or a link to nothing";
        assert_eq!(left.note().as_deref(), Some(one));
        for name in ["b", "c", "e", "f"] {
            left.add(name);
        }
        let all = "'d/pipe', 'b', 'c' and 2 more were not copied: pipes, sockets, devices or links to nothing";
        assert_eq!(left.note().as_deref(), Some(all));
        assert_eq!(left.count(), 5);
        let mut all = Uncopied::default();
        all.add("a");
        all.add_all("in", &left);
        let said = "'a', 'in/d/pipe', 'in/b' and 3 more were not copied: pipes, sockets, devices or links to nothing";
        assert_eq!((all.count(), all.note().as_deref()), (6, Some(said)));
    }
}
