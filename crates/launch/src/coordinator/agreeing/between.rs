// SPDX-License-Identifier: Apache-2.0
//! Members of two launchers agree.
//!
//! Each launcher decides who of its own processes is lost, so neither could decide alone for both. One of them decides what
//! all are told: the one that has the world with the smallest name. The other one sends it the share of its own members
//! when all of them that live have asked. The one that decides tells the other one the result, and tells its own members
//! when it knows that the other one has it. So what a member has been told the other launcher knows, whoever fails then.
//!
//! Launchers do not reach each other: members carry their [letters](isthmus_wire::letter). While one waits for the other
//! a member is on its way, which notices when nobody of the others can be reached any more. If that is so for all own
//! members that live, the others count as lost; they cannot be met on this communicator again. A result that stands is
//! never changed.

use super::{Agreement, Agreements, DIFFERENT, INHERITED, Member, OTHERS, Process, Told, same_members};
use isthmus_job::coallocation::{Subjobs, takes_part};
use isthmus_wire::agreeing::{Agreed, Places, Which, pieces, places};
use isthmus_wire::letter::{Back, Errand, Letter, Says, Share};
use isthmus_wire::question::Said;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most letters that are kept before anybody here has asked for their agreements; the oldest ones go back.
const EARLY: usize = 64;
/// Most agreements of which it is remembered that they are over.
const OVER: usize = 1024;
const THREE: &str = "the communicator has processes of more than two launchers, and only two can agree with each other; shrink or agree \
                     on a communicator of two jobs";
const WITHOUT: &str =
    "the other job's processes have agreed without those of this job, which they could not reach any more";
const LONG: &str =
    "the communicator's processes are in an order that takes more memory to tell another launcher than it accepts";

/// A letter that a process here has, with the number of its question.
type Held = (Process, u64, Letter);

/// Letters of other launchers.
#[derive(Debug, Default)]
pub(super) struct Posted {
    early: VecDeque<Held>,
    over: VecDeque<Which>,
}

impl Posted {
    /// Those about this agreement, which has begun.
    pub(super) fn take_early(&mut self, which: Which) -> Vec<Held> {
        let all = std::mem::take(&mut self.early);
        let (taken, left): (Vec<Held>, Vec<Held>) = all.into_iter().partition(|(_, _, letter)| letter.which == which);
        self.early = left.into();
        taken
    }

    /// Kept until somebody asks; who gets its letter back for that.
    fn keep(&mut self, held: Held) -> Vec<Told> {
        self.early.push_back(held);
        let surplus = self.early.len().saturating_sub(EARLY);
        // Whoever wrote them asks again.
        let first = self.early.drain(..surplus);
        first
            .map(|(by, question, _)| back(by, question, Back::Delivered))
            .collect()
    }

    /// Some processes may have ended.
    pub(super) fn forget(&mut self, takes_part: impl Fn(Process) -> bool) {
        self.early.retain(|(by, _, _)| takes_part(*by));
    }

    /// An agreement is over.
    pub(super) fn is_over(&mut self, which: Which) {
        self.over
            .retain(|known| (known.scope, known.context) != (which.scope, which.context));
        self.over.push_back(which);
        if self.over.len() > OVER {
            self.over.pop_front();
        }
    }

    fn knows_as_over(&self, which: Which) -> bool {
        let same = |known: &&Which| (known.scope, known.context) == (which.scope, which.context);
        self.over
            .iter()
            .find(same)
            .is_some_and(|known| known.round >= which.round)
    }
}

/// What a process is told of a letter that it has brought.
fn back(by: Process, question: u64, back: Back) -> Told {
    (by, question, Ok(Said::Back(back)))
}

/// What is between two launchers about one agreement.
#[derive(Debug)]
pub(super) struct Between {
    /// Whether this one decides.
    decides: bool,
    /// Places of the other one's members.
    others: Vec<Places>,
    /// Who can carry a letter, with the number of its question.
    ready: BTreeMap<Process, u64>,
    /// Who carries one; with the result, or something else.
    out: Option<(Process, bool)>,
    /// Who reaches nobody of the others.
    cut: BTreeSet<Process>,
    /// Who has brought letters that are answered when it is over.
    held: Vec<(Process, u64)>,
    /// Those that are answered when all own members have asked.
    watched: Vec<(Process, u64)>,
    share: Option<Share>,
    /// What all are told: it stands.
    result: Option<Result<Agreed, String>>,
}

impl Between {
    pub(super) fn new(decides: bool, members: &[Member]) -> Self {
        let others = (0..).zip(members).filter(|(_, member)| member.is_none());
        Self {
            decides,
            others: pieces(others.map(|(place, _)| place)),
            ready: BTreeMap::new(),
            out: None,
            cut: BTreeSet::new(),
            held: Vec::new(),
            watched: Vec::new(),
            share: None,
            result: None,
        }
    }

    pub(super) fn decides(&self) -> bool {
        self.decides
    }

    fn forget(&mut self, takes_part: &impl Fn(Process) -> bool) {
        self.ready.retain(|by, _| takes_part(*by));
        self.out = self.out.filter(|(by, _)| takes_part(*by));
        self.held.retain(|(by, _)| takes_part(*by));
        self.watched.retain(|(by, _)| takes_part(*by));
    }

    /// It is over, with a refusal perhaps: nobody needs to carry letters, and those that were brought are answered.
    pub(super) fn dismiss(self, refusal: Option<&str>) -> Vec<Told> {
        let carriers = self
            .ready
            .into_iter()
            .map(|(by, question)| (by, question, Ok(Said::Done)));
        let brought = self.held.into_iter().chain(self.watched);
        let was = refusal.map_or(Back::Delivered, |why| Back::Refused(why.to_owned()));
        carriers
            .chain(brought.map(|(by, question)| back(by, question, was.clone())))
            .collect()
    }
}

impl Agreement {
    /// The same as without others, and sends letters; the result, if own members are told one now.
    pub(super) fn settle_between(
        &mut self,
        which: Which,
        takes_part: &impl Fn(Process) -> bool,
        told: &mut Vec<Told>,
    ) -> Option<Result<Agreed, String>> {
        let between = self.between.as_mut()?;
        between.forget(takes_part);
        if !self.missing.is_empty() {
            return None;
        }
        let brought = std::mem::take(&mut between.watched);
        told.extend(
            brought
                .into_iter()
                .map(|(by, question)| back(by, question, Back::Delivered)),
        );
        let between = self.between.as_ref()?;
        let is_cut_off = self.living(takes_part).all(|(member, _)| between.cut.contains(&member));
        let mut result = between.result.clone();
        if let (true, None, Some(share)) = (between.decides, &result, &between.share) {
            result = Some(self.decided(takes_part, share));
        }
        if is_cut_off {
            return result.or_else(|| Some(Ok(self.combined(takes_part, None))));
        }
        let says = match (&result, between.decides) {
            (Some(result), _) => Says::Result(result.clone()),
            (None, true) => Says::Waiting,
            (None, false) => Says::Share(self.share(takes_part)?),
        };
        self.between.as_mut()?.result = result;
        self.post(which, says, told)
    }

    /// Gives a letter to whoever can carry it, if none is on its way.
    fn post(&mut self, which: Which, says: Says, told: &mut Vec<Told>) -> Option<Result<Agreed, String>> {
        let between = self.between.as_mut()?;
        if between.out.is_some() {
            return None;
        }
        let mut able = between.ready.iter().filter(|(by, _)| !between.cut.contains(by));
        let (&by, &question) = able.next()?;
        let is_result = matches!(says, Says::Result(_));
        let letter = Letter {
            which,
            what: self.what,
            worlds: self.worlds.clone(),
            members: self.ranges.clone(),
            says,
        };
        if !letter.fits() {
            return Some(Err(LONG.to_owned()));
        }
        let to = between.others.clone();
        between.ready.remove(&by);
        between.out = Some((by, is_result));
        told.push((by, question, Ok(Said::Errand(Box::new(Errand { letter, to })))));
        None
    }

    /// What own members have said.
    fn share(&self, takes_part: &impl Fn(Process) -> bool) -> Option<Share> {
        let own = || {
            (0..)
                .zip(self.members.iter())
                .filter_map(|(place, member)| Some((place, (*member)?)))
        };
        let lives = |member: &Process| self.wishes.contains_key(member) && takes_part(*member);
        let (first, wish) = self.first(takes_part)?;
        let mut known = wish.known.clone();
        self.living(takes_part)
            .for_each(|(_, wish)| known.retain(|place| wish.known.contains(place)));
        let is_own = |place: u32| self.members.get(place as usize).is_some_and(Option::is_some);
        let owns: BTreeSet<[u8; 16]> = self
            .firsts()
            .filter(|(place, _)| is_own(*place))
            .map(|(_, name)| name)
            .collect();
        Some(Share {
            flag: self.wishes.values().fold(u32::MAX, |all, wish| all & wish.flag),
            contexts: wish.contexts,
            first,
            owns: owns.into_iter().collect(),
            lost: pieces(own().filter(|(_, member)| !lives(member)).map(|(place, _)| place)),
            known: pieces(known),
        })
    }

    /// The first place of each range of members, with the name of their world.
    fn firsts(&self) -> impl Iterator<Item = (u32, [u8; 16])> + '_ {
        let mut end = 0;
        self.ranges.iter().filter_map(move |range| {
            let first = end;
            end += range.count;
            Some((first, *self.worlds.get(usize::from(range.world))?))
        })
    }

    /// What all are told, of both launchers.
    fn decided(&self, takes_part: &impl Fn(Process) -> bool, share: &Share) -> Result<Agreed, String> {
        let is_theirs = |place: u32| self.members.get(place as usize).is_some_and(Option::is_none);
        let lost: BTreeSet<u32> = places(&share.lost).collect();
        if !is_theirs(share.first) || lost.contains(&share.first) || !lost.iter().all(|&place| is_theirs(place)) {
            return Err(OTHERS.to_owned());
        }
        if !self
            .firsts()
            .all(|(place, name)| !is_theirs(place) || share.owns.contains(&name))
        {
            return Err(THREE.to_owned());
        }
        Ok(self.combined(takes_part, Some(share)))
    }

    /// A member has brought a letter. The result, if it says one.
    fn read(
        &mut self,
        by: Process,
        question: u64,
        letter: Letter,
        told: &mut Vec<Told>,
    ) -> Option<Result<Agreed, String>> {
        let same = same_members((&self.worlds, &self.ranges), (&letter.worlds, &letter.members));
        let is_member = self.members.contains(&Some(by));
        let complete = self.missing.is_empty();
        let refused = |why: &str| back(by, question, Back::Refused(why.to_owned()));
        let Some(between) = self.between.as_mut().filter(|_| is_member) else {
            told.push(refused(OTHERS));
            return None;
        };
        match letter.says {
            Says::Waiting if complete => told.push(back(by, question, Back::Delivered)),
            Says::Waiting => between.watched.push((by, question)),
            Says::Share(share) if between.decides => {
                between.held.push((by, question));
                if !same || self.what != letter.what {
                    // The other one is told so, too.
                    let why = if same { DIFFERENT } else { OTHERS };
                    between.result.get_or_insert_with(|| Err(why.to_owned()));
                }
                between.share.get_or_insert(share);
            }
            Says::Result(result) if !between.decides && complete && same => {
                between.held.push((by, question));
                return Some(result);
            }
            // Neither of two would decide.
            Says::Share(_) => told.push(refused(THREE)),
            Says::Result(_) => told.push(refused(OTHERS)),
        }
        None
    }
}

impl Agreements {
    /// A process can carry letters about an agreement; who is told what.
    pub(in super::super) fn carry(
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
    pub(in super::super) fn bring(
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

    pub(super) fn is_ready(
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
        let out = between.out.filter(|(carrier, _)| *carrier == by);
        if let Some((_, is_result)) = out {
            between.out = None;
            let result = match was {
                Some(Back::Delivered) if is_result => between.result.clone(),
                Some(Back::Refused(why)) => Some(between.result.clone().unwrap_or(Err(why))),
                Some(Back::Nobody) => {
                    between.cut.insert(by);
                    None
                }
                Some(Back::Delivered) | None => None,
            };
            if let Some(result) = result {
                told.extend(self.end(which, result, takes_part));
                return told;
            }
        }
        told.extend(self.settle(which, takes_part));
        told
    }

    pub(super) fn deliver(
        &mut self,
        by: Process,
        question: u64,
        letter: Letter,
        takes_part: &impl Fn(Process) -> bool,
    ) -> Vec<Told> {
        let which = letter.which;
        let Some(open) = self.open.get_mut(&which) else {
            let is_over = self.posted.knows_as_over(which);
            return match letter.says {
                // Whoever wrote it had this one's share: the agreement is over here.
                Says::Result(_) => vec![back(by, question, Back::Delivered)],
                Says::Waiting if is_over => vec![back(by, question, Back::Delivered)],
                // It would have the result if it could have been reached.
                Says::Share(_) if is_over => vec![back(by, question, Back::Refused(WITHOUT.to_owned()))],
                _ => self.posted.keep((by, question, letter)),
            };
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
