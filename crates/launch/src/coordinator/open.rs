// SPDX-License-Identifier: Apache-2.0
//! Which questions of processes are open, and what was answered last.

use isthmus_wire::question::{Answer, MAX_OPEN};
use std::collections::{BTreeSet, HashMap, VecDeque};

pub(crate) use crate::happening::Process;

/// What all processes have asked.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    of: HashMap<Process, Of>,
}

/// What one has asked.
#[derive(Debug, Default)]
struct Of {
    open: BTreeSet<u64>,
    /// The last answers: they may have been lost with a connection, and then are asked for again.
    answers: VecDeque<Answer>,
}

/// What a question is worth.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// It is to be answered.
    New,
    /// It is being answered.
    Open,
    /// It was answered with this.
    Answered(Answer),
    /// It is one too many.
    TooMany,
}

impl Asked {
    pub(crate) fn ask(&mut self, process: Process, number: u64) -> Worth {
        let of = self.of.entry(process).or_default();
        if of.open.contains(&number) {
            return Worth::Open;
        }
        if let Some(answer) = of.answers.iter().find(|answer| answer.number == number) {
            return Worth::Answered(answer.clone());
        }
        if of.open.len() >= MAX_OPEN {
            return Worth::TooMany;
        }
        of.open.insert(number);
        Worth::New
    }

    /// Whether the process still waits for it.
    pub(crate) fn answer(&mut self, process: Process, answer: &Answer) -> bool {
        let Some(of) = self.of.get_mut(&process) else {
            return false;
        };
        if !of.open.remove(&answer.number) {
            return false;
        }
        of.answers.push_back(answer.clone());
        if of.answers.len() > MAX_OPEN {
            of.answers.pop_front();
        }
        true
    }

    /// The process has ended.
    pub(crate) fn forget(&mut self, process: Process) {
        self.of.remove(&process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::question::Said;

    #[test]
    fn a_question_that_comes_again_gets_the_same_answer_once_there_is_one() {
        let mut asked = Asked::default();
        let process = (0, 3);
        let answer = |number| Answer {
            number,
            said: Ok(Said::Done),
        };
        assert_eq!(asked.ask(process, 1), Worth::New);
        assert_eq!(asked.ask(process, 1), Worth::Open);
        assert!(asked.answer(process, &answer(1)) && !asked.answer(process, &answer(1)));
        assert_eq!(asked.ask(process, 1), Worth::Answered(answer(1)));
        assert_eq!(asked.ask((1, 3), 1), Worth::New, "another process");
        asked.forget(process);
        assert!(!asked.answer(process, &answer(1)));
    }

    #[test]
    fn so_many_questions_are_open_and_so_many_answers_are_kept() {
        let mut asked = Asked::default();
        let process = (0, 0);
        let most = MAX_OPEN as u64;
        (0..most).for_each(|number| assert_eq!(asked.ask(process, number), Worth::New));
        assert_eq!(asked.ask(process, most), Worth::TooMany);
        for number in 0..10 * most {
            let said = Ok(Said::Done);
            asked.answer(process, &Answer { number, said });
            asked.ask(process, number + most);
        }
        assert_eq!(asked.of[&process].answers.len(), MAX_OPEN);
        assert_eq!(asked.of[&process].open.len(), MAX_OPEN);
    }
}
