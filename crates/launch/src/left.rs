// SPDX-License-Identifier: Apache-2.0
//! What processes have left behind: outputs in the user's own directory at home, and files at a site that no pattern
//! fetches.

use isthmus_job::transfer::Pattern;
use isthmus_reach::plain;
use isthmus_stage::words;
use isthmus_wire::grid::{Made, MadeFile, Where};
use isthmus_wire::service::{Entry, EntryKind};
use isthmus_wire::word;
use isthmus_wire::word::counted;
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
    let names = left.iter().map(|e| &*e.path);
    waiting(left.len() as u64, names, bytes, at, minutes)
}

fn waiting<'a>(files: u64, names: impl Iterator<Item = &'a str>, bytes: u64, at: &str, minutes: u64) -> Option<String> {
    let those = match files {
        0 => return None,
        1 => "1 file that nothing fetches was".to_owned(),
        many => format!("{many} files that nothing fetches were"),
    };
    let (names, at) = (shown(files, names), plain(at));
    Some(format!(
        "{those} made there: {names} ({}); they stay for {minutes} min: isthmus cp {at} TARGET; --output PATTERN fetches such files",
        counted(bytes, "byte")
    ))
}

/// The first names of so many files, for people.
fn shown<'a>(files: u64, names: impl Iterator<Item = &'a str>) -> String {
    let mut shown: Vec<String> = names
        .take(NAMED)
        .map(|name| format!("'{}'", word::show(name).escape_debug()))
        .collect();
    if files > shown.len() as u64 {
        shown.push("...".to_owned());
    }
    shown.join(", ")
}

/// What the user should know of files that were made at `site`, in a directory that nobody named. Nothing where that is
/// the launcher's own directory, which both machines see.
pub(crate) fn made(made: &Made, site: &str) -> Option<String> {
    let directory = &made.directory;
    let at = format!("isthmus://{site}{directory}");
    let names = made.some.iter().map(|file| &*file.path);
    if made.place == Where::Own {
        return waiting(made.files, names, made.bytes, &at, u64::from(made.minutes));
    }
    let top = words::path(directory);
    if made.some.iter().take(Made::SOME).all(|file| is_seen(&top, file)) {
        return None;
    }
    let files = match made.files {
        1 => "1 file was".to_owned(),
        many => format!("{many} files were"),
    };
    let directory = word::show(directory).escape_debug().to_string();
    let place = match (made.place, &*made.node) {
        (Where::Home, "") => {
            format!(
                "the home directory '{directory}', because there is no place for a directory of the job (cache = in the sites file names one)"
            )
        }
        (Where::Home, node) => {
            format!(
                "the home directory '{directory}' of node {}, which does not see the directory of the job",
                plain(node)
            )
        }
        (_, _) => format!("its own directory '{directory}'"),
    };
    let fetch = match &*made.node {
        "" => format!(
            "isthmus cp {}/FILE TARGET; --output PATTERN fetches such files",
            plain(&at)
        ),
        _ => "--directory names one that all nodes see".to_owned(),
    };
    let (names, bytes) = (shown(made.files, names), counted(made.bytes, "byte"));
    Some(format!("{files} made in {place}: {names} ({bytes}): {fetch}"))
}

/// Whether a file of another machine is here too: the same one, of a file system that both have.
fn is_seen(top: &Path, file: &MadeFile) -> bool {
    use std::os::unix::fs::MetadataExt;
    // No name leaves the directory.
    if file.path.contains('/') || file.path == ".." {
        return false;
    }
    fs::symlink_metadata(top.join(words::path(&file.path)))
        .is_ok_and(|here| here.ino() == file.number && here.len() == file.size)
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

    #[test]
    fn what_was_made_in_a_directory_that_nobody_named_is_told() {
        use std::os::unix::fs::MetadataExt;
        let top = std::env::temp_dir().join(format!("isthmus-made-{}", std::process::id()));
        fs::create_dir_all(&top).unwrap();
        fs::write(top.join("result"), "12").unwrap();
        let number = fs::metadata(top.join("result")).unwrap().ino();
        let file = |path: &str, number| MadeFile {
            path: path.to_owned(),
            size: 2,
            number,
        };
        let theirs = |place, some: Vec<MadeFile>| Made {
            directory: words::text(&top),
            place,
            node: String::new(),
            minutes: 60,
            files: some.len() as u64,
            bytes: 2,
            some,
        };
        let at = format!("isthmus cp isthmus://lab{}", top.display());
        let text = made(&theirs(Where::Own, vec![file("result", 0)]), "lab").unwrap();
        assert!(
            text.contains("'result' (2 bytes); they stay for 60 min") && text.contains(&at),
            "{text}"
        );
        // Seen here too; another one of that name; one that is not here.
        assert_eq!(
            made(&theirs(Where::Launchers, vec![file("result", number)]), "lab"),
            None
        );
        for other in [
            file("result", number + 1),
            file("other\x1b", number),
            file("../x", number),
        ] {
            let text = made(&theirs(Where::Launchers, vec![other]), "lab").unwrap();
            assert!(
                text.starts_with("1 file was made in its own directory '") && text.contains(&at),
                "{text}"
            );
            assert!(!text.contains('\x1b'), "{text:?}");
        }
        let at_home = theirs(Where::Home, vec![file("other", 0)]);
        let text = made(&at_home, "lab").unwrap();
        assert!(
            text.starts_with("1 file was made in the home directory '") && text.contains(&at),
            "{text}"
        );
        let node = "n2\x1b".to_owned();
        let text = made(&Made { node, ..at_home }, "lab").unwrap();
        assert!(
            text.contains("of node n2") && text.contains("--directory names one"),
            "{text}"
        );
        assert!(!text.contains('\x1b') && !text.contains("isthmus cp"), "{text:?}");
        fs::remove_dir_all(&top).unwrap();
    }
}
