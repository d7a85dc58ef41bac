// SPDX-License-Identifier: Apache-2.0
//! Memory at a target.

use std::sync::Arc;

use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::Reach;

/// Memory of a process, as this one reaches it.
#[derive(Clone)]
pub(crate) enum Spot {
    /// It is mapped here. The origin is where the displacement leads.
    Here(WriteMemory),
    /// It is copied. The address is where the displacement leads.
    There(Arc<dyn Reach>, u64),
    /// It is on another node. Bytes from the beginning of the process's part, or the address, to where the displacement
    /// leads.
    Far(i64),
}

/// Where an operation goes.
pub(crate) struct Target {
    pub(crate) rank: u32,
    pub(crate) spot: Spot,
    /// Bytes that the operation may touch, from the beginning of the process's part, or as addresses: equal at all who
    /// come there.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Target {
    /// Where it is on another node, in bytes.
    pub(crate) fn place(&self) -> i64 {
        match self.spot {
            Spot::Far(at) => at,
            _ => 0,
        }
    }
}
