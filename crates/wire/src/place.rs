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
    /// Index of the program (for MPI_APPNUM).
    pub appnum: u32,
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
            w.text(&s.name)
                .text(&s.lan)
                .u32(s.first_rank)
                .u32(s.count)
                .u32(s.appnum);
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
            Ok(Subjob {
                name: r.text("subjob name")?,
                lan: r.text("lan")?,
                first_rank: r.u32("first rank")?,
                count: r.u32("count")?,
                appnum: r.u32("appnum")?,
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

/// Rank of a process in the job of its vendor MPI: rank + 1 as u32, 0 for none.
pub(crate) fn write_vendor(w: &mut Writer, rank: Option<u32>) {
    w.u32(rank.map_or(0, |rank| rank.saturating_add(1)));
}

/// Reads what [`write_vendor`] has written.
pub(crate) fn read_vendor(r: &mut Reader<'_>) -> Result<Option<u32>, DecodeError> {
    Ok(r.u32("rank in the machine's own MPI")?.checked_sub(1))
}
