// SPDX-License-Identifier: Apache-2.0
//! Messages about files between processes of one communicator: what a process asks of one that reaches the file, and
//! the answer.
//!
//! ```text
//!  question   0      4        8        16                24
//!             | what | answer | number | bytes of payload|           little-endian
//!  payload    | runs: (byte of the file, length) of 8 bytes each | data of a write |
//!  answer     0       4           8       16
//!             | class | text (n)  | bytes | text (n bytes) | data of a read |
//!  body       0        8                                     | 8 + 16 n
//!             | runs n | runs, of 16 bytes each              | data of all runs, if it is a write |
//!  call       0      4       8
//!             | what | flags | path                          flags: 1 below the home directory
//!             | what | flags | access mode | permissions | context | ranges n | ranges, of 8 bytes each | path
//! ```
//! The payload travels in a message of its own, right behind the question. A body is what a process tells an aggregator
//! in a round of a collective access.

use crate::codec::{DecodeError, Reader};
use crate::reason::cut_to;

/// Bytes of a question.
pub const QUESTION: usize = 24;
/// Longest payload.
pub const MAX_PAYLOAD: usize = 64 << 20;
/// Longest text of an answer.
pub const MAX_TEXT: usize = 1024;
/// Bytes of an answer before text and data.
pub const ANSWER: usize = 16;

/// Longest call.
pub const MAX_CALL: usize = 64 << 10;
const DELETE: u32 = 1;
const OPEN: u32 = 2;
const BELOW_HOME: u32 = 1;

/// What a process asks of one at another site, with whom it need not have a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// MPI_File_delete.
    Delete(Path),
    /// MPI_File_open by processes that are all elsewhere; who is called serves them until they close.
    Open(Open),
}

/// What processes ask for who open a file at a site where none of them is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Access mode.
    pub amode: i32,
    /// Of a file that is created.
    pub permissions: u32,
    /// Context of their messages.
    pub context: u32,
    /// Their ranks among all who know each other, as ranges (first, number), in order.
    pub members: Vec<(u32, u32)>,
    /// The file.
    pub path: Path,
}

/// A name in the file system of another process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Whether it counts from the home directory there.
    pub below_home: bool,
    /// Any bytes.
    pub bytes: Vec<u8>,
}

/// Numbers in order, as ranges.
pub fn ranges(numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((first, count)) if first.checked_add(*count) == Some(number) => *count += 1,
            _ => ranges.push((number, 1)),
        }
    }
    ranges
}

impl Call {
    /// The file that it is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Delete(path) => path,
            Self::Open(open) => &open.path,
        }
    }

    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        let path = self.path();
        let what = match self {
            Self::Delete(_) => DELETE,
            Self::Open(_) => OPEN,
        };
        let mut words = vec![what, u32::from(path.below_home)];
        if let Self::Open(open) = self {
            words.extend([
                open.amode as u32,
                open.permissions,
                open.context,
                open.members.len() as u32,
            ]);
            words.extend(open.members.iter().flat_map(|&(first, count)| [first, count]));
        }
        let mut out: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        out.extend(&path.bytes);
        out
    }

    /// What has travelled.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let invalid = |field, value: u32| DecodeError::Invalid {
            field,
            value: value.into(),
        };
        if bytes.len() > MAX_CALL {
            return Err(DecodeError::TooLong(bytes.len() as u64));
        }
        let mut r = Reader::new(bytes);
        let (what, flags) = (r.u32("what is called for")?, r.u32("flags")?);
        if flags & !BELOW_HOME != 0 {
            return Err(invalid("flags", flags));
        }
        let path = |r: Reader<'_>| Path {
            below_home: flags & BELOW_HOME != 0,
            bytes: r.rest().to_vec(),
        };
        match what {
            DELETE => Ok(Self::Delete(path(r))),
            OPEN => {
                let (amode, permissions) = (r.u32("access mode")? as i32, r.u32("permissions")?);
                let (context, number) = (r.u32("context")?, r.u32("number of ranges")?);
                if number as usize > bytes.len() / 8 {
                    return Err(invalid("number of ranges", number));
                }
                let range = |_| Ok((r.u32("first of a range")?, r.u32("length of a range")?));
                let members = (0..number).map(range).collect::<Result<Vec<_>, DecodeError>>()?;
                Ok(Self::Open(Open {
                    amode,
                    permissions,
                    context,
                    members,
                    path: path(r),
                }))
            }
            other => Err(invalid("what is called for", other)),
        }
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The file is being closed: nobody will ask any more.
    Stop,
    /// Adds to the shared pointer; the answer is its old value.
    Advance,
    /// Reads these runs; `number` of them.
    Read,
    /// Writes these runs; `number` of them.
    Write,
    /// The size of the file.
    Size,
    /// Makes the file `number` bytes long.
    SetSize,
    /// Makes it at least so long, with room for that.
    Preallocate,
    /// What was written is on the disk.
    Sync,
    /// Sets the shared pointer.
    Seek,
    /// Sets atomic mode: 0 or 1.
    Atomic,
    /// The file is for who asks, until it gives it back in a message without content: for reading (0) or writing (1).
    Lock,
}

/// In order of their codes.
const WHATS: [What; 11] = [
    What::Stop,
    What::Advance,
    What::Read,
    What::Write,
    What::Size,
    What::SetSize,
    What::Preallocate,
    What::Sync,
    What::Seek,
    What::Atomic,
    What::Lock,
];

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub what: What,
    /// Names the answer.
    pub answer: u32,
    /// Etypes, or number of runs.
    pub number: u64,
    /// Bytes of the payload.
    pub payload: u64,
}

impl Question {
    /// As it travels.
    pub fn encode(&self) -> [u8; QUESTION] {
        let what = WHATS.iter().position(|what| *what == self.what).unwrap_or(0) as u32;
        let mut out = [0; QUESTION];
        out[..4].copy_from_slice(&u32::to_le_bytes(what));
        out[4..8].copy_from_slice(&self.answer.to_le_bytes());
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..].copy_from_slice(&self.payload.to_le_bytes());
        out
    }

    /// What has travelled.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let code = r.u32("what is asked")?;
        let Some(&what) = WHATS.get(code as usize) else {
            return Err(DecodeError::Invalid {
                field: "what is asked",
                value: code.into(),
            });
        };
        let question = Self {
            what,
            answer: r.u32("answer")?,
            number: r.u64("number")?,
            payload: r.u64("payload")?,
        };
        r.end()?;
        let runs = question.number.checked_mul(16);
        let fits = match what {
            What::Read | What::Write => runs.is_some_and(|runs| runs <= question.payload),
            _ => question.payload == 0,
        };
        if !fits || question.payload > MAX_PAYLOAD as u64 {
            return Err(DecodeError::Invalid {
                field: "payload",
                value: question.payload,
            });
        }
        Ok(question)
    }
}

/// Runs as they travel.
pub fn encode_runs(runs: &[(u64, u64)]) -> Vec<u8> {
    let words = runs.iter().flat_map(|&(at, length)| [at, length]);
    words.flat_map(u64::to_le_bytes).collect()
}

/// Runs of a file: (byte, length).
pub type Runs = Vec<(u64, u64)>;

/// The first `number` runs of a payload, the bytes that they have together, and what follows. No run ends behind byte
/// 2^63 of a file, and together they have no more than `most` bytes.
pub fn decode_runs(payload: &[u8], number: usize, most: u64) -> Result<(Runs, u64, &[u8]), DecodeError> {
    let end = number.checked_mul(16).filter(|end| *end <= payload.len());
    let Some(end) = end else {
        return Err(DecodeError::Invalid {
            field: "number of runs",
            value: number as u64,
        });
    };
    let (list, rest) = payload.split_at(end);
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    let runs: Vec<_> = list.chunks_exact(16).map(|run| (word(run), word(&run[8..]))).collect();
    let mut total = 0_u64;
    for &(at, length) in &runs {
        let ends = at.checked_add(length).filter(|end| i64::try_from(*end).is_ok());
        total = total.saturating_add(length);
        if ends.is_none() || total > most {
            return Err(DecodeError::Invalid {
                field: "run",
                value: length,
            });
        }
    }
    Ok((runs, total, rest))
}

/// The beginning of a body, with these runs; the data are appended to it.
pub fn encode_body(runs: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body_bytes(runs));
    out.extend((runs.len() as u64).to_le_bytes());
    for &(at, length) in runs {
        out.extend(at.to_le_bytes());
        out.extend(length.to_le_bytes());
    }
    out
}

/// Bytes of a body with the data of these runs.
pub fn body_bytes(runs: &[(u64, u64)]) -> usize {
    8 + runs.iter().map(|run| 16 + run.1 as usize).sum::<usize>()
}

/// The runs of a body, which have no more than `most` bytes together, and what follows.
pub fn decode_request(body: &[u8], most: u64) -> Result<(Runs, &[u8]), DecodeError> {
    let number = Reader::new(body).u64("number of runs")?;
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    let (runs, _, rest) = decode_runs(&body[8..], number, most)?;
    Ok((runs, rest))
}

/// The runs of a body, which have no more than `most` bytes together, and their data.
pub fn decode_body(body: &[u8], most: u64) -> Result<(Runs, &[u8]), DecodeError> {
    let (runs, data) = decode_request(body, most)?;
    let total = runs.iter().map(|run| run.1).sum::<u64>();
    if total == data.len() as u64 {
        return Ok((runs, data));
    }
    Err(DecodeError::Invalid {
        field: "bytes of data",
        value: data.len() as u64,
    })
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Error class of MPI; 0: all is well.
    pub class: u32,
    /// What went wrong.
    pub text: String,
    /// Bytes that were moved, or the number that was asked for.
    pub bytes: u64,
    /// What was read.
    pub data: Vec<u8>,
}

impl Answer {
    /// That something could not be done.
    pub fn of_error(class: u32, text: String) -> Self {
        Self {
            class,
            text,
            ..Self::default()
        }
    }

    /// As it travels; a text that is too long is cut.
    pub fn encode(&self) -> Vec<u8> {
        let text = cut_to(&self.text, MAX_TEXT);
        let mut out = Vec::with_capacity(ANSWER + text.len() + self.data.len());
        out.extend(self.class.to_le_bytes());
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(self.bytes.to_le_bytes());
        out.extend(text.as_bytes());
        out.extend(&self.data);
        out
    }

    /// What has travelled.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let class = r.u32("class")?;
        let length = r.u32("length of the text")? as usize;
        let moved = r.u64("bytes")?;
        let rest = &bytes[ANSWER.min(bytes.len())..];
        if length > MAX_TEXT || length > rest.len() {
            return Err(DecodeError::Invalid {
                field: "length of the text",
                value: length as u64,
            });
        }
        let (text, data) = rest.split_at(length);
        Ok(Self {
            class,
            text: String::from_utf8_lossy(text).into_owned(),
            bytes: moved,
            data: data.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_survive_the_wire() {
        let question = Question {
            what: What::Write,
            answer: 7,
            number: 2,
            payload: 40,
        };
        assert_eq!(Question::decode(&question.encode()), Ok(question));
        let answer = Answer {
            class: 41,
            text: "full".to_owned(),
            bytes: 3,
            data: vec![1, 2, 3],
        };
        assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        let call = Call::Delete(Path {
            below_home: true,
            bytes: b"a\n\xff".to_vec(),
        });
        assert_eq!(Call::decode(&call.encode()), Ok(call));
        let members = ranges(&[2, 3, 4, 9, 8]);
        assert_eq!(members, [(2, 3), (9, 1), (8, 1)]);
        let call = Call::Open(Open {
            amode: 9,
            permissions: 0o640,
            context: 77,
            members,
            path: Path {
                below_home: false,
                bytes: b"/x".to_vec(),
            },
        });
        assert_eq!(Call::decode(&call.encode()), Ok(call));
        let runs = [(5, 3), (9, 1)];
        let mut payload = encode_runs(&runs);
        payload.extend([1, 2, 3, 4]);
        assert_eq!(decode_runs(&payload, 2, 4), Ok((runs.to_vec(), 4, &[1, 2, 3, 4][..])));
        let mut body = encode_body(&runs);
        body.extend([1, 2, 3, 4]);
        assert_eq!(body.len(), body_bytes(&runs));
        assert_eq!(decode_body(&body, 4), Ok((runs.to_vec(), &[1, 2, 3, 4][..])));
    }

    #[test]
    fn what_asks_for_too_much_is_refused() {
        let question = Question {
            what: What::Read,
            answer: 0,
            number: u64::MAX / 8,
            payload: 16,
        };
        assert!(Question::decode(&question.encode()).is_err());
        assert!(Call::decode(&[9, 0, 0, 0, 0, 0, 0, 0, b'/']).is_err());
        assert!(Call::decode(&[1, 0, 0, 0, 2, 0, 0, 0, b'/']).is_err());
        assert!(Call::decode(&[&[2, 0, 0, 0][..], &[0; 16], &[0xff; 4], &[0; 40]].concat()).is_err());
        assert!(Call::decode(&[&[1, 0, 0, 0, 0, 0, 0, 0][..], &[b'/'; MAX_CALL]].concat()).is_err());
        assert!(decode_runs(&encode_runs(&[(u64::MAX, 2)]), 1, 100).is_err());
        assert!(decode_runs(&encode_runs(&[(0, 60), (0, 60)]), 2, 100).is_err());
        assert!(decode_runs(&[0; 16], 2, 100).is_err());
        assert!(decode_body(&[0; 7], 100).is_err());
        assert!(decode_body(&[0xff; 24], 100).is_err());
        let mut body = encode_body(&[(0, 4)]);
        assert!(decode_body(&body, 100).is_err(), "data are missing");
        body.extend([0; 5]);
        assert!(decode_body(&body, 100).is_err(), "too many data");
    }
}
