// SPDX-License-Identifier: Apache-2.0
//! Gateways: what the coordinator and a gateway say to each other, what two gateways say on a trunk, and what the
//! processes of a job know about them.
//!
//! A gateway is a process of the job at one local area (`area`, by its number). All connections between processes of
//! two areas that go through gateways share one *trunk*. It carries *streams*: the bytes of one connection between two
//! processes each, which is TLS between the two; gateways see nothing of it.
//!
//! **Coordinator and gateway**, through the agent (kind and fields as in [`crate::codec`], without length prefix; on
//! the gateway's standard input and output with it):
//!
//! | coordinator to gateway | kind | fields |
//! |---|---|---|
//! | `Open` | 1 | job text, area u32, secret 32, first port u16, last port u16, streams u8, threads u8, \[address text\] |
//! | `Areas` | 2 | \[area u32, epoch u32, ways u8, port u16, secret 32, \[address text\]\] |
//! | `Places` | 3 | \[area u32\] (of each rank), places |
//! | `Relay` | 4 | area u32, epoch u32, bytes |
//! | `Credit` | 5 | area u32, epoch u32, bytes u32 |
//! | `Measure` | 6 | area u32 |
//!
//! | gateway to coordinator | kind | fields |
//! |---|---|---|
//! | `Listening` | 65 | port u16, \[address text\] |
//! | `Settled` | 66 | area u32, outward text, inward u8, carrier u8, round trip u64 (ns), rate ([`Rate`]), why text |
//! | `Relay` | 67 | as above |
//! | `Credit` | 68 | as above |
//! | `Failed` | 69 | reason text |
//! | `Carried` | 70 | area u32, sent u64, received u64, streams u32, connections u32, round trip u64 (ns) |
//!
//! **On a trunk**, after the plain handshake of [`crate::hello`] with the numbers of the two areas ([`area_number`]) as
//! ranks, a secret that only these two gateways know, and [`thread_wish`] as the last byte of the reply:
//! ```text
//!   0      1             5            8
//!   +------+-------------+------------+----------
//!   | kind | stream u32  | length u24 | payload
//!   +------+-------------+------------+----------
//! ```
//! | frame | kind | payload |
//! |---|---|---|
//! | `Open` | 1 | from u32, to u32, wish u8 (0 to be dialled, 1 a stream, 2 bytes to be metered, 3 a stream that makes way) |
//! | `Opened` | 2 | |
//! | `Refused` | 3 | text |
//! | `Data` | 4 | bytes |
//! | `Credit` | 5 | bytes u32 |
//! | `End` | 6 | no more data in this direction |
//! | `Reset` | 7 | the stream is over |
//! | `Ping` | 8 | number u64 |
//! | `Pong` | 9 | number u64 |
//! | `Want` | 10 | thread u8: the other end shall connect this thread |
//!
//! **A process and the gateway of its area**: the plain handshake with the ranks of the two processes and a secret of
//! the area; the last byte of the reply is the wish. With [`WISH_LEAD`] it says how processes of other jobs come in and
//! go out ([`crate::gate`]). The gateway answers with one byte, [`READY`] or [`NO_WAY`]; after
//! [`READY`] to [`WISH_STREAM`] or [`WISH_BULK`] the connection is one with the other process.

mod wish;

pub use wish::{
    MAX_THREADS, NO_WAY, READY, WISH_BULK, WISH_DIAL, WISH_LEAD, WISH_MEASURE, WISH_STREAM, is_stream, thread_wish,
    wished_thread,
};

use crate::codec::{DecodeError, Reader, Writer};
use crate::place::PlaceTable;
use crate::rate::Rate;

/// Largest payload of a frame on a trunk, bytes.
pub const MAX_PAYLOAD: usize = 64 << 10;
/// Bytes in front of each payload.
pub const HEADER_BYTES: usize = 8;
/// Bytes that one gateway may have sent to another through the coordinator and that the other has not taken: what may
/// lie in the buffers of agents and the coordinator.
pub const RELAY_WINDOW: u32 = 1 << 20;
/// Longest `Relay`, bytes.
pub const MAX_RELAY: usize = 64 << 10;
/// Most addresses of one gateway.
pub const MAX_ADDRESSES: usize = 32;

/// The number under which the gateway of an area takes part in a plain handshake: above all ranks.
pub fn area_number(area: u32) -> u32 {
    0x8000_0000 | area
}

/// What a gateway is.
#[derive(Clone, PartialEq, Eq)]
pub struct Open {
    /// Name of the job.
    pub job: String,
    /// Number of the local area.
    pub area: u32,
    /// Proven on every connection between this gateway and a process of its area; nobody else knows it.
    pub secret: [u8; 32],
    /// Ports to listen on, first to last; 0 to 0: any.
    pub ports: (u16, u16),
    /// Connections of a trunk.
    pub streams: u8,
    /// Threads of a gateway that carry; 0: as many as are found to be needed.
    pub threads: u8,
    /// Addresses to be told to others; none: all that the machine has.
    pub addresses: Vec<String>,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Open").field("area", &self.area).finish_non_exhaustive()
    }
}

/// Where a gateway is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Area {
    /// Number of its local area.
    pub area: u32,
    /// Counts its starts; what belongs to an earlier one is void.
    pub epoch: u32,
    /// Which ways may be tried to it.
    pub ways: Ways,
    /// Port; 0: it has none.
    pub port: u16,
    /// Proven on every connection of the two gateways; nobody else knows it.
    pub secret: [u8; 32],
    /// Addresses, most promising first, as text without port.
    pub addresses: Vec<String>,
}

impl std::fmt::Debug for Area {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Area").field("area", &self.area).finish_non_exhaustive()
    }
}

/// What the user allows between two areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ways {
    /// Everything, best first.
    #[default]
    Any = 0,
    /// Connections between gateways only.
    Trunk = 1,
    /// Through the coordinator's connections only.
    Relay = 2,
}

/// What carries a trunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// Nothing yet.
    #[default]
    None = 0,
    /// A connection between the two gateways.
    Direct = 1,
    /// The coordinator's connections to the agents.
    Relay = 2,
}

/// What a gateway found out about another area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The other area.
    pub area: u32,
    /// The other's address and port with which a handshake that we began was completed; empty: none.
    pub outward: String,
    /// Whether one that the other began was completed.
    pub inward: bool,
    /// What carries the trunk.
    pub carrier: Carrier,
    /// Round trip on the trunk, nanoseconds; 0: not known.
    pub round_trip: u64,
    /// To the other, if it was measured.
    pub rate: Option<Rate>,
    /// What came of each address.
    pub why: String,
}

/// A piece of a trunk inside the coordinator's connections. `area`: the other end.
#[derive(Clone, PartialEq, Eq)]
pub struct Relay {
    /// The other area.
    pub area: u32,
    /// Sum of the two gateways' epochs: pieces from before a gateway began anew are void.
    pub epoch: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Relay(area {}, {} bytes)", self.area, self.bytes.len())
    }
}

/// From the coordinator to a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToGateway {
    /// First message.
    Open(Open),
    /// Where the other gateways are, as far as that is known or has changed.
    Areas(Vec<Area>),
    /// The job: area of each rank, and its place.
    Places(Vec<u32>, PlaceTable),
    /// From another gateway.
    Relay(Relay),
    /// So many bytes of ours have been taken by the other gateway.
    Credit {
        /// The other area.
        area: u32,
        /// As in [`Relay`].
        epoch: u32,
        /// How many.
        bytes: u32,
    },
    /// Measure the rate to this area.
    Measure(u32),
}

/// From a gateway to the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromGateway {
    /// It can be reached here.
    Listening {
        /// Port.
        port: u16,
        /// Addresses without port.
        addresses: Vec<String>,
    },
    /// What it found out.
    Settled(Settled),
    /// For another gateway.
    Relay(Relay),
    /// So many bytes of the other gateway have been taken.
    Credit {
        /// The other area.
        area: u32,
        /// As in [`Relay`].
        epoch: u32,
        /// How many.
        bytes: u32,
    },
    /// It cannot work.
    Failed(String),
    /// What the trunk to another area has carried since this gateway began; about once a second while that changes.
    Carried(Carried),
}

/// What a trunk has carried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// The other area.
    pub area: u32,
    /// Bytes to the other.
    pub sent: u64,
    /// Bytes from the other.
    pub received: u64,
    /// Streams of processes now.
    pub streams: u32,
    /// Connections between the two gateways now; 0 with bytes that pass: they are inside the coordinator's connections.
    pub connections: u32,
    /// Last round trip between the gateways, nanoseconds; 0: not known.
    pub round_trip: u64,
}

impl ToGateway {
    /// Kind and fields, without length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(match self {
            Self::Open(_) => 1,
            Self::Areas(_) => 2,
            Self::Places(..) => 3,
            Self::Relay(_) => 4,
            Self::Credit { .. } => 5,
            Self::Measure(_) => 6,
        });
        match self {
            Self::Open(open) => {
                w.text(&open.job).u32(open.area);
                open.secret.iter().for_each(|b| {
                    w.u8(*b);
                });
                w.u16(open.ports.0).u16(open.ports.1).u8(open.streams).u8(open.threads);
                write_texts(&mut w, &open.addresses);
            }
            Self::Areas(areas) => {
                w.list(areas, |w, area| area.write(w));
            }
            Self::Places(areas, places) => {
                w.list(areas, |w, area| {
                    w.u32(*area);
                });
                places.write(&mut w);
            }
            Self::Relay(relay) => relay.write(&mut w),
            Self::Credit { area, epoch, bytes } => {
                w.u32(*area).u32(*epoch).u32(*bytes);
            }
            Self::Measure(area) => {
                w.u32(*area);
            }
        }
        w.into_body()
    }

    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let message = match r.u8("kind")? {
            6 => Self::Measure(r.u32("area")?),
            1 => Self::Open(Open {
                job: r.text("job")?,
                area: r.u32("area")?,
                secret: r.fixed("secret")?,
                ports: (r.u16("first port")?, r.u16("last port")?),
                streams: r.u8("streams")?,
                threads: r.u8("threads")?,
                addresses: read_texts(&mut r)?,
            }),
            2 => Self::Areas(r.list("areas", Area::read)?),
            3 => Self::Places(r.list("areas", |r| r.u32("area"))?, PlaceTable::read(&mut r)?),
            4 => Self::Relay(Relay::read(&mut r)?),
            5 => Self::Credit {
                area: r.u32("area")?,
                epoch: r.u32("epoch")?,
                bytes: r.u32("credit")?,
            },
            other => return Err(invalid("kind", other.into())),
        };
        r.end()?;
        Ok(message)
    }
}

impl FromGateway {
    /// The other local area that it is about, if it is about one.
    pub fn area(&self) -> Option<u32> {
        match self {
            Self::Listening { .. } | Self::Failed(_) => None,
            Self::Settled(settled) => Some(settled.area),
            Self::Carried(carried) => Some(carried.area),
            Self::Relay(relay) => Some(relay.area),
            Self::Credit { area, .. } => Some(*area),
        }
    }

    /// Kind and fields, without length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(match self {
            Self::Listening { .. } => 65,
            Self::Settled(_) => 66,
            Self::Relay(_) => 67,
            Self::Credit { .. } => 68,
            Self::Failed(_) => 69,
            Self::Carried(_) => 70,
        });
        match self {
            Self::Listening { port, addresses } => {
                w.u16(*port);
                write_texts(&mut w, addresses);
            }
            Self::Settled(s) => {
                w.u32(s.area).text(&s.outward).u8(s.inward.into()).u8(s.carrier as u8);
                w.u64(s.round_trip);
                Rate::write(s.rate, &mut w);
                w.text(&s.why);
            }
            Self::Relay(relay) => relay.write(&mut w),
            Self::Credit { area, epoch, bytes } => {
                w.u32(*area).u32(*epoch).u32(*bytes);
            }
            Self::Failed(why) => {
                w.text(why);
            }
            Self::Carried(c) => {
                w.u32(c.area).u64(c.sent).u64(c.received);
                w.u32(c.streams).u32(c.connections).u64(c.round_trip);
            }
        }
        w.into_body()
    }

    /// Reads a body.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let message = match r.u8("kind")? {
            65 => Self::Listening {
                port: r.u16("port")?,
                addresses: read_texts(&mut r)?,
            },
            66 => Self::Settled(Settled {
                area: r.u32("area")?,
                outward: r.text("outward")?,
                inward: r.u8("inward")? != 0,
                carrier: match r.u8("carrier")? {
                    0 => Carrier::None,
                    1 => Carrier::Direct,
                    2 => Carrier::Relay,
                    other => return Err(invalid("carrier", other.into())),
                },
                round_trip: r.u64("round trip")?,
                rate: Rate::read(&mut r)?,
                why: r.text("why")?,
            }),
            67 => Self::Relay(Relay::read(&mut r)?),
            68 => Self::Credit {
                area: r.u32("area")?,
                epoch: r.u32("epoch")?,
                bytes: r.u32("credit")?,
            },
            69 => Self::Failed(r.text("why")?),
            70 => Self::Carried(Carried {
                area: r.u32("area")?,
                sent: r.u64("sent")?,
                received: r.u64("received")?,
                streams: r.u32("streams")?,
                connections: r.u32("connections")?,
                round_trip: r.u64("round trip")?,
            }),
            other => return Err(invalid("kind", other.into())),
        };
        r.end()?;
        Ok(message)
    }
}

impl Relay {
    fn write(&self, w: &mut Writer) {
        w.u32(self.area).u32(self.epoch).bytes(&self.bytes);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let relay = Self {
            area: r.u32("area")?,
            epoch: r.u32("epoch")?,
            bytes: r.bytes("relayed")?,
        };
        if relay.bytes.len() > MAX_RELAY {
            return Err(DecodeError::TooLong(relay.bytes.len() as u64));
        }
        Ok(relay)
    }
}

impl Area {
    fn write(&self, w: &mut Writer) {
        w.u32(self.area).u32(self.epoch).u8(self.ways as u8).u16(self.port);
        self.secret.iter().for_each(|b| {
            w.u8(*b);
        });
        write_texts(w, &self.addresses);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            area: r.u32("area")?,
            epoch: r.u32("epoch")?,
            ways: match r.u8("ways")? {
                0 => Ways::Any,
                1 => Ways::Trunk,
                2 => Ways::Relay,
                other => return Err(invalid("ways", other.into())),
            },
            port: r.u16("port")?,
            secret: r.fixed("secret")?,
            addresses: read_texts(r)?,
        })
    }
}

/// How a process reaches those of another area, as settled when the job began. When it does not work any more, or
/// nothing is known, everything is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AreaPath {
    /// Nothing is known.
    #[default]
    Unknown = 0,
    /// It dials them.
    Direct = 1,
    /// They dial it, when asked.
    Reverse = 2,
    /// Through the gateways.
    Gateway = 3,
    /// Through the gateways, because the user says so; nothing else is tried.
    OnlyGateway = 4,
    /// Directly, because the user says so; nothing else is tried.
    OnlyDirect = 5,
}

/// What a process knows about ways to other areas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Port of the gateway of its area; 0: there is none.
    pub port: u16,
    /// Addresses of that gateway.
    pub addresses: Vec<String>,
    /// Secret for connections with the gateway of its area.
    pub secret: [u8; 32],
    /// By number of the other area; those beyond the end are unknown.
    pub ways: Vec<AreaPath>,
}

impl Paths {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.u16(self.port);
        write_texts(w, &self.addresses);
        self.secret.iter().for_each(|b| {
            w.u8(*b);
        });
        w.list(&self.ways, |w, way| {
            w.u8(*way as u8);
        });
    }

    /// Reads it.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            port: r.u16("gateway's port")?,
            addresses: read_texts(r)?,
            secret: r.fixed("gateway's secret")?,
            ways: r.list("ways", |r| {
                Ok(match r.u8("way")? {
                    0 => AreaPath::Unknown,
                    1 => AreaPath::Direct,
                    2 => AreaPath::Reverse,
                    3 => AreaPath::Gateway,
                    4 => AreaPath::OnlyGateway,
                    5 => AreaPath::OnlyDirect,
                    other => return Err(invalid("way", other.into())),
                })
            })?,
        })
    }
}

fn write_texts(w: &mut Writer, texts: &[String]) {
    w.list(&texts[..texts.len().min(MAX_ADDRESSES)], |w, text| {
        w.text(text);
    });
}

fn read_texts(r: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    let texts = r.list("addresses", |r| r.text("address"))?;
    if texts.len() > MAX_ADDRESSES {
        return Err(DecodeError::TooLong(texts.len() as u64));
    }
    Ok(texts)
}

fn invalid(field: &'static str, value: u64) -> DecodeError {
    DecodeError::Invalid { field, value }
}

#[cfg(test)]
mod tests;
