// SPDX-License-Identifier: Apache-2.0
//! MPI_Win_shared_query, as MPI 4.1 defines it: where this process finds the memory of others.

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;

use crate::window::{Flavor, Window};

/// The part of a process, as this one finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes; 0: it has none, or this process cannot load from it and store to it.
    pub size: u64,
    /// Bytes of a displacement.
    pub unit: u64,
    /// Where it begins; 0: nowhere here.
    pub base: usize,
}

impl Window {
    /// The part of a process; MPI_PROC_NULL: the first one that has any bytes.
    pub fn segment(&self, rank: i32) -> Result<Segment> {
        if self.flavor == Flavor::Dynamic {
            fail!(
                abi::MPI_ERR_RMA_FLAVOR,
                argument("win"),
                "was made by MPI_Win_create_dynamic, so it has no memory that could be asked for"
            );
        }
        let rank = match self.target("rank", rank)? {
            Some(rank) => rank,
            None => {
                let has_any = |rank: &u32| self.parts.get(*rank).size > 0;
                (0..self.comm.size()).find(has_any).unwrap_or(0)
            }
        };
        Ok(place(self, rank))
    }
}

fn place(window: &Window, rank: u32) -> Segment {
    let part = window.parts.get(rank);
    let base = match window.store.start().filter(|_| window.flavor.allocates()) {
        _ if window.is_far(rank) => None,
        Some(all) => Some(all.wrapping_add(part.at as usize)),
        None => (rank == window.comm.rank()).then(|| window.own.address()),
    };
    // Who has no bytes has no place either, as with MPICH.
    let base = base.filter(|_| part.size > 0);
    Segment {
        size: base.map_or(0, |_| part.size),
        unit: part.unit,
        base: base.unwrap_or(0),
    }
}
