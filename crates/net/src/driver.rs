// SPDX-License-Identifier: Apache-2.0
//! Who does the work of the reactor: the I/O thread while the program computes, and a thread of the program that waits.
//!
//! A message that passes from one thread to another costs a wake-up at each end, several times what TLS costs. So
//! whoever waits for messages of other sites looks at the connections itself, and what it sends leaves at once.
//!
//! ```text
//!   program waits      does the work (`turn`); the thread rests, and looks now and then whether the program still does
//!   program sleeps     wakes when a connection is readable; the thread rests until its next deadline
//!   program computes   the thread, which has seen no turn for a while, does the work
//! ```
//! One at a time works, under a lock for which the program never waits: if it is taken, the work is being done.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use isthmus_lock::{spawn_quiet, untrapped};
use isthmus_transport::wait as sleep_on;

use crate::link::{Command, Link};
use crate::reactor::{Reactor, Worker};
use crate::socket::{Poller, Ready};

/// How long the thread rests at least before it looks whether the program still does its work: what the program's
/// messages may be delayed by when it begins to compute.
const REST: Duration = Duration::from_micros(500);
/// The same at most: of a program that has done the work for long, a part of that time. Each look takes a processor
/// from somebody who may need it.
const LONGEST_REST: Duration = Duration::from_millis(4);
const PART: u32 = 16;

/// How long the thread rests, of a program that has done its work for so long without a break.
fn rest_after(driven: Duration) -> Duration {
    (driven / PART).clamp(REST, LONGEST_REST)
}

/// The reactor, and memory for its turns.
struct Work {
    reactor: Reactor,
    ready: Vec<Ready>,
    commands: Vec<Command>,
}

pub(crate) struct Driver {
    link: Arc<Link>,
    poller: Arc<Poller>,
    work: Mutex<Work>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Driver")
    }
}

impl Driver {
    fn new(link: Arc<Link>, reactor: Reactor) -> Self {
        Self {
            link,
            poller: reactor.poller(),
            work: Mutex::new(Work {
                reactor,
                ready: Vec::new(),
                commands: Vec::new(),
            }),
        }
    }

    /// What is readable when there may be work.
    pub(crate) fn poller(&self) -> &Poller {
        &self.poller
    }

    /// A panic has ended the process by then.
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a thread of the program: does what there is to do; one that looks for arrivals looks at the connections,
    /// too. False: somebody else is doing it.
    pub(crate) fn turn(&self, by: Worker) -> bool {
        let Ok(mut work) = self.work.try_lock() else {
            return false;
        };
        self.link.drive();
        let Work {
            reactor,
            ready,
            commands,
        } = &mut *work;
        ready.clear();
        // Rates are reckoned there; the program may want exceptions of its own to trap.
        untrapped(|| reactor.turn(ready, commands, by));
        true
    }

    /// The I/O thread: works until told to stop.
    fn run(&self) {
        crate::turns::short_turns();
        let mut ready = Vec::new();
        let mut driven = Duration::ZERO;
        while !self.link.stop.load(Ordering::SeqCst) {
            if self.link.is_driven() {
                driven = self.rest(&mut ready, driven);
                continue;
            }
            driven = Duration::ZERO;
            let timeout = self.work().reactor.timeout();
            self.poller.wait(&mut ready, timeout);
            self.link.woke();
            // Who drives, or sleeps until something comes, sees the same.
            if !self.link.is_driven() && (ready.is_empty() || !self.link.rest_for_sleeper()) {
                self.turn_of_thread(&mut ready);
            }
        }
    }

    fn turn_of_thread(&self, ready: &mut Vec<Ready>) {
        let Work { reactor, commands, .. } = &mut *self.work();
        reactor.turn(ready, commands, Worker::Thread);
    }

    /// When there is something to do next; `Some(None)`: never. Who does the work now sees deadlines itself, and is not
    /// to be made to wake whoever waits for that.
    fn deadline(&self) -> Option<Option<Duration>> {
        match self.work.try_lock() {
            Ok(work) => Some(work.reactor.timeout()),
            Err(TryLockError::Poisoned(work)) => Some(work.into_inner().reactor.timeout()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits while the program does the work: for a moment, or to the next deadline while the program sleeps, when
    /// nobody makes new ones. For how long the program has done it then, which had been so long before.
    fn rest(&self, ready: &mut Vec<Ready>, driven: Duration) -> Duration {
        let (before, bell) = (self.link.turns(), self.link.thread_bell());
        bell.quiet();
        let moment = rest_after(driven);
        let time = match self.deadline() {
            Some(deadline) if self.link.begins_long_rest(before) => deadline,
            Some(Some(deadline)) => Some(deadline.min(moment)),
            _ => Some(moment),
        };
        if self.link.is_driven() {
            sleep_on(&[bell.as_fd()], time);
        }
        self.link.ends_long_rest();
        self.link.woke();
        if self.link.turns() == before {
            self.link.leave_to_thread();
            // Deadlines, and commands of those who do not drive. Nobody is given up before what has come was seen.
            self.poller.wait(ready, Some(Duration::ZERO));
            self.turn_of_thread(ready);
            return Duration::ZERO;
        }
        driven + time.unwrap_or(moment).min(moment)
    }
}

/// The running thread. It ends when the last transport that holds this is dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) link: Arc<Link>,
    pub(crate) driver: Arc<Driver>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Handle {
    pub(crate) fn spawn(link: Arc<Link>, reactor: Reactor) -> std::io::Result<Self> {
        let driver = Arc::new(Driver::new(link.clone(), reactor));
        let work = driver.clone();
        let thread = spawn_quiet("isthmus-net", move || work.run())?;
        Ok(Self {
            link,
            driver,
            thread: Mutex::new(Some(thread)),
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.link.stop.store(true, Ordering::SeqCst);
        self.link.thread_bell().ring();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The hook may own the last transport; a thread cannot wait for itself.
        if let Some(thread) = thread.filter(|t| t.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_rests_longer_the_longer_the_program_does_the_work_and_never_long() {
        let ms = Duration::from_millis;
        assert_eq!(rest_after(Duration::ZERO), REST);
        assert_eq!(rest_after(ms(32)), ms(2));
        assert_eq!(rest_after(Duration::from_secs(100)), LONGEST_REST);
    }
}
