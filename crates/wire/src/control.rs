// SPDX-License-Identifier: Apache-2.0
//! What commands like `isthmus ps` and a running coordinator say to each other, over a Unix socket of the user.
//!
//! ```text
//!  command                  coordinator
//!    |   one Request    --->    |
//!    |   <---    one Reply      |     then both close
//! ```
//! Messages have the form of [`crate::codec`]: `length: u32`, `kind: u8`, fields. A *start* is when a scheduler expects
//! to start a subjob, seconds since 1970; 0: it does not say. *Since* is when it came into its state.
//!
//! | command to coordinator | kind | fields |
//! |---|---|---|
//! | `Status` | 1 | |
//! | `Signal` | 2 | number u32, site text (empty: all) |
//! | `End` | 3 | |
//! | `Traffic` | 5 | |
//! | `Where` | 6 | |
//! | `Names` | 7 | |
//! | `Add` | 8 | job text (a job file), port name text |
//! | `Adding` | 9 | number u32 |
//! | `Edit` | 4 | site text, what u8 (1 drop, 2 retry, 3 substitute, 4 abort), contact text |
//!
//! | coordinator to command | kind | fields |
//! |---|---|---|
//! | `Status` | 65 | committed u8, \[name text, state text, detail text, processes u32, start u64, since u64\], \[[`joined`](crate::joined)\] |
//! | `Done` | 66 | |
//! | `Refused` | 67 | why text |
//! | `Adding` | 71 | number u32 |
//! | `Names` | 70 | \[name text, port text\] |
//! | `Where` | 69 | \[process ([`crate::waiting::Process`])\], \[cut link: from text, to text\], \[[`joined`](crate::joined)\] |
//! | `Traffic` | 68 | age u64 (ms since the processes began), \[traffic ([`crate::boot::LinkTraffic`])\], \[from text, to text, path text, sent u64, received u64, streams u32, connections u32, round trip u64 (ns)\], \[[`crate::time`]\], \[[`joined`](crate::joined)\], \[rank u32, site text, why text\] |

use crate::boot::LinkTraffic;
use crate::codec::{DecodeError, Reader, Writer};
use crate::joined::Joined;
use crate::time::SiteTime;
use crate::waiting::Process;

/// Longest request, bytes, its length included.
pub const MAX_REQUEST: usize = 2 << 20;

/// What is wanted of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Where the subjobs stand.
    Status,
    /// What has passed between the sites.
    Traffic,
    /// What every process waits for.
    Where,
    /// Names that processes have published for each other.
    Names,
    /// Send this signal to processes.
    Signal {
        /// Its number.
        number: u32,
        /// Those of the subjob with this name; empty: all.
        site: String,
    },
    /// End the job: the first time orderly, then at once.
    End,
    /// Add processes to the job.
    Add {
        /// What they are, as a job file.
        job: String,
        /// Name of the port that they connect to as children do to their parents; may be empty.
        to: String,
    },
    /// What has become of processes that were added under this number.
    Adding(u32),
    /// Change a subjob that has not begun.
    Edit {
        /// Its name.
        site: String,
        /// What to do.
        edit: Edit,
    },
}

/// What is to be done about a subjob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Go on without it.
    Drop,
    /// Try again or wait on.
    Retry,
    /// Run it there.
    Substitute(String),
    /// End the job.
    Abort,
}

/// Where a subjob stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Its state, as people read it.
    pub state: String,
    /// What else there is to say of it; may be empty.
    pub detail: String,
    /// Number of its processes.
    pub processes: u32,
    /// When a scheduler expects to start it, seconds since 1970; 0: not known.
    pub starts: u64,
    /// Since when it is in this state, seconds since 1970; 0: not known.
    pub since: u64,
}

/// What a coordinator answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Where the subjobs stand.
    Status {
        /// Whether the barrier of the job is open.
        committed: bool,
        /// One entry per subjob.
        subjobs: Vec<Standing>,
        /// With whom processes are connected beside.
        joined: Vec<Joined>,
    },
    /// It is done, or under way.
    Done,
    /// It cannot be done.
    Refused(String),
    /// What has passed between the sites.
    Traffic(Passed),
    /// What every process waits for.
    Where(Whereabouts),
    /// Published names, and the ports that they stand for.
    Names(Vec<(String, String)>),
    /// Processes are being added, under this number.
    Adding(u32),
}

/// What has passed between the sites of a job since its processes began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// How long ago they began, milliseconds.
    pub age: u64,
    /// Per direction of a link, from process to process.
    pub links: Vec<LinkTraffic>,
    /// Per direction of a trunk, from gateway to gateway.
    pub trunks: Vec<Trunk>,
    /// Where the time of the processes has gone, per site.
    pub times: Vec<SiteTime>,
    /// With whom processes are connected beside.
    pub joined: Vec<Joined>,
    /// Processes that the job goes on without.
    pub lost: Vec<Lost>,
}

/// A process that the job goes on without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Its rank, as [`Process`] has it.
    pub rank: u32,
    /// Its site.
    pub site: String,
    /// Why.
    pub why: String,
}

/// What all processes of a job wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// All processes, by rank.
    pub processes: Vec<Process>,
    /// Links that are cut now: names of their ends.
    pub cuts: Vec<(String, String)>,
    /// With whom processes are connected beside.
    pub joined: Vec<Joined>,
}

/// One direction of a trunk between two gateways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trunk {
    /// Local area of the gateway that counts.
    pub from: String,
    /// The other local area.
    pub to: String,
    /// How they are connected, for people; may be empty.
    pub path: String,
    /// Bytes to the other.
    pub sent: u64,
    /// Bytes from the other.
    pub received: u64,
    /// Streams of processes now.
    pub streams: u32,
    /// Connections between the two gateways now.
    pub connections: u32,
    /// Last round trip between the gateways, nanoseconds; 0: not known.
    pub round_trip: u64,
}

impl Trunk {
    fn write(&self, w: &mut Writer) {
        w.text(&self.from).text(&self.to).text(&self.path);
        w.u64(self.sent).u64(self.received);
        w.u32(self.streams).u32(self.connections).u64(self.round_trip);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            from: r.text("from")?,
            to: r.text("to")?,
            path: r.text("path")?,
            sent: r.u64("sent")?,
            received: r.u64("received")?,
            streams: r.u32("streams")?,
            connections: r.u32("connections")?,
            round_trip: r.u64("round trip")?,
        })
    }
}

impl Request {
    /// As it goes on the socket, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = match self {
            Self::Status => Writer::new(1),
            Self::Signal { .. } => Writer::new(2),
            Self::End => Writer::new(3),
            Self::Edit { .. } => Writer::new(4),
            Self::Traffic => Writer::new(5),
            Self::Where => Writer::new(6),
            Self::Names => Writer::new(7),
            Self::Add { .. } => Writer::new(8),
            Self::Adding(_) => Writer::new(9),
        };
        match self {
            Self::Add { job, to } => {
                w.text(job).text(to);
            }
            Self::Signal { number, site } => {
                w.u32(*number).text(site);
            }
            Self::Adding(number) => {
                w.u32(*number);
            }
            Self::Edit { site, edit } => {
                let (what, contact) = match edit {
                    Edit::Drop => (1, ""),
                    Edit::Retry => (2, ""),
                    Edit::Substitute(contact) => (3, contact.as_str()),
                    Edit::Abort => (4, ""),
                };
                w.text(site).u8(what).text(contact);
            }
            Self::Status | Self::End | Self::Traffic | Self::Where | Self::Names => {}
        }
        w.into_framed()
    }

    /// Reads a body (without length prefix).
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let request = match r.u8("kind")? {
            1 => Self::Status,
            2 => Self::Signal {
                number: r.u32("signal")?,
                site: r.text("site")?,
            },
            3 => Self::End,
            5 => Self::Traffic,
            6 => Self::Where,
            7 => Self::Names,
            8 => Self::Add {
                job: r.text("job")?,
                to: r.text("port name")?,
            },
            9 => Self::Adding(r.u32("number")?),
            4 => {
                let site = r.text("site")?;
                let what = r.u8("what")?;
                let contact = r.text("contact")?;
                let edit = match what {
                    1 => Edit::Drop,
                    2 => Edit::Retry,
                    3 => Edit::Substitute(contact),
                    4 => Edit::Abort,
                    other => return Err(invalid("what", other)),
                };
                Self::Edit { site, edit }
            }
            other => return Err(invalid("kind", other)),
        };
        r.end()?;
        Ok(request)
    }
}

impl Reply {
    /// As it goes on the socket, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = match self {
            Self::Status { .. } => Writer::new(65),
            Self::Done => Writer::new(66),
            Self::Refused(_) => Writer::new(67),
            Self::Traffic(_) => Writer::new(68),
            Self::Where(_) => Writer::new(69),
            Self::Names(_) => Writer::new(70),
            Self::Adding(_) => Writer::new(71),
        };
        match self {
            Self::Status {
                committed,
                subjobs,
                joined,
            } => {
                w.u8((*committed).into());
                w.list(subjobs, |w, s| {
                    w.text(&s.name).text(&s.state).text(&s.detail);
                    w.u32(s.processes).u64(s.starts).u64(s.since);
                });
                w.list(joined, |w, one| one.write(w));
            }
            Self::Done => {}
            Self::Adding(number) => {
                w.u32(*number);
            }
            Self::Refused(why) => {
                w.text(why);
            }
            Self::Traffic(passed) => {
                w.u64(passed.age).list(&passed.links, |w, one| one.write(w));
                w.list(&passed.trunks, |w, one| one.write(w));
                w.list(&passed.times, |w, one| one.write(w));
                w.list(&passed.joined, |w, one| one.write(w));
                w.list(&passed.lost, |w, lost| {
                    w.u32(lost.rank).text(&lost.site).text(&lost.why);
                });
            }
            Self::Names(names) => {
                w.list(names, |w, (name, port)| {
                    w.text(name).text(port);
                });
            }
            Self::Where(all) => {
                w.list(&all.processes, |w, one| one.write(w));
                w.list(&all.cuts, |w, (from, to)| {
                    w.text(from).text(to);
                });
                w.list(&all.joined, |w, one| one.write(w));
            }
        }
        w.into_framed()
    }

    /// Reads a body (without length prefix).
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let reply = match r.u8("kind")? {
            65 => Self::Status {
                committed: match r.u8("committed")? {
                    0 => false,
                    1 => true,
                    other => return Err(invalid("committed", other)),
                },
                subjobs: r.list("subjobs", |r| {
                    Ok(Standing {
                        name: r.text("name")?,
                        state: r.text("state")?,
                        detail: r.text("detail")?,
                        processes: r.u32("processes")?,
                        starts: r.u64("start")?,
                        since: r.u64("since")?,
                    })
                })?,
                joined: r.list("joined", Joined::read)?,
            },
            66 => Self::Done,
            67 => Self::Refused(r.text("why")?),
            68 => Self::Traffic(Passed {
                age: r.u64("age")?,
                links: r.list("links", LinkTraffic::read)?,
                trunks: r.list("trunks", Trunk::read)?,
                times: r.list("times", SiteTime::read)?,
                joined: r.list("joined", Joined::read)?,
                lost: r.list("lost", |r| {
                    Ok(Lost {
                        rank: r.u32("rank")?,
                        site: r.text("site")?,
                        why: r.text("why")?,
                    })
                })?,
            }),
            69 => Self::Where(Whereabouts {
                processes: r.list("processes", Process::read)?,
                cuts: r.list("cuts", |r| Ok((r.text("from")?, r.text("to")?)))?,
                joined: r.list("joined", Joined::read)?,
            }),
            70 => Self::Names(r.list("names", |r| Ok((r.text("name")?, r.text("port")?)))?),
            71 => Self::Adding(r.u32("number")?),
            other => return Err(invalid("kind", other)),
        };
        r.end()?;
        Ok(reply)
    }
}

fn invalid(field: &'static str, value: u8) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: u64::from(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_socket() {
        let edit = |edit| Request::Edit {
            site: "lab".into(),
            edit,
        };
        for request in [
            Request::Status,
            Request::Signal {
                number: 10,
                site: "lab+1".into(),
            },
            Request::Traffic,
            Request::Where,
            Request::Names,
            Request::Adding(3),
            Request::Add {
                job: "[[subjob]]".into(),
                to: "pool".into(),
            },
            Request::End,
            edit(Edit::Drop),
            edit(Edit::Retry),
            edit(Edit::Substitute("b/jobmanager-slurm".into())),
            edit(Edit::Abort),
        ] {
            assert_eq!(Request::decode(&request.encode()[4..]), Ok(request));
        }
        let subjobs = vec![Standing {
            name: "lab".into(),
            state: "queued".into(),
            detail: String::new(),
            processes: 4,
            starts: 1_795_788_300,
            since: 1_795_780_000,
        }];
        let committed = true;
        let joined = || {
            vec![Joined {
                ranks: vec![0, 2],
                with: vec![crate::joined::sample()],
            }]
        };
        for reply in [
            Reply::Status {
                committed,
                subjobs,
                joined: joined(),
            },
            Reply::Done,
            Reply::Refused("no".into()),
            Reply::Adding(7),
            Reply::Names(vec![("ocean".into(), "p".into())]),
            Reply::Traffic(Passed {
                age: 1,
                links: vec![LinkTraffic::default()],
                trunks: vec![Trunk::default()],
                times: vec![SiteTime::default()],
                joined: joined(),
                lost: vec![Lost {
                    rank: 3,
                    site: "lab".into(),
                    why: "it was killed".into(),
                }],
            }),
            Reply::Where(Whereabouts {
                processes: vec![Process {
                    rank: 3,
                    program: "ocean".into(),
                    unheard: 12,
                    unstarted: "queued".into(),
                    waiting: Some(crate::waiting::Waiting::default()),
                    ..Process::default()
                }],
                cuts: vec![("home".into(), "lab".into())],
                joined: joined(),
            }),
        ] {
            assert_eq!(Reply::decode(&reply.encode()[4..]), Ok(reply));
        }
        assert!(Request::decode(&[4, 0, 0, 0, 0, 9, 0, 0, 0, 0]).is_err() && Reply::decode(&[1]).is_err());
    }
}
