// SPDX-License-Identifier: Apache-2.0
//! What the reactor acts with: descriptors that are watched, the way to the main thread, the clock. Knows no channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isthmus_transport::Peer;
use rustix::io::Errno;

use super::clock::Clock;
use super::failure::Failure;
use super::handshake::Handshake;
use super::looks::Looks;
use super::slots::Slots;
use super::task::Task;
use crate::link::{Arrival, Link};
use crate::places::Places;
use crate::secure::Scratch;
use crate::socket::{Interest, Poller};

/// How often it is said what has passed, while something does.
const REPORT: Duration = Duration::from_secs(1);

/// Who does the reactor's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worker {
    /// The I/O thread.
    Thread,
    /// A thread of the program that has something to send.
    Sending,
    /// One that looks for arrivals, and takes them afterwards.
    Looking,
}

pub(super) struct Hands {
    pub(super) places: Arc<Places>,
    pub(super) link: Arc<Link>,
    pub(super) poller: Arc<Poller>,
    pub(super) slots: Slots<Task>,
    pub(super) scratch: Scratch,
    pub(super) arrivals: Vec<Arrival>,
    pub(super) clock: Clock,
    /// Who is at work.
    pub(super) worker: Worker,
    pub(super) looks: Looks,
    /// Reading has stopped because the main thread does not take what has arrived.
    pub(super) paused: bool,
    /// When to say next what has passed; `None`: nothing has since the last time.
    report_at: Option<Duration>,
}

impl Hands {
    pub(super) fn new(places: Arc<Places>, link: Arc<Link>) -> Result<Self, Errno> {
        Ok(Self {
            places,
            link,
            poller: Arc::new(Poller::new()?),
            slots: Slots::new(),
            scratch: Scratch::new(),
            arrivals: Vec::new(),
            clock: Clock::new(),
            worker: Worker::Thread,
            looks: Looks::default(),
            paused: false,
            report_at: None,
        })
    }

    /// Time that the process has lived through.
    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// What time it is for what is noted of a turn: one who looks reads the clock once.
    pub(super) fn time(&self) -> Duration {
        match self.worker {
            Worker::Looking => self.clock.turned(),
            Worker::Thread | Worker::Sending => self.clock.now(),
        }
    }

    /// Makes sure that deadlines are looked at at this time.
    pub(super) fn alarm(&mut self, at: Duration) {
        self.clock.alarm(at);
    }

    /// Hands arrivals over and says so. May run the engine, in the hook. Where the main thread does not take them
    /// reading stops; what is watched then changes at the end of the turn.
    pub(super) fn deliver(&mut self) {
        if self.arrivals.is_empty() {
            return;
        }
        self.paused |= self.link.deliver(&mut self.arrivals);
        self.link.announce(self.worker == Worker::Looking);
    }

    /// Lets the main thread see that this is so.
    pub(super) fn confirm(&self, word: impl FnOnce(&Link) -> &AtomicBool) {
        word(&self.link).store(true, Ordering::SeqCst);
        self.link.deliver(&mut Vec::new());
        self.link.announce(self.worker == Worker::Looking);
    }

    /// Something passes: it is to be said soon.
    pub(super) fn will_report(&mut self) {
        if self.report_at.is_none() {
            let at = self.now() + REPORT;
            self.report_at = Some(at);
            self.alarm(at);
        }
    }

    /// Whether it is to be said now.
    pub(super) fn reports(&mut self, now: Duration) -> bool {
        let due = self.report_at.take_if(|at| *at <= now).is_some();
        self.report_at.into_iter().for_each(|at| self.alarm(at));
        due
    }

    /// A handshake that this end begins, or that has come. Its number.
    pub(super) fn shake(&mut self, handshake: Handshake, interest: Interest) -> Result<u64, Failure> {
        let number = self.slots.insert(Task::Handshake(handshake));
        let Some(Task::Handshake(handshake)) = self.slots.get(number) else {
            return Err(Failure::Bug("a task that was just added is not there"));
        };
        let added = handshake.socket().map(|s| self.poller.add(s, number, interest));
        if !matches!(added, Some(Ok(()))) {
            self.slots.remove(number);
            return Err(Failure::Unwatched);
        }
        Ok(number)
    }

    /// Removes a handshake; its socket is closed unless it was taken out. Says whom it had dialled.
    pub(super) fn forget(&mut self, number: u64) -> Option<(Peer, usize)> {
        let Some(Task::Handshake(handshake)) = self.slots.remove(number) else {
            return None;
        };
        if let Some(socket) = handshake.socket() {
            self.poller.remove(socket);
        }
        handshake.dialled
    }

    /// Numbers of the handshakes that should be over by now. When the next one should.
    pub(super) fn late(&self, now: Duration) -> (Vec<u64>, Option<Duration>) {
        let handshakes = self.slots.iter().filter_map(|(number, task)| match task {
            Task::Handshake(handshake) => Some((number, handshake.deadline())),
            Task::Wide(..) | Task::Handing(_) => None,
        });
        let (late, others): (Vec<_>, Vec<_>) = handshakes.partition(|(_, deadline)| *deadline <= now);
        let next = others.into_iter().map(|(_, deadline)| deadline).min();
        (late.into_iter().map(|(number, _)| number).collect(), next)
    }
}
