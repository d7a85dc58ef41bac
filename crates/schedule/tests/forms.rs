// SPDX-License-Identifier: Apache-2.0
//! Forms that few groups need: where they are chosen by themselves, and what they send.

use isthmus_schedule::{Blocks, Call, Network, Operation, Overrides, explain};
use isthmus_simulate::check::{Case, Report};
use isthmus_topology::{Level, Link, Links, Shape};
use std::sync::Arc;

const WIDE: usize = Level::WideArea.index();
const NODE: usize = Level::Node.index();
const MACHINE: usize = Level::Machine.index();

/// Nodes of one process each.
fn nodes(count: u32, links: Links, rules: &str) -> Arc<Network> {
    let rules = Overrides::parse(rules).expect("rules");
    let shape = Arc::new(Shape::flat(count, Level::Machine));
    Network::of_shape(&shape, Arc::new(links), Arc::new(rules))
}

/// Sites of nodes of four processes, over links of 50 ms whose rate one process cannot fill.
fn sites(count: u32, size: u32, rules: &str) -> Arc<Network> {
    let levels = [Level::WideArea, Level::Node];
    let shape = Shape::from_colours(&levels, count * size, |rank, _| rank / size);
    let mut links = Links::default();
    let mut wide = Link::simple(50_000_000, 5_000_000_000, 10_000);
    wide.send = Link::simple(0, 1_000_000_000, 0).gap;
    wide.receive = wide.send.clone();
    links.set_level(Level::WideArea, wide);
    let rules = Overrides::parse(rules).expect("rules");
    Network::of_shape(&Arc::new(shape), Arc::new(links), Arc::new(rules))
}

fn call(operation: Operation, units: u64, unit_bytes: u64) -> Call {
    Call {
        unit_bytes,
        ..Call::new(operation, units)
    }
}

fn chosen(network: &Arc<Network>, call: &Call) -> (&'static str, u32) {
    let all = explain(call, network);
    let one = all.iter().find(|candidate| candidate.chosen).expect("a choice");
    (one.algorithm, one.leaders)
}

fn run(network: &Arc<Network>, call: Call, units: u64) -> Report {
    let case = Case {
        call,
        ..Case::new(network, Operation::Barrier, units)
    };
    case.check(3).unwrap_or_else(|fault| panic!("{fault}"))
}

#[test]
fn short_blocks_among_many_nodes_go_in_rounds() {
    let network = nodes(32, Links::default(), "");
    let short = call(Operation::Alltoall, 1, 8);
    assert_eq!(chosen(&network, &short).0, "bruck");
    let report = run(&network, short, 1);
    assert_eq!(report.data.messages[MACHINE], 32 * 5);
    assert_eq!(report.trips[MACHINE], 5);
    // Blocks for a distance cross as often as that has bits.
    assert_eq!(report.data.bytes[MACHINE], 32 * 5 * 16 * 8);
    assert_eq!(
        chosen(&network, &call(Operation::Alltoall, 1, 1 << 20)).0,
        "pairwise",
        "long blocks go straight"
    );
}

#[test]
fn halves_of_contributions_are_exchanged_by_neighbours() {
    // With three pairs no contribution to the blocks of another pair crosses in all rounds.
    for (members, messages, trips) in [(2, 2, 1), (8, 8 * 3, 3), (11, 8 * 3 + 2 * 3, 4)] {
        let network = nodes(members, Links::default(), "reduce_scatter_block=halving");
        let block = Call {
            commutative: false,
            ..call(Operation::ReduceScatterBlock, 5, 8)
        };
        assert_eq!(chosen(&network, &block).0, "halving");
        let report = run(&network, block, 5);
        assert_eq!(
            (report.data.messages[MACHINE], report.trips[MACHINE]),
            (messages, trips)
        );
    }
    let network = nodes(32, Links::default(), "");
    assert_eq!(
        chosen(&network, &call(Operation::ReduceScatterBlock, 256, 8)).0,
        "halving"
    );
}

#[test]
fn long_blocks_have_carriers_where_one_process_does_not_fill_the_link() {
    let network = sites(3, 4, "");
    for operation in [Operation::Gather, Operation::Scatter] {
        let long = call(operation, 1, 8 << 20);
        let (algorithm, leaders) = chosen(&network, &long);
        assert_eq!(algorithm, "shared", "{operation:?}");
        assert!(leaders > 1, "{operation:?} with {leaders}");
        assert_eq!(chosen(&network, &call(operation, 1, 8)).0, "tree");
    }
    let network = sites(3, 4, "*=shared,leaders=2,seg=1M");
    for operation in [Operation::Gather, Operation::Scatter] {
        let report = run(&network, call(operation, 1, 1 << 20), 1);
        // Of the eight blocks of other sites every other one passes the carrier.
        assert_eq!(
            (report.data.messages[WIDE], report.data.messages[NODE]),
            (8, 3 + 4),
            "{operation:?}"
        );
        assert_eq!(report.data.bytes[WIDE], 8 << 20, "{operation:?}");
        assert_eq!(report.trips[WIDE], 1, "{operation:?}");
    }
}

#[test]
fn combined_blocks_come_once_from_every_other_site() {
    let network = sites(3, 4, "*=shared,leaders=2,seg=1M");
    let report = run(&network, call(Operation::ReduceScatterBlock, 1, 1 << 20), 1);
    assert_eq!(report.data.messages[WIDE], 12 * 2);
    assert_eq!(report.data.bytes[WIDE], 24 << 20);
    assert_eq!(report.trips[WIDE], 1);
}

#[test]
fn a_node_does_it_together_and_explain_says_so() {
    let network = Network::plain(Shape::flat(4, Level::Node));
    assert!(network.shares_memory());
    let mut block = call(Operation::Bcast, 1 << 10, 8);
    let by_messages = chosen(&network, &block);
    assert_ne!(by_messages.0, "together");
    block.together = network.shares_memory();
    assert_eq!(chosen(&network, &block).0, "together");
    block.operation = Operation::Scan;
    block.blocks = Blocks::Equal(64 << 10);
    assert_ne!(chosen(&network, &block).0, "together", "a long scan goes by messages");
}
