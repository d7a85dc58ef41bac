// SPDX-License-Identifier: Apache-2.0
//! Where the processes of a subjob work when the job does not say: in the launcher's directory if the machine has it,
//! otherwise in a directory of the subjob. What they have made there is told when they have ended.

use crate::program::Refusal;
use crate::{place_for_files, template};
use isthmus_stage::words;
use isthmus_stage::workspace::Workspace;
use isthmus_wire::grid::{Made, MadeFile, Start};
use rustix::fs::Mode;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Most entries of the launcher's directory that are looked at.
const MOST: usize = 10_000;

/// A working directory that nobody named.
#[derive(Debug)]
pub(crate) struct Place {
    directory: PathBuf,
    /// It was made for the subjob.
    own: bool,
    since: SystemTime,
    lease: Duration,
}

/// Decides where the processes work. With a directory of their own, which stays as long as what comes with it.
pub(crate) fn choose(start: &mut Start) -> Option<(Place, Option<Workspace>)> {
    if !start.directory_optional || start.directory.is_empty() {
        return None;
    }
    let place = |directory: PathBuf, own| Place {
        directory,
        own,
        since: SystemTime::now(),
        lease: isthmus_settings::LEASE.read(|name| template::variable(start, name)),
    };
    let wanted = words::path(&start.directory);
    // To work in a directory one must be able to enter it. The dot makes it one, and has it mounted.
    if rustix::fs::access(wanted.join("."), rustix::fs::Access::EXEC_OK).is_ok() {
        return Some((place(wanted, false), None));
    }
    // Where nothing can be kept the home directory serves.
    let cache = place_for_files().ok()?;
    let mut found = place(PathBuf::new(), true);
    let workspace = Workspace::create(&cache, found.lease).ok()?;
    found.directory = workspace.path();
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    let home = home.unwrap_or_else(|| PathBuf::from("/"));
    // What the job reads is not in a directory that it does not know; what it writes is with the rest of its files.
    if !start.stdin.is_empty() {
        start.stdin = words::text(home.join(words::path(&start.stdin)));
    }
    let names = [&mut start.stdout, &mut start.stderr];
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        *name = words::text(found.directory.join(words::path(name)));
    }
    if start.program.contains('/') {
        start.program = words::text(home.join(words::path(&start.program)));
    }
    start.directory = words::text(&found.directory);
    Some((found, Some(workspace)))
}

/// Takes the umask that the job names for its processes.
pub(crate) fn set_umask(start: &Start) -> Result<(), Refusal> {
    let Some(text) = isthmus_settings::UMASK.read(|name| template::variable(start, name)) else {
        return Ok(());
    };
    let mask = u32::from_str_radix(&text, 8).ok().filter(|mask| *mask <= 0o077);
    let mask = mask.ok_or_else(|| {
        let reason = format!("ISTHMUS_UMASK is '{}'", text.escape_debug());
        Refusal::new(reason, "three octal digits from 000 to 077, for example 027")
    })?;
    rustix::process::umask(Mode::from_raw_mode(mask));
    Ok(())
}

impl Place {
    /// What has been made here.
    pub(crate) fn look(&self) -> Option<Made> {
        let (mut files, mut bytes, mut some) = (0, 0, Vec::new());
        let mut take = |path: String, metadata: &fs::Metadata| {
            files += 1;
            bytes += metadata.len();
            if some.len() < Made::SOME {
                some.push(MadeFile {
                    path,
                    size: metadata.len(),
                    number: metadata.ino(),
                });
            }
        };
        if self.own {
            let entries = isthmus_stage::local::walk(&self.directory, false).ok()?;
            for entry in entries {
                let Ok(metadata) = fs::symlink_metadata(self.directory.join(words::path(&entry.path))) else {
                    continue;
                };
                if metadata.is_file() {
                    take(entry.path, &metadata);
                }
            }
        } else {
            for (name, metadata) in self.changed() {
                take(name, &metadata);
            }
        }
        (files > 0).then(|| Made {
            directory: words::text(&self.directory),
            own: self.own,
            minutes: u32::try_from(self.lease.as_secs().div_ceil(60)).unwrap_or(u32::MAX),
            files,
            bytes,
            some,
        })
    }

    /// Whether the directory was made for the subjob.
    pub(crate) fn is_own(&self) -> bool {
        self.own
    }

    /// Files of ours in the launcher's directory that are new, or have changed.
    fn changed(&self) -> Vec<(String, fs::Metadata)> {
        let user = rustix::process::getuid().as_raw();
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten().take(MOST);
        let mut found: Vec<_> = entries
            .filter_map(|entry| Some((words::text(entry.file_name()), entry.metadata().ok()?)))
            .filter(|(name, metadata)| {
                let changed = metadata.modified().is_ok_and(|time| time >= self.since);
                changed && metadata.is_file() && metadata.uid() == user && !name.starts_with('.')
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_in_the_launchers_directory_is_found() {
        let top = std::env::temp_dir().join(format!("isthmus-place-{}", std::process::id()));
        fs::create_dir_all(top.join("directory")).unwrap();
        fs::write(top.join("old"), "1").unwrap();
        let since = fs::metadata(top.join("old")).unwrap().modified().unwrap() + Duration::from_nanos(1);
        let place = Place {
            directory: top.clone(),
            own: false,
            since,
            lease: Duration::from_secs(61),
        };
        let touch = |name: &str, text: &str| {
            let file = fs::File::create(top.join(name)).unwrap();
            std::io::Write::write_all(&mut &file, text.as_bytes()).unwrap();
            file.set_modified(since + Duration::from_secs(1)).unwrap();
        };
        assert_eq!(place.look(), None);
        touch("new", "12");
        touch(".hidden", "12");
        let made = place.look().unwrap();
        let names: Vec<&str> = made.some.iter().map(|f| &*f.path).collect();
        assert_eq!(
            (names, made.files, made.bytes, made.minutes, made.own),
            (vec!["new"], 1, 2, 2, false)
        );
        let own = Place { own: true, ..place };
        assert_eq!(own.look().unwrap().files, 3);
        fs::remove_dir_all(&top).unwrap();
    }
}
