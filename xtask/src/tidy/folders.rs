// SPDX-License-Identifier: Apache-2.0
//! Folders inside a room whose arrows go both ways: such folders are one piece that lies in several places.
//!
//! What lies directly in a folder is looked at together: files, and folders as wholes (`x.rs` and `x/` are one). An
//! arrow between two of them is one between files that they contain ([`super::circles`] has those). A folder is counted
//! where following the arrows leads back to it. So a folder can be read without those that stand on it.

use std::collections::{BTreeMap, BTreeSet};

use super::circles::{self, Path};
use super::source::Source;

/// Number of folders in circles, by room.
pub(super) fn by_room(sources: &[Source]) -> BTreeMap<String, usize> {
    let rooms = circles::rooms(sources);
    let counted = rooms
        .iter()
        .map(|(room, files)| ((*room).to_owned(), both_ways(files).len()));
    counted.filter(|(_, number)| *number > 0).collect()
}

/// The arrows that close the circles of a room's folders, as lines for people.
pub(super) fn of_room(sources: &[Source], room: &str) -> Vec<String> {
    let files = circles::rooms(sources).remove(room).unwrap_or_default();
    let levels = levels(&files);
    let closing = levels.values().flat_map(|level| {
        let closes = move |from: &Path, to: &Path| level.folders.contains(from) || level.folders.contains(to);
        let arrows = level
            .arrows
            .iter()
            .flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
        arrows.filter(move |(from, to)| closes(from, to) && level.reaches(to, from))
    });
    let folders: BTreeSet<&Path> = levels.values().flat_map(|level| &level.folders).collect();
    let name = |path: &Path| path.join("/") + if folders.contains(path) { "/" } else { "" };
    let mut lines: Vec<String> = closing
        .map(|(from, to)| format!("{} -> {}", name(from), name(to)))
        .collect();
    lines.dedup();
    lines
}

/// What lies directly in one folder.
#[derive(Default)]
struct Level {
    folders: BTreeSet<Path>,
    arrows: BTreeMap<Path, BTreeSet<Path>>,
}

impl Level {
    fn reaches(&self, from: &Path, to: &Path) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                open.extend(self.arrows.get(at).into_iter().flatten());
            }
        }
        false
    }
}

/// Folders from which arrows lead back to them.
fn both_ways(files: &BTreeMap<Path, &Source>) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    for level in levels(files).values() {
        let leads_back = |folder: &&Path| {
            let next = level.arrows.get(*folder).into_iter().flatten();
            next.into_iter().any(|to| level.reaches(to, folder))
        };
        found.extend(level.folders.iter().filter(leads_back).cloned());
    }
    found
}

/// Every folder of a room by its path.
fn levels(files: &BTreeMap<Path, &Source>) -> BTreeMap<Path, Level> {
    let paths: Vec<&Path> = files.keys().collect();
    let mut levels: BTreeMap<Path, Level> = BTreeMap::new();
    for path in &paths {
        for length in 1..path.len() {
            let level = levels.entry(path[..length - 1].to_vec()).or_default();
            level.folders.insert(path[..length].to_vec());
        }
    }
    let arrows = circles::arrows(files);
    let all = paths
        .iter()
        .zip(&arrows)
        .flat_map(|(from, to)| to.iter().map(|to| (*from, paths[*to])));
    for (from, to) in all {
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        // Between a folder's face and what is in it there is no arrow of folders.
        if common < from.len() && common < to.len() {
            let level = levels.entry(from[..common].to_vec()).or_default();
            let arrows = level.arrows.entry(from[..=common].to_vec()).or_default();
            arrows.insert(to[..=common].to_vec());
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(files: &[(&str, &str)]) -> usize {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::of(path, text)).collect();
        by_room(&sources).into_values().sum()
    }

    #[test]
    fn folders_that_need_each_other_are_found_though_no_files_do() {
        let a = ("crates/x/src/a/one.rs", "use crate::b::two::T;");
        let b = ("crates/x/src/b/three.rs", "use crate::a::four::F;");
        let rest = [("crates/x/src/b/two.rs", ""), ("crates/x/src/a/four.rs", "")];
        assert_eq!(count(&[a, b, rest[0], rest[1]]), 2);
        assert_eq!(count(&[a, rest[0], rest[1]]), 0);
        assert_eq!(circles::by_room(&[Source::of(a.0, a.1), Source::of(b.0, b.1)]).len(), 0);
    }

    #[test]
    fn a_folder_and_a_file_beside_it_need_each_other() {
        let a = ("crates/x/src/a/one.rs", "use crate::b::T;");
        let b = ("crates/x/src/b.rs", "use crate::a::four::F;");
        assert_eq!(count(&[a, b, ("crates/x/src/a/four.rs", "")]), 1);
    }

    #[test]
    fn a_folder_inside_another_is_looked_at_by_itself() {
        let a = ("crates/x/src/m/a/one.rs", "use super::super::b::two::T;");
        let b = ("crates/x/src/m/b/two.rs", "use crate::m::a::one::O;");
        assert_eq!(count(&[a, b]), 2);
        let face = ("crates/x/src/m/mod.rs", "mod a;\nuse a::one::O;\nstruct P;");
        assert_eq!(count(&[face, ("crates/x/src/m/a/one.rs", "use crate::m::P;")]), 0);
    }
}
