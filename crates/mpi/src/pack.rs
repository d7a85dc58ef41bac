// SPDX-License-Identifier: Apache-2.0
//! Packing into bytes (MPI 5.0 section 5.2). The packed form is the data in type map order, without header, in the
//! representation of this process.

use std::ffi::c_int;

use isthmus_abi::Count;
use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::{Packer, Unpacker};

use crate::c::{Out, Source, Target, count};
use crate::call::call_on;
use crate::collective::Number;
use crate::datatype::find_any;

fn packer(buffer: Source, n: i64, datatype: h::Datatype) -> Result<Packer> {
    let n = count("count", n)?;
    let ty = find_any(datatype)?;
    let (low, high) = ty.window(n)?;
    Ok(Packer::new(ty, n, buffer.memory(low as i64, high as i64))?)
}

/// The place in a packed buffer where `bytes` bytes begin, and where they end.
fn place(position: i64, bytes: u64, size: i64, what: &str) -> Result<(i64, i64)> {
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
}

fn pack<C: Number>(from: Elements<Source>, to: Packed<Target, C>, narrow: impl Fn(i64) -> C) -> Result<()> {
    let mut packer = packer(from.buffer, from.count, from.datatype)?;
    let at = to.position.get("position")?.wide();
    let (start, end) = place(at, packer.size(), to.size.wide(), "outbuf")?;
    let mut memory = to.buffer.memory(0, end);
    packer.pack(memory.slice(start as isize, (end - start) as usize));
    to.position.set("position", narrow(end))
}

fn unpack<C: Number>(from: Packed<Source, C>, to: Elements<Target>, narrow: impl Fn(i64) -> C) -> Result<()> {
    let n = count("outcount", to.count)?;
    let ty = find_any(to.datatype)?;
    let (low, high) = ty.window(n)?;
    let mut unpacker = Unpacker::new(ty, n, to.buffer.memory(low as i64, high as i64))?;
    let at = from.position.get("position")?.wide();
    let (start, end) = place(at, unpacker.size(), from.size.wide(), "inbuf")?;
    let memory = from.buffer.memory(0, end);
    unpacker.unpack(memory.slice(start as isize, (end - start) as usize));
    from.position.set("position", narrow(end))
}

fn size_of(n: i64, datatype: h::Datatype) -> Result<i64> {
    Ok(find_any(datatype)?.bytes(count("incount", n)?)? as i64)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Pack(
    input: Source,
    n: c_int,
    datatype: h::Datatype,
    output: Target,
    size: c_int,
    position: Out<c_int>,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Pack", comm, || {
        crate::comm::find(comm)?;
        let from = Elements {
            buffer: input,
            count: n.into(),
            datatype,
        };
        pack(
            from,
            Packed {
                buffer: output,
                size,
                position,
            },
            |v| v as c_int,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Pack_c(
    input: Source,
    n: Count,
    datatype: h::Datatype,
    output: Target,
    size: Count,
    position: Out<Count>,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Pack_c", comm, || {
        crate::comm::find(comm)?;
        let from = Elements {
            buffer: input,
            count: n,
            datatype,
        };
        pack(
            from,
            Packed {
                buffer: output,
                size,
                position,
            },
            |v| v,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Unpack(
    input: Source,
    size: c_int,
    position: Out<c_int>,
    output: Target,
    n: c_int,
    datatype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Unpack", comm, || {
        crate::comm::find(comm)?;
        let to = Elements {
            buffer: output,
            count: n.into(),
            datatype,
        };
        unpack(
            Packed {
                buffer: input,
                size,
                position,
            },
            to,
            |v| v as c_int,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Unpack_c(
    input: Source,
    size: Count,
    position: Out<Count>,
    output: Target,
    n: Count,
    datatype: h::Datatype,
    comm: h::Comm,
) -> c_int {
    call_on("MPI_Unpack_c", comm, || {
        crate::comm::find(comm)?;
        let to = Elements {
            buffer: output,
            count: n,
            datatype,
        };
        unpack(
            Packed {
                buffer: input,
                size,
                position,
            },
            to,
            |v| v,
        )
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Pack_size(n: c_int, datatype: h::Datatype, comm: h::Comm, size: Out<c_int>) -> c_int {
    call_on("MPI_Pack_size", comm, || {
        crate::comm::find(comm)?;
        let bytes = size_of(n.into(), datatype)?;
        size.set("size", c_int::try_from(bytes).unwrap_or(abi::MPI_UNDEFINED))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Pack_size_c(n: Count, datatype: h::Datatype, comm: h::Comm, size: Out<Count>) -> c_int {
    call_on("MPI_Pack_size_c", comm, || {
        crate::comm::find(comm)?;
        size.set("size", size_of(n, datatype)?)
    })
}
