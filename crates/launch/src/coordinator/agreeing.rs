// SPDX-License-Identifier: Apache-2.0
//! Members of communicators agree, whoever of them fails before, meanwhile or afterwards.
//!
//! An agreement is over when each of its members has asked or does not take part any more. Then all that live are
//! answered the same, once; answers that are lost on their way are given again by `answering`. So no two of them can be
//! told different things, and nobody waits for a process that has failed.
//!
//! `between`: members of two launchers. `naming`: which processes members are.

use between::{Between, Posted};
use isthmus_identity::derived;
use isthmus_job::coallocation::{Subjobs, takes_part, world_of};
use isthmus_wire::agreeing::{Agree, Agreed, Members, What, Which, pieces, places};
use isthmus_wire::letter::Share;
use isthmus_wire::question::{Kind, Refusal, Said};
use naming::{Named, resolve, same_members};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

mod between;
mod naming;

const DIFFERENT: &str = "members of this communicator call different functions: one agrees (MPIX_Comm_agree), another one shrinks \
                         (MPIX_Comm_shrink); call the same in the same order at all of them";
const OTHERS: &str = "members of an agreement name different processes; please report this";
const INHERITED: &str = "the communicator has processes of a job with another launcher, and this job was taken up by a launcher that has not \
                         begun it; shrink or agree on a communicator of this job's processes";

/// A process: subjob and index.
type Process = (usize, u32);
/// A member; `None`: one of another launcher.
type Member = Option<Process>;

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
    /// Letters of other launchers.
    posted: Posted,
}

#[derive(Debug)]
struct Agreement {
    what: What,
    /// As the first one said it, with the process that each place stands for.
    worlds: Vec<[u8; 16]>,
    ranges: Vec<Members>,
    members: Arc<[Member]>,
    /// Who has not asked, and takes part as far as is known.
    missing: BTreeSet<Process>,
    wishes: BTreeMap<Process, Wish>,
    /// If there are members of another launcher.
    between: Option<Between>,
}

/// What a member has said.
#[derive(Debug)]
struct Wish {
    question: u64,
    flag: u32,
    contexts: [u32; 3],
    known: BTreeSet<u32>,
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
        let named = match self.open.get(&agree.which) {
            Some(open) if open.worlds == agree.worlds && open.ranges == agree.members => Ok(open.named()),
            _ => resolve(&self.worlds, subjobs, by, &agree),
        };
        match named {
            Ok(named) if named.decides.is_some() && inherited => {
                vec![(by, question, Err(Refusal::new(Kind::Unable, INHERITED)))]
            }
            Ok(named) => self.ask(by, question, agree, named, |(site, index)| {
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
        named: Named,
        takes_part: impl Fn(Process) -> bool,
    ) -> Vec<Told> {
        let which = agree.which;
        let is_new = !self.open.contains_key(&which);
        let mut told = if self.inherited {
            self.forgo(by, which)
        } else {
            Vec::new()
        };
        let open = self.open.entry(which).or_insert_with(|| Agreement {
            what: agree.what,
            worlds: agree.worlds.clone(),
            ranges: agree.members.clone(),
            missing: named.own().filter(|&member| takes_part(member)).collect(),
            between: named.decides.map(|decides| Between::new(decides, &named.members)),
            members: named.members,
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
        if is_new {
            // Letters that have come before anybody has asked.
            for (holder, question, letter) in self.posted.take_early(which) {
                told.extend(self.deliver(holder, question, letter, &takes_part));
            }
        }
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
        self.posted.forget(&takes_part);
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
        let mut told = Vec::new();
        let result = match open.between.is_some() {
            true => open.settle_between(which, takes_part, &mut told),
            false => open.missing.is_empty().then(|| Ok(open.combined(takes_part, None))),
        };
        if let Some(result) = result {
            told.extend(self.end(which, result, takes_part));
        }
        told
    }

    /// All own members that live are told this result.
    fn end(
        &mut self,
        which: Which,
        result: Result<Agreed, String>,
        takes_part: &impl Fn(Process) -> bool,
    ) -> Vec<Told> {
        let Some(over) = self.open.remove(&which) else {
            return Vec::new();
        };
        let living = over.living(takes_part);
        let mut told: Vec<Told> = living
            .map(|(member, wish)| {
                let said = result.clone().map(|agreed| Said::Agreed(Box::new(agreed)));
                (
                    member,
                    wish.question,
                    said.map_err(|why| Refusal::new(Kind::Unable, why)),
                )
            })
            .collect();
        if let Some(between) = over.between {
            self.posted.is_over(which);
            told.extend(between.dismiss(result.err().as_deref()));
        }
        told
    }
}

impl Agreement {
    /// Its members, as [`resolve`] gives them.
    fn named(&self) -> Named {
        Named {
            members: self.members.clone(),
            decides: self.between.as_ref().map(Between::decides),
        }
    }

    /// Own members that have asked and live.
    fn living<'a>(
        &'a self,
        takes_part: &'a impl Fn(Process) -> bool,
    ) -> impl Iterator<Item = (Process, &'a Wish)> + 'a {
        let all = self.wishes.iter().map(|(&member, wish)| (member, wish));
        all.filter(|(member, _)| takes_part(*member))
    }

    /// What is wrong with what a member asks.
    fn objection(&self, by: Process, agree: &Agree) -> Option<&'static str> {
        if self.what != agree.what {
            return Some(DIFFERENT);
        }
        // Each names its own world first, so ranges of several worlds may be written in different ways.
        let same = same_members((&self.worlds, &self.ranges), (&agree.worlds, &agree.members));
        if !same || !self.members.contains(&Some(by)) {
            return Some(OTHERS);
        }
        self.wishes
            .contains_key(&by)
            .then_some("a process asks twice for one agreement; please report this")
    }

    /// What all that live are told. `share`: what those of another launcher have said; without it none of them lives.
    fn combined(&self, takes_part: &impl Fn(Process) -> bool, share: Option<&Share>) -> Agreed {
        let lives = |member: &Process| self.wishes.contains_key(member) && takes_part(*member);
        let abroad: Option<BTreeSet<u32>> = share.map(|share| places(&share.lost).collect());
        let is_lost = |place: u32, member: &Member| match (member, &abroad) {
            (Some(own), _) => !lives(own),
            (None, Some(lost)) => lost.contains(&place),
            (None, None) => true,
        };
        let all = (0..).zip(self.members.iter());
        let lost: Vec<u32> = all
            .filter(|(place, member)| is_lost(*place, member))
            .map(|(place, _)| place)
            .collect();
        let known: Option<BTreeSet<u32>> = share.map(|share| places(&share.known).collect());
        let is_news = |place: &u32| {
            let elsewhere = known.as_ref().is_some_and(|known| !known.contains(place));
            elsewhere || self.living(takes_part).any(|(_, wish)| !wish.known.contains(place))
        };
        // Of those too that have failed since.
        let flag = self.wishes.values().fold(u32::MAX, |all, wish| all & wish.flag);
        let first = self.first(takes_part);
        let contexts = match (first, share) {
            (Some((place, _)), Some(share)) if share.first < place => share.contexts,
            (None, Some(share)) => share.contexts,
            (Some((_, wish)), _) => wish.contexts,
            (None, None) => [0; 3],
        };
        Agreed {
            flag: share.map_or(flag, |share| flag & share.flag),
            contexts,
            news: lost.iter().any(is_news),
            lost: pieces(lost),
        }
    }

    /// The first own member that lives, with its place.
    fn first(&self, takes_part: &impl Fn(Process) -> bool) -> Option<(u32, &Wish)> {
        let mut own = (0..)
            .zip(self.members.iter())
            .filter_map(|(place, member)| Some((place, (*member)?)));
        own.find_map(|(place, member)| Some((place, self.wishes.get(&member).filter(|_| takes_part(member))?)))
    }
}

#[cfg(test)]
mod tests;
