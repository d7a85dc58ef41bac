// SPDX-License-Identifier: Apache-2.0
//! A machine as other rooms have them: memory that peers put into, get from and add to, in the order in which they say
//! so.

use std::any::Any;
use std::collections::{HashMap, VecDeque};

use isthmus_datatype::raw::{OwnMemory, WriteMemory};
use isthmus_engine::{
    Completion, Core, Engine, EngineError, Machine, Peer, Port, Request, SendBuffer, Sending, Taken, with_machine,
};
use isthmus_transport::{Lease, Lent};
use isthmus_wire::frame::{Header, Kind, protocol};

pub(crate) const PUT: i32 = 0;
pub(crate) const ADD: i32 = 1;
/// The payload is the length that is wanted; `token` names the question.
pub(crate) const GET: i32 = 2;
/// The answer; its `auxiliary` counts from 0.
pub(crate) const DATA: i32 = 3;
/// Wants to hear when all before it is done.
pub(crate) const FLUSH: i32 = 4;
pub(crate) const FLUSHED: i32 = 5;

/// What waits for an answer.
struct Wanted {
    request: Request,
    memory: Lease<WriteMemory>,
    length: u64,
    got: u64,
}

/// A frame that waits until the memory is free.
struct Waiting {
    peer: Peer,
    header: Header,
    payload: Vec<u8>,
}

pub(crate) struct Store {
    pub(crate) memory: OwnMemory,
    lease: Lease<WriteMemory>,
    pub(crate) length: u64,
    /// What comes is kept.
    locked: bool,
    waiting: VecDeque<Waiting>,
    wanted: HashMap<u64, Wanted>,
    names: u64,
    /// What has left after it was queued, in order.
    pub(crate) sent: Vec<(u64, Result<(), EngineError>)>,
    pub(crate) lost: Vec<Peer>,
    pub(crate) looks: u64,
    /// Payloads that came straight to their place.
    pub(crate) placed: u64,
    pub(crate) expects: bool,
    /// Names memory that is too short.
    pub(crate) careless: bool,
}

fn header(what: i32, token: u64, at: u64) -> Header {
    let mut header = Header::control(Kind::Protocol, token, at, 0);
    header.tag = what;
    header
}

impl Store {
    pub(crate) fn new(length: usize) -> Self {
        let memory = OwnMemory::new(0, length as isize);
        Self {
            lease: Lease::new(memory.memory()),
            memory,
            length: length as u64,
            locked: false,
            waiting: VecDeque::new(),
            wanted: HashMap::new(),
            names: 0,
            sent: Vec::new(),
            lost: Vec::new(),
            looks: 0,
            placed: 0,
            expects: false,
            careless: false,
        }
    }

    fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    /// Bytes that are kept.
    pub(crate) fn kept(&self) -> u64 {
        self.waiting.iter().map(|waiting| waiting.header.length).sum()
    }

    pub(crate) fn lock(&mut self) {
        self.locked = true;
    }

    pub(crate) fn unlock(&mut self, port: &mut Port<'_>) {
        self.locked = false;
        while let Some(Waiting { peer, header, payload }) = self.waiting.pop_front() {
            self.apply(port, peer, &header, &payload);
            port.done(peer, header.length);
        }
    }

    /// The bytes of the memory that such a frame is about.
    fn range(&self, header: &Header, length: u64) -> Option<isize> {
        let end = header.auxiliary().checked_add(length)?;
        (end <= self.length).then(|| header.auxiliary() as isize)
    }

    fn apply(&self, port: &mut Port<'_>, peer: Peer, header: &Header, payload: &[u8]) {
        let length = match <[u8; 8]>::try_from(payload) {
            Ok(length) if header.tag == GET => u64::from_le_bytes(length),
            _ => header.length,
        };
        let Some(at) = self.range(header, length) else {
            return port.accuse(peer, "bytes outside of the memory");
        };
        match header.tag {
            PUT => self.memory.memory().write(at, payload),
            ADD => self.memory.memory().with_mut(at, payload.len(), |bytes| {
                bytes
                    .iter_mut()
                    .zip(payload)
                    .for_each(|(byte, more)| *byte = byte.wrapping_add(*more));
            }),
            GET => {
                let data = SendBuffer::contiguous(self.memory.reading(), at, length);
                let _ = port.send(peer, self::header(DATA, header.token, 0), data, None);
            }
            _ => port.tell(peer, self::header(FLUSHED, header.token, 0)),
        }
    }

    fn answered(&mut self, port: &mut Port<'_>, token: u64, bytes: u64) {
        let Some(wanted) = self.wanted.get_mut(&token) else {
            return;
        };
        wanted.got += bytes;
        if wanted.got >= wanted.length {
            port.complete(wanted.request, Completion::default());
            self.wanted.remove(&token);
        }
    }

    fn want(&mut self, port: &mut Port<'_>, memory: WriteMemory, length: u64) -> (u64, Request) {
        let (name, request) = (self.name(), port.request());
        let wanted = Wanted {
            request,
            memory: Lease::new(memory),
            length,
            got: 0,
        };
        self.wanted.insert(name, wanted);
        (name, request)
    }
}

impl Machine for Store {
    fn frame(&mut self, port: &mut Port<'_>, peer: Peer, header: &Header, payload: &[u8]) -> Taken {
        match header.tag {
            DATA => {
                let wanted = self.wanted.get(&header.token);
                let end = header.auxiliary().checked_add(header.length);
                let fits = wanted.is_some_and(|wanted| end.is_some_and(|end| end <= wanted.length));
                if !fits {
                    port.accuse(peer, "an answer to no question");
                    return Taken::Done;
                }
                let to = wanted.map(|wanted| wanted.memory.lent());
                to.and_then(|to| to.with(|memory| memory.write(header.auxiliary() as isize, payload)));
                self.answered(port, header.token, header.length);
            }
            FLUSHED => self.answered(port, header.token, 0),
            _ if self.locked => {
                self.waiting.push_back(Waiting {
                    peer,
                    header: *header,
                    payload: payload.into(),
                });
                return Taken::Kept;
            }
            _ => self.apply(port, peer, header, payload),
        }
        Taken::Done
    }

    fn place(&mut self, _: &mut Port<'_>, _: Peer, header: &Header) -> Option<Lent<WriteMemory>> {
        if self.careless {
            return Some(Lease::new(OwnMemory::new(0, header.length as isize - 1).memory()).lent());
        }
        if header.tag != PUT || self.locked {
            return None;
        }
        let at = self.range(header, header.length)?;
        self.lease = Lease::new(self.memory.memory().shifted(at));
        Some(self.lease.lent())
    }

    fn placed(&mut self, _: &mut Port<'_>, _: Peer, _: &Header) {
        self.placed += 1;
    }

    fn sent(&mut self, _: &mut Port<'_>, _: Peer, name: u64, outcome: Result<(), EngineError>) {
        self.sent.push((name, outcome));
    }

    fn expects(&self) -> bool {
        self.expects
    }

    fn advance(&mut self, _: &mut Core) -> bool {
        self.looks += 1;
        false
    }

    fn lose(&mut self, core: &mut Core, peer: Peer) {
        self.lost.push(peer);
        let mut port = core.port(protocol::TEST);
        let error = port.loss(peer);
        for (_, wanted) in self.wanted.drain() {
            let completion = Completion {
                error: error.clone(),
                ..Completion::default()
            };
            port.complete(wanted.request, completion);
        }
    }

    fn itself(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// Lets the store of an engine act.
pub(crate) fn at<T>(engine: &mut Engine, act: impl FnOnce(&mut Store, &mut Port<'_>) -> T) -> T {
    with_machine(engine, protocol::TEST, act).expect("every engine has a store")
}

/// Puts bytes there, or adds them; the name of what was queued.
pub(crate) fn write(
    engine: &mut Engine,
    to: Peer,
    what: i32,
    place: u64,
    payload: SendBuffer,
) -> Result<Option<u64>, EngineError> {
    at(engine, |store, port| {
        let name = store.name();
        let sending = port.send(to, header(what, 0, place), payload, Some(name))?;
        Ok((sending == Sending::Queued).then_some(name))
    })
}

/// Gets so many bytes.
pub(crate) fn get(engine: &mut Engine, from: Peer, place: u64, memory: WriteMemory, length: u64) -> Request {
    at(engine, |store, port| {
        let (name, request) = store.want(port, memory, length);
        let length = SendBuffer::owned(length.to_le_bytes().into());
        let _ = port.send(from, header(GET, name, place), length, None);
        request
    })
}

/// Ends when all that was sent before has been done.
pub(crate) fn flush(engine: &mut Engine, to: Peer) -> Request {
    at(engine, |store, port| {
        let (name, request) = store.want(port, WriteMemory::EMPTY, 0);
        port.tell(to, header(FLUSH, name, 0));
        request
    })
}
