// SPDX-License-Identifier: Apache-2.0
//! What a process has done with the files that it has opened: for people who ask how a file was reached.
//!
//! ```text
//!  name text, site text, opens u32, direct u32, aggregators u32, [calls or messages u64, bytes u64] x 4
//! ```

use crate::chosen::at_most;
use crate::codec::{DecodeError, Reader, Writer};

/// Most files that a process tells, and that are kept of a job; what is done with more of them is told as one.
pub const MOST_FILES: usize = 64;
/// Name of all that are told as one.
pub const OTHERS: &str = "(others)";
/// Longest name, bytes.
const MOST_NAME: usize = 1024;

/// How often something was done, with how many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Calls of the system, or messages.
    pub calls: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Its name as errors show it: quoted, with escapes.
    pub name: String,
    /// Its site.
    pub site: String,
    /// How often processes have opened it.
    pub opens: u32,
    /// How often by a process that used it directly.
    pub direct: u32,
    /// How often by one that used the disk for others in collective calls.
    pub aggregators: u32,
    /// Reads of the system.
    pub read: Sum,
    /// Writes of the system.
    pub written: Sum,
    /// Messages inside sites.
    pub near: Sum,
    /// Messages between sites.
    pub far: Sum,
}

impl Usage {
    /// Adds what was done at another time, or by another process.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in [
            (&mut self.opens, other.opens),
            (&mut self.direct, other.direct),
            (&mut self.aggregators, other.aggregators),
        ] {
            *count = count.saturating_add(more);
        }
        for (sum, more) in [
            (&mut self.read, other.read),
            (&mut self.written, other.written),
            (&mut self.near, other.near),
            (&mut self.far, other.far),
        ] {
            sum.calls = sum.calls.saturating_add(more.calls);
            sum.bytes = sum.bytes.saturating_add(more.bytes);
        }
    }

    /// Adds it to what is known: to its own file, or to the others where there is no room for one more.
    pub fn note(self, known: &mut Vec<Self>) {
        let own = known
            .iter()
            .position(|one| one.name == self.name && one.site == self.site);
        let room = known.len() + 1 < MOST_FILES;
        let place = own.or_else(|| known.iter().position(|one| !room && one.name == OTHERS));
        match place {
            Some(place) => known[place].add(&self),
            None if room => known.push(self),
            None => known.push(Self {
                name: OTHERS.to_owned(),
                site: String::new(),
                ..self
            }),
        }
    }

    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.text(&self.name).text(&self.site);
        w.u32(self.opens).u32(self.direct).u32(self.aggregators);
        for sum in [self.read, self.written, self.near, self.far] {
            w.u64(sum.calls).u64(sum.bytes);
        }
    }

    /// Reads it from a message.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (name, site) = (r.text("name of a file")?, r.text("site of a file")?);
        at_most("name of a file", name.len().max(site.len()), MOST_NAME)?;
        let (opens, direct) = (r.u32("opens")?, r.u32("opens of direct use")?);
        let aggregators = r.u32("opens by aggregators")?;
        let mut sum = || {
            Ok(Sum {
                calls: r.u64("calls")?,
                bytes: r.u64("bytes")?,
            })
        };
        Ok(Self {
            name,
            site,
            opens,
            direct,
            aggregators,
            read: sum()?,
            written: sum()?,
            near: sum()?,
            far: sum()?,
        })
    }

    /// Reads all of a process.
    pub fn read_all(r: &mut Reader<'_>) -> Result<Vec<Self>, DecodeError> {
        let all = r.list("files", Self::read)?;
        at_most("files", all.len(), MOST_FILES)?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(name: &str, opens: u32) -> Usage {
        let read = Sum { calls: 1, bytes: 8 };
        Usage {
            name: name.into(),
            site: "lab".into(),
            opens,
            read,
            ..Usage::default()
        }
    }

    #[test]
    fn files_beyond_the_bound_are_told_as_one() {
        let mut known = Vec::new();
        for number in 0..2 * MOST_FILES {
            used(&number.to_string(), 1).note(&mut known);
            used("0", 1).note(&mut known);
        }
        assert_eq!(known.len(), MOST_FILES);
        assert_eq!(known[0].opens as usize, 1 + 2 * MOST_FILES);
        let others = &known[MOST_FILES - 1];
        assert_eq!(
            (others.name.as_str(), others.opens as usize, others.read.calls as usize),
            (OTHERS, MOST_FILES + 1, MOST_FILES + 1)
        );
    }

    #[test]
    fn they_survive_the_wire_and_have_a_bound_there() {
        let read = |all: &[Usage]| {
            let mut w = Writer::new(1);
            w.list(all, |w, one| one.write(w));
            let framed = w.into_framed();
            let mut r = Reader::new(&framed[5..]);
            Usage::read_all(&mut r)
        };
        let all = vec![used("\"x\"", 3); MOST_FILES];
        assert_eq!(read(&all), Ok(all));
        assert!(read(&vec![Usage::default(); MOST_FILES + 1]).is_err());
        assert!(read(&[used(&"x".repeat(MOST_NAME + 1), 1)]).is_err());
    }
}
