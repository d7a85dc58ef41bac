// SPDX-License-Identifier: Apache-2.0
//! Programs that the distribution is made with, and what they make.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
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

/// Removes a file so that a new one takes its place: programs that run from the old one keep it.
pub(crate) fn replaceable(path: &Path) -> Result<&Path> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: cannot replace: {e}", path.display())),
        _ => Ok(path),
    }
}

pub(crate) fn point(link: &Path, target: &str) -> Result<()> {
    symlink(target, replaceable(link)?).map_err(|e| format!("{}: cannot link: {e}", link.display()))
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}
