// SPDX-License-Identifier: Apache-2.0
//! Fences, locks, flushes (MPI 5.0 section 12.5). Operations have been done when their calls return, so what is left is
//! that processes wait for each other, and that they see what others have written.

use std::sync::atomic::{Ordering, fence};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::members;
use isthmus_lock::shared::LockKind;

use crate::asserts::{FENCE, LOCK, check_assert};
use crate::epoch::Held;
use crate::far;
use crate::wait;
use crate::window::Window;

fn held(assert: i32, kind: LockKind) -> Result<Held> {
    check_assert(assert, LOCK, "MPI_MODE_NOCHECK")?;
    Ok(match assert & abi::MPI_MODE_NOCHECK {
        0 => Held::Lock(kind),
        _ => Held::Nothing,
    })
}

impl Window {
    /// MPI_Win_fence; collective. It waits for all whatever is asserted, so an assert that is not true does no harm.
    pub fn fence(&self, assert: i32) -> Result<()> {
        check_assert(
            assert,
            FENCE,
            "MPI_MODE_NOSTORE, MPI_MODE_NOPUT, MPI_MODE_NOPRECEDE and MPI_MODE_NOSUCCEED",
        )?;
        self.epochs.lock().fence(assert & abi::MPI_MODE_NOSUCCEED == 0)?;
        fence(Ordering::SeqCst);
        match &self.far {
            Some(far) => far::meet(self, far)?,
            None => members::meet(self.world, &self.comm)?,
        }
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// MPI_Win_sync.
    pub fn sync(&self) {
        fence(Ordering::SeqCst);
    }

    /// MPI_Win_lock.
    pub fn lock(&self, kind: LockKind, rank: i32, assert: i32) -> Result<()> {
        let held = held(assert, kind)?;
        let Some(rank) = self.target("rank", rank)? else {
            return Ok(());
        };
        self.epochs.lock().lock(rank, held)?;
        if held != Held::Nothing && !self.is_far(rank) {
            far::order::take_called_for(self);
        }
        let taken = take(self, rank, held);
        if taken.is_err() {
            self.epochs.lock().unlock(rank)?;
        }
        taken
    }

    /// MPI_Win_unlock.
    pub fn unlock(&self, rank: i32) -> Result<()> {
        if let Some(rank) = self.target("rank", rank)? {
            let held = self.epochs.lock().unlock(rank)?;
            give_back(self, rank, held);
            far::order::give_up(self, rank);
            far::settle(self, Some(rank), true)?;
        }
        Ok(())
    }

    /// MPI_Win_lock_all.
    pub fn lock_all(&self, assert: i32) -> Result<()> {
        let kind = match self.far {
            // Those of one memory are locked in the order of their ranks, whoever does it.
            None => LockKind::Shared,
            Some(_) => LockKind::All,
        };
        let held = held(assert, kind)?;
        self.epochs.lock().lock_all(held)?;
        if held != Held::Nothing {
            far::order::take_called_for(self);
        }
        for rank in 0..self.comm.size() {
            if let Err(error) = take(self, rank, held) {
                (0..rank).for_each(|rank| give_back(self, rank, held));
                self.epochs.lock().unlock_all()?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// MPI_Win_unlock_all.
    pub fn unlock_all(&self) -> Result<()> {
        let held = self.epochs.lock().unlock_all()?;
        (0..self.comm.size()).for_each(|rank| give_back(self, rank, held));
        far::settle(self, None, true)
    }

    /// MPI_Win_flush; `None`: of all.
    #[inline]
    pub fn flush(&self, rank: Option<i32>) -> Result<()> {
        match flushed(self, rank)? {
            Flushed::Nobody => Ok(()),
            Flushed::One(rank) => far::settle(self, Some(rank), false),
            Flushed::All => far::settle(self, None, false),
        }
    }

    /// MPI_Win_flush_local, which lets the memory of others be; `None`: of all.
    #[inline]
    pub fn flush_local(&self, rank: Option<i32>) -> Result<()> {
        match flushed(self, rank)? {
            Flushed::Nobody => Ok(()),
            Flushed::One(rank) if !self.is_far(rank) => Ok(()),
            Flushed::One(rank) => far::settle_here(self, Some(rank)),
            Flushed::All => far::settle_here(self, None),
        }
    }
}

/// Whose operations a flush is about.
enum Flushed {
    /// MPI_PROC_NULL's.
    Nobody,
    One(u32),
    All,
}

#[inline]
fn flushed(window: &Window, rank: Option<i32>) -> Result<Flushed> {
    let of = match rank {
        None => Flushed::All,
        Some(rank) => match window.target("rank", rank)? {
            None => return Ok(Flushed::Nobody),
            Some(rank) => Flushed::One(rank),
        },
    };
    match of {
        Flushed::One(rank) if window.epochs.allow(rank, true) => {}
        Flushed::One(rank) => window.epochs.lock().flush(Some(rank))?,
        _ => window.epochs.lock().flush(None)?,
    }
    fence(Ordering::SeqCst);
    Ok(of)
}

/// Waits for the lock of a process. That of one on another node is asked for with the first operation.
fn take(window: &Window, rank: u32, held: Held) -> Result<()> {
    if window.is_far(rank) {
        if let Held::Lock(LockKind::Shared | LockKind::Exclusive) = held {
            far::called::call_for(window, rank);
        }
        return Ok(());
    }
    if let Held::Lock(kind) = held {
        let lock = window.store.lock(rank);
        let me = window.comm.rank();
        let ticket = lock.join(me, kind);
        wait::for_lock(window.world, &window.comm, rank, lock, || {
            lock.let_in(me, kind, ticket).then_some(())
        })?;
    }
    fence(Ordering::SeqCst);
    Ok(())
}

fn give_back(window: &Window, rank: u32, held: Held) {
    fence(Ordering::SeqCst);
    if window.is_far(rank) {
        return;
    }
    if let Held::Lock(kind) = held {
        let lock = window.store.lock(rank);
        lock.give_back(window.comm.rank(), kind);
        fence(Ordering::SeqCst);
        if lock.is_wanted_far() {
            far::let_in(window, rank);
        }
    }
}
