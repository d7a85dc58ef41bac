// SPDX-License-Identifier: Apache-2.0
//! Requests (MPI 5.0 sections 3.7, 3.9, 4.2 and 13.2).
//!
//! * this file: objects behind the handles, and how one ends;
//! * `completion`, `at_once`, `look`, `vain`: waiting and testing; `query`: asking without ending; `control`:
//!   starting, cancelling, freeing;
//! * `generalized`: operations of the program (`callbacks`: its part of them); `partitioned`: messages in parts;
//! * `started`: the short form of most requests; `statuses`: what programs get of them;
//! * `copies`: array sections of Fortran; `parts`: handles of such requests; `hears`: who hears of errors.
//!
//! Callbacks of the program are never called while the engine is locked: what is found complete under the lock becomes
//! an [`Ended`], which is settled afterwards.

use std::sync::Arc;

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attached::Flush;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_engine::{Completion, Engine, EngineError, Sent};

use crate::c::Out;
use crate::comm::Held;
use crate::handle::{Kind, Table};
use crate::process;
use crate::turns::{Guard, Turns};
use callbacks::Callbacks;
use copies::{Copies, Left};
pub(crate) use hears::Hears;
use hears::Whose;
pub(crate) use partitioned::Partitioned;
pub(crate) use parts::{insert_partitioned, part, partitioned};
pub(crate) use started::Started;
use started::{Quick, Simply, received, sent};
use statuses::{give_empty, with_error};
pub(crate) use statuses::{give_status, null_status, receive_status};

mod at_once;
mod callbacks;
mod completion;
mod control;
mod copies;
mod generalized;
mod hears;
mod look;
mod partitioned;
mod parts;
mod query;
mod started;
mod statuses;
mod vain;

/// What starts a persistent operation.
pub(crate) type Starter = Box<dyn Fn() -> Result<Operation> + Send + Sync>;

/// An operation as it was started.
#[derive(Clone)]
pub(crate) enum Operation {
    /// In flight, a send: its status is empty, but for cancelling.
    Send(isthmus_engine::Request),
    /// A send that was over at once; only cancelling it takes anything.
    Sent(Sent),
    /// In flight, a receive: its completion has source, tag and bytes.
    Receive(isthmus_engine::Request),
    /// In flight, a remote service request: as a receive, but it cannot be cancelled.
    Reply(isthmus_engine::Request),
    /// In flight, a collective operation: its status is empty, and it cannot be cancelled.
    Other(isthmus_engine::Request),
    /// A send (if it did not complete at once) and a receive; the status is that of the receive.
    Pair(Option<isthmus_engine::Request>, Box<Self>),
    /// Messages that shall leave an attached buffer.
    Flush(Flush),
    /// Complete, with this status.
    Done(Status),
}

/// What kind of request it is.
enum Role {
    /// Gone when it is complete.
    Once,
    /// Started again and again.
    Persistent(Starter),
    /// An operation of the program.
    Generalized(Arc<Callbacks>),
    /// Started again and again, in parts.
    Partitioned(Starter, Partitioned),
}

/// What a request handle names.
struct Object {
    /// `None`: inactive.
    state: Turns<Option<Operation>>,
    role: Role,
    hears: Hears,
    /// What the Fortran layer copies when it begins and ends.
    copies: Option<Arc<Copies>>,
}

/// What a handle names, in its shorter form if that says everything.
enum Entry {
    Quick(Quick),
    Full(Box<Object>),
}

impl Started {
    /// The short form of an operation of a group, or of one that is over. (A receive that comes this way may be one
    /// from anybody, which can be in doubt.)
    #[inline]
    fn of(operation: &Operation) -> Option<Self> {
        match operation {
            Operation::Other(request) => Some(Self::Other(*request)),
            Operation::Done(status) if *status == Status::empty() => Some(Self::Over),
            _ => None,
        }
    }
}

impl From<Started> for Operation {
    fn from(started: Started) -> Self {
        match started {
            Started::Sent(sent) => Self::Sent(sent),
            Started::Receive(request) => Self::Receive(request),
            Started::Other(request) => Self::Other(request),
            Started::Over => Self::Done(Status::empty()),
            Started::FromNobody => Self::Done(null_status()),
        }
    }
}

static REQUESTS: Table<Entry> = Table::in_turns(Kind::Request);

/// A completed request: its status, what went wrong and who hears of it.
struct Ended {
    status: Status,
    error: Option<(Hears, Error)>,
    /// Callbacks that have something to say about the status.
    callbacks: Option<Arc<Callbacks>>,
    /// Array sections that get what the operation has put into their copies.
    copies: Option<Arc<Copies>>,
    /// There was nothing to complete: the status is the empty one.
    empty: bool,
    /// It is not over: the error says why it may never be, and the program decides.
    pending: bool,
}

fn insert_object(comm: h::Comm, state: Option<Operation>, role: Role) -> h::Request {
    insert_for(Hears::Comm(Held::of(comm)), state, role)
}

fn insert_for(hears: Hears, state: Option<Operation>, role: Role) -> h::Request {
    h::Request(REQUESTS.insert(Entry::Full(Box::new(Object {
        state: Turns::new(state),
        role,
        hears,
        copies: None,
    }))))
}

/// A handle for an operation on a window or a file, whose error handler hears of its errors.
pub(crate) fn insert_on(hears: Hears, operation: Operation) -> h::Request {
    started();
    insert_for(hears, Some(operation), Role::Once)
}

/// A handle for what was started where threads take turns. Always part of its caller, for the reason of
/// [`Table::insert`].
#[inline(always)]
pub(crate) fn insert_quick(comm: h::Comm, what: Started) -> h::Request {
    h::Request(REQUESTS.insert(Entry::Quick(Quick {
        what,
        comm: Held::of(comm),
    })))
}

/// A handle for an operation in flight.
pub(crate) fn insert(comm: h::Comm, operation: Operation) -> h::Request {
    started();
    match Started::of(&operation) {
        Some(what) if process::of_turns().is_some() => insert_quick(comm, what),
        _ => insert_object(comm, Some(operation), Role::Once),
    }
}

/// A handle for an operation that was over at once, whose status is empty.
pub(crate) fn over(comm: h::Comm) -> h::Request {
    match process::of_turns() {
        Some(_) => insert_quick(comm, Started::Over),
        None => insert_object(comm, Some(Operation::Done(Status::empty())), Role::Once),
    }
}

/// The program has started an operation and may compute now.
fn started() {
    if let Ok(world) = process::world() {
        world.engine().watch();
    }
}

/// Waits for an operation that has no handle. A truncated message has a status too.
pub(crate) fn finish(operation: &Operation, status: Out<Status>) -> Result<()> {
    let wait = |engine: &mut Engine| {
        operation.end_in_doubt(engine);
        operation.is_complete(engine).then(|| operation.take(engine))
    };
    let (known, error) = process::world()?.engine().wait(wait);
    give_status(status, known);
    error.map_or(Ok(()), Err)
}

/// A handle for an inactive persistent operation.
pub(crate) fn insert_persistent(comm: h::Comm, starter: Starter) -> h::Request {
    insert_object(comm, None, Role::Persistent(starter))
}

fn find(handle: h::Request) -> Result<&'static Object> {
    match REQUESTS.get(handle.0) {
        Some(Entry::Full(object)) => Ok(object),
        Some(Entry::Quick(_)) => {
            REQUESTS.update(handle.0, lengthen);
            find(handle)
        }
        None if handle == h::MPI_REQUEST_NULL => {
            fail!(abi::MPI_ERR_REQUEST, argument("request"), "is MPI_REQUEST_NULL")
        }
        None => fail!(
            abi::MPI_ERR_REQUEST,
            argument("request"),
            "is {:#x}, which is not the handle of a request",
            handle.0
        ),
    }
}

/// The longer form of what a handle names.
#[cold]
fn lengthen(entry: &mut Entry) {
    if let Entry::Quick(Quick { what, comm }) = entry {
        *entry = Entry::Full(Box::new(Object {
            state: Turns::new(Some((*what).into())),
            role: Role::Once,
            hears: Hears::Comm(comm.clone()),
            copies: None,
        }));
    }
}

/// Whether what a handle names is complete.
fn is_complete(handle: h::Request, engine: &Engine) -> Result<bool> {
    match REQUESTS.get(handle.0) {
        Some(Entry::Quick(quick)) => Ok(quick.is_complete(engine)),
        _ => find(handle).map(|object| object.is_complete(engine)),
    }
}

/// Whether it is one message, or what was over at once, in its longer form: a look or two are mostly enough to end it,
/// where operations of groups take more.
#[inline]
fn is_message(handle: h::Request) -> bool {
    match REQUESTS.get(handle.0) {
        Some(Entry::Full(object)) => matches!(
            &*object.state(),
            Some(Operation::Send(_) | Operation::Sent(_) | Operation::Receive(_) | Operation::Done(_))
        ),
        _ => false,
    }
}

/// Whether it may never be.
fn is_doubtful(handle: h::Request, engine: &Engine) -> bool {
    match REQUESTS.get(handle.0) {
        Some(Entry::Full(object)) => object.doubt(engine).is_some(),
        _ => false,
    }
}

/// What a request belongs to, for errors of the call itself.
pub(crate) fn whose(handle: h::Request) -> Whose {
    match REQUESTS.get(handle.0) {
        Some(Entry::Full(object)) => object.hears.whose(),
        Some(Entry::Quick(quick)) => Whose::Comm(quick.comm.handle()),
        None => Whose::Comm(h::MPI_COMM_SELF),
    }
}

/// The same of the one in a slot.
fn whose_at(slot: Out<h::Request>) -> Whose {
    whose(slot.get("request").unwrap_or(h::MPI_REQUEST_NULL))
}

impl Operation {
    #[inline]
    fn is_complete(&self, engine: &Engine) -> bool {
        match self {
            Self::Send(r) | Self::Receive(r) | Self::Reply(r) | Self::Other(r) => engine.core.test(*r).is_some(),
            Self::Pair(send, receive) => {
                send.is_none_or(|r| engine.core.test(r).is_some()) && receive.is_complete(engine)
            }
            Self::Flush(flush) => flush.is_complete(),
            Self::Sent(_) | Self::Done(_) => true,
        }
    }

    /// Why it may never be complete: somebody is lost who could have sent what it receives.
    fn doubt(&self, engine: &Engine) -> Option<EngineError> {
        match self {
            Self::Receive(request) => isthmus_engine::doubt(&engine.core, *request),
            Self::Pair(_, receive) => receive.doubt(engine),
            _ => None,
        }
    }

    /// In a blocking call it fails for that reason.
    fn end_in_doubt(&self, engine: &mut Engine) {
        match self {
            Self::Receive(request) => isthmus_engine::end_in_doubt(&mut engine.core, *request),
            Self::Pair(_, receive) => receive.end_in_doubt(engine),
            _ => {}
        }
    }

    /// Status and error of a complete operation, which stays.
    fn look(&self, engine: &Engine) -> (Status, Option<Error>) {
        let of = |r| engine.core.test(r).cloned().unwrap_or_default();
        match self {
            Self::Send(r) | Self::Other(r) => send_outcome(&of(*r)),
            Self::Receive(r) | Self::Reply(r) => receive_outcome(&of(*r)),
            Self::Pair(send, receive) => pair(send.map(of), receive.look(engine)),
            Self::Sent(_) | Self::Flush(_) => (Status::empty(), None),
            Self::Done(status) => (*status, None),
        }
    }

    /// As [`Operation::look`]; the engine forgets the operation.
    fn take(&self, engine: &mut Engine) -> (Status, Option<Error>) {
        match self {
            Self::Send(r) | Self::Other(r) => send_outcome(&engine.core.take(*r).unwrap_or_default()),
            Self::Receive(r) | Self::Reply(r) => receive_outcome(&engine.core.take(*r).unwrap_or_default()),
            Self::Pair(send, receive) => {
                let sent = send.and_then(|r| engine.core.take(r));
                pair(sent, receive.take(engine))
            }
            Self::Sent(_) | Self::Flush(_) | Self::Done(_) => self.look(engine),
        }
    }

    /// Lets it go on without anybody who waits (MPI_Request_free); its copies stay until it is over.
    fn release(&self, engine: &mut Engine, copies: Option<&Arc<Left>>) {
        let mut leave = |request| {
            if let Some(copies) = copies {
                engine.core.keep(request, Box::new(copies.clone()));
            }
            engine.release(request);
        };
        match self {
            Self::Send(r) | Self::Receive(r) | Self::Reply(r) | Self::Other(r) => leave(*r),
            Self::Pair(send, receive) => {
                if let Some(r) = send {
                    leave(*r);
                }
                receive.release(engine, copies);
            }
            Self::Sent(_) | Self::Flush(_) | Self::Done(_) => {}
        }
    }
}

fn send_outcome(completion: &Completion) -> (Status, Option<Error>) {
    let mut status = Status::empty();
    status.set_cancelled(completion.cancelled);
    (status, completion.error.as_ref().map(Error::from))
}

fn receive_outcome(completion: &Completion) -> (Status, Option<Error>) {
    (receive_status(completion), completion.error.as_ref().map(Error::from))
}

fn pair(sent: Option<Completion>, received: (Status, Option<Error>)) -> (Status, Option<Error>) {
    let failed = sent.and_then(|c| c.error.as_ref().map(Error::from));
    (received.0, failed.or(received.1))
}

impl Object {
    fn end_simply(&self, engine: &mut Engine) -> Option<Status> {
        let mut state = self.state();
        let (Role::Once | Role::Persistent(_), None, Some(operation)) = (&self.role, &self.copies, &*state) else {
            return None;
        };
        let ended = match operation {
            Operation::Sent(_) => Simply::Ended(Status::empty()),
            Operation::Send(request) | Operation::Other(request) => sent(engine, *request),
            Operation::Receive(request) | Operation::Reply(request) => received(engine, *request),
            Operation::Done(status) => Simply::Ended(*status),
            Operation::Pair(..) | Operation::Flush(_) => return None,
        };
        // One that waits may be in doubt.
        let Simply::Ended(status) = ended else { return None };
        *state = None;
        Some(status)
    }

    /// Whether its handle stays when it has ended.
    #[inline]
    fn stays(&self) -> bool {
        matches!(self.role, Role::Persistent(_) | Role::Partitioned(..))
    }

    #[inline]
    fn state(&self) -> Guard<'_, Option<Operation>> {
        // SAFETY: functions about requests need MPI to be initialized; they take it once and call nothing of the
        // program meanwhile.
        unsafe { self.state.lock() }
    }

    /// Active requests take part in waiting; inactive persistent ones count as complete with an empty status.
    fn is_active(&self) -> bool {
        self.state().is_some()
    }

    fn is_complete(&self, engine: &Engine) -> bool {
        self.state()
            .as_ref()
            .is_none_or(|operation| operation.is_complete(engine))
    }

    /// If the operation is complete, the engine forgets it and a persistent request becomes inactive.
    fn end(&self, engine: &mut Engine) -> Option<Ended> {
        let mut state = self.state();
        if !state.as_ref().is_none_or(|operation| operation.is_complete(engine)) {
            return None;
        }
        let taken = state.take().map(|operation| operation.take(engine));
        let empty = taken.is_none();
        let (status, error) = taken.unwrap_or_else(|| (Status::empty(), None));
        Some(Ended {
            empty,
            status,
            error: error.map(|e| (self.hears.clone(), e)),
            callbacks: None,
            copies: self.copies.clone().filter(|_| !empty),
            pending: false,
        })
    }

    /// What there is to say of an operation that is not complete and may never be, which goes on.
    fn doubt(&self, engine: &Engine) -> Option<Ended> {
        let error = self.state().as_ref()?.doubt(engine)?;
        Some(Ended {
            error: Some((self.hears.clone(), Error::from(&error))),
            pending: true,
            empty: false,
            ..Ended::NOTHING
        })
    }
}

impl Ended {
    const NOTHING: Self = Self {
        status: Status::empty(),
        error: None,
        callbacks: None,
        copies: None,
        empty: true,
        pending: false,
    };

    /// Of an operation without an error, and with nothing to be called or copied.
    fn simply(status: Status) -> Self {
        Self {
            status,
            empty: false,
            ..Self::NOTHING
        }
    }

    /// Calls the program's callbacks; the engine is not locked.
    fn settle(mut self) -> (Status, Option<(Hears, Error)>) {
        if let Some(copies) = self.copies {
            copies.end();
        }
        if let Some(callbacks) = self.callbacks {
            let asked = callbacks.query(&mut self.status);
            let freed = callbacks.free();
            let own = || Hears::Comm(Held::of(h::MPI_COMM_SELF));
            self.error = asked.and(freed).err().map(|error| (own(), error));
        }
        (self.status, self.error)
    }
}

/// What a handle in its short form names.
#[inline(always)]
fn short_form(handle: h::Request) -> Option<Started> {
    match REQUESTS.get(handle.0) {
        Some(Entry::Quick(quick)) => Some(quick.what),
        _ => None,
    }
}

/// Ends a request as nearly all of them end: complete, without an error, and with nothing to be called or copied.
#[inline]
fn end_simply(engine: &mut Engine, slot: &mut h::Request) -> Simply {
    let ended = match REQUESTS.get(slot.0) {
        None => Simply::Unusual,
        Some(Entry::Quick(quick)) => match quick.what {
            Started::Sent(_) | Started::Over => Simply::Ended(Status::empty()),
            Started::FromNobody => Simply::Ended(null_status()),
            Started::Receive(request) => received(engine, request),
            Started::Other(request) => sent(engine, request),
        },
        Some(Entry::Full(object)) => match object.end_simply(engine) {
            Some(status) if object.stays() => return Simply::Ended(status),
            ended => ended.map_or(Simply::Unusual, Simply::Ended),
        },
    };
    if matches!(ended, Simply::Ended(_)) {
        REQUESTS.discard(slot.0);
        *slot = h::MPI_REQUEST_NULL;
    }
    ended
}

/// If the request is complete, ends it: the handle becomes null, or the persistent request inactive. One that may never
/// be is [pending](Ended::pending), and stays.
fn try_end(engine: &mut Engine, slot: &mut h::Request) -> Result<Option<Ended>> {
    if *slot == h::MPI_REQUEST_NULL {
        return Ok(Some(Ended::NOTHING));
    }
    match end_simply(engine, slot) {
        Simply::Ended(status) => return Ok(Some(Ended::simply(status))),
        Simply::Waits => return Ok(None),
        Simply::Unusual => {}
    }
    let object = find(*slot)?;
    let Some(mut ended) = object.end(engine) else {
        return Ok(object.doubt(engine));
    };
    if !object.stays() {
        if let Some(Role::Generalized(callbacks)) = remove(*slot).map(|object| object.role) {
            ended.callbacks = Some(callbacks);
        }
        *slot = h::MPI_REQUEST_NULL;
    }
    Ok(Some(ended))
}

/// Takes the longer form of what a handle names, which [`find`] has made; the handle is invalid from now on.
fn remove(handle: h::Request) -> Option<Box<Object>> {
    match REQUESTS.remove(handle.0)? {
        Entry::Full(object) => Some(object),
        Entry::Quick(_) => None,
    }
}

#[inline]
fn is_active(slot: h::Request) -> Result<bool> {
    if slot == h::MPI_REQUEST_NULL {
        return Ok(false);
    }
    Ok(match REQUESTS.get(slot.0) {
        Some(Entry::Quick(_)) => true,
        _ => find(slot)?.is_active(),
    })
}
