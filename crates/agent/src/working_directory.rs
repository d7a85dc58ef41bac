// SPDX-License-Identifier: Apache-2.0
//! Where the processes of a subjob work when the job does not say: in the launcher's directory if the machine has it,
//! otherwise in a directory of the subjob. What they have made there is told when they have ended.

use crate::program::{Refusal, home};
use crate::{place_for_files, template};
use isthmus_stage::words;
use isthmus_stage::workspace::Workspace;
use isthmus_wire::grid::{Made, MadeFile, Start, Where};
use rustix::fs::Mode;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Most entries of the launcher's directory that are looked at.
const MOST: usize = 10_000;

/// A working directory that nobody named.
#[derive(Debug)]
pub(crate) struct WorkingDirectory {
    directory: PathBuf,
    /// Whose it is.
    whose: Where,
    /// This machine is a node of an allocation.
    on_node: bool,
    since: SystemTime,
    lease: Duration,
}

/// Decides where the processes work. With a directory of their own, which stays as long as what comes with it.
pub(crate) fn choose(
    start: &mut Start,
    on_node: bool,
) -> Result<Option<(WorkingDirectory, Option<Workspace>)>, Refusal> {
    let below = std::mem::take(&mut start.below);
    if start.directory.is_empty() {
        return Ok(None);
    }
    let base = words::path(&start.directory);
    // Nothing would put a slash behind it.
    let named = match &*below {
        "" => base.clone(),
        below => base.join(words::path(below)),
    };
    if !start.directory_optional {
        // The directory of the inputs, which is the job's: it may have what it lacks.
        if !below.is_empty() {
            make(&base, &below)?;
            start.directory = words::text(&named);
        }
        if !start.files.is_empty() {
            make_for_programs(start, &named)?;
        }
        return Ok(None);
    }
    let lease = isthmus_settings::LEASE.read(|name| template::variable(start, name));
    let place = |directory: PathBuf, whose| WorkingDirectory {
        directory,
        whose,
        on_node,
        since: SystemTime::now(),
        lease,
    };
    if is_entered(&base) {
        let found = place(named.clone(), Where::Launchers);
        // Where the launcher's directory is, what it lacks is not made: that would hide a mistake.
        start.directory_optional = is_entered(&named);
        start.directory = words::text(named);
        // What a node sees is told of by the agent that submitted it.
        return Ok((!on_node).then_some((found, None)));
    }
    let home = home();
    // A node works where the agent that submitted it says, if it sees that.
    let made = match on_node {
        true => None,
        false => own(lease),
    };
    let Some((directory, workspace)) = made else {
        // Where nothing can be kept the home directory serves.
        let directory = home.join(words::path(&below));
        start.directory_optional = false;
        start.directory = words::text(&directory);
        return Ok(Some((place(directory, Where::Home), None)));
    };
    let found = place(directory.clone(), Where::Own);
    if !below.is_empty() {
        make(&directory, &below)?;
    }
    let directory = directory.join(words::path(&below));
    make_for_programs(start, &directory)?;
    // What the job reads is not in a directory that it does not know; what it writes is with the rest of its files.
    let read = |name: &str| {
        let name = words::path(name);
        let there = home.join(words::path(&below)).join(&name);
        words::text(if there.exists() { there } else { home.join(name) })
    };
    if !start.stdin.is_empty() {
        start.stdin = read(&start.stdin);
    }
    let programs = start.sections.iter_mut().map(|section| &mut section.program);
    for program in programs.filter(|program| program.contains('/')) {
        *program = read(program);
    }
    let names = [&mut start.stdout, &mut start.stderr];
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        *name = words::text(directory.join(words::path(name)));
    }
    start.directory = words::text(&directory);
    Ok(Some((found, Some(workspace))))
}

/// A directory for the subjob in the cache, if there is a place for one.
fn own(lease: Duration) -> Option<(PathBuf, Workspace)> {
    let cache = place_for_files().ok()?;
    let workspace = Workspace::create(&cache, lease).ok()?;
    Some((workspace.path(), workspace))
}

/// Makes the directories of programs that have one of their own below that of the job.
fn make_for_programs(start: &Start, base: &Path) -> Result<(), Refusal> {
    let own = start.sections.iter().map(|section| &section.directory);
    let mut own = own.filter(|own| !own.is_empty() && !own.starts_with(['/', '~']));
    own.try_for_each(|own| make(base, own))
}

/// Makes a directory of the job's own.
fn make(base: &Path, below: &str) -> Result<(), Refusal> {
    let below = words::path(below);
    let leads_out = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
    if below.components().any(leads_out) {
        let reason = format!(
            "the working directory '{}' leads out of the directory that the job has there",
            below.display()
        );
        return Err(Refusal::new(
            reason,
            "name one below it, or one that begins with / or ~/",
        ));
    }
    let path = base.join(below);
    fs::create_dir_all(&path).map_err(|error| {
        let reason = format!("cannot make the working directory '{}': {error}", path.display());
        Refusal::new(reason, "check the space and rights there, or name another one")
    })
}

/// To work in a directory one must be able to enter it. The dot makes it one, and has it mounted.
fn is_entered(directory: &Path) -> bool {
    rustix::fs::access(directory.join("."), rustix::fs::Access::EXEC_OK).is_ok()
}

/// Takes the umask that the job names for its processes; gives the one before, if it does.
pub(crate) fn set_umask(start: &Start) -> Result<Option<Mode>, Refusal> {
    let Some(text) = isthmus_settings::UMASK.read(|name| template::variable(start, name)) else {
        return Ok(None);
    };
    let mask = u32::from_str_radix(&text, 8).ok().filter(|mask| *mask <= 0o077);
    let mask = mask.ok_or_else(|| {
        let reason = format!("ISTHMUS_UMASK is '{}'", text.escape_debug());
        Refusal::new(reason, "three octal digits from 000 to 077, for example 027")
    })?;
    Ok(Some(rustix::process::umask(Mode::from_raw_mode(mask))))
}

impl WorkingDirectory {
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
        if self.whose == Where::Own {
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
            place: self.whose,
            node: self.node(),
            minutes: u32::try_from(self.lease.as_secs().div_ceil(60)).unwrap_or(u32::MAX),
            files,
            bytes,
            some,
        })
    }

    /// The node's name, for those who do not reach it with ssh.
    fn node(&self) -> String {
        match self.on_node {
            true => rustix::system::uname().nodename().to_string_lossy().into_owned(),
            false => String::new(),
        }
    }

    /// Whether the directory was made for the subjob.
    pub(crate) fn is_own(&self) -> bool {
        self.whose == Where::Own
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
    fn the_launchers_directory_has_its_own_name() {
        let mut start = template::tests::start(vec![]);
        start.directory_optional = true;
        let (works, _) = choose(&mut start, false).unwrap().unwrap();
        assert_eq!(
            (&*start.directory, works.directory.as_os_str()),
            ("/usr", "/usr".as_ref())
        );
    }

    #[test]
    fn what_is_new_in_the_launchers_directory_is_found() {
        let top = std::env::temp_dir().join(format!("isthmus-place-{}", std::process::id()));
        fs::create_dir_all(top.join("directory")).unwrap();
        fs::write(top.join("old"), "1").unwrap();
        let since = fs::metadata(top.join("old")).unwrap().modified().unwrap() + Duration::from_nanos(1);
        let place = WorkingDirectory {
            directory: top.clone(),
            whose: Where::Launchers,
            on_node: false,
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
            (names, made.files, made.bytes, made.minutes, made.place),
            (vec!["new"], 1, 2, 2, Where::Launchers)
        );
        let own = WorkingDirectory {
            whose: Where::Own,
            ..place
        };
        assert_eq!(own.look().unwrap().files, 3);
        fs::remove_dir_all(&top).unwrap();
    }
}
