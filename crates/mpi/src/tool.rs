// SPDX-License-Identifier: Apache-2.0
//! The tool interface (MPI 5.0 chapter 15): what was sent, per operation and level, as performance variables.
//!
//! Variables are numbered operation by operation, level by level, messages before bytes; all are 64-bit counters that run
//! from MPI_Init on and cannot be changed. Functions of this chapter return codes of their own and call no error handler.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::world::operation_names;
use isthmus_topology::Level;
use isthmus_wire::boot::Counters;

use crate::c::{Out, Text};
use crate::handle::{Kind, Table};
use crate::process;

/// What a variable counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Messages,
    Bytes,
}

#[derive(Clone, Copy)]
struct Variable {
    operation: &'static str,
    level: Level,
    quantity: Quantity,
}

/// The levels that messages can cross without a vendor MPI.
const LEVELS: [Level; 4] = [Level::WideArea, Level::LocalArea, Level::Machine, Level::Node];
const QUANTITIES: [Quantity; 2] = [Quantity::Messages, Quantity::Bytes];

static INITIALIZED: AtomicI32 = AtomicI32::new(0);
static SESSIONS: Table<()> = Table::new(Kind::PvarSession);
static HANDLES: Table<Variable> = Table::new(Kind::PvarHandle);

type Code = Result<(), c_int>;

fn number_of_variables() -> usize {
    operation_names().len() * LEVELS.len() * QUANTITIES.len()
}

impl Variable {
    fn nth(index: c_int) -> Result<Self, c_int> {
        let index = usize::try_from(index).map_err(|_| abi::MPI_T_ERR_INVALID_INDEX)?;
        let per_operation = LEVELS.len() * QUANTITIES.len();
        let operation = operation_names()
            .get(index / per_operation)
            .ok_or(abi::MPI_T_ERR_INVALID_INDEX)?;
        let rest = index % per_operation;
        Ok(Self {
            operation,
            level: LEVELS[rest / 2],
            quantity: QUANTITIES[rest % 2],
        })
    }

    fn name(&self) -> String {
        let quantity = if self.quantity == Quantity::Messages {
            "messages"
        } else {
            "bytes"
        };
        format!(
            "isthmus_{}_{}_{quantity}",
            self.operation.replace('-', "_"),
            self.level.key()
        )
    }

    fn description(&self) -> String {
        let quantity = if self.quantity == Quantity::Messages {
            "messages"
        } else {
            "bytes of data"
        };
        format!(
            "{quantity} that this process has sent for {} across the {} level",
            self.operation,
            self.level.name()
        )
    }

    fn value(&self, counters: &Counters) -> u64 {
        let row = counters
            .rows
            .iter()
            .find(|(name, level, _)| name == self.operation && usize::from(*level) == self.level.index());
        row.map_or(0, |(_, _, c)| {
            if self.quantity == Quantity::Messages {
                c.messages
            } else {
                c.bytes
            }
        })
    }
}

fn code(body: impl FnOnce() -> Code) -> c_int {
    body().err().unwrap_or(abi::MPI_SUCCESS)
}

/// Functions other than MPI_T_init_thread need it first.
fn tool(body: impl FnOnce() -> Code) -> c_int {
    code(|| {
        if INITIALIZED.load(Ordering::Acquire) == 0 {
            return Err(abi::MPI_T_ERR_NOT_INITIALIZED);
        }
        body()
    })
}

fn set<T>(out: Out<T>, value: T) -> Code {
    out.set("", value).map_err(|_| abi::MPI_T_ERR_INVALID)
}

fn session(handle: h::TPvarSession) -> Code {
    SESSIONS.get(handle.0).copied().ok_or(abi::MPI_T_ERR_INVALID_SESSION)
}

fn variable(handle: h::TPvarHandle) -> Result<Variable, c_int> {
    HANDLES.get(handle.0).copied().ok_or(abi::MPI_T_ERR_INVALID_HANDLE)
}

/// Writes a text as MPI_T does (section 15.3.3): the length in and out counts the terminator.
fn text(out: Out<c_char>, length: Out<c_int>, text: &str) -> Code {
    if length.is_null() {
        return Ok(());
    }
    let room = length.get("").unwrap_or(0);
    if !out.is_null() && room > 0 {
        out.text("", text, room as usize).map_err(|_| abi::MPI_T_ERR_INVALID)?;
        let written = text.len().min(room as usize - 1) + 1;
        return set(length, written as c_int);
    }
    set(length, text.len() as c_int + 1)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_init_thread(required: c_int, provided: Out<c_int>) -> c_int {
    code(|| {
        let granted = crate::environment::granted(required).map_err(|_| abi::MPI_T_ERR_INVALID)?;
        INITIALIZED.fetch_add(1, Ordering::AcqRel);
        set(provided, granted)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_finalize() -> c_int {
    tool(|| {
        INITIALIZED.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_cvar_get_num(n: Out<c_int>) -> c_int {
    tool(|| set(n, 0))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_get_num(n: Out<c_int>) -> c_int {
    tool(|| set(n, 0))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_get_num(n: Out<c_int>) -> c_int {
    tool(|| set(n, number_of_variables() as c_int))
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
        let variable = Variable::nth(index)?;
        text(name, name_length, &variable.name())?;
        text(description, description_length, &variable.description())?;
        verbosity.put(abi::MPI_T_VERBOSITY_USER_BASIC);
        class.put(abi::MPI_T_PVAR_CLASS_COUNTER);
        datatype.put(h::MPI_UNSIGNED_LONG_LONG);
        enumeration.put(h::MPI_T_ENUM_NULL);
        bind.put(abi::MPI_T_BIND_NO_OBJECT);
        read_only.put(1);
        continuous.put(1);
        atomic.put(0);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_get_index(name: Text, class: c_int, index: Out<c_int>) -> c_int {
    tool(|| {
        let wanted = name.get("name", 0).map_err(|_| abi::MPI_T_ERR_INVALID)?;
        if class != abi::MPI_T_PVAR_CLASS_COUNTER {
            return Err(abi::MPI_T_ERR_INVALID_NAME);
        }
        let found = (0..number_of_variables() as c_int).find(|&i| Variable::nth(i).is_ok_and(|v| v.name() == wanted));
        set(index, found.ok_or(abi::MPI_T_ERR_INVALID_NAME)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_session_create(out: Out<h::TPvarSession>) -> c_int {
    tool(|| set(out, h::TPvarSession(SESSIONS.insert(()))))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_session_free(out: Out<h::TPvarSession>) -> c_int {
    tool(|| {
        let handle = out.get("").map_err(|_| abi::MPI_T_ERR_INVALID)?;
        SESSIONS.remove(handle.0).ok_or(abi::MPI_T_ERR_INVALID_SESSION)?;
        set(out, h::MPI_T_PVAR_SESSION_NULL)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_handle_alloc(
    pvar_session: h::TPvarSession,
    index: c_int,
    _object: usize,
    handle: Out<h::TPvarHandle>,
    count: Out<c_int>,
) -> c_int {
    tool(|| {
        session(pvar_session)?;
        let variable = Variable::nth(index)?;
        set(count, 1)?;
        set(handle, h::TPvarHandle(HANDLES.insert(variable)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_handle_free(pvar_session: h::TPvarSession, handle: Out<h::TPvarHandle>) -> c_int {
    tool(|| {
        session(pvar_session)?;
        let old = handle.get("").map_err(|_| abi::MPI_T_ERR_INVALID)?;
        HANDLES.remove(old.0).ok_or(abi::MPI_T_ERR_INVALID_HANDLE)?;
        set(handle, h::MPI_T_PVAR_HANDLE_NULL)
    })
}

/// Starting and stopping all handles passes over the continuous ones; of a single one it is an error.
fn start_or_stop(pvar_session: h::TPvarSession, handle: h::TPvarHandle) -> Code {
    session(pvar_session)?;
    if handle == h::MPI_T_PVAR_ALL_HANDLES {
        return Ok(());
    }
    variable(handle)?;
    Err(abi::MPI_T_ERR_PVAR_NO_STARTSTOP)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_start(pvar_session: h::TPvarSession, handle: h::TPvarHandle) -> c_int {
    tool(|| start_or_stop(pvar_session, handle))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_stop(pvar_session: h::TPvarSession, handle: h::TPvarHandle) -> c_int {
    tool(|| start_or_stop(pvar_session, handle))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_read(
    pvar_session: h::TPvarSession,
    handle: h::TPvarHandle,
    buffer: Out<u64>,
) -> c_int {
    tool(|| {
        session(pvar_session)?;
        let variable = variable(handle)?;
        let counters = process::world()
            .map(|w| w.engine().lock().counters())
            .unwrap_or_default();
        set(buffer, variable.value(&counters))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_readreset(
    pvar_session: h::TPvarSession,
    handle: h::TPvarHandle,
    _buffer: Out<u64>,
) -> c_int {
    tool(|| {
        session(pvar_session)
            .and_then(|()| variable(handle))
            .and(Err(abi::MPI_T_ERR_PVAR_NO_ATOMIC))
    })
}

/// Read-only variables cannot be set; for all handles they are passed over.
fn change(pvar_session: h::TPvarSession, handle: h::TPvarHandle) -> Code {
    session(pvar_session)?;
    if handle == h::MPI_T_PVAR_ALL_HANDLES {
        return Ok(());
    }
    variable(handle)?;
    Err(abi::MPI_T_ERR_PVAR_NO_WRITE)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_reset(pvar_session: h::TPvarSession, handle: h::TPvarHandle) -> c_int {
    tool(|| change(pvar_session, handle))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_pvar_write(
    pvar_session: h::TPvarSession,
    handle: h::TPvarHandle,
    _buffer: crate::c::Source,
) -> c_int {
    tool(|| change(pvar_session, handle))
}
