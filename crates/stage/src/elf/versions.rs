// SPDX-License-Identifier: Apache-2.0
//! Versions of symbols: which a file needs of its libraries, which a library has, and what a machine's libraries are
//! too old for.

use super::{Elf, MAX_LIBRARIES, needs, resolve, usual_directories};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

/// Most versions of one file that are looked at.
const MAX_ENTRIES: usize = 4096;

impl<F: Read + Seek> Elf<'_, F> {
    /// From the table of version needs: entries of a library, each with a chain of versions. Weak ones may be missing.
    pub(super) fn wanted(&self, table: &[u8], text: &impl Fn(u64) -> Option<String>) -> Vec<(String, String)> {
        const WEAK: u64 = 2;
        let mut found = Vec::new();
        let mut left = MAX_ENTRIES;
        for library in self.chain(table, 0, 12, 16).take(MAX_LIBRARIES) {
            let (Some(name), Some(first)) = (
                self.field(table, library + 4, 4).and_then(text),
                self.field(table, library + 8, 4),
            ) else {
                continue;
            };
            let Some(first) = usize::try_from(first)
                .ok()
                .and_then(|offset| library.checked_add(offset))
            else {
                continue;
            };
            for version in self.chain(table, first, 12, 16).take(left) {
                left -= 1;
                let weak = self.field(table, version + 4, 2).is_none_or(|flags| flags & WEAK != 0);
                let label = self.field(table, version + 8, 4).and_then(text);
                found.extend(label.filter(|_| !weak).map(|label| (name.clone(), label)));
            }
        }
        found
    }

    /// From the table of version definitions.
    pub(super) fn offered(&self, table: &[u8], text: &impl Fn(u64) -> Option<String>) -> Vec<String> {
        let name = |entry: usize| {
            let first = usize::try_from(self.field(table, entry + 12, 4)?).ok()?;
            self.field(table, entry.checked_add(first)?, 4).and_then(text)
        };
        let entries = self.chain(table, 0, 16, 20).take(MAX_ENTRIES);
        entries.filter_map(name).collect()
    }

    /// Places of entries that each say in the field at `next` how far away the next one is.
    fn chain<'t>(
        &'t self,
        table: &'t [u8],
        first: usize,
        next: usize,
        size: usize,
    ) -> impl Iterator<Item = usize> + 't {
        let fits = move |at: usize| at.checked_add(size).is_some_and(|end| end <= table.len()).then_some(at);
        std::iter::successors(fits(first), move |at| {
            let step = usize::try_from(self.field(table, at + next, 4)?)
                .ok()
                .filter(|step| *step > 0)?;
            fits(at.checked_add(step)?)
        })
    }

    fn field(&self, table: &[u8], at: usize, bytes: usize) -> Option<u64> {
        table.get(at..at.checked_add(bytes)?).map(|bytes| self.number(bytes))
    }
}

/// A file that wants a newer library than this machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newer {
    /// The version that is missing.
    pub version: String,
    /// The library that should have it.
    pub library: String,
    /// The newest version of that kind that it has.
    pub newest: String,
}

/// What of a program's libraries is too old here for it. `search`: where libraries are looked for before the usual
/// places.
///
/// A library that is not found anywhere is no reason: the dynamic linker may know more places, and says well what is
/// missing. Nor is one that is fit in any place.
pub fn newer(program: &Path, search: &[PathBuf]) -> io::Result<Option<Newer>> {
    let Some(wants) = needs(program)? else { return Ok(None) };
    let origin = program.parent().unwrap_or_else(|| Path::new("/"));
    let own = wants.search.iter().map(|path| resolve(path, origin));
    let places: Vec<PathBuf> = own.chain(search.iter().cloned()).chain(usual_directories()).collect();
    let mut names: Vec<&String> = wants.versions.iter().map(|(library, _)| library).collect();
    names.dedup();
    for library in names {
        let found = places
            .iter()
            .filter_map(|place| needs(&place.join(library)).ok().flatten());
        let fit: Vec<_> = found
            .filter(|file| file.kind == wants.kind && !file.offers.is_empty())
            .collect();
        let wanted = wants.versions.iter().filter(|(of, _)| of == library);
        let missing = wanted
            .map(|(_, v)| v)
            .filter(|v| !fit.iter().any(|file| file.offers.contains(v)));
        let (Some(version), Some(file)) = (missing.max_by_key(|v| numbers(v)), fit.first()) else {
            continue;
        };
        let alike = file
            .offers
            .iter()
            .filter(|v| family(v) == family(version) && !numbers(v).is_empty());
        return Ok(Some(Newer {
            version: version.clone(),
            library: library.clone(),
            newest: alike.max_by_key(|v| numbers(v)).cloned().unwrap_or_default(),
        }));
    }
    Ok(None)
}

/// The oldest glibc that a program runs with, as its numbers; empty: it needs none.
pub fn oldest_glibc(program: &Path) -> io::Result<Vec<u32>> {
    let wanted = needs(program)?.map(|wants| wants.versions).unwrap_or_default();
    let ours = wanted
        .iter()
        .map(|(_, version)| version)
        .filter(|v| family(v) == "GLIBC");
    Ok(ours.map(|version| numbers(version)).max().unwrap_or_default())
}

/// `GLIBC` of `GLIBC_2.34`.
fn family(version: &str) -> &str {
    version.rsplit_once('_').map_or("", |(family, _)| family)
}

/// 2 and 34 of `GLIBC_2.34`; none of what is no number, as `GLIBC_PRIVATE`.
fn numbers(version: &str) -> Vec<u32> {
    let numbers = version.rsplit_once('_').map_or("", |(_, numbers)| numbers);
    numbers
        .split('.')
        .map(|n| n.parse().ok())
        .collect::<Option<_>>()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_new_enough_for_what_was_built_here() {
        let own = std::env::current_exe().unwrap();
        let wants = needs(&own).unwrap().unwrap();
        assert_eq!(oldest_glibc(&own).unwrap().first(), Some(&2));
        assert!(
            wants
                .versions
                .iter()
                .any(|(l, v)| l == "libc.so.6" && v.starts_with("GLIBC_2.")),
            "{wants:?}"
        );
        assert_eq!(newer(&own, &[]).unwrap(), None);
    }

    #[test]
    fn a_version_that_no_library_has_is_named() {
        let own = std::env::current_exe().unwrap();
        let wants = needs(&own).unwrap().unwrap();
        let newest = wants
            .versions
            .iter()
            .filter(|(l, _)| l == "libc.so.6")
            .map(|(_, v)| v)
            .max_by_key(|v| numbers(v))
            .unwrap();
        // The same length, so that nothing else in the file moves.
        let (head, tail) = newest.split_at(newest.len() - 1);
        let made_up = format!("{}9{}", &head[..head.len() - 1], tail);
        let bytes = std::fs::read(&own).unwrap();
        let (from, to) = (format!("\0{newest}\0"), format!("\0{made_up}\0"));
        let mut changed = bytes.clone();
        for at in 0..bytes.len() - from.len() {
            if bytes[at..].starts_with(from.as_bytes()) {
                changed[at..at + from.len()].copy_from_slice(to.as_bytes());
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("program");
        std::fs::write(&file, changed).unwrap();
        let found = newer(&file, &[]).unwrap().unwrap();
        assert_eq!((found.version, found.library.as_str()), (made_up, "libc.so.6"));
        assert!(numbers(&found.newest) >= numbers(newest), "{}", found.newest);
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert!(numbers("GLIBC_2.4") < numbers("GLIBC_2.34"));
        assert!(numbers("GLIBC_PRIVATE").is_empty());
        assert_eq!(family("GLIBCXX_3.4.30"), "GLIBCXX");
    }
}
