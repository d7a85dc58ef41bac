// SPDX-License-Identifier: Apache-2.0
//! What an agent says to the coordinator.

use super::{Exit, Hash, LauncherEnd, Made, NodeProcesses, Scheduler, fixed, flag};
use crate::boot::{Counters, LinkTraffic, read_waiting, write_waiting};
use crate::codec::{DecodeError, Reader, Writer};
use crate::place::{Representation, read_vendor, write_vendor};
use crate::question::Question;
use crate::waiting::{Condition, Waiting};

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
    Started(Vec<NodeProcesses>),
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
    /// What the processes have made at the machine, in a directory that nobody named.
    Made(Made),
    /// A process asks the coordinator.
    Asked {
        /// Index within the subjob.
        index: u32,
        /// What.
        question: Question,
    },
    /// From an agent beside this one.
    Neighbour {
        /// Which.
        number: u32,
        /// What it writes; nothing: it has ended.
        bytes: Vec<u8>,
    },
    /// So many bytes that were for a neighbour have gone to it.
    NeighbourTook {
        /// Which.
        number: u32,
        /// How many.
        bytes: u32,
    },
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
            Self::Made(made) => made.write(&mut w),
            Self::Asked { index, question } => question.write(w.u32(*index)),
            Self::Neighbour { number, bytes } => {
                w.u32(*number).bytes(bytes);
            }
            Self::NeighbourTook { number, bytes } => {
                w.u32(*number).u32(*bytes);
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
            Self::Made(_) => 86,
            Self::Asked { .. } => 87,
            Self::Neighbour { .. } => 88,
            Self::NeighbourTook { .. } => 89,
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
            67 => Self::Started(r.list("parts", NodeProcesses::read)?),
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
            86 => Self::Made(Made::read(&mut r)?),
            87 => Self::Asked {
                index: r.u32("index")?,
                question: Question::read(&mut r)?,
            },
            88 => Self::Neighbour {
                number: r.u32("neighbour")?,
                bytes: r.bytes("bytes")?,
            },
            89 => Self::NeighbourTook {
                number: r.u32("neighbour")?,
                bytes: r.u32("bytes")?,
            },
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
