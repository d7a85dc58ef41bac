// SPDX-License-Identifier: Apache-2.0
//! What the service says to the launcher.

use super::{Facts, Manifest, flag, hash, invalid};
use crate::codec::{DecodeError, Reader, Writer};
use crate::grid::Hash;
use crate::rate::Rate;

/// From the service to the launcher.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// First.
    Hello {
        /// [`VERSION`] of the service.
        version: u32,
        /// Host name.
        host: String,
        /// As `uname -m` prints it.
        architecture: String,
    },
    /// It is done.
    Done,
    /// It cannot be done, for this reason.
    Failed(String),
    /// Pieces that are not here.
    Missing(Vec<u32>),
    /// A piece has been written.
    Got(u32),
    /// Where the file or directory is.
    Path(String),
    /// What is there.
    Entries(Vec<Entry>),
    /// A file's manifest.
    Sum(Manifest),
    /// A piece's bytes.
    Data(Vec<u8>),
    /// What the cache has.
    Cached {
        /// Most bytes that it keeps.
        limit: u64,
        /// The files.
        files: Vec<Cached>,
    },
    /// The answer takes a while.
    Busy,
    /// Names.
    Names(Vec<String>),
    /// What the site has.
    Facts(Box<Facts>),
    /// Somebody waits at this port for this token.
    Listening {
        /// The port.
        port: u16,
        /// The token.
        token: [u8; 32],
    },
    /// What a link does.
    Measured {
        /// Shortest round trip, nanoseconds.
        round_trip: u64,
        /// Of one connection.
        rate: Option<Rate>,
        /// Address that was reached.
        address: String,
    },
}

/// Something below a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to what was asked about; empty for that itself.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Size, bytes.
    pub size: u64,
    /// Whether its owner may execute it.
    pub executable: bool,
}

/// What something below a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File = 0,
    /// A directory.
    Directory = 1,
    /// Anything else; it is not transferred.
    Other = 2,
}

/// A file of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// Its name; empty for one that has not arrived completely.
    pub name: String,
    /// Its hash.
    pub hash: Hash,
    /// Bytes.
    pub size: u64,
    /// Seconds since it was last used.
    pub age: u64,
    /// Whether a job uses it.
    pub used: bool,
}

impl Answer {
    /// As it goes on the stream, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(self.kind());
        match self {
            Self::Hello {
                version,
                host,
                architecture,
            } => {
                w.u32(*version).text(host).text(architecture);
            }
            Self::Done | Self::Busy => {}
            Self::Failed(text) | Self::Path(text) => {
                w.text(text);
            }
            Self::Missing(pieces) => {
                w.list(pieces, |w, piece| {
                    w.u32(*piece);
                });
            }
            Self::Got(piece) => {
                w.u32(*piece);
            }
            Self::Entries(entries) => {
                w.list(entries, |w, e| {
                    w.text(&e.path).u8(e.kind as u8).u64(e.size).u8(e.executable.into());
                });
            }
            Self::Sum(manifest) => manifest.write(&mut w),
            Self::Data(bytes) => {
                w.bytes(bytes);
            }
            Self::Cached { limit, files } => {
                w.u64(*limit);
                w.list(files, |w, file| {
                    w.text(&file.name);
                    hash(w, &file.hash).u64(file.size).u64(file.age).u8(file.used.into());
                });
            }
            Self::Names(names) => {
                w.list(names, |w, name| {
                    w.text(name);
                });
            }
            Self::Facts(facts) => facts.write(&mut w),
            Self::Listening { port, token } => {
                hash(w.u16(*port), token);
            }
            Self::Measured {
                round_trip,
                rate,
                address,
            } => {
                w.u64(*round_trip);
                Rate::write(*rate, &mut w);
                w.text(address);
            }
        }
        w.into_framed()
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => 65,
            Self::Done => 66,
            Self::Failed(_) => 67,
            Self::Missing(_) => 68,
            Self::Got(_) => 69,
            Self::Path(_) => 70,
            Self::Entries(_) => 71,
            Self::Sum(_) => 72,
            Self::Data(_) => 73,
            Self::Cached { .. } => 74,
            Self::Names(_) => 75,
            Self::Facts(_) => 76,
            Self::Listening { .. } => 77,
            Self::Measured { .. } => 78,
            Self::Busy => 79,
        }
    }

    /// Reads a body (without length prefix).
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let answer = match r.u8("kind")? {
            65 => Self::Hello {
                version: r.u32("version")?,
                host: r.text("host")?,
                architecture: r.text("architecture")?,
            },
            66 => Self::Done,
            67 => Self::Failed(r.text("reason")?),
            68 => Self::Missing(r.list("missing", |r| r.u32("piece"))?),
            69 => Self::Got(r.u32("piece")?),
            70 => Self::Path(r.text("path")?),
            71 => Self::Entries(r.list("entries", Entry::read)?),
            72 => Self::Sum(Manifest::read(&mut r)?),
            73 => Self::Data(r.bytes("data")?),
            74 => Self::Cached {
                limit: r.u64("limit")?,
                files: r.list("files", Cached::read)?,
            },
            75 => Self::Names(r.list("names", |r| r.text("name"))?),
            76 => Self::Facts(Box::new(Facts::read(&mut r)?)),
            77 => Self::Listening {
                port: r.u16("port")?,
                token: r.fixed("token")?,
            },
            78 => Self::Measured {
                round_trip: r.u64("round trip")?,
                rate: Rate::read(&mut r)?,
                address: r.text("address")?,
            },
            79 => Self::Busy,
            other => return Err(invalid("kind", other)),
        };
        r.end()?;
        Ok(answer)
    }
}

impl Entry {
    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            path: r.text("path")?,
            kind: match r.u8("kind of entry")? {
                0 => EntryKind::File,
                1 => EntryKind::Directory,
                2 => EntryKind::Other,
                other => return Err(invalid("kind of entry", other)),
            },
            size: r.u64("size")?,
            executable: flag(r, "executable")?,
        })
    }
}

impl Cached {
    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: r.text("name")?,
            hash: r.fixed("hash")?,
            size: r.u64("size")?,
            age: r.u64("age")?,
            used: flag(r, "used")?,
        })
    }
}
