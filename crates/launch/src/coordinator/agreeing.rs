// SPDX-License-Identifier: Apache-2.0
//! Members of communicators agree, whoever of them fails before, meanwhile or afterwards.
//!
//! An agreement is over when each of its members has asked or does not take part any more. Then all that live are
//! answered the same, once; answers that are lost on their way are given again by `answering`. So no two of them can be
//! told different things, and nobody waits for a process that has failed.

use isthmus_identity::derived;
use isthmus_job::coallocation::{Subjobs, takes_part, world_of};
use isthmus_wire::agreeing::{Agree, Agreed, Members, What, Which, pieces, places};
use isthmus_wire::question::{Kind, Refusal, Said};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A process: subjob and index.
type Process = (usize, u32);

/// An answer for a process that has asked: the number of its question, and what it is told.
pub(super) type Told = (Process, u64, Result<Said, Refusal>);

/// All agreements that are not over.
#[derive(Debug, Default)]
pub(super) struct Agreements {
    open: HashMap<Which, Agreement>,
    /// Worlds by their names: one of their subjobs.
    worlds: HashMap<[u8; 16], usize>,
    /// Somebody may not take part any more.
    doubtful: bool,
    /// The job was begun by another launcher, which may have answered some.
    inherited: bool,
}

#[derive(Debug)]
struct Agreement {
    what: What,
    /// As the first one said it, with the process that each place stands for.
    worlds: Vec<[u8; 16]>,
    ranges: Vec<Members>,
    members: Arc<[Process]>,
    /// Who has not asked, and takes part as far as is known.
    missing: BTreeSet<Process>,
    wishes: BTreeMap<Process, Wish>,
}

/// What a member has said.
#[derive(Debug)]
struct Wish {
    question: u64,
    flag: u32,
    contexts: [u32; 3],
    known: BTreeSet<u32>,
}

/// The processes that a member names.
fn resolve(
    known: &HashMap<[u8; 16], usize>,
    subjobs: &Subjobs,
    by: Process,
    agree: &Agree,
) -> Result<Arc<[Process]>, Refusal> {
    let refused = |why: &str| Err(Refusal::new(Kind::Unable, why));
    let mut worlds: Vec<Vec<(usize, u32)>> = Vec::with_capacity(agree.worlds.len());
    for (at, name) in agree.worlds.iter().enumerate() {
        // Its own world is known by itself, also to a launcher that has taken the job up.
        let site = if at == 0 { Some(by.0) } else { known.get(name).copied() };
        let Some(world) = site.and_then(|site| world_of(subjobs, site)) else {
            return refused(
                "the communicator has processes of a job with another launcher, and only processes of one launcher can agree on \
                 losses; shrink or agree on a communicator of this job's processes",
            );
        };
        worlds.push(world.collect());
    }
    let all: u64 = worlds.iter().flatten().map(|(_, size)| u64::from(*size)).sum();
    if u64::from(agree.count()) > all {
        return refused("an agreement names more processes than there are; please report this");
    }
    let mut members = Vec::with_capacity(agree.count() as usize);
    for range in &agree.members {
        let world = worlds.get(usize::from(range.world)).map_or(&[][..], |world| world);
        for rank in range.first..range.first + range.count {
            match process_of(world, rank) {
                Some(process) => members.push(process),
                None => return refused("an agreement names a process that is not there; please report this"),
            }
        }
    }
    let different: BTreeSet<&Process> = members.iter().collect();
    if different.len() != members.len() || !different.contains(&by) {
        return refused("an agreement names a process twice, or not the one that asks; please report this");
    }
    Ok(members.into())
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

impl Agreements {
    /// Name of the world of a subjob, if it has begun here.
    pub(super) fn name_of(&self, subjobs: &Subjobs, site: usize) -> Option<[u8; 16]> {
        let first = world_of(subjobs, site)?.next()?.0;
        let mut worlds = self.worlds.iter();
        worlds.find(|(_, of)| **of == first).map(|(name, _)| *name)
    }

    /// Whether a world of this name has begun here.
    pub(super) fn knows(&self, world: &[u8; 16]) -> bool {
        self.worlds.contains_key(world)
    }

    /// A process asks to agree with others; who is told what. `inherited`: the job was begun by another launcher.
    pub(super) fn hear(
        &mut self,
        subjobs: &Subjobs,
        by: Process,
        question: u64,
        agree: Agree,
        inherited: bool,
    ) -> Vec<Told> {
        self.inherited = inherited;
        let members = match self.open.get(&agree.which) {
            Some(open) if open.worlds == agree.worlds && open.ranges == agree.members => Ok(open.members.clone()),
            _ => resolve(&self.worlds, subjobs, by, &agree),
        };
        match members {
            Ok(members) => self.ask(by, question, agree, members, |(site, index)| {
                takes_part(subjobs, site, index)
            }),
            Err(refusal) => vec![(by, question, Err(refusal))],
        }
    }

    /// A world has begun, of these subjobs, under this name.
    pub(super) fn begun(&mut self, secret: &[u8; 32], name: &str, sites: &[usize]) {
        let id = derived(secret, format!("isthmus world {name}").as_bytes());
        let id = std::array::from_fn(|at| id[at]);
        if let Some(&site) = sites.first() {
            self.worlds.insert(id, site);
        }
    }

    /// Processes may have failed, or left MPI: who waits for no others any more is answered, once the others have been
    /// told of it.
    pub(super) fn doubt(&mut self) {
        self.doubtful = true;
    }

    /// Whom nobody has to be waited for any more, and what they are told.
    pub(super) fn settled(&mut self, subjobs: &Subjobs) -> Vec<Told> {
        match std::mem::take(&mut self.doubtful) {
            true => self.look_again(|(site, index)| takes_part(subjobs, site, index)),
            false => Vec::new(),
        }
    }

    /// A member asks; who is told what.
    fn ask(
        &mut self,
        by: Process,
        question: u64,
        agree: Agree,
        members: Arc<[Process]>,
        takes_part: impl Fn(Process) -> bool,
    ) -> Vec<Told> {
        let which = agree.which;
        let mut told = if self.inherited {
            self.forgo(by, which)
        } else {
            Vec::new()
        };
        let open = self.open.entry(which).or_insert_with(|| Agreement {
            what: agree.what,
            worlds: agree.worlds.clone(),
            ranges: agree.members.clone(),
            missing: members.iter().copied().filter(|&member| takes_part(member)).collect(),
            members,
            wishes: BTreeMap::new(),
        });
        if let Some(why) = open.objection(by, &agree) {
            told.push((by, question, Err(Refusal::new(Kind::Unable, why))));
            return told;
        }
        open.missing.remove(&by);
        let wish = Wish {
            question,
            flag: agree.flag,
            contexts: agree.contexts,
            known: places(&agree.known).collect(),
        };
        open.wishes.insert(by, wish);
        told.extend(self.settle(which, &takes_part));
        told
    }

    /// Whoever asks for a later agreement than one for which it is missing has been answered there, by a launcher that
    /// is lost and has taken the answer along: the others cannot be told the same any more, so they are told that.
    fn forgo(&mut self, by: Process, which: Which) -> Vec<Told> {
        let is_before = |other: &Which, open: &Agreement| {
            let same = (other.scope, other.context) == (which.scope, which.context);
            same && other.round < which.round && open.missing.contains(&by)
        };
        let before: Vec<Which> = self
            .open
            .iter()
            .filter(|(other, open)| is_before(other, open))
            .map(|(other, _)| *other)
            .collect();
        let lost = before.into_iter().filter_map(|other| self.open.remove_entry(&other));
        let why = "the launcher was lost while the members agreed, and another one does not know what it has answered the others";
        let told = lost.flat_map(|(_, open)| open.wishes);
        told.map(|(member, wish)| (member, wish.question, Err(Refusal::new(Kind::Unable, why))))
            .collect()
    }

    /// Some may not take part any more; who is told what.
    fn look_again(&mut self, takes_part: impl Fn(Process) -> bool) -> Vec<Told> {
        let open: Vec<Which> = self.open.keys().copied().collect();
        open.into_iter()
            .flat_map(|which| self.settle(which, &takes_part))
            .collect()
    }

    /// Ends an agreement for which nobody is missing.
    fn settle(&mut self, which: Which, takes_part: &impl Fn(Process) -> bool) -> Vec<Told> {
        let Some(open) = self.open.get_mut(&which) else {
            return Vec::new();
        };
        open.missing.retain(|&member| takes_part(member));
        if !open.missing.is_empty() {
            return Vec::new();
        }
        let Some(over) = self.open.remove(&which) else {
            return Vec::new();
        };
        over.result(takes_part)
    }
}

impl Agreement {
    /// What is wrong with what a member asks.
    fn objection(&self, by: Process, agree: &Agree) -> Option<&'static str> {
        if self.what != agree.what {
            return Some(
                "members of this communicator call different functions: one agrees (MPIX_Comm_agree), another one shrinks \
                 (MPIX_Comm_shrink); call the same in the same order at all of them",
            );
        }
        // Each names its own world first, so ranges of several worlds may be written in different ways.
        let same = self.worlds != agree.worlds || self.ranges == agree.members;
        if !same || self.members.len() != agree.count() as usize || !self.members.contains(&by) {
            return Some("members of an agreement name different processes; please report this");
        }
        self.wishes
            .contains_key(&by)
            .then_some("a process asks twice for one agreement; please report this")
    }

    /// The same for all that live.
    fn result(self, takes_part: &impl Fn(Process) -> bool) -> Vec<Told> {
        let lives = |member: &Process| self.wishes.contains_key(member) && takes_part(*member);
        let lost: Vec<u32> = (0..)
            .zip(self.members.iter())
            .filter(|(_, m)| !lives(m))
            .map(|(at, _)| at)
            .collect();
        let living = || {
            self.members
                .iter()
                .filter(|member| lives(member))
                .filter_map(|m| self.wishes.get(m))
        };
        let is_news = |place: &u32| living().any(|wish| !wish.known.contains(place));
        let agreed = Agreed {
            // Of those too that have failed since.
            flag: self.wishes.values().fold(u32::MAX, |all, wish| all & wish.flag),
            contexts: living().next().map_or([0; 3], |wish| wish.contexts),
            news: lost.iter().any(is_news),
            lost: pieces(lost),
        };
        let told = self.wishes.iter().filter(|(member, _)| lives(member));
        told.map(|(&member, wish)| (member, wish.question, Ok(Said::Agreed(Box::new(agreed.clone())))))
            .collect()
    }
}

#[cfg(test)]
mod tests;
