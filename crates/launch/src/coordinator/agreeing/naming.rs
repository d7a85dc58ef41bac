// SPDX-License-Identifier: Apache-2.0
//! Which processes the members of an agreement are.

use isthmus_job::coallocation::{Subjobs, world_of};
use isthmus_wire::agreeing::{Agree, Members};
use isthmus_wire::question::{Kind, Refusal, Said};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A process: subjob and index.
pub(super) type Process = (usize, u32);
/// A member; `None`: one of another launcher.
pub(super) type Member = Option<Process>;

/// An answer for a process that has asked: the number of its question, and what it is told.
pub(super) type Told = (Process, u64, Result<Said, Refusal>);

/// Members by their places.
pub(super) struct Named {
    pub(super) members: Arc<[Member]>,
    /// Whether some are of another launcher.
    pub(super) spans: bool,
}

impl Named {
    /// Those of this launcher.
    pub(super) fn own(&self) -> impl Iterator<Item = Process> + '_ {
        self.members.iter().copied().flatten()
    }
}

/// The processes that a member names.
pub(super) fn resolve(
    known: &HashMap<[u8; 16], usize>,
    subjobs: &Subjobs,
    by: Process,
    agree: &Agree,
) -> Result<Named, Refusal> {
    let refused = |why: &str| Err(Refusal::new(Kind::Unable, why));
    let different: BTreeSet<&[u8; 16]> = agree.worlds.iter().collect();
    if different.len() != agree.worlds.len() {
        return refused("an agreement names a world twice; please report this");
    }
    // `None`: of another launcher.
    let mut worlds: Vec<Option<Vec<(usize, u32)>>> = Vec::with_capacity(agree.worlds.len());
    for (at, name) in agree.worlds.iter().enumerate() {
        // Its own world is known by itself, also to a launcher that has taken the job up.
        let site = if at == 0 { Some(by.0) } else { known.get(name).copied() };
        worlds.push(site.and_then(|site| world_of(subjobs, site)).map(Iterator::collect));
    }
    let is_own = |range: &&Members| worlds.get(usize::from(range.world)).is_some_and(Option::is_some);
    let own: u64 = agree
        .members
        .iter()
        .filter(is_own)
        .map(|range| u64::from(range.count))
        .sum();
    let all: u64 = worlds
        .iter()
        .flatten()
        .flatten()
        .map(|(_, size)| u64::from(*size))
        .sum();
    if own > all {
        return refused("an agreement names more processes than there are; please report this");
    }
    let mut members: Vec<Member> = Vec::with_capacity(agree.count() as usize);
    for range in &agree.members {
        let Some(Some(world)) = worlds.get(usize::from(range.world)) else {
            members.extend((0..range.count).map(|_| None));
            continue;
        };
        for rank in range.first..range.first + range.count {
            match process_of(world, rank) {
                Some(process) => members.push(Some(process)),
                None => return refused("an agreement names a process that is not there; please report this"),
            }
        }
    }
    let different: BTreeSet<&Process> = members.iter().flatten().collect();
    if different.len() as u64 != own || !different.contains(&by) {
        return refused("an agreement names a process twice, or not the one that asks; please report this");
    }
    Ok(Named {
        spans: members.contains(&None),
        members: members.into(),
    })
}

/// The process with this rank in a world of these subjobs.
fn process_of(world: &[(usize, u32)], rank: u32) -> Option<Process> {
    let mut first = 0;
    for &(site, size) in world {
        if rank - first < size {
            return Some((site, rank - first));
        }
        first += size;
    }
    None
}

/// Members as somebody has written them.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) worlds: &'a [[u8; 16]],
    pub(super) members: &'a [Members],
}

impl Written<'_> {
    /// Whether they are the same: each is written with the own world first.
    pub(super) fn is(self, other: Self) -> bool {
        let name = |written: Self, range: &Members| written.worlds.get(usize::from(range.world)).copied();
        let mut both = self.members.iter().zip(other.members);
        self.members.len() == other.members.len()
            && both.all(|(x, y)| {
                let known = name(self, x);
                (x.first, x.count) == (y.first, y.count) && known == name(other, y) && known.is_some()
            })
    }
}
