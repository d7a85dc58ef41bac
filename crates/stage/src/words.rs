// SPDX-License-Identifier: Apache-2.0
//! Words of the system as text and back: see [`isthmus_wire::word`].

use isthmus_wire::word;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The text of a word of the system.
pub fn text(word: impl AsRef<OsStr>) -> String {
    word::from_bytes(word.as_ref().as_bytes())
}

/// The word that a text stands for.
pub fn os(text: &str) -> OsString {
    OsString::from_vec(word::to_bytes(text))
}

/// The file that a text names.
pub fn path(text: &str) -> PathBuf {
    os(text).into()
}
