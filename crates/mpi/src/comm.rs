// SPDX-License-Identifier: Apache-2.0
//! Communicators (MPI 5.0 section 7.4).

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attribute;
use isthmus_core::comm::{Comm, SplitBy};
use isthmus_core::errhandler::ErrorHandler;
use isthmus_core::error::Result;
use isthmus_core::fail;

use crate::c::{Out, Text, flag};
use crate::call::call_on;
use crate::handle::{Kind, Table};
use crate::process;

static COMMS: Table<Arc<Comm>> = Table::new(Kind::Comm);

#[inline]
fn object(handle: h::Comm) -> Result<&'static Arc<Comm>> {
    match handle {
        h::MPI_COMM_WORLD => Ok(&process::get()?.comm_world),
        h::MPI_COMM_SELF => Ok(&process::get()?.comm_self),
        _ => match COMMS.get(handle.0) {
            Some(comm) => Ok(comm),
            None if handle == h::MPI_COMM_NULL => fail!(abi::MPI_ERR_COMM, "argument comm is MPI_COMM_NULL"),
            None => fail!(
                abi::MPI_ERR_COMM,
                "argument comm is {:#x}, which is not the handle of a communicator",
                handle.0
            ),
        },
    }
}

/// A communicator that an operation keeps, also after MPI_Comm_free.
#[derive(Clone)]
pub(crate) struct Held {
    handle: h::Comm,
    /// `None`: a predefined one, or none.
    comm: Option<Arc<Comm>>,
}

impl Held {
    /// Keeps the communicator of a handle.
    pub(crate) fn of(handle: h::Comm) -> Self {
        Self {
            handle,
            comm: COMMS.get(handle.0).cloned(),
        }
    }

    /// The handle that the program used.
    pub(crate) fn handle(&self) -> h::Comm {
        self.handle
    }

    /// The communicator.
    pub(crate) fn get(&self) -> Result<&Comm> {
        match &self.comm {
            Some(comm) => Ok(comm),
            None => find(self.handle),
        }
    }

    /// Its handler for errors, and the handle that it is told.
    pub(crate) fn handler(&self) -> (usize, ErrorHandler) {
        match &self.comm {
            Some(comm) => (self.handle.0, comm.error_handler()),
            None => handler_of(self.handle),
        }
    }
}

/// The communicator of a handle.
#[inline]
pub(crate) fn find(handle: h::Comm) -> Result<&'static Comm> {
    object(handle).map(|comm| &**comm)
}

/// The communicator of a handle, for those who need it longer than the handle lives.
pub(crate) fn hold(handle: h::Comm) -> Result<Arc<Comm>> {
    object(handle).cloned()
}

/// The handler for errors on a communicator, and the handle that it is told. Before MPI_Init and with a wrong handle
/// the handler of MPI_COMM_SELF decides (MPI 5.0 section 9.3), which is initially to end the job.
pub(crate) fn handler_of(handle: h::Comm) -> (usize, ErrorHandler) {
    let comm = find(handle).map(|c| (handle.0, c));
    match comm.or_else(|_| find(h::MPI_COMM_SELF).map(|c| (h::MPI_COMM_SELF.0, c))) {
        Ok((handle, comm)) => (handle, comm.error_handler()),
        Err(_) => (h::MPI_COMM_NULL.0, ErrorHandler::Fatal),
    }
}

/// A handle for a communicator; none gives MPI_COMM_NULL.
pub(crate) fn insert(comm: Option<Arc<Comm>>) -> h::Comm {
    comm.map_or(h::MPI_COMM_NULL, |comm| h::Comm(COMMS.insert(comm)))
}

fn give(out: Out<h::Comm>, make: impl FnOnce() -> Result<Option<Arc<Comm>>>) -> Result<()> {
    out.set("newcomm", h::MPI_COMM_NULL)?;
    out.set("newcomm", insert(make()?))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_size(comm: h::Comm, size: Out<c_int>) -> c_int {
    call_on("MPI_Comm_size", comm, || size.set("size", find(comm)?.size() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_rank(comm: h::Comm, rank: Out<c_int>) -> c_int {
    call_on("MPI_Comm_rank", comm, || rank.set("rank", find(comm)?.rank() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_compare(a: h::Comm, b: h::Comm, result: Out<c_int>) -> c_int {
    call_on("MPI_Comm_compare", a, || {
        let (first, second) = (find(a)?, find(b)?);
        let groups = crate::group::comparison(first.group().compare(second.group()));
        let same = first.context() == second.context() && groups == abi::MPI_IDENT;
        let answer = if same {
            abi::MPI_IDENT
        } else if groups == abi::MPI_IDENT {
            abi::MPI_CONGRUENT
        } else {
            groups
        };
        result.set("result", answer)
    })
}

fn duplicate(handle: h::Comm) -> Result<Option<Arc<Comm>>> {
    let old = find(handle)?;
    let new = old.duplicate(process::world()?)?;
    new.replace_attributes(attribute::duplicate(old.attributes(), handle.0)?);
    Ok(Some(new))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_dup(comm: h::Comm, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_dup", comm, || give(new, || duplicate(comm)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_dup_with_info(comm: h::Comm, info: h::Info, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_dup_with_info", comm, || {
        crate::info::find(info)?;
        give(new, || duplicate(comm))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_create(comm: h::Comm, group: h::Group, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_create", comm, || {
        give(new, || {
            find(comm)?.create(process::world()?, &crate::group::find(group)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_split(comm: h::Comm, color: c_int, key: c_int, new: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_split", comm, || {
        // Negative colours other than MPI_UNDEFINED are accepted: MPICH-G2's own example program uses -1.
        let color = (color != abi::MPI_UNDEFINED).then_some(color);
        give(new, || find(comm)?.split(process::world()?, color, key))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_split_type(
    comm: h::Comm,
    split_type: c_int,
    key: c_int,
    info: h::Info,
    new: Out<h::Comm>,
) -> c_int {
    call_on("MPI_Comm_split_type", comm, || {
        crate::info::find(info)?;
        let by = match split_type {
            abi::MPI_COMM_TYPE_SHARED => Some(SplitBy::Node),
            abi::MPI_UNDEFINED => None,
            abi::MPI_COMM_TYPE_HW_GUIDED | abi::MPI_COMM_TYPE_HW_UNGUIDED | abi::MPI_COMM_TYPE_RESOURCE_GUIDED => {
                fail!(
                    abi::MPI_ERR_UNSUPPORTED_OPERATION,
                    "hardware- and resource-guided split types are not implemented yet; MPI_COMM_TYPE_SHARED is"
                )
            }
            other => fail!(abi::MPI_ERR_ARG, "{other} is not a split type"),
        };
        give(new, || find(comm)?.split_by(process::world()?, by, key))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_free(comm: Out<h::Comm>) -> c_int {
    let handle = comm.get("comm").unwrap_or(h::MPI_COMM_NULL);
    call_on("MPI_Comm_free", handle, || {
        comm.get("comm")?;
        if handle == h::MPI_COMM_WORLD || handle == h::MPI_COMM_SELF {
            fail!(abi::MPI_ERR_COMM, "a predefined communicator cannot be freed");
        }
        attribute::delete_all(find(handle)?.attributes(), handle.0)?;
        comm.set("comm", h::MPI_COMM_NULL)?;
        // Pending operations keep what they need of the communicator by themselves.
        COMMS.remove(handle.0);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_set_name(comm: h::Comm, name: Text) -> c_int {
    call_on("MPI_Comm_set_name", comm, || {
        find(comm)?.set_name(&name.get("comm_name", abi::MPI_ERR_ARG)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_get_name(comm: h::Comm, name: Out<c_char>, length: Out<c_int>) -> c_int {
    call_on("MPI_Comm_get_name", comm, || {
        let text = if comm == h::MPI_COMM_NULL {
            "MPI_COMM_NULL".to_owned()
        } else {
            find(comm)?.name()
        };
        let n = name.text("comm_name", &text, abi::MPI_MAX_OBJECT_NAME as usize)?;
        length.set("resultlen", n as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_test_inter(comm: h::Comm, yes: Out<c_int>) -> c_int {
    call_on("MPI_Comm_test_inter", comm, || {
        find(comm)?;
        yes.set("flag", flag(false))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_set_info(comm: h::Comm, info: h::Info) -> c_int {
    call_on("MPI_Comm_set_info", comm, || {
        // Hints that are not known are ignored, and none is known yet.
        find(comm)?;
        crate::info::find(info).map(drop)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_get_info(comm: h::Comm, info: Out<h::Info>) -> c_int {
    call_on("MPI_Comm_get_info", comm, || {
        find(comm)?;
        info.set("info_used", crate::info::insert(isthmus_core::info::Info::default()))
    })
}
