// SPDX-License-Identifier: Apache-2.0
//! Matching (MPI 5.0, sections 3.2.4 and 3.5): posted receives and unexpected messages of all communicators of a
//! process.
//!
//! Both queues are hash tables of chains over one table each:
//!
//! ```text
//!  posted:      exact (context, source, tag) -> oldest first       wildcards: (context) -> oldest first
//!  unexpected:  exact (context, source, tag) -> oldest first   and, the same entries: (context) -> oldest first
//! ```
//!
//! An arriving message looks into two chains and takes the older match; a receive without wildcards looks into one.
//! Each is constant time unless many receives with wildcards wait in one communicator, or a receive with wildcards
//! looks through many unexpected messages.

use crate::links::{Bins, Ends, Items, NONE};
use isthmus_wire::frame::Header;

/// A context as one process names it. Each job numbers its contexts without asking others, so that equal numbers of two
/// jobs are different contexts. Frames carry the number alone: the job is that of the peer that they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Context(u64);

impl Context {
    /// The one with this number in the world with that number.
    #[inline]
    pub const fn new(world: u32, number: u32) -> Self {
        Self((world as u64) << 32 | number as u64)
    }

    /// Its number in its job.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0 as u32
    }

    /// The world, as the process numbers them.
    #[inline]
    pub const fn world(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The context of the same job whose number has these bits too.
    #[inline]
    #[must_use]
    pub const fn with(self, bits: u32) -> Self {
        Self(self.0 | bits as u64)
    }
}

/// What identifies a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Context of the communicator.
    pub context: Context,
    /// Rank of the sender in it.
    pub source: u32,
    /// Tag.
    pub tag: i32,
}

impl Envelope {
    /// That of the message that begins with this header, of a peer of this world.
    #[inline]
    pub fn of(header: &Header, world: u32) -> Self {
        Self {
            context: Context::new(world, header.context),
            source: header.source,
            tag: header.tag,
        }
    }
}

/// What a receive asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Context of the communicator.
    pub context: Context,
    /// Rank of the sender; `None`: any.
    pub source: Option<u32>,
    /// Tag; `None`: any.
    pub tag: Option<i32>,
}

impl Pattern {
    /// Whether a message fits.
    #[inline]
    pub fn fits(&self, message: &Envelope) -> bool {
        self.context == message.context
            && self.source.is_none_or(|source| source == message.source)
            && self.tag.is_none_or(|tag| tag == message.tag)
    }

    #[inline]
    fn exact(&self) -> Option<Envelope> {
        Some(Envelope {
            context: self.context,
            source: self.source?,
            tag: self.tag?,
        })
    }
}

/// Names a posted receive until it matches or is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted(u32);

/// Names an unexpected message until it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting(u32);

/// A message does not come from whom its receive wants it from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

#[derive(Debug)]
struct Receive<R> {
    pattern: Pattern,
    /// Order of posting.
    number: u64,
    what: R,
}

#[derive(Debug)]
struct Unexpected<M> {
    envelope: Envelope,
    what: M,
}

/// The two queues. `R`: what a receive is to the caller; `M`: what a message is.
#[derive(Debug)]
pub struct Matcher<R, M> {
    receives: Items<Receive<R>, 1>,
    exact: Bins,
    wild: Bins,
    wild_count: usize,
    number: u64,
    messages: Items<Unexpected<M>, 2>,
    by_envelope: Bins,
    by_context: Bins,
}

const FEWEST_BINS: usize = 64;
const MOST_BINS: usize = 1 << 16;
const ENVELOPE: usize = 0;
const CONTEXT: usize = 1;

#[inline]
fn mix(a: u64) -> u32 {
    // Multiplication by an odd constant close to 2^64 / golden ratio; the upper half depends on all bits.
    (a.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[inline]
fn hash(e: &Envelope) -> u32 {
    mix((u64::from(e.source) << 32 | u64::from(e.tag as u32)) ^ (e.context.0 << 17))
}

impl<R, M> Default for Matcher<R, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, M> Matcher<R, M> {
    /// Empty queues.
    pub fn new() -> Self {
        let bins = || Bins::new(FEWEST_BINS);
        Self {
            receives: Items::new(),
            exact: bins(),
            wild: bins(),
            wild_count: 0,
            number: 0,
            messages: Items::new(),
            by_envelope: bins(),
            by_context: bins(),
        }
    }

    /// A message arrives: the receive that it matches, which leaves the queue.
    #[inline]
    pub fn arrive(&mut self, message: &Envelope) -> Option<R> {
        let at = self.first_receive(message);
        if at == NONE { None } else { self.unpost(at) }
    }

    /// As [`Matcher::arrive`], if `right` says that the receive may take it; otherwise the receive stays where it is.
    #[inline]
    pub fn arrive_if(&mut self, message: &Envelope, right: impl FnOnce(&R) -> bool) -> Result<Option<R>, Refused> {
        let at = self.first_receive(message);
        match self.receives.get(at) {
            None => Ok(None),
            Some(receive) if right(&receive.what) => Ok(self.unpost(at)),
            Some(_) => Err(Refused),
        }
    }

    /// The receive that a message would match now; it stays in the queue.
    pub fn expect(&self, message: &Envelope) -> Option<(Posted, &R)> {
        let at = self.first_receive(message);
        self.receives.get(at).map(|r| (Posted(at), &r.what))
    }

    /// A receive begins to wait. Call [`Matcher::take`] before: it must not overtake an unexpected message.
    // A pattern that came by reference would be read as a whole right after its parts were written, for which
    // processors wait.
    #[inline(always)]
    pub fn post(&mut self, pattern: Pattern, what: R) -> Posted {
        self.number += 1;
        let at = self.receives.insert(Receive {
            pattern,
            number: self.number,
            what,
        });
        if let Some(envelope) = pattern.exact() {
            self.receives.append(at, 0, self.exact.of_mut(hash(&envelope)));
        } else {
            self.wild_count += 1;
            self.receives.append(at, 0, self.wild.of_mut(mix(pattern.context.0)));
        }
        if self.receives.len() > 2 * self.exact.count() && self.exact.count() < MOST_BINS {
            self.rehash_receives();
        }
        Posted(at)
    }

    /// What a posted receive waits for; `None`: it has left the queue. See [`Matcher::cancel`].
    pub fn pattern(&self, posted: Posted) -> Option<&Pattern> {
        self.receives.get(posted.0).map(|receive| &receive.pattern)
    }

    /// Takes a posted receive out of the queue; `None` if it has left it already.
    /// The caller must not use the name again after the receive has matched: names are reused.
    pub fn cancel(&mut self, posted: Posted) -> Option<R> {
        self.receives.get(posted.0)?;
        self.unpost(posted.0)
    }

    /// A message that matches no posted receive begins to wait.
    pub fn keep(&mut self, envelope: Envelope, what: M) -> Waiting {
        let at = self.messages.insert(Unexpected { envelope, what });
        self.link_message(at, &envelope);
        if self.messages.len() > 2 * self.by_envelope.count() && self.by_envelope.count() < MOST_BINS {
            self.rehash_messages();
        }
        Waiting(at)
    }

    /// The first waiting message that fits.
    #[inline]
    pub fn find(&self, pattern: &Pattern) -> Option<Waiting> {
        if self.messages.len() == 0 {
            return None;
        }
        let (mut at, chain) = match pattern.exact() {
            Some(envelope) => (self.by_envelope.of(hash(&envelope)).first, ENVELOPE),
            None => (self.by_context.of(mix(pattern.context.0)).first, CONTEXT),
        };
        while let Some(message) = self.messages.get(at) {
            if pattern.fits(&message.envelope) {
                return Some(Waiting(at));
            }
            at = self.messages.next(at, chain);
        }
        None
    }

    /// A waiting message that `fits` selects. Looks through all of them.
    pub fn search(&self, fits: impl Fn(&Envelope, &M) -> bool) -> Option<Waiting> {
        let chosen = |&at: &u32| self.messages.get(at).is_some_and(|m| fits(&m.envelope, &m.what));
        self.messages.indices().find(chosen).map(Waiting)
    }

    /// A message that was found.
    pub fn look(&self, waiting: Waiting) -> Option<(&Envelope, &M)> {
        self.messages.get(waiting.0).map(|m| (&m.envelope, &m.what))
    }

    /// Takes a message that was found out of the queue.
    pub fn remove(&mut self, waiting: Waiting) -> Option<(Envelope, M)> {
        let envelope = self.messages.get(waiting.0)?.envelope;
        self.messages
            .unlink(waiting.0, ENVELOPE, self.by_envelope.of_mut(hash(&envelope)));
        self.messages
            .unlink(waiting.0, CONTEXT, self.by_context.of_mut(mix(envelope.context.0)));
        self.messages.remove(waiting.0).map(|m| (m.envelope, m.what))
    }

    /// Takes the first waiting message that fits.
    #[inline]
    pub fn take(&mut self, pattern: &Pattern) -> Option<(Envelope, M)> {
        let found = self.find(pattern)?;
        self.remove(found)
    }

    /// All posted receives, in no order.
    pub fn posted(&self) -> impl Iterator<Item = (&Pattern, &R)> {
        let found = |at| self.receives.get(at).map(|r| (&r.pattern, &r.what));
        self.receives.indices().filter_map(found)
    }

    /// All waiting messages, in no order.
    pub fn waiting(&self) -> impl Iterator<Item = (&Envelope, &M)> {
        let found = |at| self.messages.get(at).map(|m| (&m.envelope, &m.what));
        self.messages.indices().filter_map(found)
    }

    /// Number of posted receives and of waiting messages.
    pub fn lengths(&self) -> (usize, usize) {
        (self.receives.len(), self.messages.len())
    }

    #[inline]
    fn first_receive(&self, message: &Envelope) -> u32 {
        if self.receives.len() == 0 {
            return NONE;
        }
        let exact = self.first_exact(message);
        if self.wild_count == 0 {
            exact
        } else {
            self.older(exact, self.first_wild(message))
        }
    }

    #[inline]
    fn first_exact(&self, message: &Envelope) -> u32 {
        let mut at = self.exact.of(hash(message)).first;
        while let Some(receive) = self.receives.get(at) {
            if receive.pattern.fits(message) {
                return at;
            }
            at = self.receives.next(at, 0);
        }
        NONE
    }

    fn first_wild(&self, message: &Envelope) -> u32 {
        let mut at = self.wild.of(mix(message.context.0)).first;
        while let Some(receive) = self.receives.get(at) {
            if receive.pattern.fits(message) {
                return at;
            }
            at = self.receives.next(at, 0);
        }
        NONE
    }

    fn older(&self, a: u32, b: u32) -> u32 {
        match (self.receives.get(a), self.receives.get(b)) {
            (Some(x), Some(y)) => {
                if x.number < y.number {
                    a
                } else {
                    b
                }
            }
            (Some(_), None) => a,
            _ => b,
        }
    }

    #[inline]
    fn unpost(&mut self, at: u32) -> Option<R> {
        let pattern = self.receives.get(at)?.pattern;
        if let Some(envelope) = pattern.exact() {
            self.receives.unlink(at, 0, self.exact.of_mut(hash(&envelope)));
        } else {
            self.wild_count -= 1;
            self.receives.unlink(at, 0, self.wild.of_mut(mix(pattern.context.0)));
        }
        self.receives.remove(at).map(|r| r.what)
    }

    fn link_message(&mut self, at: u32, envelope: &Envelope) {
        self.messages
            .append(at, ENVELOPE, self.by_envelope.of_mut(hash(envelope)));
        self.messages
            .append(at, CONTEXT, self.by_context.of_mut(mix(envelope.context.0)));
    }

    fn rehash_receives(&mut self) {
        let grown = Bins::new(self.exact.count() * 4);
        let old = std::mem::replace(&mut self.exact, grown);
        for at in chains(&old, &self.receives, 0) {
            if let Some(envelope) = self.receives.get(at).and_then(|r| r.pattern.exact()) {
                self.receives.append(at, 0, self.exact.of_mut(hash(&envelope)));
            }
        }
    }

    fn rehash_messages(&mut self) {
        let grown = Bins::new(self.by_envelope.count() * 4);
        let old = std::mem::replace(&mut self.by_envelope, grown);
        for at in chains(&old, &self.messages, ENVELOPE) {
            if let Some(envelope) = self.messages.get(at).map(|m| m.envelope) {
                self.messages
                    .append(at, ENVELOPE, self.by_envelope.of_mut(hash(&envelope)));
            }
        }
    }
}

/// All members of the chains, each chain in order.
fn chains<T, const N: usize>(bins: &Bins, items: &Items<T, N>, chain: usize) -> Vec<u32> {
    let mut all = Vec::with_capacity(items.len());
    for bin in 0..bins.count() as u32 {
        let Ends { first, .. } = *bins.of(bin);
        let mut at = first;
        while at != NONE {
            all.push(at);
            at = items.next(at, chain);
        }
    }
    all
}
