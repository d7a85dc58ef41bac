// SPDX-License-Identifier: Apache-2.0
//! What an agent and the guards of processes say to each other, where the vendor MPI starts processes.
//!
//! One agent of a subjob runs the MPI's own `mpiexec`, which starts one *guard* per process: `isthmus` itself. A guard
//! asks the agent of its own node, which has all that the process needs: what that `mpiexec` carries to other nodes
//! differs from MPI to MPI. It starts the process as its child, gives the agent the ends of its pipes, and tells how it
//! ended. Over a Unix stream socket with an abstract name ([`door`]), one connection per guard; both ends look whether
//! the other one is of the same user:
//! ```text
//!  guard                                     agent
//!     | Rank (rank u32)                --->    |      in the job of the machine's MPI, on all its nodes: the index in the subjob
//!     |    <---  Orders | Refused             |      what the process is started with, or why not
//!     | Started (pid u32) + descriptors --->   |      standard output, standard error, and if asked for standard input
//!     | Ended (how u8, number u32)     --->    |      0 exit status, 1 signal
//!     |    <---  (the connection closes)       |      the agent has taken note: the guard ends as the process did
//! ```
//! Answers are messages as in [`crate::codec`]; the other messages have the fixed length of their fields and nothing
//! else. When the connection closes earlier, the agent is gone, and the guard kills its process.
//!
//! | answer | kind | fields |
//! |---|---|---|
//! | `Orders` | 1 | token 16, index u32, input u8, rendezvous bytes, program bytes, name text, arguments \[text\], environment \[text bytes\], hidden \[text\], directory bytes |
//! | `Refused` | 2 | why text |

use crate::codec::{DecodeError, Reader, Writer};
use crate::grid::Exit;

/// Longest answer, bytes: the arguments and variables of a process. More than Linux takes for one; an agent sends no
/// longer one, and says why.
pub const MAX_ANSWER: usize = 8 << 20;
/// Bytes of what a guard says last.
pub const ENDED_BYTES: usize = 5;
/// Most descriptors with a message.
pub const MAX_DESCRIPTORS: usize = 3;

/// Abstract name of the socket at which an agent awaits the guards of a subjob: the same on all its nodes.
pub fn door(job: &str, subjob: u32) -> String {
    format!("{job}.{subjob}.guards")
}

/// What a guard's process is started with. Paths and values of variables are bytes, as the system has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Its one-time token.
    pub token: [u8; 16],
    /// Its index among the processes of this agent.
    pub index: u32,
    /// Whether input will come for it.
    pub input: bool,
    /// Path of the agent's socket for processes.
    pub rendezvous: Vec<u8>,
    /// Path of the program.
    pub program: Vec<u8>,
    /// What the program sees as its own name.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Variables to set.
    pub environment: Vec<(String, Vec<u8>)>,
    /// Variables to remove.
    pub hidden: Vec<String>,
    /// Working directory.
    pub directory: Vec<u8>,
}

/// What an agent answers a guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Start this.
    Orders(Box<Orders>),
    /// Start nothing, for this reason.
    Refused(String),
}

impl Answer {
    /// As it goes on the stream, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let orders = match self {
            Self::Orders(orders) => orders,
            Self::Refused(why) => {
                let mut w = Writer::new(2);
                w.text(why);
                return w.into_framed();
            }
        };
        let mut w = Writer::new(1);
        for byte in orders.token {
            w.u8(byte);
        }
        w.u32(orders.index)
            .u8(orders.input.into())
            .bytes(&orders.rendezvous)
            .bytes(&orders.program)
            .text(&orders.name);
        let text = |w: &mut Writer, text: &String| {
            w.text(text);
        };
        w.list(&orders.arguments, text);
        w.list(&orders.environment, |w, (name, value)| {
            w.text(name).bytes(value);
        });
        w.list(&orders.hidden, text).bytes(&orders.directory);
        w.into_framed()
    }

    /// Reads a body (without length prefix).
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let answer = match r.u8("kind")? {
            1 => Self::Orders(Box::new(Orders {
                token: r.fixed("token")?,
                index: r.u32("index")?,
                input: r.u8("input")? != 0,
                rendezvous: r.bytes("rendezvous")?,
                program: r.bytes("program")?,
                name: r.text("name")?,
                arguments: r.list("arguments", |r| r.text("argument"))?,
                environment: r.list("environment", |r| Ok((r.text("name")?, r.bytes("value")?)))?,
                hidden: r.list("hidden", |r| r.text("name"))?,
                directory: r.bytes("directory")?,
            })),
            2 => Self::Refused(r.text("why")?),
            other => {
                return Err(DecodeError::Invalid {
                    field: "kind",
                    value: u64::from(other),
                });
            }
        };
        r.end()?;
        Ok(answer)
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
    Exit::read(&mut Reader::new(bytes)).ok()
}

/// For fuzzing: whatever is an answer is encoded as it came.
pub fn fuzz(body: &[u8]) {
    if let Ok(answer) = Answer::decode(body) {
        assert_eq!(Answer::decode(&answer.encode()[4..]), Ok(answer));
    }
    if let Some(exit) = body.first_chunk().and_then(decode_ended) {
        assert_eq!(Some(&encode_ended(exit)), body.first_chunk());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_guards_and_agents_say_survives() {
        let orders = Orders {
            token: [7; 16],
            index: 3,
            input: true,
            rendezvous: b"/tmp/r".to_vec(),
            program: b"/bin/\xff".to_vec(),
            name: "p".into(),
            arguments: vec!["a b".into(), String::new()],
            environment: vec![("A".into(), b"\xfe=".to_vec())],
            hidden: vec!["B".into()],
            directory: b"/".to_vec(),
        };
        for answer in [Answer::Orders(Box::new(orders)), Answer::Refused("why".into())] {
            let bytes = answer.encode();
            assert_eq!(Answer::decode(&bytes[4..]), Ok(answer));
            for length in 0..bytes.len() - 4 {
                assert!(Answer::decode(&bytes[4..4 + length]).is_err());
            }
            fuzz(&bytes[4..]);
        }
        for exit in [Exit::Status(3), Exit::Signal(9)] {
            assert_eq!(decode_ended(&encode_ended(exit)), Some(exit));
        }
        assert_eq!(decode_ended(&[2, 0, 0, 0, 0]), None);
    }
}
