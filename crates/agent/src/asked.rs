// SPDX-License-Identifier: Apache-2.0
//! What processes have asked the coordinator and not been answered.

use isthmus_wire::question::{MAX_OPEN, Question};
use std::collections::BTreeMap;

/// Open questions, by index and number.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    open: BTreeMap<(u32, u64), Question>,
}

impl Asked {
    /// A process asks.
    ///
    /// # Errors
    /// What it may not do, as what it has done.
    pub(crate) fn ask(&mut self, index: u32, question: Question) -> Result<(), String> {
        let number = question.number;
        if self.of(index).count() >= MAX_OPEN {
            return Err(format!("it asked more than {MAX_OPEN} questions at a time"));
        }
        match self.open.insert((index, number), question) {
            None => Ok(()),
            Some(_) => Err(format!("it asked two questions with the number {number}")),
        }
    }

    /// The coordinator has answered. Whether the process waits for that.
    pub(crate) fn answered(&mut self, index: u32, number: u64) -> bool {
        self.open.remove(&(index, number)).is_some()
    }

    /// A process is gone: nobody waits for its answers.
    pub(crate) fn forget(&mut self, index: u32) {
        self.open.retain(|(of, _), _| *of != index);
    }

    /// All of them, for a coordinator that may not have heard them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Question)> {
        self.open.iter().map(|((index, _), question)| (*index, question))
    }

    fn of(&self, index: u32) -> impl Iterator<Item = &Question> {
        self.open
            .range((index, 0)..=(index, u64::MAX))
            .map(|(_, question)| question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::question::Ask;

    fn question(number: u64) -> Question {
        let ask = Ask::Lookup {
            scope: None,
            name: "x".into(),
        };
        Question { number, ask }
    }

    #[test]
    fn a_process_has_so_many_open_questions_with_different_numbers() {
        let mut asked = Asked::default();
        let most = MAX_OPEN as u64;
        for number in 0..most {
            assert_eq!(asked.ask(1, question(number)), Ok(()));
        }
        assert!(asked.ask(1, question(most)).is_err());
        // Others are not kept from asking.
        assert_eq!(asked.ask(2, question(0)), Ok(()));
        assert!(asked.answered(1, 5) && !asked.answered(1, 5));
        assert!(asked.ask(1, question(6)).is_err(), "the number is taken");
        assert_eq!(asked.ask(1, question(5)), Ok(()));
        asked.forget(1);
        assert_eq!(
            asked.all().map(|(index, q)| (index, q.number)).collect::<Vec<_>>(),
            [(2, 0)]
        );
    }
}
