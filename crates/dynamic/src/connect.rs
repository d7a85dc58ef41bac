// SPDX-License-Identifier: Apache-2.0
//! MPI_Comm_accept and MPI_Comm_connect.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use isthmus_abi::constants as abi;
use isthmus_core::comm::Comm;
use isthmus_core::error::{Error, Result};
use isthmus_core::joining::{self, Crossing, Door, Exchange};
use isthmus_core::world::World;
use isthmus_net::Contact;
use isthmus_wire::gate::{Key, MAX_ADDRESSES};
use isthmus_wire::port::{Message, PortName, Proof};

use crate::door;
use crate::pipe::{Pipe, Rests, lost};
use crate::takes::Accept;

/// How long MPI_Comm_connect waits for MPI_Comm_accept, if the program does not say otherwise.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// How long it waits for a connection to one address.
const DIAL: Duration = Duration::from_secs(3);
/// The same, and how many addresses are tried, where there is another way.
const BRIEFLY: Duration = Duration::from_millis(500);
const RACERS: usize = 4;
/// How long the process at the port has for its part of the handshake, by that other way: strangers crowd it.
const ANSWER: Duration = Duration::from_secs(10);
/// Who was accepted and has not said for so long that it is still there is no reason to let others wait.
const STILL_THERE: Duration = Duration::from_secs(5);
/// So many are waited for at the same time; beyond that nobody waits any longer for whoever came first.
const WELCOMED: usize = 16;

/// Waits for a group that connects to a port of this process, and becomes an intercommunicator with it; collective over
/// `comm`. `port`: its name, asked for at the root only, and perhaps whom it takes from now on.
pub fn accept(
    world: &World,
    comm: &Comm,
    root: u32,
    port: impl FnOnce() -> Result<(String, Option<Accept>)>,
) -> Result<Arc<Comm>> {
    let port = || {
        let (name, takes) = port()?;
        takes.map_or(Ok(()), |takes| door::take(world, &name, &takes))?;
        Ok(name)
    };
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
        let pipe = welcome(world, &port()?, || all_live(world, comm).and_then(|()| awaited()))?;
        Ok(Box::new(pipe) as Box<dyn Exchange>)
    })
}

/// Whoever of the own group is lost will not come: the others have given up.
fn all_live(world: &World, comm: &Comm) -> Result<()> {
    let lost = world.engine().lock().core.lost_of(&comm.channel().members);
    lost.map_or(Ok(()), |lost| Err((&lost).into()))
}

/// Who is the first to say, after it was told that it is accepted, that it is still there. It may have given up
/// meanwhile, or be slow, or wish nobody well: then others come in beside it, and who is not taken calls again.
fn welcome<'w>(world: &'w World, port: &str, awaited: impl Fn() -> Result<()>) -> Result<Pipe<'w>> {
    let mut welcomed: VecDeque<(Pipe<'w>, Instant)> = VecDeque::new();
    let mut rests = Rests::of(world);
    loop {
        // Who has gone, or speaks another language, is not waited for.
        for (mut pipe, since) in std::mem::take(&mut welcomed) {
            match pipe.look() {
                Ok(Some(answer)) => {
                    if matches!(decoded(&answer), Ok(Message::Here)) {
                        pipe.contact.trust();
                        return Ok(pipe);
                    }
                }
                Ok(None) => welcomed.push_back((pipe, since)),
                Err(_) => {}
            }
        }
        let last = welcomed.back().map(|(_, since)| since.elapsed());
        if last.is_none_or(|last| last >= STILL_THERE) {
            if let Some(mut contact) = door::next(port)? {
                contact.send(&Message::Welcome.encode());
                welcomed.push_back((Pipe::of(world, contact), Instant::now()));
                if welcomed.len() > WELCOMED {
                    welcomed.pop_front();
                }
                continue;
            }
        }
        awaited()?;
        match welcomed.back() {
            Some((pipe, _)) => rests.on(&pipe.contact),
            None => rests.briefly(),
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
        Ok(Box::new(greet(world, &name, patience)?) as Box<dyn Exchange>)
    })
}

/// Calls in a row that are cut off before they are answered: others crowd at the door.
const CALLS: u32 = 20;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(100);

fn greet<'w>(world: &'w World, text: &str, patience: Duration) -> Result<Pipe<'w>> {
    let until = Instant::now() + patience;
    let name = PortName::decode(text).map_err(|why| {
        Error::of_argument(
            abi::MPI_ERR_PORT,
            "port_name",
            // Not the text: what was cut off or changed may have the secret.
            format!("is not the name of a port: {why}"),
        )
    })?;
    let mut known = None;
    for call in 1.. {
        let mut pipe = dial(world, &name)?;
        // The handshake is under way meanwhile.
        let begun = pipe.contact.advance();
        let shown = known.get_or_insert_with(|| prove(world, &name));
        let proofs = shown.as_ref().map_or_else(|_| Vec::new(), Clone::clone);
        pipe.contact.send(&Message::Greeting(name.secret, proofs).encode());
        match begun.map_err(|why| lost(&why)).and_then(|()| pipe.receive(Some(until))) {
            Ok(answer) => match admitted(pipe, &answer, shown.as_ref().err())? {
                Some(pipe) => return Ok(pipe),
                // It was too slow for that, and others have come first.
                None if Instant::now() >= until => break,
                None => {}
            },
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
                let mut rests = Rests::of(world);
                while Instant::now() < again {
                    rests.briefly();
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

/// What shows at the port that this job is its user's. An error: why there is nothing.
fn prove(world: &World, name: &PortName) -> std::result::Result<Vec<Proof>, String> {
    match joining::reacher(world).filter(|_| name.proofs) {
        Some(reacher) => reacher.prove(&name.secret, &name.fingerprint, &[]),
        None => Ok(Vec::new()),
    }
}

/// What the process at the port has answered. `keyless`: why nothing was proven. `None`: it has taken another one.
fn admitted<'w>(mut pipe: Pipe<'w>, answer: &[u8], keyless: Option<&String>) -> Result<Option<Pipe<'w>>> {
    let why = match decoded(answer)? {
        Message::Welcome => {
            pipe.contact.send(&Message::Here.encode());
            // Whoever is taken hears at once from the other leader.
            return Ok(pipe.hear_first().is_ok().then_some(pipe));
        }
        Message::Refused(why) => format!("the process at the port refuses the connection: {why}"),
        Message::NoKey => {
            let why = keyless.map_or_else(String::new, |why| format!(" ({why})"));
            format!(
                "the port takes only jobs of the user who has opened it, and this job has no key of that user{why}. \
                 If that is you, start both jobs with isthmus run --meet HOST, or copy the key: see 'Who may connect' \
                 in docs/client-server.md. Otherwise the port must be opened for others (info key isthmus_accept, or \
                 ISTHMUS_ACCEPT)"
            )
        }
        Message::Here | Message::Greeting(..) => {
            "the process at the port answers out of turn; use one version of Isthmus in both jobs".to_owned()
        }
    };
    Err(Error::new(abi::MPI_ERR_PORT, why))
}

/// Directly, or through the host at which both jobs meet others: whichever is there first.
fn dial<'w>(world: &'w World, name: &PortName) -> Result<Pipe<'w>> {
    let meets = name.entry.as_ref().zip(joining::reacher(world));
    let mut tried = Vec::new();
    let mut directly = name.addresses.as_slice();
    if let Some((entry, reacher)) = meets {
        // A port that leads through the host is there at once, and says nothing of whether somebody is at its end.
        let racing = race(name);
        match reacher.cross(std::slice::from_ref(entry)) {
            Err(why) => tried.push(why),
            Ok(by) => match through(world, name, by, &racing) {
                Ok(pipe) => return Ok(pipe),
                Err(why) => {
                    tried.push(why);
                    // Whoever is not at the end of that way has hardly stayed here.
                    if let Ok(contact) = racing.recv() {
                        return Ok(Pipe::of(world, contact));
                    }
                    directly = &[];
                }
            },
        }
    }
    // Addresses behind a firewall do not answer at all; where there is another way nobody waits for them for long.
    let patience = if name.gate.is_some() { BRIEFLY } else { DIAL };
    let doors = behind(name).into_iter().filter(|_| meets.is_none());
    let all = directly
        .iter()
        .map(|ip| (SocketAddr::new(*ip, name.port), None, patience));
    for (address, key, patience) in all.chain(doors) {
        match dialled(name, address, key, patience) {
            Ok(contact) => return Ok(Pipe::of(world, contact)),
            Err(why) => tried.push(format!("{address}: {}", isthmus_wire::word::without_numbers(&why))),
        }
    }
    match out(world, name) {
        Some(Ok(contact)) => return Ok(Pipe::of(world, contact)),
        Some(Err(why)) => tried.push(format!("through the gateway of this site: {why}")),
        None => {}
    }
    let tried = match tried.is_empty() {
        true => "the name has no address".to_owned(),
        false => tried.join("; "),
    };
    let meet = match &name.entry {
        Some(_) => "",
        None => " Where no connection can be made directly, start both jobs with isthmus run --meet HOST",
    };
    Err(Error::new(
        abi::MPI_ERR_PORT,
        format!(
            "cannot reach the process that opened the port ({tried}); is it still running, and reachable from here?{meet}"
        ),
    ))
}

/// An address, what is knocked with there, and how long its answer is waited for.
type Attempt = (SocketAddr, Option<Key>, Duration);

/// Doors of the gateway behind which the process is.
fn behind(name: &PortName) -> Vec<Attempt> {
    let gates = name.gate.iter();
    gates
        .flat_map(|gate| gate.doors().map(|door| (door, Some(gate.key), DIAL)))
        .collect()
}

fn dialled(
    name: &PortName,
    address: SocketAddr,
    key: Option<Key>,
    patience: Duration,
) -> std::result::Result<Contact, String> {
    match key {
        Some(key) => Contact::dial_behind(address, &key, name.fingerprint, patience),
        None => Contact::dial(address, name.fingerprint, patience),
    }
}

/// Out through the gateway of this site, where only that may leave it; `None`: it has none.
fn out(world: &World, name: &PortName) -> Option<std::result::Result<Contact, String>> {
    let reacher = joining::reacher(world)?;
    let passage = match &name.gate {
        Some(gate) => reacher.pass(gate.doors().collect(), Some(gate.key)),
        None => {
            let all = name.addresses.iter().map(|ip| SocketAddr::new(*ip, name.port));
            reacher.pass(all.take(MAX_ADDRESSES).collect(), None)
        }
    }?;
    let doors: Vec<_> = passage.doors.into_iter().map(|(door, key)| (door, Some(key))).collect();
    Some(at(name, &doors, ANSWER))
}

/// The first of a few addresses that answers, tried by a thread.
fn race(name: &PortName) -> Receiver<Contact> {
    let (tell, hear) = mpsc::channel();
    let name = name.clone();
    let dial = move || {
        let all = name.addresses.iter().take(RACERS);
        let all = all.map(|ip| (SocketAddr::new(*ip, name.port), None, BRIEFLY));
        let mut all = all.chain(behind(&name));
        let reached = all.find_map(|(address, key, patience)| dialled(&name, address, key, patience).ok());
        // Nobody hears it once the other way has won.
        if let Some(contact) = reached {
            drop(tell.send(contact));
        }
    };
    // Without a thread there is the other way.
    drop(isthmus_lock::spawn_quiet("isthmus-dial", dial));
    hear
}

/// The first of these doors where somebody answers.
fn at(name: &PortName, doors: &[Door], patience: Duration) -> std::result::Result<Contact, String> {
    let mut refusal = "no way leads there".to_owned();
    for (door, key) in doors {
        match dialled(name, *door, *key, patience) {
            Ok(contact) => return Ok(contact),
            Err(why) => refusal = why,
        }
    }
    Err(refusal)
}

/// Through the host, unless a direct connection is there before the other end has answered.
fn through<'w>(
    world: &'w World,
    name: &PortName,
    by: Crossing,
    racing: &Receiver<Contact>,
) -> std::result::Result<Pipe<'w>, String> {
    let mut contact = at(name, by.doors.first().map_or(&[], Vec::as_slice), DIAL)?;
    let until = Instant::now() + ANSWER;
    let mut rests = Rests::of(world);
    loop {
        if let Ok(direct) = racing.try_recv() {
            return Ok(Pipe::of(world, direct));
        }
        // Nothing is said before the handshake is over; the end of the connection is seen here.
        let heard = contact.advance().and_then(|()| contact.receive());
        let why = match heard {
            Ok(_) if !contact.is_handshaking() => {
                return Ok(Pipe {
                    _held: Some(by.held),
                    ..Pipe::of(world, contact)
                });
            }
            Ok(_) if Instant::now() < until => {
                rests.on(&contact);
                continue;
            }
            Ok(_) => "nobody answers at the other end of the way".to_owned(),
            Err(why) => why,
        };
        let host = name.entry.as_ref().map_or("", |entry| &entry.host);
        return Err(format!("through '{host}': {why}"));
    }
}
