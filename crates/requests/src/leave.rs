// SPDX-License-Identifier: Apache-2.0
//! What leaves: requests, and answers to those of others.

use std::sync::atomic::Ordering;

use isthmus_abi::constants as abi;
use isthmus_core::error::Error;
use isthmus_engine::{Core, EngineError, Peer, SendBuffer, Sending};
use isthmus_wire::frame::{Header, Kind, protocol};
use isthmus_wire::requests::{Answer, MAX_NAMES, Target, What, token};
use isthmus_wire::rma::Failure;

use crate::handlers::Handler;
use crate::origin::{Ready, Work};
use crate::state::{COST, Desk, Leaving, Out, State};

/// What became of a request.
type Outcome = Result<Vec<u8>, Failure>;

/// A request that is to be sent.
pub(crate) struct Posted<'a> {
    pub(crate) handler: &'a Handler,
    /// 0: nobody waits for its end.
    pub(crate) question: u32,
    pub(crate) target: Option<Target>,
    pub(crate) data: Vec<u8>,
}

impl Desk {
    /// Sends what handlers want sent. True if there was anything.
    pub(crate) fn send_out(&self, core: &mut Core) -> bool {
        if !self.has_out() {
            return false;
        }
        let mut state = self.lock();
        self.has_out.store(false, Ordering::Release);
        while let Some(out) = state.out.pop_front() {
            match out {
                Out::Request {
                    peer,
                    handler,
                    target,
                    data,
                } => {
                    state.unwait(peer, data.len() as u64 + COST);
                    let posted = Posted {
                        handler: &handler,
                        question: 0,
                        target,
                        data,
                    };
                    if let Err(error) = self.post(&mut state, core, peer, posted) {
                        let failed = &mut state.to.entry(peer).or_default().failed;
                        failed.get_or_insert((&error).into());
                    }
                }
                Out::Ended { peer, ready, outcome } => self.end(&mut state, core, peer, ready, outcome),
            }
        }
        true
    }

    /// A request is done: gives credit back, and answers.
    pub(crate) fn end(&self, state: &mut State, core: &mut Core, peer: Peer, ready: Ready, outcome: Outcome) {
        let own = self.me().is_some_and(|(me, _)| me == peer);
        if own {
            state.unwait(peer, ready.frames.iter().sum::<u64>() + COST);
            return state.end_own(core, peer, ready.question, outcome);
        }
        let mut port = core.port(protocol::REQUESTS);
        for frame in ready.frames {
            port.done(peer, frame);
        }
        state.answer(core, peer, ready.question, outcome);
    }

    /// Sends a request.
    pub(crate) fn post(
        &self,
        state: &mut State,
        core: &mut Core,
        peer: Peer,
        posted: Posted<'_>,
    ) -> Result<(), EngineError> {
        let what = if posted.question == 0 {
            "request-send"
        } else {
            "request-ask"
        };
        count(core, what, peer, posted.data.len() as u64);
        if self.me().is_some_and(|(me, _)| me == peer) {
            self.post_own(state, core, peer, posted);
            return Ok(());
        }
        let Posted {
            handler,
            question,
            target,
            data,
        } = posted;
        let number = state.name(core, peer, &handler.name)?;
        let (what, payload) = match target {
            None => (What::Request, data),
            Some(target) => (What::Point, [&target.encode()[..], &data].concat()),
        };
        let header = header(what.tag(number), question, payload.len() as u32);
        state.send(core, peer, header, payload)
    }

    /// A request to this process itself.
    fn post_own(&self, state: &mut State, core: &mut Core, me: Peer, posted: Posted<'_>) {
        let Posted {
            handler,
            question,
            target,
            data,
        } = posted;
        let bytes = data.len() as u64;
        let mut ready = Ready {
            question,
            work: None,
            frames: vec![bytes],
        };
        state.to.entry(me).or_default().waiting += bytes + COST;
        match self.work(state, &handler.name, target, data) {
            Ok(work) => {
                ready.work = Some(work);
                state.wait_for_turn(me, ready);
                core.port(protocol::REQUESTS).call_back();
            }
            Err(failure) => self.end(state, core, me, ready, Err(failure)),
        }
    }
}

/// Counts what goes to a peer, by how far away that is.
pub(crate) fn count(core: &mut Core, what: &'static str, peer: Peer, bytes: u64) {
    let operation = core.operation(what);
    core.port(protocol::REQUESTS).count(operation, peer, bytes);
}

/// A header of either protocol.
pub(crate) fn header(tag: i32, question: u32, bytes: u32) -> Header {
    let mut header = Header::control(Kind::Protocol, token(question, bytes), 0, 0);
    header.tag = tag;
    header
}

impl State {
    /// The number of a name at a process, which is told it if it does not know it.
    fn name(&mut self, core: &mut Core, peer: Peer, name: &str) -> Result<u32, EngineError> {
        let to = self.to.entry(peer).or_default();
        if let Some(&number) = to.names.get(name) {
            return Ok(number);
        }
        let number = to.names.len() as u32 + 1;
        if number as usize > MAX_NAMES {
            return Err(EngineError::Elsewhere {
                class: abi::MPI_ERR_NO_MEM,
                text: "requests to one process have had too many names of handlers".into(),
            });
        }
        let header = header(What::Name.tag(number), 0, name.len() as u32);
        let payload = SendBuffer::owned(name.as_bytes().into());
        core.port(protocol::REQUESTS).send(peer, header, payload, None)?;
        to.names.insert(name.into(), number);
        Ok(number)
    }

    /// Sends a frame of the protocol of requests, which counts until it has left.
    pub(crate) fn send(
        &mut self,
        core: &mut Core,
        peer: Peer,
        header: Header,
        payload: Vec<u8>,
    ) -> Result<(), EngineError> {
        self.names += 1;
        let (name, bytes) = (self.names, payload.len() as u64 + COST);
        let payload = SendBuffer::owned(payload.into());
        if core.port(protocol::REQUESTS).send(peer, header, payload, Some(name))? == Sending::Queued {
            self.leaving.insert(name, Leaving::Request(peer, bytes));
            self.to.entry(peer).or_default().waiting += bytes;
        }
        Ok(())
    }

    /// Something has left, or will not any more.
    pub(crate) fn sent(&mut self, name: u64) {
        match self.leaving.remove(&name) {
            Some(Leaving::Request(peer, cost)) => self.unwait(peer, cost),
            Some(Leaving::Answer(peer, bytes)) => {
                if let Some(origin) = self.origins.get_mut(&peer) {
                    origin.copied -= bytes.min(origin.copied);
                }
            }
            None => {}
        }
    }

    /// Answers a request of another process; a peer that is lost gets nothing.
    pub(crate) fn answer(&mut self, core: &mut Core, peer: Peer, question: u32, outcome: Outcome) {
        let (tag, payload) = match outcome {
            Ok(_) if question == 0 => return,
            Ok(reply) => (Answer::Reply, reply),
            Err(failure) => (Answer::Failed, failure.encode()),
        };
        self.names += 1;
        let (name, bytes) = (self.names, payload.len() as u64);
        let header = header(tag as i32, question, payload.len() as u32);
        let payload = SendBuffer::owned(payload.into());
        let sent = core.port(protocol::ANSWERS).send(peer, header, payload, Some(name));
        if let Ok(Sending::Queued) = sent {
            self.leaving.insert(name, Leaving::Answer(peer, bytes));
            self.origins.entry(peer).or_default().copied += bytes;
        }
    }

    /// The end of a request of this process to itself.
    fn end_own(&mut self, core: &mut Core, me: Peer, question: u32, outcome: Outcome) {
        let asked = self.asked.remove(&question);
        match (asked, outcome) {
            (None, Ok(_)) => {}
            (None, Err(failure)) => {
                let failed = &mut self.to.entry(me).or_default().failed;
                failed.get_or_insert(Error::named(failure.class as i32, failure.text));
            }
            (Some(mut asked), Ok(reply)) => {
                asked.take(0, &reply);
                asked.complete(&mut core.port(protocol::ANSWERS), reply.len() as u64);
            }
            (Some(asked), Err(failure)) => asked.fail(&mut core.port(protocol::ANSWERS), failure),
        }
    }

    /// A question of this process to itself, whether all before it is done.
    pub(crate) fn flush_own(&mut self, core: &mut Core, me: Peer, question: u32) {
        let work = Some(Work::Nothing);
        let frames = vec![0];
        self.to.entry(me).or_default().waiting += COST;
        self.wait_for_turn(me, Ready { question, work, frames });
        core.port(protocol::REQUESTS).call_back();
    }
}
