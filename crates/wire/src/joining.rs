// SPDX-License-Identifier: Apache-2.0
//! What two groups of processes of different jobs tell each other before they can talk.
//!
//! ```text
//!  leader of a group                      leader of the other one
//!    Offer: everybody's place      <-->     Offer
//!    Terms: certificates, block     -->     (nothing)            from the group whose leader's name is the lower one
//!    Verdict: it works here        <-->     Verdict
//! ```
//! A leader tells its group what it hears. Until the last word nobody uses what the others are told.
//!
//! ```text
//!  Offer    refusal: text | leader: u32 | used blocks: 128 bytes | members
//!  member   world: 16 bytes | rank: u32 | subjob: u32 | node: u32 | job, site, area, host: text | machine: 32 bytes
//!           | processors: u32 | representation: 8 bytes | vendor: u8 | addresses: list of text | port: u16
//!           | signing request: bytes | meetings: list of 16 bytes | u8, and perhaps an entry ([`crate::entry`])
//!           | u8, and perhaps a gate ([`crate::gate`]) | u8, and perhaps memory
//!  memory   node: 48 bytes | process: u32 | file: u32 | bell: u32 | number of the bell: u64 | token: 16 bytes
//!  Terms    refusal: text | name: text | secret: 32 bytes | block: u16 | authority: bytes
//!           | certificates: list of bytes
//!  Verdict  kind: u8 (0 fine, 1 the block is in use, 2 it does not work, 3 no memory is shared) | reason: text
//!                                                                                                 little-endian
//! ```

use crate::codec::{DecodeError, MAX_MESSAGE, Reader, Writer};
use crate::entry::Entry;
use crate::gate::Gate;
use crate::joined;
use crate::place::Representation;
use crate::reason::{cut_to, read_for_people, read_name_for_people};

/// Blocks of numbers of contexts that communicators over several jobs have.
pub const BLOCKS: usize = 1024;
/// Most processes of a group.
pub const MAX_MEMBERS: usize = 1 << 17;
/// Longest text.
pub const MAX_TEXT: usize = 1024;
/// Most addresses of a process.
pub const MAX_ADDRESSES: usize = 32;
/// Most meetings that a process tells of.
pub const MAX_MEETINGS: usize = 1024;
/// Longest signing request or certificate.
pub const MAX_CERTIFICATE: usize = 4096;

/// Which blocks are in use, a bit each.
pub type Used = [u8; BLOCKS / 8];

/// A process as everybody names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The MPI_COMM_WORLD that it is in.
    pub world: [u8; 16],
    /// Its rank there.
    pub rank: u32,
}

/// Memory for messages that a process has made for a meeting. Others of its node open it by way of the process, so it
/// has no name that could stay behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Equal at processes that may share memory.
    pub node: [u8; 48],
    /// The number of the process there.
    pub process: u32,
    /// Its descriptor of the memory.
    pub file: u32,
    /// Its descriptor of what wakes it.
    pub bell: u32,
    /// How the kernel numbers what wakes it: descriptors are used again.
    pub bell_number: u64,
    /// What stands in the memory, drawn by chance.
    pub token: [u8; 16],
}

/// A process of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who it is.
    pub name: Name,
    /// Its machine, as its world numbers them.
    pub subjob: u32,
    /// Its node, as its world numbers them.
    pub node: u32,
    /// What its job is called, for people; empty: it has no launcher.
    pub job: String,
    /// Name of the machine.
    pub site: String,
    /// Local area of the machine, as its job names it.
    pub area: String,
    /// Host name, for people.
    pub host: String,
    /// Equal at processes that reach each other over the loopback interface.
    pub machine: [u8; 32],
    /// Processors of the node; 0: not known.
    pub processors: u32,
    /// How it represents data.
    pub representation: Representation,
    /// Whether it is part of a job of a vendor MPI.
    pub vendor: bool,
    /// Where it can be reached.
    pub addresses: Vec<String>,
    /// The port on which it listens.
    pub port: u16,
    /// For a certificate (PKCS#10, DER).
    pub request: Vec<u8>,
    /// Names of the meetings in which it is: whoever is in one of them too knows it already.
    pub meetings: Vec<[u8; 16]>,
    /// How it is reached through the host at which its job meets others.
    pub entry: Option<Entry>,
    /// How it is reached through the gateway of its local area.
    pub gate: Option<Gate>,
    /// How others of its node reach it in memory.
    pub memory: Option<Memory>,
}

/// What a group says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Why it cannot; empty: it can.
    pub refusal: String,
    /// Its leader, by its place among the members.
    pub leader: u32,
    /// Blocks of which any member uses a number.
    pub used: Used,
    /// The members, in order of rank.
    pub members: Vec<Member>,
}

/// How both groups are to meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Why it cannot be; empty: it can.
    pub refusal: String,
    /// The name that certificates have in place of a job's.
    pub name: String,
    /// Secret for connections inside a local area.
    pub secret: [u8; 32],
    /// The block whose numbers the new communicators have.
    pub block: u16,
    /// Certificate of the authority.
    pub authority: Vec<u8>,
    /// Those of all processes, of the group that says so first.
    pub certificates: Vec<Vec<u8>>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All members can talk to all others.
    Fine,
    /// A member uses the block, since somebody else got it meanwhile: with another one it works.
    Used,
    /// Processes of one node cannot share memory, for this reason: without that it works.
    Apart(String),
    /// It does not work, for this reason.
    Refused(String),
}

fn text(r: &mut Reader<'_>, field: &'static str) -> Result<String, DecodeError> {
    read_for_people(r, field, MAX_TEXT)
}

fn bounded(field: &'static str, value: usize, most: usize) -> Result<(), DecodeError> {
    match value <= most {
        true => Ok(()),
        false => Err(DecodeError::Invalid {
            field,
            value: value as u64,
        }),
    }
}

fn certificate(r: &mut Reader<'_>, field: &'static str) -> Result<Vec<u8>, DecodeError> {
    let bytes = r.bytes(field)?;
    bounded(field, bytes.len(), MAX_CERTIFICATE)?;
    Ok(bytes)
}

/// A text that fits.
pub fn shortened(text: &str) -> &str {
    cut_to(text, MAX_TEXT)
}

impl Memory {
    fn write(&self, w: &mut Writer) {
        w.fixed(&self.node).u32(self.process).u32(self.file).u32(self.bell);
        w.u64(self.bell_number).fixed(&self.token);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            node: r.fixed("node")?,
            process: r.u32("process")?,
            file: r.u32("file")?,
            bell: r.u32("bell")?,
            bell_number: r.u64("number of the bell")?,
            token: r.fixed("token")?,
        })
    }
}

impl Member {
    fn write(&self, w: &mut Writer) {
        fixed(w, &self.name.world);
        w.u32(self.name.rank).u32(self.subjob).u32(self.node);
        w.text(cut_to(&self.job, joined::MAX_TEXT));
        w.text(shortened(&self.site))
            .text(shortened(&self.area))
            .text(shortened(&self.host));
        fixed(w, &self.machine);
        w.u32(self.processors);
        fixed(w, &self.representation.0);
        w.u8(u8::from(self.vendor));
        w.list(&self.addresses, |w, address| {
            w.text(shortened(address));
        });
        w.u16(self.port).bytes(&self.request);
        w.list(&self.meetings, |w, name| fixed(w, name));
        w.u8(u8::from(self.entry.is_some()));
        if let Some(entry) = &self.entry {
            entry.write(w);
        }
        w.u8(u8::from(self.gate.is_some()));
        if let Some(gate) = &self.gate {
            gate.write(w);
        }
        w.u8(u8::from(self.memory.is_some()));
        if let Some(memory) = &self.memory {
            memory.write(w);
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let member = Self {
            name: Name {
                world: r.fixed("world")?,
                rank: r.u32("rank")?,
            },
            subjob: r.u32("subjob")?,
            node: r.u32("node")?,
            job: read_name_for_people(r, "job", joined::MAX_TEXT)?,
            site: text(r, "site")?,
            area: text(r, "area")?,
            host: text(r, "host")?,
            machine: r.fixed("machine")?,
            processors: r.u32("processors")?,
            representation: Representation(r.fixed("representation")?),
            vendor: r.u8("vendor")? != 0,
            addresses: r.list("addresses", |r| text(r, "address"))?,
            port: r.u16("port")?,
            request: certificate(r, "request")?,
            meetings: r.list("meetings", |r| r.fixed("meeting"))?,
            entry: match r.u8("entry")? {
                0 => None,
                _ => Some(Entry::read(r)?),
            },
            gate: match r.u8("gate")? {
                0 => None,
                _ => Some(Gate::read(r)?),
            },
            memory: match r.u8("memory")? {
                0 => None,
                _ => Some(Memory::read(r)?),
            },
        };
        bounded("addresses", member.addresses.len(), MAX_ADDRESSES)?;
        bounded("meetings", member.meetings.len(), MAX_MEETINGS)?;
        Ok(member)
    }
}

fn fixed(w: &mut Writer, bytes: &[u8]) {
    for &byte in bytes {
        w.u8(byte);
    }
}

fn whole(body: &[u8]) -> Result<Reader<'_>, DecodeError> {
    match body.len() <= MAX_MESSAGE {
        true => Ok(Reader::new(body)),
        false => Err(DecodeError::TooLong(body.len() as u64)),
    }
}

impl Offer {
    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.text(shortened(&self.refusal)).u32(self.leader);
        fixed(&mut w, &self.used);
        w.list(&self.members, |w, member| member.write(w));
        w.into_body()
    }

    /// One that has travelled: the leader is one of the members.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = whole(body)?;
        let offer = Self {
            refusal: text(&mut r, "refusal")?,
            leader: r.u32("leader")?,
            used: r.fixed("used blocks")?,
            members: r.list("members", Member::read)?,
        };
        r.end()?;
        bounded("members", offer.members.len(), MAX_MEMBERS)?;
        if offer.refusal.is_empty() {
            bounded("leader", offer.leader as usize + 1, offer.members.len())?;
        }
        Ok(offer)
    }
}

impl Terms {
    /// As they travel.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.text(shortened(&self.refusal)).text(shortened(&self.name));
        fixed(&mut w, &self.secret);
        w.u16(self.block).bytes(&self.authority);
        w.list(&self.certificates, |w, certificate| {
            w.bytes(certificate);
        });
        w.into_body()
    }

    /// Those that have travelled.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = whole(body)?;
        let terms = Self {
            refusal: text(&mut r, "refusal")?,
            name: text(&mut r, "name")?,
            secret: r.fixed("secret")?,
            block: r.u16("block")?,
            authority: certificate(&mut r, "authority")?,
            certificates: r.list("certificates", |r| certificate(r, "certificate"))?,
        };
        r.end()?;
        bounded("block", usize::from(terms.block), BLOCKS - 1)?;
        bounded("certificates", terms.certificates.len(), 2 * MAX_MEMBERS)?;
        Ok(terms)
    }
}

impl Verdict {
    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Self::Fine => w.u8(0).text(""),
            Self::Used => w.u8(1).text(""),
            Self::Refused(why) => w.u8(2).text(shortened(why)),
            Self::Apart(why) => w.u8(3).text(shortened(why)),
        };
        w.into_body()
    }

    /// One that has travelled.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = whole(body)?;
        let (kind, why) = (r.u8("verdict")?, text(&mut r, "reason")?);
        r.end()?;
        match kind {
            0 => Ok(Self::Fine),
            1 => Ok(Self::Used),
            2 => Ok(Self::Refused(why)),
            3 => Ok(Self::Apart(why)),
            _ => Err(DecodeError::Invalid {
                field: "verdict",
                value: kind.into(),
            }),
        }
    }

    /// The worse of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self.weight() < other.weight() {
            true => other,
            false => self,
        }
    }

    fn weight(&self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Used => 1,
            Self::Apart(_) => 2,
            Self::Refused(_) => 3,
        }
    }
}

/// For the fuzzer: any bytes as each of the messages.
pub fn fuzz(bytes: &[u8]) {
    if let Ok(offer) = Offer::decode(bytes) {
        assert_eq!(Offer::decode(&offer.encode()), Ok(offer), "an offer survives the wire");
    }
    if let Ok(terms) = Terms::decode(bytes) {
        assert_eq!(Terms::decode(&terms.encode()), Ok(terms), "terms survive the wire");
    }
    if let Ok(verdict) = Verdict::decode(bytes) {
        assert_eq!(
            Verdict::decode(&verdict.encode()),
            Ok(verdict),
            "a verdict survives the wire"
        );
    }
}

/// An offer of two processes, for tests and the fuzzer.
pub fn sample() -> Offer {
    let member = |rank| Member {
        name: Name { world: [7; 16], rank },
        subjob: 1,
        node: 2,
        job: "tank".into(),
        site: "lab".into(),
        area: "lab".into(),
        host: "lab-1".into(),
        machine: [3; 32],
        processors: 4,
        representation: Representation([1; 8]),
        vendor: rank == 1,
        addresses: vec!["10.0.0.1".into(), "fd00::1".into()],
        port: 4711,
        request: vec![1, 2, 3],
        meetings: vec![[9; 16]],
        entry: (rank == 1).then(crate::entry::sample),
        gate: (rank == 0).then(crate::gate::sample),
        memory: (rank == 0).then_some(Memory {
            node: [6; 48],
            process: 4242,
            file: 7,
            bell: 8,
            bell_number: 1 << 40,
            token: [4; 16],
        }),
    };
    Offer {
        refusal: String::new(),
        leader: 1,
        used: [5; BLOCKS / 8],
        members: vec![member(0), member(1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_survives_the_wire_and_cut_ones_are_refused() {
        let offer = sample();
        let bytes = offer.encode();
        assert_eq!(Offer::decode(&bytes), Ok(offer));
        for length in 0..bytes.len() {
            assert!(Offer::decode(&bytes[..length]).is_err(), "{length}");
        }
        let terms = Terms {
            refusal: String::new(),
            name: "meeting".into(),
            secret: [8; 32],
            block: 1023,
            authority: vec![1; 300],
            certificates: vec![vec![2; 400], vec![]],
        };
        let bytes = terms.encode();
        assert_eq!(Terms::decode(&bytes), Ok(terms));
        for length in 0..bytes.len() {
            assert!(Terms::decode(&bytes[..length]).is_err(), "{length}");
        }
        let apart = Verdict::Apart("no".into());
        for verdict in [Verdict::Fine, Verdict::Used, apart, Verdict::Refused("no".into())] {
            assert_eq!(Verdict::decode(&verdict.encode()), Ok(verdict));
        }
    }

    #[test]
    fn what_has_no_sense_is_refused() {
        let strange = Offer { leader: 2, ..sample() };
        assert!(Offer::decode(&strange.encode()).is_err(), "no such leader");
        let long = Offer {
            members: vec![Member {
                addresses: vec![String::new(); MAX_ADDRESSES + 1],
                ..sample().members.remove(0)
            }],
            leader: 0,
            ..sample()
        };
        assert!(Offer::decode(&long.encode()).is_err(), "too many addresses");
        assert!(Verdict::decode(&[4, 0, 0, 0, 0]).is_err());
        assert_eq!(shortened(&"é".repeat(MAX_TEXT)).len(), MAX_TEXT);
    }

    #[test]
    fn the_worse_verdict_counts() {
        let refused = || Verdict::Refused("no".into());
        assert_eq!(Verdict::Fine.and(Verdict::Used), Verdict::Used);
        assert_eq!(Verdict::Used.and(refused()), refused());
        let apart = || Verdict::Apart("no".into());
        assert_eq!(Verdict::Used.and(apart()), apart());
        assert_eq!(refused().and(apart()), refused());
        assert_eq!(refused().and(Verdict::Fine), refused());
    }
}
