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
//! ```
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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use isthmus_protocol::matching::Context;
use isthmus_transport::Peer;
use rustc_hash::FxHashMap;

use crate::base::counters::Operation;

/// Operations of a communicator that are remembered: of those that are called and of persistent ones each.
const KEPT: usize = 32;
/// Persistent operations have numbers from here on.
pub(crate) const PERSISTENT: u32 = 1 << 15;
/// Questions that are kept, and answers that wait to be looked at: beyond that the oldest is forgotten.
const MOST: usize = 1024;
/// Questions of one peer that are kept: beyond that the oldest of its own is forgotten, and nobody else's.
const EACH: usize = 64;
/// Communicators among which nobody looks for those that are gone.
const FEW: usize = 32;
/// Members that are asked for one operation.
pub(crate) const MOST_ASKED: usize = 64;

/// What a communicator's last operations in messages were. A new communicator has none, whatever its context.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Option<Box<Kept>>>);

#[derive(Debug, Default)]
struct Kept {
    /// Of operations that were called, and of persistent ones that were started; empty before the first.
    notes: Vec<Note>,
    /// Persistent operations that were made.
    made: Vec<Made>,
}

/// A persistent operation.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Its number.
    pub number: u32,
    /// That of the call that made it.
    pub call: u32,
}

/// An operation, as this process has called it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    sequence: u32,
    operation: Operation,
    amount: Amount,
    /// Why it has ended before its time.
    gave_up: Option<Odd>,
}

/// A member that has called something else, or the same with another amount of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Odd {
    /// In the communicator.
    rank: u32,
    /// Stands for the name of what it has called.
    code: i32,
    /// In the end somebody has called the same with another amount of data.
    lengths: bool,
}

/// Stands for the bytes of an operation of which all members must say the same number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount(
    /// 24 bits of a digest; 0: there is no such number.
    u32,
);

impl Amount {
    pub(crate) fn of(bytes: Option<u64>) -> Self {
        let digest = |bytes: u64| (bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32;
        Self(bytes.map_or(0, |bytes| digest(bytes).max(1)))
    }

    fn differs(self, other: Self) -> bool {
        self.0 != 0 && other.0 != 0 && self != other
    }
}

impl Note {
    pub(crate) fn operation(&self) -> Operation {
        self.operation
    }
}

impl Notes {
    /// A panic elsewhere leaves no note half written.
    fn lock(&self) -> MutexGuard<'_, Option<Box<Kept>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, sequence: u32) -> Option<Note> {
        let note = self.lock().as_ref()?.notes.get(slot(sequence)).copied();
        note.filter(|note| note.sequence == sequence)
    }

    /// The call that made a persistent operation.
    fn call_of(&self, number: u32) -> Option<u32> {
        let made = self.lock().as_ref()?.made.get(number as usize % KEPT).copied();
        made.filter(|made| made.number == number).map(|made| made.call)
    }
}

fn slot(sequence: u32) -> usize {
    sequence as usize % KEPT + if sequence < PERSISTENT { 0 } else { KEPT }
}

/// Not the number of any operation.
const NOTHING: Note = Note {
    sequence: u32::MAX,
    operation: Operation::POINT_TO_POINT,
    amount: Amount(0),
    gave_up: None,
};

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
}

/// Why a peer does not take part.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// It has called what this code stands for.
    Other(i32),
    /// It was asked, and says that it has given up because of a third one.
    GaveUp(Odd),
}

/// What this process knows of the member that does not take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
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

/// What this process has to tell others, and has heard.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    notes: FxHashMap<Context, Weak<Notes>>,
    /// Communicators from which on those that are gone are looked for.
    room: usize,
    questions: VecDeque<Question>,
    found: VecDeque<Found>,
    /// How many questions of this process each peer has not answered. Most never are: the operations end.
    unanswered: FxHashMap<Peer, u32>,
}

impl Agreement {
    /// An operation in messages begins. True if others may have asked for it.
    #[inline]
    pub(crate) fn begins(&mut self, notes: &Arc<Notes>, which: Which, operation: Operation, amount: Amount) -> bool {
        let mut kept = notes.lock();
        let kept = kept.get_or_insert_default();
        if kept.notes.is_empty() {
            if self.notes.len() >= self.room {
                self.forget();
            }
            self.notes.insert(which.context, Arc::downgrade(notes));
        }
        let slot = slot(which.sequence);
        if kept.notes.len() <= slot {
            // Many communicators have few operations.
            kept.notes.resize(slot + 1, NOTHING);
        }
        kept.notes[slot] = Note {
            sequence: which.sequence,
            operation,
            amount,
            gave_up: None,
        };
        !self.questions.is_empty()
    }

    /// A persistent operation is made, by the call with the number of `which`. True if others may have asked for that.
    pub(crate) fn makes(&mut self, notes: &Arc<Notes>, which: Which, number: u32, operation: Operation) -> bool {
        let asked = self.begins(notes, which, operation, Amount::default());
        let mut kept = notes.lock();
        let made = &mut kept.get_or_insert_default().made;
        if made.is_empty() {
            made.resize(KEPT, Made { number: 0, call: 0 });
        }
        made[number as usize % KEPT] = Made {
            number,
            call: which.sequence,
        };
        asked
    }

    /// The call that made a persistent operation, as far as this process remembers it.
    pub(crate) fn call_of(&self, which: Which) -> Option<Which> {
        if which.sequence < PERSISTENT {
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

    /// It has ended: nobody waits for it here any more.
    #[inline]
    pub(crate) fn ends(&mut self, which: Which) {
        if !self.questions.is_empty() {
            let call = self.call_of(which);
            self.questions
                .retain(|question| question.which != which && Some(question.which) != call);
        }
    }

    /// What this process takes the operation for, as far as it remembers it.
    pub(crate) fn note(&self, which: Which) -> Option<Note> {
        self.notes.get(&which.context)?.upgrade()?.find(which.sequence)
    }

    /// It ends with an error that others are to hear of.
    pub(crate) fn gives_up(&self, which: Which, why: Odd) {
        let Some(notes) = self.notes.get(&which.context).and_then(Weak::upgrade) else {
            return;
        };
        let mut kept = notes.lock();
        let note = kept.as_mut().and_then(|kept| kept.notes.get_mut(slot(which.sequence)));
        if let Some(note) = note.filter(|note| note.sequence == which.sequence) {
            note.gave_up = Some(why);
        }
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

    /// Whether something was found that [`Agreement::next`] gives.
    #[inline]
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<Found> {
        self.found.pop_front()
    }
}
