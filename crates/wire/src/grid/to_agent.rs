// SPDX-License-Identifier: Apache-2.0
//! What the coordinator says to an agent.

use super::{Hash, Hold, LauncherEnd, Resume, Start, fixed};
use crate::boot::Gone;
use crate::codec::{DecodeError, Reader, Writer};
use crate::gateway::Paths;
use crate::joined::MAX_TEXT;
use crate::links::Table;
use crate::place::PlaceTable;
use crate::question::Answer;
use crate::reason::{cut_to, read_name_for_people};

/// The world, once for all processes of a subjob.
#[derive(Clone, PartialEq, Eq)]
pub struct Commit {
    /// Name of the world: that of the job for its first one.
    pub name: String,
    /// What people call the job, at most [`MAX_TEXT`](crate::joined::MAX_TEXT) bytes.
    pub title: String,
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
    /// What a process has asked is answered.
    Answer {
        /// Index within the subjob.
        index: u32,
        /// For it.
        answer: Answer,
    },
    /// For an agent beside this one, which the first such message starts.
    Neighbour {
        /// Which.
        number: u32,
        /// What it reads; nothing: the end of that.
        bytes: Vec<u8>,
    },
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
            Self::Answer { index, answer } => answer.write(w.u32(*index)),
            Self::Neighbour { number, bytes } => {
                w.u32(*number).bytes(bytes);
            }
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
            Self::Answer { .. } => 18,
            Self::Neighbour { .. } => 19,
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
            18 => Self::Answer {
                index: r.u32("index")?,
                answer: Answer::read(&mut r)?,
            },
            19 => Self::Neighbour {
                number: r.u32("neighbour")?,
                bytes: r.bytes("bytes")?,
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

impl Commit {
    fn write(&self, w: &mut Writer) {
        w.text(&self.name).text(cut_to(&self.title, MAX_TEXT));
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
            name: r.text("name")?,
            title: read_name_for_people(r, "title", MAX_TEXT)?,
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
