// SPDX-License-Identifier: Apache-2.0
//! What processes have asked the coordinator and not been answered, and what holds that they have told it.

use isthmus_wire::question::{Answer, Ask, MAX_OPEN, Question};
use std::collections::BTreeMap;

/// Questions by index and number.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: BTreeMap<(u32, u64), Question>,
    /// Names that are published and meetings that last: a coordinator that takes the job up does not know them.
    lasting: BTreeMap<(u32, u64), Question>,
}

impl Questions {
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
    pub(crate) fn answered(&mut self, index: u32, answer: &Answer) -> bool {
        let Some(question) = self.open.remove(&(index, answer.number)) else {
            return false;
        };
        if answer.said.is_ok() {
            self.note(index, question);
        }
        true
    }

    /// What a process has asked for is done. Of each process so much lasts that all of it can be told again at once.
    fn note(&mut self, index: u32, question: Question) {
        match &question.ask {
            Ask::Publish { .. } | Ask::Met { .. } => {
                let lasting = self.lasting.range((index, 0)..=(index, u64::MAX)).count();
                if lasting < MAX_OPEN {
                    self.lasting.insert((index, question.number), question);
                }
            }
            Ask::Unpublish { scope, name, port } => {
                let is_it = |ask: &Ask| match ask {
                    Ask::Publish {
                        scope: of,
                        name: published,
                        port: to,
                    } => scope.is_none_or(|scope| scope == *of) && (published, to) == (name, port),
                    _ => false,
                };
                self.end(index, is_it);
            }
            Ask::Parted { meeting } => {
                self.end(
                    index,
                    |ask| matches!(ask, Ask::Met { meeting: of, .. } if of == meeting),
                );
            }
            _ => {}
        }
    }

    /// One thing of a process does not last any more.
    fn end(&mut self, index: u32, is_it: impl Fn(&Ask) -> bool) {
        let mut all = self.lasting.range((index, 0)..=(index, u64::MAX));
        let found = all.find(|(_, question)| is_it(&question.ask)).map(|(key, _)| *key);
        found.map(|key| self.lasting.remove(&key));
    }

    /// A process is gone: nobody waits for its answers.
    pub(crate) fn forget(&mut self, index: u32) {
        self.open.retain(|(of, _), _| *of != index);
        self.lasting.retain(|(of, _), _| *of != index);
    }

    /// All of them, for a coordinator that may not have heard them: of each process as many as may be open.
    pub(crate) fn all(&self) -> Vec<(u32, Question)> {
        let mut of = BTreeMap::new();
        let all = self.open.iter().chain(&self.lasting);
        let may_be_open = |((index, _), _): &(&(u32, u64), &Question)| {
            let count = of.entry(*index).or_insert(0usize);
            *count += 1;
            *count <= MAX_OPEN
        };
        all.filter(may_be_open)
            .map(|((index, _), question)| (*index, question.clone()))
            .collect()
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
    use isthmus_wire::question::{Kind, Refusal, Said, Scope};

    fn question(number: u64) -> Question {
        let ask = Ask::Lookup {
            scope: None,
            name: "x".into(),
        };
        Question { number, ask }
    }

    fn done(number: u64) -> Answer {
        let said = Ok(Said::Done);
        Answer { number, said }
    }

    #[test]
    fn a_process_has_so_many_open_questions_with_different_numbers() {
        let mut asked = Questions::default();
        let most = MAX_OPEN as u64;
        for number in 0..most {
            assert_eq!(asked.ask(1, question(number)), Ok(()));
        }
        assert!(asked.ask(1, question(most)).is_err());
        // Others are not kept from asking.
        assert_eq!(asked.ask(2, question(0)), Ok(()));
        assert!(asked.answered(1, &done(5)) && !asked.answered(1, &done(5)));
        assert!(asked.ask(1, question(6)).is_err(), "the number is taken");
        assert_eq!(asked.ask(1, question(5)), Ok(()));
        asked.forget(1);
        assert_eq!(
            asked
                .all()
                .iter()
                .map(|(index, q)| (*index, q.number))
                .collect::<Vec<_>>(),
            [(2, 0)]
        );
    }

    #[test]
    fn names_and_meetings_last_until_they_are_taken_back() {
        let mut asked = Questions::default();
        let (name, port) = ("ocean".to_owned(), "p".to_owned());
        let scope = Scope::Job;
        let publish = Ask::Publish {
            scope,
            name: name.clone(),
            port: port.clone(),
        };
        let unpublish = |port: &str| Ask::Unpublish {
            scope: None,
            name: name.clone(),
            port: port.to_owned(),
        };
        let meeting = [7; 16];
        let with = Vec::new();
        let mut last = 0;
        let mut ask = |asked: &mut Questions, ask: Ask, said: Result<Said, Refusal>| {
            last += 1;
            assert_eq!(asked.ask(1, Question { number: last, ask }), Ok(()));
            assert!(asked.answered(1, &Answer { number: last, said }));
            asked.all().len()
        };
        let refused = Err(Refusal::new(Kind::Taken, "taken"));
        assert_eq!(ask(&mut asked, publish.clone(), refused), 0);
        assert_eq!(ask(&mut asked, publish.clone(), Ok(Said::Done)), 1);
        assert_eq!(ask(&mut asked, Ask::Met { meeting, with }, Ok(Said::Done)), 2);
        assert_eq!(ask(&mut asked, unpublish("another"), Ok(Said::Done)), 2);
        assert_eq!(ask(&mut asked, unpublish("p"), Ok(Said::Done)), 1);
        assert_eq!(ask(&mut asked, Ask::Parted { meeting }, Ok(Said::Done)), 0);
        for _ in 0..3 * MAX_OPEN {
            ask(&mut asked, publish.clone(), Ok(Said::Done));
        }
        assert_eq!(asked.all().len(), MAX_OPEN);
        asked.forget(1);
        assert!(asked.all().is_empty());
    }
}
