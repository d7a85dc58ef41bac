// SPDX-License-Identifier: Apache-2.0
//! What other processes write into memory that all processes of a node share.

/// A message that both of its ends copy.
pub(crate) fn assist(bytes: &[u8]) {
    let _ = isthmus_shm::fuzz_desk(bytes);
}

/// Messages of two, four and many pieces; what was at the desk before; who asks; and what happens: pieces of the
/// sender, words that change.
pub(crate) fn desks() -> Vec<Vec<u8>> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let overwriting = |what: u8, word: u64| [&[0, 0, what][..], &word.to_le_bytes(), &[0, 120, 0]].concat();
    // The least bits: what is left at the end. 152, 154: claims, 153, 155: done; the first of each changes bits, the
    // second all of the word.
    let events = [
        [0; 40].to_vec(),
        vec![0, 120, 0, 100],
        overwriting(152, 0xffff),
        overwriting(152, 1 << 16),
        overwriting(152, 1 << 32),
        overwriting(154, 1 << 32 | 4),
        overwriting(153, 1 << 16),
        overwriting(155, 0xffff),
    ];
    let mut all = Vec::new();
    for length in [0, 1 << 20, 64 << 20, u64::MAX] {
        for events in &events {
            let before = words(&[length, u64::from(u32::MAX) << 32, 3]);
            all.push([&before[..], &[0], events].concat());
            // A request with the receiver's number, of other addresses and another length.
            let request = words(&[0, u64::MAX - 4096, 1 << 40, 1 << 20]);
            all.push([&before[..], &[1], &request, events].concat());
        }
    }
    all
}
