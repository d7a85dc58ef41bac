// SPDX-License-Identifier: Apache-2.0
//! Scratch memory of plans and copies that are sent, kept for the next operation: fresh memory costs a page fault for
//! every 4 KiB when it is touched first, which all processes of a node pay at the same moment (24 processes on 2
//! processors that reduce 16 MiB over three sites: 0.86 s, and 0.84 s with memory that is kept).

use isthmus_datatype::raw::OwnMemory;

/// Shorter memory costs little.
const LEAST: usize = 64 << 10;
/// Most that is kept, bytes: what the longest pipelines use.
const MOST: usize = 32 << 20;

/// What was used and is not needed now, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    kept: Vec<OwnMemory>,
}

impl Spare {
    /// The bytes `low .. high` around an origin, with any content; `None`: there is no such memory. How much it is may
    /// be what others say.
    pub(crate) fn take(&mut self, low: isize, high: isize) -> Option<OwnMemory> {
        let fits = |memory: &OwnMemory| memory.bounds() == (low, high) && memory.is_unshared();
        match self.kept.iter().position(fits) {
            Some(place) => Some(self.kept.remove(place)),
            None => OwnMemory::try_new(low, high),
        }
    }

    /// Something may still use it: then it is not given out before that has ended.
    pub(crate) fn give_back(&mut self, memory: OwnMemory) {
        let bytes = |memory: &OwnMemory| memory.bounds().0.abs_diff(memory.bounds().1);
        if !(LEAST..=MOST).contains(&bytes(&memory)) {
            return;
        }
        self.kept.push(memory);
        let mut all: usize = self.kept.iter().map(bytes).sum();
        while all > MOST {
            all -= bytes(&self.kept.remove(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::raw::ReadMemory;

    use super::*;

    #[test]
    fn memory_is_used_again_when_nobody_else_has_it() {
        let mut spare = Spare::default();
        let size = LEAST as isize;
        let [first, second] = [(); 2].map(|()| spare.take(0, size).expect("memory"));
        let mut place = first.memory();
        let user = second.clone();
        spare.give_back(second);
        spare.give_back(first);
        place.write(0, &[7]);
        drop(place);
        assert_eq!(
            spare.take(0, size).expect("memory").content()[0],
            7,
            "the one that is free"
        );
        assert_eq!(spare.take(0, size).expect("memory").content()[0], 0, "a new one");
        drop(user);
        assert_eq!(spare.kept.len(), 1);
        spare.take(0, size);
        assert_eq!(spare.kept.len(), 0);
    }

    #[test]
    fn what_is_read_keeps_its_memory_until_it_has_left() {
        let mut spare = Spare::default();
        let size = 2 * LEAST as isize;
        let mut copy = |byte| {
            let memory = spare.take(0, size).expect("memory");
            memory.memory().write(0, &[byte; 2 * LEAST]);
            let reading = memory.reading();
            spare.give_back(memory);
            reading
        };
        let all_are = |copy: &ReadMemory, byte| {
            let same = |bytes: &[u8]| bytes.iter().all(|b| *b == byte);
            copy.with(0, 2 * LEAST, same)
        };
        let (first, second) = (copy(1), copy(2));
        assert!(all_are(&first, 1) && all_are(&second, 2));
        let place = first.address();
        drop(first);
        let third = copy(3);
        assert_eq!(third.address(), place, "used again");
        assert!(all_are(&second, 2) && all_are(&third, 3));
    }

    #[test]
    fn memory_that_there_is_not_ends_nobody() {
        assert!(Spare::default().take(0, isize::MAX - 64).is_none());
        assert!(Spare::default().take(isize::MIN, isize::MAX).is_none());
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut spare = Spare::default();
        for _ in 0..100 {
            spare.give_back(OwnMemory::new(0, 1 << 20));
        }
        spare.give_back(OwnMemory::new(0, 8));
        spare.give_back(OwnMemory::new(0, 1 << 30));
        assert_eq!(spare.kept.len(), MOST >> 20);
    }
}
