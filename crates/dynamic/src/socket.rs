// SPDX-License-Identifier: Apache-2.0
//! MPI_Comm_join: two processes that have a socket become an intercommunicator.
//!
//! Each sends a number drawn by chance and the name of a port of its own over the socket. The one with the higher
//! number accepts, the other one connects; the socket is as quiet afterwards as before.
//!
//! ```text
//!  number: 16 bytes | length of the name: u16 | name
//! ```

use std::io::{Read, Write};
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_boot::abroad;
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::world::World;
use isthmus_wire::port::MAX_NAME;

use crate::connect::PATIENCE;
use crate::{Accept, accept, close_port, connect, open_port};

/// The process at the other end of the stream, which both ends leave quiet, and this one; `own`: MPI_COMM_SELF. Who
/// reads the socket on its way knows the name: so it has to be one whom `takes` takes.
pub fn join(world: &World, own: &Comm, stream: &mut (impl Read + Write), takes: &Accept) -> Result<Arc<Comm>> {
    let port = open_port(world, takes)?;
    let joined = meet(world, own, stream, &port);
    // It is used once.
    _ = close_port(&port);
    joined
}

fn meet(world: &World, own: &Comm, stream: &mut (impl Read + Write), port: &str) -> Result<Arc<Comm>> {
    let cannot = |error: std::io::Error| {
        Error::of_argument(
            abi::MPI_ERR_ARG,
            "fd",
            format!("cannot carry the first words of the two processes: {error}; it has to be a connected socket"),
        )
    };
    let mine: [u8; 16] = abroad::random().map_err(|why| Error::new(abi::MPI_ERR_OTHER, why))?;
    let mut words = mine.to_vec();
    words.extend((port.len() as u16).to_le_bytes());
    words.extend(port.bytes());
    stream.write_all(&words).and_then(|()| stream.flush()).map_err(cannot)?;
    let (mut theirs, mut length) = ([0; 16], [0; 2]);
    stream.read_exact(&mut theirs).map_err(cannot)?;
    stream.read_exact(&mut length).map_err(cannot)?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > MAX_NAME || theirs == mine {
        return Err(Error::of_argument(
            abi::MPI_ERR_ARG,
            "fd",
            "brings other words than MPI_Comm_join of this version: nothing else may be on its way in the socket",
        ));
    }
    let mut name = vec![0; length];
    stream.read_exact(&mut name).map_err(cannot)?;
    let name = String::from_utf8_lossy(&name).into_owned();
    match mine > theirs {
        true => accept(world, own, 0, || Ok((port.to_owned(), None))),
        false => connect(world, own, 0, || Ok((name, PATIENCE))),
    }
}
