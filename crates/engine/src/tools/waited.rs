// SPDX-License-Identifier: Apache-2.0
//! How long the calls of a process have waited, by call and by the level of the network that they waited for. A call
//! that does not wait pays nothing, one that waits two looks at the clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use isthmus_wire::time::{MOST_WAITS, OTHERS, Time, Wait};

/// Fruitless polls, with spare cores, from which on a call waits: what comes before is not counted. Looking at the
/// clock sooner would lengthen what is waited for.
pub(crate) const PROMPT: u64 = 64;
/// The same for short messages and operations in shared memory, which are polled for in a tighter loop: a microsecond
/// or two, where a whole round trip takes one and looking at the clock a tenth of that.
pub(crate) const PROMPT_DIRECTLY: u64 = 256;

/// What a call waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// A message, or room for one.
    #[default]
    Message,
    /// All or some of a group.
    Collective,
    /// All of a group that shares memory.
    Together,
}

/// What came last, and what it has completed: that is what a wait which ends was for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    /// Level of the network that it crossed.
    level: u8,
    what: Awaited,
}

/// The level of processes that share memory.
const NODE: u8 = 4;

impl Last {
    /// The same, but this is what it has completed.
    pub(super) fn completing(self, what: Awaited) -> Self {
        Self { what, ..self }
    }

    /// Something comes from this level.
    #[inline(always)]
    pub(crate) fn comes(&mut self, level: u8) {
        self.level = level;
    }

    /// A request is complete.
    #[inline]
    pub(crate) fn completes(&mut self, what: Awaited) {
        self.what = what;
        if what == Awaited::Together {
            *self = Self::TOGETHER;
        }
    }

    /// A collective operation in shared memory.
    pub(crate) const TOGETHER: Self = Self {
        level: NODE,
        what: Awaited::Together,
    };
}

impl Default for Last {
    fn default() -> Self {
        Self {
            level: NODE,
            what: Awaited::Message,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct WaitTotal {
    call: &'static str,
    what: Awaited,
    level: u8,
    times: u64,
    nanoseconds: u64,
}

#[derive(Debug)]
struct Inner {
    began: Instant,
    /// When the wait that goes on began, nanoseconds since then and 1; 0: none does.
    since: AtomicU64,
    /// The MPI function that the calling thread is in.
    call: fn() -> &'static str,
    rows: Mutex<Vec<WaitTotal>>,
}

/// The waits of a process, for threads without the engine too.
#[derive(Clone, Debug)]
pub(crate) struct Waited(Arc<Inner>);

impl Waited {
    pub(crate) fn new(call: fn() -> &'static str) -> Self {
        Self(Arc::new(Inner {
            began: Instant::now(),
            since: AtomicU64::new(0),
            call,
            rows: Mutex::default(),
        }))
    }

    /// The MPI function that the calling thread is in.
    pub(crate) fn call(&self) -> &'static str {
        (self.0.call)()
    }

    fn rows(&self) -> MutexGuard<'_, Vec<WaitTotal>> {
        // A panic elsewhere cannot leave them in a bad state.
        self.0.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins to wait. Of several threads that wait the last one counts as long as it does.
    #[cold]
    pub(crate) fn begins(&self) -> Instant {
        let now = Instant::now();
        let since = nanoseconds(now.saturating_duration_since(self.0.began));
        self.0.since.store(since.saturating_add(1), Ordering::Relaxed);
        now
    }

    /// It has waited for this; `over`: as a whole, otherwise the wait goes on in another way.
    #[cold]
    pub(crate) fn ends(&self, began: Instant, last: Last, over: bool) {
        let Last { level, what } = last;
        self.0.since.store(0, Ordering::Relaxed);
        let (call, time) = (self.call(), nanoseconds(began.elapsed()));
        let mut rows = self.rows();
        let same = |row: &&mut WaitTotal| std::ptr::eq(row.call, call) && (row.what, row.level) == (what, level);
        if let Some(row) = rows.iter_mut().find(same) {
            row.times += u64::from(over);
            row.nanoseconds = row.nanoseconds.saturating_add(time);
            return;
        }
        // The last one takes those that find no room.
        if rows.len() == MOST_WAITS {
            if let Some(row) = rows.last_mut() {
                row.call = OTHERS;
                row.times += u64::from(over);
                row.nanoseconds = row.nanoseconds.saturating_add(time);
            }
            return;
        }
        rows.push(WaitTotal {
            call,
            what,
            level,
            times: u64::from(over),
            nanoseconds: time,
        });
    }

    /// What was counted so far.
    pub(crate) fn time(&self) -> Time {
        let elapsed = nanoseconds(self.0.began.elapsed());
        let since = self.0.since.load(Ordering::Relaxed);
        let rows = self.rows();
        let waits = rows.iter().map(|row| Wait {
            call: row.call.to_owned(),
            collective: row.what != Awaited::Message,
            level: row.level,
            times: row.times,
            nanoseconds: row.nanoseconds,
        });
        Time {
            processes: 1,
            elapsed,
            going_on: if since == 0 {
                0
            } else {
                elapsed.saturating_sub(since - 1)
            },
            waits: waits.collect(),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_by_call_kind_and_level() {
        let waited = Waited::new(|| "MPI_Recv");
        let began = waited.begins();
        assert!(waited.time().waits.is_empty());
        let far = Last {
            level: 0,
            what: Awaited::Message,
        };
        waited.ends(began, far, true);
        waited.ends(began, far, false);
        waited.ends(began, Last::TOGETHER, true);
        let time = waited.time();
        let rows: Vec<_> = time
            .waits
            .iter()
            .map(|w| (w.call.as_str(), w.collective, w.level, w.times))
            .collect();
        assert_eq!(rows, [("MPI_Recv", false, 0, 1), ("MPI_Recv", true, 4, 1)]);
        assert_eq!((time.processes, time.going_on), (1, 0));
    }

    #[test]
    fn a_wait_that_goes_on_counts() {
        let waited = Waited::new(|| "MPI_Recv");
        let began = waited.begins();
        while began.elapsed().is_zero() {}
        let time = waited.time();
        assert!(time.going_on > 0 && time.going_on <= time.elapsed);
    }
}
