// SPDX-License-Identifier: Apache-2.0
//! MPI_Comm_join: two processes that have a socket become an intercommunicator.
//!
//! Each sends a number drawn by chance and the name of a port of its own over the socket. The one with the higher
//! number accepts, the other one connects; the socket is as quiet afterwards as before. Who waits for the other one's
//! words makes progress meanwhile: what that one does first may need messages of this one.
//!
//! ```text
//!  number: 16 bytes | length of the name: u16 | name
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_boot::abroad;
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::world::World;
use isthmus_wire::port::MAX_NAME;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketType, sockopt};

use crate::connect::PATIENCE;
use crate::pipe::Rests;
use crate::{Accept, accept_while, close_port, connect, open_port};

/// The process at the other end of the stream, which both ends leave quiet, and this one; `own`: MPI_COMM_SELF. Calls
/// on the stream do not wait. Who reads the socket on its way knows the name: so it has to be one whom `takes` takes.
pub fn join(world: &World, own: &Comm, stream: &mut (impl Read + Write + AsFd), takes: &Accept) -> Result<Arc<Comm>> {
    match sockopt::socket_type(&*stream) {
        Ok(SocketType::STREAM) => {}
        Ok(_) => {
            return Err(unfit(
                "is a socket of datagrams; it has to be of the type SOCK_STREAM".to_owned(),
            ));
        }
        Err(error) => return Err(cannot(&error.into())),
    }
    let port = open_port(world, takes)?;
    let joined = meet(world, own, stream, &port);
    // It is used once.
    _ = close_port(&port);
    joined
}

fn unfit(why: String) -> Error {
    Error::of_argument(abi::MPI_ERR_ARG, "fd", why)
}

fn cannot(error: &io::Error) -> Error {
    let why = match error.kind() {
        ErrorKind::UnexpectedEof => "the other end has closed it".to_owned(),
        _ => isthmus_wire::word::without_numbers(&error.to_string()),
    };
    unfit(format!(
        "cannot carry the first words of the two processes: {why}; it has to be a connected socket"
    ))
}

/// One end of the stream, and how it is waited for.
struct Talk<'t, 'w, S> {
    stream: &'t mut S,
    rests: Rests<'w>,
}

impl<S: Read + Write + AsFd> Talk<'_, '_, S> {
    fn say(&mut self, words: &[u8]) -> io::Result<()> {
        let mut said = 0;
        while said < words.len() {
            let some = self.stream.write(&words[said..]);
            said += self.or_wait(some, PollFlags::OUT)?;
        }
        Ok(())
    }

    fn hear(&mut self, words: &mut [u8]) -> io::Result<()> {
        let mut heard = 0;
        while heard < words.len() {
            let some = self.stream.read(&mut words[heard..]);
            heard += self.or_wait(some, PollFlags::IN)?;
        }
        Ok(())
    }

    /// How many bytes have passed: none yet, perhaps, after a while.
    fn or_wait(&mut self, passed: io::Result<usize>, can: PollFlags) -> io::Result<usize> {
        match passed {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(some) => Ok(some),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.rests.until(self.stream, can);
                Ok(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// Whether the other process may still connect: without it the socket is closed.
fn still_there(stream: &impl AsFd) -> Result<()> {
    let mut word = [0];
    match rustix::net::recv(stream, &mut word, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(cannot(&ErrorKind::UnexpectedEof.into())),
        // What its program writes when it has met this one already.
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(cannot(&error.into())),
    }
}

fn meet(world: &World, own: &Comm, stream: &mut (impl Read + Write + AsFd), port: &str) -> Result<Arc<Comm>> {
    let mine: [u8; 16] = abroad::random().map_err(|why| Error::new(abi::MPI_ERR_OTHER, why))?;
    let mut words = mine.to_vec();
    words.extend((port.len() as u16).to_le_bytes());
    words.extend(port.bytes());
    let rests = Rests::of(world);
    let mut talk = Talk { stream, rests };
    let (mut theirs, mut length) = ([0; 16], [0; 2]);
    let heard = talk
        .say(&words)
        .and_then(|()| talk.hear(&mut theirs))
        .and_then(|()| talk.hear(&mut length));
    heard.map_err(|error| cannot(&error))?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > MAX_NAME || theirs == mine {
        let why = "brings other words than MPI_Comm_join of this version: nothing else may be on its way in the socket";
        return Err(unfit(why.to_owned()));
    }
    let mut name = vec![0; length];
    talk.hear(&mut name).map_err(|error| cannot(&error))?;
    drop(talk);
    let name = String::from_utf8_lossy(&name).into_owned();
    match mine > theirs {
        true => accept_while(world, own, 0, || Ok(port.to_owned()), || still_there(stream)),
        false => connect(world, own, 0, || Ok((name, PATIENCE))),
    }
}
