// SPDX-License-Identifier: Apache-2.0
//! Who of a meeting still lives. No launcher knows the processes of both jobs, and memory says nothing when a process
//! dies, so the kernel is asked: a descriptor of each process, which is readable once that has ended. A launcher that
//! knows the process says more of its death than that, so it is given time to.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

/// Polls in vain between two looks: 50 µs, of which a look, a system call, is 0.1 (`docs/measured/waiting.md`). A death
/// is told when its grace is over, which is seconds later, so that it does not matter to be 50 µs late, or ten times
/// that.
const POLLS: u32 = 4096;

/// Where the own bell and the alarm are among those that are watched.
const BELL: u64 = u64::MAX;
const ALARM: u64 = BELL - 1;

/// The processes that a transport watches, and its bell.
pub(crate) struct Vigil {
    all: OwnedFd,
    /// Slots and their processes, as long as they live.
    living: Vec<(usize, OwnedFd)>,
    /// Slots whose processes have ended, and when that is told.
    dead: Vec<(usize, Instant)>,
    /// How long others have time to tell it.
    grace: Duration,
    /// What wakes this process when it is to tell.
    alarm: OwnedFd,
    polls: u32,
}

impl Vigil {
    /// Watches a bell, too. `grace`: how long others have time to tell of a death.
    pub(crate) fn new(bell: BorrowedFd<'_>, grace: Duration) -> Result<Self, Errno> {
        let all = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&all, bell, EventData::new_u64(BELL), EventFlags::IN)?;
        let alarm = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        epoll::add(&all, &alarm, EventData::new_u64(ALARM), EventFlags::IN)?;
        Ok(Self {
            all,
            living: Vec::new(),
            dead: Vec::new(),
            grace,
            alarm,
            polls: 0,
        })
    }

    /// The process in `slot` is the one that has this number now. Its death is not told before [`Vigil::tell_of`].
    pub(crate) fn watch(&mut self, slot: usize, process: u32) -> Result<(), Errno> {
        let number = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let process = pidfd_open(number, PidfdFlags::empty())?;
        self.living.push((slot, process));
        Ok(())
    }

    /// From now on it is told when the process in `slot` has ended, also if it has already. For one that is not watched
    /// nothing happens.
    pub(crate) fn tell_of(&self, slot: usize) -> Result<(), Errno> {
        match self.living.iter().find(|(known, _)| *known == slot) {
            Some((_, process)) => epoll::add(&self.all, process, EventData::new_u64(slot as u64), EventFlags::IN),
            None => Ok(()),
        }
    }

    /// Readable when the bell is, or when somebody has ended.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.all.as_fd()
    }

    /// A poll found nothing: whether it is time to look.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        self.polls = self.polls.wrapping_add(1);
        self.polls % POLLS == 0
    }

    /// Slots whose processes have ended and whose time is over, each once.
    pub(crate) fn ended(&mut self) -> Vec<usize> {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; 16];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((events, _)) = epoll::wait(&self.all, &mut events[..], Some(&at_once)) else {
            return Vec::new();
        };
        let numbers: Vec<u64> = events.iter().map(|event| event.data.u64()).collect();
        if numbers.iter().all(|&number| number == BELL) {
            return Vec::new();
        }
        let now = Instant::now();
        for number in numbers {
            let is_it = |(slot, _): &(usize, OwnedFd)| *slot as u64 == number;
            if let Some(at) = self.living.iter().position(is_it) {
                let (slot, process) = self.living.swap_remove(at);
                let _ = epoll::delete(&self.all, &process);
                self.dead.push((slot, now + self.grace));
            }
        }
        let (due, rest) = self.dead.iter().partition::<Vec<_>, _>(|(_, until)| *until <= now);
        self.dead = rest;
        self.set_alarm(now);
        due.into_iter().map(|(slot, _)| slot).collect()
    }

    /// For the next one that is to be told; a time that is over is forgotten.
    fn set_alarm(&self, now: Instant) {
        let next = self.dead.iter().map(|(_, until)| *until).min();
        let left = next.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(now).max(Duration::from_nanos(1))
        });
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            },
        };
        // Cannot fail with these arguments.
        let _ = timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once);
    }
}
