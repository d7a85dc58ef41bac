// SPDX-License-Identifier: Apache-2.0
//! One engine for all threads of a process: locking and waiting.
//!
//! A thread that waits polls, gives its processor to others between two polls where they want it, and after a while
//! sleeps until a transport's descriptor wakes it: [`isthmus_protocol::patience`] says when, with the numbers of
//! [`Tuning`].
//!
//! Several threads may wait at once. The lock is free while a thread yields or sleeps. What one thread's progress
//! completes may be what another one sleeps for, so whoever changes something while others sleep rings the [`Bell`];
//! the bell is silenced only when the last sleeper is awake, so nobody misses it.

mod looking;
mod messages;
mod operations;

pub use looking::Looking;
pub use operations::{Along, GroupCall, Until};

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_lock::{Lock, OneAtATime};
use isthmus_protocol::patience::{Patience, Step};
use isthmus_schedule::step::Together;
use isthmus_transport::native::Collective;
use isthmus_transport::{Transport, is_readable, wait as sleep_on};

use crate::base::callbacks::{Callbacks, Caller};
use crate::groups::collective_id::CollectiveId;
use crate::groups::data::Bound;
use crate::groups::state::Groups;
use crate::p2p::Core;
use crate::p2p::loss::end_in_doubt;
use crate::p2p::receive::begin_directly;
use crate::tools::waited::{PROMPT, PROMPT_DIRECTLY};
use crate::waiting::Inner;
use crate::waiting::NAP;
use crate::waiting::bell::Bell;
use crate::waiting::keeper::{Keeper, LOOK};
use crate::waiting::pace::Pace;
use crate::waiting::waits::Reports;
use crate::{
    Binding, Channel, Completion, Direct, Engine, EngineError, Mode, Operation, Pieces, ReceiveBuffer, Request,
    SendBuffer, Short, Unequal,
};

/// How often a blocking receive looks for a message of a vendor MPI before other progress is made: some tens of
/// microseconds.
const NATIVE_ROUNDS: u32 = 512;

/// Calls that find nothing, after which one listens to what comes from outside of MPI, and looks at the clock: that
/// costs a system call.
const LISTEN: u32 = 4096;

/// Where there are guests, one in so many calls that find nothing gives the processor away although nobody seems to
/// want it: often enough for a thread of the library that was woken there, and to find out that others have come.
const RARELY: u32 = 16;

/// How a process waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Several threads call MPI at once (MPI_THREAD_MULTIPLE).
    pub threads: bool,
    /// Threads of the library make progress too: a transport's ([`Shared::progress_from_thread`]) and the
    /// [keeper](Shared::keep). Where there is none of the former, [`Shared::invite`] makes room for the latter later.
    pub guests: bool,
}

/// The engine of a process.
pub struct Shared {
    pub(super) inner: Lock<Inner>,
    policy: Policy,
    pace: Pace,
    /// Calls that have found nothing.
    vain: AtomicU32,
    /// A transport's thread found the engine busy: progress is due.
    due: AtomicBool,
    pub(super) bell: Bell,
    pub(super) keeper: Keeper,
    pub(super) callbacks: Arc<Callbacks>,
    reports: Reports,
}

/// The last sleep of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nap {
    /// It has not slept.
    None,
    /// Nothing has come since.
    Vain,
    /// Something has come since.
    News,
}

impl Nap {
    #[inline]
    fn with_news(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Vain | Self::News => Self::News,
        }
    }
}

/// The right to use the engine. Must not be held while waiting: use [`Shared::wait`].
pub struct Guard<'a> {
    // Fields are dropped in this order: the lock is free when `after` acts.
    inner: isthmus_lock::Guard<'a, Inner>,
    events: u64,
    shared: &'a Shared,
    _after: After<'a>,
}

impl Deref for Guard<'_> {
    type Target = Engine;
    #[inline]
    fn deref(&self) -> &Engine {
        &self.inner.engine
    }
}

impl DerefMut for Guard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.inner.engine
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.inner.sleepers > 0 && self.events != self.inner.engine.core.state.events() {
            self.shared.bell.ring();
        }
    }
}

/// The right to use the engine for a moment ([`Shared::briefly`]).
pub struct Moment<'a>(isthmus_lock::Guard<'a, Inner>);

impl Deref for Moment<'_> {
    type Target = Engine;
    #[inline(always)]
    fn deref(&self) -> &Engine {
        &self.0.engine
    }
}

impl DerefMut for Moment<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.0.engine
    }
}

/// Makes the progress that a transport's thread could not make because the engine was in use.
struct After<'a>(&'a Shared);

impl Drop for After<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.policy.guests {
            // Orders the unlocking before the look: a thread that set the flag and then found the lock taken is seen
            // here.
            self.0.inner.settle();
            if self.0.due.load(Ordering::Relaxed) {
                self.0.catch_up();
            }
        }
    }
}

impl Shared {
    /// Takes the engine.
    pub fn new(engine: Engine, policy: Policy) -> Self {
        Self::with(engine, policy, Lock::new)
    }

    /// Takes the engine of a process whose threads take turns: without the cost of a lock.
    pub fn for_one_at_a_time(engine: Engine, policy: Policy, promise: OneAtATime) -> Self {
        Self::with(engine, policy, |inner| {
            if policy.guests {
                Lock::with_guests(inner, promise)
            } else {
                Lock::for_one_at_a_time(inner, promise)
            }
        })
    }

    fn with(engine: Engine, policy: Policy, lock: impl FnOnce(Inner) -> Lock<Inner>) -> Self {
        let pace = Pace::new(engine.core.tuning(), neighbours(&engine.core.transports));
        let callbacks = engine.core.state.callbacks().clone();
        let inner = Inner::new(engine, policy.guests, pace.patience());
        Self {
            inner: lock(inner),
            policy,
            pace,
            vain: AtomicU32::new(0),
            due: AtomicBool::new(false),
            bell: Bell::default(),
            keeper: Keeper::default(),
            callbacks,
            reports: Reports::default(),
        }
    }

    /// How this process waits.
    #[inline]
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Who hears what this process waits for, and where its time goes.
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// The thread that makes progress while the program computes.
    pub fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Functions of the program that frames ask for.
    #[inline]
    pub fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    /// What waits are called from now on: the MPI function that the calling thread is in. Time is counted from then on.
    pub fn name_waits(&self, call: fn() -> &'static str) {
        let waited = self.lock().core.tools().name_waits(call);
        self.reports.count(waited);
    }

    /// From now on there may be a [keeper](Shared::keep), if there was not from the beginning. False: this system has
    /// not what that needs, and progress is made by threads that call MPI.
    pub fn invite(&self) -> bool {
        let invited = self.inner.invite();
        if invited {
            self.lock().inner.guests = true;
        }
        invited
    }

    /// The engine, for a short moment.
    #[inline]
    pub fn lock(&self) -> Guard<'_> {
        self.enter(self.inner.lock())
    }

    /// The engine if nobody has it.
    pub fn try_lock(&self) -> Option<Guard<'_>> {
        self.inner.try_lock().map(|inner| self.enter(inner))
    }

    /// The engine, for what takes a moment and wakes nobody, where threads take turns and none of the library comes:
    /// for less than [`Shared::lock`]. `None`: it is not so here.
    #[inline(always)]
    pub fn briefly(&self) -> Option<Moment<'_>> {
        let inner = self.inner.in_turns()?;
        match inner.guests {
            true => None,
            false => Some(Moment(inner)),
        }
    }

    #[inline]
    fn enter<'a>(&'a self, mut inner: isthmus_lock::Guard<'a, Inner>) -> Guard<'a> {
        if inner.guests {
            inner.entries += 1;
            if inner.kept {
                self.keeper.relieve(&mut inner);
            }
        }
        Guard {
            events: inner.engine.core.state.events(),
            inner,
            shared: self,
            _after: After(self),
        }
    }

    /// Makes progress until `check` gives something. `check` is called with the engine before the first round of
    /// progress and after each one that changed something.
    #[inline]
    pub fn wait<T>(&self, check: impl FnMut(&mut Engine) -> Option<T>) -> T {
        self.wait_on(self.lock(), check)
    }

    /// Makes progress until this descriptor is readable. For whoever waits for something outside of MPI that comes only
    /// when others are done: what they have to do may need this process, although it wants nothing any more.
    pub fn wait_beside(&self, other: BorrowedFd<'_>) {
        let mut guard = self.lock();
        let mut nap = Nap::None;
        while !is_readable(other) {
            if self.poll(&mut guard) {
                nap = nap.with_news();
            } else {
                let before = std::mem::replace(&mut nap, Nap::Vain);
                guard = self.sleep(guard, Some(other), before, NAP);
            }
        }
        if nap != Nap::None {
            self.reports.over(&mut guard.inner);
        }
    }

    #[inline(never)]
    fn completion(&self, guard: Guard<'_>, request: Request) -> Completion {
        self.wait_on(guard, |engine| engine.core.take(request))
    }

    /// For a call that has found nothing and returns: a thread that calls it again and again must not keep a processor
    /// from those that it waits for. Where processes share one, what it waits for is often on this very processor, and
    /// would get it only when the scheduler takes it away: a loop over MPI_Test would cost some milliseconds for each
    /// message.
    #[inline]
    pub fn idle(&self) {
        // A count that threads spoil for each other is as good.
        let vain = self.vain.load(Ordering::Relaxed).wrapping_add(1);
        self.vain.store(vain, Ordering::Relaxed);
        if vain % LISTEN == 0 {
            let mut guard = self.lock();
            guard.inner.listen();
            self.reports.tests_in_vain(&mut guard.inner);
        }
        if self.policy.threads {
            // Other threads want the engine, too.
            return std::thread::yield_now();
        }
        if self.policy.guests {
            if self.pace.is_shared() || vain % RARELY == 0 {
                self.pace.give_way();
            }
            return;
        }
        let step = self.inner.lock().look_again(&self.pace);
        if step == Step::Yield && self.pace.give_way() {
            self.inner.lock().looking.0.reconsider();
        }
    }

    /// For a thread that waits for what no transport tells of, as a word in memory that processes share: sleeps so long
    /// at most, less if messages come or something from outside of MPI, which is heard.
    pub fn nap(&self, longest: Duration) {
        drop(self.sleep(self.lock(), None, Nap::News, longest));
    }

    #[inline]
    fn wait_on<'a, T>(&'a self, mut guard: Guard<'a>, mut check: impl FnMut(&mut Engine) -> Option<T>) -> T {
        // Made by the first look in vain: most waits have none.
        let mut patience = None;
        let (mut began, mut in_vain) = (None, 0);
        let mut nap = Nap::None;
        loop {
            if let Some(found) = check(&mut guard) {
                if let Some(began) = began {
                    guard.core.state.tools_mut().wait_ends(began);
                }
                if nap != Nap::None {
                    self.reports.over(&mut guard.inner);
                }
                return found;
            }
            let any = self.poll(&mut guard);
            if self.callbacks.are_due() {
                if nap != Nap::None {
                    // It works from now on, and people who ask are not to hear that it waits.
                    self.reports.over(&mut guard.inner);
                    nap = Nap::None;
                }
                drop(guard);
                self.callbacks.call(Caller::Program);
                guard = self.lock();
                patience = None;
            } else if any {
                patience = None;
                nap = nap.with_news();
            } else {
                in_vain += 1;
                let tools = guard.core.state.tools();
                if began.is_none() && (in_vain >= self.pace.counts_from(PROMPT) || tools.traces()) {
                    began = Some(tools.wait_begins());
                }
                guard = self.pause(guard, &mut patience, &mut nap);
            }
        }
    }

    #[inline]
    fn poll(&self, guard: &mut Guard<'_>) -> bool {
        if self.policy.guests && self.due.load(Ordering::Relaxed) {
            // What was due arrived before the flag was set, so this round of progress finds it.
            self.due.store(false, Ordering::SeqCst);
        }
        guard.progress()
    }

    /// After a round in which nothing happened: spins, yields or sleeps.
    fn pause<'a>(&'a self, guard: Guard<'a>, patience: &mut Option<Patience>, nap: &mut Nap) -> Guard<'a> {
        let patience = patience.get_or_insert_with(|| self.pace.patience());
        match self.pace.step(patience) {
            // No pause instruction: a poll takes long enough, and a pause here costs up to a fifth of a short message's
            // latency.
            Step::Poll if !self.policy.threads => guard,
            Step::Poll => {
                drop(guard);
                std::hint::spin_loop();
                self.lock()
            }
            Step::Yield => {
                drop(guard);
                if self.pace.give_way() {
                    patience.reconsider();
                }
                self.lock()
            }
            Step::Sleep => {
                let before = std::mem::replace(nap, Nap::Vain);
                self.sleep(guard, None, before, NAP)
            }
        }
    }

    /// Sleeps until something may have happened, also to another descriptor. The lock has been held since the last look
    /// at everything.
    /// `before`: the sleep before this one; `longest`: how long at most.
    fn sleep<'a>(
        &'a self,
        mut guard: Guard<'a>,
        other: Option<BorrowedFd<'_>>,
        before: Nap,
        longest: Duration,
    ) -> Guard<'a> {
        self.reports.before_sleep(&mut guard.inner, before != Nap::Vain);
        let descriptors = guard.inner.descriptors(&self.bell);
        if !guard.inner.engine.arm() {
            guard.inner.engine.core.disarm();
            if guard.inner.engine.core.rings() {
                return guard;
            }
            drop(guard);
            match other {
                None => std::thread::yield_now(),
                Some(other) => sleep_on(&[other], Some(LOOK)),
            }
            return self.lock();
        }
        guard.inner.sleepers += 1;
        let nap = guard
            .inner
            .engine
            .core
            .state
            .asked()
            .next()
            .unwrap_or(longest)
            .min(longest);
        drop(guard);
        let since = Instant::now();
        match &descriptors {
            Ok(all) => sleep_on(&all.iter().map(AsFd::as_fd).chain(other).collect::<Vec<_>>(), Some(nap)),
            // No descriptors left in this process: naps keep things going.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
        let time = since.elapsed();
        self.pace.has_slept(time);
        let mut guard = self.lock();
        guard.inner.engine.core.disarm();
        guard.inner.sleepers -= 1;
        guard.inner.listen();
        // The transports are not armed any more: the other sleepers must arm them again.
        if guard.inner.sleepers > 0 {
            self.bell.ring()
        } else {
            self.bell.silence()
        }
        guard
    }

    /// From now on `hear` is called by a thread that waits, or looks for something in vain again and again, when the
    /// descriptor is readable, and once at once. It says whether more may come; if not, it is not called again.
    pub fn listen(&self, descriptor: OwnedFd, hear: impl FnMut(&mut Engine) -> bool + Send + 'static) {
        let mut guard = self.lock();
        guard.inner.add_listener(descriptor, Box::new(hear));
    }

    /// Another transport, for peers that are to be [taken in](Engine::take_in); its number among routes. Whoever sleeps
    /// wakes, and sleeps on it too.
    pub fn add_transport(&self, transport: Box<dyn Transport>) -> Result<u8, EngineError> {
        let mut guard = self.lock();
        let number = guard.add_transport(transport)?;
        guard.inner.descriptors = None;
        if guard.inner.sleepers > 0 {
            self.bell.ring();
        }
        self.keeper.refresh();
        Ok(number)
    }

    /// As [`Engine::start_activity`], for one that something outside the engine wakes ([`Shared::wake`]): there is a
    /// bell from now on.
    pub fn start_activity(&self, activity: Box<dyn crate::Activity<Engine>>) -> Request {
        let mut guard = self.lock();
        // Without descriptors sleepers take naps, see `sleep`.
        let _ = self.bell.descriptor();
        guard.start_activity(activity)
    }

    /// Wakes threads that sleep here: something outside the engine that an [`Activity`](crate::Activity) looks at has
    /// changed. For any thread; never waits.
    pub fn wake(&self) {
        self.bell.ring();
        self.keeper.watch();
        if self.policy.guests {
            self.progress_from_thread();
        }
    }

    /// For a transport's own thread, after it has queued arrivals: makes progress if no thread is inside MPI; if one
    /// is, that one will. Needs [`Policy::guests`].
    pub fn progress_from_thread(&self) {
        self.due.store(true, Ordering::SeqCst);
        self.catch_up();
    }

    fn catch_up(&self) {
        while self.due.load(Ordering::SeqCst) {
            // If the lock is taken, its holder looks at the flag after unlocking.
            let Some(mut inner) = self.inner.visit() else {
                return;
            };
            self.due.store(false, Ordering::SeqCst);
            if inner.kept {
                self.keeper.relieve(&mut inner);
            }
            inner.advance(&self.bell);
            if self.callbacks.are_due() {
                // This thread has connections to look after.
                self.keeper.ring();
            }
        }
    }
}

/// Other processes of the job that may be on one processor of this machine, as [`Pace::new`] wants it. Those elsewhere
/// may be on the same processors, as in containers: one is assumed.
fn neighbours(transports: &[Box<dyn Transport>]) -> u8 {
    let known: Vec<_> = transports.iter().map(|transport| transport.neighbours()).collect();
    let most = known.iter().flatten().max().copied().unwrap_or(1);
    match known.contains(&None) {
        true => most.max(1),
        false => most,
    }
}
