// SPDX-License-Identifier: Apache-2.0
//! What a partitioned request has beside what starts it (MPI 5.0 chapter 4).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_engine::Request;

use crate::process;

/// The fixed part of a partitioned request.
#[derive(Clone, Copy)]
pub(crate) struct Partitioned {
    number: u32,
    sends: bool,
    /// The engine's end; `None`: MPI_PROC_NULL.
    end: Option<Request>,
}

impl Partitioned {
    pub(crate) fn sending(number: u32, outlet: Request) -> Self {
        Self {
            number,
            sends: true,
            end: Some(outlet),
        }
    }

    pub(crate) fn receiving(number: u32, inlet: Request) -> Self {
        Self {
            number,
            sends: false,
            end: Some(inlet),
        }
    }

    pub(crate) fn to_nobody(number: u32) -> Self {
        Self {
            number,
            sends: true,
            end: None,
        }
    }

    pub(crate) fn from_nobody(number: u32) -> Self {
        Self {
            number,
            sends: false,
            end: None,
        }
    }

    pub(crate) fn is_send(&self) -> bool {
        self.sends
    }

    /// A partition argument.
    pub(crate) fn partition(&self, partition: c_int) -> Result<u32> {
        match u32::try_from(partition) {
            Ok(p) if p < self.number => Ok(p),
            _ => fail!(
                abi::MPI_ERR_ARG,
                argument("partition"),
                "is {partition}, but the request has {} partitions, from 0 on",
                self.number
            ),
        }
    }

    /// The request is freed.
    pub(super) fn release(&self) -> Result<()> {
        if let Some(end) = self.end {
            process::world()?.engine().lock().release(end);
        }
        Ok(())
    }
}
