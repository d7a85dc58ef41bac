// SPDX-License-Identifier: Apache-2.0
//! Sessions and handles of performance variables (MPI 5.0 section 15.3.7). What one handle is started, stopped or set
//! to, no other handle sees: a handle remembers what the library had counted when it was started.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;

use super::values::{Code, get, name, nth, set, text, tool};
use super::variable::{Bound, Manner, Variable, all};
use crate::c::{In, Out, Text};
use crate::handle::{Kind, Table};

static SESSIONS: Table<Mutex<Vec<usize>>> = Table::new(Kind::PvarSession);
static HANDLES: Table<Handle> = Table::new(Kind::PvarHandle);

struct Handle {
    session: h::TPvarSession,
    variable: Variable,
    bound: Option<Bound>,
    count: Mutex<Count>,
}

/// The handle's own view of a number that only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    /// Counted while it was started earlier.
    before: u64,
    /// The library's number when it was started; `None`: stopped.
    since: Option<u64>,
}

impl Count {
    fn new(manner: Manner) -> Self {
        Self {
            before: 0,
            since: (manner != Manner::Stoppable).then_some(0),
        }
    }

    fn value(self, now: u64) -> u64 {
        let running = self.since.map_or(0, |since| now.wrapping_sub(since));
        self.before.wrapping_add(running)
    }

    fn start(&mut self, now: u64) {
        self.since.get_or_insert(now);
    }

    fn stop(&mut self, now: u64) {
        self.before = self.value(now);
        self.since = None;
    }

    fn set(&mut self, value: u64, now: u64) {
        self.before = value;
        self.since = self.since.map(|_| now);
    }
}

impl Handle {
    fn now(&self) -> Code<u64> {
        self.variable.number(self.bound).ok_or(abi::MPI_T_ERR_INVALID_HANDLE)
    }

    fn count<R>(&self, with: impl FnOnce(&mut Count, u64) -> R) -> Code<R> {
        let now = self.now()?;
        Ok(with(
            &mut self.count.lock().unwrap_or_else(PoisonError::into_inner),
            now,
        ))
    }

    fn read(&self, buffer: Out<u8>) -> Code {
        let value = match self.variable.manner() {
            Manner::Fixed => self.now()?,
            Manner::Counting | Manner::Stoppable => self.count(|count, now| count.value(now))?,
        };
        self.variable.value(value).give(buffer)
    }

    fn start_or_stop(&self, start: bool) -> Code {
        if self.variable.manner() != Manner::Stoppable {
            return Err(abi::MPI_T_ERR_PVAR_NO_STARTSTOP);
        }
        self.count(|count, now| if start { count.start(now) } else { count.stop(now) })
    }

    fn write(&self, value: u64) -> Code {
        if self.variable.manner() == Manner::Fixed {
            return Err(abi::MPI_T_ERR_PVAR_NO_WRITE);
        }
        self.count(|count, now| count.set(value, now))
    }
}

fn session(handle: h::TPvarSession) -> Code<&'static Mutex<Vec<usize>>> {
    SESSIONS.get(handle.0).ok_or(abi::MPI_T_ERR_INVALID_SESSION)
}

/// A handle of this session.
fn find(of: h::TPvarSession, handle: h::TPvarHandle) -> Code<&'static Handle> {
    session(of)?;
    let found = HANDLES.get(handle.0).filter(|found| found.session == of);
    found.ok_or(abi::MPI_T_ERR_INVALID_HANDLE)
}

/// One handle, or all of the session; of all, those are passed over for which the operation has no meaning.
fn each(of: h::TPvarSession, handle: h::TPvarHandle, operation: impl Fn(&Handle) -> Code) -> Code {
    if handle != h::MPI_T_PVAR_ALL_HANDLES {
        return operation(find(of, handle)?);
    }
    let handles = session(of)?.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for found in handles.into_iter().filter_map(|handle| HANDLES.get(handle)) {
        match operation(found) {
            Err(abi::MPI_T_ERR_PVAR_NO_STARTSTOP | abi::MPI_T_ERR_PVAR_NO_WRITE) => {}
            other => other?,
        }
    }
    Ok(())
}

/// MPI_T_finalize: sessions and handles are gone.
pub(super) fn end() {
    HANDLES.clear();
    SESSIONS.clear();
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_get_num(n: Out<c_int>) -> c_int {
    tool(|| set(n, all().len() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_get_info(
    index: c_int,
    name: Out<c_char>,
    name_length: Out<c_int>,
    verbosity: Out<c_int>,
    class: Out<c_int>,
    datatype: Out<h::Datatype>,
    enumeration: Out<h::TEnum>,
    description: Out<c_char>,
    description_length: Out<c_int>,
    bind: Out<c_int>,
    read_only: Out<c_int>,
    continuous: Out<c_int>,
    atomic: Out<c_int>,
) -> c_int {
    tool(|| {
        let variable = *nth(all(), index)?;
        text(name, name_length, &variable.name())?;
        text(description, description_length, &variable.description())?;
        verbosity.put(variable.verbosity());
        class.put(variable.class());
        datatype.put(variable.value(0).datatype());
        enumeration.put(variable.enumeration());
        bind.put(variable.bind());
        let manner = variable.manner();
        read_only.put(c_int::from(manner == Manner::Fixed));
        continuous.put(c_int::from(manner != Manner::Stoppable));
        atomic.put(c_int::from(manner != Manner::Fixed));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_get_index(text: Text, class: c_int, index: Out<c_int>) -> c_int {
    tool(|| {
        let wanted = name(text)?;
        let found = all().iter().position(|v| v.class() == class && v.name() == wanted);
        set(index, found.ok_or(abi::MPI_T_ERR_INVALID_NAME)? as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_session_create(out: Out<h::TPvarSession>) -> c_int {
    tool(|| {
        set(out, h::MPI_T_PVAR_SESSION_NULL)?;
        set(out, h::TPvarSession(SESSIONS.insert(Mutex::default())))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_session_free(out: Out<h::TPvarSession>) -> c_int {
    tool(|| {
        let handles = SESSIONS.remove(get(out)?.0).ok_or(abi::MPI_T_ERR_INVALID_SESSION)?;
        for handle in handles.into_inner().unwrap_or_else(PoisonError::into_inner) {
            HANDLES.remove(handle);
        }
        set(out, h::MPI_T_PVAR_SESSION_NULL)
    })
}

/// The object that the tool wants the variable of; the argument points to its handle.
fn bound(variable: Variable, object: In<h::Comm>) -> Code<Option<Bound>> {
    if variable.bind() == abi::MPI_T_BIND_NO_OBJECT {
        return Ok(None);
    }
    let handle = object.slice("obj_handle", 1).map_err(|_| abi::MPI_T_ERR_INVALID)?;
    Bound::to(handle[0]).map(Some).ok_or(abi::MPI_T_ERR_INVALID)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_handle_alloc(
    of: h::TPvarSession,
    index: c_int,
    object: In<h::Comm>,
    handle: Out<h::TPvarHandle>,
    count: Out<c_int>,
) -> c_int {
    tool(|| {
        let handles = session(of)?;
        let variable = *nth(all(), index)?;
        let bound = bound(variable, object)?;
        set(handle, h::MPI_T_PVAR_HANDLE_NULL)?;
        set(count, 1)?;
        let new = HANDLES.insert(Handle {
            session: of,
            variable,
            bound,
            count: Mutex::new(Count::new(variable.manner())),
        });
        handles.lock().unwrap_or_else(PoisonError::into_inner).push(new);
        set(handle, h::TPvarHandle(new))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_handle_free(of: h::TPvarSession, handle: Out<h::TPvarHandle>) -> c_int {
    tool(|| {
        let old = get(handle)?;
        find(of, old)?;
        session(of)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|&kept| kept != old.0);
        HANDLES.remove(old.0);
        set(handle, h::MPI_T_PVAR_HANDLE_NULL)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_start(of: h::TPvarSession, handle: h::TPvarHandle) -> c_int {
    tool(|| each(of, handle, |found| found.start_or_stop(true)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_stop(of: h::TPvarSession, handle: h::TPvarHandle) -> c_int {
    tool(|| each(of, handle, |found| found.start_or_stop(false)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_read(of: h::TPvarSession, handle: h::TPvarHandle, buffer: Out<u8>) -> c_int {
    tool(|| find(of, handle)?.read(buffer))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_readreset(of: h::TPvarSession, handle: h::TPvarHandle, buffer: Out<u8>) -> c_int {
    tool(|| {
        let found = find(of, handle)?;
        if found.variable.manner() == Manner::Fixed {
            return Err(abi::MPI_T_ERR_PVAR_NO_ATOMIC);
        }
        let value = found.count(|count, now| {
            let value = count.value(now);
            count.set(0, now);
            value
        })?;
        found.variable.value(value).give(buffer)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_reset(of: h::TPvarSession, handle: h::TPvarHandle) -> c_int {
    tool(|| each(of, handle, |found| found.write(0)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_write(of: h::TPvarSession, handle: h::TPvarHandle, buffer: In<u8>) -> c_int {
    tool(|| {
        let found = find(of, handle)?;
        // Variables that can be written are 64 bits wide.
        let bytes = buffer
            .slice("buf", size_of::<u64>())
            .map_err(|_| abi::MPI_T_ERR_INVALID)?;
        let value = bytes.first_chunk().ok_or(abi::MPI_T_ERR_INVALID)?;
        found.write(u64::from_ne_bytes(*value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_counts_only_while_it_is_started() {
        let mut count = Count::new(Manner::Stoppable);
        assert_eq!(count.value(7), 0);
        count.start(10);
        count.start(11);
        assert_eq!(count.value(15), 5);
        count.stop(20);
        assert_eq!(count.value(99), 10);
        count.start(100);
        assert_eq!(count.value(101), 11);
        count.set(0, 101);
        assert_eq!(count.value(103), 2);
    }

    #[test]
    fn a_continuous_handle_begins_with_everything_so_far() {
        let mut count = Count::new(Manner::Counting);
        assert_eq!(count.value(7), 7);
        count.set(100, 7);
        assert_eq!(count.value(9), 102);
    }
}
