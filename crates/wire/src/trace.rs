// SPDX-License-Identifier: Apache-2.0
//! What a traced process records: messages, collective operations, events of links, each with its time.
//!
//! ```text
//!   version u8, [record]
//!   record: kind u8, time u64 (ns since 1970 by the clock of the process's node), fields
//! ```
//! | record | kind | fields |
//! |---|---|---|
//! | `Sent` | 1 | message |
//! | `Arrived` | 2 | message |
//! | `Began` | 3 | operation text, context u32, sequence u32 |
//! | `Ended` | 4 | context u32, sequence u32 |
//! | `Link` | 5 | text |
//! | `Lost` | 6 | count u64: records that had no room |
//! | `Waited` | 7 | call text, thread u32, duration u64 (ns); its time is when the wait began |
//!
//! A message is: peer u32, context u32, tag u32, bytes u64, number u64. Its number counts what one process has sent to
//! another in one context, at both ends, so that the two records of a message can be found.

use crate::codec::{DecodeError, Reader, Writer};

const VERSION: u8 = 1;

/// A message as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The other end, by its rank in MPI_COMM_WORLD.
    pub peer: u32,
    /// Of the communicator; odd: of a collective operation.
    pub context: u32,
    /// Tag.
    pub tag: i32,
    /// Length of the message.
    pub bytes: u64,
    /// Which message of this sender to this receiver in this context it is.
    pub number: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A message has left, or was announced.
    Sent(Message),
    /// A message, or its announcement, has come.
    Arrived(Message),
    /// A collective operation begins here.
    Began {
        /// Its name.
        operation: String,
        /// Of the communicator.
        context: u32,
        /// Number of the operation in the communicator.
        sequence: u32,
    },
    /// It ends here.
    Ended {
        /// Of the communicator.
        context: u32,
        /// Number of the operation in the communicator.
        sequence: u32,
    },
    /// Something happened to connections, for people.
    Link(String),
    /// So many records had no room.
    Lost(u64),
    /// A thread has waited inside of MPI; recorded when the wait is over, with the time of its beginning.
    Waited {
        /// The MPI function.
        call: String,
        /// Number of the thread in its process.
        thread: u32,
        /// Nanoseconds.
        duration: u64,
    },
}

/// What happened, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since 1970 by the clock of the process's node.
    pub time: u64,
    /// What.
    pub what: What,
}

/// Several records as they are sent.
pub fn encode(records: &[Record]) -> Vec<u8> {
    let mut w = Writer::new(VERSION);
    w.list(records, |w, record| record.write(w));
    w.into_body()
}

/// Reads what [`encode`] made.
pub fn decode(body: &[u8]) -> Result<Vec<Record>, DecodeError> {
    let mut r = Reader::new(body);
    match r.u8("version")? {
        VERSION => {}
        other => return Err(invalid("version", other)),
    }
    let records = r.list("records", Record::read)?;
    r.end()?;
    Ok(records)
}

impl Record {
    fn write(&self, w: &mut Writer) {
        let kind = match &self.what {
            What::Sent(_) => 1,
            What::Arrived(_) => 2,
            What::Began { .. } => 3,
            What::Ended { .. } => 4,
            What::Link(_) => 5,
            What::Lost(_) => 6,
            What::Waited { .. } => 7,
        };
        w.u8(kind).u64(self.time);
        match &self.what {
            What::Sent(m) | What::Arrived(m) => {
                w.u32(m.peer)
                    .u32(m.context)
                    .u32(m.tag as u32)
                    .u64(m.bytes)
                    .u64(m.number);
            }
            What::Began {
                operation,
                context,
                sequence,
            } => {
                w.text(operation).u32(*context).u32(*sequence);
            }
            What::Ended { context, sequence } => {
                w.u32(*context).u32(*sequence);
            }
            What::Link(text) => {
                w.text(text);
            }
            What::Lost(count) => {
                w.u64(*count);
            }
            What::Waited { call, thread, duration } => {
                w.text(call).u32(*thread).u64(*duration);
            }
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (kind, time) = (r.u8("kind")?, r.u64("time")?);
        let what = match kind {
            1 => What::Sent(Message::read(r)?),
            2 => What::Arrived(Message::read(r)?),
            3 => What::Began {
                operation: r.text("operation")?,
                context: r.u32("context")?,
                sequence: r.u32("sequence")?,
            },
            4 => What::Ended {
                context: r.u32("context")?,
                sequence: r.u32("sequence")?,
            },
            5 => What::Link(r.text("link event")?),
            6 => What::Lost(r.u64("lost records")?),
            7 => What::Waited {
                call: r.text("call")?,
                thread: r.u32("thread")?,
                duration: r.u64("duration")?,
            },
            other => return Err(invalid("kind", other)),
        };
        Ok(Self { time, what })
    }
}

impl Message {
    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            peer: r.u32("peer")?,
            context: r.u32("context")?,
            tag: r.u32("tag")? as i32,
            bytes: r.u64("bytes")?,
            number: r.u64("number")?,
        })
    }
}

fn invalid(field: &'static str, value: u8) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_wire() {
        let message = Message {
            peer: 1,
            context: 2,
            tag: -3,
            bytes: 4,
            number: 5,
        };
        let (context, sequence) = (6, 7);
        let all = [
            What::Sent(message),
            What::Arrived(message),
            What::Began {
                operation: "bcast".into(),
                context,
                sequence,
            },
            What::Ended { context, sequence },
            What::Link("tls to rank 1".into()),
            What::Lost(8),
            What::Waited {
                call: "MPI_Recv".into(),
                thread: 9,
                duration: 10,
            },
        ];
        let records: Vec<Record> = (0..).zip(all).map(|(time, what)| Record { time, what }).collect();
        let body = encode(&records);
        assert_eq!(decode(&body).as_ref(), Ok(&records));
        (0..body.len()).for_each(|n| assert!(decode(&body[..n]).is_err()));
    }
}
