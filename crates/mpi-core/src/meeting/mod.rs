// SPDX-License-Identifier: Apache-2.0
//! Meetings: what the processes of two groups have together from then on. How they come about: [`crate::joining`].

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use isthmus_datatype::Representation;
use isthmus_engine::{Job, Peer};
use isthmus_topology::Topology;
use isthmus_wire::joining::{MAX_MEETINGS, Name};
use isthmus_wire::place::PlaceTable;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::blocks::{Block, Blocks};
use crate::context::Contexts;
use crate::group::Group;

pub(crate) mod bonds;
pub(crate) mod joint;
pub(crate) mod reach;

use bonds::Bonds;
use joint::Joint;
use reach::{Held, Reacher, Started, Ways};

/// What a process knows of others beside its world.
#[derive(Default)]
pub(crate) struct Abroad {
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) meetings: Meetings,
    pub(crate) deaths: Deaths,
    pub(crate) reacher: OnceLock<Box<dyn Reacher>>,
}

/// Those members of a meeting that a process did not know before.
pub(crate) struct Introduced {
    /// As processes are numbered here that are known.
    pub(crate) job: Job,
    pub(crate) peers: Vec<Peer>,
}

/// Two groups that have met. Everything that is made of their intercommunicator keeps it.
pub(crate) struct Meeting {
    id: [u8; 16],
    /// Both groups, in one order at all members.
    group: Group,
    names: Vec<Name>,
    /// Own place in the group.
    me: u32,
    contexts: Arc<Contexts>,
    topology: Topology,
    table: Arc<PlaceTable>,
    /// By number of a subjob of the table: how its own job calls its local area.
    areas: Vec<String>,
    places: FxHashMap<Peer, u32>,
    /// By place, how members represent data; empty if all do as this process.
    representations: Vec<Representation>,
    introduced: Introduced,
    /// Its transports, until they leave.
    ways: Mutex<Ways>,
    /// What its transports need.
    _held: Vec<Held>,
    /// People see it as long as this lives.
    pub(crate) shown: OnceLock<Held>,
    /// Who is connected by it.
    pub(crate) bonds: Arc<Bonds>,
    /// Those by whose transports members are reached that were known before.
    through: Vec<Arc<Self>>,
    _block: Block,
}

impl Meeting {
    pub(crate) fn new(
        id: [u8; 16],
        joint: &Joint,
        block: Block,
        peers: Vec<Peer>,
        introduced: Introduced,
        started: Started,
        through: Vec<Arc<Self>>,
    ) -> Self {
        let size = peers.len() as u32;
        Self {
            id,
            contexts: Arc::new(Contexts::shared(block.first(), joint.me, size)),
            places: (0..).zip(&peers).map(|(at, &peer)| (peer, at)).collect(),
            group: Group::new(peers),
            names: joint.members.iter().map(|member| member.name).collect(),
            me: joint.me,
            topology: joint.topology.clone(),
            table: joint.table.clone(),
            areas: joint.areas(),
            representations: joint.representations.clone(),
            introduced,
            ways: Mutex::new(started.ways),
            _held: started.held,
            shown: OnceLock::new(),
            bonds: Arc::default(),
            through,
            _block: block,
        }
    }

    /// All members of both groups.
    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// Own place among them.
    pub(crate) fn me(&self) -> u32 {
        self.me
    }

    /// Whom this process has got to know by it.
    pub(crate) fn introduced(&self) -> &Introduced {
        &self.introduced
    }

    /// Its transports, which leave.
    pub(crate) fn take_ways(&self) -> Ways {
        std::mem::take(&mut self.ways.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Numbers for communicators of members.
    pub(crate) fn contexts(&self) -> &Arc<Contexts> {
        &self.contexts
    }

    /// Distances between the members, by place.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Where the members are, by place.
    pub(crate) fn table(&self) -> &PlaceTable {
        &self.table
    }

    /// The local area of a subjob as its own job calls it.
    pub(crate) fn area(&self, subjob: u32) -> Option<&str> {
        self.areas.get(subjob as usize).map(String::as_str)
    }

    /// The name that no other meeting has.
    pub(crate) fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Whether members are reached by connections of that one.
    pub(crate) fn goes_through(&self, other: &Arc<Self>) -> bool {
        self.through.iter().any(|through| Arc::ptr_eq(through, other))
    }

    /// The name of a member for processes of other jobs.
    pub(crate) fn name_of(&self, peer: Peer) -> Option<Name> {
        self.names.get(self.place_of(peer)? as usize).copied()
    }

    /// Whether all members of other worlds than the own one are among the gone.
    pub(crate) fn has_no_others(&self, own: [u8; 16], gone: &FxHashSet<Peer>) -> bool {
        let mut all = self.names.iter().zip(self.group.members().iter());
        all.all(|(name, peer)| name.world == own || gone.contains(peer))
    }

    /// Whether processes, who are all members, represent data differently.
    pub(crate) fn differ(&self, group: &Group) -> bool {
        let all = self.places_of(group);
        let mut all = all.iter().map(|&place| self.representations.get(place as usize));
        let first = all.next();
        all.any(|other| Some(other) != first)
    }

    /// The place of a member.
    pub(crate) fn place_of(&self, peer: Peer) -> Option<u32> {
        self.places.get(&peer).copied()
    }

    /// Places of processes, who are all members, in order.
    pub(crate) fn places_of(&self, group: &Group) -> Vec<u32> {
        group.members().iter().filter_map(|&peer| self.place_of(peer)).collect()
    }
}

/// Most worlds of whose losses a process knows.
const WORLDS: usize = 256;

/// Other worlds that have lost processes, the latest ones: who waits for one that it has not met yet has to know.
#[derive(Default)]
pub(crate) struct Deaths(Mutex<Vec<([u8; 16], String)>>);

impl Deaths {
    /// The first loss of a world counts.
    pub(crate) fn note(&self, world: [u8; 16], reason: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().any(|(known, _)| *known == world) {
            return;
        }
        if all.len() == WORLDS {
            all.remove(0);
        }
        all.push((world, reason.to_owned()));
    }

    /// Why somebody of this world is gone, if somebody is.
    pub(crate) fn of(&self, world: [u8; 16]) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|(known, _)| *known == world);
        found.map(|(_, reason)| reason.clone())
    }
}

/// All meetings of a process that it has not left.
#[derive(Default)]
pub(crate) struct Meetings(Mutex<Vec<Arc<Meeting>>>);

/// Who of a meeting is known already.
pub(crate) struct Acquainted {
    /// By place; `None`: nobody here knows it.
    pub(crate) peers: Vec<Option<Peer>>,
    /// From which meetings.
    pub(crate) through: Vec<Arc<Meeting>>,
}

impl Meetings {
    pub(crate) fn all(&self) -> MutexGuard<'_, Vec<Arc<Meeting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of another world, by their ranks there, who are known.
    pub(crate) fn of_world(&self, world: [u8; 16], ranks: &Range<u32>) -> Vec<Peer> {
        let all = self.all().clone();
        let met = all
            .iter()
            .flat_map(|meeting| meeting.names.iter().zip(meeting.group.members().iter()));
        let wanted = met.filter(|(name, _)| name.world == world && ranks.contains(&name.rank));
        wanted.map(|(_, &peer)| peer).collect()
    }

    /// The name of a member of one.
    pub(crate) fn name_of(&self, peer: Peer) -> Option<Name> {
        self.all().iter().find_map(|meeting| meeting.name_of(peer))
    }

    /// A member with this rank in a world of which this is so.
    pub(crate) fn named(&self, rank: u32, is_it: impl Fn(&[u8; 16]) -> bool) -> Option<Peer> {
        let all = self.all();
        let mut members = all
            .iter()
            .flat_map(|meeting| meeting.names.iter().zip(meeting.group.members().iter()));
        let found = members.find(|(name, _)| name.rank == rank && is_it(&name.world));
        found.map(|(_, &peer)| peer)
    }

    /// The one by which all members of a group are connected; all of them find the same.
    pub(crate) fn of_all(&self, group: &Group) -> Option<Arc<Meeting>> {
        let is_there = |meeting: &&Arc<Meeting>| {
            let places = meeting.places_of(group);
            places.len() == group.size() && meeting.bonds.hold(&places)
        };
        let all = self.all();
        all.iter().filter(is_there).min_by_key(|meeting| meeting.id).cloned()
    }

    pub(crate) fn add(&self, meeting: Meeting) -> Arc<Meeting> {
        let meeting = Arc::new(meeting);
        self.all().push(meeting.clone());
        meeting
    }
}

/// Who of these is known: of the own world, or met in a meeting that both sides have told of. `told`: those of this
/// process. `own`: name and size of the own world.
pub(crate) fn known(told: &[Arc<Meeting>], own: [u8; 16], size: u32, joint: &Joint) -> Acquainted {
    let told = told.get(..MAX_MEETINGS).unwrap_or(told);
    let mut through: Vec<Arc<Meeting>> = Vec::new();
    let mut met: FxHashMap<Name, Vec<(&Arc<Meeting>, Peer)>> = FxHashMap::default();
    for meeting in told {
        for (&name, &peer) in meeting.names.iter().zip(meeting.group.members().iter()) {
            met.entry(name).or_default().push((meeting, peer));
        }
    }
    let peers = joint.members.iter().map(|member| {
        if member.name.world == own {
            return (member.name.rank < size).then(|| Peer::new(member.name.rank));
        }
        let both = met.get(&member.name)?.iter();
        let both = both.filter(|(meeting, _)| member.meetings.contains(&meeting.id));
        // They may have met several times at once, and neither knows in which order the other one has them.
        let &(meeting, peer) = both.min_by_key(|(meeting, _)| meeting.id)?;
        if !through.iter().any(|known| Arc::ptr_eq(known, meeting)) {
            through.push(meeting.clone());
        }
        Some(peer)
    });
    Acquainted {
        peers: peers.collect(),
        through,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_worlds_that_have_lost_somebody_are_known() {
        let deaths = Deaths::default();
        let world = |n: usize| std::array::from_fn(|at| (n >> (8 * (at % 2))) as u8);
        for n in 0..WORLDS {
            deaths.note(world(n), "first");
            deaths.note(world(n), "second");
        }
        assert_eq!(deaths.of(world(0)).as_deref(), Some("first"));
        deaths.note(world(WORLDS), "one more");
        assert_eq!(deaths.of(world(0)), None, "no more than so many are kept");
        assert_eq!(deaths.of(world(WORLDS)).as_deref(), Some("one more"));
    }
}
