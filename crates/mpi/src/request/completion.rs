// SPDX-License-Identifier: Apache-2.0
//! Waiting for requests and testing them (MPI 5.0 sections 3.7.3 and 3.7.5).

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::{Error, Result};
use isthmus_engine::Engine;

use super::at_once::{any_at_once, end_at_once, test_any_at_once, test_at_once};
use super::hears::{Hears, raise_on};
use super::look::{Seen, see};
use super::{Ended, Simply, end_simply, give_empty, give_status, is_active, try_end, vain, with_error};
use crate::c::{Out, count, flag};
use crate::call::{call, first_of};
use crate::process;

/// Hands an ended request's status to the program and its error to the communicator's handler.
fn report(function: &'static str, ended: Ended, status: Out<Status>) -> c_int {
    if ended.empty {
        give_empty(status);
        return abi::MPI_SUCCESS;
    }
    let (known, error) = ended.settle();
    give_status(status, known);
    match error {
        None => abi::MPI_SUCCESS,
        Some((hears, error)) => raise_on(function, &hears, &error),
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

/// Waits until `look` finds something; it is asked again only when something has completed.
fn until<T>(mut look: impl FnMut(&mut Engine) -> Result<Option<T>>) -> Result<T> {
    let mut seen = None;
    process::world()?.engine().wait(|engine| {
        let events = engine.core.events();
        if seen == Some(events) {
            return None;
        }
        seen = Some(events);
        look(engine).transpose()
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Wait(request: Out<h::Request>, status: Out<Status>) -> c_int {
    let first = || end_at_once(request, status);
    first_of("MPI_Wait", first, || wait(request, status))
}

fn wait(request: Out<h::Request>, status: Out<Status>) -> c_int {
    one("MPI_Wait", status, || {
        let mut slot = request.get("request")?;
        let mut simple = None;
        let ended = process::world()?.engine().wait(|engine| match see(engine, &mut slot) {
            Ok(Seen::Waits { .. }) => None,
            Ok(Seen::Simply(status)) => {
                simple = Some(status);
                Some(Ok(None))
            }
            Ok(Seen::Inactive) => Some(Ok(Some(Ended::NOTHING))),
            Ok(Seen::Ended(ended)) => Some(Ok(Some(ended))),
            Err(error) => Some(Err(error)),
        })?;
        if let Some(known) = simple {
            give_status(status, known);
        }
        request.set("request", slot)?;
        Ok(ended)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Test(request: Out<h::Request>, done: Out<c_int>, status: Out<Status>) -> c_int {
    let first = || test_at_once(request, done, status);
    first_of("MPI_Test", first, || test(request, done, status))
}

fn test(request: Out<h::Request>, done: Out<c_int>, status: Out<Status>) -> c_int {
    one("MPI_Test", status, || {
        let mut slot = request.get("request")?;
        let shared = process::world()?.engine();
        let mut engine = shared.lock();
        let mut ended = try_end(&mut engine, &mut slot)?;
        // Where nothing has happened there is nothing new to be found.
        if ended.is_none() && engine.progress() {
            ended = try_end(&mut engine, &mut slot)?;
        }
        drop(engine);
        if ended.is_none() {
            shared.idle();
        }
        request.set("request", slot)?;
        done.set("flag", flag(ended.as_ref().is_some_and(|ended| !ended.pending)))?;
        Ok(ended)
    })
}

/// What a look for one of several requests has found.
enum First {
    /// Nothing to wait for.
    NoneActive,
    Simply(usize, Status),
    Ended(usize, Ended),
}

/// The first of the requests that is complete, ended. `None`: not one, and some are active.
fn first(engine: &mut Engine, slots: &mut [h::Request]) -> Result<Option<First>> {
    let mut active = false;
    for (at, slot) in slots.iter_mut().enumerate() {
        if *slot == h::MPI_REQUEST_NULL {
            continue;
        }
        match see(engine, slot)? {
            Seen::Inactive => {}
            Seen::Waits { .. } => active = true,
            Seen::Simply(status) => return Ok(Some(First::Simply(at, status))),
            Seen::Ended(ended) => return Ok(Some(First::Ended(at, ended))),
        }
    }
    Ok((!active).then_some(First::NoneActive))
}

/// Hands over which request has ended, and its status if that is all there is to say of it.
fn give_first(found: First, index: Out<c_int>, status: Out<Status>) -> Result<Option<Ended>> {
    let (at, ended) = match found {
        First::NoneActive => (abi::MPI_UNDEFINED, Some(Ended::NOTHING)),
        First::Simply(at, known) => {
            give_status(status, known);
            (at as c_int, None)
        }
        First::Ended(at, ended) => (at as c_int, Some(ended)),
    };
    index.set("index", at)?;
    Ok(ended)
}

pub(super) fn any_active(slots: &[h::Request]) -> Result<bool> {
    for slot in slots {
        if is_active(*slot)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Waitany(
    n: c_int,
    requests: Out<h::Request>,
    index: Out<c_int>,
    status: Out<Status>,
) -> c_int {
    let first = || any_at_once(n, requests, index, status);
    first_of("MPI_Waitany", first, || waitany(n, requests, index, status))
}

fn waitany(n: c_int, requests: Out<h::Request>, index: Out<c_int>, status: Out<Status>) -> c_int {
    one("MPI_Waitany", status, || {
        let slots = requests.slice("array_of_requests", count("count", n)? as usize)?;
        give_first(until(|engine| first(engine, slots))?, index, status)
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
    let first = || test_any_at_once(n, requests, index, done, status);
    first_of("MPI_Testany", first, || testany(n, requests, index, done, status))
}

fn testany(n: c_int, requests: Out<h::Request>, index: Out<c_int>, done: Out<c_int>, status: Out<Status>) -> c_int {
    one("MPI_Testany", status, || {
        let slots = requests.slice("array_of_requests", count("count", n)? as usize)?;
        let shared = process::world()?.engine();
        let mut engine = shared.lock();
        engine.progress();
        let found = first(&mut engine, slots)?;
        drop(engine);
        done.set("flag", flag(found.is_some()))?;
        match found {
            Some(found) => give_first(found, index, status),
            None => {
                shared.idle();
                index.set("index", abi::MPI_UNDEFINED).map(|()| None)
            }
        }
    })
}

/// Puts the statuses of several requests. Their MPI_ERROR is set if, and only if, one has failed (MPI 5.0 section
/// 3.2.5).
pub(super) struct Many {
    statuses: Out<Status>,
    put: usize,
    first: Option<(Hears, Error)>,
}

impl Many {
    fn put(&mut self, ended: Ended) {
        let (status, error) = ended.settle();
        self.put_outcome(status, error);
    }

    #[inline]
    fn put_success(&mut self, status: Status) {
        if self.statuses.is_null() {
            self.put += 1;
        } else {
            self.put_outcome(status, None);
        }
    }

    pub(super) fn put_outcome(&mut self, status: Status, error: Option<(Hears, Error)>) {
        let at = self.put;
        self.put += 1;
        let class = error.as_ref().map_or(abi::MPI_SUCCESS, |(_, e)| e.class);
        if !self.statuses.is_null() {
            if error.is_some() && self.first.is_none() {
                self.mark_successes(at);
            }
            let place = self.statuses.at(at);
            if self.first.is_some() || error.is_some() {
                place.put(with_error(status, class));
            } else {
                give_status(place, status);
            }
        }
        if self.first.is_none() {
            self.first = error;
        }
    }

    /// The statuses before the first error.
    fn mark_successes(&self, count: usize) {
        for at in 0..count {
            let place = self.statuses.at(at);
            if let Ok(status) = place.get("array_of_statuses") {
                place.put(with_error(status, abi::MPI_SUCCESS));
            }
        }
    }

    fn finish(self, function: &'static str) -> c_int {
        let Some((hears, error)) = self.first else {
            return abi::MPI_SUCCESS;
        };
        // The handler is told what became of the request (MPI 5.0 section 9.3.1). It may put another code in its
        // place.
        let code = raise_on(function, &hears, &error);
        if code != error.class {
            return code;
        }
        let text = format!("{error} ({})", crate::error::class_name(error.class));
        crate::error::remember(function, &Error::new(abi::MPI_ERR_IN_STATUS, text));
        abi::MPI_ERR_IN_STATUS
    }
}

pub(super) fn all(function: &'static str, statuses: Out<Status>, body: impl FnOnce(&mut Many) -> Result<()>) -> c_int {
    let mut many = Many {
        statuses,
        put: 0,
        first: None,
    };
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
        let mut at = 0;
        while at < slots.len() {
            // Whatever calls functions of the program ends outside.
            let ended = engine.wait(|engine| {
                while at < slots.len() {
                    match see(engine, &mut slots[at]) {
                        Ok(Seen::Simply(status)) => many.put_success(status),
                        Ok(Seen::Inactive) => many.put_success(Status::empty()),
                        Ok(Seen::Waits { .. }) => return None,
                        Ok(Seen::Ended(ended)) => {
                            at += 1;
                            return Some(Ok(Some(ended)));
                        }
                        Err(error) => return Some(Err(error)),
                    }
                    at += 1;
                }
                Some(Ok(None))
            })?;
            if let Some(ended) = ended {
                many.put(ended);
            }
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
            let over = *slot == h::MPI_REQUEST_NULL || super::is_complete(*slot, &engine)?;
            if !over && !super::is_doubtful(*slot, &engine) {
                drop(engine);
                process::world()?.engine().idle();
                return done.set("flag", flag(false));
            }
        }
        // From the first one on about which there is more to say they are settled without the engine, in order.
        let mut ended = Vec::new();
        for slot in slots.iter_mut() {
            match end_simply(&mut engine, slot) {
                Simply::Ended(status) if ended.is_empty() => many.put_success(status),
                Simply::Ended(status) => ended.push(Ended::simply(status)),
                Simply::Waits | Simply::Unusual => ended.extend(try_end(&mut engine, slot)?),
            }
        }
        drop(engine);
        ended.into_iter().for_each(|ended| many.put(ended));
        done.set("flag", flag(true))
    })
}

/// The arguments of MPI_Waitsome and MPI_Testsome, and what has been found.
struct Selection<'a> {
    slots: &'a mut [h::Request],
    outcount: Out<c_int>,
    indices: Out<c_int>,
    many: &'a mut Many,
    /// Those that are settled without the engine.
    later: Vec<(usize, Ended)>,
    active: bool,
    /// Of those that are under way nothing unusual is to be said.
    simply: bool,
}

impl<'a> Selection<'a> {
    fn new(slots: &'a mut [h::Request], outcount: Out<c_int>, indices: Out<c_int>, many: &'a mut Many) -> Self {
        Self {
            slots,
            outcount,
            indices,
            many,
            later: Vec::new(),
            active: false,
            simply: true,
        }
    }

    /// Ends all of the requests that are complete. True: there are such, or none is active.
    fn look(&mut self, engine: &mut Engine) -> Result<bool> {
        let count = self.slots.len();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if *slot == h::MPI_REQUEST_NULL {
                continue;
            }
            // An array is wanted where there is something to put into it.
            if self.indices.is_null() && is_active(*slot)? {
                self.indices.slice("array_of_indices", count)?;
            }
            match see(engine, slot)? {
                Seen::Inactive => {
                    self.simply = false;
                    continue;
                }
                Seen::Waits { simply } => self.simply &= simply,
                Seen::Simply(status) => {
                    self.indices.at(self.many.put).put(at as c_int);
                    self.many.put_success(status);
                }
                Seen::Ended(ended) => self.later.push((at, ended)),
            }
            self.active = true;
        }
        Ok(!self.active || self.many.put > 0 || !self.later.is_empty())
    }

    /// Says what was found; the engine is not locked.
    fn give(self) -> Result<()> {
        if !self.active {
            return self.outcount.set("outcount", abi::MPI_UNDEFINED);
        }
        for (at, ended) in self.later {
            self.indices.at(self.many.put).put(at as c_int);
            self.many.put(ended);
        }
        self.outcount.set("outcount", self.many.put as c_int)
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Waitsome(
    n: c_int,
    requests: Out<h::Request>,
    outcount: Out<c_int>,
    indices: Out<c_int>,
    statuses: Out<Status>,
) -> c_int {
    all("MPI_Waitsome", statuses, |many| {
        let slots = requests.slice("array_of_requests", count("incount", n)? as usize)?;
        let mut selection = Selection::new(slots, outcount, indices, many);
        until(|engine| Ok(selection.look(engine)?.then_some(())))?;
        selection.give()
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Testsome(
    n: c_int,
    requests: Out<h::Request>,
    outcount: Out<c_int>,
    indices: Out<c_int>,
    statuses: Out<Status>,
) -> c_int {
    all("MPI_Testsome", statuses, |many| {
        let slots = requests.slice("array_of_requests", count("incount", n)? as usize)?;
        let mut selection = Selection::new(slots, outcount, indices, many);
        let shared = process::world()?.engine();
        let mut engine = shared.lock();
        engine.progress();
        let found = match vain::is_known(&engine, selection.slots) && !selection.indices.is_null() {
            true => {
                (selection.active, selection.simply) = (true, false);
                false
            }
            false => selection.look(&mut engine)?,
        };
        if !found && selection.simply {
            vain::note(&engine, selection.slots);
        }
        drop(engine);
        if !found {
            shared.idle();
        }
        selection.give()
    })
}
