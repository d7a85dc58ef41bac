// SPDX-License-Identifier: Apache-2.0
//! Entry bodies that differ in little: in the type of their counts (`int` or `MPI_Count`) and in one value.

use std::ffi::c_int;

use isthmus_abi::{Aint, Count};

use crate::c::Number;

/// Functions with the same parameters and the same body.
///
/// ```ignore
/// entry! {
///     isthmus_MPI_Send<c_int, Mode::Standard>, isthmus_MPI_Send_c<Count, Mode::Standard>:
///     (buf: Source, count: N, comm: h::Comm) on comm: Mode => send(VARIANT, buf, wide(count))
/// }
/// ```
/// `first` before the body tries what most calls do; it is `Ok(())` if all is done, or has what is left, which `then`
/// names for the body. Where something special is done around calls it is not tried, and the default is left.
///
/// In parameters and body `N` is the type in the brackets and `VARIANT` the value there, of the type after `on …:`;
/// value and type may be left out. The body is a `Result<()>` whose error goes to the handler of the communicator or
/// file after `on` (without `on`: of MPI_COMM_SELF). `cargo xtask codegen` reads the names off the invocations.
macro_rules! entry {
    ($($name:ident<$number:ty, $variant:path>),+ : $parameters:tt on $comm:ident : $kind:ty => $body:expr) => {
        $(crate::entry::entry! { @one $name, $number, (const VARIANT: $kind = $variant;), $parameters, call_on($comm), $body })+
    };
    ($($name:ident<$number:ty, $variant:path>),+ : $parameters:tt on $comm:ident : $kind:ty,
     first $first:expr, then $left:pat => $body:expr) => {
        $(crate::entry::entry! { @first $name, $number, (const VARIANT: $kind = $variant;), $parameters, $comm, $first, $left, $body })+
    };
    ($($name:ident<$number:ty>),+ : $parameters:tt on $comm:ident, first $first:expr, then $left:pat => $body:expr) => {
        $(crate::entry::entry! { @first $name, $number, (), $parameters, $comm, $first, $left, $body })+
    };
    ($($name:ident<$number:ty>),+ : $parameters:tt, first $first:expr, then $left:pat => $body:expr) => {
        $(crate::entry::entry! { @first $name, $number, (), $parameters, (isthmus_abi::handles::MPI_COMM_NULL), $first, $left, $body })+
    };
    ($($name:ident<$number:ty>),+ : $parameters:tt on $comm:ident => $body:expr) => {
        $(crate::entry::entry! { @one $name, $number, (), $parameters, call_on($comm), $body })+
    };
    ($($name:ident<$number:ty>),+ : $parameters:tt => $body:expr) => {
        $(crate::entry::entry! { @one $name, $number, (), $parameters, call(), $body })+
    };
    (@one $name:ident, $number:ty, ($($variant:item)?), $parameters:tt, $call:ident($($comm:ident)?), $body:expr) => {
        const _: () = {
            type N = $number;
            $($variant)?
            #[unsafe(no_mangle)]
            extern "C" fn $name $parameters -> std::ffi::c_int {
                const NAME: &str = crate::entry::name(stringify!($name));
                crate::call::$call(NAME, $($comm,)? || $body)
            }
        };
    };
    (@first $name:ident, $number:ty, ($($variant:item)?), $parameters:tt, $comm:expr, $first:expr, $left:pat, $body:expr) => {
        const _: () = {
            type N = $number;
            $($variant)?
            #[unsafe(no_mangle)]
            extern "C" fn $name $parameters -> std::ffi::c_int {
                const NAME: &str = crate::entry::name(stringify!($name));
                crate::call::call_first(NAME, $comm, || $first, |$left| $body)
            }
        };
    };
}

pub(crate) use entry;

/// The type of the counts of a call: `int`, or `MPI_Count` in its twin with large counts.
pub(crate) trait Width: Number {
    /// The type of what counts bytes in such a call.
    type Bytes: Number;
    const LARGE: bool;
}

/// What counts bytes in a call whose counts are `N`.
pub(crate) type Bytes<N> = <N as Width>::Bytes;

impl Width for c_int {
    type Bytes = Aint;
    const LARGE: bool = false;
}

impl Width for Count {
    type Bytes = Self;
    const LARGE: bool = true;
}

/// A count of either type.
#[inline]
pub(crate) fn wide(count: impl Into<i64>) -> i64 {
    count.into()
}

/// `MPI_X` of `isthmus_MPI_X`.
pub(crate) const fn name(body: &'static str) -> &'static str {
    match std::str::from_utf8(body.as_bytes().split_at("isthmus_".len()).1) {
        Ok(name) => name,
        Err(_) => body,
    }
}
