// SPDX-License-Identifier: Apache-2.0
//! What processes of other sites reach here through those of the job: its directories, and what the job names.
//!
//! The home directory, and what it lies in, is nobody's working directory in this sense: keys and passwords are there.
//! Whoever wants others to reach it names it.

use isthmus_stage::{words, workspace};
use isthmus_wire::grid::Start;
use std::path::{Path, PathBuf};

/// As processes are told. `directories`: where they work, first those whose program has no directory of its own.
pub(crate) fn of(start: &Start, directories: &[&Path]) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    paths(start, directories, home.as_deref().filter(|home| home.is_absolute()))
}

fn paths(start: &Start, directories: &[&Path], home: Option<&Path>) -> Vec<String> {
    let files = Some(words::path(&start.files)).filter(|files| !files.as_os_str().is_empty());
    // Inputs are links to files of the cache.
    let inputs = files.iter().flat_map(|files| workspace::links(files));
    let work = directories.iter().filter(|directory| !holds_home(directory, home));
    let work = work.map(|directory| directory.to_path_buf());
    let Some(&directory) = directories.first() else {
        return Vec::new();
    };
    let named = start.shared.iter().filter_map(|path| placed(path, directory, home));
    let mut paths: Vec<String> = work
        .chain(named)
        .chain(files.clone())
        .chain(inputs)
        .map(words::text)
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths
}

/// A path that is told; `None`: it is below a home directory that there is not.
fn placed(path: &str, directory: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(
            home?
                .join(words::path(rest.trim_start_matches('/')))
                .components()
                .collect(),
        ),
        _ => Some(directory.join(words::path(path))),
    }
}

fn holds_home(directory: &Path, home: Option<&Path>) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = real(directory);
    directory.parent().is_none() || home.is_some_and(|home| real(home).starts_with(&directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(files: &Path, shared: &[&str]) -> Start {
        Start {
            directory: String::new(),
            files: words::text(files),
            shared: shared.iter().map(|path| (*path).to_owned()).collect(),
            ..crate::template::tests::start(Vec::new())
        }
    }

    #[test]
    fn the_jobs_own_directories_are_reached_and_no_home_directory() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (home, work, files) = (place.join("me"), place.join("me/run"), place.join("files"));
        for directory in [&work, &files] {
            std::fs::create_dir_all(directory).unwrap();
        }
        let cached = place.join("cache/mesh");
        std::os::unix::fs::symlink(&cached, files.join("mesh")).unwrap();
        let alias = place.join("alias");
        std::os::unix::fs::symlink(&home, &alias).unwrap();
        let told = |directory: &Path, shared: &[&str]| paths(&start(&files, shared), &[directory], Some(&home));
        let text = |path: &Path| words::text(path);
        let own = [text(&files), text(&cached)];
        assert_eq!(told(&work, &[]), [&[text(&work)], &own[..]].concat());
        for holds in [&home, &alias, &place, Path::new("/")] {
            assert_eq!(told(holds, &[]), own, "{}", holds.display());
        }
        let named = ["/scratch", "../data", "~", "~/x", "~other", "/scratch"];
        let expected = [
            text(&work),
            "/scratch".to_owned(),
            text(&work.join("../data")),
            text(&home),
            text(&home.join("x")),
            text(&work.join("~other")),
        ];
        assert_eq!(told(&work, &named), [&expected[..], &own[..]].concat());
        assert_eq!(
            paths(&start(Path::new(""), &["~/x"]), &[&work], None),
            [text(&work)],
            "there is no home directory"
        );
    }
}
