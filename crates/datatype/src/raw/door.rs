// SPDX-License-Identifier: Apache-2.0
//! The door to library memory: it knows who has which bytes.
//!
//! A *copy* is done at the door: while it lasts nobody else comes in, so copies take turns. Bytes that are *lent* to a
//! closure, or [exposed](super::Exposed), are noted, with what is done with them: many may read a byte at once, or one
//! may change it. Whoever wants a
//! byte against that is refused, a copy too: a panic before anything is touched, which is a bug of ours, as it is where
//! a `RefCell` is borrowed twice. Nobody waits for what is lent, lest two threads wait for each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What somebody does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Reads them.
    Read,
    /// Writes them, or both.
    Change,
}

/// Addresses, the first and one behind the last, and what is wanted of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    first: usize,
    end: usize,
    wish: Wish,
}

impl Claim {
    /// `length` bytes from there on.
    #[inline]
    pub(super) fn new(first: *const u8, length: usize, wish: Wish) -> Self {
        let first = first.addr();
        Self {
            first,
            end: first + length,
            wish,
        }
    }

    #[inline]
    fn excludes(&self, other: &Self) -> bool {
        let shared = self.first.max(other.first) < self.end.min(other.end);
        shared && (self.wish == Wish::Change || other.wish == Wish::Change)
    }
}

/// What is lent. There is hardly ever more than one claim at a time, which needs no memory of its own.
#[derive(Debug, Default)]
pub(super) struct Claims {
    one: Option<Claim>,
    more: Vec<Claim>,
}

impl Claims {
    #[inline]
    fn admit(&self, claim: &Claim) {
        if self.one.is_some() || !self.more.is_empty() {
            let excluded = self.one.iter().chain(&self.more).any(|lent| lent.excludes(claim));
            assert!(!excluded, "memory that is lent already");
        }
    }

    fn insert(&mut self, claim: Claim) {
        if self.one.is_none() {
            self.one = Some(claim);
        } else {
            self.more.push(claim);
        }
    }

    /// Claims that are equal are worth the same.
    fn remove(&mut self, claim: &Claim) {
        if self.one.as_ref() == Some(claim) {
            self.one = None;
        } else if let Some(at) = self.more.iter().position(|lent| lent == claim) {
            self.more.swap_remove(at);
        }
    }
}

/// The door of one piece of memory.
#[derive(Debug, Default)]
pub(super) struct Door(Mutex<Claims>);

/// Nobody else comes in as long as this lives.
pub(super) type Turn<'a> = MutexGuard<'a, Claims>;

impl Door {
    #[inline]
    fn open(&self) -> Turn<'_> {
        // Who was refused has changed nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a copy of bytes that nobody has against it. It must call nobody.
    #[inline]
    pub(super) fn turn(&self, claims: &[Claim]) -> Turn<'_> {
        let turn = self.open();
        claims.iter().for_each(|claim| turn.admit(claim));
        turn
    }

    /// Lends bytes that nobody has against it.
    #[inline]
    pub(super) fn lend(&self, claim: Claim) -> Lending<'_> {
        self.expose(claim);
        Lending { door: self, claim }
    }

    /// Notes bytes that nobody has against it as lent, until the claim is [taken back](Self::conceal).
    #[inline]
    pub(super) fn expose(&self, claim: Claim) {
        self.turn(&[claim]).insert(claim);
    }

    /// Ends a claim.
    pub(super) fn conceal(&self, claim: &Claim) {
        self.open().remove(claim);
    }
}

/// Bytes that are lent, until this is dropped.
pub(super) struct Lending<'a> {
    door: &'a Door,
    claim: Claim,
}

impl Drop for Lending<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        self.door.conceal(&self.claim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: *const u8 = std::ptr::without_provenance(100);

    fn claim(at: usize, length: usize, wish: Wish) -> Claim {
        Claim::new(BYTES.wrapping_add(at), length, wish)
    }

    fn refused(door: &Door, claim: Claim) -> bool {
        let copy = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(door.turn(&[claim])))).is_err();
        let lent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(door.lend(claim)))).is_err();
        assert_eq!(copy, lent);
        copy
    }

    #[test]
    fn many_read_or_one_changes() {
        let door = Door::default();
        let one = door.lend(claim(0, 10, Wish::Read));
        let two = door.lend(claim(5, 10, Wish::Read));
        assert!(!refused(&door, claim(0, 20, Wish::Read)));
        assert!(refused(&door, claim(9, 1, Wish::Change)));
        drop(one);
        assert!(refused(&door, claim(9, 1, Wish::Change)), "the other one still reads");
        assert!(!refused(&door, claim(0, 5, Wish::Change)));
        drop(two);
        assert!(!refused(&door, claim(9, 1, Wish::Change)));

        let changing = door.lend(claim(0, 10, Wish::Change));
        assert!(refused(&door, claim(9, 5, Wish::Read)) && refused(&door, claim(0, 1, Wish::Change)));
        assert!(!refused(&door, claim(10, 5, Wish::Change)) && !refused(&door, claim(5, 0, Wish::Change)));
        drop(changing);
        assert!(!refused(&door, claim(9, 5, Wish::Read)));
    }

    #[test]
    fn equal_claims_are_counted() {
        let door = Door::default();
        let same = claim(0, 8, Wish::Read);
        let many: Vec<Lending<'_>> = (0..5).map(|_| door.lend(same)).collect();
        for lending in many {
            assert!(refused(&door, claim(7, 1, Wish::Change)));
            drop(lending);
        }
        assert!(!refused(&door, claim(7, 1, Wish::Change)));
    }

    #[test]
    fn other_threads_are_refused_too() {
        let door = Door::default();
        let _lent = door.lend(claim(0, 8, Wish::Read));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| refused(&door, claim(0, 8, Wish::Change)));
            assert!(other.join().unwrap());
        });
    }
}
