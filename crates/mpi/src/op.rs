// SPDX-License-Identifier: Apache-2.0
//! Reduction operations (MPI 5.0 section 6.9).

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_datatype::op::{OnType, Predefined, Spacing};
use isthmus_datatype::raw::lend_to_program;
use isthmus_datatype::{Basic, Datatype, Packer, Unpacker};
use isthmus_engine::Reducer;

use crate::c::{Number, Out, Source, Target, flag};
use crate::call::call;
use crate::check::{self, Region};
use crate::entry::entry;
use crate::fortran::Looks;
use crate::handle::{Kind, Table};
use crate::process;

/// `MPI_User_function`
type UserFunction = extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut usize);
/// `MPI_User_function_c`
type LargeUserFunction = extern "C" fn(*mut c_void, *mut c_void, *mut isthmus_abi::Count, *mut usize);

#[derive(Clone, Copy)]
enum Function {
    Small(UserFunction),
    Large(LargeUserFunction),
}

/// An operation of the program.
#[derive(Clone, Copy)]
struct User {
    function: Function,
    commutative: bool,
    looks: Looks,
}

static OPS: Table<User> = Table::new(Kind::Op);

/// An operation with the datatype that it is used on.
pub(crate) struct Reduction {
    pub(crate) reducer: Reducer,
    pub(crate) commutative: bool,
    /// Whether the operation is a function of the program.
    pub(crate) calls_program: bool,
}

/// The operation of a handle for elements of a datatype; refuses what the standard does not define.
pub(crate) fn find(handle: h::Op, datatype: &Datatype, type_handle: h::Datatype) -> Result<Reduction> {
    if let Some(op) = u32::try_from(handle.0).ok().and_then(Predefined::from_handle) {
        return predefined(op, datatype);
    }
    match OPS.get(handle.0) {
        Some(user) => Ok(user_defined(*user, datatype, type_handle)),
        None if handle == h::MPI_OP_NULL => fail!(abi::MPI_ERR_OP, argument("op"), "is MPI_OP_NULL"),
        None => fail!(
            abi::MPI_ERR_OP,
            argument("op"),
            "is {:#x}, which is not the handle of an operation",
            handle.0
        ),
    }
}

fn predefined(op: Predefined, datatype: &Datatype) -> Result<Reduction> {
    if matches!(op, Predefined::Replace | Predefined::NoOp) {
        fail!(
            abi::MPI_ERR_OP,
            argument("op"),
            "is {}, which is defined for one-sided communication only (MPI 5.0 section 12.3.4)",
            op.name()
        );
    }
    let Some(basic) = datatype.basic() else {
        fail!(
            abi::MPI_ERR_OP,
            argument("op"),
            "is {}, which is defined for predefined datatypes only; make an operation for this datatype with MPI_Op_create",
            op.name()
        )
    };
    Ok(Reduction {
        reducer: predefined_reducer(op, basic)?,
        commutative: op.commutative(),
        calls_program: false,
    })
}

/// Programs reduce again and again with the same operation and type: the last one is kept.
fn predefined_reducer(op: Predefined, basic: Basic) -> Result<Reducer> {
    thread_local! {
        static LAST: RefCell<Option<(Predefined, Basic, Reducer)>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some((o, b, reducer)) if (*o, *b) == (op, basic) => Ok(reducer.clone()),
        last => {
            let found = op.on(basic).map_err(|e| Error::new(abi::MPI_ERR_OP, e.to_string()))?;
            let reducer: Reducer = Arc::new(move |operand, target, _elements, operand_is_left| {
                found.apply(Spacing::Memory, operand, target, operand_is_left);
            });
            *last = Some((op, basic, reducer.clone()));
            Ok(reducer)
        }
    })
}

fn user_defined(user: User, datatype: &Datatype, type_handle: h::Datatype) -> Reduction {
    let ty = datatype.clone();
    // The function is told the handle, perhaps after the program has freed it.
    let held = crate::datatype::hold(type_handle);
    let reducer = move |operand: &[u8], target: &mut [u8], elements: u64, operand_is_left: bool| {
        let apply = |input: *const u8, inout: *mut u8| {
            let offset = first_byte(&ty, elements) as isize;
            let (input, inout) = (input.wrapping_offset(-offset), inout.wrapping_offset(-offset));
            user.apply(input, inout, ty.extent() as isize, elements, held.handle());
        };
        if operand_is_left {
            apply(operand.as_ptr(), target.as_mut_ptr());
        } else {
            // The function computes inout = in ∘ inout, so for target ∘ operand a copy of the operand takes the result.
            let mut result = operand.to_vec();
            apply(target.as_ptr(), result.as_mut_ptr());
            copy_data(&ty, elements, &result, target);
        }
    };
    Reduction {
        reducer: Arc::new(reducer),
        commutative: user.commutative,
        calls_program: true,
    }
}

/// Where the lowest byte of data of elements is, from the origin of the first one.
fn first_byte(ty: &Datatype, elements: u64) -> i64 {
    let last = (elements as i64 - 1).wrapping_mul(ty.extent());
    ty.true_lower_bound().wrapping_add(last.min(0))
}

/// Copies elements but not the gaps in and between them, which are the program's. Both slices begin with the lowest
/// byte of data.
fn copy_data(ty: &Datatype, elements: u64, from: &[u8], to: &mut [u8]) {
    if ty.contiguous(elements).is_some() {
        return to.copy_from_slice(from);
    }
    // The plan described the same elements to the engine before, so this cannot fail.
    let Ok((low, high)) = ty.window(elements) else { return };
    let origin = -first_byte(ty, elements);
    let source = Source::of(from).offset(origin).memory(low as i64, high as i64);
    let target = Target::of(to).offset(origin).memory(low as i64, high as i64);
    let (Ok(mut packer), Ok(mut unpacker)) = (Packer::new(ty, elements, source), Unpacker::new(ty, elements, target))
    else {
        return;
    };
    let mut piece = [0; 4096];
    while packer.remaining() > 0 {
        let n = packer.pack(&mut piece);
        unpacker.unpack(&piece[..n]);
    }
}

impl User {
    /// Calls the function of the program for elements that are `extent` apart.
    fn apply(self, input: *const u8, inout: *mut u8, extent: isize, elements: u64, datatype: h::Datatype) {
        let mut handle = datatype.0;
        let handle = self.looks.place(&mut handle);
        let call = || match self.function {
            Function::Large(function) => {
                let mut count = elements as isthmus_abi::Count;
                function(input.cast_mut().cast(), inout.cast(), &raw mut count, handle);
            }
            Function::Small(function) => {
                let mut done = 0;
                while done < elements {
                    let at = extent.wrapping_mul(done as isize);
                    let (input, inout) = (input.wrapping_offset(at), inout.wrapping_offset(at));
                    let mut count = c_int::try_from(elements - done).unwrap_or(c_int::MAX);
                    done += u64::from(count.unsigned_abs());
                    function(input.cast_mut().cast(), inout.cast(), &raw mut count, handle);
                }
            }
        };
        // SAFETY: a reduction lends the memory whose addresses these are to whoever calls this, who waits for it.
        unsafe { lend_to_program(call) }
    }
}

fn create(function: Option<Function>, commute: c_int, op: Out<h::Op>) -> Result<()> {
    op.set("op", h::MPI_OP_NULL)?;
    let Some(function) = function else {
        fail!(abi::MPI_ERR_ARG, "the function is a null pointer")
    };
    let looks = Looks::of(match function {
        Function::Small(function) => function as usize,
        Function::Large(function) => function as usize,
    });
    op.set(
        "op",
        h::Op(OPS.insert(User {
            function,
            commutative: commute != 0,
            looks,
        })),
    )
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Op_create(function: Option<UserFunction>, commute: c_int, op: Out<h::Op>) -> c_int {
    call("MPI_Op_create", || create(function.map(Function::Small), commute, op))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Op_create_c(function: Option<LargeUserFunction>, commute: c_int, op: Out<h::Op>) -> c_int {
    call("MPI_Op_create_c", || create(function.map(Function::Large), commute, op))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Op_free(op: Out<h::Op>) -> c_int {
    call("MPI_Op_free", || {
        let handle = op.get("op")?;
        if OPS.remove(handle.0).is_none() {
            fail!(abi::MPI_ERR_OP, "{:#x} is not an operation that can be freed", handle.0);
        }
        op.set("op", h::MPI_OP_NULL)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Op_commutative(op: h::Op, commute: Out<c_int>) -> c_int {
    call("MPI_Op_commutative", || {
        let predefined = u32::try_from(op.0)
            .ok()
            .and_then(Predefined::from_handle)
            .map(Predefined::commutative);
        match predefined.or_else(|| OPS.get(op.0).map(|user| user.commutative)) {
            Some(yes) => commute.set("commute", flag(yes)),
            None => fail!(abi::MPI_ERR_OP, "{:#x} is not the handle of an operation", op.0),
        }
    })
}

/// The operation of a handle on a datatype, if both are predefined and nothing is wrong with them.
#[inline(always)]
fn known(handle: h::Op, datatype: h::Datatype) -> Option<OnType> {
    let op = u32::try_from(handle.0).ok().and_then(Predefined::from_handle)?;
    if matches!(op, Predefined::Replace | Predefined::NoOp) {
        return None;
    }
    op.known_on(crate::datatype::known(datatype)?.basic()?)
}

/// Whether the operation of a handle is a predefined one, of elements for which it is defined.
#[inline(always)]
pub(crate) fn is_usual(handle: h::Op, datatype: h::Datatype) -> bool {
    known(handle, datatype).is_some()
}

/// MPI_Reduce_local about which nothing is unusual. An error: nothing was done.
#[inline(always)]
fn reduce_at_once(
    input: Source,
    inout: Target,
    count: i64,
    datatype: h::Datatype,
    op: h::Op,
) -> std::result::Result<(), ()> {
    let operation = known(op, datatype).filter(|_| process::running().is_ok()).ok_or(())?;
    let count = u64::try_from(count).map_err(|_| ())?;
    let bytes = crate::datatype::solid_bytes(datatype, count).ok_or(())?;
    if bytes == 0 {
        return Ok(());
    }
    let (read, write, length) = (input.address(), inout.address(), bytes as usize);
    let apart = read.abs_diff(write) >= length;
    if !apart || !check::is_memory(read) || !check::is_memory(write) {
        return Err(());
    }
    let (operand, mut target) = (input.memory(0, bytes as i64), inout.memory(0, bytes as i64));
    target.combine(length, &operand, |operand, target| {
        operation.apply(Spacing::Memory, operand, target, true);
    });
    Ok(())
}

fn reduce_local(input: Source, inout: Target, count: i64, datatype: h::Datatype, op: h::Op) -> Result<()> {
    let count = crate::c::count("count", count)?;
    let ty = crate::datatype::find(datatype)?;
    let reduction = find(op, ty, datatype)?;
    if let Some((offset, length)) = ty.contiguous(count) {
        if length == 0 {
            return Ok(());
        }
        let [read, write] = [input.address(), inout.address()].map(|at| at.wrapping_add_signed(offset));
        let apart = read.saturating_add(length as usize) <= write || write.saturating_add(length as usize) <= read;
        // What is wrong otherwise is found out below.
        if apart && check::is_memory(read) && check::is_memory(write) {
            let operand = input.offset(offset as i64).memory(0, length as i64);
            let mut target = inout.offset(offset as i64).memory(0, length as i64);
            target.combine(length as usize, &operand, |operand, target| {
                (reduction.reducer)(operand, target, count, true)
            });
            return Ok(());
        }
    }
    if ty.bytes(count)? == 0 {
        return Ok(());
    }
    let (low, high) = ty.window(count)?;
    let region = |argument, address| Region {
        argument,
        address,
        count,
        datatype: ty,
    };
    check::buffer("inbuf", input.address(), low as i64, (high - low) as u64)?;
    check::buffer("inoutbuf", inout.address(), low as i64, (high - low) as u64)?;
    check::distinct(region("inbuf", input.address()), region("inoutbuf", inout.address()))?;
    // The window begins with the lowest byte of data, and ends behind the highest one.
    let operand = input.memory(low as i64, high as i64).shifted(low);
    let mut target = inout.memory(low as i64, high as i64).shifted(low);
    target.combine(high.abs_diff(low), &operand, |operand, target| {
        (reduction.reducer)(operand, target, count, true)
    });
    Ok(())
}

entry! {
    isthmus_MPI_Reduce_local<c_int>, isthmus_MPI_Reduce_local_c<isthmus_abi::Count>:
    (input: Source, inout: Target, count: N, datatype: h::Datatype, op: h::Op),
    first reduce_at_once(input, inout, count.wide(), datatype, op), then _ => {
        reduce_local(input, inout, count.wide(), datatype, op)
    }
}
