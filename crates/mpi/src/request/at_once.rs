// SPDX-License-Identifier: Apache-2.0
//! Requests that need no wait, where threads take turns and nothing is unusual: without the frame that errors need.
//! Whatever is unusual takes the longer way, which knows all cases and names what is wrong: that is what an error says
//! here.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_engine::{Engine, Shared};

use super::{REQUESTS, Simply, Started, end_simply, give_status, is_message, null_status, received, short_form, vain};
use crate::c::{Out, flag};
use crate::process;

/// Requests that are passed over together.
const EIGHT: usize = 8;

/// Looks, and once more if that was in vain and something has come meanwhile.
#[inline(always)]
fn look_twice(engine: &mut Engine, mut look: impl FnMut(&mut Engine) -> Simply) -> Simply {
    match look(engine) {
        Simply::Waits | Simply::Unusual if engine.progress() => look(engine),
        seen => seen,
    }
}

/// What a function for one request begins with: the engine, and what the handle names.
#[inline(always)]
fn one(request: Out<h::Request>) -> Result<(&'static Shared, h::Request), ()> {
    let process = process::of_turns().ok_or(())?;
    let slot = request.get("request").map_err(|_| ())?;
    Ok((process.world().engine(), slot))
}

/// What one for several requests begins with, which says in `index` which has ended.
#[inline(always)]
fn several<'a>(
    n: c_int,
    requests: Out<h::Request>,
    index: Out<c_int>,
) -> Result<(&'static Shared, &'a mut [h::Request]), ()> {
    let process = process::of_turns().ok_or(())?;
    let n = usize::try_from(n).map_err(|_| ())?;
    let slots = requests.slice("array_of_requests", n).map_err(|_| ())?;
    match index.is_null() {
        true => Err(()),
        false => Ok((process.world().engine(), slots)),
    }
}

/// MPI_Wait for a request that is complete, or is with what is here already.
#[inline(always)]
pub(super) fn end_at_once(request: Out<h::Request>, status: Out<Status>) -> Result<(), ()> {
    let (shared, mut slot) = one(request)?;
    let ended = match short_form(slot) {
        // Neither needs the engine any more.
        Some(Started::Sent(_) | Started::Over) => Simply::Ended(Status::empty()),
        Some(Started::FromNobody) => Simply::Ended(null_status()),
        Some(Started::Receive(receive)) => {
            let mut engine = shared.briefly().ok_or(())?;
            look_twice(&mut engine, |engine| received(engine, receive))
        }
        // Of operations of groups a look or two are mostly not enough.
        None if is_message(slot) => {
            let mut engine = shared.briefly().ok_or(())?;
            let ended = look_twice(&mut engine, |engine| end_simply(engine, &mut slot));
            return give(ended, slot, request, status);
        }
        Some(Started::Other(_)) | None => return Err(()),
    };
    if matches!(ended, Simply::Ended(_)) {
        REQUESTS.discard(slot.0);
    }
    give(ended, h::MPI_REQUEST_NULL, request, status)
}

/// Hands over what has become of a request: `slot` in its place.
#[inline(always)]
fn give(ended: Simply, slot: h::Request, request: Out<h::Request>, status: Out<Status>) -> Result<(), ()> {
    let Simply::Ended(known) = ended else { return Err(()) };
    give_status(status, known);
    request.put(slot);
    Ok(())
}

/// MPI_Test.
#[inline(always)]
pub(super) fn test_at_once(request: Out<h::Request>, done: Out<c_int>, status: Out<Status>) -> Result<(), ()> {
    let (shared, mut slot) = one(request)?;
    if done.is_null() {
        return Err(());
    }
    let mut engine = shared.briefly().ok_or(())?;
    let ended = look_twice(&mut engine, |engine| end_simply(engine, &mut slot));
    drop(engine);
    if matches!(ended, Simply::Waits) {
        shared.idle();
        done.put(flag(false));
        return Ok(());
    }
    give(ended, slot, request, status)?;
    done.put(flag(true));
    Ok(())
}

/// Where the first request is that is not null, from there on.
#[inline(always)]
fn next_of(slots: &[h::Request], from: usize) -> Option<usize> {
    let mut at = from;
    // Most have ended when the last ones are waited for.
    while let Some(next) = slots.get(at..at + EIGHT) {
        if next.iter().any(|slot| *slot != h::MPI_REQUEST_NULL) {
            break;
        }
        at += EIGHT;
    }
    let more = slots.get(at..)?.iter().position(|slot| *slot != h::MPI_REQUEST_NULL)?;
    Some(at + more)
}

/// Ends the first of the requests that is complete. An error: there is none, or one before it takes a closer look.
#[inline(always)]
fn end_first(engine: &mut Engine, slots: &mut [h::Request]) -> Result<(usize, Status), Simply> {
    let mut from = 0;
    while let Some(at) = next_of(slots, from) {
        match end_simply(engine, &mut slots[at]) {
            Simply::Ended(status) => return Ok((at, status)),
            Simply::Waits => from = at + 1,
            Simply::Unusual => return Err(Simply::Unusual),
        }
    }
    Err(if from == 0 { Simply::Unusual } else { Simply::Waits })
}

/// MPI_Waitany where one is complete, or is with what is here already.
#[inline(always)]
pub(super) fn any_at_once(
    n: c_int,
    requests: Out<h::Request>,
    index: Out<c_int>,
    status: Out<Status>,
) -> Result<(), ()> {
    let (shared, slots) = several(n, requests, index)?;
    let mut engine = shared.briefly().ok_or(())?;
    let ended = match end_first(&mut engine, slots) {
        Err(Simply::Waits) if engine.progress() => end_first(&mut engine, slots),
        ended => ended,
    };
    drop(engine);
    let (at, known) = ended.map_err(|_| ())?;
    give_status(status, known);
    index.put(at as c_int);
    Ok(())
}

/// MPI_Testany.
#[inline(always)]
pub(super) fn test_any_at_once(
    n: c_int,
    requests: Out<h::Request>,
    index: Out<c_int>,
    done: Out<c_int>,
    status: Out<Status>,
) -> Result<(), ()> {
    let (shared, slots) = several(n, requests, index)?;
    if done.is_null() {
        return Err(());
    }
    let mut engine = shared.briefly().ok_or(())?;
    engine.progress();
    let ended = match vain::is_known(&engine, slots) {
        true => Err(Simply::Waits),
        false => end_first(&mut engine, slots).inspect_err(|seen| {
            if matches!(seen, Simply::Waits) {
                vain::note(&engine, slots);
            }
        }),
    };
    drop(engine);
    match ended {
        Ok((at, known)) => {
            give_status(status, known);
            index.put(at as c_int);
            done.put(flag(true));
        }
        Err(Simply::Waits) => {
            shared.idle();
            index.put(abi::MPI_UNDEFINED);
            done.put(flag(false));
        }
        Err(_) => return Err(()),
    }
    Ok(())
}
