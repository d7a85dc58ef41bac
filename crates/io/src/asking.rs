// SPDX-License-Identifier: Apache-2.0
//! Questions to a process that reaches a file, and its answers.

use isthmus_core::error::{Error, Result};
use isthmus_wire::file::{ANSWER, Answer, MAX_TEXT, QUESTION, Question, What};

use crate::here::Here;
use crate::processes::Processes;
use crate::task::{Message, Post};

/// Tag of questions.
pub(crate) const QUESTIONS: i32 = 1;
/// Tag of who gives back the right to access the file.
pub(crate) const UNLOCKS: i32 = 14;
/// Tag of who has closed a file that a guest has open, but for the first process, which asks.
pub(crate) const LEAVES: i32 = 15;
/// Tags of payloads and answers: with the number of the question.
pub(crate) const PAYLOADS: i32 = 1 << 29;
pub(crate) const ANSWERS: i32 = 1 << 30;

/// What is asked of a process that reaches the file.
pub(crate) struct Ask<'a> {
    pub(crate) what: What,
    pub(crate) number: u64,
    pub(crate) payload: &'a [u8],
    /// Bytes of data that may come.
    pub(crate) room: usize,
}

impl Ask<'_> {
    /// What needs a number only.
    pub(crate) fn of(what: What, number: u64) -> Self {
        Self {
            what,
            number,
            payload: &[],
            room: 0,
        }
    }

    /// Asks a process.
    pub(crate) fn send(self, post: &Post, processes: &Processes, whom: u32) -> Unanswered {
        let answer = processes.next_question();
        let question = Question {
            what: self.what,
            answer,
            number: self.number,
            payload: self.payload.len() as u64,
        };
        let receive = post.receive(Some(whom), ANSWERS | answer as i32, ANSWER + MAX_TEXT + self.room);
        processes.count(whom, QUESTION + self.payload.len());
        let mut sent = vec![post.send(whom, QUESTIONS, question.encode())];
        if !self.payload.is_empty() {
            sent.push(post.send(whom, PAYLOADS | answer as i32, self.payload));
        }
        Unanswered { sent, answer: receive }
    }
}

/// A question that was asked.
pub(crate) struct Unanswered {
    sent: Vec<Message>,
    answer: Message,
}

impl Unanswered {
    /// Waits for the answer about a file. `before`: bytes that are certainly there, for the error.
    pub(crate) async fn answer(self, here: &Here, before: u64) -> Result<Answer> {
        for message in self.sent {
            message.sent().await.map_err(|error| here.cut_off(&error, before))?;
        }
        let received = self.answer.received().await;
        let bytes = received.map_err(|error| here.cut_off(&error, before))?.bytes;
        let answer = Answer::decode(&bytes).map_err(|error| here.garbled(&error))?;
        match answer.class {
            0 => Ok(answer),
            class => Err(Error::named(class as i32, answer.text)),
        }
    }
}
