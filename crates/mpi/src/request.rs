// SPDX-License-Identifier: Apache-2.0
//! Requests: completion of nonblocking and persistent operations (MPI 5.0 sections 3.7 and 3.9).

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_engine::{Completion, Engine};

use crate::c::{In, Out, count, flag};
use crate::call::{call, call_on};
use crate::handle::{Kind, Table};
use crate::process;

/// What starts a persistent operation.
pub(crate) type Starter = Box<dyn Fn() -> Result<Operation> + Send + Sync>;

/// An operation as it was started.
#[derive(Clone, Copy)]
pub(crate) enum Operation {
    /// In flight, a receive: its completion has source, tag and bytes.
    Receive(isthmus_engine::Request),
    /// In flight, a send or a collective operation: its status is empty.
    Other(isthmus_engine::Request),
    /// Complete, with this status.
    Done(Status),
}

/// What a request handle names.
struct Object {
    state: Mutex<Option<Operation>>,
    /// Makes the request persistent.
    starter: Option<Starter>,
    /// Communicator whose error handler hears of errors.
    comm: h::Comm,
}

static REQUESTS: Table<Object> = Table::new(Kind::Request);

/// A completed request: its status and what went wrong.
struct Ended {
    status: Status,
    error: Option<Error>,
    comm: h::Comm,
}

/// A handle for an operation in flight.
pub(crate) fn insert(comm: h::Comm, operation: Operation) -> h::Request {
    h::Request(REQUESTS.insert(Object {
        state: Mutex::new(Some(operation)),
        starter: None,
        comm,
    }))
}

/// A handle for an inactive persistent operation.
pub(crate) fn insert_persistent(comm: h::Comm, starter: Starter) -> h::Request {
    h::Request(REQUESTS.insert(Object {
        state: Mutex::new(None),
        starter: Some(starter),
        comm,
    }))
}

fn find(handle: h::Request) -> Result<&'static Object> {
    match REQUESTS.get(handle.0) {
        Some(object) => Ok(object),
        None => fail!(
            abi::MPI_ERR_REQUEST,
            "argument request is {:#x}, which is not the handle of a request",
            handle.0
        ),
    }
}

impl Object {
    fn operation(&self) -> Option<Operation> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, operation: Option<Operation>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = operation;
    }

    /// Active requests take part in waiting; inactive persistent ones count as complete with an empty status.
    fn is_active(&self) -> bool {
        self.operation().is_some()
    }

    fn complete(&self, engine: &Engine) -> bool {
        match self.operation() {
            Some(Operation::Receive(r) | Operation::Other(r)) => engine.test(r).is_some(),
            Some(Operation::Done(_)) | None => true,
        }
    }

    fn end(&self, engine: &mut Engine) -> Option<Ended> {
        let ended = |status, error| {
            Some(Ended {
                status,
                error,
                comm: self.comm,
            })
        };
        match self.operation() {
            None => ended(Status::empty(), None),
            Some(Operation::Done(status)) => ended(status, None),
            Some(Operation::Receive(r)) => {
                let completion = engine.take(r)?;
                let error = completion.error.as_ref().map(Error::from);
                ended(receive_status(&completion), error)
            }
            Some(Operation::Other(r)) => {
                let completion = engine.take(r)?;
                let mut status = Status::empty();
                status.set_cancelled(completion.cancelled);
                ended(status, completion.error.as_ref().map(Error::from))
            }
        }
    }
}

/// Status of a completed receive.
pub(crate) fn receive_status(completion: &Completion) -> Status {
    let mut status = Status::new(completion.source as c_int, completion.tag, completion.bytes as i64);
    if completion.cancelled {
        status = Status::empty();
        status.set_cancelled(true);
    }
    status
}

/// Status of a receive from MPI_PROC_NULL.
pub(crate) fn null_status() -> Status {
    Status::new(abi::MPI_PROC_NULL, abi::MPI_ANY_TAG, 0)
}

/// Copies source, tag and the library's part; MPI_ERROR is left as it is (MPI 5.0 section 3.2.5).
pub(crate) fn give_status(out: Out<Status>, status: Status) {
    if !out.is_null() {
        let error = out.get("status").map_or(0, |old| old.error);
        out.put(with_error(status, error));
    }
}

fn with_error(mut status: Status, error: c_int) -> Status {
    status.error = error;
    status
}

/// If the request is complete, ends it: the handle becomes null, or the persistent request inactive.
fn try_end(engine: &mut Engine, slot: &mut h::Request) -> Result<Option<Ended>> {
    if *slot == h::MPI_REQUEST_NULL {
        return Ok(Some(Ended {
            status: Status::empty(),
            error: None,
            comm: h::MPI_COMM_SELF,
        }));
    }
    let object = find(*slot)?;
    let Some(ended) = object.end(engine) else {
        return Ok(None);
    };
    if object.starter.is_some() {
        object.set(None);
    } else {
        REQUESTS.remove(slot.0);
        *slot = h::MPI_REQUEST_NULL;
    }
    Ok(Some(ended))
}

fn is_active(slot: h::Request) -> Result<bool> {
    Ok(slot != h::MPI_REQUEST_NULL && find(slot)?.is_active())
}

/// Hands an ended request's status to the program and its error to the communicator's handler.
fn report(function: &'static str, ended: Ended, status: Out<Status>) -> c_int {
    give_status(status, ended.status);
    match ended.error {
        None => abi::MPI_SUCCESS,
        Some(error) => crate::call::raise(function, ended.comm, &error),
    }
}

/// Runs a body that may end one request.
fn one(function: &'static str, status: Out<Status>, body: impl FnOnce() -> Result<Option<Ended>>) -> c_int {
    let mut ended = None;
    let code = call(function, || {
        ended = body()?;
        Ok(())
    });
    ended.map_or(code, |ended| report(function, ended, status))
}

/// The communicator that a request belongs to, for errors.
fn comm_of(slot: Out<h::Request>) -> h::Comm {
    let object = slot.get("request").ok().and_then(|handle| REQUESTS.get(handle.0));
    object.map_or(h::MPI_COMM_SELF, |o| o.comm)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Wait(request: Out<h::Request>, status: Out<Status>) -> c_int {
    one("MPI_Wait", status, || {
        let mut slot = request.get("request")?;
        let ended = process::world()?
            .engine()
            .wait(|engine| try_end(engine, &mut slot).transpose())?;
        request.set("request", slot)?;
        Ok(Some(ended))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Test(request: Out<h::Request>, done: Out<c_int>, status: Out<Status>) -> c_int {
    one("MPI_Test", status, || {
        let mut slot = request.get("request")?;
        let mut engine = process::world()?.engine().lock();
        let mut ended = try_end(&mut engine, &mut slot)?;
        if ended.is_none() {
            engine.progress();
            ended = try_end(&mut engine, &mut slot)?;
        }
        request.set("request", slot)?;
        done.set("flag", flag(ended.is_some()))?;
        Ok(ended)
    })
}

/// The first of the requests that is complete, ended.
fn any(engine: &mut Engine, slots: &mut [h::Request]) -> Result<Option<(usize, Ended)>> {
    for (at, slot) in slots.iter_mut().enumerate() {
        if is_active(*slot)? {
            if let Some(ended) = try_end(engine, slot)? {
                return Ok(Some((at, ended)));
            }
        }
    }
    Ok(None)
}

fn any_active(slots: &[h::Request]) -> Result<bool> {
    for slot in slots {
        if is_active(*slot)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn nothing_active() -> Ended {
    Ended {
        status: Status::empty(),
        error: None,
        comm: h::MPI_COMM_SELF,
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Waitany(
    n: c_int,
    requests: Out<h::Request>,
    index: Out<c_int>,
    status: Out<Status>,
) -> c_int {
    one("MPI_Waitany", status, || {
        let slots = requests.slice("array_of_requests", count("count", n)? as usize)?;
        if !any_active(slots)? {
            index.set("index", abi::MPI_UNDEFINED)?;
            return Ok(Some(nothing_active()));
        }
        let (at, ended) = process::world()?
            .engine()
            .wait(|engine| any(engine, slots).transpose())?;
        index.set("index", at as c_int)?;
        Ok(Some(ended))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Testany(
    n: c_int,
    requests: Out<h::Request>,
    index: Out<c_int>,
    done: Out<c_int>,
    status: Out<Status>,
) -> c_int {
    one("MPI_Testany", status, || {
        let slots = requests.slice("array_of_requests", count("count", n)? as usize)?;
        if !any_active(slots)? {
            index.set("index", abi::MPI_UNDEFINED)?;
            done.set("flag", flag(true))?;
            return Ok(Some(nothing_active()));
        }
        let mut engine = process::world()?.engine().lock();
        engine.progress();
        let found = any(&mut engine, slots)?;
        done.set("flag", flag(found.is_some()))?;
        index.set(
            "index",
            found.as_ref().map_or(abi::MPI_UNDEFINED, |(at, _)| *at as c_int),
        )?;
        Ok(found.map(|(_, ended)| ended))
    })
}

/// Puts statuses with their MPI_ERROR; gives MPI_ERR_IN_STATUS if one has failed, and the first error.
struct Many {
    statuses: Out<Status>,
    first: Option<(h::Comm, Error)>,
}

impl Many {
    fn put(&mut self, at: usize, ended: Ended) {
        let error = ended.error.as_ref().map_or(abi::MPI_SUCCESS, |e| e.class);
        if !self.statuses.is_null() {
            self.statuses.at(at).put(with_error(ended.status, error));
        }
        if let (Some(error), None) = (ended.error, &self.first) {
            self.first = Some((ended.comm, error));
        }
    }

    fn finish(self, function: &'static str) -> c_int {
        let Some((comm, error)) = self.first else {
            return abi::MPI_SUCCESS;
        };
        let text = format!("{} ({})", error.message, crate::error::class_name(error.class));
        crate::call::raise(function, comm, &Error::new(abi::MPI_ERR_IN_STATUS, text))
    }
}

fn all(function: &'static str, statuses: Out<Status>, body: impl FnOnce(&mut Many) -> Result<()>) -> c_int {
    let mut many = Many { statuses, first: None };
    let code = call(function, || body(&mut many));
    if code == abi::MPI_SUCCESS {
        many.finish(function)
    } else {
        code
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Waitall(n: c_int, requests: Out<h::Request>, statuses: Out<Status>) -> c_int {
    all("MPI_Waitall", statuses, |many| {
        let slots = requests.slice("array_of_requests", count("count", n)? as usize)?;
        let engine = process::world()?.engine();
        for (at, slot) in slots.iter_mut().enumerate() {
            many.put(at, engine.wait(|engine| try_end(engine, slot).transpose())?);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Testall(
    n: c_int,
    requests: Out<h::Request>,
    done: Out<c_int>,
    statuses: Out<Status>,
) -> c_int {
    all("MPI_Testall", statuses, |many| {
        let slots = requests.slice("array_of_requests", count("count", n)? as usize)?;
        let mut engine = process::world()?.engine().lock();
        engine.progress();
        for slot in slots.iter() {
            if *slot != h::MPI_REQUEST_NULL && !find(*slot)?.complete(&engine) {
                return done.set("flag", flag(false));
            }
        }
        for (at, slot) in slots.iter_mut().enumerate() {
            if let Some(ended) = try_end(&mut engine, slot)? {
                many.put(at, ended);
            }
        }
        done.set("flag", flag(true))
    })
}

fn some(
    engine: &mut Engine,
    slots: &mut [h::Request],
    indices: &mut [c_int],
    many: &mut Many,
) -> Result<Option<c_int>> {
    let mut found = 0;
    for (at, slot) in slots.iter_mut().enumerate() {
        if is_active(*slot)? {
            if let Some(ended) = try_end(engine, slot)? {
                indices[found] = at as c_int;
                many.put(found, ended);
                found += 1;
            }
        }
    }
    Ok((found > 0).then_some(found as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Waitsome(
    n: c_int,
    requests: Out<h::Request>,
    found: Out<c_int>,
    indices: Out<c_int>,
    statuses: Out<Status>,
) -> c_int {
    all("MPI_Waitsome", statuses, |many| {
        let n = count("incount", n)? as usize;
        let slots = requests.slice("array_of_requests", n)?;
        if !any_active(slots)? {
            return found.set("outcount", abi::MPI_UNDEFINED);
        }
        let indices = indices.slice("array_of_indices", n)?;
        let engine = process::world()?.engine();
        found.set(
            "outcount",
            engine.wait(|engine| some(engine, slots, indices, many).transpose())?,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Testsome(
    n: c_int,
    requests: Out<h::Request>,
    found: Out<c_int>,
    indices: Out<c_int>,
    statuses: Out<Status>,
) -> c_int {
    all("MPI_Testsome", statuses, |many| {
        let n = count("incount", n)? as usize;
        let slots = requests.slice("array_of_requests", n)?;
        if !any_active(slots)? {
            return found.set("outcount", abi::MPI_UNDEFINED);
        }
        let mut engine = process::world()?.engine().lock();
        engine.progress();
        let ended = some(&mut engine, slots, indices.slice("array_of_indices", n)?, many)?;
        found.set("outcount", ended.unwrap_or(0))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Request_free(request: Out<h::Request>) -> c_int {
    call_on("MPI_Request_free", comm_of(request), || {
        let handle = request.get("request")?;
        let operation = find(handle)?.operation();
        if let Some(Operation::Receive(r) | Operation::Other(r)) = operation {
            process::world()?.engine().lock().release(r);
        }
        REQUESTS.remove(handle.0);
        request.set("request", h::MPI_REQUEST_NULL)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Cancel(request: Out<h::Request>) -> c_int {
    call_on("MPI_Cancel", comm_of(request), || {
        // Receives can be cancelled; sends go on, which the standard allows (section 3.8.4).
        if let Some(Operation::Receive(r)) = find(request.get("request")?)?.operation() {
            process::world()?.engine().lock().cancel(r);
        }
        Ok(())
    })
}

fn get_status(request: h::Request, done: Out<c_int>, status: Out<Status>) -> Result<()> {
    if request == h::MPI_REQUEST_NULL {
        give_status(status, Status::empty());
        return done.set("flag", flag(true));
    }
    let object = find(request)?;
    let mut engine = process::world()?.engine().lock();
    engine.progress();
    let complete = object.complete(&engine);
    if complete {
        let known = match object.operation() {
            Some(Operation::Receive(r)) => engine.test(r).map_or_else(Status::empty, receive_status),
            Some(Operation::Done(status)) => status,
            _ => Status::empty(),
        };
        give_status(status, known);
    }
    done.set("flag", flag(complete))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Request_get_status(request: h::Request, done: Out<c_int>, status: Out<Status>) -> c_int {
    call("MPI_Request_get_status", || get_status(request, done, status))
}

fn start(handle: h::Request) -> Result<()> {
    let object = find(handle)?;
    let Some(starter) = &object.starter else {
        fail!(abi::MPI_ERR_REQUEST, "the request is not a persistent one");
    };
    if object.is_active() {
        fail!(
            abi::MPI_ERR_REQUEST,
            "the persistent request is active already; wait for it first"
        );
    }
    object.set(Some(starter()?));
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Start(request: Out<h::Request>) -> c_int {
    call_on("MPI_Start", comm_of(request), || start(request.get("request")?))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Startall(n: c_int, requests: In<h::Request>) -> c_int {
    call("MPI_Startall", || {
        requests
            .slice("array_of_requests", count("count", n)? as usize)?
            .iter()
            .try_for_each(|r| start(*r))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Test_cancelled(status: In<Status>, cancelled: Out<c_int>) -> c_int {
    call("MPI_Test_cancelled", || {
        let status = status.slice("status", 1)?;
        cancelled.set("flag", flag(status[0].cancelled()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Status_set_cancelled(status: Out<Status>, cancelled: c_int) -> c_int {
    call("MPI_Status_set_cancelled", || {
        let mut changed = status.get("status")?;
        changed.set_cancelled(cancelled != 0);
        status.set("status", changed)
    })
}
