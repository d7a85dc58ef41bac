// SPDX-License-Identifier: Apache-2.0
//! A message whose two ends share words that a third process overwrites while both are at work.

use std::cell::RefCell;

use super::{Desk, HelpWanted, Missing, SHORTEST, pieces};
use crate::sync::Ordering;

/// No message is longer.
const LONGEST: u64 = 100 << 30;

/// Numbers out of an input.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }
}

/// The sender, and whoever overwrites the words.
struct Others<'a> {
    desk: &'a Desk,
    input: Input<'a>,
    asked: HelpWanted,
    /// Nobody has done anything that is wrong.
    fair: bool,
    /// The sender could not write.
    failed: bool,
    written: u64,
}

impl Others<'_> {
    /// Something happens. False: nothing ever will again.
    fn act(&mut self) -> bool {
        let Some(what) = self.input.byte() else { return false };
        match what {
            0..=99 => self.give(true),
            100..=109 => self.give(false),
            110..=149 => {}
            _ => self.overwrite(what),
        }
        true
    }

    fn give(&mut self, can: bool) {
        let (source, target, length) = (self.asked.source, self.asked.target, self.asked.length);
        if self.failed {
            return;
        }
        let (mut bytes, mut tried) = (0, false);
        self.desk.give(&mut self.asked, |from, to, count| {
            let at = from - source;
            assert!(to - target == at && count > 0 && at <= length && count <= length - at);
            tried = true;
            bytes = if can { count } else { 0 };
            can
        });
        self.failed = tried && !can;
        self.written = self.written.saturating_add(bytes);
    }

    fn overwrite(&mut self, what: u8) {
        let Some(word) = self.input.word() else { return };
        self.fair = false;
        let words = [&self.desk.claims, &self.desk.done];
        let at = words[usize::from(what % 2)];
        let before = if what % 4 < 2 { at.load(Ordering::Relaxed) } else { 0 };
        at.store(before ^ word, Ordering::Relaxed);
    }
}

/// For fuzzing: nothing but the message is reached, and both ends come back, whatever others write; where they write
/// nothing the message is whole, copied once. Whether it came.
///
/// Length, the two words before, whether the request is that of the receiver; if not, number of the copy, addresses and
/// length in it; then what happens.
pub fn fuzz_desk(bytes: &[u8]) -> Option<bool> {
    let mut input = Input(bytes);
    let length = SHORTEST + input.word()? % LONGEST;
    let desk = Desk::with(input.word()?, input.word()?);
    let fair = input.byte()? % 2 == 0;
    let opened = desk.open(length);
    let mut asked = HelpWanted {
        slot: 0,
        copy: opened.copy,
        source: 0,
        target: 0,
        length,
        pieces: 0,
    };
    if !fair {
        asked.copy = input.word()? as u32;
        (asked.source, asked.target, asked.length) = (input.word()?, input.word()?, input.word()?);
    }
    let others = RefCell::new(Others {
        desk: &desk,
        input,
        asked,
        fair,
        failed: false,
        written: 0,
    });
    let (mut fetched, mut calls) = (0, 0);
    let fetch = |at: u64, count: u64| {
        assert!(count > 0 && at <= length && count <= length - at);
        (fetched, calls) = (fetched + count, calls + 1);
        assert!(calls <= u32::from(pieces(length)) + 1);
        others.borrow_mut().act();
        Ok::<(), ()>(())
    };
    let received = desk.receive(opened, fetch, || others.borrow_mut().act());
    let others = others.into_inner();
    if others.fair {
        assert_eq!(received, Ok(!others.failed));
        assert_eq!(fetched + others.written, length);
    }
    assert!(!matches!(received, Err(Missing::Failed(()))));
    Some(received.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuzz_target_sees_messages_come_and_words_found_out() {
        let begin = |fair: u8| [&(1_u64 << 20).to_le_bytes()[..], &[0; 16], &[fair]].concat();
        // Both take turns; the sender fails; nobody sends.
        assert_eq!(fuzz_desk(&[begin(0), vec![0; 20]].concat()), Some(true));
        assert_eq!(fuzz_desk(&[begin(0), vec![0, 100]].concat()), Some(true));
        assert_eq!(fuzz_desk(&begin(0)), Some(true));
        // The claims become ones of another generation; a request of another process.
        assert_eq!(fuzz_desk(&[begin(0), vec![150; 9]].concat()), Some(false));
        assert_eq!(fuzz_desk(&[begin(1), vec![0xff; 32], vec![0; 20]].concat()), Some(true));
        assert_eq!(fuzz_desk(&[0; 20]), None);
    }
}
