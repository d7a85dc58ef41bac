// SPDX-License-Identifier: Apache-2.0
//! What of a communicator follows from where its members are: its network, and how data are represented on it.

use std::sync::Arc;

use isthmus_datatype::Representation;
use isthmus_engine::Peer;
use isthmus_schedule::Network;
use isthmus_topology::Colours;

use super::Comm;
use super::joined::{self, is_joined};
use super::topology_attributes::TopologyAttributes;
use crate::group::Group;
use crate::world::World;

impl Comm {
    /// The network among the members, made at the first collective operation and after every change of the links in
    /// force.
    pub fn network(&self, world: &World) -> Arc<Network> {
        self.in_force.network(|own| {
            let links = own.unwrap_or_else(|| world.links()).links();
            // What the users of two jobs have said may differ; what members choose by may not.
            let overrides = match is_joined(self) {
                true => Arc::default(),
                false => world.overrides().clone(),
            };
            let (topology, places) = joined::places(world, self, &self.group);
            Network::new(topology, &places, links.clone(), overrides)
        })
    }

    /// How data of collective operations and packed data are represented: as in this process where all members (of both
    /// groups) represent them so, otherwise in the common form.
    pub fn form(&self, world: &World) -> Representation {
        self.common_form(world).unwrap_or(Representation::LOCAL)
    }

    /// The common form, if members represent data differently. (For some of them it may be their own.)
    #[inline]
    pub fn common_form(&self, world: &World) -> Option<Representation> {
        if !world.unlike() {
            return None;
        }
        let unlike = self.unlike.get_or_init(|| {
            let whole = self.joint().map_or(self, |joint| &joint.comm);
            match joined::meeting(self) {
                Some(meeting) => meeting.differ(&whole.group),
                None => differ(world, &whole.group),
            }
        });
        unlike.then_some(Representation::COMMON)
    }

    /// The values of MPICHX_TOPOLOGY_DEPTHS and MPICHX_TOPOLOGY_COLORS.
    pub fn topology_attributes(&self, world: &World) -> &TopologyAttributes {
        self.colours.get_or_init(|| {
            let (topology, places) = joined::places(world, self, &self.group);
            Box::new(TopologyAttributes::new(&Colours::of(topology, &places)))
        })
    }
}

/// Whether members represent data differently.
fn differ(world: &World, group: &Group) -> bool {
    let of = |peer: Peer| world.place_of(peer).map(|place| place.representation);
    let mut members = group.members().iter().map(|&peer| of(peer));
    let first = members.next();
    members.any(|other| Some(other) != first)
}
