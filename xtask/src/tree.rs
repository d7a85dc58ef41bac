// SPDX-License-Identifier: Apache-2.0
//! The source tree: where it is, what is in it, reading and writing with errors that name the file.

use std::fs;
use std::path::{Path, PathBuf};

/// Everything here fails with a sentence for people.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// Top directory of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Text of a file, named relative to the top.
pub(crate) fn read(relative: &str) -> Result<String> {
    fs::read_to_string(root().join(relative)).map_err(|e| format!("{relative}: cannot read: {e}"))
}

/// Writes a file relative to the top unless it already has this text. Says whether it wrote.
pub(crate) fn write(relative: &str, text: &str) -> Result<bool> {
    if read(relative).is_ok_and(|old| old == text) {
        return Ok(false);
    }
    let path = root().join(relative);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|e| format!("{relative}: cannot make its directory: {e}"))?;
    }
    fs::write(&path, text).map_err(|e| format!("{relative}: cannot write: {e}"))?;
    Ok(true)
}

/// Files below a directory (relative to the top) whose names end in `suffix`, sorted, relative to the top.
/// `target`, `build` and directories whose names begin with a dot are left out.
pub(crate) fn files(directory: &str, suffix: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    walk(&root(), &root().join(directory), suffix, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(top: &Path, directory: &Path, suffix: &str, found: &mut Vec<String>) -> Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(format!("{}: cannot list: {e}", directory.display())),
    };
    for entry in entries {
        let entry = entry.map_err(|e| format!("{}: cannot list: {e}", directory.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !name.starts_with('.') && name != "target" && name != "build" {
                walk(top, &path, suffix, found)?;
            }
        } else if name.ends_with(suffix) {
            let relative = path.strip_prefix(top).unwrap_or(&path);
            found.push(relative.to_string_lossy().into_owned());
        }
    }
    Ok(())
}
