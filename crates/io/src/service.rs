// SPDX-License-Identifier: Apache-2.0
//! What processes that reach a file do for those that do not, and the owner of the shared pointer for all. A service is
//! an activity of the engine from open to close: progress drives it, and the program is not asked. Who asks what cannot
//! be asked is lost, and all others are answered as before ([`ears`](crate::ears)).

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use isthmus_core::error::Result;
use isthmus_engine::Request;
use isthmus_wire::file::{Answer, Question, What};

use crate::alone::UNDER_WAY;
use crate::asking::{ANSWERS, QUESTIONS, UNLOCKS};
use crate::atom::Atom;
use crate::ears::{Ears, FIRST, Inquiry};
use crate::file::File;
use crate::here::Here;
use crate::processes::Processes;
use crate::task::{self, Message, Post};

/// A process that answers questions about a file which it reaches.
pub(crate) struct Service {
    file: Arc<File>,
}

impl Service {
    pub(crate) fn of(file: Arc<File>) -> Self {
        Self { file }
    }

    /// Starts to serve others, if there is anything to do for them.
    pub(crate) fn start(self) -> Option<Request> {
        let processes = &self.file.processes;
        if !processes.is_asked() {
            return None;
        }
        let (world, channel) = (processes.world(), processes.channel().clone());
        Some(task::start(world, &channel, false, |post| {
            Box::pin(async move { self.run(&post).await })
        }))
    }

    /// Ends it: nobody asks any more. `why`: some are lost, so others may still ask. They get an error of this class
    /// until they have closed the file, too.
    pub(crate) fn stop(processes: &Processes, service: Request, why: Option<i32>) -> Result<()> {
        let me = processes.rank();
        processes.alone(|post| {
            Box::pin(async move {
                let question = Question {
                    what: What::Stop,
                    answer: 0,
                    number: why.and_then(|class| u64::try_from(class).ok()).unwrap_or(0),
                    payload: 0,
                };
                post.send(me, QUESTIONS, question.encode()).sent().await?;
                Ok(0)
            })
        })?;
        if why.is_some() {
            processes.world().engine().lock().release(service);
            return Ok(());
        }
        processes.world().wait(service).map(drop)
    }

    pub(crate) async fn run(self, post: &Post) -> Result<u64> {
        let (processes, here) = (&self.file.processes, &self.file.here);
        let mut ears = Ears::new(post, processes.is_guest(), processes.rank());
        let mut turns = Turns::default();
        let mut closes = None;
        let mut closed = None;
        while let Some(asked) = turns.next(&mut ears, post).await {
            let source = asked.source;
            if asked.question.what == What::Stop {
                if source == processes.rank() {
                    let class = asked.question.number as u32;
                    if class == 0 {
                        return Ok(0);
                    }
                    // Who waits for others hears it, too.
                    let turns = std::mem::take(&mut turns);
                    turns.waiting.iter().for_each(|asked| refuse(post, asked, class));
                    ears.await_leave_of(post, processes.others());
                    closed = Some(class);
                    continue;
                }
                if processes.is_guest() && source == FIRST && closes.is_none() {
                    // The others may not be so far: nobody ends it for them.
                    ears.await_leave(post);
                    closes = Some(asked.question.answer);
                } else {
                    ears.forget(post, source, "the end of a service that is not its own");
                }
                continue;
            }
            if let Some(class) = closed {
                refuse(post, &asked, class);
                continue;
            }
            if turns.waits(&asked, here.is_atomic()) {
                turns.keep(asked, &mut ears, post);
                continue;
            }
            let number = Processes::question(asked.question.answer) as i32;
            let answer = match self.answer(post, asked, &mut turns).await {
                Ok(answer) => answer,
                Err(error) => Answer::of_error(error.class as u32, here.named(error).to_string()),
            };
            let bytes = answer.encode();
            processes.count(source, bytes.len());
            post.send(source, ANSWERS | number, bytes).leave();
        }
        if closed.is_some() {
            return Ok(0);
        }
        // A lock that is still held goes first.
        drop(turns);
        self.close(post, closes).await
    }

    /// All for whom a guest has the file open have closed it, or are lost. `answer`: the number of the answer that the
    /// first of them waits for; without it that one is lost.
    async fn close(&self, post: &Post, answer: Option<u32>) -> Result<u64> {
        let here = self.file.here.clone();
        let closing = post.disk(move || {
            let deleted = here.delete_if_asked();
            let closed = here.close();
            deleted.and(closed)
        });
        let done = closing.await;
        if let Some(answer) = answer {
            let tag = ANSWERS | Processes::question(answer) as i32;
            let named = |error| self.file.here.named(error).to_string();
            let answer = done.map_or_else(
                |error| Answer::of_error(error.class as u32, named(error)),
                |()| Answer::default(),
            );
            post.send(FIRST, tag, answer.encode()).sent().await?;
        }
        Ok(0)
    }

    /// Whether it may do that for a process. What no file is touched by is not asked about.
    fn check(&self, source: u32, what: What) -> Result<()> {
        match what {
            What::Stop | What::Advance | What::Seek => Ok(()),
            _ if self.file.processes.is_elsewhere(source) => self.file.here.withheld(),
            _ => Ok(()),
        }
    }

    async fn answer(&self, post: &Post, asked: Inquiry, turns: &mut Turns) -> Result<Answer> {
        let Inquiry {
            source,
            question,
            payload,
        } = asked;
        self.check(source, question.what)?;
        let number = |bytes| Answer {
            bytes,
            ..Answer::default()
        };
        let here = self.file.here.clone();
        match question.what {
            What::Advance => Ok(number(self.file.shared.fetch_add(question.number, Ordering::SeqCst))),
            What::Size => here.size().map(number),
            What::Read => {
                let atom = turns.atom(post, &here, source, false).await?;
                let read = post.disk(move || {
                    let _atom = atom;
                    here.read_runs(question.number, &payload)
                });
                read.await
            }
            What::Write => {
                let atom = turns.atom(post, &here, source, true).await?;
                let written = post.disk(move || {
                    let _atom = atom;
                    here.write_runs(question.number, &payload)
                });
                written.await.map(number)
            }
            What::Lock => {
                let atom = here.lock(post, question.number != 0).await?;
                turns.holder = Some(Holder {
                    rank: source,
                    given_back: post.receive(Some(source), UNLOCKS, 0),
                    atom,
                });
                Ok(Answer::default())
            }
            // The end is no question to the file.
            What::Stop | What::SetSize | What::Preallocate | What::Sync | What::Seek | What::Atomic => {
                self.file.act_here(post, question.what, question.number).await?;
                Ok(Answer::default())
            }
        }
    }
}

/// The file is closed here, and the process that asks has not closed it.
fn refuse(post: &Post, asked: &Inquiry, class: u32) {
    let text = "the process that reaches it has closed it, because a process that had it open is lost";
    let number = Processes::question(asked.question.answer) as i32;
    let answer = Answer::of_error(class, text.to_owned());
    post.send(asked.source, ANSWERS | number, answer.encode()).leave();
}

/// A process that has the file for itself.
struct Holder {
    rank: u32,
    /// What it sends when it does not need it any more. If it is lost this cannot come, and the file is free too.
    given_back: Message,
    atom: Atom,
}

/// Who has the file for itself in atomic mode, and who waits for it.
#[derive(Default)]
struct Turns {
    holder: Option<Holder>,
    /// Questions that came meanwhile.
    waiting: VecDeque<Inquiry>,
}

impl Turns {
    /// What to answer next; `None`: nobody is there any more for whom a guest has the file open.
    async fn next(&mut self, ears: &mut Ears, post: &Post) -> Option<Inquiry> {
        loop {
            let Some(holder) = &self.holder else {
                return match self.waiting.pop_front() {
                    Some(asked) => Some(asked),
                    None => ears.next(post).await,
                };
            };
            // Nothing is lost of a question whose wait ends here: what has come of it stays with the ears.
            let mut next = pin!(ears.next(post));
            let event = std::future::poll_fn(|context| match holder.given_back.heard() {
                Some(_) => Poll::Ready(None),
                None => next.as_mut().poll(context).map(Some),
            });
            if let Some(asked) = event.await {
                return asked;
            }
            if let Some(holder) = self.holder.take() {
                post.disk(move || drop(holder.atom)).await;
            }
        }
    }

    /// Whether a question waits until the file is free.
    fn waits(&self, asked: &Inquiry, is_atomic: bool) -> bool {
        self.holder.as_ref().is_some_and(|holder| match asked.question.what {
            What::Read | What::Write => is_atomic && holder.rank != asked.source,
            What::Lock => true,
            _ => false,
        })
    }

    /// Keeps a question until the file is free. A process has one access at a time in atomic mode, of so many pieces.
    fn keep(&mut self, asked: Inquiry, ears: &mut Ears, post: &Post) {
        let source = asked.source;
        if self.waiting.iter().filter(|known| known.source == source).count() < UNDER_WAY {
            return self.waiting.push_back(asked);
        }
        self.waiting.retain(|known| known.source != source);
        ears.forget(post, source, "more accesses in atomic mode at a time than it may");
    }

    /// The right to access the file for an access of one piece. Who has the file for itself has it already.
    async fn atom(&self, post: &Post, here: &Arc<Here>, source: u32, writes: bool) -> Result<Option<Atom>> {
        match &self.holder {
            Some(holder) if holder.rank == source => Ok(None),
            _ => here.atom(post, writes).await,
        }
    }
}
