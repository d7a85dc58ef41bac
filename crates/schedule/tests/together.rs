// SPDX-License-Identifier: Apache-2.0
//! Operations in shared memory: right for every root and size, without a message, and only where they are allowed; on
//! each of several nodes too.

use isthmus_schedule::{Call, Network, Operation, Overrides, Steps, steps_together, together};
use isthmus_simulate::check::Case;
use isthmus_topology::{Level, Shape};
use std::sync::Arc;

const OPERATIONS: [Operation; 11] = [
    Operation::Barrier,
    Operation::Bcast,
    Operation::Reduce,
    Operation::Allreduce,
    Operation::Gather,
    Operation::Scatter,
    Operation::Allgather,
    Operation::Alltoall,
    Operation::Scan,
    Operation::Exscan,
    Operation::ReduceScatterBlock,
];

#[test]
fn every_operation_is_right_and_sends_nothing() {
    for size in [1, 2, 3, 5, 16] {
        let network = Network::plain(Shape::flat(size, Level::Node));
        for operation in OPERATIONS {
            for root in 0..size {
                for (units, in_place) in [(1, false), (3, true), (7, false)] {
                    let mut case = Case::new(&network, operation, units);
                    case.call.together = true;
                    case.call.commutative = false;
                    case.call.root = root;
                    case.call.in_place = in_place && !matches!(operation, Operation::Bcast | Operation::Barrier);
                    let report = case.check(u64::from(root) + 1);
                    let report =
                        report.unwrap_or_else(|fault| panic!("{} of {size}, root {root}: {fault}", operation.name()));
                    assert_eq!(report.data.messages, [0; Level::COUNT], "{}", operation.name());
                }
            }
        }
    }
}

#[test]
fn only_where_it_is_allowed() {
    let none = Overrides::default();
    let mut call = Call::new(Operation::Allreduce, 4);
    assert_eq!(together(&call, &none, 4, 0), None);
    call.together = true;
    assert!(together(&call, &none, 4, 0).is_some());
    call.fixed = true;
    assert_eq!(
        together(&call, &none, 4, 0),
        None,
        "the fixed order of association is another one"
    );
    call.fixed = false;
    let said = |text| together(&call, &Overrides::parse(text).unwrap(), 4, 0).is_some();
    assert!(said("allreduce=together") && said("bcast=tree") && !said("allreduce=doubling"));
    assert_eq!(
        together(
            &Call {
                operation: Operation::ReduceScatter,
                ..call
            },
            &none,
            4,
            0
        ),
        None
    );
}

#[test]
fn nodes_do_it_together_in_operations_over_several() {
    let levels = [Level::WideArea, Level::LocalArea, Level::Node];
    let shape = Arc::new(Shape::from_colours(&levels, 24, |rank, depth| rank % [2, 4][depth]));
    let network = |rules: &str| {
        let rules = Overrides::parse(rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
        Network::of_shape(&shape, Arc::default(), Arc::new(rules))
    };
    assert_eq!(network("").node(5), [1, 5, 9, 13, 17, 21]);
    for operation in [
        Operation::Barrier,
        Operation::Bcast,
        Operation::Reduce,
        Operation::Allreduce,
        Operation::Gather,
        Operation::Scatter,
        Operation::Allgather,
    ] {
        let blocks = matches!(operation, Operation::Gather | Operation::Scatter | Operation::Allgather);
        // The blocks of all together are as long.
        let long = if blocks { 90_000 / 24 } else { 90_000 };
        for (units, root) in [(1, 0), (700, 6), (long, 11)] {
            let inside = |rules: &str, nodes| {
                let mut case = Case::new(&network(rules), operation, units);
                case.call.nodes = nodes;
                case.call.root = if matches!(operation, Operation::Allreduce | Operation::Allgather) {
                    0
                } else {
                    root
                };
                let told = steps_together(&case.call, &case.network, true) == Steps::Nodes;
                let report = case.check(units + u64::from(root));
                let report = report.unwrap_or_else(|fault| panic!("{}, {units}: {fault}", operation.name()));
                (told, report.data.messages[Level::Node.index()])
            };
            // Long blocks go other ways unless they are told to take trees.
            let rules = if blocks {
                "*=tree; *@node=together"
            } else {
                "*@node=together"
            };
            assert_eq!(inside(rules, true), (true, 0));
            assert_eq!(inside("*=tree,seg=5K; *@node=together", true), (true, 0));
            assert_ne!(inside("*@node=together", false).1, 0, "only where the library can");
            let (told, messages) = inside("*@node=binomial", true);
            assert!(!told && messages > 0);
        }
        let call = Call::new(operation, 1);
        let told = steps_together(&call, &network(""), true);
        assert_eq!(told, Steps::Nodes, "short ones cost less so");
    }
}

/// A site of two nodes of three processes, and two whose vendor MPIs have jobs over three nodes of two.
fn jobs(rules: &str) -> Arc<Network> {
    let levels = [Level::WideArea, Level::Machine, Level::Vendor, Level::Node];
    let shape = Shape::from_colours(&levels, 18, |rank, depth| {
        let (site, place) = (rank / 6, rank % 6);
        [
            site,
            if site == 0 { place / 3 } else { 0 },
            if site == 0 { 0 } else { place / 2 },
        ][depth]
    });
    let rules = Overrides::parse(rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
    Network::of_shape(&Arc::new(shape), Arc::default(), Arc::new(rules))
}

#[test]
fn whole_jobs_are_clusters_of_processes_and_so_are_other_nodes() {
    let network = jobs("");
    let whole = network.with_whole_jobs().expect("there are jobs");
    assert_eq!((whole.tiers(), whole.level(whole.tiers() - 1)), (3, Level::Vendor));
    assert_eq!((network.node(7), whole.node(7)), (vec![6, 7], (6..12).collect()));
    assert_eq!((network.node(4), whole.node(4)), (vec![3, 4, 5], vec![3, 4, 5]));
    let none = Shape::from_colours(&[Level::WideArea, Level::Node], 6, |rank, _| rank / 3);
    assert!(Network::plain(none).with_whole_jobs().is_none());
    let one = Shape::from_colours(&[Level::Vendor, Level::Node], 6, |rank, _| rank / 3);
    assert!(
        Network::plain(one).with_whole_jobs().is_none(),
        "all of one job are natively one"
    );
}

#[test]
fn jobs_do_it_together_with_their_own_mpi() {
    for operation in [
        Operation::Barrier,
        Operation::Bcast,
        Operation::Reduce,
        Operation::Allreduce,
        Operation::Gather,
        Operation::Scatter,
        Operation::Allgather,
    ] {
        for (units, root) in [(1, 0), (700, 7), (20_000, 16)] {
            let crossings = |rules: &str, expected: Steps| {
                let network = jobs(rules);
                let mut case = Case::new(&network, operation, units);
                let rooted = !matches!(
                    operation,
                    Operation::Barrier | Operation::Allreduce | Operation::Allgather
                );
                case.call.root = if rooted { root } else { 0 };
                let told = steps_together(&case.call, &network, true);
                assert_eq!(told, expected, "{}, {units}, {rules}", operation.name());
                case.call.nodes = told != Steps::None;
                if told == Steps::Jobs {
                    case.network = Arc::clone(network.with_whole_jobs().expect("there are jobs"));
                }
                let report = case.check(units + u64::from(root));
                let report = report.unwrap_or_else(|fault| panic!("{}, {units}: {fault}", operation.name()));
                report.data.messages
            };
            let with = crossings("*=tree; *@vendor=together", Steps::Jobs);
            let without = crossings("*=tree; *@vendor=binomial; *@node=together", Steps::Nodes);
            let inside = [Level::Vendor.index(), Level::Node.index()];
            assert_eq!(inside.map(|level| with[level]), [0, 0]);
            assert!(without[inside[0]] > 0 && without[inside[1]] == 0);
            assert_eq!(with[Level::WideArea.index()], without[Level::WideArea.index()]);
        }
        let call = Call::new(operation, 1);
        assert_eq!(
            steps_together(&call, &jobs(""), true),
            Steps::Jobs,
            "short ones cost no more so"
        );
        assert_eq!(steps_together(&call, &jobs("*@vendor=together"), false), Steps::Nodes);
    }
}

#[test]
fn operations_without_such_steps_have_none_beside_jobs_either() {
    for operation in [Operation::NeighborAlltoall, Operation::Alltoall, Operation::Scan] {
        assert_eq!(steps_together(&Call::new(operation, 1), &jobs(""), true), Steps::None);
    }
}
