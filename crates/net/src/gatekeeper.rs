// SPDX-License-Identifier: Apache-2.0
//! What a process says to the gateway of its local area about processes of other jobs ([`isthmus_wire::gate`]): by
//! which key they come in to it, and by which it goes out to them. The gateway forgets all of it with the connection,
//! so that is made again when it breaks.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use isthmus_link::handshake::{Ends, Knocked};
use isthmus_wire::gate::{GATEWAY, Gate, Key, ToGate};
use isthmus_wire::gateway::{Paths, READY, WISH_LEAD};
use isthmus_wire::hello::ANSWER_BYTES;
use rustix::event::{PollFd, PollFlags, poll};

use crate::hello::Prover;

/// How long the gateway may take for anything.
const PATIENCE: Duration = Duration::from_secs(2);
/// Before a connection that has broken is made again: another gateway is started meanwhile.
const PAUSE: Duration = Duration::from_secs(1);
/// How often that is tried.
const TRIES: u32 = 60;

/// The gateway of the local area of this process.
pub struct Gatekeeper {
    doors: Vec<SocketAddr>,
    prover: Prover,
    me: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stream: Option<TcpStream>,
    /// Keys that are in force, and what was said of them.
    leads: BTreeMap<Key, ToGate>,
    is_watched: bool,
}

impl std::fmt::Debug for Gatekeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gatekeeper")
            .field("doors", &self.doors)
            .finish_non_exhaustive()
    }
}

impl Gatekeeper {
    /// That of a process with rank `me` of this job; `None`: there is none.
    pub fn of(paths: &Paths, job: &str, me: u32) -> Option<Arc<Self>> {
        let address = |text: &String| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, paths.port));
        let doors: Vec<SocketAddr> = match paths.port {
            0 => Vec::new(),
            _ => paths.addresses.iter().filter_map(address).collect(),
        };
        let keeper = Self {
            prover: Prover::new(&paths.secret, job),
            me,
            state: Mutex::default(),
            doors,
        };
        (!keeper.doors.is_empty()).then(|| Arc::new(keeper))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is.
    pub fn doors(&self) -> &[SocketAddr] {
        &self.doors
    }

    /// The gate that this key opens.
    pub fn gate(&self, key: Key) -> Gate {
        Gate {
            port: self.doors.first().map_or(0, SocketAddr::port),
            key,
            addresses: self.doors.iter().map(SocketAddr::ip).collect(),
        }
    }

    /// From now on these keys lead where is said. Which of them do; an error: none.
    pub fn lead(self: &Arc<Self>, leads: Vec<(Key, Vec<SocketAddr>, Option<Key>)>) -> Result<Vec<bool>, String> {
        let mut state = self.state();
        let messages: Vec<(Key, ToGate)> = leads
            .into_iter()
            .map(|(key, to, knock)| (key, ToGate::Lead { key, to, knock }))
            .collect();
        let all: Vec<&ToGate> = messages.iter().map(|(_, message)| message).collect();
        let said = match self.say(&mut state, &all) {
            // It may have begun anew.
            Err(_) => {
                self.renew(&mut state)?;
                self.say(&mut state, &all)?
            }
            Ok(said) => said,
        };
        let kept = messages.into_iter().zip(&said).filter(|(_, led)| **led);
        state.leads.extend(kept.map(|(lead, _)| lead));
        if !std::mem::replace(&mut state.is_watched, true) {
            let keeper = Arc::downgrade(self);
            // Without a thread the connection is made again when something is to be said.
            drop(isthmus_lock::spawn_quiet("isthmus-gate", move || watch(&keeper)));
        }
        Ok(said)
    }

    /// From now on they do not.
    pub fn shut(&self, keys: &[Key]) {
        let mut state = self.state();
        keys.iter().for_each(|key| drop(state.leads.remove(key)));
        let messages: Vec<ToGate> = keys.iter().map(|&key| ToGate::Shut { key }).collect();
        let all: Vec<&ToGate> = messages.iter().collect();
        // With the connection they have ended already.
        let _ = self.say(&mut state, &all);
    }

    /// Says something, and hears what became of each.
    fn say(&self, state: &mut State, messages: &[&ToGate]) -> Result<Vec<bool>, String> {
        let text = |error: std::io::Error| format!("the gateway of this local area does not answer: {error}");
        let stream = state
            .stream
            .as_mut()
            .ok_or("there is no connection to the gateway of this local area")?;
        let bytes: Vec<u8> = messages.iter().flat_map(|message| message.encode()).collect();
        let mut answers = vec![0; messages.len()];
        let said = stream.write_all(&bytes).and_then(|()| stream.read_exact(&mut answers));
        if let Err(error) = said {
            state.stream = None;
            return Err(text(error));
        }
        Ok(answers.into_iter().map(|answer| answer == READY).collect())
    }

    /// Connects, and says everything again.
    fn renew(&self, state: &mut State) -> Result<(), String> {
        state.stream = Some(self.connect()?);
        let leads: Vec<ToGate> = state.leads.values().cloned().collect();
        let all: Vec<&ToGate> = leads.iter().collect();
        self.say(state, &all).map(drop)
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let mut tried = String::new();
        for door in &self.doors {
            match self.shake(door) {
                Ok(stream) => return Ok(stream),
                Err(why) => tried.push_str(&format!("; {door}: {why}")),
            }
        }
        Err(format!("the gateway of this local area is not reached{tried}"))
    }

    fn shake(&self, door: &SocketAddr) -> Result<TcpStream, String> {
        let text = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect_timeout(door, PATIENCE).map_err(text)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        let ends = Ends::of(self.me, GATEWAY);
        let (knocked, bytes) = Knocked::new(&self.prover, ends).ok_or("the system has no random numbers")?;
        stream.write_all(&bytes).map_err(text)?;
        let mut answer = [0; ANSWER_BYTES];
        stream.read_exact(&mut answer).map_err(text)?;
        let reply = knocked.reply(&self.prover, &answer, WISH_LEAD);
        stream
            .write_all(&reply.ok_or("what answers is not of this job")?)
            .map_err(text)?;
        Ok(stream)
    }
}

/// Makes the connection again when it breaks, as long as keys are in force.
fn watch(keeper: &Weak<Gatekeeper>) {
    let mut tries = 0;
    while let Some(own) = keeper.upgrade() {
        let held = own.state().stream.as_ref().and_then(|stream| stream.try_clone().ok());
        drop(own);
        match held {
            Some(stream) => {
                tries = 0;
                // Nothing is read here: what comes is the answer that somebody waits for.
                let _ = poll(&mut [PollFd::new(&stream, PollFlags::RDHUP)], None);
            }
            None if tries == TRIES => break,
            None => tries += 1,
        }
        std::thread::sleep(PAUSE);
        let Some(own) = keeper.upgrade() else { return };
        let mut state = own.state();
        let is_gone = state.stream.as_ref().is_none_or(has_ended);
        if is_gone && !state.leads.is_empty() {
            let _ = own.renew(&mut state);
        } else if is_gone {
            break;
        }
    }
    if let Some(own) = keeper.upgrade() {
        own.state().is_watched = false;
    }
}

fn has_ended(stream: &TcpStream) -> bool {
    let mut ends = [PollFd::new(stream, PollFlags::RDHUP)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut ends, Some(&now)), Ok(1..))
}

impl Drop for Gatekeeper {
    fn drop(&mut self) {
        // Whoever watches sees it.
        if let Some(stream) = self.state().stream.take() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
