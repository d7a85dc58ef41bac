// SPDX-License-Identifier: Apache-2.0
//! A process that sends requests to this one: the names that it uses, pieces of a request that has not come whole, and
//! what waits to be done, in its order.

use std::collections::VecDeque;
use std::sync::Arc;

use isthmus_engine::Caller;
use isthmus_wire::frame::Header;
use isthmus_wire::requests::{MAX_BYTES, MAX_NAMES, Target, halves, is_name};

use crate::handlers::Handler;

/// Most bytes of replies to one process that have not left: what more it asks for waits.
const MOST_COPIED: u64 = 8 << 20;

/// What a request asks for.
pub(crate) enum Work {
    /// That all before it is done.
    Nothing,
    /// A handler is to be called.
    Call {
        handler: Arc<Handler>,
        target: Option<Target>,
        data: Vec<u8>,
    },
}

/// A request that has come whole.
pub(crate) struct Ready {
    pub(crate) question: u32,
    /// `None`: it has failed.
    pub(crate) work: Option<Work>,
    /// Bytes of its frames, which count as here until it is done.
    pub(crate) frames: Vec<u64>,
}

/// Pieces of a request.
pub(crate) struct Partial {
    tag: i32,
    pub(crate) question: u32,
    pub(crate) whole: usize,
    pub(crate) data: Vec<u8>,
    pub(crate) frames: Vec<u64>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Origin {
    pub(crate) names: Vec<Arc<str>>,
    partial: Option<Partial>,
    pub(crate) ready: VecDeque<Ready>,
    /// Bytes of replies that have not left.
    pub(crate) copied: u64,
}

/// What an honest process does not send.
pub(crate) type Lie = &'static str;

impl Origin {
    /// Its first request may be done by this caller.
    pub(crate) fn may_be_done(&self, caller: Caller) -> bool {
        let first = self.ready.front();
        self.copied < MOST_COPIED
            && first.is_some_and(|ready| match &ready.work {
                Some(Work::Call { handler, .. }) => caller == Caller::Program || handler.short,
                _ => true,
            })
    }

    /// It is gone: what has come whole is done all the same.
    pub(crate) fn lose(&mut self) {
        self.partial = None;
        self.copied = 0;
        self.ready.iter_mut().for_each(|ready| ready.frames.clear());
    }

    pub(crate) fn name(&mut self, number: u32, header: &Header, payload: &[u8]) -> Result<(), Lie> {
        let (question, whole) = halves(header.token);
        let next = self.names.len() + 1;
        let is_next = number as usize == next && next <= MAX_NAMES && self.partial.is_none();
        let is_whole = payload.len() == whole as usize && header.auxiliary() == 0 && question == 0;
        if !is_next || !is_whole || !is_name(payload) {
            return Err("a name of a handler that is none, or not the next one");
        }
        self.names.push(String::from_utf8_lossy(payload).into());
        Ok(())
    }

    /// A piece of a request; all of it if it was the last.
    pub(crate) fn piece(&mut self, header: &Header, payload: &[u8]) -> Result<Option<Partial>, Lie> {
        let (question, whole) = halves(header.token);
        let whole = whole as usize;
        let (at, bytes) = (header.auxiliary(), payload.len());
        let partial = self.partial.get_or_insert_with(|| Partial {
            tag: header.tag,
            question,
            whole,
            data: Vec::new(),
            frames: Vec::new(),
        });
        let same = (partial.tag, partial.question, partial.whole) == (header.tag, question, whole);
        let follows = at == partial.data.len() as u64 && bytes <= whole.saturating_sub(partial.data.len());
        if !same || !follows || whole > MAX_BYTES || bytes == 0 && whole > 0 {
            return Err("a remote service request in pieces that do not follow each other");
        }
        partial.data.extend_from_slice(payload);
        partial.frames.push(header.length);
        Ok(match partial.data.len() == whole {
            true => self.partial.take(),
            false => None,
        })
    }
}
