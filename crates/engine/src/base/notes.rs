// SPDX-License-Identifier: Apache-2.0
//! What the members of a communicator have called last, each as it has noted it: what is compared when operations do
//! not go together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::base::counters::Operation;

/// Operations of a communicator that are remembered: of those that are called and of persistent ones each.
const REMEMBERED: usize = 32;
/// Persistent operations have numbers from here on.
pub(crate) const PERSISTENT: u32 = 1 << 15;

/// What a communicator's last operations in messages were. A new communicator has none, whatever its context.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Option<Box<Last>>>);

#[derive(Debug, Default)]
struct Last {
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
    ending: Ending,
}

/// How an operation has ended, as far as others are to hear of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It is under way, or has taken part in all that it had to.
    Regular,
    /// Before its time, because of this one.
    GaveUp(Odd),
    /// This process has no part in it, whenever it is started.
    Passed,
    /// Before its time, with the loss of a member or of the communicator: others hear of those by other ways.
    Cut,
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

impl Odd {
    /// It has called what `code` stands for.
    pub(crate) fn new(rank: u32, code: i32) -> Self {
        Self {
            rank,
            code,
            lengths: false,
        }
    }

    /// `lengths`: somebody has called the same with another amount of data.
    pub(crate) fn with(self, lengths: bool) -> Self {
        Self { lengths, ..self }
    }

    /// In the communicator.
    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    /// Stands for the name of what it has called.
    pub(crate) fn code(&self) -> i32 {
        self.code
    }

    /// Whether somebody has called the same with another amount of data.
    pub(crate) fn lengths(&self) -> bool {
        self.lengths
    }
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

    /// As another process has said it.
    pub(crate) fn from_digest(digest: u32) -> Self {
        Self(digest)
    }

    /// 24 bits; 0: there is none.
    pub(crate) fn digest(self) -> u32 {
        self.0
    }

    pub(crate) fn differs(self, other: Self) -> bool {
        self.0 != 0 && other.0 != 0 && self != other
    }
}

impl Note {
    /// Of an operation that begins.
    pub(crate) fn of(sequence: u32, operation: Operation, amount: Amount) -> Self {
        Self {
            sequence,
            operation,
            amount,
            ending: Ending::Regular,
        }
    }

    /// The same of one in which this process has no part.
    pub(crate) fn passing(sequence: u32, operation: Operation) -> Self {
        Self {
            ending: Ending::Passed,
            ..Self::of(sequence, operation, Amount::default())
        }
    }

    /// Whether this process has no part in it, whenever it is started.
    pub(crate) fn is_passed(&self) -> bool {
        self.ending == Ending::Passed
    }

    pub(crate) fn operation(&self) -> Operation {
        self.operation
    }

    pub(crate) fn amount(&self) -> Amount {
        self.amount
    }

    /// Because of whom it has ended before its time.
    pub(crate) fn gave_up(&self) -> Option<Odd> {
        match self.ending {
            Ending::GaveUp(odd) => Some(odd),
            Ending::Regular | Ending::Passed | Ending::Cut => None,
        }
    }

    /// Whether it has ended before its time with the loss of a member or of the communicator.
    pub(crate) fn is_cut(&self) -> bool {
        self.ending == Ending::Cut
    }
}

impl Notes {
    /// A panic elsewhere leaves no note half written.
    fn lock(&self) -> MutexGuard<'_, Option<Box<Last>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation begins. True: it is the first.
    #[inline]
    pub(crate) fn begins(&self, note: Note) -> bool {
        let mut last = self.lock();
        let notes = &mut last.get_or_insert_default().notes;
        let first = notes.is_empty();
        let slot = slot(note.sequence);
        if notes.len() <= slot {
            // Many communicators have few operations.
            notes.resize(slot + 1, NOTHING);
        }
        notes[slot] = note;
        first
    }

    /// A persistent operation is made.
    pub(crate) fn makes(&self, made: Made) {
        let mut last = self.lock();
        let all = &mut last.get_or_insert_default().made;
        if all.is_empty() {
            all.resize(REMEMBERED, Made { number: 0, call: 0 });
        }
        all[made.number as usize % REMEMBERED] = made;
    }

    pub(crate) fn find(&self, sequence: u32) -> Option<Note> {
        let note = self.lock().as_ref()?.notes.get(slot(sequence)).copied();
        note.filter(|note| note.sequence == sequence)
    }

    /// The call that made a persistent operation.
    pub(crate) fn call_of(&self, number: u32) -> Option<u32> {
        let made = self.lock().as_ref()?.made.get(number as usize % REMEMBERED).copied();
        made.filter(|made| made.number == number).map(|made| made.call)
    }

    /// Whether that was the call that made a persistent operation, as far as this process remembers it.
    pub(crate) fn is_made_by(&self, call: u32) -> bool {
        let last = self.lock();
        let made = last.as_ref().map_or(&[][..], |last| &last.made);
        made.iter().any(|made| made.number >= PERSISTENT && made.call == call)
    }

    /// It ends with an error that others are to hear of.
    pub(crate) fn gives_up(&self, sequence: u32, why: Odd) {
        self.ends(sequence, Ending::GaveUp(why));
    }

    /// It ends with the loss of a member or of the communicator.
    pub(crate) fn cut(&self, sequence: u32) {
        self.ends(sequence, Ending::Cut);
    }

    fn ends(&self, sequence: u32, how: Ending) {
        let mut last = self.lock();
        let note = last.as_mut().and_then(|last| last.notes.get_mut(slot(sequence)));
        if let Some(note) = note.filter(|note| note.sequence == sequence) {
            note.ending = how;
        }
    }
}

/// Upper half of the tags of an operation's messages. `apart`: what its kind adds to that number, among
/// those of its sort.
#[inline]
pub(crate) fn tag_of(sequence: u32, apart: u32) -> i32 {
    let among = PERSISTENT - 1;
    ((sequence & !among | (sequence + apart) & among) << 16) as i32
}

fn slot(sequence: u32) -> usize {
    sequence as usize % REMEMBERED + if sequence < PERSISTENT { 0 } else { REMEMBERED }
}

/// Not the number of any operation.
const NOTHING: Note = Note {
    sequence: u32::MAX,
    operation: Operation::POINT_TO_POINT,
    amount: Amount(0),
    ending: Ending::Regular,
};
