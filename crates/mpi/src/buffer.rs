// SPDX-License-Identifier: Apache-2.0
//! Buffer, count and datatype arguments as the engine's buffers.

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Block, ReceiveBuffer, SendBuffer};

use crate::c::{Source, Target, count};
use crate::check;
use crate::datatype::find;
use crate::process;

/// Data to send.
#[inline(always)]
pub(crate) fn sending(buffer: Source, n: i64, datatype: h::Datatype) -> Result<SendBuffer> {
    match piece(buffer, n, datatype)? {
        Some((memory, length)) => Ok(SendBuffer::contiguous(memory, 0, length)),
        None => sending_pieces(buffer, n, datatype),
    }
}

/// Data to send and their length, if they lie in one piece.
#[inline(always)]
pub(crate) fn piece(buffer: Source, n: i64, datatype: h::Datatype) -> Result<Option<(ReadMemory, u64)>> {
    let n = count("count", n)?;
    let Some((offset, length)) = find(datatype)?.contiguous(n) else {
        return Ok(None);
    };
    check::buffer("buf", buffer.address(), offset as i64, length)?;
    Ok(Some((buffer.offset(offset as i64).memory(0, length as i64), length)))
}

#[cold]
fn sending_pieces(buffer: Source, n: i64, datatype: h::Datatype) -> Result<SendBuffer> {
    let (n, ty) = (count("count", n)?, find(datatype)?);
    let (low, high) = ty.window(n)?;
    check::buffer("buf", buffer.address(), low as i64, (high - low) as u64)?;
    Ok(SendBuffer::typed(buffer.memory(low as i64, high as i64), ty, n)?)
}

/// Memory to receive into.
#[inline(always)]
pub(crate) fn receiving(buffer: Target, n: i64, datatype: h::Datatype) -> Result<ReceiveBuffer> {
    match room(buffer, n, datatype)? {
        Some((memory, length)) => Ok(ReceiveBuffer::contiguous(memory, 0, length)),
        None => receiving_pieces(buffer, n, datatype),
    }
}

/// Memory to receive into and its length, if it is one piece.
#[inline(always)]
pub(crate) fn room(buffer: Target, n: i64, datatype: h::Datatype) -> Result<Option<(WriteMemory, u64)>> {
    let n = count("count", n)?;
    let Some((offset, length)) = find(datatype)?.contiguous(n) else {
        return Ok(None);
    };
    check::buffer("buf", buffer.address(), offset as i64, length)?;
    Ok(Some((buffer.offset(offset as i64).memory(0, length as i64), length)))
}

#[cold]
fn receiving_pieces(buffer: Target, n: i64, datatype: h::Datatype) -> Result<ReceiveBuffer> {
    let (n, ty) = (count("count", n)?, find(datatype)?);
    let (low, high) = ty.window(n)?;
    check::buffer("buf", buffer.address(), low as i64, (high - low) as u64)?;
    Ok(ReceiveBuffer::typed(buffer.memory(low as i64, high as i64), ty, n)?)
}

/// The same memory, described where messages may have to be converted: in a communicator whose members represent data
/// differently.
#[inline]
pub(crate) fn described(
    room: ReceiveBuffer,
    comm: &Comm,
    buffer: Target,
    n: i64,
    datatype: h::Datatype,
) -> Result<ReceiveBuffer> {
    if process::unlike() {
        return describe(room, comm, buffer, n, datatype);
    }
    Ok(room)
}

#[cold]
fn describe(room: ReceiveBuffer, comm: &Comm, buffer: Target, n: i64, datatype: h::Datatype) -> Result<ReceiveBuffer> {
    if !is_mixed(comm)? {
        return Ok(room);
    }
    let (n, ty) = (count("count", n)?, find(datatype)?);
    let (low, high) = ty.window(n)?;
    Ok(room.described(buffer.memory(low as i64, high as i64), ty, n))
}

/// The same data, marked where they are packed in a form that is not this process's.
#[inline]
pub(crate) fn marked(data: SendBuffer, comm: &Comm, datatype: h::Datatype) -> Result<SendBuffer> {
    if process::unlike() {
        return mark(data, comm, datatype);
    }
    Ok(data)
}

#[cold]
fn mark(data: SendBuffer, comm: &Comm, datatype: h::Datatype) -> Result<SendBuffer> {
    if is_mixed(comm)? && find(datatype)?.signature().uniform() == Some(Basic::Packed) {
        return Ok(data.packed());
    }
    Ok(data)
}

/// A message that ends inside an element of the datatype it was received as was not sent as that. (Of messages between
/// machines of one representation, received by blocking calls; nobody promises to find out.)
#[cold]
pub(crate) fn whole(comm: &Comm, datatype: h::Datatype, bytes: u64) -> Result<()> {
    if !check::on() || is_mixed(comm)? {
        return Ok(());
    }
    match find(datatype)?.signature().elements_in(bytes).1 {
        0 => Ok(()),
        left => fail!(
            abi::MPI_ERR_TYPE,
            argument("datatype"),
            "does not fit the message: of its {bytes} bytes the last {left} are part of an element only"
        ),
    }
}

#[inline]
fn is_mixed(comm: &Comm) -> Result<bool> {
    Ok(process::unlike() && comm.common_form(process::world()?).is_some())
}

/// A block of a collective operation that is only read.
pub(crate) fn reading(buffer: Source, n: u64, ty: &Datatype) -> Result<Block> {
    let (low, high) = ty.window(n)?;
    check::buffer("buf", buffer.address(), low as i64, (high - low) as u64)?;
    let block = Block::reading(buffer.memory(low as i64, high as i64), ty, n)?;
    convertible(block, ty, n)
}

/// A block of a collective operation that is written.
pub(crate) fn writing(buffer: Target, n: u64, ty: &Datatype) -> Result<Block> {
    let (low, high) = ty.window(n)?;
    check::buffer("buf", buffer.address(), low as i64, (high - low) as u64)?;
    let block = Block::writing(buffer.memory(low as i64, high as i64), ty, n)?;
    convertible(block, ty, n)
}

fn convertible(block: Block, ty: &Datatype, n: u64) -> Result<Block> {
    Ok(if process::unlike() {
        block.described(ty, n)
    } else {
        block
    })
}
