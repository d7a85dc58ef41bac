// SPDX-License-Identifier: Apache-2.0
//! What the agent and the guards of processes say to each other, where the machine's own MPI starts processes.
//!
//! The agent runs the MPI's own `mpiexec`, which starts one *guard* per process: `isthmus` itself. A guard starts the process as its
//! child, gives the agent the ends of its pipes, and tells how it ended. Over a Unix stream socket, one connection per guard:
//! ```text
//!  guard                                     agent
//!     | Rank (rank u32)                --->    |      in the job of the machine's MPI: the index in the subjob
//!     |    <---  Orders (token 16, input u8)  |      what the process is started with
//!     | Started (pid u32) + descriptors --->   |      standard output, standard error, and if asked for standard input
//!     | Ended (how u8, number u32)     --->    |      0 exit status, 1 signal
//!     |    <---  (the connection closes)       |      the agent has taken note: the guard ends as the process did
//! ```
//! Each message has the fixed length of its fields and nothing else.

use crate::grid::Exit;

/// Bytes of [`Orders`].
pub const ORDERS_BYTES: usize = 17;
/// Bytes of what a guard says last.
pub const ENDED_BYTES: usize = 5;
/// Most descriptors with a message.
pub const MOST_DESCRIPTORS: usize = 3;

/// What a guard's process is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Its one-time token.
    pub token: [u8; 16],
    /// Whether input will come for it.
    pub input: bool,
}

impl Orders {
    /// As it goes on the stream.
    pub fn encode(&self) -> [u8; ORDERS_BYTES] {
        let mut bytes = [0; ORDERS_BYTES];
        bytes[..16].copy_from_slice(&self.token);
        bytes[16] = self.input.into();
        bytes
    }

    /// Reads it.
    pub fn decode(bytes: &[u8; ORDERS_BYTES]) -> Self {
        let mut token = [0; 16];
        token.copy_from_slice(&bytes[..16]);
        Self {
            token,
            input: bytes[16] != 0,
        }
    }
}

/// How a guard's process ended, as it goes on the stream.
pub fn encode_ended(exit: Exit) -> [u8; ENDED_BYTES] {
    let (how, number) = match exit {
        Exit::Status(status) => (0, status),
        Exit::Signal(signal) => (1, signal),
    };
    let mut bytes = [how; ENDED_BYTES];
    bytes[1..].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Reads it; `None` when it is none.
pub fn decode_ended(bytes: &[u8; ENDED_BYTES]) -> Option<Exit> {
    let number = u32::from_le_bytes(*bytes[1..].first_chunk()?);
    match bytes[0] {
        0 => Some(Exit::Status(number)),
        1 => Some(Exit::Signal(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_guards_and_agents_say_survives() {
        let orders = Orders {
            token: [7; 16],
            input: true,
        };
        assert_eq!(Orders::decode(&orders.encode()), orders);
        for exit in [Exit::Status(3), Exit::Signal(9)] {
            assert_eq!(decode_ended(&encode_ended(exit)), Some(exit));
        }
        assert_eq!(decode_ended(&[2, 0, 0, 0, 0]), None);
    }
}
