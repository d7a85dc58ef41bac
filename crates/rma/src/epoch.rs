// SPDX-License-Identifier: Apache-2.0
//! What a process may do on a window now (MPI 5.0 section 12.5): one machine, whose wrong turns are MPI_ERR_RMA_SYNC.
//!
//! ```text
//!             fence                      start               lock                    lock_all
//!  Nothing -----------> Fence   Nothing -----> Start  Nothing ----> Locks   Nothing ---------> All
//!                       | ^ op, fence          |              | ^ lock, unlock      |
//!                       +-+                    complete       last unlock           unlock_all
//! ```
//! A fence closes an epoch and opens one. What it opens is there only if an operation follows before the next
//! synchronisation, so from a fence without operations one may go anywhere. Exposure (post, wait) goes beside it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_lock::shared::LockKind;

/// What was done to lock a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Its lock was taken.
    Lock(LockKind),
    /// The program has said that nobody else comes (MPI_MODE_NOCHECK).
    Nothing,
}

/// What this process may do to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Access {
    #[default]
    Nothing,
    /// After a fence; whether an operation has followed.
    Fence(bool),
    /// On these processes, between start and complete.
    Start(Vec<u32>),
    /// On those that are locked.
    Locks(BTreeMap<u32, Held>),
    /// On all.
    All(Held),
}

/// The epochs of a process on a window.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    access: Access,
    /// Between post and wait.
    exposed: bool,
}

/// The machine of a window, and what it has said last, which is all that most operations need to know.
#[derive(Default)]
pub(crate) struct Epoch {
    machine: Mutex<Epochs>,
    open: AtomicU64,
}

/// Operations need a closer look.
const CLOSED: u64 = 0;
/// They may go to all, after a fence that one has followed, or while all are locked.
const FENCE: u64 = 1;
const ALL: u64 = 2;
/// They may go to the process with the number that is left.
const ONE: u64 = 3;

impl Epoch {
    /// To change something.
    pub(crate) fn lock(&self) -> Changing<'_> {
        Changing {
            machine: self.machine.lock().unwrap_or_else(PoisonError::into_inner),
            open: &self.open,
        }
    }

    /// Whether an operation on a process is part of an epoch that is open, and needs nothing else. Otherwise the
    /// machine knows. `passive`: only while it is locked.
    #[inline]
    pub(crate) fn allow(&self, rank: u32, passive: bool) -> bool {
        let open = self.open.load(Ordering::Relaxed);
        open == ALL || open == FENCE && !passive || open == ONE + u64::from(rank)
    }
}

/// The machine, of which nobody else knows anything meanwhile.
pub(crate) struct Changing<'a> {
    machine: MutexGuard<'a, Epochs>,
    open: &'a AtomicU64,
}

impl Deref for Changing<'_> {
    type Target = Epochs;

    fn deref(&self) -> &Epochs {
        &self.machine
    }
}

impl DerefMut for Changing<'_> {
    fn deref_mut(&mut self) -> &mut Epochs {
        &mut self.machine
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.open.store(self.machine.access.open(), Ordering::Relaxed);
    }
}

impl Access {
    /// See [`Epoch::allow`].
    fn open(&self) -> u64 {
        match self {
            Self::Fence(true) => FENCE,
            Self::All(_) => ALL,
            Self::Locks(held) if held.len() == 1 => held.keys().next().map_or(CLOSED, |&rank| ONE + u64::from(rank)),
            _ => CLOSED,
        }
    }

    /// For sentences.
    fn name(&self) -> &'static str {
        match self {
            Self::Nothing => "no epoch is open",
            Self::Fence(false) => "MPI_Win_fence was called last",
            Self::Fence(true) => {
                "operations have followed the last MPI_Win_fence; another MPI_Win_fence must end their epoch first"
            }
            Self::Start(_) => "an epoch that MPI_Win_start began is open; MPI_Win_complete ends it",
            Self::Locks(_) => "a lock of MPI_Win_lock is held; MPI_Win_unlock ends it",
            Self::All(_) => "MPI_Win_lock_all was called; MPI_Win_unlock_all ends that",
        }
    }

    fn is_quiet(&self) -> bool {
        matches!(self, Self::Nothing | Self::Fence(false))
    }
}

fn wrong<T>(why: impl std::fmt::Display) -> Result<T> {
    fail!(abi::MPI_ERR_RMA_SYNC, "{why}")
}

impl Epochs {
    /// An operation on process `rank` begins. `passive`: only while it is locked. Gives whether the process may have to
    /// say first that it is exposed.
    pub(crate) fn operate(&mut self, rank: u32, passive: bool) -> Result<bool> {
        match &mut self.access {
            Access::Locks(held) if held.contains_key(&rank) => Ok(false),
            Access::All(_) => Ok(false),
            Access::Fence(_) | Access::Start(_) if passive => wrong(
                "an operation that gives a request may only be called between MPI_Win_lock or MPI_Win_lock_all and the \
                 unlock",
            ),
            Access::Fence(used) => {
                *used = true;
                Ok(false)
            }
            Access::Start(ranks) if ranks.contains(&rank) => Ok(true),
            Access::Start(_) => wrong(format_args!(
                "rank {rank} is not in the group that MPI_Win_start was given"
            )),
            Access::Locks(_) => wrong(format_args!("rank {rank} is not locked, others are")),
            Access::Nothing => wrong(
                "no epoch is open: call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all before operations",
            ),
        }
    }

    /// MPI_Win_fence; `succeeds`: whether operations may follow.
    pub(crate) fn fence(&mut self, succeeds: bool) -> Result<()> {
        if !matches!(self.access, Access::Nothing | Access::Fence(_)) {
            return wrong(self.access.name());
        }
        if self.exposed {
            return wrong("the window is exposed by MPI_Win_post; MPI_Win_wait ends that");
        }
        self.access = if succeeds {
            Access::Fence(false)
        } else {
            Access::Nothing
        };
        Ok(())
    }

    /// MPI_Win_start.
    pub(crate) fn start(&mut self, ranks: Vec<u32>) -> Result<()> {
        if !self.access.is_quiet() {
            return wrong(self.access.name());
        }
        self.access = Access::Start(ranks);
        Ok(())
    }

    /// MPI_Win_complete: the processes.
    pub(crate) fn complete(&mut self) -> Result<Vec<u32>> {
        match std::mem::take(&mut self.access) {
            Access::Start(ranks) => Ok(ranks),
            other => {
                self.access = other;
                wrong("MPI_Win_start was not called")
            }
        }
    }

    /// MPI_Win_post.
    pub(crate) fn post(&mut self) -> Result<()> {
        if self.exposed {
            return wrong("the window is exposed by MPI_Win_post already; MPI_Win_wait ends that");
        }
        if self.access == Access::Fence(true) {
            return wrong(self.access.name());
        }
        self.exposed = true;
        Ok(())
    }

    /// Whether MPI_Win_wait or MPI_Win_test may be called.
    pub(crate) fn check_exposed(&self) -> Result<()> {
        if self.exposed {
            return Ok(());
        }
        wrong("MPI_Win_post was not called")
    }

    /// The exposure has ended.
    pub(crate) fn hide(&mut self) {
        self.exposed = false;
    }

    /// MPI_Win_lock.
    pub(crate) fn lock(&mut self, rank: u32, held: Held) -> Result<()> {
        match &mut self.access {
            Access::Locks(locks) if locks.contains_key(&rank) => {
                return wrong(format_args!("rank {rank} is locked by this process already"));
            }
            Access::Locks(locks) => {
                locks.insert(rank, held);
            }
            quiet if quiet.is_quiet() => *quiet = Access::Locks(BTreeMap::from([(rank, held)])),
            other => return wrong(other.name()),
        }
        Ok(())
    }

    /// How a process is locked.
    pub(crate) fn held(&self, rank: u32) -> Option<Held> {
        match &self.access {
            Access::Locks(locks) => locks.get(&rank).copied(),
            Access::All(held) => Some(*held),
            _ => None,
        }
    }

    /// MPI_Win_unlock: what was held.
    pub(crate) fn unlock(&mut self, rank: u32) -> Result<Held> {
        let Access::Locks(locks) = &mut self.access else {
            return wrong(format_args!("rank {rank} is not locked: {}", self.access.name()));
        };
        let Some(held) = locks.remove(&rank) else {
            return wrong(format_args!("rank {rank} is not locked, others are"));
        };
        if locks.is_empty() {
            self.access = Access::Nothing;
        }
        Ok(held)
    }

    /// MPI_Win_lock_all.
    pub(crate) fn lock_all(&mut self, held: Held) -> Result<()> {
        if !self.access.is_quiet() {
            return wrong(self.access.name());
        }
        self.access = Access::All(held);
        Ok(())
    }

    /// MPI_Win_unlock_all: what was held of each.
    pub(crate) fn unlock_all(&mut self) -> Result<Held> {
        let Access::All(held) = self.access else {
            return wrong(format_args!("MPI_Win_lock_all was not called: {}", self.access.name()));
        };
        self.access = Access::Nothing;
        Ok(held)
    }

    /// MPI_Win_flush and its kin; `rank`: of one process.
    pub(crate) fn flush(&self, rank: Option<u32>) -> Result<()> {
        match (&self.access, rank) {
            (Access::All(_), _) | (Access::Locks(_), None) => Ok(()),
            (Access::Locks(locks), Some(rank)) if locks.contains_key(&rank) => Ok(()),
            (Access::Locks(_), Some(rank)) => wrong(format_args!("rank {rank} is not locked, others are")),
            (other, _) => wrong(format_args!("nothing is locked: {}", other.name())),
        }
    }

    /// MPI_Win_free.
    pub(crate) fn free(&self) -> Result<()> {
        if self.exposed {
            return wrong("the window is exposed by MPI_Win_post; MPI_Win_wait ends that");
        }
        match self.access {
            Access::Nothing | Access::Fence(false) => Ok(()),
            _ => wrong(self.access.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKEN: Held = Held::Lock(LockKind::Shared);

    fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
        let error = result.expect_err("refused");
        assert_eq!(error.class, abi::MPI_ERR_RMA_SYNC);
        error.message
    }

    #[test]
    fn a_fence_without_operations_lets_every_epoch_follow() {
        let mut epochs = Epochs::default();
        epochs.fence(true).unwrap();
        epochs.lock(3, TAKEN).unwrap();
        epochs.operate(3, true).unwrap();
        assert_eq!(epochs.unlock(3), Ok(TAKEN));
        epochs.fence(true).unwrap();
        epochs.start(vec![1]).unwrap();
        assert_eq!(epochs.complete(), Ok(vec![1]));
        epochs.fence(true).unwrap();
        epochs.operate(0, false).unwrap();
        for why in [
            refused(epochs.lock(0, TAKEN)),
            refused(epochs.lock_all(TAKEN)),
            refused(epochs.start(vec![])),
            refused(epochs.post()),
            refused(epochs.free()),
        ] {
            assert!(why.contains("another MPI_Win_fence"), "{why}");
        }
        epochs.fence(false).unwrap();
        assert!(refused(epochs.operate(0, false)).contains("no epoch"));
        epochs.free().unwrap();
    }

    #[test]
    fn locks_are_of_ranks_and_do_not_mix_with_a_lock_of_all() {
        let mut epochs = Epochs::default();
        assert!(refused(epochs.unlock(0)).contains("not locked"));
        assert!(refused(epochs.flush(Some(0))).contains("nothing is locked"));
        epochs.lock(0, TAKEN).unwrap();
        epochs.lock(2, Held::Nothing).unwrap();
        assert!(refused(epochs.lock(0, TAKEN)).contains("already"));
        assert!(refused(epochs.lock_all(TAKEN)).contains("MPI_Win_unlock"));
        assert!(refused(epochs.operate(1, false)).contains("rank 1 is not locked"));
        assert!(refused(epochs.flush(Some(1))).contains("rank 1"));
        epochs.flush(Some(2)).unwrap();
        epochs.flush(None).unwrap();
        refused(epochs.fence(true));
        refused(epochs.free());
        assert_eq!(epochs.unlock(2), Ok(Held::Nothing));
        assert_eq!(epochs.unlock(0), Ok(TAKEN));
        assert_eq!(epochs.access, Access::Nothing);
        epochs.lock_all(TAKEN).unwrap();
        refused(epochs.lock(0, TAKEN));
        refused(epochs.unlock(0));
        refused(epochs.lock_all(TAKEN));
        epochs.operate(7, true).unwrap();
        assert_eq!(epochs.unlock_all(), Ok(TAKEN));
        refused(epochs.unlock_all());
    }

    #[test]
    fn what_is_allowed_at_a_glance_is_what_the_machine_allows() {
        let epoch = Epoch::default();
        let allowed = |what: &str, expected: [bool; 3]| {
            let seen = [epoch.allow(0, false), epoch.allow(0, true), epoch.allow(1, true)];
            assert_eq!(seen, expected, "{what}");
        };
        allowed("nothing", [false; 3]);
        epoch.lock().fence(true).unwrap();
        allowed("a fence", [false; 3]);
        epoch.lock().operate(1, false).unwrap();
        allowed("a fence with an operation", [true, false, false]);
        epoch.lock().fence(false).unwrap();
        allowed("the last fence", [false; 3]);
        epoch.lock().lock(0, TAKEN).unwrap();
        allowed("a lock", [true, true, false]);
        epoch.lock().lock(1, TAKEN).unwrap();
        allowed("two locks need a look", [false; 3]);
        epoch.lock().unlock(0).unwrap();
        allowed("the other lock", [false, false, true]);
        epoch.lock().unlock(1).unwrap();
        epoch.lock().lock_all(TAKEN).unwrap();
        allowed("all", [true; 3]);
        epoch.lock().unlock_all().unwrap();
        epoch.lock().start(vec![0, 1]).unwrap();
        allowed("a start waits for posts", [false; 3]);
    }

    #[test]
    fn access_and_exposure_go_beside_each_other() {
        let mut epochs = Epochs::default();
        refused(epochs.complete());
        refused(epochs.check_exposed());
        epochs.post().unwrap();
        refused(epochs.post());
        epochs.start(vec![0, 4]).unwrap();
        refused(epochs.start(vec![0]));
        epochs.operate(4, false).unwrap();
        assert!(refused(epochs.operate(3, false)).contains("group"));
        assert!(refused(epochs.operate(4, true)).contains("request"));
        refused(epochs.fence(true));
        assert_eq!(epochs.complete(), Ok(vec![0, 4]));
        assert!(refused(epochs.fence(true)).contains("MPI_Win_wait"));
        refused(epochs.free());
        epochs.check_exposed().unwrap();
        epochs.hide();
        epochs.free().unwrap();
    }
}
