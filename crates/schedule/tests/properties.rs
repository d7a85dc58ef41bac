// SPDX-License-Identifier: Apache-2.0
//! Every operation, on random groups.

mod seeded;

use isthmus_schedule::{Call, Network, Operation, Overrides};
use isthmus_simulate::check::{Case, Counts, Graph, Groups};
use isthmus_topology::{Level, Link, Links, Shape, Topology};
use proptest::prelude::*;
use std::sync::Arc;

/// 1 to `most` processes, 1 to 5 levels, uneven clusters, with ranks in order or interleaved; jobs of machines' own
/// MPIs in nodes or whole; or processes of several worlds that have nodes in common.
fn shapes(most: u32) -> impl Strategy<Value = Arc<Network>> {
    let colours = proptest::collection::vec(proptest::array::uniform4(0u32..4), most as usize);
    let links = proptest::collection::vec(1u64..100, 6);
    let manner = (proptest::sample::select(RULES), links, any::<bool>(), 0..3);
    (1..=most, 1usize..=5, colours, any::<bool>(), manner).prop_map(|(size, levels, mut colours, ordered, manner)| {
        colours.truncate(size as usize);
        if ordered {
            colours.sort();
        }
        let shape = Arc::new(Shape::from_colours(&Level::ALL[5 - levels..], size, |rank, depth| {
            colours[rank as usize][depth]
        }));
        let (rules, latencies, alike, kind) = manner;
        let rules = Overrides::parse(rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
        let mut links = Links::default();
        if !alike {
            let pairs = (0..4).flat_map(|a| (0..a).map(move |b| (a, b)));
            for ((a, b), ms) in pairs.zip(latencies) {
                links.set_pair(a, b, Link::simple(ms * 1_000_000, 12_500_000, 10_000));
            }
        }
        let (links, rules) = (Arc::new(links), Arc::new(rules));
        if kind == 2 {
            let worlds = worlds(&colours);
            return Network::new(&worlds, &(0..size).collect::<Vec<_>>(), links, rules);
        }
        let network = Network::of_shape(&shape, links, rules);
        network
            .with_whole_jobs()
            .filter(|_| kind == 1)
            .cloned()
            .unwrap_or(network)
    })
}

/// Sites with up to four worlds each, which have up to four nodes in common.
fn worlds(colours: &[[u32; 4]]) -> Topology {
    let spots = colours
        .iter()
        .map(|&[site, world, node, _]| [site, 4 * site + world, 16 * site + 4 * world + node]);
    Topology::from_clusters(spots).with_common_nodes(|rank| Some(colours[rank as usize][2]))
}

/// Ways that the chooser would seldom take.
const RULES: &[&str] = &[
    "",
    "*=tree; *@wide=chain; *@node=fibonacci(3)",
    "*=flat; *@local=knomial(3); *@machine=chain",
    "*=doubling,seg=1K,lanes=3; *@node=binomial",
    "*=split,seg=100K; *@local=fibonacci",
    "*@wide=routed; *@node=knomial(5)",
    "*=pairwise,seg=20K,lanes=2; *@wide=fibonacci(7)",
    "*=leaders; *@wide=binomial",
    "*=routed; *@wide=routed; *@node=binomial",
    "*=fixed_routed",
    "*=leaders_routed; *@local=chain",
    "*=shared,seg=1K,leaders=3,lanes=2",
    "*=bruck; *@local=chain",
    "*=shared,seg=8K,leaders=1; *@node=chain",
    "*=partners",
    "*=envoys",
    "*=envoys,seg=1K; *@wide=chain",
    "*=halving; *@machine=chain",
    "*=ring; *@node=knomial(3)",
    "*=tree,seg=2K; *@wide=routed",
    "*@node=together",
    "*=tree; *@vendor=together",
    "*=tree,seg=2K,lanes=3; *@node=together; *@wide=chain",
    "*=shared,seg=1K,leaders=2,lanes=2; *@node=together",
];

/// A call of one of these operations.
fn calls(operations: &'static [Operation]) -> impl Strategy<Value = Call> {
    let units = prop_oneof![2 => 0u64..4, 5 => 1u64..20];
    // The same few units, as short, medium or long messages, in whole or in pieces.
    let unit_bytes = prop_oneof![Just(1u64), Just(700), Just(9_000), Just(70_000), Just(600_000)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), 1u64..4);
    (
        proptest::sample::select(operations),
        any::<u32>(),
        units,
        unit_bytes,
        flags,
    )
        .prop_map(
            |(operation, root, units, unit_bytes, (commutative, in_place, nodes, granule))| Call {
                root,
                commutative,
                in_place,
                unit_bytes,
                granule,
                nodes,
                ..Call::new(operation, units)
            },
        )
}

fn check(network: &Arc<Network>, mut call: Call, counts: Counts, seed: u64) -> Result<(), TestCaseError> {
    call.root %= network.size();
    let case = Case {
        network: Arc::clone(network),
        call,
        counts,
    };
    let small = if seed % 2 == 0 { 256 } else { 48 };
    case.check_with(seed, small)
        .map_err(|fault| TestCaseError::fail(format!("{case:#?}\n{fault}")))?;
    Ok(())
}

fn units(call: &Call) -> u64 {
    call.blocks.size(0)
}

proptest! {
    #![proptest_config(seeded::cases(128))]

    #[test]
    fn moving(network in shapes(40), call in calls(&[Operation::Barrier, Operation::Bcast, Operation::Gather, Operation::Scatter,
        Operation::Allgather]), seed in any::<u64>()) {
        let n = units(&call);
        check(&network, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn combining(network in shapes(40), call in calls(&[Operation::Reduce, Operation::Allreduce, Operation::Scan,
        Operation::Exscan]), seed in any::<u64>()) {
        let n = units(&call);
        check(&network, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn unequal_blocks(network in shapes(40), call in calls(&[Operation::Gatherv, Operation::Scatterv,
        Operation::Allgatherv]), sizes in proptest::collection::vec(0u64..6, 40), seed in any::<u64>()) {
        let sizes = sizes[..network.size() as usize].to_vec();
        check(&network, call, Counts::Each(sizes), seed)?;
    }
}

proptest! {
    #![proptest_config(seeded::cases(64))]

    #[test]
    fn reduce_scatter(network in shapes(24), call in calls(&[Operation::ReduceScatter]),
        sizes in proptest::collection::vec(0u64..4, 24), seed in any::<u64>()) {
        let sizes = sizes[..network.size() as usize].to_vec();
        check(&network, call, Counts::Each(sizes), seed)?;
    }

    #[test]
    fn reduce_scatter_block(network in shapes(24), call in calls(&[Operation::ReduceScatterBlock]), seed in any::<u64>()) {
        let n = units(&call) % 5;
        check(&network, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn alltoall(network in shapes(24), call in calls(&[Operation::Alltoall]), seed in any::<u64>()) {
        let n = units(&call) % 4;
        check(&network, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn alltoallv(network in shapes(24), call in calls(&[Operation::Alltoallv]),
        sizes in proptest::collection::vec(proptest::collection::vec(0u64..4, 24), 24), seed in any::<u64>()) {
        let p = network.size() as usize;
        let of = |i: usize, j: usize| if call.in_place { sizes[i.min(j)][i.max(j)] } else { sizes[i][j] };
        let sizes = (0..p).map(|i| (0..p).map(|j| of(i, j)).collect()).collect();
        check(&network, call, Counts::Pairs(sizes), seed)?;
    }
}

proptest! {
    #![proptest_config(seeded::cases(192))]

    #[test]
    fn fixed_order(network in shapes(40), call in calls(&[Operation::Reduce, Operation::Allreduce, Operation::Scan,
        Operation::Exscan, Operation::ReduceScatterBlock]), seed in any::<u64>()) {
        let call = Call { fixed: true, commutative: false, ..call };
        let n = units(&call) % 8;
        check(&network, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn fixed_order_of_unequal_blocks(network in shapes(24), call in calls(&[Operation::ReduceScatter]),
        sizes in proptest::collection::vec(0u64..4, 24), seed in any::<u64>()) {
        let call = Call { fixed: true, ..call };
        let sizes = sizes[..network.size() as usize].to_vec();
        check(&network, call, Counts::Each(sizes), seed)?;
    }
}

proptest! {
    #![proptest_config(seeded::cases(192))]

    #[test]
    fn between_groups(network in shapes(24), low in any::<u32>(), call in calls(&[Operation::Barrier, Operation::Bcast,
        Operation::Reduce, Operation::Gather, Operation::Gatherv, Operation::Scatter, Operation::Scatterv,
        Operation::Allgather, Operation::Allgatherv, Operation::Alltoall, Operation::Alltoallv, Operation::Allreduce,
        Operation::ReduceScatter, Operation::ReduceScatterBlock]),
        units in proptest::collection::vec(0u64..5, 24), seed in any::<u64>()) {
        prop_assume!(network.size() > 1);
        let low = 1 + low % (network.size() - 1);
        let call = Call { root: call.root % network.size(), in_place: false, nodes: false, ..call };
        let case = Groups { network, low, call, units };
        case.check(seed).map_err(|fault| TestCaseError::fail(format!("{case:#?}\n{fault}")))?;
    }

    #[test]
    fn between_groups_at_two_sites(low in 1u32..12, high in 1u32..12, machines in proptest::collection::vec(0u32..3, 24),
        call in calls(&[Operation::Alltoall, Operation::Allgather, Operation::Allreduce]),
        units in proptest::collection::vec(0u64..5, 24), seed in any::<u64>()) {
        let levels = [Level::WideArea, Level::LocalArea, Level::Node];
        let network = Network::plain(Shape::from_colours(&levels, low + high, |rank, depth| match depth {
            0 => u32::from(rank >= low),
            _ => machines[rank as usize],
        }));
        let call = Call { root: 0, in_place: false, nodes: false, ..call };
        let case = Groups { network, low, call, units };
        case.check(seed).map_err(|fault| TestCaseError::fail(format!("{case:#?}\n{fault}")))?;
    }

    #[test]
    fn neighbourhoods(network in shapes(24), each in any::<bool>(), units in 0u64..4,
        edges in proptest::collection::vec((0u32..24, 0u32..24), 0..120), seed in any::<u64>()) {
        let p = network.size();
        let operation = if each { Operation::NeighborAlltoallv } else { Operation::NeighborAllgatherv };
        let size = |i: usize, from: u32| if each { (units + i as u64) % 4 } else { u64::from(from) % 3 };
        let edges = edges.iter().enumerate().map(|(i, (a, b))| (a % p, b % p, size(i, a % p))).collect();
        let case = Graph {
            shape: network.shape().clone(),
            edges,
            operation,
        };
        case.check(seed).map_err(|fault| TestCaseError::fail(format!("{case:#?}\n{fault}")))?;
    }
}

#[test]
fn one_tier_of_every_level_and_size() {
    use Operation as O;
    for (level, size) in Level::ALL
        .into_iter()
        .flat_map(|level| (1..=13).map(move |size| (level, size)))
    {
        let network = Network::plain(Shape::flat(size, level));
        for operation in [
            O::Barrier,
            O::Allreduce,
            O::Scan,
            O::Reduce,
            O::Allgather,
            O::ReduceScatterBlock,
        ] {
            for (units, unit_bytes) in [(2, 8), (24, 8_000), (24, 600_000)] {
                let root = size / 2;
                let call = Call {
                    commutative: false,
                    unit_bytes,
                    root,
                    ..Call::new(operation, units)
                };
                let case = Case {
                    call,
                    ..Case::new(&network, operation, units)
                };
                case.check(u64::from(size))
                    .unwrap_or_else(|fault| panic!("{operation:?}, {size} at {level}: {fault}"));
            }
        }
    }
}
