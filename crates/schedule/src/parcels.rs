// SPDX-License-Identifier: Apache-2.0
//! What leaders send each other when everybody has something else for everybody: one parcel from each to each, straight
//! or on its quickest way. On the way through others, parcels of one leader travel in one message.

use crate::routes::{Routes, Stand, Ways};
use crate::script::{Kind, Piece, Script};
use crate::step::{Action, After, Buffer, Slice, StepId};
use crate::tree::Council;
use std::ops::Range;

/// Parcels among the leaders of the outermost tier, as one of them sees them.
pub(crate) struct Parcels<'a> {
    pub(crate) council: &'a Council,
    /// The ways, if parcels do not go straight.
    pub(crate) routes: Option<&'a Routes>,
    /// Where each parcel travels alone: its quickest way, if it does not go straight, and the most units of a parcel.
    /// Those that are handed on are sent even if they are empty: who hands them on does not know their lengths.
    pub(crate) ways: Option<(&'a Ways, u64)>,
    /// Units from one leader to another, where this one sends, receives or hands them on. 0 from a leader to itself.
    pub(crate) length: &'a dyn Fn(u32, u32) -> u64,
    /// The own parcels, in order of receiver.
    pub(crate) out: Buffer,
    /// Those of others, in order of sender.
    pub(crate) coming: Buffer,
}

impl Parcels<'_> {
    /// Exchanges them. `pack` puts the parcel for a leader into `out` and gives the steps after which it is there.
    /// Gives the step after which all have come.
    pub(crate) fn exchange(&self, script: &mut Script, mut pack: impl FnMut(&mut Script, u32) -> After) -> After {
        let come = match self.routes {
            Some(routes) => self.on_ways(routes, script, &mut pack),
            None => self.straight(script, &mut pack),
        };
        script.join(come)
    }

    /// Where the parcels for consecutive leaders stand in `out`.
    fn given(&self, to: Range<u32>) -> Slice {
        let (me, units) = (self.council.index, |i| (self.length)(self.council.index, i));
        debug_assert!(units(me) == 0);
        Slice {
            buffer: self.out,
            offset: (0..to.start).map(units).sum(),
            length: to.map(units).sum(),
        }
    }

    /// Where the parcel for a leader stands in `out`.
    pub(crate) fn to(&self, to: u32) -> Slice {
        self.given(to..to + 1)
    }

    /// Where the parcel of a leader stands in `coming`.
    pub(crate) fn from(&self, from: u32) -> Slice {
        let units = |i| (self.length)(i, self.council.index);
        Slice {
            buffer: self.coming,
            offset: (0..from).map(units).sum(),
            length: units(from),
        }
    }

    /// Packs first: what is handed on for each other between leaders must be near each other in their plans, or each
    /// waits outside the windows of the others.
    fn straight(&self, script: &mut Script, pack: &mut dyn FnMut(&mut Script, u32) -> After) -> After {
        let mut packed: Vec<After> = vec![After::NONE; self.council.size as usize];
        if let Some((ways, most)) = self.ways {
            for (to, _) in self.council.pairs() {
                packed[to as usize] = pack(script, to);
            }
            self.hand_on(ways, script, most);
        }
        let mut come = After::NONE;
        for (to, from) in self.council.pairs() {
            if self.ways.is_none() {
                packed[to as usize] = pack(script, to);
            }
            let packed = std::mem::take(&mut packed[to as usize]);
            let (me, given, got) = (self.council.index, self.to(to), self.from(from));
            let first = self.ways.map_or(to, |(ways, _)| ways.next(me, me, to));
            if given.length > 0 || first != to {
                let (data, slot) = (given.or_nothing(), self.slot_between(me, to));
                let to = self.council.rank(first);
                script.push(Action::Send { to, data, slot }, packed);
            }
            let last = self.ways.map_or(from, |(ways, _)| ways.before(from, me));
            if got.length > 0 || last != from {
                let (data, slot) = (got.or_nothing(), self.slot_between(from, me));
                let from = self.council.rank(last);
                come.add(script.push(Action::Receive { from, data, slot }, After::NONE));
            }
        }
        come
    }

    /// Hands on the parcels of others whose ways lead through this leader, of at most so many units each.
    fn hand_on(&self, ways: &Ways, script: &mut Script, most: u64) {
        let (council, me, k) = (self.council, self.council.index, self.council.size);
        for from in (0..k).filter(|&from| from != me) {
            let behind = |&to: &u32| to != me && to != from && ways.passes(from, me, to);
            for to in (0..k).filter(behind) {
                let action = Action::Forward {
                    from: council.rank(ways.before(from, me)),
                    to: council.rank(ways.next(from, me, to)),
                    most,
                    slot: self.slot_between(from, to),
                };
                script.push(action, After::NONE);
            }
        }
    }

    /// The own parcels first: with few members all steps fit into an executor's window.
    fn on_ways(&self, routes: &Routes, script: &mut Script, pack: &mut dyn FnMut(&mut Script, u32) -> After) -> After {
        let (me, k) = (self.council.index, self.council.size);
        let mut packed = vec![After::NONE; k as usize];
        for to in (0..k).filter(|&to| to != me) {
            packed[to as usize] = pack(script, to);
        }
        for part in routes.stand(me, me).parts {
            let steps = part.members.clone().flat_map(|i| packed[i as usize].iter().copied());
            let after = script.join(steps.collect());
            self.send(script, me, part.first, self.given(part.members), after);
        }
        let mut come = After::NONE;
        for from in (1..k).map(|d| (me + k - d) % k) {
            come.extend(self.pass_on(script, from, &routes.stand(from, me)));
        }
        come
    }

    /// Receives what comes from a leader, and sends on what is for others. Gives the step after which the own parcel is
    /// in its place.
    fn pass_on(&self, script: &mut Script, from: u32, stand: &Stand) -> Option<StepId> {
        let (me, parent) = (self.council.index, stand.parent.unwrap_or(from));
        let units = |members: Range<u32>| members.map(|to| (self.length)(from, to)).sum::<u64>();
        let start = stand.members.start;
        let length = units(stand.members.clone());
        if stand.parts.is_empty() || length == 0 {
            return self.receive(script, from, parent, self.from(from));
        }
        let buffer = script.memory(length);
        let at = |members: Range<u32>| Slice {
            buffer,
            offset: units(start..members.start),
            length: units(members),
        };
        let come = After::from_iter(self.receive(script, from, parent, at(stand.members.clone())));
        for part in &stand.parts {
            self.send(script, from, part.first, at(part.members.clone()), come.clone());
        }
        let (from, to) = (at(me..me + 1), self.from(from));
        (to.length > 0).then(|| script.push(Action::Copy { from, to }, come))
    }

    /// Sends what comes from leader `item` to another one, unless that is nothing.
    fn send(&self, script: &mut Script, item: u32, to: u32, data: Slice, after: After) {
        let (to, slot) = (self.council.rank(to), self.slot(item));
        if data.length > 0 {
            script.push(Action::Send { to, data, slot }, after);
        }
    }

    fn receive(&self, script: &mut Script, item: u32, from: u32, data: Slice) -> Option<StepId> {
        let (from, slot) = (self.council.rank(from), self.slot(item));
        (data.length > 0).then(|| script.push(Action::Receive { from, data, slot }, After::NONE))
    }

    /// Slot of a parcel that travels alone.
    fn slot_between(&self, from: u32, to: u32) -> u16 {
        let (from, to, all) = (u64::from(from), u64::from(to), u64::from(self.council.size));
        Piece::numbered(from).item(to, all).slot(Kind::Exchange)
    }

    fn slot(&self, item: u32) -> u16 {
        let (item, all) = (u64::from(item), u64::from(self.council.size));
        Piece::whole(0).item(item, all).slot(Kind::Exchange)
    }
}
