// SPDX-License-Identifier: Apache-2.0
//! What crosses slow links, and how often one after the other, on three sites of two machines of four processes.

use isthmus_schedule::{Call, Network, Operation, Overrides};
use isthmus_simulate::check::{Case, Counts, Groups, Report};
use isthmus_topology::{Level, Links, Shape};
use std::sync::Arc;

const WIDE: usize = Level::WideArea.index();
const LOCAL: usize = Level::LocalArea.index();
const NODE: usize = Level::Node.index();

/// Sites of machines of processes, ranks in order.
fn grid(sites: u32, machines: u32, processes: u32) -> Arc<Network> {
    network(sites * machines * processes, move |rank| {
        (rank / (machines * processes), rank / processes)
    })
}

/// The same with ranks dealt out to machines in turn.
fn dealt(sites: u32, machines: u32, processes: u32) -> Arc<Network> {
    network(sites * machines * processes, move |rank| {
        (rank % sites, rank % (sites * machines))
    })
}

/// Alltoall goes through leaders.
fn network(size: u32, place: impl Fn(u32) -> (u32, u32)) -> Arc<Network> {
    let levels = [Level::WideArea, Level::LocalArea, Level::Node];
    let shape = Shape::from_colours(
        &levels,
        size,
        |rank, depth| {
            if depth == 0 { place(rank).0 } else { place(rank).1 }
        },
    );
    let rules = Overrides::parse("alltoall:..4K=leaders; alltoallv=leaders").expect("a rule");
    Network::of_shape(&Arc::new(shape), Arc::default(), Arc::new(rules))
}

/// Units of 128 bytes.
fn run(network: &Arc<Network>, operation: Operation, units: u64, root: u32) -> Report {
    let call = Call {
        root,
        unit_bytes: 128,
        ..Call::new(operation, units)
    };
    let case = Case {
        call,
        ..Case::new(network, operation, units)
    };
    case.check(7)
        .unwrap_or_else(|fault| panic!("{operation:?} root {root}: {fault}"))
}

#[test]
fn rooted_operations_cross_least_for_every_root() {
    for network in [grid(3, 2, 4), dealt(3, 2, 4)] {
        for operation in [
            Operation::Bcast,
            Operation::Reduce,
            Operation::Gather,
            Operation::Scatter,
        ] {
            for root in 0..24 {
                let report = run(&network, operation, 8, root);
                let m = report.data.messages;
                assert_eq!((m[WIDE], m[LOCAL], m[NODE]), (2, 3, 18), "{operation:?}, root {root}");
                assert_eq!(
                    (report.trips[WIDE], report.trips[LOCAL]),
                    (1, 1),
                    "{operation:?}, root {root}"
                );
            }
        }
    }
}

#[test]
fn bytes_of_rooted_operations() {
    let network = grid(3, 2, 4);
    assert_eq!(run(&network, Operation::Bcast, 8, 5).data.bytes[WIDE], 2 * 1024);
    assert_eq!(run(&network, Operation::Reduce, 8, 5).data.bytes[LOCAL], 3 * 1024);
    assert_eq!(run(&network, Operation::Gather, 8, 5).data.bytes[WIDE], 2 * 8 * 1024);
    assert_eq!(run(&network, Operation::Scatter, 8, 5).data.bytes[WIDE], 2 * 8 * 1024);
}

#[test]
fn twenty_processes_of_the_multilevel_papers_figure_1() {
    let network = network(20, |rank| {
        (u32::from(rank >= 10), if rank < 10 { 0 } else { 1 + (rank - 10) / 5 })
    });
    for root in 0..20 {
        let m = run(&network, Operation::Bcast, 8, root).data.messages;
        assert_eq!((m[WIDE], m[LOCAL], m[NODE]), (1, 1, 17), "root {root}");
    }
}

#[test]
fn symmetric_operations_take_one_wide_trip() {
    use Operation as O;
    for sites in [2, 3] {
        let pairs = u64::from(sites * (sites - 1));
        for (operation, local) in [
            (O::Barrier, 2),
            (O::Allreduce, 2),
            (O::Allgather, 2),
            (O::ReduceScatterBlock, 2),
            (O::Alltoall, 2),
        ] {
            let report = run(&grid(sites, 2, 4), operation, 1, 0);
            let m = report.data.messages;
            assert_eq!(
                (m[WIDE], m[LOCAL]),
                (pairs, 2 * u64::from(sites)),
                "{operation:?} over {sites} sites"
            );
            assert_eq!(
                (report.trips[WIDE], report.trips[LOCAL]),
                (1, local),
                "{operation:?} over {sites} sites"
            );
        }
        for operation in [O::Scan, O::Exscan] {
            let report = run(&grid(sites, 2, 4), operation, 1, 0);
            assert_eq!(
                report.data.messages[WIDE],
                pairs / 2,
                "{operation:?} over {sites} sites"
            );
            assert_eq!(report.trips[WIDE], 1, "{operation:?} over {sites} sites");
        }
    }
}

#[test]
fn operators_that_do_not_commute_take_one_wide_trip_however_ranks_are_dealt() {
    let network = dealt(3, 2, 4);
    for (operation, wide) in [(Operation::Reduce, 2), (Operation::Allreduce, 6), (Operation::Scan, 6)] {
        let call = Call {
            commutative: false,
            root: 0,
            ..Call::new(operation, 8)
        };
        let report = Case {
            call,
            ..Case::new(&network, operation, 8)
        }
        .check(3)
        .unwrap();
        assert_eq!(
            (report.data.messages[WIDE], report.trips[WIDE]),
            (wide, 1),
            "{operation:?}"
        );
    }
}

#[test]
fn blocks_of_alltoall_and_allgather_cross_once() {
    let network = grid(3, 2, 4);
    assert_eq!(run(&network, Operation::Alltoall, 1, 0).data.bytes[WIDE], 24 * 16 * 128);
    assert_eq!(run(&network, Operation::Allgather, 1, 0).data.bytes[WIDE], 24 * 2 * 128);
    // Long blocks go straight.
    let long = run(&network, Operation::Alltoall, 64, 0);
    assert_eq!(
        (long.data.messages[WIDE], long.data.bytes[WIDE]),
        (24 * 16, 24 * 16 * 8192)
    );
}

#[test]
fn unequal_blocks_cross_once_and_counts_never_or_once() {
    let network = grid(3, 2, 4);
    for root in [0, 6, 13] {
        for (operation, counted) in [(Operation::Gatherv, 0), (Operation::Scatterv, 2)] {
            let call = Call {
                root,
                ..Call::new(operation, 0)
            };
            let sizes = (0..24).map(|r| r % 5).collect();
            let report = Case {
                network: Arc::clone(&network),
                call,
                counts: Counts::Each(sizes),
            }
            .check(1)
            .unwrap();
            let m = report.data.messages;
            assert_eq!((m[WIDE], m[LOCAL]), (2, 3), "{operation:?}, root {root}");
            assert_eq!(report.counts.messages[WIDE], counted, "{operation:?}, root {root}");
        }
    }
}

#[test]
fn unequal_blocks_for_other_sites_travel_together_but_for_long_ones() {
    for network in [grid(3, 2, 4), dealt(3, 2, 4)] {
        let mut sizes: Vec<Vec<u64>> = (0..24)
            .map(|i| (0..24).map(|j| (i / 4 + j / 3) % 3).collect())
            .collect();
        let wide = |sizes: &Vec<Vec<u64>>| {
            let call = Call::new(Operation::Alltoallv, 0);
            let case = Case {
                network: Arc::clone(&network),
                call,
                counts: Counts::Pairs(sizes.clone()),
            };
            let report = case.check(2).unwrap_or_else(|fault| panic!("{fault}"));
            (
                report.data.messages[WIDE],
                report.trips[WIDE],
                report.counts.messages[WIDE],
            )
        };
        assert_eq!(wide(&sizes), (6, 1, 0));
        sizes[0][23] = 5_000;
        assert_eq!(wide(&sizes).0, 7);
    }
}

#[test]
fn a_long_broadcast_is_cut_and_no_byte_crosses_twice() {
    let network = grid(3, 2, 4);
    let call = Call {
        unit_bytes: 64 << 10,
        ..Call::new(Operation::Bcast, 64)
    };
    let report = Case {
        call,
        ..Case::new(&network, Operation::Bcast, 64)
    }
    .check(5)
    .unwrap();
    assert!(report.data.messages[WIDE] > 2, "in pieces: {report:?}");
    assert_eq!(report.data.bytes[WIDE], 2 * 64 * (64 << 10));
}

#[test]
fn eight_processes_that_share_two_processors_need_few_messages() {
    let mut links = Links::default();
    links.processors = 2;
    let shape = Arc::new(Shape::flat(8, Level::Node));
    let network = Network::of_shape(&shape, Arc::new(links), Arc::default());
    for operation in [Operation::Barrier, Operation::Allreduce] {
        let report = run(&network, operation, 1, 0);
        assert_eq!(
            (report.data.messages[NODE], report.trips[NODE]),
            (14, 2),
            "{operation:?}"
        );
    }
}

/// Messages over the wide area of an operation between the processes of rank below `low` and the others.
fn between(network: &Arc<Network>, low: u32, operation: Operation, root: u32) -> u64 {
    let call = Call {
        root,
        ..Call::new(operation, 0)
    };
    let case = Groups {
        network: Arc::clone(network),
        low,
        call,
        units: vec![2; network.size() as usize],
    };
    let report = case
        .check(11)
        .unwrap_or_else(|fault| panic!("{operation:?} root {root}: {fault}"));
    report.data.messages[WIDE]
}

#[test]
fn groups_at_two_sites_cross_once_each_way() {
    use Operation as O;
    let network = grid(2, 2, 4);
    for root in [0, 5, 8, 15] {
        for operation in [O::Bcast, O::Reduce, O::Gather, O::Gatherv, O::Scatter, O::Scatterv] {
            assert_eq!(between(&network, 8, operation, root), 1, "{operation:?}, root {root}");
        }
    }
    for operation in [
        O::Barrier,
        O::Allreduce,
        O::Allgather,
        O::Allgatherv,
        O::ReduceScatter,
        O::Alltoall,
    ] {
        assert_eq!(between(&network, 8, operation, 0), 2, "{operation:?}");
    }
}

#[test]
fn groups_that_share_sites_meet_inside_one() {
    use Operation as O;
    // Ranks 0 to 7 are on both sites, and so are the others.
    let network = dealt(2, 2, 4);
    for root in [0, 1, 8, 15] {
        for operation in [O::Bcast, O::Reduce, O::Gather, O::Scatter] {
            assert_eq!(between(&network, 8, operation, root), 1, "{operation:?}, root {root}");
        }
    }
    // Each group brings its data over and hands out the other's: one message each, two groups.
    assert_eq!(between(&network, 8, O::Allreduce, 0), 4);
}

#[test]
fn one_order_of_reduction_crosses_as_seldom_as_any() {
    for (network, scan) in [(grid(3, 2, 4), 3), (dealt(3, 2, 4), 6)] {
        for (operation, wide, trips) in [
            (Operation::Reduce, 2, 1),
            (Operation::Allreduce, 6, 1),
            (Operation::Scan, scan, 1),
            (Operation::ReduceScatterBlock, 6, 1),
        ] {
            let call = Call {
                fixed: true,
                ..Call::new(operation, 4)
            };
            let case = Case {
                call,
                ..Case::new(&network, operation, 4)
            };
            let report = case.check(3).unwrap_or_else(|fault| panic!("{operation:?}: {fault}"));
            assert_eq!(
                (report.data.messages[WIDE], report.trips[WIDE]),
                (wide, trips),
                "{operation:?}"
            );
        }
    }
    // Sites of 8 consecutive ranks are whole in the order: one value each.
    let call = Call {
        fixed: true,
        ..Call::new(Operation::Reduce, 4)
    };
    let case = Case {
        call,
        ..Case::new(&grid(3, 2, 4), Operation::Reduce, 4)
    };
    assert_eq!(case.check(3).unwrap().data.bytes[WIDE], 2 * 4);
}

/// Operators that do not commute, lengths that do not divide, whole and in pieces, in place or not.
#[test]
fn halving_and_doubling_among_any_number_of_machines() {
    for size in 2..=17u32 {
        for rules in ["allreduce=halving", "allreduce=halving,seg=1K,lanes=3"] {
            let rules = Overrides::parse(rules).expect("a rule");
            let shape = Arc::new(Shape::flat(size, Level::LocalArea));
            let network = Network::of_shape(&shape, Arc::default(), Arc::new(rules));
            for (units, in_place) in [(1, false), (3, true), (29, false), (64, true)] {
                let call = Call {
                    commutative: false,
                    in_place,
                    unit_bytes: 128,
                    ..Call::new(Operation::Allreduce, units)
                };
                let case = Case {
                    call,
                    ..Case::new(&network, Operation::Allreduce, units)
                };
                let report = case
                    .check(u64::from(size))
                    .unwrap_or_else(|fault| panic!("{size}: {fault}"));
                let (rounds, power) = (size.ilog2(), 1 << size.ilog2());
                let messages = u64::from(2 * power * rounds + 2 * (size - power));
                let pieces = report.data.messages[LOCAL] / messages;
                assert_eq!(report.data.messages[LOCAL], messages * pieces, "{size}, {units}");
                let each = units * 128;
                assert_eq!(
                    report.data.bytes[LOCAL],
                    2 * u64::from(size - 1) * each,
                    "{size}, {units}"
                );
            }
        }
    }
}

#[test]
fn a_world_of_one_sends_nothing() {
    let network = Network::plain(Shape::flat(1, Level::Node));
    for operation in [
        Operation::Barrier,
        Operation::Allreduce,
        Operation::Alltoall,
        Operation::Scan,
        Operation::Gather,
    ] {
        assert_eq!(
            run(&network, operation, 3, 0).data.messages,
            [0; Level::COUNT],
            "{operation:?}"
        );
    }
}

/// Many pieces: those inside a site wait for the slow links, whoever is the root and however many leaders there are.
#[test]
fn a_long_reduction_keeps_in_step_inside_sites() {
    for rules in [
        "reduce=tree,seg=1K",
        "reduce=shared,seg=1K",
        "reduce=shared,leaders=2,seg=1K,lanes=40",
    ] {
        let rules = Arc::new(Overrides::parse(rules).expect("a rule"));
        for network in [grid(3, 2, 4), dealt(3, 2, 4), grid(2, 1, 5)] {
            let network = Network::of_shape(network.shape(), Arc::default(), Arc::clone(&rules));
            for root in [0, 5, network.shape().size() - 1] {
                let report = run(&network, Operation::Reduce, 1001, root);
                assert!(report.data.messages[NODE] >= 100 * 4, "in pieces: {report:?}");
            }
        }
    }
}
