// SPDX-License-Identifier: Apache-2.0
//! What a handler is called with, and what it may do.

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_datatype::raw::ReadMemory;
use isthmus_engine::Peer;
use isthmus_wire::requests::{MAX_BYTES, TARGET_BYTES, Target};

/// What a handler is called with.
pub struct Call {
    /// Who has sent the request.
    pub source: Peer,
    /// What came with it.
    pub data: Vec<u8>,
    /// The memory that it is about, if it was sent to a global pointer.
    pub target: Option<Target>,
    /// Whether the sender waits for the end.
    pub is_awaited: bool,
    /// What the sender gets.
    pub reply: Option<Vec<u8>>,
}

/// A copy of data of the program, which are not too many for a request or a reply.
pub fn copy(data: &ReadMemory, bytes: u64) -> Result<Vec<u8>> {
    let most = MAX_BYTES - TARGET_BYTES;
    if bytes > most as u64 {
        fail!(
            abi::MPI_ERR_COUNT,
            argument("bytes"),
            "is {bytes}, a request or reply has at most {most}; put longer data into a window and send a global pointer \
             to it"
        );
    }
    let mut copy = vec![0; bytes as usize];
    data.read(0, &mut copy);
    Ok(copy)
}

pub(crate) fn in_handler(function: &str) -> Error {
    Error::new(
        abi::MPI_ERR_OTHER,
        format!(
            "{function} is called in a handler, which may only send requests and its reply, and ask what it was called \
             with"
        ),
    )
}
