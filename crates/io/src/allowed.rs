// SPDX-License-Identifier: Apache-2.0
//! Which files this process opens and deletes for processes of other sites: those in the directories of the job, its
//! inputs and outputs, and what the job names. The agent has told which these are; no process that asks has a say.
//!
//! A name is first made a path without links, then it is opened from a descriptor of the directory that is allowed, in
//! a way that leads nowhere else, whatever is changed on the way meanwhile.

use std::fs::File as SystemFile;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use isthmus_abi::constants as abi;
use isthmus_core::error::Error;
use rustix::fs::{AtFlags, CWD, Mode as Permissions, OFlags, ResolveFlags, openat, openat2, unlinkat};
use rustix::io::Errno;

use crate::error::{self, Whose};
use crate::mode::Mode;
use crate::name::Shown;
use crate::plain::{again, settled};

/// Longest path that the system takes, bytes.
const LONGEST: usize = 4096;
/// How often a path is tried again whose directories are being renamed.
const TRIES: u32 = 16;

/// What is allowed: absolute paths. It need not be there.
static ALLOWED: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Says, once, in which directories processes of other sites may open files through this one, and which files. Without
/// it they may open none.
pub fn allow(paths: &[PathBuf]) {
    let absolute = paths.iter().filter(|path| path.is_absolute());
    let _ = ALLOWED.set(absolute.cloned().collect());
}

/// Why something was not done for others.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is in no directory that is allowed.
    Outside,
    /// The system's reason.
    System(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            // A link leads out.
            Some(Errno::XDEV) => Self::Outside,
            _ => Self::System(error),
        }
    }
}

impl From<Errno> for Refused {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

impl Refused {
    /// As the error of who asked.
    pub(crate) fn told(&self, doing: &str, path: &Shown, whose: Whose<'_>) -> Error {
        match self {
            Self::System(what) => error::error(doing, path, whose, what),
            Self::Outside => outside(doing, path, whose),
        }
    }
}

/// The error of a file that is in no directory that is allowed.
pub(crate) fn outside(doing: &str, path: &Shown, whose: Whose<'_>) -> Error {
    let rank = whose.rank;
    Error::named(
        abi::MPI_ERR_ACCESS,
        format!(
            "rank {rank} cannot {doing} {path:?}{whose} for processes of other sites, which reach only the job's own directories there, its \
             inputs and outputs, and what --share DIR names (share = [\"DIR\"] in a job file)"
        ),
    )
}

/// Where a file is among what is allowed.
struct AllowedPath {
    /// A directory, without links in its path.
    root: PathBuf,
    /// The path below it.
    below: PathBuf,
    /// Whether this very file is allowed, and nothing else in the directory.
    alone: bool,
}

impl AllowedPath {
    /// `follows`: whether a link at the end of the path means what it leads to.
    fn of(path: &Path, allowed: &[PathBuf], follows: bool) -> Result<Self, Refused> {
        let real = real(path, follows)?;
        for root in allowed {
            let Ok(root) = self::real(root, true) else { continue };
            let Ok(below) = real.strip_prefix(&root) else { continue };
            if !below.as_os_str().is_empty() {
                return Ok(Self {
                    below: below.to_owned(),
                    alone: false,
                    root,
                });
            }
            if let (Some(parent), Some(name), false) = (root.parent(), root.file_name(), root.is_dir()) {
                return Ok(Self {
                    root: parent.to_owned(),
                    below: name.into(),
                    alone: true,
                });
            }
            return Err(Errno::ISDIR.into());
        }
        Err(Refused::Outside)
    }

    /// A name that can only be that of a directory is no file.
    fn check(&self, path: &Path) -> Result<(), Refused> {
        let found = std::fs::symlink_metadata(self.root.join(&self.below));
        match is_directory(path) {
            true if found.is_ok_and(|found| !found.is_dir()) => Err(Errno::NOTDIR.into()),
            true => Err(Errno::ISDIR.into()),
            false => Ok(()),
        }
    }

    fn open(&self, flags: OFlags, permissions: Permissions, mut with: Resolution) -> io::Result<OwnedFd> {
        let last = if self.alone { OFlags::NOFOLLOW } else { OFlags::empty() };
        let root = directory(CWD, &self.root)?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            let opened = match with {
                Resolution::Kernel => openat2(&root, &self.below, flags | last, permissions, resolve),
                Resolution::Steps => step_by_step(&root, &self.below, flags, permissions),
            };
            match opened {
                Err(Errno::INTR | Errno::AGAIN) => {}
                // Linux has it from 5.6 on, and some containers forbid what they do not know.
                Err(Errno::NOSYS | Errno::PERM) if with == Resolution::Kernel => with = Resolution::Steps,
                opened => return Ok(opened?),
            }
        }
        Err(Errno::AGAIN.into())
    }
}

/// How a path is kept below its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// By the kernel, if it can.
    Kernel,
    /// Directory by directory, without following a link.
    Steps,
}

fn directory(at: impl rustix::fd::AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, path, flags, Permissions::empty())
}

fn step_by_step(root: &OwnedFd, below: &Path, flags: OFlags, permissions: Permissions) -> rustix::io::Result<OwnedFd> {
    let (at, name) = walk(root, below)?;
    match openat(&at, name, flags | OFlags::NOFOLLOW, permissions) {
        // A link: what it leads to had been found if it were allowed.
        Err(Errno::LOOP) => Err(Errno::XDEV),
        opened => opened,
    }
}

/// The directory of a path below another one, and the name in it.
fn walk<'p>(root: &OwnedFd, below: &'p Path) -> rustix::io::Result<(OwnedFd, &'p Path)> {
    let mut at = directory(root, Path::new("."))?;
    let mut parts = below.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(Errno::XDEV);
        };
        if parts.peek().is_none() {
            return Ok((at, Path::new(name)));
        }
        at = directory(&at, Path::new(name))?;
    }
    Err(Errno::ISDIR)
}

/// An absolute path without links, as far as it is there; what is not there follows as it is written.
fn real(path: &Path, follows: bool) -> io::Result<PathBuf> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > LONGEST {
        return Err(Errno::NAMETOOLONG.into());
    }
    let whole = match path.is_absolute() {
        true => path.to_owned(),
        false => std::env::current_dir()?.join(path),
    };
    let (mut there, mut rest) = (whole.as_path(), Vec::new());
    let mut tries = follows;
    loop {
        if let Some(real) = tries.then(|| there.canonicalize().ok()).flatten() {
            return Ok(rest
                .iter()
                .rev()
                .fold(real, |path, part: &Component<'_>| path.join(part)));
        }
        tries = true;
        let (Some(last), Some(parent)) = (there.components().next_back(), there.parent()) else {
            return Err(Errno::NOENT.into());
        };
        rest.push(last);
        there = parent;
    }
}

/// Whether a name can only be that of a directory.
fn is_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let last = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    matches!(last, b"" | b"." | b"..")
}

fn open_with(
    path: &Path,
    allowed: &[PathBuf],
    flags: OFlags,
    permissions: Permissions,
    with: Resolution,
) -> Result<SystemFile, Refused> {
    let place = AllowedPath::of(path, allowed, true)?;
    place.check(path)?;
    let file = SystemFile::from(place.open(flags | OFlags::NONBLOCK, permissions, with)?);
    Ok(settled(file)?)
}

/// Opens a file for processes of other sites, if it is allowed. `first`: it is created if that is asked for.
pub(crate) fn open(path: &Path, mode: Mode, permissions: u32, first: bool) -> Result<SystemFile, Refused> {
    let mut flags = match (mode.reads(), mode.writes()) {
        (true, false) => OFlags::RDONLY,
        (false, _) => OFlags::WRONLY,
        (true, true) => OFlags::RDWR,
    };
    let mut created = Permissions::empty();
    if first && mode.has(abi::MPI_MODE_CREATE) {
        flags |= OFlags::CREATE;
        if mode.has(abi::MPI_MODE_EXCL) {
            flags |= OFlags::EXCL;
        }
        // Nobody elsewhere makes a program that runs as this user.
        created = Permissions::from_raw_mode(permissions & 0o777);
    }
    open_with(
        path,
        ALLOWED.get().map_or(&[], Vec::as_slice),
        flags,
        created,
        Resolution::Kernel,
    )
}

fn remove_from(path: &Path, allowed: &[PathBuf]) -> Result<(), Refused> {
    // A link is deleted, not what it leads to.
    let place = AllowedPath::of(path, allowed, false)?;
    place.check(path)?;
    if place.alone {
        return Err(Refused::Outside);
    }
    let (at, name) = walk(&directory(CWD, &place.root)?, &place.below)?;
    again(|| Ok(unlinkat(&at, name, AtFlags::empty())?))?;
    Ok(())
}

/// Deletes a file for processes of other sites, if it is in a directory that is allowed.
pub(crate) fn remove(path: &Path) -> Result<(), Refused> {
    remove_from(path, ALLOWED.get().map_or(&[], Vec::as_slice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    /// A directory that is allowed beside one that is not, with links of all kinds.
    struct Scene {
        _place: tempfile::TempDir,
        top: PathBuf,
        allowed: Vec<PathBuf>,
    }

    impl Scene {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let top = place.path().canonicalize().unwrap();
            for directory in ["job/deep", "ssh", "elsewhere"] {
                fs::create_dir_all(top.join(directory)).unwrap();
            }
            for (file, text) in [
                ("job/in", "in"),
                ("job/deep/in", "deep"),
                ("ssh/key", "key"),
                ("elsewhere/mesh", "mesh"),
            ] {
                fs::write(top.join(file), text).unwrap();
            }
            for (link, to) in [
                ("job/out", "../ssh/key"),
                ("job/far", "../ssh"),
                ("job/inner", "deep/in"),
                ("job/dangling", "../ssh/new"),
                ("job/soon", "deep/new"),
                ("job/self", "self"),
                ("alias", "job"),
                ("job/mesh", "../elsewhere/mesh"),
            ] {
                symlink(to, top.join(link)).unwrap();
            }
            symlink(top.join("ssh/key"), top.join("job/absolute")).unwrap();
            symlink(top.join("job/in"), top.join("job/own")).unwrap();
            let allowed = vec![
                top.join("nowhere"),
                top.join("alias"),
                top.join("elsewhere/mesh"),
                top.join("elsewhere/new"),
            ];
            Self {
                _place: place,
                top,
                allowed,
            }
        }

        fn open(&self, name: &str, flags: OFlags, with: Resolution) -> Result<SystemFile, Refused> {
            let permissions = match flags.contains(OFlags::CREATE) {
                true => Permissions::from_raw_mode(0o666),
                false => Permissions::empty(),
            };
            open_with(&self.top.join(name), &self.allowed, flags, permissions, with)
        }

        fn read(&self, name: &str, with: Resolution) -> Result<String, Refused> {
            let mut text = String::new();
            self.open(name, OFlags::RDONLY, with)?
                .read_to_string(&mut text)
                .unwrap();
            Ok(text)
        }
    }

    fn is_outside<T>(done: Result<T, Refused>) -> bool {
        matches!(done, Err(Refused::Outside))
    }

    fn class<T>(done: Result<T, Refused>) -> Option<i32> {
        match done {
            Err(Refused::System(what)) => Some(error::class_of(&what)),
            _ => None,
        }
    }

    const BOTH: [Resolution; 2] = [Resolution::Kernel, Resolution::Steps];

    #[test]
    fn what_is_allowed_is_reached_however_it_is_named() {
        let scene = Scene::new();
        for with in BOTH {
            for (name, text) in [
                ("job/in", "in"),
                ("alias/in", "in"),
                ("job//./in", "in"),
                ("job/deep/../in", "in"),
                ("ssh/../job/in", "in"),
                ("job/inner", "deep"),
                ("job/own", "in"),
                ("elsewhere/mesh", "mesh"),
                ("job/mesh", "mesh"),
            ] {
                assert_eq!(scene.read(name, with).unwrap(), text, "{name} {with:?}");
            }
            let here = std::env::current_dir().unwrap();
            let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
            let relative = up.join(scene.top.strip_prefix("/").unwrap()).join("job/in");
            assert!(open_with(&relative, &scene.allowed, OFlags::RDONLY, Permissions::empty(), with).is_ok());
            let new = scene.top.join("elsewhere/new");
            assert!(scene.open("elsewhere/new", OFlags::RDWR | OFlags::CREATE, with).is_ok());
            fs::remove_file(new).unwrap();
        }
        assert!(
            scene
                .open("job/soon", OFlags::RDWR | OFlags::CREATE, Resolution::Kernel)
                .is_ok()
        );
        assert!(scene.top.join("job/deep/new").exists());
    }

    #[test]
    fn nothing_else_is_read_created_or_deleted() {
        let scene = Scene::new();
        let outside = [
            "ssh/key",
            "job/../ssh/key",
            "job/deep/../../ssh/key",
            "job/out",
            "job/far/key",
            "job/absolute",
            "ssh/none",
            "none",
            "elsewhere/other",
            "jobs",
            "../../../../../../../../etc/passwd",
        ];
        for name in outside {
            for with in BOTH {
                for flags in [
                    OFlags::RDONLY,
                    OFlags::RDWR | OFlags::CREATE,
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
                ] {
                    assert!(is_outside(scene.open(name, flags, with)), "{name} {with:?} {flags:?}");
                }
            }
        }
        for name in ["job/dangling", "job/far/new"] {
            for with in BOTH {
                assert!(
                    is_outside(scene.open(name, OFlags::RDWR | OFlags::CREATE, with)),
                    "{name} {with:?}"
                );
            }
        }
        let remove = |name: &str| remove_from(&scene.top.join(name), &scene.allowed);
        for name in [
            "ssh/key",
            "job/../ssh/key",
            "job/far/key",
            "elsewhere/mesh",
            "ssh/none",
            "alias",
            "job/../alias",
        ] {
            assert!(is_outside(remove(name)), "{name}");
        }
        for root in ["/proc/self/root", "/proc/thread-self/root"] {
            let key = Path::new(root)
                .join(scene.top.strip_prefix("/").unwrap())
                .join("ssh/key");
            assert!(is_outside(remove_from(&key, &scene.allowed)));
            assert!(
                is_outside(open_with(
                    &key,
                    &scene.allowed,
                    OFlags::RDONLY,
                    Permissions::empty(),
                    Resolution::Kernel
                )),
                "{root}"
            );
        }
        let left: Vec<_> = fs::read_dir(scene.top.join("ssh"))
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(left, ["key"]);
        assert!(!scene.top.join("none").exists() && !scene.top.join("jobs").exists());
        assert_eq!(fs::read_to_string(scene.top.join("elsewhere/mesh")).unwrap(), "mesh");
    }

    #[test]
    fn the_system_has_its_say_in_a_directory_that_is_allowed() {
        let scene = Scene::new();
        let (read, create) = (OFlags::RDONLY, OFlags::RDWR | OFlags::CREATE);
        for with in BOTH {
            assert_eq!(
                class(scene.open("job/none", read, with)),
                Some(abi::MPI_ERR_NO_SUCH_FILE)
            );
            assert_eq!(
                class(scene.open("job/none/x", create, with)),
                Some(abi::MPI_ERR_NO_SUCH_FILE)
            );
            assert_eq!(
                class(scene.open("job/in", create | OFlags::EXCL, with)),
                Some(abi::MPI_ERR_FILE_EXISTS)
            );
            for name in [
                "job",
                "alias/",
                "job/deep",
                "job/deep/.",
                "job/in/",
                "job/new/",
                "job/deep/..",
            ] {
                assert_eq!(
                    class(scene.open(name, read, with)),
                    Some(abi::MPI_ERR_BAD_FILE),
                    "{name}"
                );
            }
        }
        assert_eq!(
            class(scene.open("job/self", read, Resolution::Kernel)),
            Some(abi::MPI_ERR_BAD_FILE)
        );
        let remove = |name: &str| remove_from(&scene.top.join(name), &scene.allowed);
        for name in ["job/in/", "job/deep/.", "job/deep/.."] {
            assert!(remove(name).is_err(), "{name}");
        }
        assert_eq!(class(remove("job/none")), Some(abi::MPI_ERR_NO_SUCH_FILE));
        for name in ["job/out", "job/in", "alias/deep/in"] {
            assert!(remove(name).is_ok(), "{name}");
            assert!(fs::symlink_metadata(scene.top.join(name)).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(scene.top.join("ssh/key")).unwrap(), "key");
        let long = scene.top.join("job").join("x/".repeat(LONGEST));
        assert_eq!(class(remove_from(&long, &scene.allowed)), Some(abi::MPI_ERR_BAD_FILE));
        let zero = Path::new(std::ffi::OsStr::from_bytes(b"job/a\0b"));
        assert!(remove_from(&scene.top.join(zero), &scene.allowed).is_err());
    }

    #[test]
    fn a_link_that_comes_meanwhile_leads_nowhere() {
        let scene = Scene::new();
        for with in BOTH {
            let root = scene.top.join("job");
            for (below, alone) in [("far/key", false), ("out", false), ("out", true), ("../ssh/key", false)] {
                let place = AllowedPath {
                    root: root.clone(),
                    below: below.into(),
                    alone,
                };
                assert!(
                    place.open(OFlags::RDONLY, Permissions::empty(), with).is_err(),
                    "{below} {with:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_created_is_never_a_program_of_this_user() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        allow(&[place.path().to_owned(), PathBuf::from("relative")]);
        let path = place.path().join("new");
        let mode = Mode::new(abi::MPI_MODE_WRONLY | abi::MPI_MODE_CREATE).unwrap();
        let mut file = open(&path, mode, 0o6777, true).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o7000, 0);
        assert_eq!(ALLOWED.get().map(Vec::len), Some(1));
        remove(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn the_sentence_says_which_option_allows_it_and_fits_an_error() {
        let path = Shown(PathBuf::from(format!("/home/me/{}", "x".repeat(600))));
        let whose = Whose {
            rank: 65_535,
            site: Some("a-site-with-a-long-name.example.org"),
        };
        let error = Refused::Outside.told("delete", &path, whose);
        assert_eq!(error.class, abi::MPI_ERR_ACCESS);
        assert!(error.message.contains("cannot delete \"/home/me/xx"), "{error}");
        assert!(error.message.contains("--share DIR names"), "{error}");
        assert!(
            error.message.len() < abi::MPI_MAX_ERROR_STRING as usize,
            "{}",
            error.message.len()
        );
    }
}
