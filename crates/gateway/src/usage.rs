// SPDX-License-Identifier: Apache-2.0
//! What threads of a gateway use of the processors, and what these have left.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What a thread says of itself to the first one.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    thousandths: AtomicU32,
    heavy: AtomicU32,
}

impl Usage {
    /// Share of the time that it worked, and streams that are worth moving.
    pub(crate) fn set(&self, busy: f64, heavy: usize) {
        self.thousandths.store((busy * 1000.0) as u32, Ordering::Relaxed);
        self.heavy
            .store(u32::try_from(heavy).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// As it was set last.
    pub(crate) fn get(&self) -> (f64, usize) {
        let heavy = self.heavy.load(Ordering::Relaxed);
        let busy = f64::from(self.thousandths.load(Ordering::Relaxed)) / 1000.0;
        (busy, heavy as usize)
    }
}

/// Processor time of the calling thread.
pub(crate) struct OwnTime {
    at: Instant,
    used: Duration,
}

impl OwnTime {
    /// From now on.
    pub(crate) fn new() -> Self {
        Self {
            at: Instant::now(),
            used: used(),
        }
    }

    /// Share of the time since it was asked last in which this thread worked.
    pub(crate) fn busy(&mut self) -> f64 {
        let now = Self::new();
        let last = std::mem::replace(self, now);
        let (time, work) = (self.at - last.at, self.used.saturating_sub(last.used));
        if time.is_zero() {
            return 0.0;
        }
        (work.as_secs_f64() / time.as_secs_f64()).min(1.0)
    }
}

fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time in which the processors of this machine had nothing to do (`/proc/stat`).
#[derive(Debug, Default)]
pub(crate) struct Spare {
    idle: u64,
    all: u64,
}

impl Spare {
    /// Processors that were idle since this was asked last; `None` where the system does not tell.
    pub(crate) fn processors(&mut self) -> Option<f64> {
        self.update(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn update(&mut self, stat: &str) -> Option<f64> {
        let mut lines = stat.lines();
        let first = lines.next()?.strip_prefix("cpu ")?;
        // User, nice, system, idle, waiting for files, interrupts (two kinds), taken by other machines; guests are
        // counted as users already.
        let times: Vec<u64> = first
            .split_ascii_whitespace()
            .take(8)
            .map_while(|t| t.parse().ok())
            .collect();
        let (idle, all) = (times.get(3)? + times.get(4)?, times.iter().sum::<u64>());
        let processors = lines.take_while(|l| l.starts_with("cpu")).count();
        let last = std::mem::replace(self, Self { idle, all });
        let (idle, all) = (idle.saturating_sub(last.idle), all.saturating_sub(last.all));
        (all > 0).then(|| idle as f64 / all as f64 * processors as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_is_busy_and_one_that_sleeps_is_not() {
        let mut time = OwnTime::new();
        std::thread::sleep(Duration::from_millis(50));
        assert!(time.busy() < 0.5);
        let until = Instant::now() + Duration::from_millis(50);
        while Instant::now() < until {}
        assert!(time.busy() > 0.01);
    }

    #[test]
    fn idle_processors_are_counted() {
        let mut spare = Spare::default();
        let stat = |user: u64, idle: u64| {
            format!("cpu  {user} 0 0 {idle} 0 0 0 0 7 0\ncpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\nintr 1\n")
        };
        assert!(spare.update(&stat(100, 100)).is_some());
        assert_eq!(spare.update(&stat(400, 200)), Some(1.0));
        // No time has passed.
        assert_eq!(spare.update(&stat(400, 200)), None);
        for nonsense in ["", "cpu", "cpu  1 2", "cpu  a b c d e", "disk 1\n"] {
            assert_eq!(Spare::default().update(nonsense), None, "{nonsense}");
        }
    }
}
