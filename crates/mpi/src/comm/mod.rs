// SPDX-License-Identifier: Apache-2.0
//! Communicators (MPI 5.0 section 7.4).

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attribute;
use isthmus_core::comm::{Comm, set_hints};
use isthmus_core::errhandler::ErrorHandler;
use isthmus_core::error::{About, Error, Result};
use isthmus_core::{fail, joining, links};

use crate::c::{Out, Text};
use crate::call::{call, call_in_handlers, call_on, raise_to};
use crate::handle::{Kind, Table};
use crate::{apart, process};

mod cache;
pub(crate) mod create;
mod handlers;
mod inter;

pub(crate) use cache::delete_all_at_end;
pub(crate) use create::{give, intra};

static COMMS: Table<Entry> = Table::new(Kind::Comm);

/// What a handle names.
enum Entry {
    Ready(Arc<Comm>),
    Pending(Arc<Pending>),
}

/// The result of a nonblocking construction: there when its request is complete. Until then it can be given an error
/// handler, which programs do at once and the standard leaves undefined.
#[derive(Default)]
pub(crate) struct Pending {
    comm: OnceLock<Arc<Comm>>,
    handler: Mutex<Option<ErrorHandler>>,
}

impl Pending {
    /// The construction is complete.
    pub(crate) fn complete(&self, comm: Arc<Comm>) {
        let handler = self.handler.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handler) = &*handler {
            comm.user().set_error_handler(handler.clone());
        }
        // Nobody else fills the place.
        let _ = self.comm.set(comm);
    }

    fn set_error_handler(&self, new: ErrorHandler) {
        let mut handler = self.handler.lock().unwrap_or_else(PoisonError::into_inner);
        match self.comm.get() {
            Some(comm) => comm.user().set_error_handler(new),
            None => *handler = Some(new),
        }
    }
}

impl Entry {
    #[inline]
    fn get(&self) -> Option<&Arc<Comm>> {
        match self {
            Self::Ready(comm) => Some(comm),
            Self::Pending(pending) => pending.comm.get(),
        }
    }
}

/// A communicator that the program made.
#[inline]
fn made(handle: h::Comm) -> Option<&'static Arc<Comm>> {
    COMMS.get(handle.0).and_then(Entry::get)
}

#[inline(always)]
fn object(handle: h::Comm) -> Result<&'static Arc<Comm>> {
    match handle {
        h::MPI_COMM_WORLD => Ok(&process::world_model()?.comm_world),
        h::MPI_COMM_SELF => Ok(&process::world_model()?.comm_self),
        _ => match made(handle) {
            Some(comm) => Ok(comm),
            None => not_a_communicator(handle),
        },
    }
}

#[cold]
fn not_a_communicator(handle: h::Comm) -> Result<&'static Arc<Comm>> {
    if COMMS.get(handle.0).is_some() {
        fail!(
            abi::MPI_ERR_COMM,
            argument("comm"),
            "is the result of MPI_Comm_idup, which is not complete; wait for its request first"
        );
    }
    if handle == h::MPI_COMM_NULL {
        fail!(abi::MPI_ERR_COMM, argument("comm"), "is MPI_COMM_NULL");
    }
    fail!(
        abi::MPI_ERR_COMM,
        argument("comm"),
        "is {:#x}, which is not the handle of a communicator",
        handle.0
    )
}

/// Sets what becomes of errors on a communicator.
pub(crate) fn set_error_handler(handle: h::Comm, handler: ErrorHandler) -> Result<()> {
    match COMMS.get(handle.0) {
        Some(Entry::Pending(pending)) => pending.set_error_handler(handler),
        _ => object(handle)?.user().set_error_handler(handler),
    }
    Ok(())
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
    #[inline]
    pub(crate) fn of(handle: h::Comm) -> Self {
        Self {
            handle,
            comm: made(handle).cloned(),
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

    /// Gives an error to its handler and returns the code for the program.
    #[cold]
    pub(crate) fn raise(&self, function: &'static str, error: &Error) -> c_int {
        let (object, handler) = self.handler();
        raise_to(function, object, handler, error)
    }

    /// Its handler for errors, and the handle that it is told.
    fn handler(&self) -> (usize, ErrorHandler) {
        let own = self.comm.as_ref().and_then(|comm| comm.user().error_handler());
        match own {
            Some(handler) => (self.handle.0, handler),
            None => handler_of(self.handle),
        }
    }
}

/// The communicator of a handle.
#[inline(always)]
pub(crate) fn find(handle: h::Comm) -> Result<&'static Comm> {
    object(handle).map(|comm| &**comm)
}

/// The same for those who know the process.
#[inline(always)]
pub(crate) fn of(process: &'static process::Process, handle: h::Comm) -> Result<&'static Comm> {
    if handle == h::MPI_COMM_WORLD && process::is_in_world_model() {
        return Ok(&process.comm_world);
    }
    find(handle)
}

/// The same for those who have another way where it is not found at once.
#[inline(always)]
pub(crate) fn known(process: &'static process::Process, handle: h::Comm) -> Option<&'static Comm> {
    match handle {
        h::MPI_COMM_WORLD => process::is_in_world_model().then_some(&*process.comm_world),
        _ => made(handle).map(|comm| &**comm),
    }
}

/// The communicator of a handle, for those who need it longer than the handle lives.
pub(crate) fn hold(handle: h::Comm) -> Result<Arc<Comm>> {
    object(handle).cloned()
}

/// The handler for errors on a communicator, and the handle that it is told. Before MPI_Init and with a wrong handle
/// the handler of MPI_COMM_SELF decides (MPI 5.0 section 9.3). Where nobody has set a handler, that of MPI_COMM_WORLD
/// decides, as before MPI 4; it is initially to end the job.
pub(crate) fn handler_of(handle: h::Comm) -> (usize, ErrorHandler) {
    let holder = if find(handle).is_ok() { handle } else { h::MPI_COMM_SELF };
    let set = |handle| find(handle).ok()?.user().error_handler();
    match set(holder) {
        Some(handler) => (holder.0, handler),
        None => (
            holder.0,
            set(h::MPI_COMM_WORLD).unwrap_or_else(crate::errhandler::initial),
        ),
    }
}

/// A handle for a communicator; none gives MPI_COMM_NULL.
pub(crate) fn insert(comm: Option<Arc<Comm>>) -> h::Comm {
    comm.map_or(h::MPI_COMM_NULL, |comm| h::Comm(COMMS.insert(Entry::Ready(comm))))
}

/// A handle for one that is not there yet.
pub(crate) fn insert_pending(pending: Arc<Pending>) -> h::Comm {
    h::Comm(COMMS.insert(Entry::Pending(pending)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_size(comm: h::Comm, size: Out<c_int>) -> c_int {
    call_in_handlers("MPI_Comm_size", comm, || size.set("size", find(comm)?.size() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_rank(comm: h::Comm, rank: Out<c_int>) -> c_int {
    call_in_handlers("MPI_Comm_rank", comm, || rank.set("rank", find(comm)?.rank() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_compare(a: h::Comm, b: h::Comm, result: Out<c_int>) -> c_int {
    call_on("MPI_Comm_compare", a, || {
        let (first, second) = (find(a).about("comm1")?, find(b).about("comm2")?);
        let local = crate::group::comparison(first.group().compare(second.group()));
        let remote = match (first.remote(), second.remote()) {
            (Some(a), Some(b)) => crate::group::comparison(a.compare(b)),
            (None, None) => abi::MPI_IDENT,
            _ => abi::MPI_UNEQUAL,
        };
        let answer = match (local, remote) {
            (abi::MPI_UNEQUAL, _) | (_, abi::MPI_UNEQUAL) => abi::MPI_UNEQUAL,
            (abi::MPI_SIMILAR, _) | (_, abi::MPI_SIMILAR) => abi::MPI_SIMILAR,
            _ if first.context() == second.context() => abi::MPI_IDENT,
            _ => abi::MPI_CONGRUENT,
        };
        result.set("result", answer)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_group(comm: h::Comm, group: Out<h::Group>) -> c_int {
    call_on("MPI_Comm_group", comm, || {
        let comm = find(comm)?;
        crate::group::give(group, || Ok(comm.group().clone()))
    })
}

/// The communicator to those who have spawned this process, until it is freed.
static PARENT: Mutex<h::Comm> = Mutex::new(h::MPI_COMM_NULL);

/// The rank of the root, in an intracommunicator.
pub(crate) fn root_of(comm: &Comm, root: c_int) -> Result<u32> {
    match u32::try_from(root) {
        Ok(rank) if rank < comm.size() => Ok(rank),
        _ => fail!(
            abi::MPI_ERR_ROOT,
            argument("root"),
            "is {root}, but the ranks of {} are 0 to {}",
            comm.describe(),
            i64::from(comm.size()) - 1
        ),
    }
}

/// So many processes have spawned this world.
static PARENTS: AtomicU32 = AtomicU32::new(0);

/// How many processes have spawned this world; 0: it was not spawned.
pub(crate) fn parents() -> u32 {
    PARENTS.load(Ordering::Relaxed)
}

/// This process was spawned by the others of this communicator.
pub(crate) fn adopt(parents: Arc<Comm>) {
    parents.user().set_name("MPI_COMM_PARENT");
    let number = parents.remote().map_or(0, |group| group.size() as u32);
    PARENTS.store(number, Ordering::Relaxed);
    *PARENT.lock().unwrap_or_else(PoisonError::into_inner) = insert(Some(parents));
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_get_parent(parent: Out<h::Comm>) -> c_int {
    call("MPI_Comm_get_parent", || {
        parent.set("parent", *PARENT.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

/// Frees a communicator; what is pending on it keeps what it needs by itself. `disconnected`: its members are connected
/// by it no longer.
fn free(comm: Out<h::Comm>, disconnected: bool) -> Result<()> {
    let handle = comm.get("comm")?;
    if handle == h::MPI_COMM_WORLD || handle == h::MPI_COMM_SELF {
        fail!(
            abi::MPI_ERR_COMM,
            argument("comm"),
            "is a predefined communicator, which cannot be freed"
        );
    }
    let freed = find(handle)?;
    if let Some(known) = freed.user().known_attributes() {
        attribute::delete_all(known, handle.0)?;
    }
    if !disconnected {
        joining::stay_connected(freed);
    }
    comm.set("comm", h::MPI_COMM_NULL)?;
    COMMS.remove(handle.0);
    let mut parent = PARENT.lock().unwrap_or_else(PoisonError::into_inner);
    if *parent == handle {
        *parent = h::MPI_COMM_NULL;
    }
    Ok(())
}

fn handle(comm: Out<h::Comm>) -> h::Comm {
    comm.get("comm").unwrap_or(h::MPI_COMM_NULL)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_free(comm: Out<h::Comm>) -> c_int {
    call_on("MPI_Comm_free", handle(comm), || free(comm, false))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_disconnect(comm: Out<h::Comm>) -> c_int {
    let mut without = None;
    let code = call_on("MPI_Comm_disconnect", handle(comm), || {
        let mine = find(handle(comm))?;
        // Nobody can do more with it, and the handle is not left behind. Its error handler hears of the loss.
        if let Err(error) = joining::disconnect(process::world()?, mine) {
            without = Some((Held::of(handle(comm)), error));
        }
        free(comm, true)?;
        if without.is_none() {
            apart::leave();
        }
        Ok(())
    });
    let Some((held, error)) = without.filter(|_| code == abi::MPI_SUCCESS) else {
        return code;
    };
    let code = held.raise("MPI_Comm_disconnect", &error);
    // What is kept of it keeps the connections.
    drop(held);
    apart::leave();
    code
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_set_name(comm: h::Comm, name: Text) -> c_int {
    call_on("MPI_Comm_set_name", comm, || {
        find(comm)?.user().set_name(&name.get("comm_name", abi::MPI_ERR_ARG)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_get_name(comm: h::Comm, name: Out<c_char>, length: Out<c_int>) -> c_int {
    call_on("MPI_Comm_get_name", comm, || {
        let text = if comm == h::MPI_COMM_NULL {
            "MPI_COMM_NULL".to_owned()
        } else {
            find(comm)?.user().name()
        };
        let n = name.text("comm_name", &text, abi::MPI_MAX_OBJECT_NAME as usize)?;
        length.set("resultlen", n as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_set_info(comm: h::Comm, info: h::Info) -> c_int {
    call_on("MPI_Comm_set_info", comm, || {
        let (comm, given) = (find(comm)?, crate::info::find(info)?);
        set_hints(process::world()?, comm, &given);
        // The call is collective over the communicator.
        match links::asks_for_refresh(&given) {
            true => links::refresh(process::world()?, comm),
            false => Ok(()),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_get_info(comm: h::Comm, info: Out<h::Info>) -> c_int {
    call_on("MPI_Comm_get_info", comm, || {
        let comm = find(comm)?;
        let mut hints = comm.hints().all();
        let world = process::world()?;
        if links::spans_areas(world, comm) {
            let room = abi::MPI_MAX_INFO_VAL as usize - 1;
            hints.set(
                links::HINT,
                &isthmus_lock::untrapped(|| links::describe(world, comm, room)),
            )?;
        }
        info.set("info_used", h::MPI_INFO_NULL)?;
        info.set("info_used", crate::info::insert(hints))
    })
}
