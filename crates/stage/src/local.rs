// SPDX-License-Identifier: Apache-2.0
//! Files of the user, at home or at a site: reading pieces, receiving a file by pieces, walking directories.

use crate::content;
use crate::error::{StageError, failed};
use crate::words;
use isthmus_wire::service::{Entry, EntryKind, MAX_ENTRIES, Manifest, PIECE};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Longest name that a file system takes, bytes.
const LONGEST_NAME: usize = 255;
/// Deepest directory of a tree.
const MAX_DEPTH: usize = 64;

/// A piece of an open file; shorter at its end.
pub fn read_piece(file: &fs::File, piece: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PIECE];
    let mut filled = 0;
    let begin = u64::from(piece) * PIECE as u64;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], begin + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// A name beside a file for what will replace it.
pub fn beside(target: &Path) -> PathBuf {
    hidden(target, &format!("isthmus-{}", std::process::id()))
}

/// The name of a file between a dot and something. Of one that is as long as the system allows, the beginning and a
/// hash.
fn hidden(target: &Path, end: &str) -> PathBuf {
    let whole = target.file_name().unwrap_or_default().as_bytes();
    let mut name = b".".to_vec();
    if whole.len() + end.len() + 2 <= LONGEST_NAME {
        name.extend_from_slice(whole);
    } else {
        let mark = &content::hex(&Sha256::digest(whole))[..16];
        let room = LONGEST_NAME.saturating_sub(mark.len() + end.len() + 3);
        name.extend_from_slice(&whole[..room.min(whole.len())]);
        name.extend_from_slice(format!(".{mark}").as_bytes());
    }
    name.extend_from_slice(format!(".{end}").as_bytes());
    target.with_file_name(OsStr::from_bytes(&name))
}

/// The rights of a file that is made for the user.
pub(crate) fn mode(executable: bool) -> u32 {
    let all = if executable { 0o777 } else { 0o666 };
    all & !umask()
}

/// What the user does not want others to have of new files. The only way to read it is from `/proc`, without changing
/// it.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let text = status.lines().find_map(|l| l.strip_prefix("Umask:"));
    text.and_then(|t| u32::from_str_radix(t.trim(), 8).ok())
        .unwrap_or(0o077)
}

/// Opens a file that arrives by pieces, or makes it: of its whole size, for its owner alone, and never through a link.
pub(crate) fn with_room(path: &Path, size: u64) -> Result<fs::File, StageError> {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .map_err(failed("create", path))?;
    file.set_len(size).map_err(failed("make room in", path))?;
    Ok(file)
}

/// A file that arrives by pieces beside the place where it shall be. What an earlier attempt left is used; an attempt
/// that fails leaves what it has, so that a later one goes on from there.
#[derive(Debug)]
pub struct Arriving {
    manifest: Manifest,
    target: PathBuf,
    part: PathBuf,
    file: fs::File,
    missing: Vec<u32>,
}

impl Arriving {
    /// Begins, or goes on. `None`: the file is there already.
    pub fn open(manifest: Manifest, target: &Path) -> Result<Option<Self>, StageError> {
        if !content::is_sound(&manifest) {
            return Err(StageError::Corrupt);
        }
        if same(target, &manifest) {
            return Ok(None);
        }
        let part = hidden(target, &format!("{}.part", &content::hex(&manifest.hash)[..16]));
        let file = with_room(&part, manifest.size)?;
        let here = |n: &u32| read_piece(&file, *n).is_ok_and(|bytes| content::is_piece(&manifest, *n, &bytes));
        let count = u32::try_from(manifest.pieces.len()).unwrap_or(u32::MAX);
        let missing = (0..count).filter(|n| !here(n)).collect();
        Ok(Some(Self {
            manifest,
            target: target.to_owned(),
            part,
            file,
            missing,
        }))
    }

    /// Numbers of the pieces that are not here.
    pub fn missing(&self) -> &[u32] {
        &self.missing
    }

    /// Takes a piece.
    pub fn write(&mut self, number: u32, bytes: &[u8]) -> Result<(), StageError> {
        if !content::is_piece(&self.manifest, number, bytes) {
            return Err(StageError::Corrupt);
        }
        self.file
            .write_all_at(bytes, u64::from(number) * PIECE as u64)
            .map_err(failed("write", &self.part))?;
        self.missing.retain(|n| *n != number);
        Ok(())
    }

    /// Puts the file under its name.
    pub fn finish(self, executable: bool) -> Result<(), StageError> {
        if !self.missing.is_empty() {
            return Err(StageError::Corrupt);
        }
        let put = || {
            fs::set_permissions(&self.part, fs::Permissions::from_mode(mode(executable)))?;
            self.file.sync_data()?;
            fs::rename(&self.part, &self.target)
        };
        match put() {
            // Another process was copying the same file, and has put it there.
            Err(error) if error.kind() == io::ErrorKind::NotFound && same(&self.target, &self.manifest) => Ok(()),
            done => done.map_err(failed("write", &self.target)),
        }
    }
}

fn same(path: &Path, manifest: &Manifest) -> bool {
    let size = fs::symlink_metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)
        .map(|m| m.len());
    size == Some(manifest.size) && content::manifest_of(path).is_ok_and(|m| m == *manifest)
}

/// What is below a directory, in order, directories before what is in them; a file is listed alone, with an empty path.
/// Links are followed when `follow` says so, though never in a circle; one to nothing is of the kind `Other`.
pub fn walk(path: &Path, follow: bool) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let top = entry(path, String::new(), follow)?;
    if top.kind == EntryKind::Directory {
        descend(path, "", follow, 0, &mut entries)?;
    } else {
        entries.push(top);
    }
    Ok(entries)
}

fn entry(path: &Path, name: String, follow: bool) -> io::Result<Entry> {
    let metadata = if follow {
        fs::metadata(path)?
    } else {
        fs::symlink_metadata(path)?
    };
    Ok(Entry {
        path: name,
        kind: match () {
            () if metadata.is_dir() => EntryKind::Directory,
            () if metadata.is_file() => EntryKind::File,
            () => EntryKind::Other,
        },
        size: metadata.len(),
        executable: metadata.permissions().mode() & 0o100 != 0,
    })
}

/// What the system says of a link that names nothing: also one to itself, and one to something below a file.
fn leads_nowhere(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::LOOP, Errno::NOTDIR, Errno::NAMETOOLONG];
    Errno::from_io_error(error).is_some_and(|error| gone.contains(&error))
}

/// An error about something in a tree, of which its user has named the top.
fn named(below: &str, error: io::Error) -> io::Error {
    match below {
        "" => error,
        below => io::Error::new(error.kind(), format!("'{below}': {error}")),
    }
}

fn descend(path: &Path, prefix: &str, follow: bool, depth: usize, entries: &mut Vec<Entry>) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other(format!(
            "'{}' is deeper than {MAX_DEPTH} directories; is there a circular link?",
            path.display()
        )));
    }
    let listed = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut names = listed.map_err(|error| named(prefix, error))?;
    names.sort_by_key(fs::DirEntry::file_name);
    for found in names {
        let name = words::text(found.file_name());
        let below = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        };
        let entry = match entry(&found.path(), below.clone(), follow) {
            Err(error) if leads_nowhere(&error) => {
                match entry(&found.path(), below.clone(), false) {
                    // A link to nothing.
                    Ok(link) => link,
                    // It has just gone.
                    Err(_) => continue,
                }
            }
            entry => entry.map_err(|error| named(&below, error))?,
        };
        if entries.len() == MAX_ENTRIES {
            return Err(io::Error::other(format!("there are more than {MAX_ENTRIES} files")));
        }
        let directory = entry.kind == EntryKind::Directory;
        entries.push(entry);
        if directory {
            descend(&found.path(), &below, follow, depth + 1, entries)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_have_room_beside_them() {
        let top = tempfile::tempdir().unwrap();
        let (first, second) = ("x".repeat(254) + "1", "x".repeat(254) + "2");
        assert_ne!(hidden(Path::new(&first), "part"), hidden(Path::new(&second), "part"));
        assert_eq!(hidden(Path::new("d/short"), "part"), Path::new("d/.short.part"));
        let content = b"content";
        let source = top.path().join("source");
        fs::write(&source, content).unwrap();
        let target = top.path().join(first);
        let mut incoming = Arriving::open(content::manifest_of(&source).unwrap(), &target)
            .unwrap()
            .unwrap();
        incoming.write(0, content).unwrap();
        incoming.finish(false).unwrap();
        assert_eq!(fs::read(&target).unwrap(), content);
        fs::write(beside(&target), "").unwrap();
    }

    #[test]
    fn a_tree_in_order_without_circles() {
        let top = tempfile::tempdir().unwrap();
        let path = |name: &str| top.path().join(name);
        fs::create_dir_all(path("d/e")).unwrap();
        fs::write(path("d/e/f"), "1234").unwrap();
        fs::write(path("a"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", path("z")).unwrap();
        std::os::unix::fs::symlink("zz", path("zz")).unwrap();
        std::os::unix::fs::symlink("a/below", path("zzz")).unwrap();
        let walked = |follow| -> Vec<(String, EntryKind, u64)> {
            let entries = walk(top.path(), follow).unwrap();
            entries
                .into_iter()
                .filter(|e| e.kind != EntryKind::Directory)
                .map(|e| (e.path, e.kind, e.size))
                .collect()
        };
        assert_eq!(
            walked(true),
            [
                ("a".into(), EntryKind::File, 0),
                ("d/e/f".into(), EntryKind::File, 4),
                ("z".into(), EntryKind::Other, 7),
                ("zz".into(), EntryKind::Other, 2),
                ("zzz".into(), EntryKind::Other, 7)
            ]
        );
        assert_eq!(walked(false)[2].1, EntryKind::Other);
        assert_eq!(walk(&path("d/e/f"), false).unwrap()[0].path, "");
        std::os::unix::fs::symlink(top.path(), path("d/up")).unwrap();
        assert!(
            walk(top.path(), true)
                .unwrap_err()
                .to_string()
                .contains("circular link")
        );
        assert!(walk(top.path(), false).is_ok());
        // Root may read everything: the words alone.
        let refused = |below| named(below, Errno::ACCESS.into()).to_string();
        assert!(refused("d/e").starts_with("'d/e': Permission denied") && refused("").starts_with("Permission"));
    }

    #[test]
    fn a_file_arrives_twice_at_once() {
        let top = tempfile::tempdir().unwrap();
        let target = top.path().join("data");
        let manifest = content::manifest(&mut &b"content"[..]).unwrap();
        let begin = || Arriving::open(manifest.clone(), &target).unwrap().unwrap();
        let both = [begin(), begin()];
        for mut one in both {
            one.write(0, b"content").unwrap();
            one.finish(false).unwrap();
        }
        assert_eq!(fs::read(&target).unwrap(), b"content");
    }

    #[test]
    fn a_file_arrives_in_two_attempts() {
        let top = tempfile::tempdir().unwrap();
        let target = top.path().join("data");
        let bytes = vec![3; PIECE + 100];
        let manifest = content::manifest(&mut &bytes[..]).unwrap();
        let mut first = Arriving::open(manifest.clone(), &target).unwrap().unwrap();
        first.write(1, &bytes[PIECE..]).unwrap();
        assert!(first.write(0, &bytes[..5]).is_err());
        drop(first);
        let mut second = Arriving::open(manifest.clone(), &target).unwrap().unwrap();
        assert_eq!(second.missing(), [0]);
        second.write(0, &bytes[..PIECE]).unwrap();
        second.finish(true).unwrap();
        assert_eq!(fs::read(&target).unwrap(), bytes);
        assert!(Arriving::open(manifest, &target).unwrap().is_none());
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 1);
    }
}
