// SPDX-License-Identifier: Apache-2.0
//! Contexts: the numbers that keep the messages of communicators apart.
//!
//! Every process owns a range of the numbers, so a new communicator needs no agreement on a free one: one of its
//! processes takes the next number of its own range and tells the others. Threads that create communicators at the same
//! time take different numbers.
//!
//! ```text
//!  0 … 15             the library's own: MPI_COMM_WORLD, MPI_COMM_SELF, construction of groups, links, files
//!  16 … 2^30 - 1      one range per process of the job, in order of rank, equally long
//!  2^30 … 2^31 - 1    of communicators of processes of several jobs: those have agreed on them ([`crate::meeting`])
//! ```
//! Every job numbers its contexts by itself, and equal numbers of two jobs are different contexts
//! ([`isthmus_engine::Context`]).
//!
//! Numbers are even: point-to-point messages carry the number itself, collective operations the next one, messages
//! among some of the processes that construct another communicator the number with bit 31 set ([`aside`]), those with a
//! guest the odd number with that bit ([`with_guest`]). A number
//! that was freed is used again, the oldest first, only when the whole range has been used once: a late message of the
//! old communicator finds no new one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_engine::{Context, Job};

use crate::blocks;
use crate::error::Result;
use crate::fail;

/// Context of MPI_COMM_WORLD.
pub(crate) const WORLD: u32 = 2;
/// Context of MPI_COMM_SELF.
pub(crate) const SELF: u32 = 4;
/// Context of the messages that construct communicators from groups.
pub(crate) const GROUPS: u32 = 6;
/// Context of the processes that speak for their local areas when a job begins.
pub(crate) const SPEAKERS: u32 = 8;
/// Context of the processes of a local area when a job begins.
pub(crate) const AREA: u32 = 10;
/// Context of what processes of the job ask of each other about files.
pub(crate) const FILES: u32 = 12;
/// The same of members of a meeting: from the beginning of its block.
pub(crate) const FILES_OF_ALL: u32 = 8;
/// Context of the messages that construct communicators from groups of members of a meeting, counted likewise.
pub(crate) const GROUPS_OF_ALL: u32 = 10;
/// First context that a process owns.
const FIRST: u32 = 16;
/// Behind the last context that a process of the job owns.
const END: u32 = 1 << 30;

/// The context, beside that of a communicator, of messages that construct another one.
pub(crate) const fn aside(context: Context) -> Context {
    context.with(1 << 31)
}

/// The context, beside that of a communicator, of its messages with a guest. No process gets messages of a communicator
/// there, whoever asks it to be a guest.
pub(crate) const fn with_guest(context: Context) -> Context {
    context.with(1 << 31 | 1)
}

/// How many numbers an intercommunicator has: its own, that of both groups together, that of the local group.
pub(crate) const MOST: usize = 3;

/// Numbers for one communicator; an intracommunicator uses the first only.
pub(crate) type Numbers = [u32; MOST];

/// Numbers, with the word that who took them has news of the links ([`crate::links`]). Numbers are even, so there is
/// room for it.
pub(crate) fn with_news([first, second, third]: Numbers) -> Numbers {
    [first | 1, second, third]
}

/// Numbers without that word, and whether it was there.
pub(crate) fn without_news([first, second, third]: Numbers) -> (Numbers, bool) {
    ([first & !1, second, third], first & 1 != 0)
}

/// Numbers that a process has taken for a communicator; zeros: it had none left.
pub(crate) fn granted(numbers: Numbers) -> Result<Numbers> {
    if numbers[0] == 0 {
        fail!(
            abi::MPI_ERR_OTHER,
            "the process that had to name a context for the new communicator has none left: too many communicators of its making \
             exist; free some"
        );
    }
    Ok(numbers)
}

/// The contexts that a process owns.
#[derive(Debug)]
pub(crate) struct Contexts {
    job: Job,
    /// The first number that any of the processes owns.
    base: u32,
    first: u32,
    end: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Smallest number that was never taken.
    next: u32,
    /// Taken, but never told to anybody.
    unused: Vec<u32>,
    /// Freed ones, oldest first, as ranges `(first, behind the last)`.
    freed: VecDeque<(u32, u32)>,
}

impl Contexts {
    /// Those of process `rank` of `size` of a job.
    pub(crate) fn new(job: Job, rank: u32, size: u32) -> Self {
        let length = ((END - FIRST) / size.max(1)) & !1;
        let first = FIRST + rank * length;
        let state = State {
            next: first,
            unused: Vec::new(),
            freed: VecDeque::new(),
        };
        Self {
            job,
            base: FIRST,
            first,
            end: first + length,
            state: Mutex::new(state),
        }
    }

    /// Those of the member with this place, of so many, of a group over several jobs, who have agreed on a block that
    /// begins with this number.
    pub(crate) fn shared(block: u32, place: u32, size: u32) -> Self {
        let length = ((blocks::LENGTH - blocks::OWN) / size.max(1)) & !1;
        let base = block + blocks::OWN;
        let first = base + place * length;
        let state = State {
            next: first,
            unused: Vec::new(),
            freed: VecDeque::new(),
        };
        Self {
            job: Job::OWN,
            base,
            first,
            end: first + length,
            state: Mutex::new(state),
        }
    }

    /// Of a shared block: the numbers that need no taking, of the first communicator of all members.
    pub(crate) fn first_of_all(&self) -> Numbers {
        let block = self.block();
        [block, block + 2, block + 4]
    }

    /// Of a shared block: the number by which members part.
    pub(crate) fn last_of_all(&self) -> u32 {
        self.block() + 6
    }

    /// Of a shared block: its first number, which no other meeting of a member has.
    pub(crate) fn block(&self) -> u32 {
        self.first & !(blocks::LENGTH - 1)
    }

    /// The process that owns a number, of so many.
    pub(crate) fn owner(&self, number: u32, size: u32) -> Option<u32> {
        let (length, at) = (self.end - self.first, number.checked_sub(self.base)?);
        let rank = at.checked_div(length)?;
        (number % 2 == 0 && rank < size).then_some(rank)
    }

    /// The context of the job with this number.
    pub(crate) fn named(&self, number: u32) -> Context {
        Context::new(self.job.number(), number)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers for an intracommunicator or an intercommunicator; zeros if none are left, which [`granted`] makes an
    /// error at every process that hears of them.
    pub(crate) fn take(&self, inter: bool) -> Numbers {
        let mut numbers = [0; MOST];
        let wanted = if inter { MOST } else { 1 };
        for at in 0..wanted {
            match self.take_one() {
                Some(number) => numbers[at] = number,
                None => {
                    self.give_back(numbers);
                    return [0; MOST];
                }
            }
        }
        numbers
    }

    fn take_one(&self) -> Option<u32> {
        let mut state = self.state();
        if let Some(number) = state.unused.pop() {
            return Some(number);
        }
        if state.next < self.end {
            state.next += 2;
            return Some(state.next - 2);
        }
        let (first, end) = state.freed.pop_front()?;
        if first + 2 < end {
            state.freed.push_front((first + 2, end));
        }
        Some(first)
    }

    /// Takes numbers back that no other process has used.
    pub(crate) fn give_back(&self, numbers: Numbers) {
        self.state().unused.extend(numbers.into_iter().filter(|&n| n != 0));
    }

    fn free(&self, number: u32) {
        let freed = &mut self.state().freed;
        // Communicators are mostly freed in the order in which they were made or the reverse, so this stays short.
        match freed.back_mut() {
            Some((_, end)) if *end == number => *end += 2,
            Some((first, _)) if *first == number + 2 => *first = number,
            _ => freed.push_back((number, number + 2)),
        }
        if let [.., (_, end), (first, _)] = *freed.make_contiguous() {
            if end == first {
                let last = freed.pop_back();
                if let (Some((_, before)), Some((_, end))) = (freed.back_mut(), last) {
                    *before = end;
                }
            }
        }
    }
}

/// The use of a context by a communicator. Its end frees the number at the process that owns it.
#[derive(Debug)]
pub(crate) struct Lease {
    number: u32,
    owner: Option<Arc<Contexts>>,
}

impl Lease {
    /// Of a number that some process took.
    pub(crate) fn new(number: u32, mine: &Arc<Contexts>) -> Self {
        let owned = (mine.first..mine.end).contains(&number);
        Self {
            number,
            owner: owned.then(|| mine.clone()),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner {
            owner.free(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_processes_do_not_meet() {
        let (a, b) = (Contexts::new(Job::OWN, 0, 3), Contexts::new(Job::OWN, 1, 3));
        assert!(a.end <= b.first && Contexts::new(Job::OWN, 2, 3).end <= END);
        assert_eq!(a.take(false), [16, 0, 0]);
        assert_eq!(a.take(true), [18, 20, 22]);
        assert_eq!(b.take(false)[0], b.first);
        // Each of them knows whose a number is.
        for all in [&a, &b] {
            assert_eq!([16, b.first - 2].map(|n| all.owner(n, 3)), [Some(0); 2]);
            assert_eq!([b.first, b.end - 2].map(|n| all.owner(n, 3)), [Some(1); 2]);
            assert_eq!([12, 17, END, u32::MAX].map(|n| all.owner(n, 3)), [None; 4]);
        }
        let block = blocks::FIRST + 3 * blocks::LENGTH;
        let shared = Contexts::shared(block, 1, 2);
        assert_eq!(shared.block(), block);
        assert_eq!(
            [block + 16, shared.first].map(|n| shared.owner(n, 2)),
            [Some(0), Some(1)]
        );
        assert_eq!(
            [16, block, block + 8, block + blocks::LENGTH].map(|n| shared.owner(n, 2)),
            [None; 4]
        );
    }

    #[test]
    fn freed_numbers_are_kept_as_ranges() {
        let all = Arc::new(Contexts::new(Job::OWN, 0, 1));
        for _ in 0..10 {
            let taken: Vec<u32> = (0..4).map(|_| all.take(false)[0]).collect();
            for number in taken.into_iter().rev() {
                drop(Lease::new(number, &all));
            }
        }
        assert_eq!(all.state().freed, [(16, 16 + 80)]);
    }

    #[test]
    fn freed_numbers_wait_until_the_range_is_used_up() {
        let few = Arc::new(Contexts {
            job: Job::OWN,
            base: 16,
            first: 16,
            end: 24,
            state: Mutex::new(State {
                next: 16,
                unused: vec![],
                freed: VecDeque::new(),
            }),
        });
        let [first, ..] = few.take(false);
        drop(Lease::new(first, &few));
        drop(Lease::new(1000, &few));
        assert_eq!(few.take(true), [18, 20, 22]);
        assert_eq!(few.take(false)[0], first, "the freed one comes last");
        assert!(granted(few.take(true)).is_err());
        drop(Lease::new(20, &few));
        drop(Lease::new(22, &few));
        few.give_back([18, 0, 0]);
        assert_eq!(few.take(true), [18, 20, 22]);
    }
}
