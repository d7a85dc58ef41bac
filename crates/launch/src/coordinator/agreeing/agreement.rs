// SPDX-License-Identifier: Apache-2.0
//! One agreement: who has asked, and what all that live are told.

use super::between::Between;
use super::naming::{Member, Named, Process, Written};
use isthmus_wire::agreeing::{Agree, Agreed, Members, What, pieces};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const DIFFERENT: &str = "members of this communicator call different functions: one agrees (MPIX_Comm_agree), another one shrinks \
                         (MPIX_Comm_shrink); call the same in the same order at all of them";
pub(super) const OTHERS: &str = "members of an agreement name different processes; please report this";

#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) what: What,
    /// As the first one said it, with the process that each place stands for.
    pub(super) worlds: Vec<[u8; 16]>,
    pub(super) ranges: Vec<Members>,
    pub(super) members: Arc<[Member]>,
    /// Who has not asked, and takes part as far as is known.
    pub(super) missing: BTreeSet<Process>,
    pub(super) wishes: BTreeMap<Process, Wish>,
    /// If there are members of another launcher.
    pub(super) between: Option<Between>,
}

/// What a member has said.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) question: u64,
    pub(super) flag: u32,
    pub(super) contexts: [u32; 3],
    pub(super) known: BTreeSet<u32>,
}

impl Agreement {
    /// Its members as the first one has written them.
    pub(super) fn written(&self) -> Written<'_> {
        Written {
            worlds: &self.worlds,
            members: &self.ranges,
        }
    }

    /// Its members, as [`resolve`](super::naming::resolve) gives them.
    pub(super) fn named(&self) -> Named {
        Named {
            members: self.members.clone(),
            spans: self.between.is_some(),
        }
    }

    /// Own members that have asked and live.
    pub(super) fn living<'a>(
        &'a self,
        takes_part: &'a impl Fn(Process) -> bool,
    ) -> impl Iterator<Item = (Process, &'a Wish)> + 'a {
        let all = self.wishes.iter().map(|(&member, wish)| (member, wish));
        all.filter(|(member, _)| takes_part(*member))
    }

    /// What is wrong with what a member asks.
    pub(super) fn objection(&self, by: Process, agree: &Agree) -> Option<&'static str> {
        if self.what != agree.what {
            return Some(DIFFERENT);
        }
        // Each names its own world first, so ranges of several worlds may be written in different ways.
        let same = self.written().is(Written {
            worlds: &agree.worlds,
            members: &agree.members,
        });
        if !same || !self.members.contains(&Some(by)) {
            return Some(OTHERS);
        }
        self.wishes
            .contains_key(&by)
            .then_some("a process asks twice for one agreement; please report this")
    }

    /// What all that live are told. Of other launchers only those have living members that have sent a share.
    pub(super) fn combined(&self, takes_part: &impl Fn(Process) -> bool) -> Agreed {
        let lives = |member: &Process| self.wishes.contains_key(member) && takes_part(*member);
        let abroad = self.between.as_ref().map(Between::shares).unwrap_or_default();
        let is_lost = |place: u32, member: &Member| match member {
            Some(own) => !lives(own),
            None => abroad.is_lost(place),
        };
        let all = (0..).zip(self.members.iter());
        let lost: Vec<u32> = all
            .filter(|(place, member)| is_lost(*place, member))
            .map(|(place, _)| place)
            .collect();
        let is_news =
            |place: &u32| !abroad.know(*place) || self.living(takes_part).any(|(_, wish)| !wish.known.contains(place));
        // Of those too that have failed since.
        let flag = self.wishes.values().fold(u32::MAX, |all, wish| all & wish.flag);
        let own = self.first(takes_part).map(|(place, wish)| (place, wish.contexts));
        let first = own.into_iter().chain(abroad.firsts()).min();
        Agreed {
            flag: flag & abroad.flag(),
            contexts: first.map_or([0; 3], |(_, contexts)| contexts),
            news: lost.iter().any(is_news),
            lost: pieces(lost),
        }
    }

    /// The first own member that lives, with its place.
    pub(super) fn first(&self, takes_part: &impl Fn(Process) -> bool) -> Option<(u32, &Wish)> {
        let mut own = (0..)
            .zip(self.members.iter())
            .filter_map(|(place, member)| Some((place, (*member)?)));
        own.find_map(|(place, member)| Some((place, self.wishes.get(&member).filter(|_| takes_part(member))?)))
    }
}
