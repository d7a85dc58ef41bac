// SPDX-License-Identifier: Apache-2.0
//! What a service hears: questions of all, and the payload of each. A member that asks out of rule is lost, by name.
//! One whose question or payload does not come keeps nobody else waiting.
//!
//! Of each member one payload is received at a time, in the order of its questions. What a member has announced and not
//! sent stays with what was posted for it, and another receive is posted for the others.

use std::collections::{BTreeMap, VecDeque};
use std::task::Poll;

use isthmus_wire::file::{QUESTION, Question};

use crate::asking::{LEAVES, PAYLOADS, QUESTIONS};
use crate::processes::Processes;
use crate::task::{Heard, Message, Post, Received};

/// Questions of a member that wait for the payload of one before them: many operations that do not block ask at a time.
const MOST: usize = 1 << 16;
/// The same of questions that have begun to come.
const MOST_BEGUN: usize = 1 << 12;
/// Rank of the process that opens a file through a guest.
pub(crate) const FIRST: u32 = 0;
/// Tag that nobody uses: a receive with it ends when its sender is lost.
const NEVER: i32 = 2;

/// A question with its payload.
pub(crate) struct Inquiry {
    pub(crate) source: u32,
    pub(crate) question: Question,
    pub(crate) payload: Vec<u8>,
}

/// What a member has asked.
#[derive(Default)]
struct Asker {
    waiting: VecDeque<Question>,
    /// The payload of a question that comes now.
    coming: Option<(Question, Message)>,
}

/// What a service listens with.
pub(crate) struct Ears {
    /// For the next question.
    next: Message,
    /// Questions that have begun to come: whose they are.
    begun: Vec<(u32, Message)>,
    askers: BTreeMap<u32, Asker>,
    ready: VecDeque<Inquiry>,
    /// Of a guest: ends when the one that opened the file is lost.
    first: Option<Message>,
    /// Where the file is being closed and others may still ask: what those send who have not closed it. One that is
    /// lost sends nothing.
    leaving: Option<Vec<Message>>,
    /// Own rank: behind those for whom a guest has the file open.
    me: u32,
}

/// What happens.
enum Event {
    Question(Heard),
    Begun(u32),
    Late(usize, Heard),
    Payload(u32, Heard),
    FirstIsLost,
    /// One that is awaited has closed the file, or is lost.
    Left(usize),
    AllLeft,
}

impl Ears {
    pub(crate) fn new(post: &Post, is_guest: bool, me: u32) -> Self {
        Self {
            next: post.receive(None, QUESTIONS, QUESTION),
            begun: Vec::new(),
            askers: BTreeMap::new(),
            ready: VecDeque::new(),
            first: is_guest.then(|| post.receive(Some(FIRST), NEVER, 0)),
            leaving: None,
            me,
        }
    }

    /// The first process has closed the file, or is lost: it is open until all others have left, too.
    pub(crate) fn await_leave(&mut self, post: &Post) {
        if let Some(first) = self.first.take() {
            first.leave();
        }
        self.await_leave_of(post, (FIRST + 1..self.me).collect());
    }

    /// It goes on until these have left.
    pub(crate) fn await_leave_of(&mut self, post: &Post, others: Vec<u32>) {
        let others = others.into_iter();
        self.leaving = Some(others.map(|rank| post.receive(Some(rank), LEAVES, 0)).collect());
    }

    /// The next question; `None`: all have left for whom a guest has the file open.
    pub(crate) async fn next(&mut self, post: &Post) -> Option<Inquiry> {
        loop {
            if let Some(asked) = self.ready.pop_front() {
                return Some(asked);
            }
            let event = std::future::poll_fn(|_| self.look().map_or(Poll::Pending, Poll::Ready)).await;
            match event {
                Event::Question(heard) => {
                    self.next = post.receive(None, QUESTIONS, QUESTION);
                    self.asked(post, heard);
                }
                Event::Begun(source) => {
                    let begun = std::mem::replace(&mut self.next, post.receive(None, QUESTIONS, QUESTION));
                    self.begun.push((source, begun));
                    if self.begun.iter().filter(|(rank, _)| *rank == source).count() > MOST_BEGUN {
                        self.forget(post, source, "questions about a file that do not end");
                    }
                }
                Event::Late(at, heard) => {
                    self.begun.swap_remove(at);
                    self.asked(post, heard);
                }
                Event::Payload(source, heard) => self.paid(post, source, heard),
                Event::FirstIsLost => {
                    self.first = None;
                    self.await_leave(post);
                }
                Event::Left(at) => drop(self.leaving.as_mut().map(|leaving| leaving.swap_remove(at))),
                Event::AllLeft => return None,
            }
        }
    }

    fn look(&self) -> Option<Event> {
        if self.first.as_ref().is_some_and(|first| first.heard().is_some()) {
            return Some(Event::FirstIsLost);
        }
        let mut coming = self.askers.iter();
        let payload = coming.find_map(|(source, asker)| {
            let (_, message) = asker.coming.as_ref()?;
            Some(Event::Payload(*source, message.heard()?))
        });
        let mut begun = self.begun.iter().enumerate();
        let late = || begun.find_map(|(at, (_, message))| Some(Event::Late(at, message.heard()?)));
        let next = || match self.next.heard() {
            Some(heard) => Some(Event::Question(heard)),
            None => self.next.begun().map(Event::Begun),
        };
        let left = || match self.leaving.as_ref()? {
            none if none.is_empty() => Some(Event::AllLeft),
            some => some.iter().position(|one| one.heard().is_some()).map(Event::Left),
        };
        payload.or_else(late).or_else(next).or_else(left)
    }

    /// A question has come.
    fn asked(&mut self, post: &Post, heard: Heard) {
        let Received { source, bytes } = match heard {
            Heard::Message(message) => message,
            Heard::TooLong(source) => return self.forget(post, source, "a question about a file that is too long"),
            // One of them: the others go on.
            Heard::Nobody => return,
        };
        let Ok(question) = Question::decode(&bytes) else {
            return self.forget(post, source, "an invalid question about a file");
        };
        let waiting = &mut self.askers.entry(source).or_default().waiting;
        waiting.push_back(question);
        if waiting.len() > MOST {
            return self.forget(post, source, "more questions about a file than it may");
        }
        self.advance(post, source);
    }

    /// The payload of a member's question has come.
    fn paid(&mut self, post: &Post, source: u32, heard: Heard) {
        let Some((question, _)) = self.askers.get_mut(&source).and_then(|asker| asker.coming.take()) else {
            return;
        };
        match heard {
            Heard::Message(message) if message.bytes.len() as u64 == question.payload => {
                let payload = message.bytes;
                self.ready.push_back(Inquiry {
                    source,
                    question,
                    payload,
                });
                self.advance(post, source);
            }
            Heard::Message(_) | Heard::TooLong(_) => {
                self.forget(post, source, "data for a file whose length is not the announced one");
            }
            Heard::Nobody => drop(self.askers.remove(&source)),
        }
    }

    /// Goes on with the questions of a member until one needs a payload.
    fn advance(&mut self, post: &Post, source: u32) {
        let Some(asker) = self.askers.get_mut(&source).filter(|asker| asker.coming.is_none()) else {
            return;
        };
        while let Some(question) = asker.waiting.pop_front() {
            if question.payload > 0 {
                let tag = PAYLOADS | Processes::question(question.answer) as i32;
                let message = post.receive(Some(source), tag, question.payload as usize);
                asker.coming = Some((question, message));
                return;
            }
            self.ready.push_back(Inquiry {
                source,
                question,
                payload: Vec::new(),
            });
        }
    }

    /// A member has broken the rules: nothing of it is answered any more.
    pub(crate) fn forget(&mut self, post: &Post, source: u32, what: &'static str) {
        post.accuse(source, what);
        self.ready.retain(|asked| asked.source != source);
        if let Some((_, payload)) = self.askers.remove(&source).and_then(|asker| asker.coming) {
            payload.leave();
        }
    }
}
