// SPDX-License-Identifier: Apache-2.0
//! What a target does with one frame of an origin.

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_engine::{Peer, Port, SendBuffer};
use isthmus_lock::shared::LockKind;
use isthmus_wire::frame::Header;
use isthmus_wire::rma::{Does, Failure, Operation, What};

use super::origin::{Begun, Origin};
use super::outgoing::{Answered, Outgoing, halves, header, key};
use super::work::{Elements, Wrong, class};
use crate::window::Window;

/// Most bytes of answers in memory of our own for one origin: what more it asks for waits.
const MOST_COPIED: u64 = 8 << 20;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// All is done.
    Over,
    /// An answer leaves; until then the frame counts as here.
    Answered { copied: u64, lent: bool },
    /// It cannot be done now. `block`: because of the lock of a block.
    Later { block: bool },
    /// An honest process does not send it.
    Lie(&'static str),
}

/// How a request wants a lock.
pub(super) fn kind_of(number: u64) -> LockKind {
    match number {
        0 => LockKind::Shared,
        2 => LockKind::All,
        _ => LockKind::Exclusive,
    }
}

/// A frame that is being done.
pub(super) struct Doing<'a, 'b> {
    pub(super) window: &'a Window,
    pub(super) origin: &'a mut Origin,
    pub(super) port: &'a mut Port<'b>,
    pub(super) out: &'a mut Outgoing,
    pub(super) from: (Peer, &'a Header),
}

impl Doing<'_, '_> {
    /// Answers the question of a frame without data.
    pub(super) fn done(&mut self) -> Step {
        self.tell_done(halves(self.from.1).1)
    }

    /// Gives the lock to its origin if nobody else has or wants it.
    pub(super) fn lock_at_once(&mut self) -> Step {
        let kind = kind_of(self.from.1.auxiliary());
        match self.origin.enter_at_once(self.window, kind) {
            true => self.done(),
            false => self.refuse(),
        }
    }

    /// Answers that a lock is not to be had at once.
    pub(super) fn refuse(&mut self) -> Step {
        let (context, question) = halves(self.from.1);
        self.answer(header(What::Refused, context, question, 0), SendBuffer::EMPTY, 0)
    }

    fn tell_done(&mut self, question: u32) -> Step {
        let context = halves(self.from.1).0;
        let header = header(What::Done, context, question, 0);
        self.answer(header, SendBuffer::EMPTY, 0)
    }

    fn answer(&mut self, header: Header, payload: SendBuffer, copied: u64) -> Step {
        self.answer_with(header, payload, copied, false)
    }

    fn answer_with(&mut self, header: Header, payload: SendBuffer, copied: u64, lent: bool) -> Step {
        let answered = Answered {
            frame: self.from.1.length,
            odd: self.from.1.common,
            copied,
            lent,
        };
        let to = (key(self.window.comm.channel().context), self.from.0);
        match self.out.answer(self.port, to, header, payload, answered) {
            true => Step::Answered { copied, lent },
            false => Step::Over,
        }
    }

    /// Data that were asked for, in memory of our own.
    fn give(&mut self, question: u32, at: u64, data: Vec<u8>) -> Step {
        let header = header(What::Answer, halves(self.from.1).0, question, at);
        let copied = data.len() as u64;
        self.answer(header, SendBuffer::owned(data.into()), copied)
    }

    /// Whether so much more may be copied for this origin now.
    fn has_room(&self, bytes: u64) -> bool {
        self.origin.copied == 0 || self.origin.copied + bytes <= MOST_COPIED
    }

    /// The program of the origin has made a mistake.
    fn fail(&mut self, question: u32, error: &Error) -> Step {
        let failure = Failure {
            class: class(error),
            text: error.to_string(),
        };
        let header = header(What::Failed, halves(self.from.1).0, question, 0);
        self.answer(header, SendBuffer::owned(failure.encode().into()), 0)
    }

    /// Operations of at most so many bytes, or a piece of them; `act`: what is done when they are here whole.
    pub(super) fn whole(&mut self, payload: &[u8], most: usize, act: fn(&mut Self, &[u8]) -> Step) -> Step {
        let whole = halves(self.from.1).1 as usize;
        let before = self.origin.pieces.len();
        let fits = whole <= most && before as u64 == self.from.1.auxiliary() && !payload.is_empty();
        if self.origin.begun.is_some() || !fits || before + payload.len() > whole {
            return Step::Lie("an operation on a window in pieces that do not follow each other");
        }
        if before == 0 && payload.len() == whole {
            return act(self, payload);
        }
        if before + payload.len() < whole {
            self.origin.pieces.extend_from_slice(payload);
            return Step::Over;
        }
        let mut pieces = std::mem::take(&mut self.origin.pieces);
        pieces.extend_from_slice(payload);
        let step = act(self, &pieces);
        if matches!(step, Step::Later { .. }) {
            pieces.truncate(before);
            self.origin.pieces = pieces;
        }
        step
    }

    /// A whole operation.
    pub(super) fn operation(&mut self, bytes: &[u8]) -> Step {
        let Ok(operation) = Operation::decode(bytes) else {
            return Step::Lie("an operation on a window that is none");
        };
        let flushes = operation.question != 0 && matches!(operation.does, Does::Put | Does::Accumulate);
        match self.begin(&operation) {
            Ok(Step::Over) if flushes => self.tell_done(operation.question),
            Ok(step) => step,
            Err(error) => self.fail(operation.question, &error),
        }
    }

    /// A whole bundle of them. One that cannot be done now keeps those behind it, and its origin hears of the first
    /// mistake when all are done.
    pub(super) fn bundle(&mut self, bytes: &[u8]) -> Step {
        let (mut mark, mut mistake) = self.origin.bundled.take().map(|begun| *begun).unwrap_or_default();
        loop {
            let before = mark;
            let operation = match mark.next(bytes) {
                Ok(Some(operation)) => operation,
                Ok(None) => break,
                Err(_) => return Step::Lie("operations on a window that are none"),
            };
            match self.begin(&operation) {
                Ok(Step::Over) => {}
                Ok(Step::Later { block }) => {
                    self.origin.bundled = Some(Box::new((before, mistake)));
                    return Step::Later { block };
                }
                Ok(Step::Answered { .. }) => return Step::Lie("an operation that asks among those that do not"),
                Ok(Step::Lie(what)) => return Step::Lie(what),
                Err(error) => mistake = mistake.or(Some(error)),
            }
        }
        mistake.map_or(Step::Over, |error| self.fail(0, &error))
    }

    /// An error is a mistake of the program of the origin.
    fn begin(&mut self, operation: &Operation<'_>) -> Result<Step> {
        let form = self.port.representation(self.from.0);
        let datatype = match self.origin.types.find(operation.number, operation.datatype) {
            Ok(datatype) => datatype,
            Err(lie) => return Ok(Step::Lie(lie)),
        };
        let waits_for_data = operation.data.is_empty() && operation.does != Does::Get;
        let elements = match Elements::of(self.window, operation, datatype, form) {
            Ok(elements) => elements,
            Err(Wrong::Lie(what)) => return Ok(Step::Lie(what)),
            Err(Wrong::Mistake(error)) => {
                // Data that follow are thrown away. What is only read has none.
                let reads = operation.op == isthmus_datatype::op::Predefined::NoOp.handle();
                if waits_for_data && !reads {
                    self.origin.begun = Some(Begun::new(operation, None));
                }
                return Err(error);
            }
        };
        let question = operation.question;
        if operation.does == Does::Get {
            let header = header(What::Answer, halves(self.from.1).0, question, 0);
            return Ok(self.answer_with(header, elements.data()?, 0, true));
        }
        if elements.reads() {
            return Ok(self.read(operation, &elements));
        }
        if waits_for_data {
            self.origin.begun = Some(Begun::new(operation, Some(elements)));
            return Ok(Step::Over);
        }
        let mut rest = Vec::new();
        self.apply((operation.does, question), &elements, 0, operation.data, &mut rest)
    }

    /// A piece of the data of the operation that has begun.
    pub(super) fn data(&mut self, payload: &[u8]) -> Step {
        let Some(mut begun) = self.origin.begun.take() else {
            return Step::Lie("data of no operation on a window");
        };
        let bytes = payload.len() as u64;
        if self.from.1.auxiliary() != begun.got || bytes == 0 || bytes > begun.length - begun.got {
            return Step::Lie("more data of an operation on a window than it has");
        }
        let applied = match &begun.elements {
            Some(elements) => {
                let mut rest = std::mem::take(&mut begun.rest);
                let at = begun.got - rest.len() as u64;
                let before = rest.len();
                let step = self.apply((begun.does, begun.question), elements, at, payload, &mut rest);
                if matches!(step, Ok(Step::Later { .. })) {
                    rest.truncate(before);
                }
                begun.rest = rest;
                step
            }
            None => Ok(Step::Over),
        };
        let step = applied.unwrap_or_else(|error| {
            // An operation fails once. What else comes of its data is thrown away.
            begun.elements = None;
            self.fail(begun.question, &error)
        });
        if !matches!(step, Step::Later { .. }) {
            begun.got += bytes;
        }
        if begun.got < begun.length {
            self.origin.begun = Some(begun);
        }
        step
    }

    /// Applies data from byte `at` on, as their origin counts. `rest`: the beginning of an element, in and out; if
    /// nothing could be done it has bytes of the data behind what it had.
    fn apply(
        &mut self,
        (does, question): (Does, u32),
        elements: &Elements,
        mut at: u64,
        data: &[u8],
        rest: &mut Vec<u8>,
    ) -> Result<Step> {
        let done = match does {
            Does::Put if elements.is_alike() => elements.put(at, data).map(|()| Ok(None)),
            Does::Swap if !self.has_room(data.len() as u64) => return Ok(Step::Later { block: false }),
            Does::Swap => elements.swap(self.window, data).map(|done| done.map(Some)),
            _ => {
                let joined;
                let all = if rest.is_empty() {
                    data
                } else {
                    rest.extend_from_slice(data);
                    joined = rest.clone();
                    &joined
                };
                let whole = elements.whole(at, all.len());
                let operands = elements.localized(at, &all[..whole])?;
                let fetches = does == Does::Fetch;
                if fetches && !self.has_room(operands.bytes.len() as u64) {
                    return Ok(Step::Later { block: false });
                }
                let mut before = vec![0; if fetches { operands.bytes.len() } else { 0 }];
                let changed = match (whole, does) {
                    (0, _) => Ok(Ok(())),
                    (_, Does::Put) => elements.put(operands.at, &operands.bytes).map(Ok),
                    _ => elements.change(self.window, operands.at, &operands.bytes, &mut before),
                };
                if let Ok(Ok(())) = changed {
                    *rest = all[whole..].to_vec();
                }
                at = operands.at;
                changed.map(|done| done.map(|()| (fetches && whole > 0).then_some(before)))
            }
        };
        Ok(match done? {
            Ok(None) => Step::Over,
            Ok(Some(before)) => self.give(question, at, before),
            Err(_) => Step::Later { block: true },
        })
    }

    /// What a fetch that changes nothing asks for.
    fn read(&mut self, operation: &Operation<'_>, elements: &Elements) -> Step {
        if !self.has_room(operation.length) {
            return Step::Later { block: false };
        }
        let mut before = vec![0; operation.length as usize];
        match elements.change(self.window, operation.first, &[], &mut before) {
            Ok(Ok(())) => self.give(operation.question, 0, before),
            Ok(Err(_)) => Step::Later { block: true },
            Err(error) => self.fail(operation.question, &error),
        }
    }
}

/// A frame for a window that was freed early: its question, if it is one, has an answer.
#[cold]
pub(super) fn refuse_late(port: &mut Port<'_>, peer: Peer, head: &Header, payload: &[u8]) {
    let (context, lower) = halves(head);
    let question = match What::from_tag(head.tag) {
        Some(What::Unlock | What::Flush | What::Try) => lower,
        Some(What::Operate) if head.auxiliary() == 0 => Operation::question_of(payload),
        _ => 0,
    };
    tell_late(port, peer, context, question);
}

/// The same to a question, if it is one.
pub(super) fn tell_late(port: &mut Port<'_>, peer: Peer, context: u32, question: u32) {
    if question == 0 {
        return;
    }
    let failure = Failure {
        class: abi::MPIX_ERR_PROC_FAILED as u32,
        text: "the target has freed the window, because a process of it is lost".into(),
    };
    let failed = header(What::Failed, context, question, 0);
    // A peer that is lost needs no answer.
    let _ = port.send(peer, failed, SendBuffer::owned(failure.encode().into()), None);
}
