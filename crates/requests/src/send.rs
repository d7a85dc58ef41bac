// SPDX-License-Identifier: Apache-2.0
//! Sending requests.

use isthmus_core::error::Result;
use isthmus_core::world::World;
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_engine::{EngineError, Peer, Request, awaken, with_port};
use isthmus_wire::frame::protocol;
use isthmus_wire::requests::{Target, What};

use crate::asked::OpenQuestion;
use crate::call::copy;
use crate::leave::{Posted, count, header};
use crate::requests::Requests;
use crate::state::Out;

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub struct To {
    /// The process.
    pub peer: Peer,
    /// As the program calls it.
    pub rank: u32,
    /// Memory of it, if the request is sent to a global pointer.
    pub target: Option<Target>,
    /// The handler, by its number here.
    pub handler: u32,
    /// Waits until there is room; otherwise what has none is not sent.
    pub waits: bool,
}

/// What is sent with a request.
pub struct Data {
    /// Memory of the program.
    pub memory: ReadMemory,
    /// Its bytes.
    pub bytes: u64,
}

/// Where a reply goes.
pub struct Reply {
    /// Memory of the program.
    pub memory: WriteMemory,
    /// Bytes that fit.
    pub room: u64,
}

impl Requests {
    /// Sends a request whose end nobody waits for; false: there is no room now. In a handler it never waits.
    pub fn send(&self, world: &World, to: &To, data: &Data) -> Result<bool> {
        let bytes = data.bytes;
        let data = copy(&data.memory, bytes)?;
        let desk = &self.0;
        let handler = desk.lock().handlers.get(to.handler)?;
        if desk.is_in_handler() {
            let mut state = desk.lock();
            let room = state.has_room(to.peer, bytes);
            if room {
                state.wait(to.peer, bytes);
                let out = Out::Request {
                    peer: to.peer,
                    handler,
                    target: to.target,
                    data,
                };
                desk.leave(&mut state, out);
            }
            return Ok(room);
        }
        if !self.has_room(world, to, bytes)? {
            return Ok(false);
        }
        let mut engine = world.engine().lock();
        begin(&mut engine);
        let posted = Posted {
            handler: &handler,
            question: 0,
            target: to.target,
            data,
        };
        let sent = desk.post(&mut desk.lock(), &mut engine.core, to.peer, posted);
        with_port(&mut engine, protocol::REQUESTS, |_| ());
        drop(engine);
        world.engine().watch();
        sent.map_err(|error| (&error).into()).map(|()| true)
    }

    /// Sends a request whose end completes what is given back; `None`: there is no room now.
    pub fn ask(&self, world: &World, to: &To, data: &Data, reply: Reply) -> Result<Option<Request>> {
        let desk = &self.0;
        desk.may_be_called("a function that gives a request")?;
        let data = copy(&data.memory, data.bytes)?;
        let handler = desk.lock().handlers.get(to.handler)?;
        if !self.has_room(world, to, data.len() as u64)? {
            return Ok(None);
        }
        let mut engine = world.engine().lock();
        begin(&mut engine);
        let request = with_port(&mut engine, protocol::ANSWERS, |port| port.request());
        let posted = {
            let mut state = desk.lock();
            let question = state.ask(OpenQuestion {
                peer: to.peer,
                rank: to.rank,
                to: reply.memory,
                room: Some(reply.room),
                got: 0,
                request,
            });
            let posted = Posted {
                handler: &handler,
                question,
                target: to.target,
                data,
            };
            let posted = desk.post(&mut state, &mut engine.core, to.peer, posted);
            if posted.is_err() {
                state.asked.remove(&question);
            }
            posted
        };
        with_port(&mut engine, protocol::REQUESTS, |_| ());
        finish(&mut engine, request, posted).map(Some)
    }

    /// Waits until all requests to the process are done that this one has sent; the first that has failed.
    pub fn flush(&self, world: &World, peer: Peer, rank: u32) -> Result<()> {
        let desk = &self.0;
        desk.may_be_called("isthmus_request_flush")?;
        let request = {
            let mut engine = world.engine().lock();
            begin(&mut engine);
            count(&mut engine.core, "request-flush", peer, 0);
            let request = with_port(&mut engine, protocol::ANSWERS, |port| port.request());
            let posted = {
                let mut state = desk.lock();
                let question = state.ask(OpenQuestion {
                    peer,
                    rank,
                    to: WriteMemory::EMPTY,
                    room: None,
                    got: 0,
                    request,
                });
                let posted = match desk.me().is_some_and(|(me, _)| me == peer) {
                    true => {
                        state.flush_own(&mut engine.core, peer, question);
                        Ok(())
                    }
                    false => state.send(
                        &mut engine.core,
                        peer,
                        header(What::Flush.tag(0), question, 0),
                        Vec::new(),
                    ),
                };
                if posted.is_err() {
                    state.asked.remove(&question);
                }
                posted
            };
            with_port(&mut engine, protocol::REQUESTS, |_| ());
            finish(&mut engine, request, posted)?
        };
        let done = world.wait(request).map(drop);
        let failed = desk.lock().to.get_mut(&peer).and_then(|to| to.failed.take());
        failed.map_or(done, Err)
    }

    /// Waits for room, if the request is to wait.
    fn has_room(&self, world: &World, to: &To, bytes: u64) -> Result<bool> {
        let room = || self.0.lock().has_room(to.peer, bytes);
        if room() || !to.waits {
            return Ok(room());
        }
        world.engine().watch();
        world.engine().wait(|engine| {
            let lost = with_port(engine, protocol::REQUESTS, |port| port.loss(to.peer));
            match lost {
                Some(lost) => Some(Err((&lost).into())),
                None => room().then_some(Ok(true)),
            }
        })
    }
}

/// The machines are there from now on.
fn begin(engine: &mut isthmus_engine::Engine) {
    awaken(engine, protocol::REQUESTS);
    awaken(engine, protocol::ANSWERS);
}

/// What could not be sent has no request.
fn finish(
    engine: &mut isthmus_engine::Engine,
    request: Request,
    posted: std::result::Result<(), EngineError>,
) -> Result<Request> {
    match posted {
        Ok(()) => Ok(request),
        Err(error) => {
            with_port(engine, protocol::ANSWERS, |port| {
                port.complete(request, Default::default())
            });
            engine.core.take(request);
            Err((&error).into())
        }
    }
}
