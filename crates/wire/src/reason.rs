// SPDX-License-Identifier: Apache-2.0
//! Why something is so, in a sentence for people.

use crate::codec::{DecodeError, Reader};

/// Longest reason text, bytes; longer ones are cut.
pub const MAX_REASON: usize = 4096;

/// Reads one.
pub(crate) fn read_reason(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    read_up_to(r, "reason", MAX_REASON)
}

/// A text of so many bytes at most, which is how long [`cut_to`] leaves it.
pub(crate) fn read_up_to(r: &mut Reader<'_>, field: &'static str, most: usize) -> Result<String, DecodeError> {
    let text = r.text(field)?;
    match text.len() <= most {
        true => Ok(text),
        false => Err(DecodeError::Invalid {
            field,
            value: text.len() as u64,
        }),
    }
}

/// As much of it as goes on a wire.
pub(crate) fn cut(text: &str) -> &str {
    cut_to(text, MAX_REASON)
}

/// So many bytes of a text at most, up to the end of a character.
pub(crate) fn cut_to(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
