// SPDX-License-Identifier: Apache-2.0
//! MPI_Comm_accept and MPI_Comm_connect.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isthmus_abi::constants as abi;
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::joining::{self, Exchange};
use isthmus_core::world::World;
use isthmus_net::Contact;
use isthmus_wire::port::{Message, PortName};

use crate::door;
use crate::pipe::{Pipe, rest};

/// How long MPI_Comm_connect waits for MPI_Comm_accept, if the program does not say otherwise.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// How long it waits for a connection to one address.
const DIAL: Duration = Duration::from_secs(3);
/// How long who was accepted has to say that it is still there.
const STILL_THERE: Duration = Duration::from_secs(5);

/// Waits for a group that connects to a port of this process, and becomes an intercommunicator with it; collective over
/// `comm`. `port`: its name, asked for at the root only.
pub fn accept(world: &World, comm: &Comm, root: u32, port: impl FnOnce() -> Result<String>) -> Result<Arc<Comm>> {
    accept_while(world, comm, root, port, || Ok(()))
}

/// The same, as long as they can still come: what `awaited` says is looked at again and again.
pub fn accept_while(
    world: &World,
    comm: &Comm,
    root: u32,
    port: impl FnOnce() -> Result<String>,
    awaited: impl Fn() -> Result<()>,
) -> Result<Arc<Comm>> {
    joining::join(world, comm, root, || {
        let contact = welcome(world, &port()?, || all_live(world, comm).and_then(|()| awaited()))?;
        Ok(Box::new(Pipe { world, contact }) as Box<dyn Exchange>)
    })
}

/// Whoever of the own group is lost will not come: the others have given up.
fn all_live(world: &World, comm: &Comm) -> Result<()> {
    let lost = world.engine().lock().lost_of(&comm.channel().members);
    lost.map_or(Ok(()), |lost| Err((&lost).into()))
}

fn welcome(world: &World, port: &str, awaited: impl Fn() -> Result<()>) -> Result<Contact> {
    loop {
        let Some(mut contact) = door::next(port)? else {
            awaited()?;
            rest(world, None);
            continue;
        };
        contact.send(&Message::Welcome.encode());
        let mut pipe = Pipe { world, contact };
        // Who has given up meanwhile is not waited for.
        let answer = pipe.receive(Some(Instant::now() + STILL_THERE));
        if let Ok(Message::Here) = answer.and_then(|answer| decoded(&answer)) {
            pipe.contact.trust();
            return Ok(pipe.contact);
        }
    }
}

fn decoded(message: &[u8]) -> Result<Message> {
    Message::decode(message).map_err(|error| {
        Error::new(
            abi::MPI_ERR_PORT,
            format!("the process at the port answers as none of this version does: {error}"),
        )
    })
}

/// Becomes an intercommunicator with the group that accepts at a port; collective over `comm`. `port`: its name, asked
/// for at the root only; `patience`: how long it may take until somebody accepts.
pub fn connect(
    world: &World,
    comm: &Comm,
    root: u32,
    port: impl FnOnce() -> Result<(String, Duration)>,
) -> Result<Arc<Comm>> {
    joining::join(world, comm, root, || {
        let (name, patience) = port()?;
        let contact = greet(world, &name, patience)?;
        Ok(Box::new(Pipe { world, contact }) as Box<dyn Exchange>)
    })
}

/// Calls in a row that are cut off before they are answered: others crowd at the door.
const CALLS: u32 = 20;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(100);

fn greet(world: &World, text: &str, patience: Duration) -> Result<Contact> {
    let until = Instant::now() + patience;
    let name = PortName::decode(text).map_err(|why| {
        Error::of_argument(
            abi::MPI_ERR_PORT,
            "port_name",
            // Not the text: what was cut off or changed may have the secret.
            format!("is no name of a port: {why}"),
        )
    })?;
    for call in 1.. {
        let mut contact = dial(&name)?;
        contact.send(&Message::Greeting(name.secret).encode());
        let mut pipe = Pipe { world, contact };
        match pipe.receive(Some(until)) {
            Ok(answer) => return admitted(pipe.contact, &answer),
            Err(_) if Instant::now() >= until => break,
            Err(error) if call >= CALLS => {
                let why = error.message;
                return Err(Error::new(
                    abi::MPI_ERR_PORT,
                    format!("the process at the port does not answer: {why}; is it the one that gave the name?"),
                ));
            }
            Err(_) => {
                let again = Instant::now() + PAUSE;
                while Instant::now() < again {
                    rest(world, None);
                }
            }
        }
    }
    Err(Error::new(
        abi::MPI_ERR_PORT,
        format!(
            "nobody has called MPI_Comm_accept at the port for {} s (info key timeout)",
            patience.as_secs()
        ),
    ))
}

/// What the process at the port has answered.
fn admitted(mut contact: Contact, answer: &[u8]) -> Result<Contact> {
    let why = match decoded(answer)? {
        Message::Welcome => {
            contact.send(&Message::Here.encode());
            return Ok(contact);
        }
        Message::Refused(why) => format!("the process at the port refuses the connection: {why}"),
        Message::Here | Message::Greeting(_) => {
            "the process at the port answers out of turn; use one version of Isthmus in both jobs".to_owned()
        }
    };
    Err(Error::new(abi::MPI_ERR_PORT, why))
}

fn dial(name: &PortName) -> Result<Contact> {
    let mut tried = Vec::new();
    for &address in &name.addresses {
        let address = SocketAddr::new(address, name.port);
        match Contact::dial(address, name.fingerprint, DIAL) {
            Ok(contact) => return Ok(contact),
            Err(why) => tried.push(format!("{address}: {}", isthmus_wire::word::without_numbers(&why))),
        }
    }
    let tried = match tried.is_empty() {
        true => "the name has no address".to_owned(),
        false => tried.join("; "),
    };
    Err(Error::new(
        abi::MPI_ERR_PORT,
        format!(
            "cannot reach the process that opened the port ({tried}); is it still running, and reachable from here? \
             Connections through gateways or ssh are not there yet"
        ),
    ))
}
