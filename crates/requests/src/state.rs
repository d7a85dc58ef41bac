// SPDX-License-Identifier: Apache-2.0
//! What a process knows of requests: its handlers and memory, those to whom it sends and who send to it, what has not
//! left, and what it has asked.
//!
//! It has a mutex of its own, which is taken with the engine or without it, and never the other way round: functions of
//! the program run without either.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

use isthmus_core::error::{Error, Result};
use isthmus_engine::{Caller, Completion, Core, Peer, Request};
use isthmus_wire::frame::protocol;
use isthmus_wire::requests::Target;
use isthmus_wire::rma::Failure;

use crate::asked::OpenQuestion;
use crate::call::in_handler;
use crate::handlers::{Handler, Handlers};
use crate::origin::{Origin, Ready};
use crate::regions::Regions;

/// Most bytes of requests for one process that have not left when there is room for another one.
const MOST_WAITING: u64 = 1 << 20;
/// What a request without data counts as.
pub(crate) const COST: u64 = 128;

/// See the module.
#[derive(Default)]
pub(crate) struct Desk {
    state: Mutex<State>,
    /// Handlers have left something to be sent.
    pub(crate) has_out: AtomicBool,
    pub(crate) me: OnceLock<(Peer, u32)>,
}

/// A process to which this one sends.
#[derive(Default)]
pub(crate) struct Receiver {
    /// Numbers of names that it has been told.
    pub(crate) names: HashMap<Box<str>, u32>,
    /// Bytes of requests that have not left.
    pub(crate) waiting: u64,
    /// The first request that has failed there and that nobody waited for.
    pub(crate) failed: Option<Error>,
}

/// What has not left yet.
pub(crate) enum Leaving {
    Request(Peer, u64),
    Answer(Peer, u64),
}

/// What is to be sent when the engine is there.
pub(crate) enum Out {
    /// A request that a handler sends.
    Request {
        peer: Peer,
        handler: Arc<Handler>,
        target: Option<Target>,
        data: Vec<u8>,
    },
    /// A request is done.
    Ended {
        peer: Peer,
        ready: Ready,
        outcome: std::result::Result<Vec<u8>, Failure>,
    },
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) handlers: Handlers,
    pub(crate) regions: Regions,
    pub(crate) to: HashMap<Peer, Receiver>,
    pub(crate) origins: HashMap<Peer, Origin>,
    /// Those that have requests waiting, in turn.
    pub(crate) turns: VecDeque<Peer>,
    pub(crate) asked: HashMap<u32, OpenQuestion>,
    numbers: u32,
    pub(crate) leaving: HashMap<u64, Leaving>,
    pub(crate) names: u64,
    pub(crate) out: VecDeque<Out>,
    /// The thread that calls handlers, and which handler it is in.
    pub(crate) running: Option<(ThreadId, u32)>,
    /// How many requests have been done here that called a handler.
    pub(crate) ran: u64,
    /// The process has called MPI_Finalize.
    pub(crate) closed: bool,
}

impl Desk {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process and its rank in MPI_COMM_WORLD, once there is a world.
    pub(crate) fn me(&self) -> Option<(Peer, u32)> {
        self.me.get().copied()
    }

    /// Whether the calling thread is in a handler.
    pub(crate) fn is_in_handler(&self) -> bool {
        let running = self.lock().running;
        running.is_some_and(|(thread, _)| thread == std::thread::current().id())
    }

    /// What waits may not be called in handlers.
    pub(crate) fn may_be_called(&self, function: &str) -> Result<()> {
        if self.is_in_handler() {
            return Err(in_handler(function));
        }
        Ok(())
    }

    /// Handlers want something sent.
    pub(crate) fn leave(&self, state: &mut State, out: Out) {
        state.out.push_back(out);
        self.has_out.store(true, Ordering::Release);
    }

    pub(crate) fn has_out(&self) -> bool {
        self.has_out.load(Ordering::Acquire)
    }
}

impl State {
    /// Whether a request of so many bytes may be sent.
    pub(crate) fn has_room(&self, peer: Peer, bytes: u64) -> bool {
        let waiting = self.to.get(&peer).map_or(0, |to| to.waiting);
        waiting == 0 || waiting + bytes + COST <= MOST_WAITING
    }

    /// A handler's request waits to be sent.
    pub(crate) fn wait(&mut self, peer: Peer, bytes: u64) {
        self.to.entry(peer).or_default().waiting += bytes + COST;
    }

    pub(crate) fn unwait(&mut self, peer: Peer, cost: u64) {
        if let Some(to) = self.to.get_mut(&peer) {
            to.waiting -= cost.min(to.waiting);
        }
    }

    /// A number for a question, whose answer completes the request.
    pub(crate) fn ask(&mut self, asked: OpenQuestion) -> u32 {
        loop {
            self.numbers = self.numbers.wrapping_add(1);
            if self.numbers != 0 && !self.asked.contains_key(&self.numbers) {
                break;
            }
        }
        self.asked.insert(self.numbers, asked);
        self.numbers
    }

    /// Questions that a lost peer will not answer fail.
    pub(crate) fn lose(&mut self, core: &mut Core, peer: Peer) {
        let mut port = core.port(protocol::ANSWERS);
        let Some(error) = port.loss(peer) else { return };
        let theirs = self.asked.values().filter(|asked| asked.peer == peer);
        let requests: Vec<Request> = theirs.map(|asked| asked.request).collect();
        self.asked.retain(|_, asked| asked.peer != peer);
        for request in requests {
            let error = Some(error.clone());
            port.complete(
                request,
                Completion {
                    error,
                    ..Completion::default()
                },
            );
        }
        if let Some(to) = self.to.get_mut(&peer) {
            to.waiting = 0;
        }
        if let Some(origin) = self.origins.get_mut(&peer) {
            origin.lose();
        }
    }

    /// The last of its origin.
    pub(crate) fn wait_for_turn(&mut self, peer: Peer, ready: Ready) {
        let origin = self.origins.entry(peer).or_default();
        origin.ready.push_back(ready);
        if !self.turns.contains(&peer) {
            self.turns.push_back(peer);
        }
    }

    /// Whether this caller has anything to do.
    pub(crate) fn has_work(&self, caller: Caller) -> bool {
        self.turns.iter().any(|peer| self.origins[peer].may_be_done(caller))
    }

    /// The next request for this caller: one of each origin in turn.
    pub(crate) fn next(&mut self, caller: Caller) -> Option<(Peer, Ready)> {
        let at = self
            .turns
            .iter()
            .position(|peer| self.origins[peer].may_be_done(caller))?;
        let peer = self.turns.remove(at)?;
        let origin = self.origins.get_mut(&peer)?;
        let ready = origin.ready.pop_front()?;
        if !origin.ready.is_empty() {
            self.turns.push_back(peer);
        }
        Some((peer, ready))
    }

    /// All that waits, when no handler is to be called any more.
    pub(crate) fn give_up(&mut self) -> Vec<(Peer, Ready)> {
        let mut all = Vec::new();
        while let Some(peer) = self.turns.pop_front() {
            if let Some(origin) = self.origins.get_mut(&peer) {
                all.extend(origin.ready.drain(..).map(|ready| (peer, ready)));
            }
        }
        all
    }
}
