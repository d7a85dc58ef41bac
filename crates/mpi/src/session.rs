// SPDX-License-Identifier: Apache-2.0
//! Sessions and their process sets (MPI 5.0 section 11.3).

use std::ffi::{c_char, c_int};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::errhandler::{ErrorHandler, Owner};
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::info::Info;
use isthmus_core::session::{self, Session};

use crate::c::{Out, Text};
use crate::call::{call_anytime, raise, raise_to};
use crate::handle::{Kind, Table};
use crate::life;
use crate::{errhandler, error, group, info, process};

static SESSIONS: Table<Session> = Table::new(Kind::Session);

/// Names of the levels of thread support as values of the key `thread_level`.
const LEVELS: [(&str, c_int); 4] = [
    ("MPI_THREAD_SINGLE", abi::MPI_THREAD_SINGLE),
    ("MPI_THREAD_FUNNELED", abi::MPI_THREAD_FUNNELED),
    ("MPI_THREAD_SERIALIZED", abi::MPI_THREAD_SERIALIZED),
    ("MPI_THREAD_MULTIPLE", abi::MPI_THREAD_MULTIPLE),
];

/// The session of a handle.
pub(crate) fn find(handle: h::Session) -> Result<&'static Session> {
    match SESSIONS.get(handle.0) {
        Some(session) => Ok(session),
        None if handle == h::MPI_SESSION_NULL => {
            fail!(abi::MPI_ERR_SESSION, argument("session"), "is MPI_SESSION_NULL")
        }
        None => fail!(
            abi::MPI_ERR_SESSION,
            argument("session"),
            "is {:#x}, which is not the handle of a session",
            handle.0
        ),
    }
}

/// Runs a body that needs a session and raises its error on the session's handler.
pub(crate) fn call_in(
    function: &'static str,
    handle: h::Session,
    body: impl FnOnce(&'static Session) -> Result<()>,
) -> c_int {
    let Err(error) = find(handle).and_then(body) else {
        return abi::MPI_SUCCESS;
    };
    match find(handle) {
        Ok(session) => raise_to(function, handle.0, session.error_handler(), &error),
        Err(_) => raise(function, h::MPI_COMM_NULL, &error),
    }
}

/// The level that the info of a new session asks for.
fn wanted_level(info: &Info) -> Result<c_int> {
    let Some(name) = info.get("thread_level")? else {
        return Ok(abi::MPI_THREAD_SINGLE);
    };
    match LEVELS.iter().find(|(n, _)| *n == name) {
        Some((_, level)) => Ok(*level),
        None => fail!(
            abi::MPI_ERR_INFO_VALUE,
            "the key thread_level has the value '{name}', expected MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, \
             MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE"
        ),
    }
}

fn open(info: h::Info, handler: ErrorHandler) -> Result<h::Session> {
    let hints = info::find(info)?;
    let wanted = wanted_level(&hints)?;
    let granted = life::start_session(wanted)?;
    // Who did not ask gets what there is: libraries look here for what they may do.
    let level = if process::takes_turns() || hints.get("thread_level")?.is_some() {
        granted
    } else {
        abi::MPI_THREAD_MULTIPLE
    };
    let mut used = Info::default();
    if let Some((name, _)) = LEVELS.iter().find(|(_, l)| *l == level) {
        used.set("thread_level", name)?;
    }
    used.set("mpi_memory_alloc_kinds", "mpi,system")?;
    Ok(h::Session(SESSIONS.insert(Session::new(handler, used))))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_init(info: h::Info, handler: h::Errhandler, session: Out<h::Session>) -> c_int {
    // The handler is there before the session is.
    let found = errhandler::find_for(Owner::Session, handler);
    let (is_refused, to) = (found.is_err(), found.clone().unwrap_or_default());
    let made = found.and_then(|handler| {
        session.set("session", h::MPI_SESSION_NULL)?;
        session.set("session", open(info, handler)?)
    });
    match made {
        Ok(()) => abi::MPI_SUCCESS,
        Err(error) if is_refused => raise("MPI_Session_init", h::MPI_COMM_NULL, &error),
        Err(error) => raise_to("MPI_Session_init", h::MPI_SESSION_NULL.0, to, &error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_finalize(session: Out<h::Session>) -> c_int {
    let handle = session.get("session").unwrap_or(h::MPI_SESSION_NULL);
    call_in("MPI_Session_finalize", handle, |_| {
        session.set("session", h::MPI_SESSION_NULL)?;
        life::finish_session()?;
        SESSIONS.remove(handle.0);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_get_info(session: h::Session, info: Out<h::Info>) -> c_int {
    call_in("MPI_Session_get_info", session, |session| {
        info.set("info_used", h::MPI_INFO_NULL)?;
        info.set("info_used", info::insert(session.info().clone()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_get_num_psets(session: h::Session, info: h::Info, n: Out<c_int>) -> c_int {
    call_in("MPI_Session_get_num_psets", session, |_| {
        info::find(info)?;
        n.set("npset_names", session::process_sets(process::world()?).len() as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_get_nth_pset(
    session: h::Session,
    info: h::Info,
    n: c_int,
    length: Out<c_int>,
    name: Out<c_char>,
) -> c_int {
    call_in("MPI_Session_get_nth_pset", session, |_| {
        info::find(info)?;
        let sets = session::process_sets(process::world()?);
        let Some(set) = usize::try_from(n).ok().and_then(|at| sets.get(at)) else {
            fail!(
                abi::MPI_ERR_ARG,
                argument("n"),
                "is {n}, the process sets are 0 to {}",
                sets.len() - 1
            )
        };
        let room = length.get("pset_len")?;
        if room < 0 {
            fail!(abi::MPI_ERR_ARG, argument("pset_len"), "is {room}, expected 0 or more");
        }
        if room > 0 {
            name.text("pset_name", set, room as usize)?;
        }
        length.set("pset_len", set.len() as c_int + 1)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_get_pset_info(session: h::Session, name: Text, info: Out<h::Info>) -> c_int {
    call_in("MPI_Session_get_pset_info", session, |_| {
        let name = name.get("pset_name", abi::MPI_ERR_ARG)?;
        let about = session::process_set_info(process::world()?, &name)?;
        info.set("info", h::MPI_INFO_NULL)?;
        info.set("info", info::insert(about))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Group_from_session_pset(session: h::Session, name: Text, out: Out<h::Group>) -> c_int {
    call_in("MPI_Group_from_session_pset", session, |owner| {
        let name = name.get("pset_name", abi::MPI_ERR_ARG)?;
        group::give(out, || {
            let group = session::find_process_set(process::world()?, &name)?;
            Ok(group.of_session(owner.buffer().clone()))
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Get_hw_resource_info(info: Out<h::Info>) -> c_int {
    call_anytime("MPI_Get_hw_resource_info", || {
        let mut kinds = Info::default();
        for kind in isthmus_core::create::RESOURCES {
            // A process of Isthmus uses one node, of one machine, at one site.
            kinds.set(&format!("isthmus://{}", kind.name()), "true")?;
        }
        info.set("hw_info", h::MPI_INFO_NULL)?;
        info.set("hw_info", info::insert(kinds))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_create_errhandler(
    function: Option<errhandler::HandlerFunction>,
    out: Out<h::Errhandler>,
) -> c_int {
    call_anytime("MPI_Session_create_errhandler", || {
        errhandler::create(Owner::Session, function, out)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_set_errhandler(session: h::Session, handler: h::Errhandler) -> c_int {
    call_in("MPI_Session_set_errhandler", session, |session| {
        session.set_error_handler(errhandler::find_for(Owner::Session, handler)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_get_errhandler(session: h::Session, out: Out<h::Errhandler>) -> c_int {
    call_in("MPI_Session_get_errhandler", session, |session| {
        out.set("errhandler", errhandler::handle_of(&session.error_handler()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Session_call_errhandler(session: h::Session, code: c_int) -> c_int {
    call_in("MPI_Session_call_errhandler", session, |object| {
        error::class_of(code)?;
        let error = error::called(code);
        raise_to("MPI_Session_call_errhandler", session.0, object.error_handler(), &error);
        Ok(())
    })
}
