// SPDX-License-Identifier: Apache-2.0
//! Windows (MPI 5.0 chapter 12).
//!
//! * this file: objects behind the handles; `handlers`: their error handlers;
//! * `create`: making and freeing, hints, attached memory; `cache`: names and attributes;
//! * `pointer`: global pointers to their memory;
//! * `operate`: put, get, accumulate and their kin; `synchronize`: fences, posts, locks, flushes.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::attribute::Cache;
use isthmus_core::errhandler::ErrorHandler;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_rma::Window;

use crate::handle::{Kind, Table};

mod cache;
mod create;
mod handlers;
mod operate;
mod pointer;
mod synchronize;

/// What a handle names. The table has room for more of these than there are windows.
struct Object {
    window: Arc<Window>,
    more: Box<More>,
}

struct More {
    handler: Mutex<ErrorHandler>,
    /// Memory that is given back when the window is freed.
    allocated: Option<usize>,
    cached: OnceLock<Box<Cached>>,
}

/// What a program gives to few windows, or asks of few.
struct Cached {
    attributes: Cache,
    values: Values,
}

/// Values of the predefined attributes; a program gets pointers to them.
struct Values {
    size: isthmus_abi::Aint,
    unit: c_int,
    flavor: c_int,
    model: c_int,
}

impl Object {
    fn new(window: Arc<Window>, allocated: Option<usize>) -> Self {
        Self {
            window,
            more: Box::new(More {
                handler: Mutex::new(ErrorHandler::Fatal),
                allocated,
                cached: OnceLock::new(),
            }),
        }
    }

    fn cached(&self) -> &Cached {
        let window = &self.window;
        self.more.cached.get_or_init(|| {
            Box::new(Cached {
                attributes: Cache::default(),
                values: Values {
                    size: window.size() as isthmus_abi::Aint,
                    unit: window.unit().try_into().unwrap_or(c_int::MAX),
                    flavor: window.flavor().value(),
                    model: abi::MPI_WIN_UNIFIED,
                },
            })
        })
    }
}

static WINDOWS: Table<Object> = Table::new(Kind::Win);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
fn find(handle: h::Win) -> Result<&'static Object> {
    match WINDOWS.get(handle.0) {
        Some(object) => Ok(object),
        None => not_a_window(handle),
    }
}

#[cold]
fn not_a_window(handle: h::Win) -> Result<&'static Object> {
    if handle == h::MPI_WIN_NULL {
        fail!(abi::MPI_ERR_WIN, argument("win"), "is MPI_WIN_NULL");
    }
    fail!(
        abi::MPI_ERR_WIN,
        argument("win"),
        "is {:#x}, which is not the handle of a window",
        handle.0
    )
}
