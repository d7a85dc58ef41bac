// SPDX-License-Identifier: Apache-2.0
//! Members of a communicator that call different operations, where these go in messages: whoever has waited for a
//! second asks those that it waits for.
//!
//! ```text
//!  waits in its 7th operation, a bcast       another member
//!    ---- ASKS (7, bcast) ---------------->  has not come to its 7th: keeps the question and compares when it does
//!    <--- OTHER (7, barrier) --------------  its 7th is a barrier: that ends with an error too
//!    <--- GAVE_UP (7, rank 3, barrier) ----  its 7th was the same and has ended with an error, since rank 3 has called
//!                                            a barrier: whoever is heard of first ends the job, and can say why
//!    <--- GAVE_UP (7, rank 3, nothing) ----  the same, but it has only heard from rank 3 that that has given up
//!    <--- OVER (7) ------------------------  its 7th was the same and is over: it sends nothing more, and receives
//!                                            nothing; what waited there for a receive was dropped
//! ```
//! What is over may be so because the counts of the two do not fit. Who waits for a message that has not come then does
//! not wait any longer, and has an error. What has ended with the loss of a member, or of the communicator, is not said
//! to be over: whoever waits hears of the loss.
//!
//! Whoever answers was asked, else it breaks the rules. What one says of a third member is told as its word, and not
//! passed on as one's own: a member that lies is named itself.
//!
//! Operations have equal numbers at all members because all call them in the same order, so two that differ under one
//! number never go together. A member is asked once for each operation, and wakes for that once.
//!
//! Members that call the same with different amounts of data may wait for ever too, since long data go in pieces. So
//! questions and answers also say how much data there are, where all members must say the same.
//!
//! A persistent operation has a number among those that are called, that of the call which made it, and one of its own.
//! Whoever waits in it asks by both.

pub(crate) mod asking;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use isthmus_protocol::matching::Context;
use isthmus_transport::Peer;
use isthmus_wire::frame::Header;
use rustc_hash::FxHashMap;

use crate::base::counters::Operation;
use crate::base::notes::{Amount, Made, Note, Notes, Odd, PERSISTENT};
use crate::tools::Tools;

/// Questions that are kept, and answers that wait to be looked at: beyond that the oldest is forgotten.
const MOST: usize = 1024;
/// Questions of one peer that are kept: beyond that the oldest of its own is forgotten, and nobody else's.
const EACH: usize = 64;
/// Communicators among which nobody looks for those that are gone.
const FEW: usize = 32;
/// Members that are asked for one operation.
pub(crate) const MOST_ASKED: usize = 64;

/// An operation of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Which {
    context: Context,
    sequence: u32,
}

impl Which {
    #[inline]
    pub(crate) fn new(context: Context, sequence: u32) -> Self {
        Self { context, sequence }
    }

    fn is_persistent(self) -> bool {
        self.sequence >= PERSISTENT
    }
}

/// What a peer that waits takes an operation for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    peer: Peer,
    which: Which,
    /// Stands for its name.
    code: i32,
    amount: Amount,
}

impl Question {
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    pub(crate) fn which(&self) -> Which {
        self.which
    }
}

/// A peer that does not take part in an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    peer: Peer,
    which: Which,
    why: Why,
}

impl Found {
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    pub(crate) fn which(&self) -> Which {
        self.which
    }

    /// Whether the operation is over there; if so, whether a message of this process was dropped.
    pub(crate) fn is_over(&self) -> Option<bool> {
        match self.why {
            Why::Over { dropped } => Some(dropped),
            _ => None,
        }
    }
}

/// Why a peer does not take part.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// It has called what this code stands for.
    Other(i32),
    /// It was asked, and says that it has given up because of a third one.
    GaveUp(Odd),
    /// It was asked, and says that this is over there.
    Over {
        /// It has dropped a message of this process that it does not expect.
        dropped: bool,
    },
}

/// What this process knows of the member that does not take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Testimony {
    /// It has said itself what it has called.
    FirstHand(Odd),
    /// Another one, which has given up, says so.
    Said {
        /// Rank of that one.
        by: u32,
        /// What it says.
        odd: Odd,
    },
}

/// What this asks of the engine that it is part of.
pub(crate) trait Host {
    fn agreement(&self) -> &Agreement;

    fn agreement_mut(&mut self) -> &mut Agreement;

    /// Names of operations.
    fn tools(&self) -> &Tools;

    /// Sends a frame without data as soon as that is possible.
    fn reply(&mut self, peer: Peer, header: Header);

    /// The peer has broken the rules.
    fn broken(&mut self, peer: Peer, what: &str);
}

/// What this process has to tell others, and has heard.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    notes: FxHashMap<Context, Weak<Notes>>,
    /// Communicators from which on those that are gone are looked for.
    room: usize,
    questions: VecDeque<Question>,
    /// Some of them may be about operations that are over.
    unsettled: bool,
    found: VecDeque<Found>,
    /// How many questions of this process each peer has not answered. Most never are: the operations end.
    unanswered: FxHashMap<Peer, u32>,
}

impl Agreement {
    /// An operation in messages begins. True if others may have asked for it.
    #[inline]
    pub(crate) fn begins(&mut self, notes: &Arc<Notes>, context: Context, note: Note) -> bool {
        if notes.begins(note) {
            if self.notes.len() >= self.room {
                self.forget();
            }
            self.notes.insert(context, Arc::downgrade(notes));
        }
        !self.questions.is_empty()
    }

    /// A persistent operation is made, by the call with the number of `which`. True if others may have asked for that.
    pub(crate) fn makes(&mut self, notes: &Arc<Notes>, which: Which, number: u32, operation: Operation) -> bool {
        let note = Note::of(which.sequence, operation, Amount::default());
        let asked = self.begins(notes, which.context, note);
        notes.makes(Made {
            number,
            call: which.sequence,
        });
        asked
    }

    /// The call that made a persistent operation, as far as this process remembers it.
    pub(crate) fn call_of(&self, which: Which) -> Option<Which> {
        if !which.is_persistent() {
            return None;
        }
        let notes = self.notes.get(&which.context)?.upgrade()?;
        let sequence = notes.call_of(which.sequence)?;
        Some(Which { sequence, ..which })
    }

    /// Communicators that are gone leave their memory; looked for when as many have come as there were.
    #[cold]
    fn forget(&mut self) {
        self.notes.retain(|_, notes| notes.strong_count() > 0);
        self.room = 2 * self.notes.len().max(FEW);
    }

    /// This process has no part in it. Those who have asked for it are told.
    #[inline]
    pub(crate) fn passes(&mut self) {
        self.unsettled |= !self.questions.is_empty();
    }

    /// It has ended: nobody waits for it here any more.
    #[inline]
    pub(crate) fn ends(&mut self, which: Which) {
        if self.questions.is_empty() {
            return;
        }
        self.unsettled = true;
        // A persistent one may be started again, at a member that has come further before it is here.
        if which.is_persistent() {
            let call = self.call_of(which);
            self.questions
                .retain(|question| question.which != which && Some(question.which) != call);
        }
    }

    /// Questions about operations that this process has begun, and that `is_over` says to be over.
    #[cold]
    pub(crate) fn take_settled(&mut self, is_over: impl Fn(Which) -> bool) -> Vec<Question> {
        self.unsettled = false;
        let all = std::mem::take(&mut self.questions);
        let is_settled = |question: &Question| {
            let which = question.which;
            let may_end = !which.is_persistent() || self.note(which).is_some_and(|note| note.is_passed());
            may_end && self.is_called(which) && is_over(which)
        };
        let (settled, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(is_settled);
        self.questions = kept.into();
        settled
    }

    /// Whether this process has called the operation, and not only made it.
    fn is_called(&self, which: Which) -> bool {
        let notes = self.notes.get(&which.context).and_then(Weak::upgrade);
        notes.is_some_and(|notes| notes.find(which.sequence).is_some() && !notes.is_made_by(which.sequence))
    }

    /// What this process takes the operation for, as far as it remembers it.
    pub(crate) fn note(&self, which: Which) -> Option<Note> {
        self.notes.get(&which.context)?.upgrade()?.find(which.sequence)
    }

    /// It ends with an error that others are to hear of.
    pub(crate) fn gives_up(&self, which: Which, why: Odd) {
        if let Some(notes) = self.notes.get(&which.context).and_then(Weak::upgrade) {
            notes.gives_up(which.sequence, why);
        }
    }

    /// It ends with the loss of a member or of the communicator. Who asks for it is not told that it is over here, and
    /// hears of the loss by other ways.
    #[cold]
    pub(crate) fn cut(&mut self, which: Which) {
        if let Some(notes) = self.notes.get(&which.context).and_then(Weak::upgrade) {
            notes.cut(which.sequence);
        }
        self.questions.retain(|question| question.which != which);
    }

    /// The peer is asked for an operation.
    pub(crate) fn asks(&mut self, peer: Peer) {
        let unanswered = self.unanswered.entry(peer).or_default();
        *unanswered = unanswered.saturating_add(1);
    }

    /// The peer answers. False: more often than it was asked.
    pub(crate) fn answered(&mut self, peer: Peer) -> bool {
        let Some(unanswered) = self.unanswered.get_mut(&peer).filter(|n| **n > 0) else {
            return false;
        };
        *unanswered -= 1;
        true
    }

    pub(crate) fn take_questions(&mut self, which: Which) -> Vec<Question> {
        let is_it = |question: &Question| question.which == which;
        let taken = self.questions.iter().copied().filter(is_it).collect();
        self.questions.retain(|question| !is_it(question));
        taken
    }

    pub(crate) fn keep(&mut self, question: Question) {
        let is_theirs = |kept: &&Question| kept.peer == question.peer;
        if self.questions.iter().filter(is_theirs).count() >= EACH {
            let oldest = self.questions.iter().position(|kept| is_theirs(&kept));
            oldest.and_then(|at| self.questions.remove(at));
        }
        self.questions.push_back(question);
        self.unsettled = true;
        if self.questions.len() > MOST {
            self.questions.pop_front();
        }
    }

    pub(crate) fn note_found(&mut self, found: Found) {
        self.found.push_back(found);
        if self.found.len() > MOST {
            self.found.pop_front();
        }
    }

    /// Whether something was found that [`Agreement::next`] gives, or a question may have an answer now.
    #[inline]
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty() || self.unsettled
    }

    pub(crate) fn next(&mut self) -> Option<Found> {
        self.found.pop_front()
    }
}
