// SPDX-License-Identifier: Apache-2.0
//! Datatypes (MPI 5.0 chapter 5).

use std::sync::OnceLock;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::{Basic, Datatype};

use crate::handle::{Kind, Table};

static DATATYPES: Table<Datatype> = Table::new(Kind::Datatype);

/// Number of handle values that can be predefined datatypes.
const PREDEFINED: usize = 1024;

fn predefined(handle: usize) -> Option<&'static Datatype> {
    static ALL: OnceLock<Box<[Option<Datatype>]>> = OnceLock::new();
    ALL.get_or_init(|| (0..PREDEFINED as u32).map(|h| Basic::from_handle(h).map(Datatype::of)).collect())
        .get(handle)?
        .as_ref()
}

/// The datatype of a handle.
#[inline]
pub(crate) fn find(handle: h::Datatype) -> Result<&'static Datatype> {
    let found = if handle.0 < isthmus_abi::PREDEFINED_HANDLES_END { predefined(handle.0) } else { DATATYPES.get(handle.0) };
    match found {
        Some(datatype) => Ok(datatype),
        None if handle == h::MPI_DATATYPE_NULL => fail!(abi::MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL"),
        None => fail!(abi::MPI_ERR_TYPE, "{:#x} is not the handle of a datatype", handle.0),
    }
}
