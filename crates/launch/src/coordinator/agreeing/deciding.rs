// SPDX-License-Identifier: Apache-2.0
//! Members of several launchers agree.
//!
//! Each launcher decides who of its own processes is lost, so none could decide alone for all. One of them decides what
//! all are told: the one that has the world with the smallest name. The others send it the share of their own members
//! when all of them that live have asked. The one that decides tells the others the result, and tells its own members
//! when it knows that all others have it. So what a member has been told another launcher knows, whoever fails then.
//!
//! Launchers do not reach each other: members carry their [letters](isthmus_wire::letter). While one waits for another
//! one a member is on its way, which notices when nobody there can be reached any more. If that is so for all own
//! members that live, that launcher is gone: its members count as lost, and cannot be met on this communicator again.
//!
//! If the one that decides is gone, the next one does, in the order of names. Nobody is told two things by that:
//!
//! - It decides when it has heard from all that are left, and whoever knows a result already answers with that.
//! - Whoever has turned to the next one takes no result from the one before any more.
//! - A result that stands is never changed.

use super::agreement::{Agreement, DIFFERENT, OTHERS};
use super::between::{Outcome, back};
use super::naming::{Process, Told, Written};
use super::parties::Name;
use isthmus_wire::agreeing::{Which, pieces};
use isthmus_wire::letter::{Back, Errand, Letter, Says, Share};
use isthmus_wire::question::Said;
use std::collections::BTreeSet;

const LONG: &str =
    "the communicator's processes are in an order that takes more memory to tell another launcher than it accepts";

impl Agreement {
    /// The same as without others, and sends letters; the result, if own members are told one now.
    pub(super) fn settle_between(
        &mut self,
        which: Which,
        takes_part: &impl Fn(Process) -> bool,
        told: &mut Vec<Told>,
    ) -> Option<Outcome> {
        self.between.as_mut()?.forget(takes_part);
        if !self.missing.is_empty() {
            return None;
        }
        self.mourn(takes_part);
        told.extend(self.between.as_mut()?.release());
        let between = self.between.as_ref()?;
        let follows = between.parties.decider().is_some();
        let mut left = between.parties.all.iter().filter(|party| !party.is_gone);
        if between.result.is_none() && !follows && left.all(|party| party.share.is_some()) {
            let result = self.decided(takes_part);
            self.between.as_mut()?.result = Some(result);
        }
        let between = self.between.as_ref()?;
        let mut all = between.parties.all.iter();
        if between.result.is_some() && (follows || all.all(|party| party.is_gone || party.is_told)) {
            return between.result.clone();
        }
        self.post(which, takes_part, told)
    }

    /// Whom no own member reaches is gone.
    fn mourn(&mut self, takes_part: &impl Fn(Process) -> bool) {
        let Some(between) = &self.between else { return };
        let is_cut_off = |cut: &BTreeSet<Process>| self.living(takes_part).all(|(member, _)| cut.contains(&member));
        let parties = between.parties.all.iter().enumerate();
        let gone = parties.filter(|(_, party)| !party.is_gone && is_cut_off(&party.cut));
        let gone: Vec<usize> = gone.map(|(number, _)| number).collect();
        if let Some(between) = &mut self.between {
            gone.into_iter()
                .for_each(|number| between.parties.all[number].is_gone = true);
        }
    }

    /// Gives letters to those who can carry them, one to each launcher at a time.
    fn post(&mut self, which: Which, takes_part: &impl Fn(Process) -> bool, told: &mut Vec<Told>) -> Option<Outcome> {
        let decider = self.between.as_ref()?.parties.decider();
        for number in 0..self.between.as_ref()?.parties.all.len() {
            let between = self.between.as_ref()?;
            let party = &between.parties.all[number];
            if party.is_gone || !party.out.is_empty() {
                continue;
            }
            let mut able = between.ready.iter().filter(|(by, _)| !party.cut.contains(by));
            let Some((&by, &question)) = able.next() else { continue };
            let share = || self.share(takes_part).map(Says::Share);
            let Some(says) = between.word_to(party, decider == Some(number), share) else {
                continue;
            };
            let is_result = matches!(says, Says::Result(_));
            let letter = Letter {
                which,
                what: self.what,
                worlds: self.worlds.clone(),
                members: self.ranges.clone(),
                owns: self.owns(),
                says,
            };
            if !letter.fits() {
                return Some(Err(LONG.to_owned()));
            }
            let to = between.parties.places(number);
            let between = self.between.as_mut()?;
            between.ready.remove(&by);
            between.parties.all[number].out.push((by, is_result));
            told.push((by, question, Ok(Said::Errand(Box::new(Errand { letter, to })))));
        }
        None
    }

    /// Own members with their places.
    fn own(&self) -> impl Iterator<Item = (u32, Process)> + '_ {
        let all = (0..).zip(self.members.iter());
        all.filter_map(|(place, member)| Some((place, (*member)?)))
    }

    /// What own members have said.
    fn share(&self, takes_part: &impl Fn(Process) -> bool) -> Option<Share> {
        let lives = |member: &Process| self.wishes.contains_key(member) && takes_part(*member);
        let (first, wish) = self.first(takes_part)?;
        let mut known = wish.known.clone();
        self.living(takes_part)
            .for_each(|(_, wish)| known.retain(|place| wish.known.contains(place)));
        Some(Share {
            flag: self.wishes.values().fold(u32::MAX, |all, wish| all & wish.flag),
            contexts: wish.contexts,
            first,
            lost: pieces(self.own().filter(|(_, member)| !lives(member)).map(|(place, _)| place)),
            known: pieces(known),
        })
    }

    /// Worlds of this launcher.
    fn owns(&self) -> Vec<Name> {
        let mut end = 0;
        let names = self.ranges.iter().filter_map(|range| {
            let first = end;
            end += range.count;
            let is_own = self.members.get(first as usize).is_some_and(Option::is_some);
            self.worlds.get(usize::from(range.world)).filter(|_| is_own).copied()
        });
        names.collect::<BTreeSet<Name>>().into_iter().collect()
    }

    /// What all are told.
    fn decided(&self, takes_part: &impl Fn(Process) -> bool) -> Outcome {
        let parties = self.between.as_ref().map(|between| &between.parties);
        match parties.is_some_and(|parties| parties.all.iter().all(|party| parties.can_be(party))) {
            true => Ok(self.combined(takes_part)),
            false => Err(OTHERS.to_owned()),
        }
    }

    /// A member has brought a letter. The result, if it says one.
    pub(super) fn read(&mut self, by: Process, question: u64, letter: Letter, told: &mut Vec<Told>) -> Option<Outcome> {
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
        let Some(number) = between.parties.writer(&letter.owns) else {
            told.push(refused(OTHERS));
            return None;
        };
        let decider = between.parties.decider();
        let party = &mut between.parties.all[number];
        match letter.says {
            // Nothing is taken of it any more: it finds that nobody is there.
            _ if party.is_gone => told.push(back(by, question, Back::Nobody)),
            Says::Waiting => between.watched.push((by, question, letter.owns)),
            Says::Share(share) if same && self.what == letter.what => {
                between.held.push((by, question));
                party.share.get_or_insert(share);
            }
            // The other ones are told so, too.
            Says::Share(_) if decider.is_none() => {
                let why = if same { DIFFERENT } else { OTHERS };
                between.held.push((by, question));
                between.result.get_or_insert_with(|| Err(why.to_owned()));
            }
            Says::Result(result) if decider == Some(number) && complete && same => {
                between.held.push((by, question));
                return Some(result);
            }
            Says::Share(_) | Says::Result(_) => told.push(refused(OTHERS)),
        }
        None
    }
}
