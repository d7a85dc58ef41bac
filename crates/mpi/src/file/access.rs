// SPDX-License-Identifier: Apache-2.0
//! Reading and writing (MPI 5.0 section 14.4).

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_abi::{Count, Offset, Status};
use isthmus_core::error::Result;
use isthmus_io::{Buffer, Position};

use super::{Object, find, locked};
use crate::c::{Out, Source, Target};
use crate::call::call_on;
use crate::entry::{entry, wide};
use crate::request::{self, Hears, Operation};

/// Where, and whether all processes take part: what functions of one form differ in.
type How = (Position, bool);

const ALONE: How = (Position::Individual, false);
const ALL: How = (Position::Individual, true);
const SHARED: How = (Position::Shared, false);
const ORDERED: How = (Position::Ordered, true);

/// A buffer argument with its count and datatype.
trait Argument {
    fn buffer(self, object: &Object, n: i64, datatype: h::Datatype) -> Result<Buffer>;
}

impl Argument for Source {
    fn buffer(self, object: &Object, n: i64, datatype: h::Datatype) -> Result<Buffer> {
        let (source, bytes) = locked(&object.shown).form.clone().source(self, n, datatype)?;
        Ok(Buffer::Write(source, bytes))
    }
}

impl Argument for Target {
    fn buffer(self, object: &Object, n: i64, datatype: h::Datatype) -> Result<Buffer> {
        let form = locked(&object.shown).form.clone();
        Ok(Buffer::Read(form.target(self, n, datatype)?))
    }
}

/// A buffer, its count and its datatype.
type Data<B> = (B, i64, h::Datatype);

// What is wrong with the arguments of a collective access all others have to hear: `File` tells them.

fn blocking(file: h::File, (place, together): How, data: Data<impl Argument>, status: Out<Status>) -> Result<()> {
    let object = find(file)?;
    let bytes = object
        .file
        .access(place, together, data.0.buffer(object, data.1, data.2))?;
    let mut known = Status::empty();
    known.set_bytes(bytes as i64);
    request::give_status(status, known);
    Ok(())
}

fn nonblocking(file: h::File, (place, together): How, data: Data<impl Argument>, out: Out<h::Request>) -> Result<()> {
    let cleared = out.set("request", h::MPI_REQUEST_NULL);
    let object = find(file)?;
    let buffer = cleared.and_then(|()| data.0.buffer(object, data.1, data.2));
    let started = object.file.start(place, together, buffer)?;
    out.set(
        "request",
        request::insert_on(Hears::File(file), Operation::Receive(started)),
    )
}

fn begin(file: h::File, name: &'static str, place: Position, data: Data<impl Argument>) -> Result<()> {
    let object = find(file)?;
    object
        .file
        .begin_split(name, place, data.0.buffer(object, data.1, data.2))
}

fn end(file: h::File, name: &'static str, status: Out<Status>) -> Result<()> {
    let started = find(file)?.file.splits().end(name)?;
    request::finish(&Operation::Receive(started), status)
}

entry! {
    isthmus_MPI_File_read<c_int, ALONE>, isthmus_MPI_File_read_c<Count, ALONE>,
    isthmus_MPI_File_read_all<c_int, ALL>, isthmus_MPI_File_read_all_c<Count, ALL>,
    isthmus_MPI_File_read_shared<c_int, SHARED>, isthmus_MPI_File_read_shared_c<Count, SHARED>,
    isthmus_MPI_File_read_ordered<c_int, ORDERED>, isthmus_MPI_File_read_ordered_c<Count, ORDERED>:
    (fh: h::File, buf: Target, count: N, datatype: h::Datatype, status: Out<Status>) on fh: How => {
        blocking(fh, VARIANT, (buf, wide(count), datatype), status)
    }
}

entry! {
    isthmus_MPI_File_write<c_int, ALONE>, isthmus_MPI_File_write_c<Count, ALONE>,
    isthmus_MPI_File_write_all<c_int, ALL>, isthmus_MPI_File_write_all_c<Count, ALL>,
    isthmus_MPI_File_write_shared<c_int, SHARED>, isthmus_MPI_File_write_shared_c<Count, SHARED>,
    isthmus_MPI_File_write_ordered<c_int, ORDERED>, isthmus_MPI_File_write_ordered_c<Count, ORDERED>:
    (fh: h::File, buf: Source, count: N, datatype: h::Datatype, status: Out<Status>) on fh: How => {
        blocking(fh, VARIANT, (buf, wide(count), datatype), status)
    }
}

const AT: bool = false;
const AT_ALL: bool = true;

entry! {
    isthmus_MPI_File_read_at<c_int, AT>, isthmus_MPI_File_read_at_c<Count, AT>,
    isthmus_MPI_File_read_at_all<c_int, AT_ALL>, isthmus_MPI_File_read_at_all_c<Count, AT_ALL>:
    (fh: h::File, offset: Offset, buf: Target, count: N, datatype: h::Datatype, status: Out<Status>) on fh: bool => {
        blocking(fh, (Position::At(offset), VARIANT), (buf, wide(count), datatype), status)
    }
}

entry! {
    isthmus_MPI_File_write_at<c_int, AT>, isthmus_MPI_File_write_at_c<Count, AT>,
    isthmus_MPI_File_write_at_all<c_int, AT_ALL>, isthmus_MPI_File_write_at_all_c<Count, AT_ALL>:
    (fh: h::File, offset: Offset, buf: Source, count: N, datatype: h::Datatype, status: Out<Status>) on fh: bool => {
        blocking(fh, (Position::At(offset), VARIANT), (buf, wide(count), datatype), status)
    }
}

entry! {
    isthmus_MPI_File_iread<c_int, ALONE>, isthmus_MPI_File_iread_c<Count, ALONE>,
    isthmus_MPI_File_iread_all<c_int, ALL>, isthmus_MPI_File_iread_all_c<Count, ALL>,
    isthmus_MPI_File_iread_shared<c_int, SHARED>, isthmus_MPI_File_iread_shared_c<Count, SHARED>:
    (fh: h::File, buf: Target, count: N, datatype: h::Datatype, request: Out<h::Request>) on fh: How => {
        nonblocking(fh, VARIANT, (buf, wide(count), datatype), request)
    }
}

entry! {
    isthmus_MPI_File_iwrite<c_int, ALONE>, isthmus_MPI_File_iwrite_c<Count, ALONE>,
    isthmus_MPI_File_iwrite_all<c_int, ALL>, isthmus_MPI_File_iwrite_all_c<Count, ALL>,
    isthmus_MPI_File_iwrite_shared<c_int, SHARED>, isthmus_MPI_File_iwrite_shared_c<Count, SHARED>:
    (fh: h::File, buf: Source, count: N, datatype: h::Datatype, request: Out<h::Request>) on fh: How => {
        nonblocking(fh, VARIANT, (buf, wide(count), datatype), request)
    }
}

entry! {
    isthmus_MPI_File_iread_at<c_int, AT>, isthmus_MPI_File_iread_at_c<Count, AT>,
    isthmus_MPI_File_iread_at_all<c_int, AT_ALL>, isthmus_MPI_File_iread_at_all_c<Count, AT_ALL>:
    (fh: h::File, offset: Offset, buf: Target, count: N, datatype: h::Datatype, request: Out<h::Request>) on fh: bool => {
        nonblocking(fh, (Position::At(offset), VARIANT), (buf, wide(count), datatype), request)
    }
}

entry! {
    isthmus_MPI_File_iwrite_at<c_int, AT>, isthmus_MPI_File_iwrite_at_c<Count, AT>,
    isthmus_MPI_File_iwrite_at_all<c_int, AT_ALL>, isthmus_MPI_File_iwrite_at_all_c<Count, AT_ALL>:
    (fh: h::File, offset: Offset, buf: Source, count: N, datatype: h::Datatype, request: Out<h::Request>) on fh: bool => {
        nonblocking(fh, (Position::At(offset), VARIANT), (buf, wide(count), datatype), request)
    }
}

/// Name of a split operation, and where it begins.
type Split = (&'static str, Position);

const READ_ALL: Split = ("read_all", Position::Individual);
const READ_ORDERED: Split = ("read_ordered", Position::Ordered);
const WRITE_ALL: Split = ("write_all", Position::Individual);
const WRITE_ORDERED: Split = ("write_ordered", Position::Ordered);

entry! {
    isthmus_MPI_File_read_all_begin<c_int, READ_ALL>, isthmus_MPI_File_read_all_begin_c<Count, READ_ALL>,
    isthmus_MPI_File_read_ordered_begin<c_int, READ_ORDERED>, isthmus_MPI_File_read_ordered_begin_c<Count, READ_ORDERED>:
    (fh: h::File, buf: Target, count: N, datatype: h::Datatype) on fh: Split => {
        begin(fh, VARIANT.0, VARIANT.1, (buf, wide(count), datatype))
    }
}

entry! {
    isthmus_MPI_File_write_all_begin<c_int, WRITE_ALL>, isthmus_MPI_File_write_all_begin_c<Count, WRITE_ALL>,
    isthmus_MPI_File_write_ordered_begin<c_int, WRITE_ORDERED>, isthmus_MPI_File_write_ordered_begin_c<Count, WRITE_ORDERED>:
    (fh: h::File, buf: Source, count: N, datatype: h::Datatype) on fh: Split => {
        begin(fh, VARIANT.0, VARIANT.1, (buf, wide(count), datatype))
    }
}

entry! {
    isthmus_MPI_File_read_at_all_begin<c_int>, isthmus_MPI_File_read_at_all_begin_c<Count>:
    (fh: h::File, offset: Offset, buf: Target, count: N, datatype: h::Datatype) on fh => {
        begin(fh, "read_at_all", Position::At(offset), (buf, wide(count), datatype))
    }
}

entry! {
    isthmus_MPI_File_write_at_all_begin<c_int>, isthmus_MPI_File_write_at_all_begin_c<Count>:
    (fh: h::File, offset: Offset, buf: Source, count: N, datatype: h::Datatype) on fh => {
        begin(fh, "write_at_all", Position::At(offset), (buf, wide(count), datatype))
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_read_all_end(file: h::File, _buf: Target, status: Out<Status>) -> c_int {
    call_on("MPI_File_read_all_end", file, || end(file, "read_all", status))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_read_at_all_end(file: h::File, _buf: Target, status: Out<Status>) -> c_int {
    call_on("MPI_File_read_at_all_end", file, || end(file, "read_at_all", status))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_read_ordered_end(file: h::File, _buf: Target, status: Out<Status>) -> c_int {
    call_on("MPI_File_read_ordered_end", file, || end(file, "read_ordered", status))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_write_all_end(file: h::File, _buf: Source, status: Out<Status>) -> c_int {
    call_on("MPI_File_write_all_end", file, || end(file, "write_all", status))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_write_at_all_end(file: h::File, _buf: Source, status: Out<Status>) -> c_int {
    call_on("MPI_File_write_at_all_end", file, || end(file, "write_at_all", status))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_File_write_ordered_end(file: h::File, _buf: Source, status: Out<Status>) -> c_int {
    call_on("MPI_File_write_ordered_end", file, || {
        end(file, "write_ordered", status)
    })
}
