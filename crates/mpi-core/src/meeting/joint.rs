// SPDX-License-Identifier: Apache-2.0
//! Where the members of two groups are, as all of them see it.

use std::ops::Range;
use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_datatype::Representation;
use isthmus_engine::Called;
use isthmus_topology::{Level, Topology};
use isthmus_wire::joined::{Group as Met, MAX_GROUPS};
use isthmus_wire::joining::{Member, Name, Offer};
use isthmus_wire::place::{Node, Place, PlaceTable, Subjob};
use rustc_hash::{FxHashMap, FxHashSet};

use super::reach::Reach;
use crate::error::Result;
use crate::fail;

/// Most members of a meeting that share memory on one node.
const MOST_ON_A_NODE: usize = 512;

/// Both groups, the low one first: equal at all members of both.
pub(crate) struct Joint {
    pub(crate) members: Vec<Member>,
    /// How many are in the low group.
    pub(crate) low: usize,
    /// The own group is the low one.
    pub(crate) is_low: bool,
    /// Own place.
    pub(crate) me: u32,
    pub(crate) table: Arc<PlaceTable>,
    pub(crate) topology: Topology,
    /// How members represent data; empty if all do as this one.
    pub(crate) representations: Vec<Representation>,
    /// How they reach each other.
    pub(crate) reaches: Arc<Reaches>,
}

impl Joint {
    /// Of what the own group says, and the other one. What is wrong with that all members of both find wrong.
    pub(crate) fn of(ours: &Offer, theirs: &Offer, own: Name) -> Result<Self> {
        if let Some(twice) = in_common(&ours.members, &theirs.members) {
            fail!(
                abi::MPI_ERR_COMM,
                "the two groups of an intercommunicator have a process in common (on {}); they must be disjoint",
                twice.host
            );
        }
        let leader = |offer: &Offer| offer.members.get(offer.leader as usize).map(|member| member.name);
        let is_low = leader(ours) < leader(theirs);
        let (low, high) = if is_low { (ours, theirs) } else { (theirs, ours) };
        let members: Vec<Member> = low.members.iter().chain(&high.members).cloned().collect();
        let Some(me) = members.iter().position(|member| member.name == own) else {
            fail!(abi::MPI_ERR_INTERN, "this process is not in its own group");
        };
        let representations = representations(&members)?;
        let table = Arc::new(table(&members));
        let reaches = Arc::new(Reaches::of(&table, &members));
        let topology = reaches.topology.clone();
        Ok(Self {
            low: low.members.len(),
            is_low,
            me: me as u32,
            topology,
            reaches,
            table,
            representations,
            members,
        })
    }

    /// The members of other worlds than the own one, by world and host, as far as they are told of.
    pub(crate) fn others(&self, own: [u8; 16]) -> Vec<Met> {
        let mut all: Vec<Met> = Vec::new();
        for member in self.members.iter().filter(|member| member.name.world != own) {
            let (world, site, host) = (member.name.world, &member.site, &member.host);
            let is_there = |met: &Met| (met.world, &met.site, &met.host) == (world, site, host);
            match all.iter().position(is_there) {
                Some(at) => all[at].processes += 1,
                None if all.len() < MAX_GROUPS => all.push(Met {
                    world,
                    job: member.job.clone(),
                    site: site.clone(),
                    host: host.clone(),
                    processes: 1,
                }),
                None => {}
            }
        }
        all
    }

    /// Why this process shares no memory with those of its node that it gets to know, if there are any. By place,
    /// who is new.
    pub(crate) fn apart(&self, is_new: &[bool]) -> Option<String> {
        let own = self.members[self.me as usize].memory.as_ref()?.node;
        let is_there = |member: &Member| member.memory.as_ref().is_some_and(|memory| memory.node == own);
        let meets = self
            .members
            .iter()
            .zip(is_new)
            .any(|(member, new)| *new && is_there(member));
        let shares = self.reaches.nodes[self.me as usize].is_some();
        (meets && !shares).then(|| format!("more than {MOST_ON_A_NODE} members of a meeting are on one node"))
    }

    /// By number of a subjob of the table: how its own job calls its local area.
    pub(crate) fn areas(&self) -> Vec<String> {
        let mut areas = vec![String::new(); self.table.subjobs.len()];
        for (member, place) in self.members.iter().zip(&self.table.places) {
            areas[place.subjob as usize].clone_from(&member.area);
        }
        areas
    }

    /// How these members represent data; empty if all do as this process.
    pub(crate) fn represented(&self, places: Range<u32>) -> Vec<Representation> {
        let known = self.representations.get(places.start as usize..places.end as usize);
        known.unwrap_or_default().to_vec()
    }

    /// What people call the members from this one on.
    pub(crate) fn called(&self, start: usize) -> impl Iterator<Item = Called> {
        called(self.members.get(start..).unwrap_or_default())
    }

    /// This process, for people.
    pub(crate) fn describe(&self) -> String {
        let me = &self.members[self.me as usize];
        format!("rank {} of its MPI_COMM_WORLD, on {},", me.name.rank, me.host)
    }
}

fn called(members: &[Member]) -> impl Iterator<Item = Called> {
    let mut last: Option<(&Member, Arc<str>)> = None;
    members.iter().map(move |member| {
        let is_there = |other: &Member| (&other.host, &other.site) == (&member.host, &member.site);
        let place = match last.take().filter(|(other, _)| is_there(other)) {
            Some((_, place)) => place,
            None => format!("host {} of site {}", member.host, member.site).into(),
        };
        last = Some((member, Arc::clone(&place)));
        let rank = member.name.rank;
        Called { rank, place }
    })
}

/// How members represent data; empty if all do as this process.
fn representations(members: &[Member]) -> Result<Vec<Representation>> {
    let mut all = Vec::with_capacity(members.len());
    for member in members {
        match Representation::decode(member.representation.0) {
            Ok(representation) => all.push(representation),
            Err(error) => fail!(
                abi::MPI_ERR_OTHER,
                "data of a process on {} cannot be converted: {error}; use one version of Isthmus for both programs",
                member.host
            ),
        }
    }
    let alike = all
        .iter()
        .all(|representation| *representation == Representation::LOCAL);
    Ok(if alike { Vec::new() } else { all })
}

/// Whether two lists of members have one in common.
fn in_common<'m>(ours: &'m [Member], theirs: &[Member]) -> Option<&'m Member> {
    let names: FxHashSet<Name> = theirs.iter().map(|member| member.name).collect();
    ours.iter().find(|member| names.contains(&member.name))
}

/// How members reach the others that they get to know: the same seen from both ends.
pub(crate) struct Reaches {
    topology: Topology,
    /// By place: on which node a member shares memory, by number; `None`: with nobody.
    nodes: Vec<Option<u32>>,
}

/// Where members share memory. Each watches the others by a descriptor, so where there are too many they do not.
fn nodes(members: &[Member]) -> Vec<Option<u32>> {
    let (mut numbers, mut counts) = (Numbering::new(), Vec::new());
    let all = members.iter().map(|member| {
        let (number, is_new) = numbers.number(member.memory.as_ref()?.node);
        if is_new {
            counts.push(0_usize);
        }
        counts[number as usize] += 1;
        Some(number)
    });
    let all: Vec<Option<u32>> = all.collect();
    let few = |number: &u32| counts[*number as usize] <= MOST_ON_A_NODE;
    all.into_iter().map(|number| number.filter(few)).collect()
}

impl Reaches {
    fn of(table: &PlaceTable, members: &[Member]) -> Self {
        let nodes = nodes(members);
        let topology = Topology::new(table).with_common_nodes(|place| nodes[place as usize]);
        Self { topology, nodes }
    }

    /// The level that a message crosses, for the counters.
    pub(crate) fn level(&self, a: u32, b: u32) -> Level {
        match self.between(a, b) {
            Reach::Node => Level::Node,
            // What goes by TCP leaves the node, wherever it goes.
            Reach::Near | Reach::Far => self.topology.level_between(a, b).min(Level::Machine),
        }
    }

    /// From one to another.
    pub(crate) fn between(&self, a: u32, b: u32) -> Reach {
        let node = |place: u32| self.nodes.get(place as usize).copied().flatten();
        if node(a).is_some() && node(a) == node(b) {
            return Reach::Node;
        }
        match self.topology.clusters_of(a)[0] == self.topology.clusters_of(b)[0] {
            true => Reach::Near,
            false => Reach::Far,
        }
    }
}

/// Numbers things in order of their first appearance.
struct Numbering<K>(FxHashMap<K, u32>);

impl<K: std::hash::Hash + Eq> Numbering<K> {
    fn new() -> Self {
        Self(FxHashMap::default())
    }

    /// Its number, and whether it is a new one.
    fn number(&mut self, key: K) -> (u32, bool) {
        let next = self.0.len() as u32;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}

/// Local areas of the members: those of one job by name; of two jobs, names say nothing, so two are one where they have
/// a machine in common.
fn areas(members: &[Member]) -> Vec<u32> {
    let (mut named, mut machines) = (Numbering::new(), FxHashMap::default());
    let own: Vec<u32> = members
        .iter()
        .map(|member| named.number((member.name.world, &member.area)).0)
        .collect();
    // Each area points to one with a lower number that it is one with, or to itself.
    let mut same: Vec<u32> = (0..named.0.len() as u32).collect();
    let root = |same: &[u32], mut area: u32| {
        while same[area as usize] != area {
            area = same[area as usize];
        }
        area
    };
    for (member, &area) in members.iter().zip(&own) {
        let other = *machines.entry(member.machine).or_insert(area);
        let (a, b) = (root(&same, area), root(&same, other));
        same[a.max(b) as usize] = a.min(b);
    }
    own.into_iter().map(|area| root(&same, area)).collect()
}

fn table(members: &[Member]) -> PlaceTable {
    let (mut machines, mut nodes) = (Numbering::new(), Numbering::new());
    let mut table = PlaceTable::default();
    for ((rank, member), area) in (0..).zip(members).zip(areas(members)) {
        let world = member.name.world;
        let (subjob, is_new) = machines.number((world, member.subjob));
        if is_new {
            table.subjobs.push(Subjob {
                name: member.site.clone(),
                lan: format!("{area} {}", member.area),
                first_rank: rank,
                count: 0,
                programs: vec![(0, 0)],
            });
            // Equal areas have one name.
            let same = table.places.iter().position(|place: &Place| {
                let lan = &table.subjobs[place.subjob as usize].lan;
                lan.split_once(' ')
                    .is_some_and(|(number, _)| number == area.to_string())
            });
            if let Some(same) = same {
                let lan = table.subjobs[table.places[same].subjob as usize].lan.clone();
                table.subjobs[subjob as usize].lan = lan;
            }
        }
        let (node, is_new) = nodes.number((world, member.node));
        if is_new {
            table.nodes.push(Node {
                host: member.host.clone(),
                addresses: member.addresses.clone(),
                subjob,
                processes: 0,
                processors: member.processors,
            });
        }
        table.subjobs[subjob as usize].count += 1;
        let slot = table.nodes[node as usize].processes;
        table.nodes[node as usize].processes += 1;
        table.places.push(Place {
            subjob,
            node,
            port: member.port,
            slot,
            representation: member.representation,
            vendor: member.vendor.then_some(slot),
        });
    }
    table
}

#[cfg(test)]
mod tests {
    use isthmus_wire::joining::{Memory, sample};

    use super::*;

    fn member(world: u8, rank: u32, node: Option<u8>) -> Member {
        let mut member = sample().members.remove(1);
        member.name = Name {
            world: [world; 16],
            rank,
        };
        member.vendor = false;
        member.representation = isthmus_wire::place::Representation(Representation::LOCAL.encode());
        member.memory = node.map(|node| Memory {
            node: [node; 48],
            process: rank,
            file: 3,
            bell: 4,
            bell_number: 5,
            token: [6; 16],
        });
        member
    }

    #[test]
    fn those_of_one_node_share_memory_and_nobody_else() {
        let members = [
            member(1, 0, Some(1)),
            member(1, 1, None),
            member(2, 0, Some(1)),
            member(2, 1, Some(2)),
        ];
        let reaches = Reaches::of(&table(&members), &members);
        let between = |a, b| [reaches.between(a, b), reaches.between(b, a)];
        assert_eq!(between(0, 2), [Reach::Node; 2]);
        for (a, b) in [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)] {
            assert_eq!(between(a, b), [Reach::Near; 2], "{a} {b}");
        }
    }

    #[test]
    fn members_are_called_by_their_own_ranks_and_where_they_are() {
        let mut members = [member(1, 0, None), member(2, 7, None), member(2, 9, None)];
        (members[2].host, members[2].site) = ("n4".into(), "lab".into());
        let (host, site) = (members[1].host.clone(), members[1].site.clone());
        let names: Vec<String> = called(&members[1..]).map(|called| called.to_string()).collect();
        let wanted = [
            format!("rank 7 of another MPI_COMM_WORLD (host {host} of site {site})"),
            "rank 9 of another MPI_COMM_WORLD (host n4 of site lab)".to_owned(),
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn worlds_that_share_memory_are_on_one_node() {
        let members = [
            member(1, 0, Some(1)),
            member(2, 0, Some(1)),
            member(2, 1, Some(1)),
            member(3, 0, Some(1)),
            member(3, 1, None),
        ];
        let reaches = Reaches::of(&table(&members), &members);
        let level = |a, b| reaches.topology.level_between(a, b);
        assert_eq!([level(0, 1), level(0, 2)], [Level::Node; 2]);
        assert_ne!(reaches.topology.memory_of(0), reaches.topology.memory_of(1));
        // Of the third one a member shares nothing, so its node is its own.
        assert_eq!([level(0, 3), level(0, 4)], [Level::LocalArea; 2]);
        assert_eq!(
            [reaches.level(0, 3), reaches.level(0, 4)],
            [Level::Node, Level::LocalArea]
        );
    }

    #[test]
    fn too_many_on_a_node_share_nothing() {
        let most = MOST_ON_A_NODE as u32;
        let mut members: Vec<Member> = (0..most).map(|rank| member(1, rank, Some(1))).collect();
        members.push(member(2, 0, Some(2)));
        assert!(nodes(&members).iter().all(Option::is_some));
        members.push(member(2, 1, Some(1)));
        let nodes = nodes(&members);
        assert_eq!(nodes.iter().flatten().count(), 1, "those of the other node");
    }

    #[test]
    fn it_is_said_why_too_many_share_nothing() {
        let most = MOST_ON_A_NODE as u32;
        let offer = |members: Vec<Member>| Offer {
            leader: 0,
            members,
            ..sample()
        };
        let joint = |count: u32| {
            let ours = offer((0..count).map(|rank| member(1, rank, Some(1))).collect());
            let theirs = offer(vec![member(2, 0, Some(1)), member(2, 1, Some(2))]);
            let own = ours.members[0].name;
            Joint::of(&ours, &theirs, own).expect("they meet")
        };
        let new = |place: u32| (0..most + 2).map(|at| at == place).collect::<Vec<bool>>();
        assert_eq!(joint(most - 1).apart(&new(most - 1)), None, "few enough");
        let why = joint(most).apart(&new(most)).expect("too many");
        assert!(why.contains("512"), "{why}");
        assert_eq!(joint(most).apart(&new(most + 1)), None, "who is new is on another node");
    }
}
