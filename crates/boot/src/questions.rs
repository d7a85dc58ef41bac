// SPDX-License-Identifier: Apache-2.0
//! Questions that threads of this process have asked, and answers that have come.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isthmus_wire::question::{Answer, MAX_OPEN};

/// Questions that this process has asked, for all its threads.
#[derive(Clone, Default)]
pub(crate) struct Questions(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    last: u64,
    /// By number; with the answer, once it has come.
    all: BTreeMap<u64, Option<Answer>>,
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of another question, if there may be one now.
    pub(crate) fn begin(&self) -> Option<u64> {
        let mut open = self.open();
        if open.all.len() >= MAX_OPEN {
            return None;
        }
        open.last += 1;
        let number = open.last;
        open.all.insert(number, None);
        Some(number)
    }

    /// An answer has come. False: nobody has asked.
    pub(crate) fn take(&self, answer: Answer) -> bool {
        match self.open().all.get_mut(&answer.number) {
            Some(slot) if slot.is_none() => {
                *slot = Some(answer);
                true
            }
            _ => false,
        }
    }

    /// The answer to a question, if it is there: the question is over then.
    pub(crate) fn look(&self, number: u64) -> Option<Answer> {
        let mut open = self.open();
        let answer = open.all.get_mut(&number)?.take()?;
        open.all.remove(&number);
        Some(answer)
    }

    /// Nobody waits any more.
    pub(crate) fn forget(&self, number: u64) {
        self.open().all.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::question::Said;

    #[test]
    fn answers_go_to_whom_they_belong_and_come_once() {
        let questions = Questions::default();
        let (a, b) = (questions.begin().unwrap(), questions.begin().unwrap());
        assert_ne!(a, b);
        let answer = |number| Answer {
            number,
            said: Ok(Said::Done),
        };
        assert!(questions.take(answer(b)));
        assert!(!questions.take(answer(b)), "twice");
        assert!(!questions.take(answer(b + 1)), "nobody has asked that");
        assert_eq!(questions.look(a), None);
        assert_eq!(questions.look(b), Some(answer(b)));
        assert_eq!(questions.look(b), None);
        questions.forget(a);
        assert!(!questions.take(answer(a)));
    }

    #[test]
    fn so_many_questions_are_open_at_a_time() {
        let questions = Questions::default();
        let first = questions.begin().unwrap();
        (1..MAX_OPEN).for_each(|_| assert!(questions.begin().is_some()));
        assert_eq!(questions.begin(), None);
        questions.forget(first);
        assert!(questions.begin().is_some());
    }
}
