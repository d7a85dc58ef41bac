// SPDX-License-Identifier: Apache-2.0
//! Packing into bytes (MPI 5.0 section 5.2).

use isthmus_abi::handles as h;
use isthmus_core::error::Result;
use isthmus_datatype::Packer;

use crate::c::{Source, count};

/// The packed bytes of a buffer.
pub(crate) fn packed(buffer: Source, n: i64, datatype: h::Datatype) -> Result<Vec<u8>> {
    let n = count("count", n)?;
    let ty = crate::datatype::find(datatype)?;
    let (low, high) = ty.window(n)?;
    let mut packer = Packer::new(ty, n, buffer.memory(low as i64, high as i64))?;
    let mut bytes = vec![0; packer.size() as usize];
    packer.pack(&mut bytes);
    Ok(bytes)
}
