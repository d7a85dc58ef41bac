// SPDX-License-Identifier: Apache-2.0
//! What a process asks its coordinator, and what it is answered.
//!
//! ```text
//!  process                    agent                      coordinator
//!     | Question (number) ---> | Asked (index, question) ---> |
//!     |                        |                              |   at once, or when others have asked too
//!     | <--- Answer (number)   | <--- Answer (index, answer)  |
//! ```
//! The process chooses numbers, each once; a question is open until its answer has come, and answers come in any order.
//! A process has at most [`MAX_OPEN`] open questions. An agent keeps the open questions of its
//! processes and repeats them to a coordinator that it has lost and found again, so a coordinator may hear one twice.
//!
//! A question is `number: u64`, `what: u8`, fields:
//!
//! | what | | fields |
//! |---|---|---|
//! | 1 | `Publish` | scope u8, name text, port text |
//! | 2 | `Unpublish` | scope u8 (0: any), name text, port text |
//! | 3 | `Lookup` | scope u8 (0: any), name text |
//! | 4 | `Spawn` | port text, \[program text, arguments \[text\], processes u32, keys \[key text, value text\]\] |
//! | 5 | `Agree` | [`agreeing`](crate::agreeing) |
//! | 6 | `Enter` | port u16, u8 (1: its key at the gateway follows), key 16 bytes |
//! | 7 | `Cross` | \[[`entry`](crate::entry)\] |
//! | 8 | `Leave` | \[key 16 bytes\], \[port u16\] |
//! | 9 | `Apart` | u8 (1 or 0) |
//! | 10 | `Met` | meeting 16 bytes, \[group ([`joined`](crate::joined))\] |
//! | 11 | `Parted` | meeting 16 bytes |
//! | 12 | `Prove` | secret 16 bytes, fingerprint 32 bytes, \[name of a key text\] |
//! | 13 | `Carry` | which agreement, u8 (1 or 0: what became of the last letter follows) ([`letter`](crate::letter)) |
//! | 14 | `Brought` | [`letter`](crate::letter) |
//! | 15 | `Tell` | world 16 bytes, u8 (1 something, 0 nothing more), bytes |
//! | 16 | `Hear` | world 16 bytes |
//!
//! A scope is 1 (the job) or 2 (the user). An answer is `number: u64`, `what: u8`, fields:
//!
//! | what | | fields |
//! |---|---|---|
//! | 0 | refused | kind u8 ([`Kind`]), why text |
//! | 1 | `Done` | |
//! | 2 | `Port` | port text |
//! | 3 | `Started` | world 16 bytes, goes on u8, carried u8, \[processes u32\] |
//! | 4 | `Agreed` | [`agreeing`](crate::agreeing) |
//! | 5 | `Entry` | [`entry`](crate::entry) |
//! | 6 | `Ports` | \[port u16\], u8 (1: of the gateway's machine, 0: of the process's) |
//! | 7 | `Proofs` | \[proof 16 bytes\] |
//! | 8 | `Errand` | [`letter`](crate::letter) |
//! | 9 | `Back` | [`letter`](crate::letter) |
//! | 10 | `Told` | bytes |

use crate::agreeing::{Agree, Agreed, Which, read_which, write_which};
use crate::codec::{DecodeError, Reader, Writer};
use crate::entry::{Entry, MAX_ENTRIES};
use crate::gate::Key;
use crate::joined::{Group, read_groups};
use crate::letter::{Back, Errand, Letter};
use crate::port::{Proof, provable};
use crate::reason::{cut, read_reason, read_up_to};

mod part;
#[cfg(test)]
mod tests;

use part::read_parts;
pub use part::{MAX_PARTS, SpawnProgram};

/// Most questions of a process that wait for an answer.
pub const MAX_OPEN: usize = 64;
/// Longest question or answer, bytes.
pub const MAX_LENGTH: usize = 1 << 20;
/// Longest name of a service, bytes: 1024 of the program's, each of which may need four ([`crate::word`]).
pub const MAX_NAME: usize = 4096;
/// What stands in place of the port of parents who meet their children through the launcher.
pub const THROUGH_LAUNCHER: &str = "launcher";
/// The same, where the launcher also carries what parents and children cannot send directly.
pub const CARRIED_BY_LAUNCHER: &str = "launcher carries";
/// Longest name of a port, bytes, likewise.
pub const MAX_PORT: usize = 4096;
/// Longest name of a key of the user, bytes.
pub const MAX_KEY: usize = 64;

/// Who finds a published name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Processes of this job.
    Job = 1,
    /// Processes of all jobs of the user whose launchers, or who themselves, are on this machine.
    User = 2,
}

impl Scope {
    /// As it is written in an info object.
    pub fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::User => "user",
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match Self::read_any(r)? {
            Some(scope) => Ok(scope),
            None => Err(invalid("scope", 0)),
        }
    }

    fn read_any(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        match r.u8("scope")? {
            0 => Ok(None),
            1 => Ok(Some(Self::Job)),
            2 => Ok(Some(Self::User)),
            other => Err(invalid("scope", other)),
        }
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// From now on this name stands for this port.
    Publish {
        /// Who finds it.
        scope: Scope,
        /// The name.
        name: String,
        /// The port.
        port: String,
    },
    /// From now on it does not.
    Unpublish {
        /// Where it was published; `None`: wherever this process has published it.
        scope: Option<Scope>,
        /// The name.
        name: String,
        /// The port.
        port: String,
    },
    /// Which port a name stands for.
    Lookup {
        /// Where to look; `None`: in the job, then among the names of the user.
        scope: Option<Scope>,
        /// The name.
        name: String,
    },
    /// More processes, in a world of their own. Answered when all are in MPI_Init.
    Spawn {
        /// The port where those who ask await them; empty: they meet through the launcher.
        port: String,
        /// What they run: [`MAX_PARTS`] at most.
        parts: Vec<SpawnProgram>,
    },
    /// To agree with the other members of a communicator that live. Answered when all of them have asked.
    Agree(Box<Agree>),
    /// Others may come to a port of this process through the host at which the job meets others.
    Enter {
        /// The TCP port.
        port: u16,
        /// What leads to it at the gateway of its local area ([`crate::gate`]), if there is one.
        gate: Option<Key>,
    },
    /// Ports of this machine, or of its gateway's, that lead through that host to others: [`MAX_ENTRIES`] at most.
    Cross {
        /// Where they go in.
        entries: Vec<Entry>,
    },
    /// Some of both are not used any more.
    Leave {
        /// Keys of own entries.
        keys: Vec<[u8; 16]>,
        /// Ports that led to others.
        ports: Vec<u16>,
    },
    /// Whether this process is connected with nobody beside its own world, from now on.
    Apart(bool),
    /// It is connected with processes of other worlds from now on, which is for people to see.
    Met {
        /// What it is known by.
        meeting: [u8; 16],
        /// Who they are: [`MAX_GROUPS`](crate::joined::MAX_GROUPS) at most.
        with: Vec<Group>,
    },
    /// It is not any more.
    Parted {
        /// Which.
        meeting: [u8; 16],
    },
    /// What shows at a port that somebody has keys of the user ([`crate::port`]).
    Prove {
        /// Of the port.
        secret: [u8; 16],
        /// Of the process that has opened it.
        fingerprint: [u8; 32],
        /// Names of keys, [`MAX_PROOFS`](crate::port::MAX_PROOFS) at most; empty: all that there are.
        keys: Vec<String>,
    },
    /// It can carry letters to members of another launcher. Answered when there is one ([`Said::Errand`]), or none will
    /// come any more ([`Said::Done`]).
    Carry {
        /// About which agreement.
        which: Which,
        /// What became of the last one.
        back: Option<Back>,
    },
    /// A member of another launcher has brought a letter of that one. Answered ([`Said::Back`]) when what it asks for
    /// is done.
    Brought(Box<Letter>),
    /// The roots of parents and children meet: one of them tells the other one something.
    Tell {
        /// The world of the children.
        world: [u8; 16],
        /// `None`: nothing more comes.
        what: Option<Vec<u8>>,
    },
    /// What the other root tells next. Answered once it has told it.
    Hear {
        /// The world of the children.
        world: [u8; 16],
    },
}

/// A question with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Chosen by the process.
    pub number: u64,
    /// What is asked.
    pub ask: Ask,
}

/// The world of processes that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its name, as [`Gone`](crate::boot::Gone) has it.
    pub world: [u8; 16],
    /// Whether the job goes on when it loses one of them.
    pub goes_on: bool,
    /// Whether their launcher carries what they and their parents cannot send directly.
    pub carried: bool,
    /// How many there are of each part.
    pub processes: Vec<u32>,
}

/// What a question was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is done.
    Done,
    /// The port that a name stands for.
    Port(String),
    /// Processes have been started.
    Started(Started),
    /// What all members that live have agreed on.
    Agreed(Box<Agreed>),
    /// How others come to the port.
    Entry(Entry),
    /// Ways to others.
    Ports {
        /// One for each entry, in order.
        ports: Vec<u16>,
        /// They are ports of the machine where the gateway of the process's local area is: it leads there.
        at_gateway: bool,
    },
    /// Of the keys, in any order.
    Proofs(Vec<Proof>),
    /// A letter to carry.
    Errand(Box<Errand>),
    /// What became of a letter.
    Back(Back),
    /// What the other root has told.
    Told(Vec<u8>),
}

/// What is wrong with what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nobody has published this name.
    Unknown = 1,
    /// It is published already, or not by whom takes it back.
    Taken = 2,
    /// The coordinator cannot do that now.
    Unable = 3,
    /// The processes could not be started.
    NotStarted = 4,
}

/// Why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For programs.
    pub kind: Kind,
    /// For people: a sentence; cut to [`crate::boot::MAX_REASON`] bytes.
    pub why: String,
}

impl Refusal {
    /// One of this kind.
    pub fn new(kind: Kind, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }
}

/// The answer to the question with this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The question's.
    pub number: u64,
    /// What is said.
    pub said: Result<Said, Refusal>,
}

impl Question {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.u64(self.number);
        match &self.ask {
            Ask::Publish { scope, name, port } => w.u8(1).u8(*scope as u8).text(name).text(port),
            Ask::Unpublish { scope, name, port } => w.u8(2).u8(any(*scope)).text(name).text(port),
            Ask::Lookup { scope, name } => w.u8(3).u8(any(*scope)).text(name),
            Ask::Spawn { port, parts } => w.u8(4).text(port).list(parts, |w, part| part.write(w)),
            Ask::Agree(agree) => {
                agree.write(w.u8(5));
                w
            }
            Ask::Enter { port, gate } => {
                w.u8(6).u16(*port).u8(gate.is_some().into());
                if let Some(key) = gate {
                    w.fixed(key);
                }
                w
            }
            Ask::Cross { entries } => w.u8(7).list(entries, |w, entry| entry.write(w)),
            Ask::Leave { keys, ports } => w
                .u8(8)
                .list(keys, |w, key| {
                    w.fixed(key);
                })
                .list(ports, |w, port| {
                    w.u16(*port);
                }),
            Ask::Apart(apart) => w.u8(9).u8((*apart).into()),
            Ask::Met { meeting, with } => w.u8(10).fixed(meeting).list(with, |w, group| group.write(w)),
            Ask::Parted { meeting } => w.u8(11).fixed(meeting),
            Ask::Prove {
                secret,
                fingerprint,
                keys,
            } => w.u8(12).fixed(secret).fixed(fingerprint).list(keys, |w, key| {
                w.text(key);
            }),
            Ask::Carry { which, back } => {
                write_which(w.u8(13), *which);
                w.u8(back.is_some().into());
                back.iter().for_each(|back| back.write(w));
                w
            }
            Ask::Brought(letter) => {
                letter.write(w.u8(14));
                w
            }
            Ask::Tell { world, what } => w
                .u8(15)
                .fixed(world)
                .u8(what.is_some().into())
                .bytes(what.as_deref().unwrap_or_default()),
            Ask::Hear { world } => w.u8(16).fixed(world),
        };
    }

    /// Reads it from a message, of which it is the rest.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        bounded(r, "question")?;
        let number = r.u64("number")?;
        let ask = match r.u8("what is asked")? {
            1 => Ask::Publish {
                scope: Scope::read(r)?,
                name: read_up_to(r, "name", MAX_NAME)?,
                port: read_up_to(r, "port", MAX_PORT)?,
            },
            2 => Ask::Unpublish {
                scope: Scope::read_any(r)?,
                name: read_up_to(r, "name", MAX_NAME)?,
                port: read_up_to(r, "port", MAX_PORT)?,
            },
            3 => Ask::Lookup {
                scope: Scope::read_any(r)?,
                name: read_up_to(r, "name", MAX_NAME)?,
            },
            4 => Ask::Spawn {
                port: read_up_to(r, "port", MAX_PORT)?,
                parts: read_parts(r)?,
            },
            5 => Ask::Agree(Box::new(Agree::read(r)?)),
            6 => Ask::Enter {
                port: r.u16("port")?,
                gate: match flag(r, "whether a key follows")? {
                    true => Some(r.fixed("key")?),
                    false => None,
                },
            },
            7 => Ask::Cross {
                entries: few("entries", r.list("entries", Entry::read)?)?,
            },
            8 => Ask::Leave {
                keys: few("keys", r.list("keys", |r| r.fixed("key"))?)?,
                ports: few("ports", r.list("ports", |r| r.u16("port"))?)?,
            },
            9 => Ask::Apart(flag(r, "apart")?),
            10 => Ask::Met {
                meeting: r.fixed("meeting")?,
                with: read_groups(r)?,
            },
            11 => Ask::Parted {
                meeting: r.fixed("meeting")?,
            },
            12 => Ask::Prove {
                secret: r.fixed("secret")?,
                fingerprint: r.fixed("fingerprint")?,
                keys: r
                    .list("names of keys", |r| read_up_to(r, "name of a key", MAX_KEY))
                    .and_then(provable)?,
            },
            13 => Ask::Carry {
                which: read_which(r)?,
                back: match flag(r, "whether a letter is back")? {
                    true => Some(Back::read(r)?),
                    false => None,
                },
            },
            14 => Ask::Brought(Box::new(Letter::read(r)?)),
            15 => Ask::Tell {
                world: r.fixed("world")?,
                what: match (r.u8("something")?, r.bytes("what")?) {
                    (0, nothing) if nothing.is_empty() => None,
                    (1, what) => Some(what),
                    (other, _) => return Err(invalid("something", other)),
                },
            },
            16 => Ask::Hear {
                world: r.fixed("world")?,
            },
            other => return Err(invalid("what is asked", other)),
        };
        Ok(Self { number, ask })
    }
}

impl Answer {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.u64(self.number);
        match &self.said {
            Err(Refusal { kind, why }) => w.u8(0).u8(*kind as u8).text(cut(why)),
            Ok(Said::Done) => w.u8(1),
            Ok(Said::Port(port)) => w.u8(2).text(port),
            Ok(Said::Started(started)) => {
                w.u8(3)
                    .fixed(&started.world)
                    .u8(started.goes_on.into())
                    .u8(started.carried.into());
                w.list(&started.processes, |w, number| {
                    w.u32(*number);
                })
            }
            Ok(Said::Agreed(agreed)) => {
                agreed.write(w.u8(4));
                w
            }
            Ok(Said::Entry(entry)) => {
                entry.write(w.u8(5));
                w
            }
            Ok(Said::Errand(errand)) => {
                errand.write(w.u8(8));
                w
            }
            Ok(Said::Back(back)) => {
                back.write(w.u8(9));
                w
            }
            Ok(Said::Ports { ports, at_gateway }) => w
                .u8(6)
                .list(ports, |w, port| {
                    w.u16(*port);
                })
                .u8((*at_gateway).into()),
            Ok(Said::Proofs(proofs)) => w.u8(7).list(proofs, |w, proof| {
                w.fixed(proof);
            }),
            Ok(Said::Told(what)) => w.u8(10).bytes(what),
        };
    }

    /// Reads it from a message, of which it is the rest.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        bounded(r, "answer")?;
        let number = r.u64("number")?;
        let said = match r.u8("what is said")? {
            0 => Err(Refusal {
                kind: match r.u8("kind")? {
                    1 => Kind::Unknown,
                    2 => Kind::Taken,
                    3 => Kind::Unable,
                    4 => Kind::NotStarted,
                    other => return Err(invalid("kind", other)),
                },
                why: read_reason(r)?,
            }),
            1 => Ok(Said::Done),
            2 => Ok(Said::Port(read_up_to(r, "port", MAX_PORT)?)),
            3 => Ok(Said::Started(Started {
                world: r.fixed("world")?,
                goes_on: r.u8("goes on")? != 0,
                carried: flag(r, "carried")?,
                processes: r.list("processes", |r| r.u32("processes"))?,
            })),
            4 => Ok(Said::Agreed(Box::new(Agreed::read(r)?))),
            5 => Ok(Said::Entry(Entry::read(r)?)),
            6 => Ok(Said::Ports {
                ports: few("ports", r.list("ports", |r| r.u16("port"))?)?,
                at_gateway: flag(r, "whose ports")?,
            }),
            7 => Ok(Said::Proofs(provable(r.list("proofs", |r| r.fixed("proof"))?)?)),
            8 => Ok(Said::Errand(Box::new(Errand::read(r)?))),
            9 => Ok(Said::Back(Back::read(r)?)),
            10 => Ok(Said::Told(r.bytes("told")?)),
            other => return Err(invalid("what is said", other)),
        };
        Ok(Self { number, said })
    }
}

/// One of two.
fn flag(r: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match r.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(invalid(field, other)),
    }
}

/// As many as there may be of what belongs to entries.
fn few<T>(field: &'static str, list: Vec<T>) -> Result<Vec<T>, DecodeError> {
    match list.len() <= MAX_ENTRIES {
        true => Ok(list),
        false => Err(DecodeError::Invalid {
            field,
            value: list.len() as u64,
        }),
    }
}

fn any(scope: Option<Scope>) -> u8 {
    scope.map_or(0, |scope| scope as u8)
}

/// What is left of a message is no longer than a question may be.
fn bounded(r: &Reader<'_>, field: &'static str) -> Result<(), DecodeError> {
    match r.left() {
        0..=MAX_LENGTH => Ok(()),
        length => Err(DecodeError::Invalid {
            field,
            value: length as u64,
        }),
    }
}

fn invalid(field: &'static str, value: u8) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: u64::from(value),
    }
}
