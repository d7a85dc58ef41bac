// SPDX-License-Identifier: Apache-2.0
//! What processes have left behind: outputs in the user's own directory at home, and files at a site that no pattern
//! fetches.

use isthmus_job::transfer::Pattern;
use isthmus_stage::words;
use isthmus_wire::service::{Entry, EntryKind};
use isthmus_wire::word;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Most entries of the user's directory that are looked at for one pattern.
const MOST: usize = 1 << 20;
/// Deepest directory that is looked into.
const DEEPEST: usize = 64;
/// Files that are named when some are left at a site.
const NAMED: usize = 3;

/// Files in the user's own directory that patterns mean, as they were when the job began.
#[derive(Debug)]
pub(crate) struct Before {
    directory: PathBuf,
    files: BTreeMap<String, (u64, Option<SystemTime>)>,
}

impl Before {
    /// Takes them down.
    pub(crate) fn look(directory: &Path, patterns: &[Pattern]) -> io::Result<Self> {
        Ok(Self {
            directory: directory.to_owned(),
            files: find(directory, patterns)?,
        })
    }

    /// Where they are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Relative paths of those that are new since then, or have changed.
    pub(crate) fn changed(&self, patterns: &[Pattern]) -> io::Result<Vec<String>> {
        let now = find(&self.directory, patterns)?;
        let changed = now.into_iter().filter(|(path, is)| self.files.get(path) != Some(is));
        Ok(changed.map(|(path, _)| path).collect())
    }
}

fn find(directory: &Path, patterns: &[Pattern]) -> io::Result<BTreeMap<String, (u64, Option<SystemTime>)>> {
    let mut found = BTreeMap::new();
    for pattern in patterns {
        let (below, depth) = reach(pattern.text());
        let mut seen = 0;
        descend(directory, &below, depth, &mut seen, &mut |path, metadata| {
            if pattern.matches(path) {
                found.insert(path.to_owned(), (metadata.len(), metadata.modified().ok()));
            }
        })?;
    }
    Ok(found)
}

/// The directory below which everything is that a pattern can mean, and how many directories deep that goes.
fn reach(pattern: &str) -> (String, usize) {
    let parts: Vec<&str> = pattern.split('/').collect();
    let directories = &parts[..parts.len() - 1];
    let plain = directories.iter().take_while(|part| !part.contains(['*', '?'])).count();
    let depth = if parts.contains(&"**") {
        DEEPEST
    } else {
        directories.len() - plain
    };
    (parts[..plain].join("/"), depth)
}

fn descend(
    top: &Path,
    below: &str,
    depth: usize,
    seen: &mut usize,
    take: &mut dyn FnMut(&str, &fs::Metadata),
) -> io::Result<()> {
    // What may not be looked into holds nothing that could be fetched.
    for entry in fs::read_dir(top.join(words::path(below)))
        .into_iter()
        .flatten()
        .flatten()
    {
        *seen += 1;
        if *seen > MOST {
            let text = format!("'{}' has more than {MOST} files", top.display());
            return Err(io::Error::other(text));
        }
        let Ok(metadata) = entry.metadata() else { continue };
        let name = words::text(entry.file_name());
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        if metadata.is_file() {
            take(&path, &metadata);
        } else if metadata.is_dir() && depth > 0 {
            descend(top, &path, depth - 1, seen, take)?;
        }
    }
    Ok(())
}

/// What the user should know of files that were made in the directory of a subjob and that nothing fetches: how many
/// they are, some of their names, how long they stay, and what brings them home. `at` is what `isthmus cp` calls that
/// directory.
pub(crate) fn told(entries: &[Entry], fetched: impl Fn(&str) -> bool, at: &str, minutes: u64) -> Option<String> {
    // Inputs are links.
    let made = entries.iter().filter(|e| e.kind == EntryKind::File);
    let left: Vec<&Entry> = made.filter(|e| !fetched(&e.path)).collect();
    let bytes: u64 = left.iter().map(|e| e.size).sum();
    let names = left.iter().take(NAMED);
    let mut names: Vec<String> = names
        .map(|e| format!("'{}'", word::show(&e.path).escape_debug()))
        .collect();
    if left.len() > NAMED {
        names.push("...".to_owned());
    }
    let files = match left.len() {
        0 => return None,
        1 => "1 file that nothing fetches was".to_owned(),
        many => format!("{many} files that nothing fetches were"),
    };
    Some(format!(
        "{files} made there: {} ({bytes} bytes); they stay for {minutes} min: isthmus cp {at} TARGET; --output PATTERN fetches such files",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_in_the_own_directory_is_found() {
        let top = std::env::temp_dir().join(format!("isthmus-left-{}", std::process::id()));
        fs::create_dir_all(top.join("a/b")).unwrap();
        for file in ["old.out", "changed.out", "a/b/deep.out"] {
            fs::write(top.join(file), "1").unwrap();
        }
        let patterns = |texts: &[&str]| texts.iter().map(|t| Pattern::parse(t).unwrap()).collect::<Vec<_>>();
        let patterns = patterns(&["*.out", "a/**", "none/*"]);
        let before = Before::look(&top, &patterns).unwrap();
        assert_eq!(before.changed(&patterns).unwrap(), Vec::<String>::new());
        fs::write(top.join("changed.out"), "12").unwrap();
        fs::write(top.join("new.out"), "").unwrap();
        fs::write(top.join("other"), "").unwrap();
        fs::write(top.join("a/b/more"), "").unwrap();
        assert_eq!(
            before.changed(&patterns).unwrap(),
            ["a/b/more", "changed.out", "new.out"]
        );
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn only_directories_that_a_pattern_can_mean_are_looked_into() {
        assert_eq!(reach("*.out"), (String::new(), 0));
        assert_eq!(reach("a/b/c"), ("a/b".to_owned(), 0));
        assert_eq!(reach("a/*/c"), ("a".to_owned(), 1));
        assert_eq!(reach("frames/**"), ("frames".to_owned(), DEEPEST));
    }

    #[test]
    fn files_that_nobody_fetches_are_counted_and_named() {
        let entry = |path: &str, kind| Entry {
            path: path.to_owned(),
            kind,
            size: 10,
            executable: false,
        };
        let entries = [
            entry("mesh", EntryKind::Other),
            entry("d", EntryKind::Directory),
            entry("d/x\x1b", EntryKind::File),
            entry("log", EntryKind::File),
        ];
        let text = told(&entries, |path| path == "log", "isthmus://b1/tmp/files", 60).unwrap();
        assert!(
            text.starts_with("1 file that nothing fetches was made there: 'd/x\\u{1b}' (10 bytes)"),
            "{text}"
        );
        assert!(
            text.contains("for 60 min: isthmus cp isthmus://b1/tmp/files TARGET"),
            "{text}"
        );
        assert_eq!(told(&entries[..2], |_| false, "", 1), None);
    }
}
