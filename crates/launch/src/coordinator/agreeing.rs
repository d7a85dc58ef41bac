// SPDX-License-Identifier: Apache-2.0
//! Members of communicators agree, whoever of them fails before, meanwhile or afterwards.
//!
//! An agreement is over when each of its members has asked or does not take part any more. Then all that live are
//! answered the same, once; answers that are lost on their way are given again by `answering`. So no two of them can be
//! told different things, and nobody waits for a process that has failed.
//!
//! `agreement`: one of them. `deciding`: members of several launchers; `between`: letters of these; `parties`: which
//! launchers there are. `naming`: which processes members are.

use agreement::{Agreement, Wish};
use between::{Between, Outcome, Past, Posted, back};
use isthmus_identity::derived;
use isthmus_job::coallocation::{Subjobs, takes_part, world_of};
use isthmus_wire::agreeing::{Agree, Which, places};
use isthmus_wire::letter::{Back, Letter, Says};
use isthmus_wire::question::{Kind, Refusal, Said};
use naming::{Named, Process, Told, resolve};
use std::collections::{BTreeMap, HashMap};

mod agreement;
mod between;
mod deciding;
mod naming;
mod parties;

const WITHOUT: &str =
    "the other job's processes have agreed without those of this job, which they could not reach any more";
const INHERITED: &str = "the communicator has processes of a job with another launcher, and this job was taken up by a launcher that has not \
                         begun it; shrink or agree on a communicator of this job's processes";

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
            Ok(named) if named.spans && inherited => {
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
            between: named
                .spans
                .then(|| Between::new(&agree.worlds, &agree.members, &named.members)),
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
            false => open.missing.is_empty().then(|| Ok(open.combined(takes_part))),
        };
        if let Some(result) = result {
            told.extend(self.end(which, result, takes_part));
        }
        told
    }

    /// All own members that live are told this result.
    fn end(&mut self, which: Which, result: Outcome, takes_part: &impl Fn(Process) -> bool) -> Vec<Told> {
        let Some(over) = self.open.remove(&which) else {
            return Vec::new();
        };
        let counts_here = |place: u32| match &result {
            Ok(agreed) => !agreed
                .lost
                .iter()
                .any(|(first, count)| place.wrapping_sub(*first) < *count),
            Err(_) => true,
        };
        let own = match over.first(takes_part) {
            Some((place, _)) if !counts_here(place) => Err(WITHOUT.to_owned()),
            _ => result.clone(),
        };
        let living = over.living(takes_part);
        let mut told: Vec<Told> = living
            .map(|(member, wish)| {
                let said = own.clone().map(|agreed| Said::Agreed(Box::new(agreed)));
                (
                    member,
                    wish.question,
                    said.map_err(|why| Refusal::new(Kind::Unable, why)),
                )
            })
            .collect();
        if let Some(between) = over.between {
            told.extend(between.dismiss(&result));
            self.posted.is_over(which, result);
        }
        told
    }
}

impl Agreements {
    /// A process can carry letters about an agreement; who is told what.
    pub(super) fn carry(
        &mut self,
        subjobs: &Subjobs,
        by: Process,
        question: u64,
        which: Which,
        was: Option<Back>,
    ) -> Vec<Told> {
        self.is_ready(by, question, which, was, &|(site, index)| {
            takes_part(subjobs, site, index)
        })
    }

    /// A process brings a letter of another launcher; who is told what.
    pub(super) fn bring(
        &mut self,
        subjobs: &Subjobs,
        by: Process,
        question: u64,
        letter: Letter,
        inherited: bool,
    ) -> Vec<Told> {
        if inherited {
            return vec![back(by, question, Back::Refused(INHERITED.to_owned()))];
        }
        self.deliver(by, question, letter, &|(site, index)| takes_part(subjobs, site, index))
    }

    fn is_ready(
        &mut self,
        by: Process,
        question: u64,
        which: Which,
        was: Option<Back>,
        takes_part: &impl Fn(Process) -> bool,
    ) -> Vec<Told> {
        let open = self.open.get_mut(&which).filter(|open| open.wishes.contains_key(&by));
        let Some(between) = open.and_then(|open| open.between.as_mut()) else {
            return vec![(by, question, Ok(Said::Done))];
        };
        let mut told: Vec<Told> = Vec::new();
        if let Some(before) = between.ready.insert(by, question) {
            told.push((by, before, Ok(Said::Done)));
        }
        between.learn(by, was);
        told.extend(self.settle(which, takes_part));
        told
    }

    fn deliver(
        &mut self,
        by: Process,
        question: u64,
        letter: Letter,
        takes_part: &impl Fn(Process) -> bool,
    ) -> Vec<Told> {
        let which = letter.which;
        let Some(open) = self.open.get_mut(&which) else {
            let told = match (self.posted.past(which), &letter.says) {
                // It has agreed without this one, which has a result that stands.
                (Some(Past::Known(own)), Says::Result(theirs)) if own != theirs => Back::Nobody,
                // Whoever wrote it had this one's share: the agreement is over here.
                (_, Says::Result(_)) => Back::Delivered,
                (Some(Past::Known(own)), _) => Back::Over(own.clone()),
                // It would have the result if it could have been reached.
                (Some(Past::Older), _) => Back::Refused(WITHOUT.to_owned()),
                (None, _) => return self.posted.keep((by, question, letter)),
            };
            return vec![back(by, question, told)];
        };
        let mut told = Vec::new();
        match open.read(by, question, letter, &mut told) {
            Some(result) => told.extend(self.end(which, result, takes_part)),
            None => told.extend(self.settle(which, takes_part)),
        }
        told
    }
}

#[cfg(test)]
mod tests;
