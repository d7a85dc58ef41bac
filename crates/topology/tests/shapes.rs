// SPDX-License-Identifier: Apache-2.0
//! Colours as in figure 3 of the MPICH-G2 paper, and shapes of random groups.

use isthmus_topology::{Colours, Level, Shape, Topology};
use isthmus_wire::place::{Node, Place, PlaceTable, Representation, Subjob};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A world of machines, each with its local area and the number of processes on each of its nodes.
fn world(machines: &[(&str, Vec<u32>)]) -> Topology {
    let mut table = PlaceTable::default();
    for (subjob, (lan, nodes)) in machines.iter().enumerate() {
        let subjob = subjob as u32;
        let (name, first_rank) = (format!("machine{subjob}"), table.places.len() as u32);
        table.subjobs.push(Subjob {
            name,
            lan: (*lan).into(),
            first_rank,
            count: nodes.iter().sum(),
            programs: vec![(0, 0)],
        });
        for &processes in nodes {
            let node = table.nodes.len() as u32;
            table.nodes.push(Node {
                host: format!("host{node}"),
                addresses: vec![],
                subjob,
                processes,
                processors: processes,
            });
            let place = |slot| Place {
                subjob,
                node,
                port: 0,
                slot,
                representation: Representation([0; 8]),
                vendor: (*lan == "SP").then_some(slot),
            };
            table.places.extend((0..processes).map(place));
        }
    }
    Topology::new(&table)
}

/// Figure 3: 4 processes at site A, two clusters of 4 at site B.
fn figure_3() -> Topology {
    world(&[("A", vec![4]), ("B", vec![2, 2]), ("B", vec![4])])
}

#[test]
fn figure_3_of_the_paper() {
    // There the IBM SP has a vendor MPI and depth 4; without one, every depth is 3.
    let members: Vec<u32> = (0..12).collect();
    let colours = Colours::of(&figure_3(), &members);
    assert_eq!(colours.depths, [3; 12]);
    let level = |level: usize| colours.colours.iter().map(|c| c[level]).collect::<Vec<_>>();
    assert_eq!(level(0), [0; 12]);
    assert_eq!(level(1), [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(level(2), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert!(colours.together(4, 8, Level::LocalArea) && !colours.together(4, 8, Level::Machine));
    assert!(!colours.together(0, 0, Level::Vendor));
}

#[test]
fn figure_3_with_the_vendor_mpi_of_the_ibm_sp() {
    let topology = world(&[("SP", vec![4]), ("B", vec![2, 2]), ("B", vec![4])]);
    let members: Vec<u32> = (0..12).collect();
    let colours = Colours::of(&topology, &members);
    assert_eq!(colours.depths, [4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3]);
    assert!(colours.together(0, 3, Level::Vendor) && !colours.together(0, 4, Level::Vendor));
    assert_eq!(colours.colours[..4], [[0, 0, 0, 0]; 4]);
    assert_eq!(topology.level_between(0, 1), Level::Vendor);
    assert_eq!(topology.level_between(4, 6), Level::Machine);
    let shape = Shape::new(&topology, &members);
    let levels: Vec<_> = (0..shape.tiers()).map(|t| shape.level(t)).collect();
    use Level as L;
    assert_eq!(levels, [L::WideArea, L::LocalArea, L::Machine, L::Node]);
    let inside = Shape::new(&topology, &[0, 1, 3]);
    assert_eq!((inside.tiers(), inside.level(0)), (1, Level::Node));
}

#[test]
fn a_vendor_mpi_on_several_nodes_is_split_into_them() {
    let topology = world(&[("SP", vec![2, 3]), ("B", vec![2, 2])]);
    let shape = Shape::new(&topology, &(0..9).collect::<Vec<_>>());
    use Level as L;
    let levels: Vec<_> = (0..shape.tiers()).map(|t| shape.level(t)).collect();
    assert_eq!(levels, [L::WideArea, L::Machine, L::Vendor, L::Node]);
    let pairs = [(0, 1), (1, 2), (3, 4), (5, 7), (7, 8)];
    let levels = |between: &dyn Fn(u32, u32) -> Level| pairs.map(|(a, b)| between(a, b));
    let of_shape = levels(&|a, b| shape.level_between(a, b));
    assert_eq!(of_shape, [L::Node, L::Vendor, L::Node, L::Machine, L::Node]);
    // Its messages are that MPI's on a node too.
    let of_messages = levels(&|a, b| topology.level_between(a, b));
    assert_eq!(of_messages, [L::Vendor, L::Vendor, L::Vendor, L::Machine, L::Node]);
    let colours = Colours::of(&topology, &[0, 2, 4]);
    assert_eq!(colours.depths, [4; 3]);
    assert_eq!(colours.colours, [[0; 4]; 3]);
}

#[test]
fn colours_of_a_group_begin_at_0_again() {
    let colours = Colours::of(&figure_3(), &[9, 5, 1, 8]);
    assert_eq!(
        colours.colours,
        [[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 2, 0], [0, 0, 0, 0]]
    );
}

#[test]
fn levels_between_processes() {
    let topology = figure_3();
    assert_eq!(topology.level_between(0, 4), Level::WideArea);
    assert_eq!(topology.level_between(4, 11), Level::LocalArea);
    assert_eq!(topology.level_between(4, 6), Level::Machine);
    assert_eq!(topology.level_between(6, 7), Level::Node);
    assert_eq!(topology.level_between(3, 3), Level::Node);
}

#[test]
fn tiers_that_split_nothing_are_left_out() {
    let topology = figure_3();
    let levels = |members: &[u32]| {
        let shape = Shape::new(&topology, members);
        (0..shape.tiers()).map(|t| shape.level(t)).collect::<Vec<_>>()
    };
    let all: Vec<u32> = (0..12).collect();
    assert_eq!(
        levels(&all),
        [Level::WideArea, Level::LocalArea, Level::Machine, Level::Node]
    );
    assert_eq!(levels(&[0, 1, 2]), [Level::Node]);
    assert_eq!(levels(&[0, 4]), [Level::WideArea]);
    assert_eq!(levels(&[0, 4, 8]), [Level::WideArea, Level::LocalArea]);
    assert_eq!(levels(&[7]), []);
    assert_eq!(levels(&[]), []);
}

#[test]
fn ranks_dealt_out_to_sites_stand_in_line_by_site() {
    // Ranks 0, 2, 4 are at site B (two machines), 1 and 3 at site A.
    let shape = Shape::new(&figure_3(), &[4, 0, 8, 1, 5]);
    assert!(!shape.in_rank_order());
    assert_eq!((0..5).map(|p| shape.rank_at(p)).collect::<Vec<_>>(), [0, 4, 2, 1, 3]);
    assert_eq!((shape.span(1, 0), shape.span(1, 1)), (0..3, 3..5));
    assert_eq!(
        (shape.leader(1, 1, 4), shape.leader(1, 1, 0), shape.leader(1, 0, 2)),
        (4, 3, 2)
    );
    assert_eq!(shape.parts(0, 0), 0..2);
}

/// A world, and the members of a group as world ranks in any order.
fn groups() -> impl Strategy<Value = (Topology, Vec<u32>)> {
    let machine = (
        prop::sample::select(&["x", "y", "z"][..]),
        prop::collection::vec(1u32..4, 1..4),
    );
    let picks = prop::collection::vec(any::<prop::sample::Index>(), 1..40);
    (prop::collection::vec(machine, 1..6), picks).prop_map(|(machines, picks)| {
        let topology = world(&machines);
        let mut members: Vec<u32> = picks.iter().map(|i| i.index(topology.size() as usize) as u32).collect();
        let mut seen = BTreeSet::new();
        members.retain(|m| seen.insert(*m));
        (topology, members)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shapes_of_any_group((topology, members) in groups()) {
        let shape = Shape::new(&topology, &members);
        let size = members.len() as u32;
        prop_assert_eq!(shape.size(), size);
        for a in 0..size {
            prop_assert_eq!(shape.position_of(shape.rank_at(a)), a);
            for b in (0..size).filter(|&b| b != a) {
                let level = topology.level_between(members[a as usize], members[b as usize]);
                prop_assert_eq!(shape.level_between(a, b), level);
            }
        }
        clusters_are_nested_intervals(&shape)?;
    }

    #[test]
    fn colours_of_any_group((topology, members) in groups()) {
        let colours = Colours::of(&topology, &members);
        for level in [Level::WideArea, Level::LocalArea, Level::Machine] {
            let mut first = BTreeMap::new();
            for colour in colours.colours.iter().map(|c| c[level.index()]) {
                let next = first.len() as u32;
                prop_assert_eq!(*first.entry(colour).or_insert(next), colour);
            }
            for a in 0..members.len() as u32 {
                for b in 0..members.len() as u32 {
                    let crossed = topology.level_between(members[a as usize], members[b as usize]);
                    prop_assert_eq!(colours.together(a, b, level), a == b || crossed >= level);
                }
            }
        }
    }
}

fn clusters_are_nested_intervals(shape: &Shape) -> Result<(), TestCaseError> {
    for depth in 0..=shape.tiers() {
        let mut next = 0;
        for cluster in 0..shape.clusters(depth) {
            let span = shape.span(depth, cluster);
            prop_assert_eq!(span.start, next);
            prop_assert!(span.clone().all(|p| shape.cluster_of(depth, p) == cluster));
            // The first member has the lowest rank.
            prop_assert_eq!(
                span.clone().map(|p| shape.rank_at(p)).min(),
                Some(shape.rank_at(span.start))
            );
            if depth < shape.tiers() {
                let parts = shape.parts(depth, cluster);
                prop_assert_eq!(shape.span(depth + 1, parts.start).start, span.start);
                prop_assert_eq!(shape.span(depth + 1, parts.end - 1).end, span.end);
            }
            next = span.end;
        }
        prop_assert_eq!(next, shape.size());
        if depth > 0 {
            prop_assert!(shape.clusters(depth) > shape.clusters(depth - 1));
        }
    }
    Ok(())
}

#[test]
fn outermost_clusters_in_another_order() {
    let levels = [Level::WideArea, Level::Node];
    let shape = Shape::from_colours(&levels, 6, |rank, _| rank / 2);
    let arranged = shape.arranged(&[2, 0, 1]);
    assert!(!arranged.in_rank_order() && shape.in_rank_order());
    assert_eq!(
        (0..6).map(|p| arranged.rank_at(p)).collect::<Vec<_>>(),
        [4, 5, 0, 1, 2, 3]
    );
    assert!((0..6).all(|p| arranged.position_of(arranged.rank_at(p)) == p));
    assert_eq!((arranged.span(1, 0), arranged.cluster_of(1, 3)), (0..2, 1));
    assert_eq!(arranged.level_between(0, 4), Level::WideArea);
    assert_eq!(shape.arranged(&[0, 1, 2]), shape);
}

/// Two worlds of two sites, each a machine at both: at site 0 they have a node in common, and the second one has
/// another node beside it.
fn two_worlds() -> Topology {
    let spots = [
        [0, 0, 0],
        [0, 0, 0],
        [1, 1, 1],
        [0, 2, 2],
        [0, 2, 2],
        [0, 2, 3],
        [1, 3, 4],
    ];
    let nodes = [Some(7), Some(7), Some(8), Some(7), Some(7), Some(9), None];
    Topology::from_clusters(spots).with_common_nodes(|rank| nodes[rank as usize])
}

#[test]
fn worlds_that_have_a_node_in_common_are_on_one_machine() {
    let topology = two_worlds();
    assert_eq!(topology.level_between(0, 3), Level::Node);
    assert_eq!(topology.level_between(0, 5), Level::Machine);
    assert_eq!(topology.level_between(2, 6), Level::LocalArea, "one shares no memory");
    let colours = Colours::of(&topology, &[0, 3, 5, 2, 6]);
    let machines: Vec<u32> = colours.colours.iter().map(|colours| colours[2]).collect();
    assert_eq!(machines, [0, 0, 0, 1, 2]);
    assert_ne!(topology.memory_of(0), topology.memory_of(3));
}

#[test]
fn steps_together_are_for_one_world_of_a_node() {
    let topology = two_worlds();
    let levels = |shape: &Shape| -> Vec<Level> { (0..shape.tiers()).map(|tier| shape.level(tier)).collect() };
    let all = Shape::new(&topology, &[0, 1, 3, 4]);
    assert_eq!(levels(&all), [Level::Node, Level::Node]);
    assert!(all.shares_memory_inside());
    assert_eq!(all.level_between(0, 2), Level::Node);
    // One process of each world: they share no memory in which they could meet.
    let singles = Shape::new(&topology, &[0, 3]);
    assert_eq!(levels(&singles), [Level::Node]);
    assert!(!singles.shares_memory_inside());
    assert!(!all.among(&[1, 2]).shares_memory_inside());
    assert!(all.among(&[2, 3]).shares_memory_inside());
}

#[test]
fn jobs_of_vendor_mpis_have_nodes_of_their_own() {
    let topology = Topology::from_clusters([[0, 0, 0], [0, 1, 1], [0, 2, 2]])
        .with_vendor_jobs(|machine| machine == 0)
        .with_common_nodes(|_| Some(0));
    assert_eq!(topology.level_between(0, 1), Level::LocalArea);
    assert_eq!(topology.level_between(1, 2), Level::Node);
    let shape = Shape::new(&topology, &[0, 1, 2]);
    assert!(
        shape.with_whole_jobs().is_none(),
        "a step of a node would be one of two worlds"
    );
}
