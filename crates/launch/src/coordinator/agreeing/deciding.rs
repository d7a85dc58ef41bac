// SPDX-License-Identifier: Apache-2.0
//! Members of two launchers agree.
//!
//! Each launcher decides who of its own processes is lost, so neither could decide alone for both. One of them
//! decides what all are told: the one that has the world with the smallest name. The other one sends it the share of
//! its own members when all of them that live have asked. The one that decides tells the other one the result, and
//! tells its own members when it knows that the other one has it. So what a member has been told the other launcher
//! knows, whoever fails then.
//!
//! Launchers do not reach each other: members carry their [letters](isthmus_wire::letter). While one waits for the
//! other a member is on its way, which notices when nobody of the others can be reached any more. If that is so for all
//! own members that live, the others count as lost; they cannot be met on this communicator again. A result that stands
//! is never changed.

use super::agreement::{Agreement, DIFFERENT, OTHERS};
use super::between::back;
use super::naming::{Process, Told, Written};
use isthmus_wire::agreeing::{Agreed, Which, pieces, places};
use isthmus_wire::letter::{Back, Errand, Letter, Says, Share};
use isthmus_wire::question::Said;
use std::collections::BTreeSet;

const THREE: &str = "the communicator has processes of more than two launchers, and only two can agree with each other; shrink or agree \
                     on a communicator of two jobs";
const LONG: &str =
    "the communicator's processes are in an order that takes more memory to tell another launcher than it accepts";

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
    pub(super) fn read(
        &mut self,
        by: Process,
        question: u64,
        letter: Letter,
        told: &mut Vec<Told>,
    ) -> Option<Result<Agreed, String>> {
        let same = self.written().is(Written {
            worlds: &letter.worlds,
            members: &letter.members,
        });
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
