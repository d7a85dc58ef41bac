// SPDX-License-Identifier: Apache-2.0
//! What is chosen is what the simulator finds best, and takes as long as was expected.

use isthmus_schedule::{Blocks, Call, Network, Operation, Overrides, explain};
use isthmus_simulate::{Limits, simulate};
use isthmus_topology::{Curve, Level, Link, Links, Topology};
use std::sync::Arc;

/// Sites of two machines of four processes.
fn grid(sites: u32, machines: u32, processes: u32) -> Topology {
    let spot = |rank: u32| [rank / (machines * processes), rank / processes, rank / processes];
    Topology::from_clusters((0..sites * machines * processes).map(spot))
}

/// Round trips of 20, 40 and 75 ms at a rate in bytes per second.
fn wide(rate: u64) -> Links {
    let mut links = Links::default();
    links.set_level(Level::LocalArea, Link::simple(500_000, 125_000_000, 10_000));
    for ((a, b), ms) in [((0, 1), 20), ((0, 2), 10), ((1, 2), 37)] {
        links.set_pair(a, b, Link::simple(ms * 1_000_000, rate, 10_000));
    }
    links
}

/// A node whose messages take a while to be taken over.
fn node() -> Links {
    let mut links = Links::default();
    let gap = Curve::new(vec![(1, 100), (4096, 1_000), (1 << 20, 200_000)]).expect("a curve");
    links.set_level(
        Level::Node,
        Link {
            gap,
            ..links.level(Level::Node).clone()
        },
    );
    links
}

/// Names, predicted and simulated milliseconds of the choice and of all candidates.
fn times(operation: Operation, bytes: u64, topology: &Topology, links: &Links) -> (String, Vec<(String, f64, f64)>) {
    let links = Arc::new(links.clone());
    let call = Call {
        unit_bytes: 8,
        ..Call::new(operation, bytes / 8)
    };
    let run = |rules: &str| {
        let rules = Overrides::parse(rules).expect("rules");
        let network = Network::of_world(topology, Arc::clone(&links), Arc::new(rules));
        let chosen = explain(&call, &network)
            .into_iter()
            .find(|c| c.chosen)
            .expect("a choice");
        let limits = Limits {
            records: 0,
            ..Limits::default()
        };
        // The choice is for the worst root.
        let rooted = matches!(operation, Operation::Bcast | Operation::Reduce);
        let roots = (0..topology.size()).step_by(if rooted { 8 } else { 64 });
        let time = |root| {
            let call = Call { root, ..call.clone() };
            simulate(&call, topology, &network, limits).expect("an outcome").time()
        };
        let time = roots.map(time).max().expect("a root");
        let ms = |ns: u64| ns as f64 / 1e6;
        let name = format!("{}/{} in {:?}", chosen.algorithm, chosen.leaders, chosen.pieces);
        (name, ms(chosen.total), ms(time))
    };
    let network = Network::of_world(topology, Arc::clone(&links), Arc::default());
    let mut all = vec![run("")];
    for candidate in explain(&call, &network) {
        all.push(run(&format!(
            "{}={},leaders={}",
            operation.name(),
            candidate.algorithm,
            candidate.leaders
        )));
    }
    let what = format!("{operation:?} of {bytes} bytes among {}", topology.size());
    (what, all)
}

/// How much longer than the best candidate the chosen one may take in the simulator.
const MOST: f64 = 1.25;

const OPERATIONS: [Operation; 5] = [
    Operation::Bcast,
    Operation::Reduce,
    Operation::Allreduce,
    Operation::Allgather,
    Operation::Alltoall,
];

#[test]
fn the_choice_is_what_the_simulator_finds_best() {
    let mut wrong = Vec::new();
    let cases = [
        (grid(3, 2, 4), wide(12_500_000)),
        (grid(3, 2, 4), wide(125_000_000)),
        (grid(2, 2, 4), wide(12_500_000)),
        (grid(3, 1, 2), wide(12_500_000)),
        (grid(1, 4, 4), Links::default()),
        (grid(1, 1, 8), node()),
    ];
    for (topology, links) in &cases {
        for operation in OPERATIONS {
            for bytes in [64u64 << 10, 1 << 20, 4 << 20] {
                let own = match operation {
                    // Classes of sizes are judged by their smallest.
                    Operation::Allgather => bytes.div_ceil(u64::from(topology.size())).next_multiple_of(8),
                    Operation::Alltoall => (bytes / u64::from(topology.size())).next_power_of_two(),
                    _ => bytes,
                };
                let (what, all) = times(operation, own, topology, links);
                let best = all.iter().map(|t| t.2).fold(f64::INFINITY, f64::min);
                if all[0].2 > best * MOST {
                    wrong.push(format!("{what}: {:?}, best {best}", all[0]));
                }
                let (predicted, simulated) = (all[0].1, all[0].2);
                if bytes >= 1 << 20 && (predicted / simulated - 1.0).abs() > 0.3 {
                    wrong.push(format!("{what}: expected {predicted}, takes {simulated}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Eight processes that share two processors: each piece is work for all of them, and copying is too.
#[test]
fn crowded_nodes_take_few_long_pieces() {
    let mut links = Links::default();
    links.processors = 2;
    let network = Network::of_world(&grid(1, 1, 8), Arc::new(links), Arc::default());
    for bytes in [256 << 10, 1 << 20, 4 << 20] {
        let candidates = explain(&Call::new(Operation::Bcast, bytes), &network);
        let chosen = candidates.into_iter().find(|c| c.chosen).expect("a choice");
        assert_eq!(chosen.tiers[0].algorithm, "flat tree", "{bytes} bytes");
        assert!(
            chosen.pieces.1 >= 256 << 10,
            "{bytes} bytes in pieces {:?}",
            chosen.pieces
        );
    }
}

/// 16 MiB over three sites at 100 Mbit/s, each direction of each pair of them: what must pass the busiest link, and 75
/// ms under way.
#[test]
fn long_messages_take_little_more_than_what_must_cross() {
    let (topology, links) = (grid(3, 2, 4), wide(12_500_000));
    let whole = f64::from(16 << 20) / 12_500.0;
    for (operation, each, crosses) in [
        (Operation::Bcast, 1, 1.0 / 2.0),
        (Operation::Reduce, 1, 1.0 / 2.0),
        (Operation::Allreduce, 1, 2.0 / 3.0),
        (Operation::Allgather, 24, 1.0 / 3.0),
        (Operation::Alltoall, 64, 1.0),
    ] {
        let call = Call {
            unit_bytes: 8,
            ..Call::new(operation, (16 << 20) / 8 / each)
        };
        let network = Network::of_world(&topology, Arc::new(links.clone()), Arc::default());
        let outcome = simulate(&call, &topology, &network, Limits::default()).expect("an outcome");
        let (time, bound) = (outcome.time() as f64 / 1e6, whole * crosses);
        assert!(
            time < bound * 1.03 + 75.0,
            "{operation:?} takes {time} ms, {bound} at least"
        );
    }
}

/// Long unequal blocks: over fast links all processes of a site send theirs side by side, over slow ones its leader all
/// of them.
#[test]
fn long_unequal_blocks_go_apart_where_that_is_cheaper() {
    let topology = grid(3, 2, 4);
    for (rate, apart) in [(12_500_000, false), (1_250_000_000, true)] {
        for operation in [Operation::Gatherv, Operation::Scatterv] {
            let time = |rules: &str, block: u64| {
                let rules = Overrides::parse(rules).expect("rules");
                let network = Network::of_world(&topology, Arc::new(wide(rate)), Arc::new(rules));
                let call = Call {
                    blocks: Blocks::known((0..24).map(|rank| block + rank)),
                    ..Call::new(operation, 0)
                };
                let outcome = simulate(&call, &topology, &network, Limits::default()).expect("an outcome");
                (outcome.time(), outcome.crossings.messages[Level::WideArea.index()])
            };
            let (chosen, messages) = time("", 4 << 20);
            assert_eq!(messages > 8, apart, "{operation:?} at {rate}: {messages} messages");
            let (together, _) = time("*=tree,seg=64M", 4 << 20);
            assert!(
                chosen <= together,
                "{operation:?} at {rate}: {chosen}, together {together}"
            );
            assert!(
                !apart || chosen < together * 4 / 5,
                "{operation:?}: {chosen}, together {together}"
            );
            // Short ones never do.
            assert!(time("", 1 << 10).1 <= 8, "{operation:?} at {rate}");
        }
    }
}

/// One process on each of two machines of a site: its leader would save one message over the slow link, and take the
/// way inside the site for it. Site 1 acts for one of the others where that way is quickest.
#[test]
fn short_blocks_of_small_sites_need_no_leader() {
    let (topology, mut links) = (grid(3, 2, 1), wide(12_500_000));
    for ((a, b), ms) in [((0, 1), 10), ((1, 2), 20), ((0, 2), 37)] {
        links.set_pair(a, b, Link::simple(ms * 1_000_000, 12_500_000, 10_000));
    }
    let time = |call: &Call, rules: &str| {
        let rules = Overrides::parse(rules).expect("rules");
        let network = Network::of_world(&topology, Arc::new(links.clone()), Arc::new(rules));
        let outcome = simulate(call, &topology, &network, Limits::default()).expect("an outcome");
        (outcome.time(), outcome.crossings.messages[Level::WideArea.index()])
    };
    for operation in [
        Operation::Gather,
        Operation::Gatherv,
        Operation::Scatter,
        Operation::Scatterv,
    ] {
        // One way, and messages: site 1 acts for the farther one.
        for (root, latency, messages) in [(0, 30, 3), (3, 20, 4), (5, 30, 3)] {
            let mut call = Call::new(operation, 8);
            call.root = root;
            if matches!(operation, Operation::Gatherv | Operation::Scatterv) {
                call.blocks = Blocks::known((0..6).map(|rank| 8 + rank));
            }
            let (chosen, sent) = time(&call, "");
            let (tree, least) = time(&call, "*=tree");
            assert!(least <= sent, "{operation:?}, root {root}");
            // Site 1 is told how much it hands on, by those that have it or by the root.
            let counts = match operation {
                Operation::Gatherv if latency == 30 => 2,
                Operation::Scatterv if latency == 30 => 1,
                _ => 0,
            };
            assert_eq!(sent, messages + counts, "{operation:?}, root {root}");
            assert!(
                chosen < latency * 1_000_000 + 200_000 && chosen + 300_000 < tree,
                "{operation:?}, root {root}: {chosen}, as a tree {tree}"
            );
        }
    }
    // Larger sites save more messages with a leader.
    let network = Network::of_world(&grid(3, 2, 2), Arc::new(links.clone()), Arc::default());
    let all = explain(&Call::new(Operation::Gather, 8), &network);
    assert!(all.iter().all(|c| c.algorithm != "direct"));
}

#[test]
fn unequal_blocks_are_explained_as_cut_like_the_largest() {
    let links = Arc::new(wide(12_500_000));
    let network = Network::of_world(&grid(3, 2, 4), links, Arc::default());
    let pieces = |operation, blocks| {
        let call = Call {
            blocks,
            ..Call::new(operation, 0)
        };
        let all = explain(&call, &network);
        all.into_iter().map(|c| (c.algorithm, c.pieces)).collect::<Vec<_>>()
    };
    let sizes = || Blocks::known((0..24).map(|rank| if rank == 7 { 1 << 20 } else { 1 << 19 }));
    for (equal, unequal) in [
        (Operation::ReduceScatterBlock, Operation::ReduceScatter),
        (Operation::Allgather, Operation::Allgatherv),
    ] {
        let like = pieces(equal, Blocks::Equal(1 << 20));
        assert_eq!(pieces(unequal, Blocks::known([1 << 20; 24])), like, "{unequal:?}");
        let all = pieces(unequal, sizes());
        assert!(all.iter().any(|(name, _)| *name == "shared"), "{unequal:?}: {all:?}");
        for (name, (pieces, bytes)) in all {
            let covered = pieces * bytes >= 1 << 20 && (pieces - 1) * bytes < 1 << 20;
            assert!(covered, "{unequal:?}, {name}: {pieces} pieces of {bytes} bytes");
        }
    }
}
