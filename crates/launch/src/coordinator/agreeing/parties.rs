// SPDX-License-Identifier: Apache-2.0
//! The other launchers of an agreement, as far as this one knows them.
//!
//! A member names worlds, and not their launchers. So each world of others counts as a party of its own, until a letter
//! says which worlds its launcher has.

use super::naming::{Member, Process};
use isthmus_wire::agreeing::{Members, Places, pieces, places};
use isthmus_wire::letter::Share;
use std::collections::BTreeSet;

/// The name of a world.
pub(super) type Name = [u8; 16];

/// Another launcher.
#[derive(Debug, Default)]
pub(super) struct Party {
    /// Worlds of its members.
    worlds: BTreeSet<Name>,
    /// It has said so itself: there are no more.
    is_whole: bool,
    /// Own members that reach nobody of it.
    pub(super) cut: BTreeSet<Process>,
    /// No own member reaches anybody of it.
    pub(super) is_gone: bool,
    /// Who carries a letter to it; whether that is the result.
    pub(super) out: Vec<(Process, bool)>,
    pub(super) share: Option<Share>,
    /// It knows the result.
    pub(super) is_told: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Parties {
    pub(super) all: Vec<Party>,
    /// Names of worlds, and that of each place.
    names: Vec<Name>,
    at: Box<[u16]>,
    /// The smallest name of an own world.
    own: Option<Name>,
}

impl Parties {
    pub(super) fn new(names: &[Name], ranges: &[Members], members: &[Member]) -> Self {
        let at: Vec<u16> = ranges
            .iter()
            .flat_map(|range| (0..range.count).map(|_| range.world))
            .collect();
        let of = |is_own: bool| {
            let some = at.iter().zip(members).filter(|(_, member)| member.is_some() == is_own);
            let worlds: BTreeSet<u16> = some.map(|(&world, _)| world).collect();
            let known = worlds.into_iter().filter_map(|world| names.get(usize::from(world)));
            known.copied().collect::<BTreeSet<Name>>()
        };
        let party = |name| Party {
            worlds: BTreeSet::from([name]),
            ..Party::default()
        };
        Self {
            all: of(false).into_iter().map(party).collect(),
            own: of(true).first().copied(),
            names: names.to_vec(),
            at: at.into(),
        }
    }

    fn world_of(&self, place: u32) -> Option<&Name> {
        self.names.get(usize::from(*self.at.get(place as usize)?))
    }

    fn is_of(&self, party: &Party, place: u32) -> bool {
        self.world_of(place).is_some_and(|name| party.worlds.contains(name))
    }

    /// Who decides: the launcher with the smallest name of a world among those that are left; `None`: this one.
    pub(super) fn decider(&self) -> Option<usize> {
        let left = self.all.iter().enumerate().filter(|(_, party)| !party.is_gone);
        let (first, number) = left
            .filter_map(|(number, party)| Some((party.worlds.first()?, number)))
            .min()?;
        self.own.as_ref().is_none_or(|own| first < own).then_some(number)
    }

    /// Which one has written a letter; `None`: what it says of itself cannot be. From now on these worlds are one.
    pub(super) fn writer(&mut self, owns: &[Name]) -> Option<usize> {
        let owns: BTreeSet<Name> = owns.iter().copied().collect();
        let is_concerned = |party: &Party| !party.worlds.is_disjoint(&owns);
        let known: BTreeSet<Name> = self.all.iter().flat_map(|party| party.worlds.iter().copied()).collect();
        let contradicts = |party: &Party| is_concerned(party) && party.is_whole && party.worlds != owns;
        if owns.is_empty() || !owns.is_subset(&known) || self.all.iter().any(contradicts) {
            return None;
        }
        let first = self.all.iter().position(is_concerned)?;
        let mut at = first + 1;
        while at < self.all.len() {
            match is_concerned(&self.all[at]) {
                true => {
                    let other = self.all.remove(at);
                    self.all[first].join(other);
                }
                false => at += 1,
            }
        }
        let party = &mut self.all[first];
        (party.worlds, party.is_whole) = (owns, true);
        Some(first)
    }

    /// Places of its members.
    pub(super) fn places(&self, party: usize) -> Vec<Places> {
        let party = &self.all[party];
        pieces((0..self.at.len() as u32).filter(|place| self.is_of(party, *place)))
    }

    /// Whether what a party has said of its members can be.
    pub(super) fn can_be(&self, party: &Party) -> bool {
        let Some(share) = &party.share else { return true };
        let lost: BTreeSet<u32> = places(&share.lost).collect();
        let all_are = lost.iter().all(|place| self.is_of(party, *place));
        all_are && self.is_of(party, share.first) && !lost.contains(&share.first)
    }

    /// Who has taken a letter away and is back: where it was, and whether it had the result.
    pub(super) fn returned(&mut self, by: Process) -> Option<(usize, bool)> {
        self.all.iter_mut().enumerate().find_map(|(number, party)| {
            let at = party.out.iter().position(|(carrier, _)| *carrier == by)?;
            Some((number, party.out.remove(at).1))
        })
    }

    /// What they have said.
    pub(super) fn shares(&self) -> Shares<'_> {
        let said = |share| Said {
            share,
            lost: places(&share.lost).collect(),
            known: places(&share.known).collect(),
        };
        let of_world = |name: &Name| {
            let party = self.all.iter().find(|party| party.worlds.contains(name))?;
            party.share.as_ref().map(said)
        };
        Shares {
            at: &self.at,
            of_world: self.names.iter().map(of_world).collect(),
        }
    }
}

impl Party {
    /// Both are one.
    fn join(&mut self, other: Self) {
        self.worlds.extend(other.worlds);
        self.cut.retain(|by| other.cut.contains(by));
        self.is_gone &= other.is_gone;
        self.out.extend(other.out);
        self.share = self.share.take().or(other.share);
        self.is_told |= other.is_told;
    }
}

/// What other launchers have said of their members.
#[derive(Default)]
pub(super) struct Shares<'a> {
    at: &'a [u16],
    /// By the number of a world.
    of_world: Vec<Option<Said<'a>>>,
}

struct Said<'a> {
    share: &'a Share,
    lost: BTreeSet<u32>,
    known: BTreeSet<u32>,
}

impl Shares<'_> {
    fn all(&self) -> impl Iterator<Item = &Said<'_>> {
        self.of_world.iter().flatten()
    }

    /// A member that is not this launcher's.
    pub(super) fn is_lost(&self, place: u32) -> bool {
        let world = self.at.get(place as usize);
        let said = world.and_then(|world| self.of_world.get(usize::from(*world))?.as_ref());
        said.is_none_or(|said| said.lost.contains(&place))
    }

    /// Whether their living members have acknowledged its loss.
    pub(super) fn know(&self, place: u32) -> bool {
        self.all().all(|said| said.known.contains(&place))
    }

    pub(super) fn flag(&self) -> u32 {
        self.all().fold(u32::MAX, |all, said| all & said.share.flag)
    }

    /// The first member of each that lives, and its contexts.
    pub(super) fn firsts(&self) -> impl Iterator<Item = (u32, [u32; 3])> + '_ {
        self.all().map(|said| (said.share.first, said.share.contexts))
    }
}
