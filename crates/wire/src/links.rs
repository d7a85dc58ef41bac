// SPDX-License-Identifier: Apache-2.0
//! What messages cost, as it travels: the table that a job begins with, and what its processes have measured.
//!
//! ```text
//!  Table
//!  | version u8 | measure u8 | 5 links, wide area first | reduce curve | copy curve | [pair] |
//!  link    | latency u64 | gap curve | send curve | receive curve |            times in nanoseconds
//!  curve   | count u32 | (bytes u64, nanoseconds u64) ... |                    sizes ascend, times do not descend
//!  pair    | a u32 | b u32 | origin of latency u8 | origin of rate u8 | rate | link |   areas, a < b, pairs ascend
//!
//!  Measured, 43 bytes
//!  | a u32 | b u32 | latency u64, 0: none | rate, see [`Rate`] |
//! ```
//! Local areas have numbers in the order in which their first machines stand in the place table.

use crate::codec::{DecodeError, Reader, Writer};
use crate::rate::{RATE_BYTES, Rate};

/// Version of the layout of [`Table`].
pub const VERSION: u8 = 2;

/// Most points of a curve.
pub const MAX_POINTS: usize = 64;

/// Most pairs of local areas that have links of their own.
pub const MAX_PAIRS: usize = 1 << 16;

/// Bytes of a [`Measured`].
pub const MEASURED_BYTES: usize = 16 + RATE_BYTES;

/// Points (bytes, nanoseconds).
pub type Curve = Vec<(u64, u64)>;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Origin {
    /// Nobody knows; a usual value.
    #[default]
    Assumed = 0,
    /// Measured in an earlier job.
    Cached = 1,
    /// Measured in this job.
    Measured = 2,
    /// The user says so.
    Pinned = 3,
}

impl Origin {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Assumed => "assumed",
            Self::Cached => "cached",
            Self::Measured => "measured",
            Self::Pinned => "pinned",
        }
    }

    fn read(r: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        Ok(match r.u8(field)? {
            0 => Self::Assumed,
            1 => Self::Cached,
            2 => Self::Measured,
            3 => Self::Pinned,
            value => {
                return Err(DecodeError::Invalid {
                    field,
                    value: u64::from(value),
                });
            }
        })
    }
}

/// A link: see `isthmus_topology::Link`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Link {
    /// One way, nanoseconds.
    pub latency: u64,
    /// How long a message occupies the link.
    pub gap: Curve,
    /// How long sending occupies the sender.
    pub send: Curve,
    /// How long receiving occupies the receiver.
    pub receive: Curve,
}

/// The link between two local areas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Numbers of the two, the smaller one first.
    pub between: (u32, u32),
    /// Where its latency comes from.
    pub latency: Origin,
    /// Where its gap comes from.
    pub rate: Origin,
    /// The rate that the gap comes from, with what it stands on, if that is known.
    pub evidence: Option<Rate>,
    /// Everything about it.
    pub link: Link,
}

/// All links of a job.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Table {
    /// By level, wide area first.
    pub levels: [Link; 5],
    /// How long a process combines so many bytes with others.
    pub reduce: Curve,
    /// How long a process copies so many bytes.
    pub copy: Curve,
    /// Pairs of which something is known.
    pub pairs: Vec<Pair>,
    /// Whether processes are to measure what is not known.
    pub measure: bool,
}

/// What a process has measured of the link between two local areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Measured {
    /// Numbers of the two, the smaller one first.
    pub between: (u32, u32),
    /// One way, nanoseconds.
    pub latency: Option<u64>,
    /// Of one connection.
    pub rate: Option<Rate>,
}

fn write_curve(w: &mut Writer, curve: &Curve) {
    w.list(curve, |w, (bytes, time)| {
        w.u64(*bytes).u64(*time);
    });
}

fn read_curve(r: &mut Reader<'_>, field: &'static str) -> Result<Curve, DecodeError> {
    let curve = r.list(field, |r| Ok((r.u64(field)?, r.u64(field)?)))?;
    let invalid = |value| Err(DecodeError::Invalid { field, value });
    if curve.len() > MAX_POINTS {
        return invalid(curve.len() as u64);
    }
    match curve.windows(2).find(|p| p[1].0 <= p[0].0 || p[1].1 < p[0].1) {
        Some(pair) => invalid(pair[1].0),
        None => Ok(curve),
    }
}

impl Link {
    fn write(&self, w: &mut Writer) {
        w.u64(self.latency);
        write_curve(w, &self.gap);
        write_curve(w, &self.send);
        write_curve(w, &self.receive);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            latency: r.u64("latency")?,
            gap: read_curve(r, "gap")?,
            send: read_curve(r, "send")?,
            receive: read_curve(r, "receive")?,
        })
    }
}

impl Pair {
    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            between: read_between(r)?,
            latency: Origin::read(r, "origin of latency")?,
            rate: Origin::read(r, "origin of rate")?,
            evidence: Rate::read(r)?,
            link: Link::read(r)?,
        })
    }
}

fn read_between(r: &mut Reader<'_>) -> Result<(u32, u32), DecodeError> {
    let (a, b) = (r.u32("local area")?, r.u32("local area")?);
    if a >= b {
        return Err(DecodeError::Invalid {
            field: "local area",
            value: u64::from(b),
        });
    }
    Ok((a, b))
}

impl Table {
    /// Appends the table to a message.
    pub fn write(&self, w: &mut Writer) {
        w.u8(VERSION).u8(self.measure.into());
        for link in &self.levels {
            link.write(w);
        }
        write_curve(w, &self.reduce);
        write_curve(w, &self.copy);
        w.list(&self.pairs, |w, pair| {
            w.u32(pair.between.0).u32(pair.between.1);
            w.u8(pair.latency as u8).u8(pair.rate as u8);
            Rate::write(pair.evidence, w);
            pair.link.write(w);
        });
    }

    /// Reads a table.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let version = r.u8("version of links")?;
        if version != VERSION {
            return Err(DecodeError::Invalid {
                field: "version of links",
                value: u64::from(version),
            });
        }
        let measure = match r.u8("measure")? {
            0 => false,
            1 => true,
            value => {
                return Err(DecodeError::Invalid {
                    field: "measure",
                    value: u64::from(value),
                });
            }
        };
        let mut levels: [Link; 5] = Default::default();
        for link in &mut levels {
            *link = Link::read(r)?;
        }
        let (reduce, copy) = (read_curve(r, "reduce")?, read_curve(r, "copy")?);
        let pairs = r.list("pairs", Pair::read)?;
        if pairs.len() > MAX_PAIRS {
            return Err(DecodeError::Invalid {
                field: "pairs",
                value: pairs.len() as u64,
            });
        }
        if let Some(twice) = pairs.windows(2).find(|p| p[1].between <= p[0].between) {
            return Err(DecodeError::Invalid {
                field: "pairs",
                value: u64::from(twice[1].between.1),
            });
        }
        Ok(Self {
            levels,
            reduce,
            copy,
            pairs,
            measure,
        })
    }

    /// As a message of its own.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        self.write(&mut w);
        w.into_body()
    }

    /// Reads a message of its own.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let table = Self::read(&mut r)?;
        r.end()?;
        Ok(table)
    }
}

impl Measured {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.u32(self.between.0).u32(self.between.1);
        w.u64(self.latency.unwrap_or(0));
        Rate::write(self.rate, w);
    }

    /// Reads it.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let some = |n: u64| (n != 0).then_some(n);
        Ok(Self {
            between: read_between(r)?,
            latency: some(r.u64("latency")?),
            rate: Rate::read(r)?,
        })
    }

    /// Several, as a message of their own without a count.
    pub fn encode_all(all: &[Self]) -> Vec<u8> {
        let mut w = Writer::default();
        for one in all {
            one.write(&mut w);
        }
        w.into_body()
    }

    /// Reads what [`Measured::encode_all`] wrote.
    pub fn decode_all(body: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut r = Reader::new(body);
        let all = (0..body.len() / MEASURED_BYTES).map(|_| Self::read(&mut r)).collect();
        r.end()?;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(latency: u64) -> Link {
        Link {
            latency,
            gap: vec![(0, 5), (1 << 40, 1 << 50)],
            send: vec![(0, 1)],
            receive: vec![],
        }
    }

    fn pair(between: (u32, u32)) -> Pair {
        Pair {
            between,
            latency: Origin::Measured,
            rate: Origin::Pinned,
            evidence: Some(Rate::bare(between.0.into())).filter(|rate| rate.bytes_per_second > 0),
            link: link(7),
        }
    }

    fn table(pairs: Vec<Pair>) -> Table {
        Table {
            levels: [link(1), link(2), link(3), link(4), link(5)],
            reduce: vec![(0, 0), (8, 9)],
            copy: vec![],
            pairs,
            measure: true,
        }
    }

    #[test]
    fn tables_survive_the_wire() {
        let table = table(vec![pair((0, 1)), pair((0, 2)), pair((1, 2))]);
        assert_eq!(Table::decode(&table.encode()), Ok(table));
    }

    #[test]
    fn wrong_tables_are_refused() {
        let refused = |table: Table| matches!(Table::decode(&table.encode()), Err(DecodeError::Invalid { .. }));
        assert!(refused(table(vec![pair((1, 1))])));
        assert!(refused(table(vec![pair((0, 1)), pair((0, 1))])));
        for curve in [
            vec![(1, 1), (1, 2)],
            vec![(1, 2), (2, 1)],
            (0..65).map(|i| (i, i)).collect(),
        ] {
            assert!(refused(Table {
                copy: curve,
                ..Table::default()
            }));
        }
        let mut bytes = Table::default().encode();
        bytes[0] = 9;
        assert!(Table::decode(&bytes).is_err());
    }

    #[test]
    fn measurements_survive_the_wire() {
        let one = |between, latency, rate| Measured { between, latency, rate };
        let all = [one((0, 3), Some(5), None), one((1, 2), None, Some(Rate::bare(9)))];
        let bytes = Measured::encode_all(&all);
        assert_eq!(bytes.len(), 2 * MEASURED_BYTES);
        assert_eq!(Measured::decode_all(&bytes), Ok(all.to_vec()));
        assert!(Measured::decode_all(&bytes[1..]).is_err());
    }
}
