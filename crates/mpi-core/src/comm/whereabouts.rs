// SPDX-License-Identifier: Apache-2.0
//! Where processes are, for rooms that build on communicators: those of a world, or all who have met.

use std::sync::{Arc, Weak};

use isthmus_abi::constants as abi;
use isthmus_engine::{Channel, Members, Peer, Special};
use isthmus_wire::place::{Place, PlaceTable};

use super::{Blueprint, Comm};
use crate::context::{self, Contexts};
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::meeting::Meeting;
use crate::world::World;

/// Processes that number each other in one way: those of a world, or all who have met. Members of a communicator are
/// among them.
#[derive(Clone)]
pub struct Whereabouts<'w> {
    world: &'w World,
    meeting: Option<Arc<Meeting>>,
}

/// The same for who does not keep the connections of those who have met.
#[derive(Clone, Debug, Default)]
pub struct Remembered(Option<Weak<Meeting>>);

impl Remembered {
    /// `None`: they have parted.
    pub fn whereabouts<'w>(&self, world: &'w World) -> Option<Whereabouts<'w>> {
        let meeting = match &self.0 {
            Some(meeting) => Some(meeting.upgrade().filter(|it| !it.bonds.is_empty())?),
            None => None,
        };
        Some(Whereabouts { world, meeting })
    }

    /// Whether these are those who have met.
    pub fn is_of(&self, all: &Whereabouts<'_>) -> bool {
        match (&self.0, &all.meeting) {
            (Some(known), Some(meeting)) => std::ptr::eq(known.as_ptr(), Arc::as_ptr(meeting)),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether they are of several jobs.
    pub fn is_abroad(&self) -> bool {
        self.0.is_some()
    }
}

impl<'w> Whereabouts<'w> {
    /// Of the processes of a world.
    pub fn in_world(world: &'w World) -> Self {
        Self { world, meeting: None }
    }

    /// Of the members of a communicator and all others who have met where it comes from.
    pub fn of(world: &'w World, comm: &Comm) -> Self {
        Self {
            world,
            meeting: comm.joined.clone(),
        }
    }

    /// Of the members of a group: its world, or where all of them have met.
    pub(crate) fn of_group(world: &'w World, group: &Group) -> Result<Self> {
        let is_ours = group.members().iter().all(|&peer| world.rank_of(peer).is_some());
        if is_ours {
            return Ok(Self::in_world(world));
        }
        match world.abroad().meetings.of_all(group) {
            Some(meeting) => Ok(Self {
                world,
                meeting: Some(meeting),
            }),
            None => fail!(
                abi::MPI_ERR_GROUP,
                "the group of {} processes has members of several jobs that do not have one communicator (MPI_Comm_connect, \
                 MPI_Comm_spawn), or have disconnected it",
                group.size()
            ),
        }
    }

    /// By the number that [`Whereabouts::number`] has given.
    pub fn numbered(world: &'w World, number: u32) -> Option<Self> {
        if number == 0 {
            return Some(Self::in_world(world));
        }
        let all = world.abroad().meetings.all();
        let meeting = all.iter().find(|meeting| meeting.contexts().block() == number)?;
        Some(Self {
            world,
            meeting: Some(meeting.clone()),
        })
    }

    /// A number that is equal at all of them; 0: they are a world.
    pub fn number(&self) -> u32 {
        self.meeting.as_ref().map_or(0, |meeting| meeting.contexts().block())
    }

    /// For later.
    pub fn remembered(&self) -> Remembered {
        Remembered(self.meeting.as_ref().map(Arc::downgrade))
    }

    /// Whether they have met: they may be of several jobs.
    pub fn have_met(&self) -> bool {
        self.meeting.is_some()
    }

    /// The world of this process.
    pub fn world(&self) -> &'w World {
        self.world
    }

    /// Where all of them are.
    pub fn table(&self) -> &PlaceTable {
        match &self.meeting {
            Some(meeting) => meeting.table(),
            None => self.world.places(),
        }
    }

    /// How many they are.
    pub fn count(&self) -> u32 {
        self.table().places.len() as u32
    }

    /// The rank of a process among them, equal at all of them; `None`: it is not one of them.
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        match &self.meeting {
            Some(meeting) => meeting.place_of(peer),
            None => self.world.rank_of(peer),
        }
    }

    /// Ranks of the members of a group, in order.
    pub fn ranks_of(&self, group: &Group) -> Vec<u32> {
        group.members().iter().filter_map(|&peer| self.rank_of(peer)).collect()
    }

    /// Whether the process with this rank is still connected with all members of a group, who all find the same.
    pub fn are_connected(&self, group: &Group, rank: u32) -> bool {
        self.meeting.as_ref().is_none_or(|meeting| {
            let mut places = meeting.places_of(group);
            places.push(rank);
            meeting.bonds.hold(&places)
        })
    }

    /// The process with this rank.
    pub fn peer(&self, rank: u32) -> Option<Peer> {
        match &self.meeting {
            Some(meeting) => meeting.group().members().get(rank as usize).copied(),
            None => (rank < self.world.size()).then(|| self.world.peer(rank)),
        }
    }

    /// Where a process is.
    pub fn place(&self, peer: Peer) -> Option<&Place> {
        self.table().places.get(self.rank_of(peer)? as usize)
    }

    /// The name of the world of a process, which no other world has.
    pub fn world_of(&self, peer: Peer) -> Option<[u8; 16]> {
        match &self.meeting {
            Some(meeting) => meeting.name_of(peer).map(|name| name.world),
            None => self.world.rank_of(peer).map(|_| self.world.id()),
        }
    }

    /// The local area of a subjob as its own job calls it. In the table local areas of two jobs that are one have one
    /// name.
    pub fn area(&self, subjob: u32) -> Option<&str> {
        match &self.meeting {
            Some(meeting) => meeting.area(subjob),
            None => self.table().subjobs.get(subjob as usize).map(|subjob| &*subjob.lan),
        }
    }

    /// For messages about files between any of them.
    pub fn files(&self) -> Channel {
        self.channel(context::FILES, context::FILES_OF_ALL)
    }

    /// For messages that construct communicators from groups.
    pub(crate) fn groups(&self) -> Channel {
        self.channel(context::GROUPS, context::GROUPS_OF_ALL)
    }

    /// Between any of them. `own`: the context in a world; `of_all`: that of those who have met, in their block.
    fn channel(&self, own: u32, of_all: u32) -> Channel {
        let (context, rank, members) = match &self.meeting {
            Some(meeting) => {
                let members = Members::of(meeting.group().members());
                (meeting.contexts().block() + of_all, meeting.me(), members)
            }
            None => {
                let (first, count) = (self.world.peer(0), self.world.size());
                (own, self.world.rank(), Members::Range { first, count })
            }
        };
        Channel {
            context: self.world.context(context),
            rank,
            members,
            slab: None,
            node: None,
            special: Special::none(),
            notes: None,
        }
    }

    /// A communicator of these processes, who are among them; `None`: this one is not in the group.
    pub(crate) fn blueprint(&self, group: Group) -> Option<Blueprint> {
        let blueprint = Blueprint::new(self.world, group)?;
        Some(match &self.meeting {
            Some(meeting) => blueprint.of_meeting(meeting.clone()),
            None => blueprint,
        })
    }

    /// Whether one of them may name this context for a guest: it is one of its own. Nobody gets messages of a
    /// communicator that another process has made.
    pub fn may_name(&self, rank: u32, context: u32) -> bool {
        self.contexts().owner(context, self.count()) == Some(rank)
    }

    /// From which this process takes those of communicators of theirs.
    pub(crate) fn contexts(&self) -> &Arc<Contexts> {
        match &self.meeting {
            Some(meeting) => meeting.contexts(),
            None => self.world.contexts(),
        }
    }

    /// A communicator of this process alone, of which others can be guests.
    pub fn alone(&self) -> Result<Arc<Comm>> {
        let me = self.world.me();
        let Some(blueprint) = self.blueprint(Group::new(vec![me])) else {
            fail!(abi::MPI_ERR_INTERN, "this process is not in a group of itself");
        };
        let blueprint = Blueprint {
            hidden: true,
            ..blueprint
        };
        Ok(blueprint.build(context::granted(self.contexts().take(false))?))
    }

    /// A communicator of others for which this process is a guest. `context`: the number of theirs.
    pub fn of_guest(&self, hosts: &[Peer], context: u32) -> Arc<Comm> {
        let all = [hosts, &[self.world.me()]].concat();
        let context = context::with_guest(self.world.context(context));
        let mut comm = Comm::new(Group::new(all), hosts.len() as u32, context, "");
        comm.joined.clone_from(&self.meeting);
        Arc::new(comm)
    }
}
