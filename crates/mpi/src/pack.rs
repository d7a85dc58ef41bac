// SPDX-License-Identifier: Apache-2.0
//! Packing into bytes (MPI 5.0 sections 5.2 and 5.3). The packed form is the data in type map order, without header: in
//! the representation of this process where all members of the communicator have that, else in the common one;
//! external32 where the program asks for it.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::{Datatype, Foreign, Packer, Representation, Unpacker};

use crate::c::{Number, Out, Source, Target, Text, count};
use crate::datatype::find_any;
use crate::entry::{Bytes, entry};
use crate::{comm, process};

fn packer(buffer: Source, n: u64, ty: &Datatype) -> Result<Packer> {
    let (low, high) = ty.window(n)?;
    Ok(Packer::new(ty, n, buffer.memory(low as i64, high as i64))?)
}

/// The form of packed data that all members of a communicator understand.
fn form(handle: h::Comm) -> Result<Representation> {
    Ok(comm::find(handle)?.form(process::world()?))
}

/// The form that a program names.
fn external(datarep: Text) -> Result<Representation> {
    let name = datarep.get("datarep", abi::MPI_ERR_ARG)?;
    if name == "external32" {
        return Ok(Representation::EXTERNAL32);
    }
    fail!(
        abi::MPI_ERR_UNSUPPORTED_DATAREP,
        argument("datarep"),
        "is \"{name}\"; the only representation for packing is \"external32\""
    )
}

/// The place in a packed buffer where `bytes` bytes begin, and where they end.
fn place(position: i64, bytes: u64, size: i64, what: &str) -> Result<(i64, i64)> {
    if size < 0 {
        let argument = if what == "outbuf" { "outsize" } else { "insize" };
        fail!(abi::MPI_ERR_ARG, argument(argument), "is {size}, expected 0 or more");
    }
    if position < 0 || position > size {
        fail!(
            abi::MPI_ERR_ARG,
            "the position {position} is outside of a buffer of {size} bytes"
        );
    }
    match i64::try_from(bytes)
        .ok()
        .and_then(|n| position.checked_add(n))
        .filter(|end| *end <= size)
    {
        Some(end) => Ok((position, end)),
        None => fail!(
            abi::MPI_ERR_TRUNCATE,
            "{bytes} bytes do not fit into the {} that {what} has behind position {position}",
            size - position
        ),
    }
}

/// Elements in user memory.
#[derive(Clone, Copy)]
struct Elements<B> {
    buffer: B,
    count: i64,
    datatype: h::Datatype,
}

/// A packed buffer with a position in it.
struct Packed<B, C> {
    buffer: B,
    size: C,
    position: Out<C>,
    form: Representation,
}

fn pack<C: Number>(from: Elements<Source>, to: Packed<Target, C>, narrow: impl Fn(i64) -> C) -> Result<()> {
    let (n, ty) = (count("incount", from.count)?, find_any(from.datatype)?);
    let mut packer = packer(from.buffer, n, ty)?;
    let foreign = Foreign::new(ty, to.form)?;
    let bytes = match &foreign {
        None => packer.size(),
        Some(foreign) => foreign.bytes(n)?,
    };
    let at = to.position.get("position")?.wide();
    let (start, end) = place(at, bytes, to.size.wide(), "outbuf")?;
    let mut memory = to.buffer.memory(0, end);
    memory.with_mut(start as isize, (end - start) as usize, |room| match foreign {
        None => {
            packer.pack(room);
            Ok(())
        }
        Some(foreign) => foreign.pack(0, n * ty.signature().elements(), &mut packer, room),
    })?;
    to.position.set("position", narrow(end))
}

fn unpack<C: Number>(from: Packed<Source, C>, to: Elements<Target>, narrow: impl Fn(i64) -> C) -> Result<()> {
    let (n, ty) = (count("outcount", to.count)?, find_any(to.datatype)?);
    let (low, high) = ty.window(n)?;
    let mut unpacker = Unpacker::new(ty, n, to.buffer.memory(low as i64, high as i64))?;
    let foreign = Foreign::new(ty, from.form)?;
    let bytes = match &foreign {
        None => unpacker.size(),
        Some(foreign) => foreign.bytes(n)?,
    };
    let at = from.position.get("position")?.wide();
    let (start, end) = place(at, bytes, from.size.wide(), "inbuf")?;
    let memory = from.buffer.memory(0, end);
    memory.with(start as isize, (end - start) as usize, |data| match foreign {
        None => {
            unpacker.unpack(data);
            Ok(())
        }
        Some(foreign) => foreign.unpack(0, n * ty.signature().elements(), data, &mut unpacker),
    })?;
    from.position.set("position", narrow(end))
}

fn size_of(n: i64, datatype: h::Datatype, form: Representation) -> Result<i64> {
    let (n, ty) = (count("incount", n)?, find_any(datatype)?);
    let bytes = match Foreign::new(ty, form)? {
        None => ty.bytes(n)?,
        Some(foreign) => foreign.bytes(n)?,
    };
    Ok(bytes as i64)
}

entry! {
    isthmus_MPI_Pack<c_int>, isthmus_MPI_Pack_c<Count>:
    (inbuf: Source, incount: N, datatype: h::Datatype, outbuf: Target, outsize: N, position: Out<N>, comm: h::Comm) on comm => {
        let from = Elements { buffer: inbuf, count: incount.wide(), datatype };
        pack(from, Packed { buffer: outbuf, size: outsize, position, form: form(comm)? }, |v| v as N)
    }
}

entry! {
    isthmus_MPI_Unpack<c_int>, isthmus_MPI_Unpack_c<Count>:
    (inbuf: Source, insize: N, position: Out<N>, outbuf: Target, outcount: N, datatype: h::Datatype, comm: h::Comm) on comm => {
        let to = Elements { buffer: outbuf, count: outcount.wide(), datatype };
        unpack(Packed { buffer: inbuf, size: insize, position, form: form(comm)? }, to, |v| v as N)
    }
}

entry! {
    isthmus_MPI_Pack_size<c_int>, isthmus_MPI_Pack_size_c<Count>:
    (incount: N, datatype: h::Datatype, comm: h::Comm, size: Out<N>) on comm => {
        let bytes = size_of(incount.wide(), datatype, form(comm)?)?;
        size.set("size", N::try_from(bytes).unwrap_or(abi::MPI_UNDEFINED as N))
    }
}

entry! {
    isthmus_MPI_Pack_external<c_int>, isthmus_MPI_Pack_external_c<Count>:
    (
        datarep: Text,
        input: Source,
        count: N,
        datatype: h::Datatype,
        output: Target,
        size: Bytes<N>,
        position: Out<Bytes<N>>
    ) => {
        let from = Elements { buffer: input, count: count.wide(), datatype };
        pack(from, Packed { buffer: output, size, position, form: external(datarep)? }, |v| v as Bytes<N>)
    }
}

entry! {
    isthmus_MPI_Unpack_external<c_int>, isthmus_MPI_Unpack_external_c<Count>:
    (
        datarep: Text,
        input: Source,
        size: Bytes<N>,
        position: Out<Bytes<N>>,
        output: Target,
        count: N,
        datatype: h::Datatype
    ) => {
        let to = Elements { buffer: output, count: count.wide(), datatype };
        unpack(Packed { buffer: input, size, position, form: external(datarep)? }, to, |v| v as Bytes<N>)
    }
}

entry! {
    isthmus_MPI_Pack_external_size<c_int>, isthmus_MPI_Pack_external_size_c<Count>:
    (datarep: Text, count: N, datatype: h::Datatype, size: Out<Bytes<N>>) => {
        size.set("size", size_of(count.wide(), datatype, external(datarep)?)? as Bytes<N>)
    }
}
