// SPDX-License-Identifier: Apache-2.0
//! Who has to be looked at, and who has to be woken.
//!
//! A process looks directly at the rings of a few busy partners (it *watches* them) and at one word, the
//! *summary*, for all others. A sender that is not watched sets its bit in `bits` and then the bit of that word in the
//! summary.
//!
//! ```text
//!  watched  [16 x 64 bits]   bit s: the owner looks at the ring from slot s by itself      written by the owner
//!  summary  [64 bits]        bit w: bits[w] is not zero;  bit 63: the owner sleeps        written by all
//!  bits     [16 x 64 bits]   bit s: look at slot s: a record from it, or room for it      written by all
//! ```
//!
//! **Sender**, after it has published a record (a sequentially consistent store S1): loads `watched`
//! (sequentially consistent, S2). If its bit is clear, it [rings](Bell::ring): sets its bit, then
//! the summary's, and if that read-modify-write found the sleeping bit, clears it and wakes the owner (only who clears
//! it wakes).
//!
//! **Owner**, to sleep: clears `watched` (O1), sequentially consistent fence (O2), sets the sleeping bit (O3), gives up
//! if O3 found another bit, looks at the rings it watched (O4), gives up if there is something.
//!
//! No wake-up is lost: if S2 reads a set bit, S2 comes before O1 in the coherence order, hence S1 before O2, and O4
//! sees the record. Otherwise the sender changes the summary. Before O3: O3 finds the bit. After O3: the sender finds
//! the sleeping bit. The same argument with O1, O2 and a look at one ring makes it safe to stop watching one.
//!
//! Taking bits: the owner clears the summary bit before it takes the word; a sender sets the word before
//! the summary bit. So a bit that was set after the word was taken has a summary bit that is still to come or still
//! there.

use crate::sync::{AtomicU64, Ordering, fence};

/// Words of 64 slots in a bell.
pub(crate) const WORDS: usize = 16;

/// In the summary: the owner sleeps.
const SLEEPING: u64 = 1 << 63;

/// The bell of one process. See the module.
#[repr(C, align(128))]
pub(crate) struct Bell {
    watched: [AtomicU64; WORDS],
    summary: AtomicU64,
    bits: [AtomicU64; WORDS],
}

impl Bell {
    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Self {
        Self {
            watched: std::array::from_fn(|_| AtomicU64::new(0)),
            summary: AtomicU64::new(0),
            bits: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Sender: does the owner need to be told about a record that `slot` has just published with
    /// [`publish`](crate::sync::publish)?
    #[inline]
    pub(crate) fn wants_ring(&self, slot: usize) -> bool {
        self.watched[slot / 64].load(Ordering::SeqCst) & (1 << (slot % 64)) == 0
    }

    /// Sender: tells the owner to look at `slot`. True if the caller has to wake it.
    #[must_use]
    pub(crate) fn ring(&self, slot: usize) -> bool {
        let word = slot / 64;
        self.bits[word].fetch_or(1 << (slot % 64), Ordering::AcqRel);
        let before = self.summary.fetch_or(1 << word, Ordering::AcqRel);
        before & SLEEPING != 0 && self.summary.fetch_and(!SLEEPING, Ordering::AcqRel) & SLEEPING != 0
    }

    /// Owner: from now on it looks at `slot` by itself.
    pub(crate) fn watch(&self, slot: usize) {
        self.watched[slot / 64].fetch_or(1 << (slot % 64), Ordering::Relaxed);
    }

    /// Owner: no longer; it must look at the slot once more after this.
    pub(crate) fn unwatch(&self, slot: usize) {
        self.watched[slot / 64].fetch_and(!(1 << (slot % 64)), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Owner: is there something to take?
    #[inline]
    pub(crate) fn rung(&self) -> bool {
        self.summary.load(Ordering::Relaxed) & !SLEEPING != 0
    }

    /// Owner: takes the bits and calls `look` for each slot.
    pub(crate) fn take(&self, mut look: impl FnMut(usize)) {
        let mut words = self.summary.load(Ordering::Relaxed) & !SLEEPING;
        self.summary.fetch_and(!words, Ordering::AcqRel);
        while words != 0 {
            let word = words.trailing_zeros() as usize;
            words &= words - 1;
            if word >= WORDS {
                continue;
            }
            let mut bits = self.bits[word].swap(0, Ordering::AcqRel);
            while bits != 0 {
                look(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Owner: O1 to O3. False if something has been rung already. In both cases it counts as asleep, until
    /// [`Self::wake`], and nothing is watched any more.
    pub(crate) fn sleep(&self, processes: usize) -> bool {
        for word in &self.watched[..processes.div_ceil(64)] {
            word.store(0, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        self.summary.fetch_or(SLEEPING, Ordering::AcqRel) & !SLEEPING == 0
    }

    /// Owner: awake again. True if a sender has woken it, or is about to.
    pub(crate) fn wake(&self) -> bool {
        self.summary.fetch_and(!SLEEPING, Ordering::AcqRel) & SLEEPING == 0
    }
}

#[cfg(test)]
mod tests;
