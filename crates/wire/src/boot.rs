// SPDX-License-Identifier: Apache-2.0
//! What an MPI process and the agent of its machine say to each other, over a Unix stream socket.
//!
//! ```text
//!  process                                   agent
//!     | Hello (token, pid, port, csr)  --->    |      MPI_Init begins
//!     |    <---  World (ranks, places, links) |      co-allocation committed: the barrier opens
//!     | ...                                    |
//!     |    <---  Gone (world, ranks, reason)   |      others have died, or cannot be reached any more
//!     |    <---  Abort (code, reason)          |      another process ended the job
//!     | Traffic (links)                --->    |      at most once a second, while something passes to other sites
//!     | Time (waits)                   --->    |      once a second, while something passes or nothing comes
//!     | Trace (records)                --->    |      only when the job is traced
//!     | Waiting (what for)             --->    |      nothing has happened for a second inside MPI, or something has at last
//!     | Question (number, what)        --->    |      for the coordinator ([`crate::question`])
//!     |    <---  Answer (number, what)         |      at once or much later
//!     | Abort (code, reason)           --->    |      MPI_Abort, or an error that ends the job
//!     | Finished (counters)            --->    |      MPI_Finalize, all communication done
//!     |    <---  Dismissed                     |      every process of the job has said Finished
//! ```
//! Environment of a process started by an agent:
//!
//! | variable | meaning |
//! |---|---|
//! | `ISTHMUS_RENDEZVOUS` | path of the agent's socket |
//! | `ISTHMUS_TOKEN` | one-time token, 32 hexadecimal digits; the library removes it from the environment |
//! | `ISTHMUS_INDEX` | index of the process within its subjob |
//! | `ISTHMUS_VENDOR` | path of the adaptor to the vendor MPI, whose job this process is part of; absent: none |
//! | `ISTHMUS_VENDOR_RANK` | its rank in that job, as the `mpiexec` of that MPI has told it |
//! | `ISTHMUS_TRACE` | `1`: events are recorded and sent ([`crate::trace`]) |
//! | `ISTHMUS_REACH` | `node`: the job is one subjob on one node, or on nodes that the vendor MPI joins, so the process neither listens nor asks for a certificate; `site`: all machines are on one local network, so it listens only; `gateway`: other sites are reached through the gateway on this node only, so it listens for that alone; `wide` or absent: it does both |
//!
//! Without `ISTHMUS_RENDEZVOUS` a program is a world of one.

use crate::chosen::Chosen;
use crate::codec::{DecodeError, Reader, Writer};
use crate::gateway::Paths;
use crate::joined::MAX_TEXT;
use crate::links::{Measured, Table};
use crate::place::{PlaceTable, Representation, read_vendor, write_vendor};
use crate::question::{Answer, Question};
pub use crate::reason::MAX_REASON;
use crate::reason::{cut, cut_to, read_name_for_people, read_reason};
use crate::shared;
use crate::time::Time;
use crate::usage::Usage;
use crate::waiting::Waiting;

/// Version of this protocol. The agent refuses a process with another one.
pub const VERSION: u32 = 19;

/// Code of an `Abort` that answers a hello: this process is not let in, and the job goes on.
pub const NOT_LET_IN: i32 = i32::MIN;

/// Most processes of a job on one node: as many have a place in its shared memory.
pub const MAX_NODE_PROCESSES: u32 = 1024;

/// Processes that have died, or cannot be reached any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// How many deaths the coordinator has decided before the first of these. All hear of them in this order.
    pub number: u32,
    /// Whether the job goes on without them.
    pub goes_on: bool,
    /// Name of their world, which is another one than that of who hears it; zeros: the same.
    pub world: [u8; 16],
    /// Rank in their MPI_COMM_WORLD of the first one.
    pub first: u32,
    /// How many, one after the other.
    pub count: u32,
    /// For people: who and why; at most [`MAX_REASON`] bytes.
    pub reason: String,
}

impl Gone {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.u32(self.number).u8(self.goes_on.into());
        for b in self.world {
            w.u8(b);
        }
        w.u32(self.first).u32(self.count).text(cut(&self.reason));
    }

    /// Reads it from a message.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let gone = Self {
            number: r.u32("number")?,
            goes_on: r.u8("goes on")? != 0,
            world: r.fixed("world")?,
            first: r.u32("first")?,
            count: r.u32("count")?,
            reason: read_reason(r)?,
        };
        let most = gone.first.max(gone.number);
        match most.checked_add(gone.count) {
            Some(_) => Ok(gone),
            None => Err(DecodeError::Invalid {
                field: "count",
                value: u64::from(gone.count),
            }),
        }
    }

    /// Whether they are of the same world as who hears it.
    pub fn is_own_world(&self) -> bool {
        self.world == [0; 16]
    }

    /// Their ranks, those below `size`.
    pub fn ranks(&self, size: u32) -> std::ops::Range<u32> {
        let end = self.first.saturating_add(self.count).min(size);
        self.first.min(end)..end
    }
}

/// First message of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// [`VERSION`] of the library.
    pub version: u32,
    /// The one-time token.
    pub token: [u8; 16],
    /// Index within the subjob.
    pub index: u32,
    /// Process id as the process sees it.
    pub pid: u32,
    /// TCP port it listens on, 0 for none. Where messages leave the node, a process without one cannot take part: an
    /// `Abort` follows.
    pub port: u16,
    /// Its data representation.
    pub representation: Representation,
    /// Its rank in the job of the vendor MPI, if it is part of one.
    pub vendor: Option<u32>,
    /// PKCS#10 certificate signing request (DER); empty when the job has one subjob only.
    pub signing_request: Vec<u8>,
}

/// The answer: who is who. From here the process is an MPI process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Name of the job, unique among the user's jobs.
    pub job: String,
    /// What people call it, at most [`MAX_TEXT`](crate::joined::MAX_TEXT) bytes.
    pub title: String,
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Everybody's place.
    pub places: PlaceTable,
    /// What messages cost, as far as the launcher knows; equal at all processes.
    pub links: Table,
    /// Path of the node's shared-memory segment file, which the processes make.
    pub shared_memory: String,
    /// Directory for doorbells on this node; gone when the job ends.
    pub node_directory: String,
    /// Secret of the job for connections inside a site (never on a wire; proven by a keyed hash).
    pub secret: [u8; 32],
    /// Certificate of this process (DER), empty when it sent no signing request.
    pub certificate: Vec<u8>,
    /// Certificate of the job's authority (DER), empty likewise.
    pub authority: Vec<u8>,
    /// How other areas are reached.
    pub paths: Paths,
    /// Directories and files of this machine that processes of other sites reach through this one: absolute paths, at
    /// most [`crate::shared::MOST`].
    pub shared: Vec<String>,
}

/// Counters of one process at one level of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounters {
    /// Messages sent that the user's calls asked for (a rendezvous is one message).
    pub messages: u64,
    /// Bytes of user data sent in them.
    pub bytes: u64,
}

/// What one process counted and measured, sent with `Finished` and summed for `ISTHMUS_STATS=1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// (operation name, level 0 wide area … 4 node, counters); operation `point-to-point` or a collective's name.
    pub rows: Vec<(String, u8, LevelCounters)>,
    /// Calls per operation on this process.
    pub calls: Vec<(String, u64)>,
    /// What it measured of links between local areas.
    pub links: Vec<Measured>,
    /// What passed between it and other sites.
    pub traffic: Vec<LinkTraffic>,
    /// Where its time went.
    pub time: Time,
    /// What was chosen for collective operations that it was the first member of.
    pub choices: Vec<Chosen>,
    /// What was done with files.
    pub files: Vec<Usage>,
}

/// What passed from one subjob to another, over the wide area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTraffic {
    /// Name of the sending subjob.
    pub from: String,
    /// Name of the receiving subjob.
    pub to: String,
    /// Bytes given to the network.
    pub sent: u64,
    /// Bytes that came from there, on the same channels.
    pub received: u64,
    /// Bytes of the user's messages and their headers before compression, by class: latency, normal, bulk.
    pub classes: [u64; 3],
    /// Segments of ours that came more than once.
    pub duplicates: u64,
    /// Last round trip from process to process, microseconds; 0: none was measured.
    pub round_trip_us: u64,
    /// Connections that there are now.
    pub connections: u64,
    /// Processes here whose channels are without a connection now, counted per peer.
    pub away: u64,
    /// Bytes that TCP sent again.
    pub retransmitted: u64,
    /// Segments that were sent again because a connection broke.
    pub resent: u64,
    /// How often a channel lost all its connections and went on.
    pub cuts: u64,
    /// How often a channel moved from a gateway to a connection of its own.
    pub moved: u64,
    /// How often a channel went on over another connection of a gateway, which had ended the one before.
    pub renewed: u64,
    /// Longest time that a channel was without a connection in all, milliseconds.
    pub away_ms: u64,
    /// Most connections of a channel.
    pub streams: u64,
    /// Bytes of segments that were compressed, as they were sent.
    pub compressed: u64,
    /// The same before compression.
    pub plain: u64,
    /// How long its processes had been observing the link when they counted, by their own monotonic clocks: the sum
    /// over all of them, microseconds.
    pub observed_us: u64,
    /// How many processes that is.
    pub observers: u32,
}

impl LinkTraffic {
    /// When these numbers were counted, seconds since the processes began: the mean of what the processes say. Rates
    /// are differences of numbers over differences of this. `None`: nobody has said.
    pub fn counted_at(&self) -> Option<f64> {
        (self.observers > 0).then(|| self.observed_us as f64 / 1e6 / f64::from(self.observers))
    }

    /// Whether the other one says the same, whenever it was counted.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let other = Self {
            observed_us: self.observed_us,
            observers: self.observers,
            ..other.clone()
        };
        *self == other
    }

    /// Adds what another process, or the same one on another channel, has seen of the same link.
    pub fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.sent, other.sent),
            (&mut self.received, other.received),
            (&mut self.retransmitted, other.retransmitted),
            (&mut self.resent, other.resent),
            (&mut self.duplicates, other.duplicates),
            (&mut self.cuts, other.cuts),
            (&mut self.moved, other.moved),
            (&mut self.renewed, other.renewed),
            (&mut self.compressed, other.compressed),
            (&mut self.plain, other.plain),
            (&mut self.connections, other.connections),
            (&mut self.away, other.away),
        ];
        for (sum, more) in sums.into_iter().chain(self.classes.iter_mut().zip(other.classes)) {
            *sum = sum.saturating_add(more);
        }
        self.observed_us = self.observed_us.saturating_add(other.observed_us);
        self.observers = self.observers.saturating_add(other.observers);
        self.away_ms = self.away_ms.max(other.away_ms);
        self.streams = self.streams.max(other.streams);
        self.round_trip_us = self.round_trip_us.max(other.round_trip_us);
    }

    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.text(&self.from).text(&self.to);
        for number in [self.sent, self.received, self.retransmitted, self.resent, self.cuts] {
            w.u64(number);
        }
        for number in [self.moved, self.away_ms, self.streams, self.compressed, self.plain] {
            w.u64(number);
        }
        for number in self.classes.into_iter().chain([self.renewed]) {
            w.u64(number);
        }
        for number in [self.duplicates, self.round_trip_us, self.connections, self.away] {
            w.u64(number);
        }
        w.u64(self.observed_us).u32(self.observers);
    }

    /// Reads it from a message.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            from: r.text("from")?,
            to: r.text("to")?,
            sent: r.u64("sent")?,
            received: r.u64("received")?,
            retransmitted: r.u64("retransmitted")?,
            resent: r.u64("resent")?,
            cuts: r.u64("cuts")?,
            moved: r.u64("moved")?,
            away_ms: r.u64("away")?,
            streams: r.u64("streams")?,
            compressed: r.u64("compressed")?,
            plain: r.u64("plain")?,
            classes: [r.u64("latency")?, r.u64("normal")?, r.u64("bulk")?],
            renewed: r.u64("renewed")?,
            duplicates: r.u64("duplicates")?,
            round_trip_us: r.u64("round trip")?,
            connections: r.u64("connections")?,
            away: r.u64("away")?,
            observed_us: r.u64("observed")?,
            observers: r.u32("observers")?,
        })
    }
}

/// A message on the rendezvous socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Process to agent.
    Hello(Hello),
    /// Agent to process.
    World(Box<World>),
    /// Both ways: the job ends with this code, for this reason.
    Abort {
        /// Exit status of the job.
        code: i32,
        /// For people: who and why.
        reason: String,
    },
    /// Process to agent.
    Finished(Counters),
    /// Agent to process: all have finished.
    Dismissed,
    /// Process to agent: what has passed between it and other sites since it began.
    Traffic(Vec<LinkTraffic>),
    /// Process to agent: records of [`crate::trace`].
    Trace(Vec<u8>),
    /// Process to agent: what it waits for; `None`: not any more.
    Waiting(Option<Waiting>),
    /// Process to agent: where its time has gone.
    Time(Time),
    /// Agent to process: others of its world are gone.
    Gone(Gone),
    /// Process to agent, for the coordinator.
    Question(Question),
    /// Agent to process: what the coordinator says.
    Answer(Answer),
}

impl Message {
    /// As it goes on the stream, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello(h) => {
                let mut w = Writer::new(1);
                w.u32(h.version);
                for b in h.token {
                    w.u8(b);
                }
                w.u32(h.index).u32(h.pid).u16(h.port);
                for b in h.representation.0 {
                    w.u8(b);
                }
                write_vendor(&mut w, h.vendor);
                w.bytes(&h.signing_request);
                w.into_framed()
            }
            Self::World(m) => {
                let mut w = Writer::new(2);
                w.text(&m.job).text(cut_to(&m.title, MAX_TEXT)).u32(m.rank);
                m.places.write(&mut w);
                m.links.write(&mut w);
                w.text(&m.shared_memory).text(&m.node_directory);
                for b in m.secret {
                    w.u8(b);
                }
                w.bytes(&m.certificate).bytes(&m.authority);
                m.paths.write(&mut w);
                shared::write(&mut w, &m.shared);
                w.into_framed()
            }
            Self::Abort { code, reason } => {
                let mut w = Writer::new(3);
                w.u32(*code as u32).text(cut(reason));
                w.into_framed()
            }
            Self::Finished(c) => {
                let mut w = Writer::new(4);
                c.write(&mut w);
                w.into_framed()
            }
            Self::Dismissed => Writer::new(5).into_framed(),
            Self::Traffic(all) => {
                let mut w = Writer::new(6);
                w.list(all, |w, one| one.write(w));
                w.into_framed()
            }
            Self::Trace(records) => {
                let mut w = Writer::new(7);
                w.bytes(records);
                w.into_framed()
            }
            Self::Waiting(waiting) => {
                let mut w = Writer::new(8);
                write_waiting(&mut w, waiting.as_ref());
                w.into_framed()
            }
            Self::Time(time) => {
                let mut w = Writer::new(9);
                time.write(&mut w);
                w.into_framed()
            }
            Self::Gone(gone) => {
                let mut w = Writer::new(10);
                gone.write(&mut w);
                w.into_framed()
            }
            Self::Question(question) => {
                let mut w = Writer::new(11);
                question.write(&mut w);
                w.into_framed()
            }
            Self::Answer(answer) => {
                let mut w = Writer::new(12);
                answer.write(&mut w);
                w.into_framed()
            }
        }
    }

    /// Reads a body (without length prefix).
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let kind = r.u8("kind")?;
        let message = match kind {
            1 => Self::Hello(Hello {
                version: r.u32("version")?,
                token: r.fixed("token")?,
                index: r.u32("index")?,
                pid: r.u32("pid")?,
                port: r.u16("port")?,
                representation: Representation(r.fixed("representation")?),
                vendor: read_vendor(&mut r)?,
                signing_request: r.bytes("signing request")?,
            }),
            2 => Self::World(Box::new(World {
                job: r.text("job")?,
                title: read_name_for_people(&mut r, "title", MAX_TEXT)?,
                rank: r.u32("rank")?,
                places: PlaceTable::read(&mut r)?,
                links: Table::read(&mut r)?,
                shared_memory: r.text("shared memory")?,
                node_directory: r.text("node directory")?,
                secret: r.fixed("secret")?,
                certificate: r.bytes("certificate")?,
                authority: r.bytes("authority")?,
                paths: Paths::read(&mut r)?,
                shared: shared::read(&mut r)?,
            })),
            3 => Self::Abort {
                code: r.u32("code")? as i32,
                reason: read_reason(&mut r)?,
            },
            4 => Self::Finished(Counters::read(&mut r)?),
            5 => Self::Dismissed,
            6 => Self::Traffic(r.list("traffic", LinkTraffic::read)?),
            7 => Self::Trace(r.bytes("trace")?),
            8 => Self::Waiting(read_waiting(&mut r)?),
            9 => Self::Time(Time::read(&mut r)?),
            10 => Self::Gone(Gone::read(&mut r)?),
            11 => Self::Question(Question::read(&mut r)?),
            12 => Self::Answer(Answer::read(&mut r)?),
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

impl Counters {
    /// Appends the counters to a message.
    pub fn write(&self, w: &mut Writer) {
        w.list(&self.rows, |w, (name, level, c)| {
            w.text(name).u8(*level).u64(c.messages).u64(c.bytes);
        });
        w.list(&self.calls, |w, (name, n)| {
            w.text(name).u64(*n);
        });
        w.list(&self.links, |w, one| one.write(w));
        w.list(&self.traffic, |w, one| one.write(w));
        self.time.write(w);
        w.list(&self.choices, |w, one| one.write(w));
        w.list(&self.files, |w, one| one.write(w));
    }

    /// Reads counters.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let rows = r.list("rows", |r| {
            let name = r.text("operation")?;
            let level = r.u8("level")?;
            Ok((
                name,
                level,
                LevelCounters {
                    messages: r.u64("messages")?,
                    bytes: r.u64("bytes")?,
                },
            ))
        })?;
        let calls = r.list("calls", |r| Ok((r.text("operation")?, r.u64("calls")?)))?;
        let links = r.list("links", Measured::read)?;
        let traffic = r.list("traffic", LinkTraffic::read)?;
        Ok(Self {
            rows,
            calls,
            links,
            traffic,
            time: Time::read(r)?,
            choices: Chosen::read_all(r)?,
            files: Usage::read_all(r)?,
        })
    }
}

/// Appends what a process waits for, if it does.
pub(crate) fn write_waiting(w: &mut Writer, waiting: Option<&Waiting>) {
    w.u8(waiting.is_some().into());
    if let Some(waiting) = waiting {
        waiting.write(w);
    }
}

/// Reads it.
pub(crate) fn read_waiting(r: &mut Reader<'_>) -> Result<Option<Waiting>, DecodeError> {
    match r.u8("waits")? {
        0 => Ok(None),
        _ => Waiting::read(r).map(Some),
    }
}

#[cfg(test)]
mod tests;
