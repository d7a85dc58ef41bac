// SPDX-License-Identifier: Apache-2.0
//! Programs that the distribution is made with, and what they make.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::tree::Result;

/// These names are defined, `KIND NAME` each as nm says.
pub(crate) fn check_defined(library: &Path, wanted: &BTreeSet<String>) -> Result<()> {
    let found = defined(library)?;
    let missing: Vec<&String> = wanted.difference(&found).take(5).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("{}: wrong exports: missing {missing:?} …", library.display()))
}

/// What a library exports, `KIND NAME` each as nm says.
pub(crate) fn defined(library: &Path) -> Result<BTreeSet<String>> {
    let nm = std::env::var("NM").unwrap_or_else(|_| "nm".to_owned());
    let output = Command::new(nm).args(["-D", "--defined-only"]).arg(library).output();
    let output = output.map_err(|e| format!("nm: cannot run (is binutils installed?): {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1).zip(line.split_whitespace().nth(2)))
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect())
}

pub(crate) fn c_compiler() -> Command {
    Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
}

/// A directory in which the linker looks for libraries before those of the system.
pub(crate) fn directory_option(directory: &Path) -> OsString {
    let mut option = OsString::from("-L");
    option.push(directory);
    option
}

pub(crate) fn execute(command: &mut Command, what: &str) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .map_err(|e| format!("{what}: cannot run {program}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{what}: {program} failed ({status})"))
    }
}

/// Makes a file beside its place and then puts it there: whoever starts, compiles or links meanwhile finds the old one
/// or the new one, whole, and programs that run from the old one keep it. Where making it fails the old one stays.
pub(crate) fn replace(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let beside = path.with_file_name(name);
    match fs::remove_file(&beside) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(format!("{}: cannot remove: {e}", beside.display())),
        _ => {}
    }
    make(&beside)?;
    fs::rename(&beside, path).map_err(|e| format!("{}: cannot replace: {e}", path.display()))
}

pub(crate) fn point(link: &Path, target: &str) -> Result<()> {
    replace(link, |beside| {
        symlink(target, beside).map_err(|e| format!("{}: cannot link: {e}", link.display()))
    })
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    replace(to, |beside| {
        fs::copy(from, beside)
            .map(drop)
            .map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
    })
}

/// Copies each file below a directory to its place below another one; a file there that has none here any more goes.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let wrong = |e: std::io::Error| format!("cannot copy {} to {}: {e}", from.display(), to.display());
    fs::create_dir_all(to).map_err(wrong)?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(from).map_err(wrong)? {
        let (old, name) = entry.map(|e| (e.path(), e.file_name())).map_err(wrong)?;
        match old.is_dir() {
            true => copy_tree(&old, &to.join(&name))?,
            false => copy(&old, &to.join(&name))?,
        }
        names.insert(name);
    }
    for entry in fs::read_dir(to).map_err(wrong)? {
        let (new, name) = entry.map(|e| (e.path(), e.file_name())).map_err(wrong)?;
        if !names.contains(&name) && !new.is_dir() {
            fs::remove_file(&new).map_err(wrong)?;
        }
    }
    Ok(())
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    let wrong = |e: std::io::Error| format!("{}: cannot write: {e}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(wrong)?;
    replace(path, |beside| fs::write(beside, text).map_err(wrong))
}

/// Puts each file below a directory to its place below another one, and removes the directory.
pub(crate) fn put(from: &Path, to: &Path) -> Result<()> {
    let wrong = |e: std::io::Error| format!("{}: cannot put it to {}: {e}", from.display(), to.display());
    fs::create_dir_all(to).map_err(wrong)?;
    for entry in fs::read_dir(from).map_err(wrong)? {
        let (old, new) = entry.map(|e| (e.path(), to.join(e.file_name()))).map_err(wrong)?;
        match old.is_dir() {
            true => put(&old, &new)?,
            false => fs::rename(&old, &new).map_err(wrong)?,
        }
    }
    fs::remove_dir(from).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn a_file_is_whole_at_any_time() {
        let place = std::env::temp_dir().join(format!("isthmus-xtask-{}", std::process::id()));
        let file = place.join("lib/libx.so");
        write(&file, "old").unwrap();
        let mut open = fs::File::open(&file).unwrap();
        replace(&file, |beside| {
            fs::write(beside, "ne").unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "old");
            fs::write(beside, "new").map_err(|e| e.to_string())
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let mut text = String::new();
        open.rewind().and_then(|()| open.read_to_string(&mut text)).unwrap();
        assert_eq!(text, "old", "who has it open keeps it");

        let failed = replace(&file, |beside| {
            fs::write(beside, "half").unwrap();
            Err("the linker failed".to_owned())
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        // What a failure left is no obstacle.
        point(&file, "elsewhere").unwrap();
        assert_eq!(fs::read_link(&file).unwrap(), Path::new("elsewhere"));
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_tree_is_put_over_another_one() {
        let place = std::env::temp_dir().join(format!("isthmus-xtask-put-{}", std::process::id()));
        let (from, to) = (place.join("new"), place.join("old"));
        for (file, text) in [(from.join("a/x"), "1"), (to.join("a/x"), "0"), (to.join("b"), "kept")] {
            write(&file, text).unwrap();
        }
        put(&from, &to).unwrap();
        let text = |name: &str| fs::read_to_string(to.join(name)).unwrap();
        assert_eq!(
            (text("a/x").as_str(), text("b").as_str(), from.exists()),
            ("1", "kept", false)
        );
        fs::remove_dir_all(place).unwrap();
    }
}
