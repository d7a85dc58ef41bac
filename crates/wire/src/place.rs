// SPDX-License-Identifier: Apache-2.0
//! Where processes are and how they represent data: the place table.

use crate::codec::{DecodeError, Reader, Writer};

/// How a process represents the types of C. Two processes with equal values exchange bytes as they are. What the bytes
/// mean says the room `datatype` (`Representation::encode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Representation(pub [u8; 8]);

/// A process as wires and certificates of its job name it: its rank in the job's MPI_COMM_WORLD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Rank(pub u32);

impl Rank {
    /// Its place in a table of all processes of the job.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Most programs of one subjob.
pub const MAX_PROGRAMS: usize = 1_024;

/// One subjob: one machine, one submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjob {
    /// Name of the site as the user wrote it; unique name of this machine within the job.
    pub name: String,
    /// Local area this machine belongs to; machines with equal `lan` are at one site.
    pub lan: String,
    /// First rank in MPI_COMM_WORLD.
    pub first_rank: u32,
    /// Number of processes.
    pub count: u32,
    /// Its programs: index within the subjob of the first process of each, which is 0 for the first one, and the number
    /// of the program (MPI_APPNUM). At most [`MAX_PROGRAMS`].
    pub programs: Vec<(u32, u32)>,
}

impl Subjob {
    /// Number of the program that the process with this index runs.
    pub fn appnum(&self, index: u32) -> u32 {
        let begun = self.programs.iter().rev().find(|(first, _)| *first <= index);
        begun.map_or(0, |(_, appnum)| *appnum)
    }
}

/// One process of the job, in order of rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index into [`PlaceTable::subjobs`].
    pub subjob: u32,
    /// Index into [`PlaceTable::nodes`].
    pub node: u32,
    /// TCP port the process listens on; 0 when it does not.
    pub port: u16,
    /// Index of the process on its node, within this job: its slot in the node's shared memory.
    pub slot: u32,
    /// Data representation.
    pub representation: Representation,
    /// Rank in the job of the vendor MPI that this process is part of; each subjob has one such job at most.
    pub vendor: Option<u32>,
}

/// One operating-system instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Host name, for people.
    pub host: String,
    /// Addresses of the node's interfaces, most promising first, as text without port. Which of them
    /// works is proven by a handshake, never guessed.
    pub addresses: Vec<String>,
    /// Index of the subjob; processes of different subjobs never share memory.
    pub subjob: u32,
    /// Number of processes of the job on it.
    pub processes: u32,
    /// Processors that they share; 0: not known.
    pub processors: u32,
}

/// Everybody's place, equal on all processes of a job.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PlaceTable {
    /// Machines.
    pub subjobs: Vec<Subjob>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Processes, index = rank in MPI_COMM_WORLD.
    pub places: Vec<Place>,
}

impl PlaceTable {
    /// Appends the table to a message.
    pub fn write(&self, w: &mut Writer) {
        w.list(&self.subjobs, |w, s| {
            w.text(&s.name).text(&s.lan).u32(s.first_rank).u32(s.count);
            write_programs(w, &s.programs);
        });
        w.list(&self.nodes, |w, n| {
            w.text(&n.host).list(&n.addresses, |w, a| {
                w.text(a);
            });
            w.u32(n.subjob).u32(n.processes).u32(n.processors);
        });
        w.list(&self.places, |w, p| {
            w.u32(p.subjob).u32(p.node).u16(p.port).u32(p.slot);
            for b in p.representation.0 {
                w.u8(b);
            }
            write_vendor(w, p.vendor);
        });
    }

    /// Reads a table and checks that its indices point into it.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let subjobs = r.list("subjobs", |r| {
            let (name, lan) = (r.text("subjob name")?, r.text("lan")?);
            let (first_rank, count) = (r.u32("first rank")?, r.u32("count")?);
            Ok(Subjob {
                name,
                lan,
                first_rank,
                count,
                programs: read_programs(r, count)?,
            })
        })?;
        let nodes = r.list("nodes", |r| {
            Ok(Node {
                host: r.text("host")?,
                addresses: r.list("addresses", |r| r.text("address"))?,
                subjob: r.u32("node's subjob")?,
                processes: r.u32("processes")?,
                processors: r.u32("processors")?,
            })
        })?;
        let places = r.list("places", |r| {
            Ok(Place {
                subjob: r.u32("place's subjob")?,
                node: r.u32("place's node")?,
                port: r.u16("port")?,
                slot: r.u32("slot")?,
                representation: Representation(r.fixed("representation")?),
                vendor: read_vendor(r)?,
            })
        })?;
        let table = Self { subjobs, nodes, places };
        table.check()?;
        Ok(table)
    }

    fn check(&self) -> Result<(), DecodeError> {
        let bad = |field, value: u32| DecodeError::Invalid {
            field,
            value: u64::from(value),
        };
        if let Some(n) = self.nodes.iter().find(|n| n.subjob as usize >= self.subjobs.len()) {
            return Err(bad("node's subjob", n.subjob));
        }
        for p in &self.places {
            if p.subjob as usize >= self.subjobs.len() {
                return Err(bad("place's subjob", p.subjob));
            }
            let Some(node) = self.nodes.get(p.node as usize) else {
                return Err(bad("place's node", p.node));
            };
            if p.slot >= node.processes {
                return Err(bad("slot", p.slot));
            }
            if let Some(rank) = p.vendor.filter(|&rank| rank >= self.subjobs[p.subjob as usize].count) {
                return Err(bad("rank in the machine's own MPI", rank));
            }
        }
        Ok(())
    }
}

/// Where each program of a subjob begins, with its number.
pub(crate) fn write_programs(w: &mut Writer, programs: &[(u32, u32)]) {
    w.list(programs, |w, (first, appnum)| {
        w.u32(*first).u32(*appnum);
    });
}

/// Reads what [`write_programs`] has written of a subjob of so many processes.
pub(crate) fn read_programs(r: &mut Reader<'_>, count: u32) -> Result<Vec<(u32, u32)>, DecodeError> {
    let programs = r.list("programs", |r| Ok((r.u32("first process")?, r.u32("appnum")?)))?;
    check_firsts(programs.iter().map(|(first, _)| *first), count)?;
    Ok(programs)
}

/// Programs begin with the first process, each has one, and there are not too many.
pub(crate) fn check_firsts(firsts: impl Iterator<Item = u32> + Clone, count: u32) -> Result<(), DecodeError> {
    let wrong = |value| DecodeError::Invalid {
        field: "first process of a program",
        value,
    };
    let number = firsts.clone().count();
    if number > MAX_PROGRAMS || firsts.clone().next() != Some(0) {
        return Err(wrong(number as u64));
    }
    let pairs = firsts.clone().zip(firsts.skip(1).chain([count.max(1)]));
    match pairs.into_iter().find(|(first, next)| first >= next) {
        Some((first, _)) => Err(wrong(u64::from(first))),
        None => Ok(()),
    }
}

/// Rank of a process in the job of its vendor MPI: rank + 1 as u32, 0 for none.
pub(crate) fn write_vendor(w: &mut Writer, rank: Option<u32>) {
    w.u32(rank.map_or(0, |rank| rank.saturating_add(1)));
}

/// Reads what [`write_vendor`] has written.
pub(crate) fn read_vendor(r: &mut Reader<'_>) -> Result<Option<u32>, DecodeError> {
    Ok(r.u32("rank in the machine's own MPI")?.checked_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_a_subjob_begin_one_after_the_other() {
        let check = |firsts: &[u32], count| check_firsts(firsts.iter().copied(), count).is_ok();
        assert!(check(&[0], 1) && check(&[0, 1, 7], 8));
        for (firsts, count) in [(&[][..], 1), (&[1], 2), (&[0, 2, 2], 3), (&[0, 3], 3), (&[0, 5, 4], 9)] {
            assert!(!check(firsts, count), "{firsts:?} of {count}");
        }
        let many: Vec<u32> = (0..=1024).collect();
        assert!(!check(&many, 5000));
        let subjob = Subjob {
            name: String::new(),
            lan: String::new(),
            first_rank: 9,
            count: 5,
            programs: vec![(0, 3), (2, 4)],
        };
        assert_eq!([0, 1, 2, 4].map(|index| subjob.appnum(index)), [3, 3, 4, 4]);
    }
}
