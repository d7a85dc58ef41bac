// SPDX-License-Identifier: Apache-2.0
//! Bells under the model checker (`--cfg loom`), and by hand.

use super::*;

#[cfg(loom)]
mod models {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::sync::publish;

    /// A ring reduced to its word, and the bell of its reader.
    struct Pair {
        word: AtomicU64,
        bell: Bell,
    }

    fn pair() -> Arc<Pair> {
        Arc::new(Pair {
            word: AtomicU64::new(0),
            bell: Bell::new(),
        })
    }

    /// What `ShmTransport::send` does. True if it woke the owner.
    fn send(pair: &Pair, slot: usize) -> bool {
        publish(&pair.word, 1);
        pair.bell.wants_ring(slot) && pair.bell.ring(slot)
    }

    fn sleeping_owner(watched: bool) {
        let pair = pair();
        if watched {
            pair.bell.watch(1);
        }
        let sender = thread::spawn({
            let pair = Arc::clone(&pair);
            move || send(&pair, 1)
        });
        let asleep = pair.bell.sleep(2) && (!watched || pair.word.load(Ordering::Acquire) == 0);
        let woken = sender.join().unwrap();
        assert!(!asleep || woken, "the owner sleeps and nobody wakes it");
        assert_eq!(
            pair.bell.wake(),
            woken,
            "the owner must know about the byte in its doorbell"
        );
    }

    #[test]
    fn no_wake_up_is_lost_when_watched() {
        loom::model(|| sleeping_owner(true));
    }

    #[test]
    fn no_wake_up_is_lost_when_not_watched() {
        loom::model(|| sleeping_owner(false));
    }

    #[test]
    fn one_of_two_senders_wakes() {
        loom::model(|| {
            let pair = pair();
            assert!(pair.bell.sleep(3));
            let senders = [1, 2].map(|slot| {
                let pair = Arc::clone(&pair);
                thread::spawn(move || pair.bell.ring(slot))
            });
            let woken = senders.map(|s| s.join().unwrap());
            assert_eq!(woken.iter().filter(|&&w| w).count(), 1);
        });
    }

    #[test]
    fn a_ring_that_is_no_longer_watched_is_not_forgotten() {
        loom::model(|| {
            let pair = pair();
            pair.bell.watch(1);
            let sender = thread::spawn({
                let pair = Arc::clone(&pair);
                move || send(&pair, 1)
            });
            pair.bell.unwatch(1);
            let seen = pair.word.load(Ordering::Acquire) != 0;
            sender.join().unwrap();
            assert!(seen || pair.bell.rung());
        });
    }

    #[test]
    fn no_bit_is_lost_while_taking() {
        loom::model(|| {
            let pair = pair();
            let senders = [1, 70].map(|slot| {
                let pair = Arc::clone(&pair);
                thread::spawn(move || pair.bell.ring(slot))
            });
            let mut found = Vec::new();
            pair.bell.take(|slot| found.push(slot));
            for sender in senders {
                sender.join().unwrap();
            }
            if pair.bell.rung() {
                pair.bell.take(|slot| found.push(slot));
            }
            found.sort_unstable();
            assert_eq!(found, [1, 70]);
        });
    }
}

#[cfg(not(loom))]
mod by_hand {
    use super::*;

    #[test]
    fn every_slot_has_its_bit() {
        let bell = Bell::new();
        let slots = [0, 1, 63, 64, 500, 64 * WORDS - 1];
        for slot in slots {
            assert!(bell.wants_ring(slot));
            assert!(!bell.ring(slot), "nobody sleeps");
        }
        let mut found = Vec::new();
        bell.take(|slot| found.push(slot));
        assert_eq!(found, slots);
        assert!(!bell.rung());
    }

    #[test]
    fn a_watched_slot_need_not_ring() {
        let bell = Bell::new();
        bell.watch(65);
        assert!(!bell.wants_ring(65));
        assert!(bell.wants_ring(1));
        bell.unwatch(65);
        assert!(bell.wants_ring(65));
    }

    #[test]
    fn sleeping_ends_watching_and_only_one_wakes() {
        let bell = Bell::new();
        bell.watch(3);
        assert!(bell.sleep(4));
        assert!(bell.wants_ring(3));
        assert!(bell.ring(3));
        assert!(!bell.ring(2));
        assert!(bell.wake(), "it was woken");
        assert!(!bell.sleep(4), "bits are there");
        assert!(!bell.wake(), "nobody woke it this time");
    }
}
