// SPDX-License-Identifier: Apache-2.0
//! A communicator that is to be made: everything but its contexts, which one process takes for all.

use std::sync::Arc;

use isthmus_engine::{Context, Members, Peer};
use isthmus_topology::LinkEstimates;

use super::hints::Hints;
use super::in_force::InForce;
use super::{Arranged, Comm, Inter, Joint, among, joined};
use crate::attached::Attachment;
use crate::context::{Contexts, Lease, Numbers};
use crate::errhandler::ErrorHandler;
use crate::group::Group;
use crate::info::Info;
use crate::meeting::Meeting;
use crate::topology::Topology;
use crate::world::World;

/// Everything of a new communicator but its contexts.
pub(crate) struct Blueprint {
    /// This process.
    pub(crate) me: Peer,
    pub(crate) group: Group,
    /// Own rank in the group.
    pub(crate) rank: u32,
    /// Remote group of an intercommunicator; true: the local group is the low one.
    pub(crate) remote: Option<(Group, bool)>,
    pub(crate) topology: Option<Topology>,
    pub(crate) handler: Option<ErrorHandler>,
    pub(crate) hints: Info,
    pub(crate) contexts: Arc<Contexts>,
    /// Of the session that it comes from.
    pub(crate) session: Option<Arc<Attachment>>,
    /// The links in force, if they are not those of the world.
    pub(crate) links: Option<Arc<LinkEstimates>>,
    /// These and their network, if it is a duplicate.
    pub(crate) in_force: Option<InForce>,
    /// Whom messages may be sent to, if it is one.
    pub(crate) members: Option<Members>,
    /// All members are known to share memory.
    pub(crate) near: bool,
    /// Where the members have met, if that was not in their world.
    pub(crate) joined: Option<Arc<Meeting>>,
    /// All members of the communicator that is divided, and its context: when one is lost, or it is revoked, some
    /// members of the new one may have given up, and nobody waits for them.
    pub(crate) part_of: Option<(Group, Context)>,
    /// The program never sees it, so it cannot revoke it.
    pub(crate) hidden: bool,
}

impl Blueprint {
    /// A communicator of these processes; `None` if this one is not among them.
    pub(crate) fn new(world: &World, group: Group) -> Option<Self> {
        Some(Self {
            me: world.me(),
            rank: group.rank_of(world.me())?,
            session: group.session().cloned(),
            group,
            remote: None,
            topology: None,
            handler: None,
            hints: Info::default(),
            contexts: world.contexts().clone(),
            links: None,
            in_force: None,
            members: None,
            near: false,
            joined: None,
            part_of: None,
            hidden: false,
        })
    }

    /// As `new`, with what a communicator inherits from the one that it is made of.
    pub(crate) fn from(world: &World, parent: &Comm, group: Group) -> Option<Self> {
        let blueprint = Self::new(world, group)?;
        Some(Self {
            handler: parent.user.error_handler(),
            session: parent.user.session().cloned(),
            links: parent.own_links(),
            contexts: joined::contexts(world, parent).clone(),
            joined: parent.joined.clone(),
            ..blueprint
        })
    }

    /// The same among processes that have met.
    pub(crate) fn of_meeting(self, meeting: Arc<Meeting>) -> Self {
        Self {
            contexts: meeting.contexts().clone(),
            links: Some(Arc::default()),
            joined: Some(meeting),
            ..self
        }
    }

    /// This process.
    pub(crate) fn me(&self) -> Peer {
        self.me
    }

    /// The same of these members.
    pub(crate) fn of(self, group: Group, rank: u32, remote: Option<(Group, bool)>) -> Self {
        Self {
            group,
            rank,
            remote,
            ..self
        }
    }

    /// Numbers for a communicator of this kind.
    pub(crate) fn is_inter(&self) -> bool {
        self.remote.is_some()
    }

    pub(crate) fn build(self, numbers: Numbers) -> Arc<Comm> {
        let [own, joint, local] = numbers;
        let contexts = self.contexts.clone();
        let peers = self.remote.as_ref().map_or(&self.group, |(remote, _)| remote);
        let members = self.members.unwrap_or_else(|| Members::of(peers.members()));
        let mut comm = among(members, self.group.clone(), self.rank, contexts.named(own), "");
        if let Some((remote, low)) = self.remote {
            let inner = |group: Group, number| {
                let rank = group.rank_of(self.me).unwrap_or(0);
                let mut inner = Comm::new(group, rank, contexts.named(number), "");
                inner._lease = Some(Lease::new(number, &self.contexts));
                inner.set_links(self.links.clone());
                inner.joined = self.joined.clone();
                Arc::new(inner)
            };
            let (first, second) = if low {
                (&self.group, &remote)
            } else {
                (&remote, &self.group)
            };
            let (mine, theirs) = (self.group.size() as u32, remote.size() as u32);
            let (my_start, their_start) = if low { (0, mine) } else { (theirs, 0) };
            comm.inter = Some(Box::new(Inter {
                local: inner(self.group.clone(), local),
                joint: Joint {
                    comm: inner(first.union(second), joint),
                    local: my_start..my_start + mine,
                    remote: their_start..their_start + theirs,
                },
                remote,
            }));
        }
        comm.arranged = self.topology.map(|topology| {
            let neighbours = Arc::new(topology.neighbours(self.rank));
            Box::new(Arranged { topology, neighbours })
        });
        match self.in_force {
            Some(same) => comm.in_force = same,
            None => comm.set_links(self.links),
        }
        comm.joined = self.joined;
        comm.bond = joined::bond(&comm).map(Box::new);
        comm.user = comm.user.inherited(self.handler, self.session);
        comm.hints = Hints::of(self.hints);
        comm._lease = Some(Lease::new(own, &self.contexts));
        Arc::new(comm)
    }
}
