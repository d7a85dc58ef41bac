// SPDX-License-Identifier: Apache-2.0
//! Names for ports that a program without a launcher keeps itself.

use std::sync::{Mutex, PoisonError};

use isthmus_stage::names::Names;
use isthmus_wire::question::Refusal;

use crate::asking::AskError;

/// The names of a program without a launcher.
static OWN: Mutex<Option<Names>> = Mutex::new(None);

/// A program that ends takes its names along.
pub(crate) fn forget() {
    OWN.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// Asks for one, or changes them.
pub(crate) fn alone<T>(what: impl FnOnce(&mut Names) -> Result<T, Refusal>) -> Result<T, AskError> {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let names = own.get_or_insert_with(|| Names::new(&format!("process {}", std::process::id())));
    what(names).map_err(AskError::Refused)
}
