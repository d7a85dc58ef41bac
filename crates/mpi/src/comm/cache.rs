// SPDX-License-Identifier: Apache-2.0
//! Attributes of communicators: those that a program caches, and the predefined ones.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attribute::{self, Keys, Owner};
use isthmus_core::comm::Comm;
use isthmus_core::error::Result;
use isthmus_core::world::World;

use super::find;
use crate::attribute::{Callback, copy_closure, delete_closure, user_key};
use crate::c::{Extra, Out, flag};
use crate::call::{call, call_on};

/// Keys for communicators.
static COMM_KEYS: Keys = Keys::new(Owner::Comm);

/// Values of the predefined keys; a program gets pointers to them.
struct Predefined {
    tag_ub: c_int,
    host: c_int,
    io: c_int,
    wtime_is_global: c_int,
    appnum: c_int,
    universe_size: c_int,
}

static PREDEFINED: OnceLock<Predefined> = OnceLock::new();
static GOES_ON: AtomicI32 = AtomicI32::new(0);
static LAST_USED_CODE: AtomicI32 = AtomicI32::new(0);

/// The processors of the machines of the world, of which some may be named by several subjobs, or its processes and
/// those that have spawned them if these are more: children that look here for whether spawning is possible find what
/// their parents have found.
fn universe(world: &World) -> u32 {
    let mut machines = std::collections::BTreeMap::new();
    for node in &world.places().nodes {
        let known: &mut (u32, u32) = machines.entry((&node.host, &node.addresses)).or_default();
        let processors = match node.processors {
            // Nobody has counted them for a program without a launcher.
            0 if world.size() == 1 => std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            counted => counted,
        };
        *known = (known.0.max(processors), known.1.saturating_add(node.processes));
    }
    let all = machines
        .values()
        .map(|(processors, processes)| processors.max(processes));
    all.fold(0, |sum: u32, slots| sum.saturating_add(*slots))
        .max(world.size().saturating_add(super::parents()))
        .min(i32::MAX as u32)
}

fn predefined(comm: &Comm, key: c_int) -> Result<Option<usize>> {
    let world = crate::process::world()?;
    let values = PREDEFINED.get_or_init(|| Predefined {
        tag_ub: world.largest_tag(),
        host: abi::MPI_PROC_NULL,
        io: abi::MPI_ANY_SOURCE,
        wtime_is_global: 0,
        appnum: world.appnum() as c_int,
        universe_size: universe(world) as c_int,
    });
    let at = |value: &'static c_int| Ok(Some(std::ptr::from_ref(value) as usize));
    match key {
        abi::MPI_TAG_UB => at(&values.tag_ub),
        abi::MPI_HOST => at(&values.host),
        abi::MPI_IO => at(&values.io),
        abi::MPI_WTIME_IS_GLOBAL => at(&values.wtime_is_global),
        abi::MPI_APPNUM => at(&values.appnum),
        abi::MPI_UNIVERSE_SIZE => at(&values.universe_size),
        abi::MPI_LASTUSEDCODE => {
            LAST_USED_CODE.store(crate::error::last_used_code(), Ordering::Relaxed);
            Ok(Some(LAST_USED_CODE.as_ptr() as usize))
        }
        abi::MPIX_FT => {
            let goes_on = isthmus_engine::goes_on(&world.engine().lock().core);
            GOES_ON.store(goes_on.into(), Ordering::Relaxed);
            Ok(Some(GOES_ON.as_ptr() as usize))
        }
        abi::MPICHX_TOPOLOGY_DEPTHS => Ok(Some(comm.topology_attributes(world).depths())),
        abi::MPICHX_TOPOLOGY_COLORS => Ok(Some(comm.topology_attributes(world).colors())),
        _ => Ok(None),
    }
}

fn create_key(copy: Callback, delete: Callback, key: Out<c_int>, extra: Extra) -> Result<()> {
    key.set("keyval", abi::MPI_KEYVAL_INVALID)?;
    key.set(
        "keyval",
        COMM_KEYS.create(copy_closure(copy, extra), delete_closure(delete, extra)),
    )
}

fn free_key(key: Out<c_int>) -> Result<()> {
    let number = key.get("keyval")?;
    user_key(number)?;
    COMM_KEYS.free(number)?;
    key.set("keyval", abi::MPI_KEYVAL_INVALID)
}

fn set(comm: h::Comm, key: c_int, value: usize) -> Result<()> {
    user_key(key)?;
    attribute::set(find(comm)?.user().attributes(), comm.0, &COMM_KEYS.usable(key)?, value)
}

fn get(comm: h::Comm, key: c_int, value: Out<usize>, found: Out<c_int>) -> Result<()> {
    let object = find(comm)?;
    let content = match predefined(object, key)? {
        Some(content) => Some(content),
        None => {
            COMM_KEYS.find(key)?;
            attribute::get(object.user().attributes(), key)
        }
    };
    found.set("flag", flag(content.is_some()))?;
    content.map_or(Ok(()), |content| value.set("attribute_val", content))
}

fn delete(comm: h::Comm, key: c_int) -> Result<()> {
    user_key(key)?;
    COMM_KEYS.find(key)?;
    attribute::delete(find(comm)?.user().attributes(), comm.0, key).map(drop)
}

/// MPI_Finalize deletes what is cached on the predefined communicators, MPI_COMM_SELF first.
pub(crate) fn delete_all_at_end(comm: &Comm, handle: h::Comm) -> Result<()> {
    let known = comm.user().known_attributes();
    known.map_or(Ok(()), |known| attribute::delete_all_at_end(known, handle.0))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_create_keyval(copy: Callback, delete: Callback, key: Out<c_int>, extra: Extra) -> c_int {
    call("MPI_Comm_create_keyval", || create_key(copy, delete, key, extra))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Keyval_create(copy: Callback, delete: Callback, key: Out<c_int>, extra: Extra) -> c_int {
    call("MPI_Keyval_create", || create_key(copy, delete, key, extra))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_free_keyval(key: Out<c_int>) -> c_int {
    call("MPI_Comm_free_keyval", || free_key(key))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Keyval_free(key: Out<c_int>) -> c_int {
    call("MPI_Keyval_free", || free_key(key))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_set_attr(comm: h::Comm, key: c_int, value: usize) -> c_int {
    call_on("MPI_Comm_set_attr", comm, || set(comm, key, value))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Attr_put(comm: h::Comm, key: c_int, value: usize) -> c_int {
    call_on("MPI_Attr_put", comm, || set(comm, key, value))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_get_attr(comm: h::Comm, key: c_int, value: Out<usize>, found: Out<c_int>) -> c_int {
    call_on("MPI_Comm_get_attr", comm, || get(comm, key, value, found))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Attr_get(comm: h::Comm, key: c_int, value: Out<usize>, found: Out<c_int>) -> c_int {
    call_on("MPI_Attr_get", comm, || get(comm, key, value, found))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Comm_delete_attr(comm: h::Comm, key: c_int) -> c_int {
    call_on("MPI_Comm_delete_attr", comm, || delete(comm, key))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Attr_delete(comm: h::Comm, key: c_int) -> c_int {
    call_on("MPI_Attr_delete", comm, || delete(comm, key))
}
