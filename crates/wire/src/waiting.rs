// SPDX-License-Identifier: Apache-2.0
//! What a process waits for: told to its agent when nothing has happened for a second, and passed on to the
//! coordinator.
//!
//! ```text
//!  call text, idle u64 (ms), more u32, [item]
//!  item   kind u8, peer u32, tag u32, context u32, bytes u64, name text, sequence u32, members [u32], size u32
//! ```

use crate::codec::{DecodeError, Reader, Writer};

/// Most items that a process tells; the others are counted.
pub const MOST_ITEMS: usize = 64;
/// Most members of a group that are listed one by one.
pub const MOST_MEMBERS: u32 = 256;
/// Longest name of a function or an operation, bytes.
pub const LONGEST_NAME: usize = 256;
/// Longest reason of a loss, bytes.
pub const LONGEST_REASON: usize = 512;
/// Peer of a receive that takes messages from anybody.
pub const ANYBODY: u32 = u32::MAX;
/// Tag of a receive that takes any.
pub const ANY_TAG: u32 = u32::MAX;

/// What a process waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The MPI function that it is in, as the program called it; may be empty.
    pub call: String,
    /// For how long nothing has come, milliseconds.
    pub idle: u64,
    /// What is pending.
    pub items: Vec<Item>,
    /// What is pending beyond these.
    pub more: u32,
}

/// What kind of thing is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A receive whose message has not come.
    #[default]
    Receive = 1,
    /// A receive whose data are on their way.
    Incoming = 2,
    /// A send that its receiver has not asked for.
    Send = 3,
    /// A send whose data have not all left.
    Outgoing = 4,
    /// A collective operation.
    Collective = 5,
    /// A message that has come and that no receive matches.
    Unexpected = 6,
}

/// One pending thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// The other process, by its rank in MPI_COMM_WORLD; [`ANYBODY`].
    pub peer: u32,
    /// Tag, or [`ANY_TAG`].
    pub tag: u32,
    /// Context of the communicator; `u32::MAX`: not known.
    pub context: u32,
    /// Bytes of the message, or of room for it; 0: not known.
    pub bytes: u64,
    /// Of a collective operation: its name. Of a receive that is none: what is to be answered.
    pub name: String,
    /// Of a collective operation: its number on the communicator; `u32::MAX`: not known.
    pub sequence: u32,
    /// Of a collective operation: the members of its group, where they are few, by their ranks in MPI_COMM_WORLD.
    pub members: Vec<u32>,
    /// Of a collective operation: how many members there are.
    pub size: u32,
}

impl Waiting {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.text(&self.call).u64(self.idle).u32(self.more);
        w.list(&self.items, |w, item| item.write(w));
    }

    /// Reads it.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let waiting = Self {
            call: name(r, "call")?,
            idle: r.u64("idle")?,
            more: r.u32("more")?,
            items: r.list("items", Item::read)?,
        };
        bounded("items", waiting.items.len(), MOST_ITEMS)?;
        Ok(waiting)
    }
}

impl Item {
    fn write(&self, w: &mut Writer) {
        w.u8(self.kind as u8).u32(self.peer).u32(self.tag).u32(self.context);
        w.u64(self.bytes).text(&self.name).u32(self.sequence);
        w.list(&self.members, |w, member| {
            w.u32(*member);
        });
        w.u32(self.size);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let item = Self {
            kind: match r.u8("kind")? {
                1 => Kind::Receive,
                2 => Kind::Incoming,
                3 => Kind::Send,
                4 => Kind::Outgoing,
                5 => Kind::Collective,
                6 => Kind::Unexpected,
                other => {
                    return Err(DecodeError::Invalid {
                        field: "kind",
                        value: u64::from(other),
                    });
                }
            },
            peer: r.u32("peer")?,
            tag: r.u32("tag")?,
            context: r.u32("context")?,
            bytes: r.u64("bytes")?,
            name: name(r, "name")?,
            sequence: r.u32("sequence")?,
            members: r.list("members", |r| r.u32("member"))?,
            size: r.u32("size")?,
        };
        bounded("members", item.members.len(), MOST_MEMBERS as usize)?;
        Ok(item)
    }
}

fn name(r: &mut Reader<'_>, field: &'static str) -> Result<String, DecodeError> {
    short(r, field, LONGEST_NAME)
}

fn short(r: &mut Reader<'_>, field: &'static str, most: usize) -> Result<String, DecodeError> {
    let text = r.text(field)?;
    bounded(field, text.len(), most)?;
    Ok(text)
}

/// What processes keep to when they write: more is nonsense, however it would fit into a message.
fn bounded(field: &'static str, count: usize, most: usize) -> Result<(), DecodeError> {
    match count > most {
        true => Err(DecodeError::Invalid {
            field,
            value: count as u64,
        }),
        false => Ok(()),
    }
}

/// What is known of one process of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Name of its site.
    pub site: String,
    /// Name of its program, without directories.
    pub program: String,
    /// Process id there.
    pub pid: u32,
    /// It has been stopped by a signal.
    pub stopped: bool,
    /// Bytes of its memory that are swapped out.
    pub swapped: u64,
    /// It has ended.
    pub ended: bool,
    /// Why the job goes on without it; empty: it does not. At most [`LONGEST_REASON`] bytes.
    pub lost: String,
    /// Seconds for which nothing has been heard of its site; 0: it is heard.
    pub unheard: u32,
    /// Where its subjob stands that has not started it; empty: it has. At most [`LONGEST_REASON`] bytes.
    pub unstarted: String,
    /// What it waits for, if nothing has happened for a second.
    pub waiting: Option<Waiting>,
}

impl Process {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.u32(self.rank).text(&self.site).text(&self.program).u32(self.pid);
        w.u8(self.stopped.into()).u64(self.swapped).u8(self.ended.into());
        w.text(&self.lost).u32(self.unheard).text(&self.unstarted);
        w.u8(self.waiting.is_some().into());
        if let Some(waiting) = &self.waiting {
            waiting.write(w);
        }
    }

    /// Reads it.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            rank: r.u32("rank")?,
            site: r.text("site")?,
            program: r.text("program")?,
            pid: r.u32("pid")?,
            stopped: r.u8("stopped")? != 0,
            swapped: r.u64("swapped")?,
            ended: r.u8("ended")? != 0,
            lost: short(r, "lost", LONGEST_REASON)?,
            unheard: r.u32("unheard")?,
            unstarted: short(r, "unstarted", LONGEST_REASON)?,
            waiting: match r.u8("waits")? {
                0 => None,
                _ => Some(Waiting::read(r)?),
            },
        })
    }
}

/// How the system treats a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Index within the subjob.
    pub index: u32,
    /// Process id.
    pub pid: u32,
    /// A signal has stopped it.
    pub stopped: bool,
    /// Bytes of its memory that are swapped out.
    pub swapped: u64,
}

impl Condition {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.u32(self.index)
            .u32(self.pid)
            .u8(self.stopped.into())
            .u64(self.swapped);
    }

    /// Reads it.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            index: r.u32("index")?,
            pid: r.u32("pid")?,
            stopped: r.u8("stopped")? != 0,
            swapped: r.u64("swapped")?,
        })
    }
}

/// Body of a fuzz target: what is told of processes, as processes and agents tell it.
pub fn fuzz(body: &[u8]) {
    let r = &mut Reader::new(body);
    let Ok(process) = r.u8("kind").and_then(|_| Process::read(r)) else {
        return;
    };
    let mut w = Writer::new(0);
    process.write(&mut w);
    let again = w.into_body();
    assert_eq!(Process::read(&mut Reader::new(&again[1..])), Ok(process));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(waiting: &Waiting) -> Result<Waiting, DecodeError> {
        let mut w = Writer::default();
        waiting.write(&mut w);
        Waiting::read(&mut Reader::new(&w.into_body()))
    }

    #[test]
    fn more_than_a_process_tells_is_refused() {
        let with = |items: usize, members: usize, name: usize| Waiting {
            call: "x".repeat(name),
            items: vec![
                Item {
                    members: vec![1; members],
                    ..Item::default()
                };
                items
            ],
            ..Waiting::default()
        };
        let most = with(MOST_ITEMS, MOST_MEMBERS as usize, LONGEST_NAME);
        assert_eq!(read(&most), Ok(most));
        for (items, members, name) in [
            (MOST_ITEMS + 1, 0, 0),
            (1, MOST_MEMBERS as usize + 1, 0),
            (0, 0, LONGEST_NAME + 1),
        ] {
            let refused = read(&with(items, members, name));
            assert!(
                matches!(refused, Err(DecodeError::Invalid { .. })),
                "{items} {members} {name}"
            );
        }
    }
}
