// SPDX-License-Identifier: Apache-2.0
//! Files that commands keep for the user.

use isthmus_job::JobError;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// `$XDG_CONFIG_HOME/isthmus/sites.toml` or `$HOME/.config/isthmus/sites.toml`.
pub(crate) fn sites_file() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))?;
    Some(base.join("isthmus").join("sites.toml"))
}

/// Keeps others from changing this file until it is dropped: whoever reads it, changes it and writes it again does not
/// lose what they have written. Its directory is made.
pub(crate) fn alone(file: &Path) -> Option<File> {
    // What is wrong with the place is told by whoever writes there.
    let _ = make_place(file);
    isthmus_stage::guarded::alone_in(file.parent()?)
}

fn make_place(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), |directory| {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
    })
}

/// Writes a private file at once or not at all, and the directory that it is in.
pub(crate) fn write_private(file: &Path, text: &str) -> Result<(), JobError> {
    let part = file.with_extension(format!("new-{}", std::process::id()));
    let write = || {
        make_place(file)?;
        let mut out = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        std::fs::rename(&part, file)
    };
    write().map_err(|error| {
        let _ = std::fs::remove_file(&part);
        JobError::new(format!("cannot write {}: {error}", file.display()))
    })
}
