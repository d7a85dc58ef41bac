// SPDX-License-Identifier: Apache-2.0
//! Making and freeing windows, hints, groups, attached memory (MPI 5.0 section 12.2).

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use isthmus_abi::Aint;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attribute;
use isthmus_core::comm::is_joined;
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_rma::{Flavor, ProgramMemory, Window, Wish};

use super::{Object, WINDOWS, find, pointer};
use crate::c::{self, Number, Out, Source, Target};
use crate::call::call_on;
use crate::entry::entry;
use crate::{apart, check, comm, group, info, memory, process};

fn size_of(size: Aint) -> Result<u64> {
    match u64::try_from(size) {
        Ok(size) => Ok(size),
        Err(_) => fail!(
            abi::MPI_ERR_SIZE,
            argument("size"),
            "is {size}, a window has 0 bytes or more"
        ),
    }
}

fn wish(size: Aint, unit: i64, hints: h::Info, base: Option<Target>) -> Result<Wish> {
    let hints = info::find(hints)?;
    let size = size_of(size)?;
    let unit = match u64::try_from(unit) {
        Ok(unit) if unit > 0 => unit,
        _ => fail!(
            abi::MPI_ERR_DISP,
            argument("disp_unit"),
            "is {unit}, expected 1 byte or more"
        ),
    };
    if let Some(base) = base {
        check::memory(abi::MPI_ERR_BASE, "base", base.address(), size)?;
    }
    Ok(Wish {
        size,
        unit,
        memory: base.map(|base| base.user_memory(size as i64)),
        location: base.and_then(|base| memory::location(base.address(), size)),
        hints,
    })
}

/// Makes a window. What is wrong with the arguments here all others have to hear.
fn make(comm: h::Comm, flavor: Flavor, given: Result<Wish>, out: Out<h::Win>) -> Result<&'static Object> {
    let given = out.set("win", h::MPI_WIN_NULL).and(given);
    let comm = comm::intra(comm)?;
    let allocated = Cell::new(None);
    let allocate = |size: usize, alignment: usize| {
        let base = memory::allocate(size, alignment)?;
        allocated.set(Some(base.addr()));
        Ok(Target::allocated(base).memory(0, size as i64))
    };
    let programs = ProgramMemory {
        allocate: &allocate,
        mapped: c::promise(),
    };
    let made = Window::create(process::world()?, comm, flavor, given, programs);
    let window = made.inspect_err(|_| give_back(allocated.get()))?;
    if is_joined(comm) {
        // Processes of other jobs operate on it while this one computes. A job on one node may have nobody who looks
        // after that yet; where a thread for it is impossible, calls of MPI do it.
        let _ = process::underneath()?.keep_progress();
    }
    let handle = h::Win(WINDOWS.insert(Object::new(window, allocated.get())));
    out.set("win", handle)?;
    find(handle)
}

/// Gives memory back that a window of one process had.
fn give_back(allocated: Option<usize>) {
    if let Some(base) = allocated {
        // It was allocated so, and is given back once.
        let _ = memory::release(std::ptr::with_exposed_provenance_mut::<c_void>(base));
    }
}

entry! {
    isthmus_MPI_Win_create<c_int>, isthmus_MPI_Win_create_c<Aint>:
    (base: Target, size: Aint, disp_unit: N, info: h::Info, comm: h::Comm, win: Out<h::Win>) on comm => {
        make(comm, Flavor::Create, wish(size, disp_unit.wide(), info, Some(base)), win).map(drop)
    }
}

/// Makes a window that brings its memory.
fn allocate(comm: h::Comm, flavor: Flavor, given: Result<Wish>, base: Out<usize>, win: Out<h::Win>) -> Result<()> {
    let given = base.set("baseptr", 0).and(given);
    let object = make(comm, flavor, given, win)?;
    base.set("baseptr", object.window.base())
}

entry! {
    isthmus_MPI_Win_allocate<c_int>, isthmus_MPI_Win_allocate_c<Aint>:
    (size: Aint, disp_unit: N, info: h::Info, comm: h::Comm, baseptr: Out<usize>, win: Out<h::Win>) on comm => {
        allocate(comm, Flavor::Allocate, wish(size, disp_unit.wide(), info, None), baseptr, win)
    }
}

entry! {
    isthmus_MPI_Win_allocate_shared<c_int>, isthmus_MPI_Win_allocate_shared_c<Aint>:
    (size: Aint, disp_unit: N, info: h::Info, comm: h::Comm, baseptr: Out<usize>, win: Out<h::Win>) on comm => {
        allocate(comm, Flavor::Shared, wish(size, disp_unit.wide(), info, None), baseptr, win)
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_create_dynamic(hints: h::Info, comm: h::Comm, win: Out<h::Win>) -> c_int {
    call_on("MPI_Win_create_dynamic", comm, || {
        make(comm, Flavor::Dynamic, wish(0, 1, hints, None), win).map(drop)
    })
}

entry! {
    isthmus_MPI_Win_shared_query<c_int>, isthmus_MPI_Win_shared_query_c<Aint>:
    (win: h::Win, rank: c_int, size: Out<Aint>, disp_unit: Out<N>, baseptr: Out<usize>) on win => {
        let segment = find(win)?.window.segment(rank)?;
        let Ok(unit) = N::try_from(segment.unit) else {
            fail!(
                abi::MPI_ERR_VALUE_TOO_LARGE,
                argument("disp_unit"),
                "would be {}, which is more than an int holds; MPI_Win_shared_query_c gives it",
                segment.unit
            );
        };
        size.set("size", segment.size as Aint)?;
        disp_unit.set("disp_unit", unit)?;
        baseptr.set("baseptr", segment.base)
    }
}

/// `freed`: set when the handle names no window any more, whether or not all went well.
fn free(win: Out<h::Win>, freed: &mut bool) -> Result<()> {
    let handle = win.get("win")?;
    let object = find(handle)?;
    object.window.may_end()?;
    if let Some(cached) = object.more.cached.get() {
        attribute::delete_all(&cached.attributes, handle.0)?;
    }
    *freed = true;
    pointer::forget(handle);
    win.set("win", h::MPI_WIN_NULL)?;
    object.window.end()
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_free(win: Out<h::Win>) -> c_int {
    let handle = win.get("win").unwrap_or(h::MPI_WIN_NULL);
    let mut freed = false;
    let code = call_on("MPI_Win_free", handle, || free(win, &mut freed));
    // Not before its error handler has heard of an error.
    if let Some(object) = freed.then(|| WINDOWS.remove(handle.0)).flatten() {
        let allocated = object.more.allocated;
        drop(object);
        give_back(allocated);
        apart::leave();
    }
    code
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_attach(win: h::Win, base: Target, size: Aint) -> c_int {
    call_on("MPI_Win_attach", win, || {
        let object = find(win)?;
        let size = size_of(size)?;
        check::memory(abi::MPI_ERR_BASE, "base", base.address(), size)?;
        object.window.attach(base.user_memory(size as i64), size)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_detach(win: h::Win, base: Source) -> c_int {
    call_on("MPI_Win_detach", win, || find(win)?.window.detach(base.address()))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_get_group(win: h::Win, out: Out<h::Group>) -> c_int {
    call_on("MPI_Win_get_group", win, || {
        let win = find(win)?;
        group::give(out, || Ok(win.window.group().clone())).about("group")
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_set_info(win: h::Win, hints: h::Info) -> c_int {
    call_on("MPI_Win_set_info", win, || {
        find(win)?.window.set_info(&info::find(hints)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Win_get_info(win: h::Win, used: Out<h::Info>) -> c_int {
    call_on("MPI_Win_get_info", win, || {
        used.set("info_used", h::MPI_INFO_NULL)?;
        used.set("info_used", info::insert(find(win)?.window.info()?))
    })
}
