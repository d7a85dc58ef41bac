// SPDX-License-Identifier: Apache-2.0
//! `adaptors/vendor.h` in Rust.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void};

/// `ISTHMUS_VENDOR_INTERFACE`.
pub(crate) const INTERFACE: u32 = 5;
/// `ISTHMUS_VENDOR_ANY`.
pub(crate) const ANY: c_int = -1;

/// `struct isthmus_vendor_arrival`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct RawArrival {
    pub(crate) source: c_int,
    pub(crate) tag: c_int,
    pub(crate) bytes: c_longlong,
    pub(crate) message: c_ulonglong,
    pub(crate) cancelled: c_int,
}

/// `struct isthmus_vendor_operation`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RawOperation {
    pub(crate) kind: c_int,
    pub(crate) root: c_int,
    pub(crate) element: c_int,
    pub(crate) operator: c_int,
    pub(crate) in_place: c_int,
    pub(crate) rank: c_int,
    pub(crate) members: c_int,
    pub(crate) data: *const c_void,
    pub(crate) result: *mut c_void,
    pub(crate) count: c_longlong,
    pub(crate) given: *const c_longlong,
    pub(crate) given_at: *const c_longlong,
    pub(crate) taken: *const c_longlong,
    pub(crate) taken_at: *const c_longlong,
}

type Name = c_ulonglong;

/// `struct isthmus_vendor`.
#[repr(C)]
pub(crate) struct Functions {
    pub(crate) interface: c_uint,
    pub(crate) size: c_uint,
    pub(crate) version: unsafe extern "C" fn(*mut c_char, c_int) -> c_int,
    pub(crate) explain: unsafe extern "C" fn(c_int, *mut c_char, c_int) -> c_int,
    pub(crate) begin: unsafe extern "C" fn(c_int, *mut c_int, *mut c_int) -> c_int,
    pub(crate) end: unsafe extern "C" fn() -> c_int,
    pub(crate) abort: unsafe extern "C" fn(c_int) -> c_int,
    pub(crate) tags: unsafe extern "C" fn(*mut c_int) -> c_int,
    pub(crate) duplicate: unsafe extern "C" fn(Name, *mut Name) -> c_int,
    pub(crate) among: unsafe extern "C" fn(*const c_int, c_int, c_int, *mut Name) -> c_int,
    pub(crate) release: unsafe extern "C" fn(Name) -> c_int,
    pub(crate) send: unsafe extern "C" fn(Name, *const c_void, c_longlong, c_int, c_int) -> c_int,
    pub(crate) receive: unsafe extern "C" fn(Name, *mut c_void, c_longlong, c_int, c_int, *mut RawArrival) -> c_int,
    pub(crate) start_send:
        unsafe extern "C" fn(Name, *const c_void, c_longlong, c_int, c_int, c_int, *mut Name) -> c_int,
    pub(crate) start_receive: unsafe extern "C" fn(Name, *mut c_void, c_longlong, c_int, c_int, *mut Name) -> c_int,
    pub(crate) receive_soon:
        unsafe extern "C" fn(Name, *mut c_void, c_longlong, c_int, c_int, c_int, *mut Name, *mut RawArrival) -> c_int,
    pub(crate) test: unsafe extern "C" fn(*mut Name, *mut c_int, *mut RawArrival) -> c_int,
    pub(crate) cancel: unsafe extern "C" fn(Name) -> c_int,
    pub(crate) peek: unsafe extern "C" fn(Name, c_int, c_int, *mut c_int, *mut RawArrival) -> c_int,
    pub(crate) find: unsafe extern "C" fn(Name, c_int, c_int, *mut c_int, *mut RawArrival) -> c_int,
    pub(crate) take: unsafe extern "C" fn(Name, *mut c_void, c_longlong) -> c_int,
    pub(crate) start_take: unsafe extern "C" fn(Name, *mut c_void, c_longlong, *mut Name) -> c_int,
    pub(crate) barrier: unsafe extern "C" fn(Name) -> c_int,
    pub(crate) bcast: unsafe extern "C" fn(Name, *mut c_void, c_longlong, c_int) -> c_int,
    pub(crate) reduce: unsafe extern "C" fn(Name, *const c_void, *mut c_void, c_longlong, c_int, c_int, c_int) -> c_int,
    pub(crate) allreduce: unsafe extern "C" fn(Name, *const c_void, *mut c_void, c_longlong, c_int, c_int) -> c_int,
    pub(crate) allgather: unsafe extern "C" fn(Name, *const c_void, *mut c_void, c_longlong) -> c_int,
    pub(crate) alltoall: unsafe extern "C" fn(Name, *const c_void, *mut c_void, c_longlong) -> c_int,
    pub(crate) collective: unsafe extern "C" fn(Name, *const RawOperation) -> c_int,
    pub(crate) start_collective: unsafe extern "C" fn(Name, *const RawOperation, *mut Name) -> c_int,
}
