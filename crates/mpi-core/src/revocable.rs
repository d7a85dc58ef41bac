// SPDX-License-Identifier: Apache-2.0
//! Communicators that can be revoked ([`crate::faults`]). Whoever does that tells all members, and each that hears it
//! first passes it on to some others: to those 1, 2, 4 … ranks away in both directions. So all that live hear it, also
//! when whoever began has failed before it had told everybody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use isthmus_engine::{
    Channel, Context, Engine, Job, Machine, Peer, Port, Shared, Taken, awaken, register_later, revoke, with_port,
};
use isthmus_wire::frame::{Header, Kind, protocol};
use rustc_hash::FxHashMap;

/// A communicator, as far as that matters here.
pub(crate) trait Revoked: Send + Sync {
    /// No other one of this process has it.
    fn context(&self) -> Context;

    /// Stands for the meeting that its context is of; 0: it is of the world. Numbers of contexts are used again.
    fn meeting(&self) -> u32;

    /// All members, of both groups, and which of them this process is.
    fn everybody(&self) -> (Arc<[Peer]>, u32);

    /// Whether it was revoked.
    fn is_revoked(&self) -> bool;

    /// Whether it can be: one of a vendor MPI cannot.
    fn can_be_revoked(&self) -> bool;

    /// Takes a word to itself: from now on it is revoked, with everything that it consists of, or waits for nobody
    /// who disconnects. What is pending on these channels is to end. `None`: it has known that, or cannot be revoked.
    fn hear(&self, cause: Cause) -> Option<Vec<Channel>>;

    /// Where it keeps that it is known.
    fn registration(&self) -> &Registration;
}

/// What members tell each other of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It is revoked: the program wants it (MPIX_Comm_revoke).
    Program = 0,
    /// A member is lost, so that nobody waits for all in MPI_Comm_disconnect any more. Those who have not come there
    /// are not disturbed.
    Loss = 1,
}

/// Of which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    context: Context,
    meeting: u32,
    cause: Cause,
}

impl Word {
    fn of(comm: &(impl Revoked + ?Sized), cause: Cause) -> Self {
        let (context, meeting) = (comm.context(), comm.meeting());
        Self {
            context,
            meeting,
            cause,
        }
    }

    fn header(self) -> Header {
        let token = u64::from(self.meeting) << 32 | u64::from(self.context.number());
        Header::control(Kind::Protocol, token, self.cause as u64, 0)
    }

    fn read(header: &Header) -> Option<Self> {
        let cause = match header.auxiliary() {
            0 => Cause::Program,
            1 => Cause::Loss,
            _ => return None,
        };
        Some(Self {
            // Equal numbers of other jobs are of communicators in which this process is not.
            context: Context::new(Job::OWN.number(), header.token as u32),
            meeting: (header.token >> 32) as u32,
            cause,
        })
    }

    fn is_of(self, comm: &(impl Revoked + ?Sized)) -> bool {
        (self.context, self.meeting) == (comm.context(), comm.meeting())
    }
}

/// What a communicator that can be revoked has: with its end nothing is known of it any more.
#[derive(Default)]
pub(crate) struct Registration(OnceLock<Entry>);

/// Where it is known, and as what. Another communicator may have got its context before this process has let it go.
struct Entry {
    by: Arc<Revocable>,
    context: Context,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut known = self.by.known();
        if known
            .all
            .get(&self.context)
            .is_some_and(|(number, _)| *number == self.number)
        {
            known.all.remove(&self.context);
        }
    }
}

/// The level of members at other sites.
const FAR: u8 = 0;
/// Communicators that were revoked before this process had made them, which are remembered.
const EARLY: usize = 1024;

/// Communicators of this process, by their contexts.
#[derive(Default)]
pub(crate) struct Revocable(Mutex<ByContext>);

#[derive(Default)]
struct ByContext {
    /// With a number for each, in the order in which they came.
    all: FxHashMap<Context, (u64, Weak<dyn Revoked>)>,
    next: u64,
    /// Revoked before they were made here.
    early: VecDeque<Word>,
}

impl Revocable {
    /// From now on this process hears that a communicator is revoked.
    pub(crate) fn new(engine: &Shared) -> Arc<Self> {
        let all: Arc<Self> = Arc::default();
        let known = all.clone();
        register_later(&mut engine.lock(), protocol::REVOKE, move || Box::new(Revoker(known)));
        all
    }

    /// A communicator is there at this process.
    pub(crate) fn begins(self: &Arc<Self>, engine: &Shared, comm: &Arc<impl Revoked + 'static>) {
        for cause in self.register(comm) {
            spread(&**comm, &mut engine.lock(), &[], cause);
        }
    }

    fn known(&self) -> MutexGuard<'_, ByContext> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The communicator can be revoked from now on. What was told of it before it was made here.
    pub(crate) fn register<C: Revoked + 'static>(self: &Arc<Self>, comm: &Arc<C>) -> Vec<Cause> {
        let (mut known, context) = (self.known(), comm.context());
        let (number, weak): (_, Weak<C>) = (known.next, Arc::downgrade(comm));
        known.next += 1;
        known.all.insert(context, (number, weak));
        let early = known.early.iter().filter(|early| early.is_of(&**comm));
        let causes: Vec<Cause> = early.map(|word| word.cause).collect();
        if !causes.is_empty() {
            known.early.retain(|early| !early.is_of(&**comm));
        }
        drop(known);
        let by = self.clone();
        // It becomes known once.
        let _ = comm.registration().0.set(Entry { by, context, number });
        for &cause in &causes {
            // Nothing is pending yet.
            let _ = comm.hear(cause);
        }
        causes
    }

    fn find(&self, context: Context) -> Option<Arc<dyn Revoked>> {
        self.known().all.get(&context)?.1.upgrade()
    }

    /// Whether this one was revoked. Asked with the engine in hand it is true before what was pending has ended.
    pub(crate) fn is_revoked(&self, context: Context) -> bool {
        self.find(context).is_some_and(|comm| comm.is_revoked())
    }

    /// A word comes: whose it is. Nobody's is kept for one that is made later, with the same look: another thread may
    /// make it at this moment.
    fn heard(&self, word: Word) -> Option<Arc<dyn Revoked>> {
        let mut known = self.known();
        let found = known.all.get(&word.context).and_then(|(_, weak)| weak.upgrade());
        let is_it = found.as_ref().is_some_and(|comm| word.is_of(&**comm));
        if !is_it {
            known.came_early(word);
        }
        // With the last one who has it a communicator is known no longer.
        drop(known);
        found.filter(|_| is_it)
    }
}

impl ByContext {
    fn came_early(&mut self, word: Word) {
        if !self.early.contains(&word) {
            self.early.push_back(word);
        }
        if self.early.len() > EARLY {
            self.early.pop_front();
        }
    }
}

/// Ends what is pending here, on these channels, and tells all members.
pub(crate) fn spread(comm: &dyn Revoked, engine: &mut Engine, channels: &[Channel], cause: Cause) {
    channels.iter().for_each(|channel| revoke(engine, channel));
    awaken(engine, protocol::REVOKE);
    let (members, me) = comm.everybody();
    with_port(engine, protocol::REVOKE, |port| {
        let others = (0..).zip(members.iter()).filter(|(rank, _)| *rank != me);
        tell(port, others.map(|(_, other)| *other), Word::of(comm, cause));
    });
}

/// The farthest first, and by this thread: those who are near are woken by the word, and take the processors from who
/// has to tell others still.
fn tell(port: &mut Port<'_>, others: impl Iterator<Item = Peer>, word: Word) {
    let mut others: Vec<Peer> = others.collect();
    others.sort_by_key(|other| port.level(*other));
    for other in others {
        if port.level(other) == FAR {
            port.urge();
        }
        port.tell(other, word.header());
    }
}

/// What hears that communicators are revoked.
struct Revoker(Arc<Revocable>);

impl Machine for Revoker {
    fn frame(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header, _: &[u8]) -> Taken {
        let Some(word) = Word::read(header) else {
            port.accuse(peer, "it revoked a communicator for no reason that there is");
            return Taken::Done;
        };
        let Some(comm) = self.0.heard(word) else {
            return Taken::Done;
        };
        let (members, me) = comm.everybody();
        if !members.contains(&peer) {
            port.accuse(peer, "it revoked a communicator of which it is no member");
            return Taken::Done;
        }
        if let Some(channels) = comm.hear(word.cause) {
            channels.iter().for_each(|channel| port.revoke(channel));
            let listeners = listeners(me, members.len() as u32).into_iter();
            tell(port, listeners.map(|rank| members[rank as usize]), word);
        }
        Taken::Done
    }
}

/// Ranks to which a member passes on what it has heard.
fn listeners(me: u32, size: u32) -> Vec<u32> {
    let steps = (0..u32::BITS).map(|bit| 1 << bit).take_while(|&step| step < size);
    let mut all: Vec<u32> = steps
        .flat_map(|step| {
            let after = (u64::from(me) + u64::from(step)) % u64::from(size);
            let before = (u64::from(me) + u64::from(size) - u64::from(step)) % u64::from(size);
            [after as u32, before as u32]
        })
        .filter(|&rank| rank != me)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    #[derive(Default)]
    struct One {
        number: u32,
        meeting: u32,
        revoked: AtomicBool,
        registration: Registration,
    }

    impl Revoked for One {
        fn context(&self) -> Context {
            Context::new(0, self.number)
        }

        fn everybody(&self) -> (Arc<[Peer]>, u32) {
            (Arc::from([]), 0)
        }

        fn is_revoked(&self) -> bool {
            self.revoked.load(Ordering::Relaxed)
        }

        fn can_be_revoked(&self) -> bool {
            true
        }

        fn meeting(&self) -> u32 {
            self.meeting
        }

        fn hear(&self, _: Cause) -> Option<Vec<Channel>> {
            self.revoked.store(true, Ordering::Relaxed);
            Some(Vec::new())
        }

        fn registration(&self) -> &Registration {
            &self.registration
        }
    }

    fn begun(all: &Arc<Revocable>, number: u32) -> Arc<One> {
        let one = Arc::new(One {
            number,
            ..One::default()
        });
        all.register(&one);
        one
    }

    #[test]
    fn what_has_ended_is_known_no_longer_and_takes_nobody_else_with_it() {
        let all = Arc::<Revocable>::default();
        let (first, other) = (begun(&all, 16), begun(&all, 18));
        // Its context is another one's before this process has let the first go.
        let second = begun(&all, 16);
        drop(first);
        assert!(all.find(second.context()).is_some() && all.find(other.context()).is_some());
        drop(second);
        assert!(all.find(Context::new(0, 16)).is_none());
        assert_eq!(all.known().all.len(), 1, "nothing is left of the others");
    }

    #[test]
    fn one_that_was_revoked_before_it_was_made_here_begins_so() {
        let all = Arc::<Revocable>::default();
        let word = Word::of(
            &One {
                number: 20,
                ..One::default()
            },
            Cause::Program,
        );
        assert!(all.heard(word).is_none());
        assert!(begun(&all, 20).is_revoked());
        assert!(!begun(&all, 20).is_revoked(), "the next one with this context");
        // A word that comes when its communicator is freed is not one for that of another meeting.
        assert!(all.heard(Word { meeting: 7, ..word }).is_none());
        assert!(!begun(&all, 20).is_revoked());
        for cause in [Cause::Program, Cause::Loss] {
            let word = Word {
                meeting: 7,
                cause,
                ..word
            };
            assert_eq!(Word::read(&word.header()), Some(word));
        }
        assert_eq!(Word::read(&Header::control(Kind::Protocol, 20, 2, 0)), None);
    }

    #[test]
    fn a_word_that_comes_while_its_communicator_is_made_by_another_thread_is_not_lost() {
        const ALL: u32 = 100_000;
        let all = Arc::<Revocable>::default();
        let word = |number| Word {
            context: Context::new(0, number),
            meeting: 0,
            cause: Cause::Program,
        };
        // Each number is heard of and begins at nearly the same moment, whoever is first.
        let (begins, hears) = (AtomicU32::new(0), AtomicU32::new(0));
        let meet = |mine: &AtomicU32, other: &AtomicU32, number| {
            mine.store(number, Ordering::SeqCst);
            while other.load(Ordering::SeqCst) < number {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let heard = scope.spawn(|| {
                let hears = |number| {
                    meet(&hears, &begins, number);
                    all.heard(word(number)).is_some()
                };
                (1..=ALL).map(hears).collect::<Vec<bool>>()
            });
            let begin = |number| {
                meet(&begins, &hears, number);
                begun(&all, number)
            };
            let made: Vec<_> = (1..=ALL).map(begin).collect();
            let heard = heard.join().expect("a thread that hears");
            let lost = heard
                .iter()
                .zip(&made)
                .filter(|(heard, one)| !**heard && !one.is_revoked());
            assert_eq!(lost.count(), 0, "words that nobody has heard");
        });
    }

    /// A word that has reached one of those that live reaches all of them, as long as fewer have failed than a member
    /// has listeners.
    #[test]
    fn whoever_lives_hears_it_although_others_have_failed() {
        let mut seed: u64 = 7;
        let mut below = |bound: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u32 % bound
        };
        for size in [2, 3, 7, 24, 100] {
            let failing = listeners(0, size).len() as u32 - 1;
            for _ in 0..20 {
                let failed: BTreeSet<u32> = (0..failing).map(|_| below(size)).collect();
                let Some(first) = (0..size).find(|rank| !failed.contains(rank)) else {
                    continue;
                };
                let (mut heard, mut new) = (BTreeSet::from([first]), vec![first]);
                while let Some(rank) = new.pop() {
                    for other in listeners(rank, size) {
                        if !failed.contains(&other) && heard.insert(other) {
                            new.push(other);
                        }
                    }
                }
                assert_eq!(heard.len() + failed.len(), size as usize, "{size}: {failed:?}");
            }
        }
    }
}
