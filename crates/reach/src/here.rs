// SPDX-License-Identifier: Apache-2.0
//! Names of files at home.

use crate::failure::Failure;
use isthmus_stage::words;
use std::path::{Path, PathBuf};

/// Where a file at home is: below the home directory if its name begins with `~/`, otherwise below the directory in
/// which the user stands.
pub fn here(standing: &Path, name: &str) -> Result<PathBuf, Failure> {
    let Some(below) = name.strip_prefix("~/") else {
        return Ok(standing.join(words::path(name)));
    };
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(Path::new(&home).join(words::path(below))),
        None => Err(Failure::new(
            format!("'{name}' is below the home directory, and HOME is not set"),
            "write the full path",
        )),
    }
}
