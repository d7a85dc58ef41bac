// SPDX-License-Identifier: Apache-2.0
//! Words of the user that need not be UTF-8.

use isthmus_wire::word;

/// Words of the system, as text and back.
pub(crate) fn words(bytes: &[u8]) {
    let text = word::from_bytes(bytes);
    assert_eq!(word::to_bytes(&text), bytes);
    assert!(!word::show(&text).chars().any(word::stands_for_a_byte));
    if let Ok(own) = std::str::from_utf8(bytes) {
        // Any text that comes from a peer is a word.
        assert_eq!(
            word::to_bytes(own),
            word::to_bytes(&word::from_bytes(&word::to_bytes(own)))
        );
    }
}

pub(crate) fn odd_words() -> Vec<Vec<u8>> {
    let own = char::from_u32(word::FIRST).unwrap_or_default().to_string();
    ["plain", "gr\u{fc}n", &own]
        .map(|text| text.as_bytes().to_vec())
        .into_iter()
        .chain([b"d\xe9p\xf4t".to_vec(), b"\xf4\x8f\xa2".to_vec()])
        .collect()
}
