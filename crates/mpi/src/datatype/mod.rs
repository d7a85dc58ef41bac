// SPDX-License-Identifier: Apache-2.0
//! Datatypes (MPI 5.0 chapter 5).
//!
//! * this file: objects behind the handles;
//! * `construct`: constructors; `query`: sizes, bounds, how a type was made; `cache`: names and attributes.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attribute::Cache;
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_datatype::{Basic, Combiner, Datatype};

use crate::c::Out;
use crate::handle::{Kind, Table};

mod cache;
mod construct;
mod parametric;
mod query;

/// What a handle names.
pub(crate) struct Object {
    datatype: Datatype,
    committed: AtomicBool,
    /// Bytes of an element that begins where the buffer does and ends where the next one begins, in one piece; 0: it is
    /// not so, or it is not committed. Found out once.
    solid: AtomicU64,
    /// The program's reference and those of [`Hold`]s; the handle lives until the last is gone.
    references: AtomicU32,
    /// `None`: the initial name.
    name: Mutex<Option<String>>,
    attributes: Cache,
}

static DATATYPES: Table<Object> = Table::new(Kind::Datatype);

/// Number of handle values that can be predefined datatypes.
const PREDEFINED: usize = 1024;

impl Object {
    fn new(datatype: Datatype, committed: bool) -> Self {
        let solid = solid(&datatype);
        Self {
            datatype,
            committed: AtomicBool::new(committed),
            solid: AtomicU64::new(if committed { solid } else { 0 }),
            references: AtomicU32::new(1),
            name: Mutex::new(None),
            attributes: Cache::default(),
        }
    }
}

/// See [`Object::solid`].
fn solid(datatype: &Datatype) -> u64 {
    match (datatype.contiguous(1), datatype.contiguous(2)) {
        (Some((0, one)), Some((0, two))) if two == 2 * one => one,
        _ => 0,
    }
}

#[inline(always)]
fn predefined(handle: usize) -> Option<&'static Object> {
    static ALL: OnceLock<Box<[Option<Object>]>> = OnceLock::new();
    let all = match ALL.get() {
        Some(all) => all,
        None => ALL.get_or_init(all_predefined),
    };
    all.get(handle)?.as_ref()
}

#[cold]
fn all_predefined() -> Box<[Option<Object>]> {
    let one = |h| Basic::from_handle(h).map(|basic| Object::new(Datatype::of(basic), true));
    (0..PREDEFINED as u32).map(one).collect()
}

#[inline(always)]
fn object(handle: h::Datatype) -> Result<&'static Object> {
    let is_predefined = handle.0 < isthmus_abi::PREDEFINED_HANDLES_END;
    match if is_predefined {
        predefined(handle.0)
    } else {
        DATATYPES.get(handle.0)
    } {
        Some(object) => Ok(object),
        None => not_a_datatype(handle),
    }
}

#[cold]
fn not_a_datatype(handle: h::Datatype) -> Result<&'static Object> {
    if handle == h::MPI_DATATYPE_NULL {
        fail!(abi::MPI_ERR_TYPE, argument("datatype"), "is MPI_DATATYPE_NULL");
    }
    fail!(
        abi::MPI_ERR_TYPE,
        argument("datatype"),
        "is {:#x}, which is not the handle of a datatype",
        handle.0
    )
}

/// The datatype of a handle, for communication: it must be committed.
#[inline(always)]
pub(crate) fn find(handle: h::Datatype) -> Result<&'static Datatype> {
    let object = object(handle)?;
    if crate::check::on() && !object.committed.load(Ordering::Relaxed) {
        return not_committed();
    }
    Ok(&object.datatype)
}

/// The same for those who have another way where it is not found at once.
#[inline(always)]
pub(crate) fn known(handle: h::Datatype) -> Option<&'static Datatype> {
    let object = if handle.0 < isthmus_abi::PREDEFINED_HANDLES_END {
        predefined(handle.0)
    } else {
        DATATYPES.get(handle.0)
    }?;
    object.committed.load(Ordering::Relaxed).then_some(&object.datatype)
}

/// The bytes of so many elements that lie where the buffer begins, in one piece. `None`: it is not so, or takes a
/// closer look.
#[inline(always)]
pub(crate) fn solid_bytes(handle: h::Datatype, count: u64) -> Option<u64> {
    let object = if handle.0 < isthmus_abi::PREDEFINED_HANDLES_END {
        predefined(handle.0)
    } else {
        DATATYPES.get(handle.0)
    }?;
    let solid = object.solid.load(Ordering::Relaxed);
    let bytes = solid.checked_mul(count)?;
    (solid > 0 && i64::try_from(bytes).is_ok()).then_some(bytes)
}

#[cold]
fn not_committed() -> Result<&'static Datatype> {
    fail!(
        abi::MPI_ERR_TYPE,
        argument("datatype"),
        "is not committed; call MPI_Type_commit before it is used in communication"
    )
}

/// The datatype of a handle, committed or not.
pub(crate) fn find_any(handle: h::Datatype) -> Result<&'static Datatype> {
    Ok(&object(handle)?.datatype)
}

/// Keeps a datatype's handle alive while an operation uses it, also after MPI_Type_free.
pub(crate) struct Hold(h::Datatype);

/// Holds a datatype. Predefined ones need no counting.
pub(crate) fn hold(handle: h::Datatype) -> Hold {
    if let Some(object) = DATATYPES.get(handle.0) {
        object.references.fetch_add(1, Ordering::Relaxed);
    }
    Hold(handle)
}

impl Hold {
    /// The handle, valid as long as this lives.
    pub(crate) fn handle(&self) -> h::Datatype {
        self.0
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        release(self.0);
    }
}

/// Gives up one reference.
fn release(handle: h::Datatype) {
    let last = DATATYPES
        .get(handle.0)
        .is_some_and(|o| o.references.fetch_sub(1, Ordering::AcqRel) == 1);
    if last {
        DATATYPES.remove(handle.0);
    }
}

/// Is it one that MPI_Type_create_f90_* makes?
fn is_parametric(datatype: &Datatype) -> bool {
    matches!(
        datatype.contents().combiner,
        Combiner::F90Real | Combiner::F90Complex | Combiner::F90Integer
    )
}

/// A handle for a new datatype.
fn insert(datatype: Datatype, committed: bool) -> h::Datatype {
    h::Datatype(DATATYPES.insert(Object::new(datatype, committed)))
}

/// A handle that the program gets of a datatype that it once gave: a predefined one is itself, of others it gets a
/// duplicate.
pub(crate) fn hand_out(handle: h::Datatype, datatype: &Datatype) -> h::Datatype {
    if handle.0 < isthmus_abi::PREDEFINED_HANDLES_END || is_parametric(datatype) {
        return handle;
    }
    insert(Datatype::dup(datatype), true)
}

/// Makes a datatype; if that fails, the program's handle is MPI_DATATYPE_NULL.
fn give(out: Out<h::Datatype>, make: impl FnOnce() -> Result<Datatype>) -> Result<()> {
    out.set("newtype", h::MPI_DATATYPE_NULL)?;
    out.set("newtype", insert(make()?, false))
}

fn commit(handle: h::Datatype) -> Result<()> {
    let object = object(handle)?;
    object.solid.store(solid(&object.datatype), Ordering::Relaxed);
    object.committed.store(true, Ordering::Relaxed);
    Ok(())
}

fn free(out: Out<h::Datatype>) -> Result<()> {
    let handle = out.get("datatype")?;
    let object = object(handle)?;
    if DATATYPES.get(handle.0).is_none() || is_parametric(&object.datatype) {
        fail!(
            abi::MPI_ERR_TYPE,
            argument("datatype"),
            "is a predefined datatype, which cannot be freed"
        );
    }
    isthmus_core::attribute::delete_all(&object.attributes, handle.0)?;
    release(handle);
    out.set("datatype", h::MPI_DATATYPE_NULL)
}

fn duplicate(old: h::Datatype, new: Out<h::Datatype>) -> Result<()> {
    new.set("newtype", h::MPI_DATATYPE_NULL)?;
    let from = object(old).about("oldtype")?;
    let attributes = isthmus_core::attribute::duplicate(&from.attributes, old.0)?;
    let copy = Object {
        attributes: Mutex::new(attributes),
        ..Object::new(Datatype::dup(&from.datatype), from.committed.load(Ordering::Relaxed))
    };
    new.set("newtype", h::Datatype(DATATYPES.insert(copy)))
}
