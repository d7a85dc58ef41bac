// SPDX-License-Identifier: Apache-2.0
//! Opening, closing, sizes, hints, consistency (MPI 5.0 sections 14.2 and 14.6).

use std::ffi::c_int;
use std::sync::Mutex;

use isthmus_abi::Offset;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::comm::is_joined;
use isthmus_core::error::{About, Result};
use isthmus_io::{File, Scope};

use super::{DEFAULT, FILES, Object, Shown, find, locked};
use crate::c::{Out, Text, flag};
use crate::call::call_on;
use crate::{apart, comm, group, info, process};

/// What the job says of names without a site.
fn scope() -> Scope {
    match isthmus_settings::FILE_SCOPE.read(std::env::var_os) {
        Some("local") => Scope::Site,
        _ => Scope::Job,
    }
}

fn open(handle: h::Comm, name: Text, amode: c_int, hints: h::Info, out: Out<h::File>) -> Result<()> {
    let cleared = out.set("fh", h::MPI_FILE_NULL);
    let comm = comm::intra(handle)?;
    // What is wrong here all others have to hear.
    let given = cleared.and_then(|()| {
        let name = name.bytes("filename", abi::MPI_ERR_BAD_FILE)?;
        Ok((name, info::find(hints)?))
    });
    let (file, service) = File::open(process::world()?, comm, given, amode, scope())?;
    if service.is_some() && is_joined(comm) {
        // Others use the file through this process while it computes. A job on one node may have nobody who looks after
        // that yet; where a thread for it is impossible, calls of MPI do it.
        let _ = process::underneath()?.keep_progress();
    }
    let handler = locked(&DEFAULT).clone();
    let opened = FILES.insert(Object {
        file,
        service: Mutex::new(service),
        handler: Mutex::new(handler),
        shown: Mutex::new(Shown::default()),
    });
    out.set("fh", h::File(opened))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_open(
    comm: h::Comm,
    name: Text,
    amode: c_int,
    info: h::Info,
    file: Out<h::File>,
) -> c_int {
    call_on("MPI_File_open", h::MPI_FILE_NULL, || {
        open(comm, name, amode, info, file)
    })
}

/// `closed`: set when the handle names no file any more, whether or not all went well.
fn close(file: Out<h::File>, closed: &mut bool) -> Result<()> {
    let handle = file.get("fh")?;
    let object = find(handle)?;
    let closing = object.file.begin_close()?;
    *closed = true;
    let service = locked(&object.service).take();
    let ended = closing.end(service);
    file.set("fh", h::MPI_FILE_NULL)?;
    ended
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_close(file: Out<h::File>) -> c_int {
    let handle = file.get("fh").unwrap_or(h::MPI_FILE_NULL);
    let mut closed = false;
    let code = call_on("MPI_File_close", handle, || close(file, &mut closed));
    // Not before its error handler has heard of an error.
    if closed {
        FILES.remove(handle.0);
        apart::leave();
    }
    code
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_delete(name: Text, hints: h::Info) -> c_int {
    call_on("MPI_File_delete", h::MPI_FILE_NULL, || {
        let name = name.bytes("filename", abi::MPI_ERR_BAD_FILE)?;
        isthmus_io::delete(process::world()?, name, &info::find(hints)?, scope())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_set_size(file: h::File, size: Offset) -> c_int {
    call_on("MPI_File_set_size", file, || find(file)?.file.set_size(size))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_preallocate(file: h::File, size: Offset) -> c_int {
    call_on("MPI_File_preallocate", file, || find(file)?.file.preallocate(size))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_size(file: h::File, size: Out<Offset>) -> c_int {
    call_on("MPI_File_get_size", file, || {
        size.set("size", find(file)?.file.size()? as Offset)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_group(file: h::File, out: Out<h::Group>) -> c_int {
    call_on("MPI_File_get_group", file, || {
        let file = find(file)?;
        group::give(out, || Ok(file.file.group().clone())).about("group")
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_amode(file: h::File, amode: Out<c_int>) -> c_int {
    call_on("MPI_File_get_amode", file, || {
        amode.set("amode", find(file)?.file.here().mode().bits())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_set_info(file: h::File, hints: h::Info) -> c_int {
    call_on("MPI_File_set_info", file, || {
        find(file)?.file.set_info(info::find(hints))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_info(file: h::File, used: Out<h::Info>) -> c_int {
    call_on("MPI_File_get_info", file, || {
        used.set("info_used", h::MPI_INFO_NULL)?;
        used.set("info_used", info::insert(find(file)?.file.info()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_set_atomicity(file: h::File, atomic: c_int) -> c_int {
    call_on("MPI_File_set_atomicity", file, || {
        find(file)?.file.set_atomicity(atomic != 0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_get_atomicity(file: h::File, atomic: Out<c_int>) -> c_int {
    call_on("MPI_File_get_atomicity", file, || {
        atomic.set("flag", flag(find(file)?.file.here().is_atomic()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_sync(file: h::File) -> c_int {
    call_on("MPI_File_sync", file, || find(file)?.file.sync())
}
