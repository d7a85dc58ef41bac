// SPDX-License-Identifier: Apache-2.0
//! The door of a process: one listening socket for all its ports, and a thread that sees to those who come.
//!
//! ```text
//!  comes -> TLS -> greeting --the secret of an open port, and a key--> waits for MPI_Comm_accept on that port
//!             |          \--any other--> is told so, and goes
//!             \--4 s, or it has said nothing, and somebody newer needs its place--> goes
//! ```
//! So strangers are answered whether or not the program is in a call of MPI, and none of them holds up another one
//! for long.
//!
//! Whoever has begun is not sent away for others at once: where more come than there are places, all of them would
//! begin again and again, and none come to an end. They wait in the system's queue.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use isthmus_abi::constants as abi;
use isthmus_boot::abroad;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::joining::{Held, reacher};
use isthmus_core::world::World;
use isthmus_identity::Pinned;
use isthmus_net::{Contact, Contacts};
use isthmus_wire::entry::Entry;
use isthmus_wire::gate::Gate;
use isthmus_wire::port::{Message, PortName, Proof};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::takes::{Accept, Takes};

/// Connections that have not said yet to which port they want.
pub(crate) const MAX_STRANGERS: usize = 256;
/// How long they have for that.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(4);
/// How long they keep their places for certain, where others wait for one: those that have said something, and the
/// others. Who connects says something at once.
const BEGUN: Duration = Duration::from_secs(1);
const SILENT: Duration = Duration::from_millis(250);
/// Connections that wait for MPI_Comm_accept at one port.
pub(crate) const MAX_WAITING: usize = 256;
/// Ports that are open at one time.
const MAX_PORTS: usize = 4096;
/// How often the thread looks at the clock while there are strangers.
const TICK: Duration = Duration::from_millis(250);
/// How long it rests when the system has no descriptors left.
const REST: Duration = Duration::from_millis(50);

type Secret = [u8; 16];

/// An open port.
struct Port {
    takes: Takes,
    /// Who waits, and what it has shown.
    queue: VecDeque<(Contact, Vec<Proof>)>,
}

/// Who waits at each open port.
#[derive(Default)]
struct Waiting {
    ports: HashMap<Secret, Port>,
    /// The process opens no ports any more.
    ended: bool,
}

/// What the thread and the program have in common.
struct Shared {
    waiting: Mutex<Waiting>,
    pinned: Pinned,
    /// Ends the thread's sleep.
    bell: OwnedFd,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Door {
    shared: Arc<Shared>,
    port: u16,
    entered: Entered,
    thread: JoinHandle<()>,
}

/// How others come to the door who cannot do so directly.
#[derive(Default)]
struct Entered {
    /// Through the host at which the job meets others.
    entry: Option<Entry>,
    /// Through the gateway of the local area, as long as the rest is kept.
    gate: Option<(Gate, Held)>,
}

impl Entered {
    /// Without any the door may still be reached directly. The launcher tells the user of a host that is not reached.
    fn at(world: &World, port: u16) -> Self {
        let reacher = reacher(world);
        let gate = reacher.and_then(|reacher| reacher.gate(port));
        let by = gate.as_ref().map(|(gate, _)| gate);
        let entry = reacher.and_then(|reacher| reacher.enter(port, by).ok()?);
        Self { entry, gate }
    }
}

/// There is one as long as the process has opened a port.
static DOOR: Mutex<Option<Door>> = Mutex::new(None);

fn door() -> MutexGuard<'static, Option<Door>> {
    DOOR.lock().unwrap_or_else(PoisonError::into_inner)
}

fn system(error: impl std::fmt::Display) -> Error {
    Error::new(abi::MPI_ERR_OTHER, format!("cannot open a port: {error}"))
}

/// MPI_Open_port: the name of a new port, which takes whom `takes` says.
pub fn open_port(world: &World, takes: &Accept) -> Result<String> {
    opened(
        |port| Entered::at(world, port),
        true,
        |secret, fingerprint| takes.at(world, secret, fingerprint),
    )
}

/// A port for those who are told its name on no way but the job's own.
pub fn open_inside(world: &World) -> Result<String> {
    opened(|port| Entered::at(world, port), false, |_, _| Ok(Takes::Anybody))
}

/// As [`open_port`]; `enter`: how else the door is entered that listens at this port of the node; `proofs`: whether who
/// comes is to show its keys.
fn opened(
    enter: impl FnOnce(u16) -> Entered,
    proofs: bool,
    takes: impl FnOnce(&Secret, &[u8; 32]) -> Result<Takes>,
) -> Result<String> {
    if door().is_none() {
        let mut started = start()?;
        started.entered = enter(started.port);
        let mut door = door();
        match &*door {
            // Another thread was quicker.
            Some(_) => end(started),
            None => *door = Some(started),
        }
    }
    let secret: Secret = abroad::random().map_err(system)?;
    let Some(fingerprint) = door().as_ref().map(|open| open.shared.pinned.fingerprint()) else {
        fail!(abi::MPI_ERR_INTERN, "there is no door");
    };
    // The launcher is asked, while others use the door.
    let takes = takes(&secret, &fingerprint)?;
    let door = door();
    let Some(open) = door.as_ref() else {
        fail!(abi::MPI_ERR_INTERN, "there is no door");
    };
    let mut waiting = open.shared.waiting();
    if waiting.ports.len() >= MAX_PORTS {
        fail!(
            abi::MPI_ERR_OTHER,
            "{MAX_PORTS} ports are open already; close some (MPI_Close_port)"
        );
    }
    let queue = VecDeque::new();
    waiting.ports.insert(secret, Port { takes, queue });
    let addresses = abroad::addresses();
    Ok(PortName {
        secret,
        fingerprint,
        proofs,
        port: open.port,
        addresses: addresses.iter().filter_map(|address| address.parse().ok()).collect(),
        entry: open.entered.entry.clone(),
        gate: open.entered.gate.as_ref().map(|(gate, _)| gate.clone()),
    }
    .encode())
}

fn start() -> Result<Door> {
    let listener = abroad::listener().map_err(system)?;
    let port = listener.port();
    let shared = Arc::new(Shared {
        waiting: Mutex::default(),
        pinned: Pinned::new().map_err(system)?,
        bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(system)?,
    });
    let contacts = Contacts::at(listener);
    let seen = shared.clone();
    let thread = isthmus_lock::spawn_quiet("isthmus-door", move || Keeper::new(seen, contacts).run());
    Ok(Door {
        shared,
        port,
        entered: Entered::default(),
        thread: thread.map_err(system)?,
    })
}

fn no_port(name: &str) -> Error {
    let why = match PortName::decode(name) {
        Err(why) => why.to_string(),
        Ok(_) => "it is not a port of this process, or was closed".to_owned(),
    };
    Error::of_argument(
        abi::MPI_ERR_PORT,
        "port_name",
        // Not the text: who reads it may connect, if it names a port of another process.
        format!("is not a port that this process has open: {why}"),
    )
}

fn secret_of(name: &str) -> Result<Secret> {
    Ok(PortName::decode(name).map_err(|_| no_port(name))?.secret)
}

/// MPI_Close_port. Who waits there is told.
pub fn close_port(name: &str) -> Result<()> {
    let secret = secret_of(name)?;
    let gone = door()
        .as_ref()
        .and_then(|door| door.shared.waiting().ports.remove(&secret));
    let Some(gone) = gone else { return Err(no_port(name)) };
    gone.queue
        .into_iter()
        .for_each(|(contact, _)| refuse(contact, &closed()));
    Ok(())
}

const CLOSED: &str = "its port was closed (MPI_Close_port)";

fn closed() -> Message {
    Message::Refused(CLOSED.to_owned())
}

/// Tells who waits that it does so in vain; nobody waits for that.
fn refuse(mut contact: Contact, why: &Message) {
    contact.send(&why.encode());
    let _ = contact.advance();
}

/// Whom a port takes from now on, also of those who wait.
pub(crate) fn take(world: &World, name: &str, takes: &Accept) -> Result<()> {
    let secret = secret_of(name)?;
    let fingerprint = PortName::decode(name).map_err(|_| no_port(name))?.fingerprint;
    let takes = takes.at(world, &secret, &fingerprint)?;
    narrow(name, &secret, takes)
}

fn narrow(name: &str, secret: &Secret, takes: Takes) -> Result<()> {
    let door = door();
    let mut waiting = door.as_ref().map(|open| open.shared.waiting());
    let Some(port) = waiting.as_mut().and_then(|waiting| waiting.ports.get_mut(secret)) else {
        return Err(no_port(name));
    };
    let (stay, go) = std::mem::take(&mut port.queue)
        .into_iter()
        .partition(|(_, shown)| takes.takes(shown));
    (port.queue, port.takes) = (stay, takes);
    let go: VecDeque<(Contact, Vec<Proof>)> = go;
    go.into_iter().for_each(|(contact, _)| refuse(contact, &Message::NoKey));
    Ok(())
}

/// The next who waits at a port, if there is one. An error: there is no such port.
pub(crate) fn next(name: &str) -> Result<Option<Contact>> {
    let secret = secret_of(name)?;
    let door = door();
    let Some(open) = door.as_ref() else {
        return Err(no_port(name));
    };
    match open.shared.waiting().ports.get_mut(&secret) {
        Some(port) => Ok(port.queue.pop_front().map(|(contact, _)| contact)),
        None => Err(no_port(name)),
    }
}

/// At the end of the process: all ports are closed.
pub fn close_all() {
    let taken = door().take();
    if let Some(open) = taken {
        end(open);
    }
}

fn end(Door { shared, thread, .. }: Door) {
    let mut waiting = shared.waiting();
    waiting.ended = true;
    let queues: Vec<_> = waiting.ports.drain().map(|(_, port)| port.queue).collect();
    drop(waiting);
    let all = queues.into_iter().flatten();
    all.for_each(|(contact, _)| refuse(contact, &closed()));
    // The thread looks again in any case.
    let _ = rustix::io::write(&shared.bell, &1u64.to_ne_bytes());
    let _ = thread.join();
}

/// Somebody who has not said yet to which port it wants.
struct Stranger {
    contact: Contact,
    came: Instant,
    /// It was refused, and goes when it has been told.
    leaves: bool,
}

impl Stranger {
    /// Whether its place is another one's who needs it.
    fn gives_way(&self, now: Instant) -> bool {
        let keeps = if self.contact.has_heard() { BEGUN } else { SILENT };
        now.saturating_duration_since(self.came) >= keeps
    }
}

/// The thread.
struct Keeper {
    shared: Arc<Shared>,
    contacts: Contacts,
    strangers: VecDeque<Stranger>,
}

impl Keeper {
    fn new(shared: Arc<Shared>, contacts: Contacts) -> Self {
        Self {
            shared,
            contacts,
            strangers: VecDeque::new(),
        }
    }

    fn run(mut self) {
        while !self.shared.waiting().ended {
            self.sleep();
            self.let_in();
            for stranger in std::mem::take(&mut self.strangers) {
                if let Some(stranger) = self.hear(stranger) {
                    self.strangers.push_back(stranger);
                }
            }
        }
    }

    fn sleep(&self) {
        let strangers = self.strangers.iter();
        let mut polled = vec![PollFd::from_borrowed_fd(self.shared.bell.as_fd(), PollFlags::IN)];
        polled.extend(strangers.map(|stranger| PollFd::from_borrowed_fd(stranger.contact.as_fd(), PollFlags::IN)));
        if self.place(Instant::now()).is_some() {
            polled.push(PollFd::from_borrowed_fd(self.contacts.as_fd(), PollFlags::IN));
        }
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: TICK.subsec_nanos().into(),
        };
        let timeout = (!self.strangers.is_empty()).then_some(&tick);
        // After an error it looks again.
        let _ = poll(&mut polled, timeout);
    }

    /// Whether there is a place for one more, and who has to go for it.
    fn place(&self, now: Instant) -> Option<Option<usize>> {
        if self.strangers.len() < MAX_STRANGERS {
            return Some(None);
        }
        self.strangers
            .iter()
            .position(|stranger| stranger.gives_way(now))
            .map(Some)
    }

    fn let_in(&mut self) {
        // As many at once as there are places: others get their turn in between.
        for _ in 0..MAX_STRANGERS {
            let now = Instant::now();
            let Some(goes) = self.place(now) else { return };
            match self.contacts.next(&self.shared.pinned) {
                Ok(Some(contact)) => {
                    goes.and_then(|goes| self.strangers.remove(goes));
                    self.strangers.push_back(Stranger {
                        contact,
                        came: now,
                        leaves: false,
                    });
                }
                Ok(None) => return,
                Err(_) => return std::thread::sleep(REST),
            }
        }
    }

    /// What a stranger has said; `None`: it is one no longer.
    fn hear(&self, mut stranger: Stranger) -> Option<Stranger> {
        if stranger.came.elapsed() >= HANDSHAKE || stranger.contact.advance().is_err() {
            return None;
        }
        if stranger.leaves {
            return (!stranger.contact.has_left()).then_some(stranger);
        }
        let Some(message) = stranger.contact.receive().ok()? else {
            return Some(stranger);
        };
        let Ok(Message::Greeting(secret, shown)) = Message::decode(&message) else {
            return None;
        };
        let mut waiting = self.shared.waiting();
        let why = match waiting.ports.get_mut(&secret) {
            Some(port) if !port.takes.takes(&shown) => Message::NoKey,
            Some(port) if port.queue.len() < MAX_WAITING => {
                port.queue.push_back((stranger.contact, shown));
                return None;
            }
            Some(_) => Message::Refused("too many others wait at the port already".to_owned()),
            None => {
                let why = "there is no such port any more: it was closed, or the name is an old one";
                Message::Refused(why.to_owned())
            }
        };
        drop(waiting);
        stranger.contact.send(&why.encode());
        stranger.leaves = true;
        stranger.contact.advance().ok()?;
        Some(stranger)
    }
}

#[cfg(test)]
mod tests;
