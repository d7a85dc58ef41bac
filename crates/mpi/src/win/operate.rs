// SPDX-License-Identifier: Apache-2.0
//! Put, get, accumulate and their kin (MPI 5.0 section 12.3).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_abi::{Aint, Count, Status};
use isthmus_core::error::{About, Result};
use isthmus_core::fail;
use isthmus_datatype::Datatype;
use isthmus_datatype::op::Predefined;
use isthmus_datatype::raw::ReadMemory;
use isthmus_rma::{Piece, Sink, Source as Data, TargetData, When, Window};

use super::{WINDOWS, find};
use crate::c::{Out, Source, Target, count};
use crate::check;
use crate::datatype;
use crate::entry::{entry, wide};
use crate::request::{self, Hears, Operation};

/// A buffer, its count and its datatype.
type Triple<B> = (B, i64, h::Datatype);

/// A place at a process: its rank, a displacement, a count and a datatype.
type There = (c_int, Aint, i64, h::Datatype);

/// Data of the program: how many elements of which type, and the bytes before and behind the address where they lie.
struct Extent {
    count: u64,
    datatype: &'static Datatype,
    low: i64,
    high: i64,
}

fn extent(address: usize, n: i64, ty: h::Datatype, side: &str) -> Result<Extent> {
    // Names are for errors: making them takes longer than a short operation.
    let count = match u64::try_from(n) {
        Ok(count) => count,
        Err(_) => count(&format_name(side, "count"), n)?,
    };
    let datatype = match datatype::known(ty) {
        Some(datatype) => datatype,
        None => datatype::find(ty).about(&format_name(side, "datatype"))?,
    };
    let (low, high) = datatype.window(count)?;
    let (low, high) = (low as i64, high as i64);
    if !check::is_memory(address.wrapping_add(low as usize)) {
        check::buffer(&format_name(side, "addr"), address, low, (high - low) as u64)?;
    }
    Ok(Extent {
        count,
        datatype,
        low,
        high,
    })
}

fn data((buffer, n, ty): Triple<Source>, side: &str) -> Result<Data<'static>> {
    let extent = extent(buffer.address(), n, ty, side)?;
    Ok(Data {
        memory: buffer.memory(extent.low, extent.high),
        count: extent.count,
        datatype: extent.datatype,
    })
}

fn sink((buffer, n, ty): Triple<Target>, side: &str) -> Result<Sink<'static>> {
    let extent = extent(buffer.address(), n, ty, side)?;
    Ok(Sink {
        memory: buffer.memory(extent.low, extent.high),
        count: extent.count,
        datatype: extent.datatype,
    })
}

/// Names of arguments that several functions have: `origin_count`; without a side plain `datatype`.
fn format_name(side: &str, what: &'static str) -> std::borrow::Cow<'static, str> {
    match (side, what) {
        ("", _) => what.into(),
        ("origin", "count") => "origin_count".into(),
        ("origin", "datatype") => "origin_datatype".into(),
        ("origin", "addr") => "origin_addr".into(),
        ("result", "count") => "result_count".into(),
        ("result", "datatype") => "result_datatype".into(),
        ("result", "addr") => "result_addr".into(),
        ("compare", "addr") => "compare_addr".into(),
        _ => format!("{side}_{what}").into(),
    }
}

fn place((rank, disp, n, ty): There) -> Result<TargetData<'static>> {
    Ok(TargetData {
        rank,
        disp: disp as i64,
        count: count("target_count", n)?,
        datatype: datatype::find(ty).about("target_datatype")?,
    })
}

fn predefined(op: h::Op) -> Option<Predefined> {
    u32::try_from(op.0).ok().and_then(Predefined::from_handle)
}

fn operation(op: h::Op) -> Result<Predefined> {
    match predefined(op) {
        Some(op) => Ok(op),
        None => fail!(
            abi::MPI_ERR_OP,
            argument("op"),
            "is not a predefined operation; MPI_Accumulate and similar calls take only these (MPI 5.0 section 12.3.4)"
        ),
    }
}

/// The window for an operation; `None`: the operation goes to MPI_PROC_NULL, and nothing else of it matters.
#[inline]
fn window(win: h::Win, rank: c_int) -> Result<Option<&'static Window>> {
    let object = find(win)?;
    Ok((rank != abi::MPI_PROC_NULL).then_some(&*object.window))
}

/// What an operation has started, if it is not over.
type Started = Option<isthmus_engine::Request>;

/// What an operation reaches, if it lies in one piece here and there, as with most operations. `None`: it takes a
/// closer look.
#[inline]
fn piece(address: usize, n: i64, ty: h::Datatype, there: There) -> Option<Piece> {
    Some(piece_and_type(address, n, ty, there)?.0)
}

/// The same with the type of its elements.
#[inline]
fn piece_and_type(address: usize, n: i64, ty: h::Datatype, there: There) -> Option<(Piece, &'static Datatype)> {
    let (rank, disp, count, datatype) = there;
    let known = datatype::known(ty)?;
    let (offset, length) = known.contiguous(u64::try_from(n).ok()?)?;
    let is_memory = length == 0 || check::is_memory(address.wrapping_add_signed(offset));
    let piece = Piece {
        rank,
        disp: disp as i64,
        offset,
        length,
    };
    (n == count && ty == datatype && is_memory).then_some((piece, known))
}

/// MPI_Put; done at once where that is possible, `None`: it was not.
#[inline]
fn put_at_once(win: h::Win, from: Triple<Source>, there: There) -> Option<()> {
    let piece = piece(from.0.address(), from.1, from.2, there)?;
    let window = &WINDOWS.get(win.0)?.window;
    let data = from.0.offset(piece.offset as i64).memory(0, piece.length as i64);
    isthmus_rma::put_at_once(window, &data, &piece).then_some(())
}

/// The same of MPI_Get.
#[inline]
fn get_at_once(win: h::Win, into: Triple<Target>, there: There) -> Option<()> {
    let piece = piece(into.0.address(), into.1, into.2, there)?;
    let window = &WINDOWS.get(win.0)?.window;
    let mut memory = into.0.offset(piece.offset as i64).memory(0, piece.length as i64);
    isthmus_rma::get_at_once(window, &mut memory, &piece).then_some(())
}

/// MPI_Accumulate and its kin. `from`: MPI_NO_OP reads none; `result`: where what was there goes, with as many
/// elements.
#[inline]
fn accumulate_at_once(
    win: h::Win,
    op: Predefined,
    from: Triple<Source>,
    result: Option<Target>,
    there: There,
) -> Option<()> {
    let reads_only = op == Predefined::NoOp;
    let address = match result.filter(|_| reads_only) {
        Some(result) => result.address(),
        None => from.0.address(),
    };
    let (piece, datatype) = piece_and_type(address, from.1, from.2, there)?;
    let basic = datatype.basic()?;
    let window = &WINDOWS.get(win.0)?.window;
    let (offset, length) = (piece.offset, piece.length as i64);
    let data = match reads_only {
        true => ReadMemory::EMPTY,
        false => from.0.offset(offset as i64).memory(0, length),
    };
    let mut before = match result {
        Some(result) if check::is_memory(result.address().wrapping_add_signed(offset)) => {
            Some(result.offset(offset as i64).memory(0, length))
        }
        Some(_) => return None,
        None if reads_only => return None,
        None => None,
    };
    isthmus_rma::accumulate_at_once(window, op, basic, &data, before.as_mut(), &piece).then_some(())
}

/// MPI_Compare_and_swap.
#[inline]
fn swap_at_once(win: h::Win, new: Source, old: Source, result: Target, there: There) -> Option<()> {
    let (piece, datatype) = piece_and_type(new.address(), 1, there.3, there)?;
    let basic = datatype.basic()?;
    let window = &WINDOWS.get(win.0)?.window;
    let are_memory = check::is_memory(old.address()) && check::is_memory(result.address());
    if piece.offset != 0 || !are_memory {
        return None;
    }
    let length = piece.length as i64;
    let (new, old) = (new.memory(0, length), old.memory(0, length));
    isthmus_rma::swap_at_once(window, basic, &new, &old, &mut result.memory(0, length), &piece).then_some(())
}

fn put(win: h::Win, from: Triple<Source>, there: There, when: When) -> Result<Started> {
    if when == When::Always && put_at_once(win, from, there).is_some() {
        return Ok(None);
    }
    match window(win, there.0)? {
        Some(window) => window.put(&data(from, "origin")?, &place(there)?, when),
        None => Ok(None),
    }
}

fn get(win: h::Win, into: Triple<Target>, there: There, when: When) -> Result<Started> {
    if when == When::Always && get_at_once(win, into, there).is_some() {
        return Ok(None);
    }
    match window(win, there.0)? {
        Some(window) => window.get(&mut sink(into, "origin")?, &place(there)?, when),
        None => Ok(None),
    }
}

fn accumulate(
    win: h::Win,
    op: h::Op,
    from: Triple<Source>,
    result: Option<Triple<Target>>,
    there: There,
    when: When,
) -> Result<Started> {
    if let (When::Always, Some(op)) = (when, predefined(op)) {
        let alike = result.is_none_or(|(_, n, ty)| (n, ty) == (from.1, from.2));
        let into = result.map(|(result, ..)| result);
        if alike && accumulate_at_once(win, op, from, into, there).is_some() {
            return Ok(None);
        }
    }
    let Some(window) = window(win, there.0)? else {
        return Ok(None);
    };
    let op = operation(op)?;
    // What MPI_NO_OP does not read may be anything.
    let from = (op != Predefined::NoOp || result.is_none()).then(|| data(from, "origin"));
    let result = result.map(|result| sink(result, "result"));
    let (from, result) = (from.transpose()?, result.transpose()?);
    window.accumulate(op, from.as_ref(), result.as_ref(), &place(there)?, when)
}

/// The request of an operation.
fn requested(win: h::Win, out: Out<h::Request>, operate: impl FnOnce() -> Result<Started>) -> Result<()> {
    out.set("request", h::MPI_REQUEST_NULL)?;
    let handle = match operate()? {
        Some(started) => request::insert_on(Hears::Win(win), Operation::Other(started)),
        // Nothing can go wrong any more, so nobody has to hear of it.
        None => request::insert(h::MPI_COMM_SELF, Operation::Done(Status::empty())),
    };
    out.set("request", handle)
}

entry! {
    isthmus_MPI_Put<c_int>, isthmus_MPI_Put_c<Count>:
    (origin: Source, count: N, datatype: h::Datatype, rank: c_int, disp: Aint, target_count: N, target_datatype: h::Datatype, win: h::Win) on win => {
        put(win, (origin, wide(count), datatype), (rank, disp, wide(target_count), target_datatype), When::Always).map(drop)
    }
}

entry! {
    isthmus_MPI_Get<c_int>, isthmus_MPI_Get_c<Count>:
    (origin: Target, count: N, datatype: h::Datatype, rank: c_int, disp: Aint, target_count: N, target_datatype: h::Datatype, win: h::Win) on win => {
        get(win, (origin, wide(count), datatype), (rank, disp, wide(target_count), target_datatype), When::Always).map(drop)
    }
}

entry! {
    isthmus_MPI_Rput<c_int>, isthmus_MPI_Rput_c<Count>:
    (origin: Source, count: N, datatype: h::Datatype, rank: c_int, disp: Aint, target_count: N, target_datatype: h::Datatype, win: h::Win, request: Out<h::Request>) on win => {
        requested(win, request, || {
            put(win, (origin, wide(count), datatype), (rank, disp, wide(target_count), target_datatype), When::Locked)
        })
    }
}

entry! {
    isthmus_MPI_Rget<c_int>, isthmus_MPI_Rget_c<Count>:
    (origin: Target, count: N, datatype: h::Datatype, rank: c_int, disp: Aint, target_count: N, target_datatype: h::Datatype, win: h::Win, request: Out<h::Request>) on win => {
        requested(win, request, || {
            get(win, (origin, wide(count), datatype), (rank, disp, wide(target_count), target_datatype), When::Locked)
        })
    }
}

entry! {
    isthmus_MPI_Accumulate<c_int>, isthmus_MPI_Accumulate_c<Count>:
    (origin: Source, count: N, datatype: h::Datatype, rank: c_int, disp: Aint, target_count: N, target_datatype: h::Datatype, op: h::Op, win: h::Win) on win => {
        let there = (rank, disp, wide(target_count), target_datatype);
        accumulate(win, op, (origin, wide(count), datatype), None, there, When::Always).map(drop)
    }
}

entry! {
    isthmus_MPI_Raccumulate<c_int>, isthmus_MPI_Raccumulate_c<Count>:
    (origin: Source, count: N, datatype: h::Datatype, rank: c_int, disp: Aint, target_count: N, target_datatype: h::Datatype, op: h::Op, win: h::Win, request: Out<h::Request>) on win => {
        let there = (rank, disp, wide(target_count), target_datatype);
        requested(win, request, || accumulate(win, op, (origin, wide(count), datatype), None, there, When::Locked))
    }
}

entry! {
    isthmus_MPI_Get_accumulate<c_int>, isthmus_MPI_Get_accumulate_c<Count>:
    (origin: Source, count: N, datatype: h::Datatype, result: Target, result_count: N, result_datatype: h::Datatype, rank: c_int, disp: Aint, target_count: N, target_datatype: h::Datatype, op: h::Op, win: h::Win) on win => {
        let there = (rank, disp, wide(target_count), target_datatype);
        let result = Some((result, wide(result_count), result_datatype));
        accumulate(win, op, (origin, wide(count), datatype), result, there, When::Always).map(drop)
    }
}

entry! {
    isthmus_MPI_Rget_accumulate<c_int>, isthmus_MPI_Rget_accumulate_c<Count>:
    (origin: Source, count: N, datatype: h::Datatype, result: Target, result_count: N, result_datatype: h::Datatype, rank: c_int, disp: Aint, target_count: N, target_datatype: h::Datatype, op: h::Op, win: h::Win, request: Out<h::Request>) on win => {
        let there = (rank, disp, wide(target_count), target_datatype);
        let result = Some((result, wide(result_count), result_datatype));
        requested(win, request, || accumulate(win, op, (origin, wide(count), datatype), result, there, When::Locked))
    }
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Fetch_and_op(
    origin: Source,
    result: Target,
    datatype: h::Datatype,
    rank: c_int,
    disp: Aint,
    op: h::Op,
    win: h::Win,
) -> c_int {
    crate::call::call_on("MPI_Fetch_and_op", win, || {
        let at_once = |op| accumulate_at_once(win, op, (origin, 1, datatype), Some(result), (rank, disp, 1, datatype));
        if predefined(op).and_then(at_once).is_some() {
            return Ok(());
        }
        let Some(window) = window(win, rank)? else {
            return Ok(());
        };
        let op = operation(op)?;
        let from = (op != Predefined::NoOp).then(|| data((origin, 1, datatype), "origin"));
        let from = from.transpose().about_datatype()?;
        let result = sink((result, 1, datatype), "result").about_datatype()?;
        let there = place((rank, disp, 1, datatype)).about_datatype()?;
        window.fetch_and_op(op, from.as_ref(), &result, &there)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Compare_and_swap(
    origin: Source,
    compare: Source,
    result: Target,
    datatype: h::Datatype,
    rank: c_int,
    disp: Aint,
    win: h::Win,
) -> c_int {
    crate::call::call_on("MPI_Compare_and_swap", win, || {
        let there = (rank, disp, 1, datatype);
        if swap_at_once(win, origin, compare, result, there).is_some() {
            return Ok(());
        }
        let Some(window) = window(win, rank)? else {
            return Ok(());
        };
        let from = data((origin, 1, datatype), "origin").about_datatype()?;
        let compare = data((compare, 1, datatype), "compare").about_datatype()?;
        let result = sink((result, 1, datatype), "result").about_datatype()?;
        let there = place(there).about_datatype()?;
        window.compare_and_swap(&from, &compare, &result, &there)
    })
}

/// Functions that have one datatype call it `datatype`.
trait OneDatatype {
    fn about_datatype(self) -> Self;
}

impl<T> OneDatatype for Result<T> {
    fn about_datatype(self) -> Self {
        use isthmus_core::error::Subject;
        self.map_err(|error| match &error.subject {
            Subject::Argument(name) | Subject::Within(name) if name.ends_with("datatype") => error.about("datatype"),
            _ => error,
        })
    }
}
