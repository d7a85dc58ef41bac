// SPDX-License-Identifier: Apache-2.0
//! Who processes of a job are connected with, of other jobs or worlds.
//!
//! | | fields |
//! |---|---|
//! | group | world 16 bytes, job text, site text, host text, processes u32 |
//! | joined | \[rank u32\], \[group\] |

use crate::codec::{DecodeError, Reader, Writer};
use crate::reason::{cut_to, read_name_for_people};

/// Most groups that are told of.
pub const MAX_GROUPS: usize = 64;
/// Longest name of a job, site or host, bytes; longer ones are cut.
pub const MAX_TEXT: usize = 255;

/// Processes of one world on one host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Their MPI_COMM_WORLD.
    pub world: [u8; 16],
    /// What their job is called; empty: it has no launcher.
    pub job: String,
    /// Their site, as their own job calls it.
    pub site: String,
    /// Their host, as it calls itself.
    pub host: String,
    /// How many.
    pub processes: u32,
}

/// Processes of a job that are connected with others, and those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// Ranks, in order.
    pub ranks: Vec<u32>,
    /// With whom.
    pub with: Vec<Group>,
}

impl Group {
    pub(crate) fn write(&self, w: &mut Writer) {
        w.fixed(&self.world);
        for name in [&self.job, &self.site, &self.host] {
            w.text(cut_to(name, MAX_TEXT));
        }
        w.u32(self.processes);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            world: r.fixed("world")?,
            job: name(r, "job")?,
            site: name(r, "site")?,
            host: name(r, "host")?,
            processes: r.u32("processes")?,
        })
    }
}

fn name(r: &mut Reader<'_>, field: &'static str) -> Result<String, DecodeError> {
    read_name_for_people(r, field, MAX_TEXT)
}

/// Groups, as many as there may be.
pub(crate) fn read_groups(r: &mut Reader<'_>) -> Result<Vec<Group>, DecodeError> {
    let groups = r.list("groups", Group::read)?;
    match groups.len() <= MAX_GROUPS {
        true => Ok(groups),
        false => Err(DecodeError::Invalid {
            field: "groups",
            value: groups.len() as u64,
        }),
    }
}

impl Joined {
    pub(crate) fn write(&self, w: &mut Writer) {
        w.list(&self.ranks, |w, rank| {
            w.u32(*rank);
        });
        w.list(&self.with, |w, group| group.write(w));
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            ranks: r.list("ranks", |r| r.u32("rank"))?,
            with: read_groups(r)?,
        })
    }
}

#[cfg(test)]
pub(crate) fn sample() -> Group {
    Group {
        world: [3; 16],
        job: "tank".into(),
        site: "lab".into(),
        host: "n1".into(),
        processes: 4,
    }
}
