// SPDX-License-Identifier: Apache-2.0
//! How much may wait for one peer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use isthmus_transport::Peer;

/// Bytes of frames for one peer at another site: those that wait to leave, and those that it has not acknowledged.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) peer: Peer,
    waiting: Level,
    kept: Level,
    refused: AtomicBool,
}

#[derive(Debug)]
struct Level {
    bytes: AtomicUsize,
    limit: usize,
}

impl Level {
    fn new(limit: usize) -> Self {
        let bytes = AtomicUsize::new(0);
        Self { bytes, limit }
    }

    /// Nothing at all leaves room for anything.
    fn fits(&self, more: usize) -> bool {
        let bytes = self.bytes.load(Ordering::SeqCst);
        bytes == 0 || bytes + more <= self.limit
    }

    fn is_low(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) <= self.limit / 2
    }
}

impl Flow {
    /// Bytes that may wait, and that may be unacknowledged (those that wait included).
    pub(crate) fn new(peer: Peer, waiting: usize, kept: usize) -> Self {
        Self {
            peer,
            waiting: Level::new(waiting),
            kept: Level::new(kept),
            refused: AtomicBool::new(false),
        }
    }

    /// Main thread: reserves room, or notes that it was refused. An empty queue takes anything.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let fits = || self.waiting.fits(bytes) && self.kept.fits(bytes);
        if !fits() {
            self.refused.store(true, Ordering::SeqCst);
            // The thread may have made room between the two: then nobody else would say so.
            if !fits() {
                return false;
            }
            self.refused.store(false, Ordering::SeqCst);
        }
        self.waiting.bytes.fetch_add(bytes, Ordering::SeqCst);
        self.kept.bytes.fetch_add(bytes, Ordering::SeqCst);
        true
    }

    /// I/O thread: these bytes have left. True when a refused sender should hear of it.
    pub(crate) fn left(&self, bytes: usize) -> bool {
        self.waiting.bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.ask_again()
    }

    /// I/O thread: these bytes were acknowledged. True when a refused sender should hear of it.
    pub(crate) fn acknowledged(&self, bytes: usize) -> bool {
        self.kept.bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.ask_again()
    }

    fn ask_again(&self) -> bool {
        self.waiting.is_low() && self.kept.is_low() && self.refused.swap(false, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_sender_hears_of_room() {
        let flow = Flow::new(Peer::new(1), 100, 300);
        assert!(flow.take(500), "an empty queue takes anything");
        assert!(!flow.take(1));
        assert!(!flow.left(440), "60 are left, above half");
        assert!(!flow.left(60), "not acknowledged");
        assert!(!flow.take(1));
        assert!(flow.acknowledged(500));
        assert!(flow.take(60) && flow.take(40) && !flow.take(1));
        assert!(flow.left(100));
        assert!(!flow.left(0), "told once");
    }
}
