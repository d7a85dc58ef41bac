// SPDX-License-Identifier: Apache-2.0
//! What sites have, how loaded they are, and which of them to take.
//!
//! * [`serve`]: the service at a site: files, the cache, [`look`].
//! * [`look`]: a machine looks at itself: schedulers, queues, compilers, MPIs, interfaces.
//! * [`never`]: what a scheduler would let wait for ever.
//! * [`select`]: the language of `--select`: which sites a job may take, and how many processes each.
#![forbid(unsafe_code)]

pub mod look;
mod never;
mod probe;
pub mod select;
mod serve;

pub use never::{Never, never, usable};
pub use serve::serve;

/// Fuzz entry: no text may make the parsers panic, and what a selection is written as is read as the same.
pub fn fuzz(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(selection) = select::Selection::parse(text) {
        let again = selection.to_string();
        assert_eq!(select::Selection::parse(&again).as_ref(), Ok(&selection), "{again}");
    }
    look::fuzz(text);
}
