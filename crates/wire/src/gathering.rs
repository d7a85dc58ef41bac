// SPDX-License-Identifier: Apache-2.0
//! A world that is put together by hand: what launchers of its parts and the one that gathers them say to each other,
//! over TLS.
//!
//! ```text
//!  joins                     gathers
//!    Knock     -->                     1 | version: u32 | secret: 16 bytes       at most MAX_KNOCK bytes
//!    Come      -->                     2 | world: text | part, of: u32 | host: text | machine: 32 bytes
//!                                        | subjobs: list of site: text, lan: text, count: u32, programs: list of first, appnum: u32; home: u8
//!              <--  Refused            1 | text                                  and the connection ends
//!              <--  Admitted           2 | part, of: u32
//!              <--  Begin              3 | subjob, number, first, planned, silence: u32 | job, site, lan: text
//!                                        | gateway: bytes | only way: u8         all parts are there: one per subjob
//!    Said      -->                     3 | subjob: u32 | what: u8 | text or bytes
//!              <--  Tell               4 | subjob: u32 | bytes: a message of `grid` to its agent
//!    Interrupt -->                     4 | signal: u32
//!              <--  Over               5 | status: i32 as u32 | problem: text | hint: text
//! ```
//! The secret and whom to believe stand in the ticket, which has the form of the name of a port ([`crate::port`]).
//! What a part runs, it alone says: nothing here names a program.

use crate::codec::{DecodeError, Reader, Writer};
use crate::place::{read_programs, write_programs};
use crate::reason::{cut_to, read_up_to};

/// Version of these messages.
pub const VERSION: u32 = 2;
/// Most bytes that a stranger may send.
pub const MAX_KNOCK: usize = 64;
/// Most bytes of what describes a part.
pub const MAX_COME: usize = 256 << 10;
/// Longest text of a reason, a name or a notice, bytes.
const MAX_TEXT: usize = 8 << 10;

/// A subjob of a part, as far as others need to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name of its site, as its user knows it.
    pub site: String,
    /// Its local area, as its user knows it.
    pub lan: String,
    /// Number of processes.
    pub count: u32,
    /// Where each of its programs begins, and its number among those of the part ([`crate::place::Subjob::programs`]).
    pub programs: Vec<(u32, u32)>,
    /// It is on the machine of its launcher.
    pub home: bool,
}

/// A part that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Come {
    /// Name of the world; empty: whichever the ticket is for.
    pub world: String,
    /// Which part, from 1; 0: any.
    pub part: u32,
    /// How many parts there are; 0: as many as others say.
    pub of: u32,
    /// The machine of its launcher, for people.
    pub host: String,
    /// Equal where processes reach each other over the loopback interface.
    pub machine: [u8; 32],
    /// Its subjobs.
    pub members: Vec<Member>,
}

/// All parts are there: what a subjob needs to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Which subjob of the part.
    pub subjob: u32,
    /// Its number in the job.
    pub number: u32,
    /// Its first rank.
    pub first: u32,
    /// How many subjobs the job has.
    pub planned: u32,
    /// How long its agent may hear nothing, seconds.
    pub silence: u32,
    /// Name of the job.
    pub job: String,
    /// Name of its site in the job.
    pub site: String,
    /// Its local area in the job.
    pub lan: String,
    /// First message to the gateway that its agent shall start; empty: none.
    pub gateway: Vec<u8>,
    /// Its processes reach others through that gateway only.
    pub only_way: bool,
}

/// What becomes of a subjob of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Something moves on.
    Progress,
    /// Files are on their way: how far.
    Staging(String),
    /// Its agent has been told to start.
    Serving,
    /// Its agent says: a message of `grid` without its length.
    Message(Vec<u8>),
    /// What the user should know.
    Notice(String),
    /// Its connection has ended: why, and what to do.
    Closed(String, String),
}

/// What a part says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromPart {
    /// I have a ticket.
    Knock {
        /// Of these messages.
        version: u32,
        /// From the ticket.
        secret: [u8; 16],
    },
    /// This is what I bring.
    Come(Come),
    /// What becomes of one of my subjobs.
    Said {
        /// Which one.
        subjob: u32,
        /// What.
        said: Said,
    },
    /// My user wants the end.
    Interrupt(u32),
}

/// What is said to a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToPart {
    /// It is not taken, for this reason.
    Refused(String),
    /// It is this part of so many.
    Admitted {
        /// From 1.
        part: u32,
        /// How many there are.
        of: u32,
    },
    /// One of its subjobs begins.
    Begin(Begin),
    /// A message of `grid` for an agent, without its length.
    Tell {
        /// Of which subjob.
        subjob: u32,
        /// The message.
        message: Vec<u8>,
    },
    /// The job is over.
    Over {
        /// Its exit status.
        status: i32,
        /// What went wrong; may be empty.
        problem: String,
        /// What to do about it; may be empty.
        hint: String,
    },
}

fn cut(text: &str) -> &str {
    cut_to(text, MAX_TEXT)
}

fn text(r: &mut Reader<'_>, field: &'static str) -> Result<String, DecodeError> {
    read_up_to(r, field, MAX_TEXT)
}

fn flag(r: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match r.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(unknown(field, value)),
    }
}

fn unknown(field: &'static str, value: u8) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: value.into(),
    }
}

impl FromPart {
    /// As it goes on the stream.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Knock { version, secret } => {
                let mut w = Writer::new(1);
                w.u32(*version);
                for byte in secret {
                    w.u8(*byte);
                }
                w.into_framed()
            }
            Self::Come(come) => come.encode(),
            Self::Said { subjob, said } => {
                let mut w = Writer::new(3);
                w.u32(*subjob);
                match said {
                    Said::Progress => w.u8(0),
                    Said::Staging(how) => w.u8(1).text(cut(how)),
                    Said::Serving => w.u8(2),
                    Said::Message(message) => w.u8(3).bytes(message),
                    Said::Notice(what) => w.u8(4).text(cut(what)),
                    Said::Closed(problem, hint) => w.u8(5).text(cut(problem)).text(cut(hint)),
                };
                w.into_framed()
            }
            Self::Interrupt(signal) => {
                let mut w = Writer::new(4);
                w.u32(*signal);
                w.into_framed()
            }
        }
    }

    /// One that has travelled.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let message = match r.u8("kind")? {
            1 => Self::Knock {
                version: r.u32("version")?,
                secret: r.fixed("secret")?,
            },
            2 => Self::Come(Come::read(&mut r)?),
            3 => Self::Said {
                subjob: r.u32("subjob")?,
                said: match r.u8("what")? {
                    0 => Said::Progress,
                    1 => Said::Staging(text(&mut r, "how")?),
                    2 => Said::Serving,
                    3 => Said::Message(r.bytes("message")?),
                    4 => Said::Notice(text(&mut r, "notice")?),
                    5 => Said::Closed(text(&mut r, "problem")?, text(&mut r, "hint")?),
                    other => return Err(unknown("what", other)),
                },
            },
            4 => Self::Interrupt(r.u32("signal")?),
            other => return Err(unknown("kind", other)),
        };
        r.end()?;
        Ok(message)
    }
}

impl Come {
    fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(2);
        w.text(&self.world).u32(self.part).u32(self.of).text(cut(&self.host));
        for byte in self.machine {
            w.u8(byte);
        }
        w.list(&self.members, |w, one| {
            w.text(&one.site).text(&one.lan).u32(one.count);
            write_programs(w, &one.programs);
            w.u8(one.home.into());
        });
        w.into_framed()
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            world: text(r, "world")?,
            part: r.u32("part")?,
            of: r.u32("of")?,
            host: text(r, "host")?,
            machine: r.fixed("machine")?,
            members: r.list("subjobs", |r| {
                let (site, lan, count) = (text(r, "site")?, text(r, "lan")?, r.u32("count")?);
                Ok(Member {
                    site,
                    lan,
                    count,
                    programs: read_programs(r, count)?,
                    home: flag(r, "home")?,
                })
            })?,
        })
    }
}

impl ToPart {
    /// As it goes on the stream.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Refused(why) => {
                let mut w = Writer::new(1);
                w.text(cut(why));
                w.into_framed()
            }
            Self::Admitted { part, of } => {
                let mut w = Writer::new(2);
                w.u32(*part).u32(*of);
                w.into_framed()
            }
            Self::Begin(begin) => {
                let mut w = Writer::new(3);
                w.u32(begin.subjob).u32(begin.number).u32(begin.first);
                w.u32(begin.planned).u32(begin.silence);
                w.text(&begin.job).text(&begin.site).text(&begin.lan);
                w.bytes(&begin.gateway).u8(begin.only_way.into());
                w.into_framed()
            }
            Self::Tell { subjob, message } => {
                let mut w = Writer::new(4);
                w.u32(*subjob).bytes(message);
                w.into_framed()
            }
            Self::Over { status, problem, hint } => {
                let mut w = Writer::new(5);
                w.u32(u32::from_le_bytes(status.to_le_bytes()))
                    .text(cut(problem))
                    .text(cut(hint));
                w.into_framed()
            }
        }
    }

    /// One that has travelled.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let message = match r.u8("kind")? {
            1 => Self::Refused(text(&mut r, "reason")?),
            2 => Self::Admitted {
                part: r.u32("part")?,
                of: r.u32("of")?,
            },
            3 => Self::Begin(Begin {
                subjob: r.u32("subjob")?,
                number: r.u32("number")?,
                first: r.u32("first")?,
                planned: r.u32("planned")?,
                silence: r.u32("silence")?,
                job: text(&mut r, "job")?,
                site: text(&mut r, "site")?,
                lan: text(&mut r, "lan")?,
                gateway: r.bytes("gateway")?,
                only_way: flag(&mut r, "only way")?,
            }),
            4 => Self::Tell {
                subjob: r.u32("subjob")?,
                message: r.bytes("message")?,
            },
            5 => Self::Over {
                status: i32::from_le_bytes(r.u32("status")?.to_le_bytes()),
                problem: text(&mut r, "problem")?,
                hint: text(&mut r, "hint")?,
            },
            other => return Err(unknown("kind", other)),
        };
        r.end()?;
        Ok(message)
    }
}

/// For the fuzzer: any bytes as messages of both sides.
pub fn fuzz(bytes: &[u8]) {
    if let Ok(message) = FromPart::decode(bytes) {
        assert_eq!(
            FromPart::decode(&message.encode()[4..]),
            Ok(message),
            "it survives the wire"
        );
    }
    if let Ok(message) = ToPart::decode(bytes) {
        assert_eq!(
            ToPart::decode(&message.encode()[4..]),
            Ok(message),
            "it survives the wire"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_part() -> Vec<FromPart> {
        let said = |said| FromPart::Said { subjob: 1, said };
        let member = Member {
            site: "home".into(),
            lan: "home".into(),
            count: 4,
            programs: vec![(0, 1), (3, 2)],
            home: true,
        };
        vec![
            FromPart::Knock {
                version: VERSION,
                secret: [7; 16],
            },
            FromPart::Come(Come {
                world: "ocean".into(),
                part: 2,
                of: 3,
                host: "desk".into(),
                machine: [3; 32],
                members: vec![member],
            }),
            said(Said::Progress),
            said(Said::Staging("1 of 2".into())),
            said(Said::Serving),
            said(Said::Message(vec![1, 2])),
            said(Said::Notice("x".into())),
            said(Said::Closed("gone".into(), String::new())),
            FromPart::Interrupt(2),
        ]
    }

    fn to_part() -> Vec<ToPart> {
        vec![
            ToPart::Refused("full".into()),
            ToPart::Admitted { part: 2, of: 3 },
            ToPart::Begin(Begin {
                subjob: 0,
                number: 2,
                first: 4,
                planned: 3,
                silence: 60,
                job: "isthmus-1".into(),
                site: "desk".into(),
                lan: "desk".into(),
                gateway: vec![1],
                only_way: false,
            }),
            ToPart::Tell {
                subjob: 0,
                message: vec![9],
            },
            ToPart::Over {
                status: -1,
                problem: "p".into(),
                hint: "h".into(),
            },
        ]
    }

    #[test]
    fn messages_survive_the_wire_and_no_part_of_one_is_a_message() {
        for message in from_part() {
            let bytes = message.encode();
            (4..bytes.len()).for_each(|end| assert!(FromPart::decode(&bytes[4..end]).is_err(), "{message:?}"));
            assert_eq!(FromPart::decode(&bytes[4..]), Ok(message));
        }
        for message in to_part() {
            let bytes = message.encode();
            (4..bytes.len()).for_each(|end| assert!(ToPart::decode(&bytes[4..end]).is_err(), "{message:?}"));
            assert_eq!(ToPart::decode(&bytes[4..]), Ok(message));
        }
        assert!(from_part()[0].encode().len() <= MAX_KNOCK);
    }

    #[test]
    fn long_texts_are_cut_here_and_refused_there() {
        let long = ToPart::Refused("é".repeat(MAX_TEXT)).encode();
        assert!(matches!(ToPart::decode(&long[4..]), Ok(ToPart::Refused(why)) if why.len() == MAX_TEXT));
        let mut w = Writer::new(1);
        w.text(&"x".repeat(MAX_TEXT + 1));
        assert!(ToPart::decode(&w.into_body()).is_err());
        for bytes in [&[][..], &[3, 0, 0, 0, 0, 9], &[9], &[4, 1]] {
            fuzz(bytes);
        }
    }
}
