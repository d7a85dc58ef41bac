// SPDX-License-Identifier: Apache-2.0
//! What the coordinator and an agent say to each other, over the standard input and output of ssh.
//!
//! ```text
//!  coordinator                               agent
//!     |    <---  Hello (version, host, ...)     |      the agent runs
//!     | Offer (hash, size, name)       --->     |      one per file to stage
//!     |    <---  File (hash, wanted|path|why)   |
//!     | Chunk (bytes) ...              --->     |      until `size` bytes; then File (path) comes back
//!     | Start (program, count, ...)    --->     |
//!     |    <---  Queued ...                      |      while a scheduler lets the subjob wait
//!     |    <---  Started | Refused              |      Refused also when the scheduler ends the subjob later
//!     |    <---  Arrived ([hello ...])          |      processes are inside MPI_Init
//!     | Commit (places, certificates)  --->     |      the barrier opens
//!     |    <---  Output, Exited, Finished       |
//!     | Gone (ranks, reason)           --->     |      processes have died: the others of their world hear who
//!     | Dismiss                        --->     |      every process of the job has said Finished
//!     | End                            --->     |      kill what is left, clean up
//!     |    <---  Gone                           |      nothing is left
//! ```
//!
//! On the stream each message is `length: u32`, `kind: u8`, fields, as in [`crate::codec`]. `text` and
//! `bytes` are `length: u32` and that many bytes; `[x]` is `count: u32` and items.
//!
//! | coordinator to agent | kind | fields |
//! |---|---|---|
//! | `Offer` | 1 | hash 32, size u64, name text |
//! | `Chunk` | 2 | bytes |
//! | `Start` | 3 | job text, subjob u32, first u32, count u32, of u32, program text, arguments \[text\], environment \[text text\], directory text, fallback u8, library text, reach u8 (0 node, 1 site, 2 wide, 3 gateway), input u8 (0 none, 1 one, 2 all), index u32, stdin text, stdout text, stderr text, silence u32, allocated u8 and then an allocation ([`Allocation`]), vendor text, files text |
//! | `Commit` | 4 | subjob u32, secret 32, authority bytes, certificates \[bytes\], places, links, paths |
//! | `Input` | 5 | bytes (none: end of input) |
//! | `OutputCredit` | 6 | bytes u32 |
//! | `Dismiss` | 7 | |
//! | `Abort` | 8 | code u32, reason text |
//! | `Signal` | 9 | number u32 |
//! | `End` | 10 | |
//! | `Ping` | 11 | number u64 |
//! | `Gateway` | 12 | a message to the gateway ([`crate::gateway::ToGateway`]); the first one starts it |
//! | `Launch` | 13 | \[host text, processes u32\] |
//! | `LauncherEnded` | 14 | how u8, number u32, said text |
//! | `Gone` | 15 | first u32, count u32, reason text |
//! | `Hold` | 16 | secret 32, seconds u32 |
//! | `Resume` | 17 | secret 32, launcher u32, standings u64, outputs u64 |
//!
//! | agent to coordinator | kind | fields |
//! |---|---|---|
//! | `Hello` | 65 | version u32, host text, architecture text, addresses \[text\], processors u32 |
//! | `File` | 66 | hash 32, state u8 (0 wanted, 1 here, 2 failed), path or reason text |
//! | `Started` | 67 | \[part ([`Part`])\] |
//! | `Refused` | 68 | reason text, hint text |
//! | `Arrived` | 69 | \[index u32, pid u32, port u16, representation 8, vendor u32 (rank + 1, 0 none), signing request bytes\] |
//! | `Output` | 70 | index u32, stream u8 (1 output, 2 error, 3 trace: [`crate::trace`]), bytes |
//! | `InputCredit` | 71 | bytes u32 |
//! | `Exited` | 72 | \[index u32, how u8 (0 status, 1 signal), number u32\] |
//! | `Finished` | 73 | index u32, counters |
//! | `Aborted` | 74 | index u32, code u32, reason text |
//! | `Pong` | 75 | number u64, clock u64 (ns since 1970) |
//! | `Gone` | 76 | |
//! | `Queued` | 77 | scheduler u8, id text, why text, start u64 (seconds since 1970, 0: not known) |
//! | `Suspended` | 78 | u8 (1 stopped, 0 goes on) |
//! | `Beside` | 84 | scheduler u8 |
//! | `Gateway` | 79 | a message from the gateway ([`crate::gateway::FromGateway`]) |
//! | `Traffic` | 80 | first u32, \[traffic ([`crate::boot::LinkTraffic`])\] |
//! | `Time` | 85 | first u32, time ([`crate::time`]) |
//! | `Waiting` | 82 | index u32, what ([`crate::waiting`]) |
//! | `Conditions` | 83 | \[index u32, pid u32, stopped u8, swapped u64 (bytes)\] |
//! | `LauncherEnded` | 81 | how u8, number u32, said text |
//!
//! `Launch` and `LauncherEnded` are between the agent that submitted a subjob to a scheduler and those on its nodes,
//! which it treats as a coordinator does.
//!
//! `Hold` lets the agent and its processes outlive the connection. `Resume` is the first message on the one that
//! follows it; the agent answers with `Hello`, all that tells how the subjob stands, and the
//! output whose receipt is not known.

mod allocation;
mod hold;
mod launcher;
mod start;
pub use allocation::{Allocation, MAX_NODE_HELLO, NodeHello, Part, Scheduler};
pub use hold::{Hold, MAX_RESUME, Resume};
pub use launcher::LauncherEnd;
pub use start::{Input, Reach, Start};

use crate::boot::{Counters, Gone, LinkTraffic, read_waiting, write_waiting};
use crate::codec::{DecodeError, Reader, Writer};
use crate::gateway::Paths;
use crate::links::Table;
use crate::place::{PlaceTable, Representation, read_vendor, write_vendor};
use crate::waiting::{Condition, Waiting};

/// Version of this protocol. The coordinator stages its own `isthmus`, so both ends normally agree.
pub const VERSION: u32 = 12;

/// Bytes of output of processes that an agent may have sent and the coordinator not yet printed.
pub const OUTPUT_WINDOW: u32 = 1 << 20;

/// Bytes of standard input that the coordinator may have sent and those who read it not yet taken.
pub const INPUT_WINDOW: u32 = 256 << 10;

/// Longest `Chunk`, `Output` and `Input`, bytes.
pub const MAX_CHUNK: usize = 128 << 10;

/// Content hash (SHA-256) of a staged file.
pub type Hash = [u8; 32];

/// What an agent says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentHello {
    /// [`VERSION`] of the agent.
    pub version: u32,
    /// Host name of the machine.
    pub host: String,
    /// Machine hardware name as `uname -m` prints it.
    pub architecture: String,
    /// Addresses of the machine's interfaces, most promising first.
    pub addresses: Vec<String>,
    /// Processors that the agent may use.
    pub processors: u32,
}

/// One process that is inside MPI_Init.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Index within the subjob.
    pub index: u32,
    /// Process id at its machine.
    pub pid: u32,
    /// Port it listens on, 0 for none.
    pub port: u16,
    /// Its data representation.
    pub representation: Representation,
    /// Its rank in the job of the vendor MPI, if it is part of one.
    pub vendor: Option<u32>,
    /// PKCS#10 certificate signing request (DER) or empty.
    pub signing_request: Vec<u8>,
}

/// The world, once for all processes of a subjob.
#[derive(Clone, PartialEq, Eq)]
pub struct Commit {
    /// Place of the agent's subjob among those of [`Self::places`].
    pub subjob: u32,
    /// Secret of the job.
    pub secret: [u8; 32],
    /// Certificate of the job's authority (DER) or empty.
    pub authority: Vec<u8>,
    /// Certificate (DER) or nothing per process of the subjob, by index.
    pub certificates: Vec<Vec<u8>>,
    /// Everybody's place.
    pub places: PlaceTable,
    /// What messages cost, as far as it is known.
    pub links: Table,
    /// How other areas are reached, as far as it is known.
    pub paths: Paths,
}

impl std::fmt::Debug for Commit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Commit")
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Status(u32),
    /// A signal killed it.
    Signal(u32),
}

impl Exit {
    /// As a shell would tell it: the status, or 128 + the signal.
    pub fn shell_status(self) -> i32 {
        match self {
            Self::Status(status) => status as i32,
            Self::Signal(signal) => 128 + signal as i32,
        }
    }

    pub(crate) fn write(self, w: &mut Writer) {
        match self {
            Self::Status(n) => w.u8(0).u32(n),
            Self::Signal(n) => w.u8(1).u32(n),
        };
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (how, number) = (r.u8("how")?, r.u32("number")?);
        match how {
            0 => Ok(Self::Status(number)),
            1 => Ok(Self::Signal(number)),
            other => Err(DecodeError::Invalid {
                field: "how",
                value: u64::from(other),
            }),
        }
    }
}

/// Standard output, standard error, or what a traced process records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
    /// Records of [`crate::trace`]; no text.
    Trace,
}

/// Where a file to be staged stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The site does not have it: send chunks.
    Wanted,
    /// It is there, under this path.
    Here(String),
    /// It cannot be had, for this reason.
    Failed(String),
}

/// From the coordinator to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToAgent {
    /// A file that the subjob needs.
    Offer {
        /// Content hash.
        hash: Hash,
        /// Size, bytes.
        size: u64,
        /// File name without directory.
        name: String,
    },
    /// Next bytes of the file that the agent wanted.
    Chunk(Vec<u8>),
    /// Start the processes.
    Start(Box<Start>),
    /// Open the barrier.
    Commit(Box<Commit>),
    /// Standard input; empty at its end.
    Input(Vec<u8>),
    /// So many bytes of output have been printed.
    OutputCredit(u32),
    /// All processes of the job have finished.
    Dismiss,
    /// Tell the processes that the job ends, then kill them.
    Abort {
        /// Exit status of the job.
        code: i32,
        /// For people.
        reason: String,
    },
    /// Tell the processes that others of their world are gone.
    Gone(Gone),
    /// Send this signal to all processes.
    Signal(u32),
    /// Kill what is left, clean up, leave.
    End,
    /// Answer with `Pong`.
    Ping(u64),
    /// For the gateway, which the first one starts.
    Gateway(Vec<u8>),
    /// All nodes of a subjob on the vendor MPI are ready: start its processes, so many on each of these hosts.
    Launch(Vec<(String, u32)>),
    /// What another node told.
    LauncherEnded(LauncherEnd),
    /// Outlive this connection.
    Hold(Hold),
    /// This connection follows another one.
    Resume(Resume),
}

/// From an agent to the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromAgent {
    /// First message.
    Hello(AgentHello),
    /// Answer to `Offer` and to the last `Chunk`.
    File {
        /// Content hash.
        hash: Hash,
        /// What the agent says about it.
        state: FileState,
    },
    /// The machine's scheduler has the subjob in its queue.
    Queued {
        /// Which scheduler.
        scheduler: Scheduler,
        /// What it calls the job.
        id: String,
        /// Why the job waits, in the scheduler's words; may be empty.
        why: String,
        /// When the scheduler expects to start it, seconds since 1970; 0: it does not say.
        start: u64,
    },
    /// All processes have been forked, on these nodes.
    Started(Vec<Part>),
    /// The subjob cannot be started, or its machine has ended it.
    Refused {
        /// What is wrong.
        reason: String,
        /// What to do; may be empty.
        hint: String,
    },
    /// Processes that are inside MPI_Init.
    Arrived(Vec<Arrival>),
    /// Whole lines of one process (or the last partial one).
    Output {
        /// Index within the subjob.
        index: u32,
        /// Which stream.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// So many bytes of input have been taken by all who get it.
    InputCredit(u32),
    /// Processes that ended.
    Exited(Vec<(u32, Exit)>),
    /// A process is in MPI_Finalize with all its communication done.
    Finished {
        /// Index within the subjob.
        index: u32,
        /// What it counted.
        counters: Counters,
    },
    /// A process ends the job.
    Aborted {
        /// Index within the subjob.
        index: u32,
        /// Exit status of the job.
        code: i32,
        /// For people.
        reason: String,
    },
    /// The processes run beside this scheduler of the machine, which does not know of them.
    Beside(Scheduler),
    /// The machine's scheduler has stopped the subjob, or lets it go on.
    Suspended(bool),
    /// Answer to `Ping`: its number, and nanoseconds since 1970 by the machine's clock.
    Pong(u64, u64),
    /// Nothing of the job is left at this machine.
    Gone,
    /// From the gateway.
    Gateway(Vec<u8>),
    /// What the processes of one agent have exchanged with other sites since they began; about once a second while that
    /// changes.
    Traffic {
        /// Index within the subjob of the first of these processes.
        first: u32,
        /// One entry per link.
        traffic: Vec<LinkTraffic>,
    },
    /// Index within the subjob of the first process of an agent, and where the time of all of them has gone.
    Time(u32, crate::time::Time),
    /// The `mpiexec` of the vendor MPI, which this node has run for all.
    LauncherEnded(LauncherEnd),
    /// What a process waits for; `None`: not any more.
    Waiting {
        /// Index within the subjob.
        index: u32,
        /// What for.
        waiting: Option<Waiting>,
    },
    /// Processes that have been stopped or swapped out, or are not any more.
    Conditions(Vec<Condition>),
}

impl ToAgent {
    /// As it goes on the stream, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(self.kind());
        match self {
            Self::Offer { hash, size, name } => {
                fixed(&mut w, hash).u64(*size).text(name);
            }
            Self::Chunk(bytes) | Self::Input(bytes) | Self::Gateway(bytes) => {
                w.bytes(bytes);
            }
            Self::Start(start) => start.write(&mut w),
            Self::Commit(commit) => commit.write(&mut w),
            Self::OutputCredit(n) | Self::Signal(n) => {
                w.u32(*n);
            }
            Self::Abort { code, reason } => {
                w.u32(*code as u32).text(reason);
            }
            Self::Ping(n) => {
                w.u64(*n);
            }
            Self::Launch(hosts) => {
                w.list(hosts, |w, (host, processes)| {
                    w.text(host).u32(*processes);
                });
            }
            Self::LauncherEnded(end) => end.write(&mut w),
            Self::Gone(gone) => gone.write(&mut w),
            Self::Hold(hold) => hold.write(&mut w),
            Self::Resume(resume) => resume.write(&mut w),
            Self::Dismiss | Self::End => {}
        }
        w.into_framed()
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Offer { .. } => 1,
            Self::Chunk(_) => 2,
            Self::Start(_) => 3,
            Self::Commit(_) => 4,
            Self::Input(_) => 5,
            Self::OutputCredit(_) => 6,
            Self::Dismiss => 7,
            Self::Abort { .. } => 8,
            Self::Signal(_) => 9,
            Self::End => 10,
            Self::Ping(_) => 11,
            Self::Gateway(_) => 12,
            Self::Launch(_) => 13,
            Self::LauncherEnded(_) => 14,
            Self::Gone(_) => 15,
            Self::Hold(_) => 16,
            Self::Resume(_) => 17,
        }
    }

    /// Reads a body (without length prefix).
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let message = match r.u8("kind")? {
            1 => Self::Offer {
                hash: r.fixed("hash")?,
                size: r.u64("size")?,
                name: r.text("name")?,
            },
            2 => Self::Chunk(r.bytes("chunk")?),
            3 => Self::Start(Box::new(Start::read(&mut r)?)),
            4 => Self::Commit(Box::new(Commit::read(&mut r)?)),
            5 => Self::Input(r.bytes("input")?),
            6 => Self::OutputCredit(r.u32("credit")?),
            7 => Self::Dismiss,
            8 => Self::Abort {
                code: r.u32("code")? as i32,
                reason: r.text("reason")?,
            },
            9 => Self::Signal(r.u32("signal")?),
            10 => Self::End,
            11 => Self::Ping(r.u64("number")?),
            12 => Self::Gateway(r.bytes("gateway")?),
            13 => Self::Launch(r.list("hosts", |r| Ok((r.text("host")?, r.u32("processes")?)))?),
            14 => Self::LauncherEnded(LauncherEnd::read(&mut r)?),
            15 => Self::Gone(Gone::read(&mut r)?),
            16 => Self::Hold(Hold::read(&mut r)?),
            17 => Self::Resume(Resume::read(&mut r)?),
            other => {
                return Err(DecodeError::Invalid {
                    field: "kind",
                    value: u64::from(other),
                });
            }
        };
        r.end()?;
        Ok(message)
    }
}

impl Commit {
    fn write(&self, w: &mut Writer) {
        fixed(w.u32(self.subjob), &self.secret).bytes(&self.authority);
        w.list(&self.certificates, |w, c| {
            w.bytes(c);
        });
        self.places.write(w);
        self.links.write(w);
        self.paths.write(w);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            subjob: r.u32("subjob")?,
            secret: r.fixed("secret")?,
            authority: r.bytes("authority")?,
            certificates: r.list("certificates", |r| r.bytes("certificate"))?,
            places: PlaceTable::read(r)?,
            links: Table::read(r)?,
            paths: Paths::read(r)?,
        })
    }
}

impl FromAgent {
    /// As it goes on the stream, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(self.kind());
        match self {
            Self::Hello(hello) => hello.write(&mut w),
            Self::File { hash, state } => write_file(&mut w, hash, state),
            Self::Refused { reason, hint } => {
                w.text(reason).text(hint);
            }
            Self::Arrived(list) => {
                w.list(list, |w, a| a.write(w));
            }
            Self::Output { index, stream, bytes } => {
                w.u32(*index)
                    .u8(match stream {
                        Stream::Output => 1,
                        Stream::Error => 2,
                        Stream::Trace => 3,
                    })
                    .bytes(bytes);
            }
            Self::InputCredit(n) => {
                w.u32(*n);
            }
            Self::Exited(list) => {
                w.list(list, write_exit);
            }
            Self::Finished { index, counters } => {
                w.u32(*index);
                counters.write(&mut w);
            }
            Self::Aborted { index, code, reason } => {
                w.u32(*index).u32(*code as u32).text(reason);
            }
            Self::Pong(number, clock) => {
                w.u64(*number).u64(*clock);
            }
            Self::Started(parts) => {
                w.list(parts, |w, p| p.write(w));
            }
            Self::Queued {
                scheduler,
                id,
                why,
                start,
            } => {
                w.u8(*scheduler as u8).text(id).text(why).u64(*start);
            }
            Self::Beside(scheduler) => {
                w.u8(*scheduler as u8);
            }
            Self::Suspended(stopped) => {
                w.u8((*stopped).into());
            }
            Self::Gateway(bytes) => {
                w.bytes(bytes);
            }
            Self::Traffic { first, traffic } => {
                w.u32(*first).list(traffic, |w, one| one.write(w));
            }
            Self::Time(first, time) => time.write(w.u32(*first)),
            Self::LauncherEnded(end) => end.write(&mut w),
            Self::Waiting { index, waiting } => {
                w.u32(*index);
                write_waiting(&mut w, waiting.as_ref());
            }
            Self::Conditions(all) => {
                w.list(all, |w, c| c.write(w));
            }
            Self::Gone => {}
        }
        w.into_framed()
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 65,
            Self::File { .. } => 66,
            Self::Started(_) => 67,
            Self::Refused { .. } => 68,
            Self::Arrived(_) => 69,
            Self::Output { .. } => 70,
            Self::InputCredit(_) => 71,
            Self::Exited(_) => 72,
            Self::Finished { .. } => 73,
            Self::Aborted { .. } => 74,
            Self::Pong(..) => 75,
            Self::Gone => 76,
            Self::Gateway(_) => 79,
            Self::Traffic { .. } => 80,
            Self::Time(..) => 85,
            Self::Queued { .. } => 77,
            Self::Suspended(_) => 78,
            Self::Beside(_) => 84,
            Self::LauncherEnded(_) => 81,
            Self::Waiting { .. } => 82,
            Self::Conditions(_) => 83,
        }
    }

    /// Reads a body (without length prefix).
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let message = match r.u8("kind")? {
            65 => Self::Hello(AgentHello::read(&mut r)?),
            66 => Self::File {
                hash: r.fixed("hash")?,
                state: read_file(&mut r)?,
            },
            67 => Self::Started(r.list("parts", Part::read)?),
            68 => Self::Refused {
                reason: r.text("reason")?,
                hint: r.text("hint")?,
            },
            69 => Self::Arrived(r.list("arrivals", Arrival::read)?),
            70 => Self::Output {
                index: r.u32("index")?,
                stream: read_stream(&mut r)?,
                bytes: r.bytes("output")?,
            },
            71 => Self::InputCredit(r.u32("credit")?),
            72 => Self::Exited(r.list("exits", read_exit)?),
            73 => Self::Finished {
                index: r.u32("index")?,
                counters: Counters::read(&mut r)?,
            },
            74 => Self::Aborted {
                index: r.u32("index")?,
                code: r.u32("code")? as i32,
                reason: r.text("reason")?,
            },
            75 => Self::Pong(r.u64("number")?, r.u64("clock")?),
            76 => Self::Gone,
            79 => Self::Gateway(r.bytes("gateway")?),
            80 => Self::Traffic {
                first: r.u32("first")?,
                traffic: r.list("traffic", LinkTraffic::read)?,
            },
            85 => Self::Time(r.u32("first")?, crate::time::Time::read(&mut r)?),
            77 => Self::Queued {
                scheduler: Scheduler::read(&mut r)?,
                id: r.text("id")?,
                why: r.text("why")?,
                start: r.u64("start")?,
            },
            84 => Self::Beside(Scheduler::read(&mut r)?),
            78 => Self::Suspended(flag(&mut r, "stopped")?),
            81 => Self::LauncherEnded(LauncherEnd::read(&mut r)?),
            82 => Self::Waiting {
                index: r.u32("index")?,
                waiting: read_waiting(&mut r)?,
            },
            83 => Self::Conditions(r.list("conditions", Condition::read)?),
            other => {
                return Err(DecodeError::Invalid {
                    field: "kind",
                    value: u64::from(other),
                });
            }
        };
        r.end()?;
        Ok(message)
    }
}

impl AgentHello {
    fn write(&self, w: &mut Writer) {
        w.u32(self.version).text(&self.host).text(&self.architecture);
        w.list(&self.addresses, |w, a| {
            w.text(a);
        });
        w.u32(self.processors);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            version: r.u32("version")?,
            host: r.text("host")?,
            architecture: r.text("architecture")?,
            addresses: r.list("addresses", |r| r.text("address"))?,
            processors: r.u32("processors")?,
        })
    }
}

impl Arrival {
    fn write(&self, w: &mut Writer) {
        w.u32(self.index).u32(self.pid).u16(self.port);
        fixed(w, &self.representation.0);
        write_vendor(w, self.vendor);
        w.bytes(&self.signing_request);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            index: r.u32("index")?,
            pid: r.u32("pid")?,
            port: r.u16("port")?,
            representation: Representation(r.fixed("representation")?),
            vendor: read_vendor(r)?,
            signing_request: r.bytes("signing request")?,
        })
    }
}

fn fixed<'a>(w: &'a mut Writer, bytes: &[u8]) -> &'a mut Writer {
    for b in bytes {
        w.u8(*b);
    }
    w
}

fn flag(r: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match r.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(DecodeError::Invalid {
            field,
            value: u64::from(other),
        }),
    }
}

fn write_file(w: &mut Writer, hash: &Hash, state: &FileState) {
    fixed(w, hash);
    match state {
        FileState::Wanted => w.u8(0).text(""),
        FileState::Here(path) => w.u8(1).text(path),
        FileState::Failed(reason) => w.u8(2).text(reason),
    };
}

fn read_file(r: &mut Reader<'_>) -> Result<FileState, DecodeError> {
    let state = r.u8("file state")?;
    let text = r.text("file text")?;
    match state {
        0 => Ok(FileState::Wanted),
        1 => Ok(FileState::Here(text)),
        2 => Ok(FileState::Failed(text)),
        other => Err(DecodeError::Invalid {
            field: "file state",
            value: u64::from(other),
        }),
    }
}

fn read_stream(r: &mut Reader<'_>) -> Result<Stream, DecodeError> {
    match r.u8("stream")? {
        1 => Ok(Stream::Output),
        2 => Ok(Stream::Error),
        3 => Ok(Stream::Trace),
        other => Err(DecodeError::Invalid {
            field: "stream",
            value: u64::from(other),
        }),
    }
}

fn write_exit(w: &mut Writer, (index, exit): &(u32, Exit)) {
    exit.write(w.u32(*index));
}

fn read_exit(r: &mut Reader<'_>) -> Result<(u32, Exit), DecodeError> {
    Ok((r.u32("index")?, Exit::read(r)?))
}

#[cfg(test)]
mod tests;
