// SPDX-License-Identifier: Apache-2.0
//! What was chosen for the collective operations of a process, and what else there was: for people who ask why.
//!
//! ```text
//!  operation text, bytes u64, members u32, calls u64, [name text, cost u64, opening u64, chosen u8]
//! ```

use crate::codec::{DecodeError, Reader, Writer};

/// Most choices that a process tells, and that are kept of a job.
pub const MOST_CHOICES: usize = 64;
/// Most ways of one.
pub const MOST_WAYS: usize = 16;
/// Longest name, bytes.
const MOST_NAME: usize = 64;

/// One choice: an operation of such a size in a group of so many members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Name of the operation.
    pub operation: String,
    /// Bytes of a block, of the first call: later ones of about that size count as the same.
    pub bytes: u64,
    /// Members of the group.
    pub members: u32,
    /// How often it was made.
    pub calls: u64,
    /// What there is to choose from.
    pub ways: Vec<Candidate>,
}

/// One way to do it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Name of the algorithm.
    pub name: String,
    /// What it is expected to take, nanoseconds.
    pub cost: u64,
    /// How much more over connections that have been idle, nanoseconds.
    pub opening: u64,
    /// It is the one that is taken.
    pub chosen: bool,
}

impl Chosen {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.text(&self.operation)
            .u64(self.bytes)
            .u32(self.members)
            .u64(self.calls);
        w.list(&self.ways, |w, way| {
            w.text(&way.name).u64(way.cost).u64(way.opening).u8(way.chosen.into());
        });
    }

    /// Reads it from a message.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let operation = name(r, "operation")?;
        let (bytes, members, calls) = (r.u64("bytes")?, r.u32("members")?, r.u64("calls")?);
        let ways = r.list("ways", |r| {
            Ok(Candidate {
                name: name(r, "algorithm")?,
                cost: r.u64("cost")?,
                opening: r.u64("opening")?,
                chosen: r.u8("chosen")? != 0,
            })
        })?;
        at_most("ways", ways.len(), MOST_WAYS)?;
        Ok(Self {
            operation,
            bytes,
            members,
            calls,
            ways,
        })
    }

    /// Reads all of a process.
    pub fn read_all(r: &mut Reader<'_>) -> Result<Vec<Self>, DecodeError> {
        let all = r.list("choices", Self::read)?;
        at_most("choices", all.len(), MOST_CHOICES)?;
        Ok(all)
    }
}

fn name(r: &mut Reader<'_>, field: &'static str) -> Result<String, DecodeError> {
    let text = r.text(field)?;
    at_most(field, text.len(), MOST_NAME)?;
    Ok(text)
}

pub(crate) fn at_most(field: &'static str, found: usize, most: usize) -> Result<(), DecodeError> {
    match found <= most {
        true => Ok(()),
        false => Err(DecodeError::Invalid {
            field,
            value: found as u64,
        }),
    }
}
