// SPDX-License-Identifier: Apache-2.0
//! Why something is so, in a sentence for people.

use crate::codec::{DecodeError, Reader};

/// Longest reason text, bytes; longer ones are cut.
pub const MAX_REASON: usize = 4096;

/// Reads one.
pub(crate) fn read_reason(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    let reason = r.text("reason")?;
    match reason.len() {
        0..=MAX_REASON => Ok(reason),
        length => Err(DecodeError::Invalid {
            field: "reason",
            value: length as u64,
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
