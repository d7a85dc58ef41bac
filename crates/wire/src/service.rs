// SPDX-License-Identifier: Apache-2.0
//! What the launcher and the service at a site say to each other, over the standard input and output of ssh: files, the
//! cache, what the site has. The service lives as long as its connection; the directory of a job lives on for its
//! lease, and a service on another connection may enter it.
//!
//! ```text
//!  launcher                                   service (`isthmus service`)
//!     |    <---  Hello                          |
//!     | Offer (manifest)                --->     |    a file, as the hashes of its pieces
//!     |    <---  Missing ([piece]) | Path        |    what is not here, or where it is
//!     | Piece (number, bytes) ...       --->     |    in any order; each is verified before it is written
//!     |    <---  Got (piece) ...                 |    so many may be on their way: WINDOW
//!     |    <---  Path | Failed                   |    after the last
//!     | Sum (file), Read (file, piece)  --->     |    the other way: first the manifest, then pieces
//! ```
//! After a cut the same offer is made on a new connection: only what is missing is sent again. Every request has one
//! answer, in order (`Piece`: `Got`, and after the last one also `Path` or `Failed`); while one takes long, `Busy` says
//! every few seconds that it is under way.
//!
//! Framing as in [`crate::codec`]. A *file* is `root u8 (0 the directory of the job, 1 the site's file system), path
//! text`; paths in the directory of a job are relative and have no `..`.
//!
//! | launcher to service | kind | fields |
//! |---|---|---|
//! | `Look` | 1 | |
//! | `Offer` | 2 | name text, manifest |
//! | `Piece` | 3 | number u32, bytes |
//! | `Enter` | 4 | directory text (empty: a new one), lease u32 (s), silence u32 (s) |
//! | `Link` | 5 | hash 32, name text, size u64, path text, executable u8 |
//! | `MakeDirectory` | 6 | file |
//! | `List` | 7 | file |
//! | `Sum` | 8 | file |
//! | `Read` | 9 | file, piece u32 |
//! | `Deliver` | 10 | hash 32, name text, size u64, path text, executable u8 |
//! | `Cache` | 11 | what u8 (0 list, 1 clear, 2 limit), limit u64 |
//! | `Libraries` | 12 | \[name text\] |
//! | `Ping` | 13 | |
//! | `Leave` | 14 | |
//! | `Meter` | 15 | bytes |
//! | `Listen` | 16 | |
//! | `Addresses` | 18 | |
//! | `Remove` | 19 | file |
//! | `Scratch` | 20 | file |
//! | `Copy` | 21 | hash 32, name text, size u64, path text, executable u8 |
//! | `Dial` | 17 | \[address text\], port u16, token 32 |
//!
//! | service to launcher | kind | fields |
//! |---|---|---|
//! | `Hello` | 65 | version u32, host text, architecture text |
//! | `Done` | 66 | |
//! | `Failed` | 67 | reason text |
//! | `Missing` | 68 | \[piece u32\] |
//! | `Got` | 69 | piece u32 |
//! | `Path` | 70 | text |
//! | `Entries` | 71 | \[path text, kind u8 (0 file, 1 directory, 2 other), size u64, executable u8\] |
//! | `Sum` | 72 | manifest |
//! | `Data` | 73 | bytes |
//! | `Cached` | 74 | limit u64, \[name text, hash 32, size u64, age u64 (s), in use u8\] |
//! | `Names` | 75 | \[name text\] |
//! | `Facts` | 76 | see [`Facts`] |
//! | `Listening` | 77 | port u16, token 32 |
//! | `Busy` | 79 | |
//! | `Measured` | 78 | round trip u64 (ns), rate ([`Rate`]), address text |
//!
//! Between `Listen` at one site and `Dial` at another they speak TCP for some seconds: the caller sends the token; then
//! single bytes come back at once; then it sends zeros until the other one has seen enough of them and answers with a
//! [`Rate`].
//!
//! A *manifest* is `hash 32, size u64, [piece hash 32]`.

mod answer;
mod facts;

pub use answer::{Answer, Cached, Entry, EntryKind};
pub use facts::{Facts, Named, Queue};

use crate::codec::{DecodeError, Reader, Writer};
use crate::grid::Hash;

/// Version of this protocol.
pub const VERSION: u32 = 4;
/// Bytes of a piece of a file; the last may be shorter.
pub const PIECE: usize = 1 << 20;
/// Pieces that may be on their way without an answer.
pub const WINDOW: usize = 16;
/// Most entries of a list.
pub const MAX_ENTRIES: usize = 200_000;

/// A file as the hashes of its pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// What the file is called in a cache: hash of its size and of the hashes of its pieces.
    pub hash: Hash,
    /// Size, bytes.
    pub size: u64,
    /// SHA-256 of each [`PIECE`].
    pub pieces: Vec<Hash>,
}

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The directory of the job.
    Job = 0,
    /// The site's file system; relative paths start at the user's home directory.
    Site = 1,
}

/// A file at a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where its path begins.
    pub root: Root,
    /// Its path.
    pub path: String,
}

/// A file of the cache that gets a place of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Hash in the cache.
    pub hash: Hash,
    /// Name in the cache.
    pub name: String,
    /// Size, bytes.
    pub size: u64,
    /// Where it goes.
    pub path: String,
    /// Whether it can be executed there.
    pub executable: bool,
}

/// What to do with the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheVerb {
    /// Tell what is in it.
    List,
    /// Remove what is not in use, then tell.
    Clear,
    /// Keep it below so many bytes, then tell.
    Limit(u64),
}

/// From the launcher to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// What is this machine? Answer: `Facts`.
    Look,
    /// A file that the site shall have. Answer: `Missing`, `Path` or `Failed`.
    Offer {
        /// Name without directory.
        name: String,
        /// The file.
        manifest: Manifest,
    },
    /// A piece of the file offered last.
    Piece {
        /// Number from 0.
        number: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Make the directory of the job, or enter it again. Answer: `Path` or `Failed`.
    Enter {
        /// Name of a directory that was made before; empty for a new one.
        directory: String,
        /// How long it shall outlive whoever uses it, seconds, unless it is entered again.
        lease: u32,
        /// The service leaves when it has heard nothing for so long, seconds.
        silence: u32,
    },
    /// Put a file of the cache into the directory of the job. Answer: `Done` or `Failed`.
    Link(Placed),
    /// Make a directory and those above it. Answer: `Done` or `Failed`.
    MakeDirectory(File),
    /// What is below this directory, or this file alone. Answer: `Entries` or `Failed`.
    List(File),
    /// The manifest of a file. Answer: `Sum` or `Failed`.
    Sum(File),
    /// A piece of a file. Answer: `Data` or `Failed`.
    Read(File, u32),
    /// Give a file of the cache its place at the site; it leaves the cache. Answer: `Done` or `Failed`.
    Deliver(Placed),
    /// Give a copy of a file of the cache its place at the site. Answer: `Done` or `Failed`.
    Copy(Placed),
    /// Remove a file of the site. Answer: `Done` or `Failed`.
    Remove(File),
    /// Make a directory below this one that lives as long as that of the job. Answer: `Path` or `Failed`.
    Scratch(File),
    /// The cache. Answer: `Cached` or `Failed`.
    Cache(CacheVerb),
    /// Which of these shared libraries cannot be found? Answer: `Names`.
    Libraries(Vec<String>),
    /// Answer: `Done`.
    Ping,
    /// Remove the directory of the job and end. Answer: `Done`.
    Leave,
    /// Bytes of no meaning, to see how fast they arrive. Answer: `Done`.
    Meter(Vec<u8>),
    /// Where others may reach the machine. Answer: `Names`.
    Addresses,
    /// Wait for another site that measures the link. Answer: `Listening` or `Failed`.
    Listen,
    /// Measure the link to a site that listens. Answer: `Measured` or `Failed`.
    Dial {
        /// Where it may be reached.
        addresses: Vec<String>,
        /// Its port.
        port: u16,
        /// What it wants to hear first.
        token: [u8; 32],
    },
}

impl Manifest {
    fn write(&self, w: &mut Writer) {
        hash(w, &self.hash).u64(self.size);
        w.list(&self.pieces, |w, piece| {
            hash(w, piece);
        });
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            hash: r.fixed("hash")?,
            size: r.u64("size")?,
            pieces: r.list("pieces", |r| r.fixed("piece"))?,
        })
    }

    /// Number of its pieces, by its size.
    pub fn count(&self) -> u64 {
        self.size.div_ceil(PIECE as u64)
    }

    /// Bytes of a piece.
    pub fn length(&self, piece: u32) -> usize {
        let begin = u64::from(piece) * PIECE as u64;
        usize::try_from(self.size.saturating_sub(begin).min(PIECE as u64)).unwrap_or(PIECE)
    }
}

impl File {
    fn write(&self, w: &mut Writer) {
        w.u8(self.root as u8).text(&self.path);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let root = match r.u8("root")? {
            0 => Root::Job,
            1 => Root::Site,
            other => return Err(invalid("root", other)),
        };
        Ok(Self {
            root,
            path: r.text("path")?,
        })
    }
}

impl Placed {
    fn write(&self, w: &mut Writer) {
        hash(w, &self.hash).text(&self.name).u64(self.size).text(&self.path);
        w.u8(self.executable.into());
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            hash: r.fixed("hash")?,
            name: r.text("name")?,
            size: r.u64("size")?,
            path: r.text("path")?,
            executable: flag(r, "executable")?,
        })
    }
}

impl Ask {
    /// As it goes on the stream, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(self.kind());
        match self {
            Self::Offer { name, manifest } => {
                w.text(name);
                manifest.write(&mut w);
            }
            Self::Piece { number, bytes } => {
                w.u32(*number).bytes(bytes);
            }
            Self::Link(placed) | Self::Deliver(placed) | Self::Copy(placed) => placed.write(&mut w),
            Self::MakeDirectory(file)
            | Self::List(file)
            | Self::Sum(file)
            | Self::Remove(file)
            | Self::Scratch(file) => file.write(&mut w),
            Self::Read(file, piece) => {
                file.write(&mut w);
                w.u32(*piece);
            }
            Self::Cache(verb) => {
                let (what, limit) = match verb {
                    CacheVerb::List => (0, 0),
                    CacheVerb::Clear => (1, 0),
                    CacheVerb::Limit(limit) => (2, *limit),
                };
                w.u8(what).u64(limit);
            }
            Self::Libraries(names) => {
                w.list(names, |w, name| {
                    w.text(name);
                });
            }
            Self::Meter(bytes) => {
                w.bytes(bytes);
            }
            Self::Dial { addresses, port, token } => {
                w.list(addresses, |w, address| {
                    w.text(address);
                });
                hash(w.u16(*port), token);
            }
            Self::Enter {
                directory,
                lease,
                silence,
            } => {
                w.text(directory).u32(*lease).u32(*silence);
            }
            Self::Look | Self::Ping | Self::Leave | Self::Listen | Self::Addresses => {}
        }
        w.into_framed()
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Look => 1,
            Self::Offer { .. } => 2,
            Self::Piece { .. } => 3,
            Self::Enter { .. } => 4,
            Self::Link(_) => 5,
            Self::MakeDirectory(_) => 6,
            Self::List(_) => 7,
            Self::Sum(_) => 8,
            Self::Read(..) => 9,
            Self::Deliver(_) => 10,
            Self::Cache(_) => 11,
            Self::Libraries(_) => 12,
            Self::Ping => 13,
            Self::Leave => 14,
            Self::Meter(_) => 15,
            Self::Listen => 16,
            Self::Dial { .. } => 17,
            Self::Addresses => 18,
            Self::Remove(_) => 19,
            Self::Scratch(_) => 20,
            Self::Copy(_) => 21,
        }
    }

    /// Reads a body (without length prefix).
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let ask = match r.u8("kind")? {
            1 => Self::Look,
            2 => Self::Offer {
                name: r.text("name")?,
                manifest: Manifest::read(&mut r)?,
            },
            3 => Self::Piece {
                number: r.u32("number")?,
                bytes: r.bytes("piece")?,
            },
            4 => Self::Enter {
                directory: r.text("directory")?,
                lease: r.u32("lease")?,
                silence: r.u32("silence")?,
            },
            5 => Self::Link(Placed::read(&mut r)?),
            6 => Self::MakeDirectory(File::read(&mut r)?),
            7 => Self::List(File::read(&mut r)?),
            8 => Self::Sum(File::read(&mut r)?),
            9 => Self::Read(File::read(&mut r)?, r.u32("piece")?),
            10 => Self::Deliver(Placed::read(&mut r)?),
            11 => Self::Cache(match (r.u8("what")?, r.u64("limit")?) {
                (0, 0) => CacheVerb::List,
                (1, 0) => CacheVerb::Clear,
                (2, limit) => CacheVerb::Limit(limit),
                (other, _) => return Err(invalid("what", other)),
            }),
            12 => Self::Libraries(r.list("names", |r| r.text("name"))?),
            13 => Self::Ping,
            14 => Self::Leave,
            15 => Self::Meter(r.bytes("bytes")?),
            16 => Self::Listen,
            17 => Self::Dial {
                addresses: r.list("addresses", |r| r.text("address"))?,
                port: r.u16("port")?,
                token: r.fixed("token")?,
            },
            18 => Self::Addresses,
            19 => Self::Remove(File::read(&mut r)?),
            20 => Self::Scratch(File::read(&mut r)?),
            21 => Self::Copy(Placed::read(&mut r)?),
            other => return Err(invalid("kind", other)),
        };
        r.end()?;
        Ok(ask)
    }
}

fn hash<'a>(w: &'a mut Writer, hash: &Hash) -> &'a mut Writer {
    for byte in hash {
        w.u8(*byte);
    }
    w
}

fn flag(r: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match r.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(invalid(field, other)),
    }
}

fn invalid(field: &'static str, value: u8) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: value.into(),
    }
}

#[cfg(test)]
mod tests;
