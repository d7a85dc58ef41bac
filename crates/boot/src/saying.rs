// SPDX-License-Identifier: Apache-2.0
//! What a process says to people itself.

use std::io::Write;

/// For people who read what the program says.
pub(crate) fn say(text: &str) {
    // One call of the system: messages of other processes cannot come between.
    let _ = std::io::stderr().write_all(format!("isthmus: {text}\n").as_bytes());
}
