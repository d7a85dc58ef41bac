// SPDX-License-Identifier: Apache-2.0
//! Every operation, on random groups.

use isthmus_schedule::check::{Case, Counts, Graph, Groups};
use isthmus_schedule::{Call, Operation};
use isthmus_topology::{Level, Shape};
use proptest::prelude::*;
use std::sync::Arc;

/// 1 to `most` processes, 1 to 5 levels, uneven clusters, with ranks in order or interleaved.
fn shapes(most: u32) -> impl Strategy<Value = Arc<Shape>> {
    let colours = proptest::collection::vec(proptest::array::uniform4(0u32..3), most as usize);
    (1..=most, 1usize..=5, colours, any::<bool>()).prop_map(|(size, levels, mut colours, ordered)| {
        colours.truncate(size as usize);
        if ordered {
            colours.sort();
        }
        Arc::new(Shape::from_colours(&Level::ALL[5 - levels..], size, |rank, depth| {
            colours[rank as usize][depth]
        }))
    })
}

/// A call of one of these operations.
fn calls(operations: &'static [Operation]) -> impl Strategy<Value = Call> {
    let units = prop_oneof![2 => 0u64..4, 5 => 1u64..20];
    // The same few units, as short, medium or long messages, in whole or in pieces.
    let unit_bytes = prop_oneof![Just(1u64), Just(700), Just(9_000), Just(70_000), Just(600_000)];
    let flags = (any::<bool>(), any::<bool>(), 1u64..4);
    (
        proptest::sample::select(operations),
        any::<u32>(),
        units,
        unit_bytes,
        flags,
    )
        .prop_map(
            |(operation, root, units, unit_bytes, (commutative, in_place, granule))| Call {
                root,
                commutative,
                in_place,
                unit_bytes,
                granule,
                ..Call::new(operation, units)
            },
        )
}

fn check(shape: &Arc<Shape>, mut call: Call, counts: Counts, seed: u64) -> Result<(), TestCaseError> {
    call.root %= shape.size();
    let case = Case {
        shape: Arc::clone(shape),
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
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn moving(shape in shapes(40), call in calls(&[Operation::Barrier, Operation::Bcast, Operation::Gather, Operation::Scatter,
        Operation::Allgather]), seed in any::<u64>()) {
        let n = units(&call);
        check(&shape, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn combining(shape in shapes(40), call in calls(&[Operation::Reduce, Operation::Allreduce, Operation::Scan,
        Operation::Exscan]), seed in any::<u64>()) {
        let n = units(&call);
        check(&shape, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn unequal_blocks(shape in shapes(40), call in calls(&[Operation::Gatherv, Operation::Scatterv,
        Operation::Allgatherv]), sizes in proptest::collection::vec(0u64..6, 40), seed in any::<u64>()) {
        let sizes = sizes[..shape.size() as usize].to_vec();
        check(&shape, call, Counts::Each(sizes), seed)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reduce_scatter(shape in shapes(24), call in calls(&[Operation::ReduceScatter]),
        sizes in proptest::collection::vec(0u64..4, 24), seed in any::<u64>()) {
        let sizes = sizes[..shape.size() as usize].to_vec();
        check(&shape, call, Counts::Each(sizes), seed)?;
    }

    #[test]
    fn reduce_scatter_block(shape in shapes(24), call in calls(&[Operation::ReduceScatterBlock]), seed in any::<u64>()) {
        let n = units(&call) % 5;
        check(&shape, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn alltoall(shape in shapes(24), call in calls(&[Operation::Alltoall]), seed in any::<u64>()) {
        let n = units(&call) % 4;
        check(&shape, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn alltoallv(shape in shapes(24), call in calls(&[Operation::Alltoallv]),
        sizes in proptest::collection::vec(proptest::collection::vec(0u64..4, 24), 24), seed in any::<u64>()) {
        let p = shape.size() as usize;
        let of = |i: usize, j: usize| if call.in_place { sizes[i.min(j)][i.max(j)] } else { sizes[i][j] };
        let sizes = (0..p).map(|i| (0..p).map(|j| of(i, j)).collect()).collect();
        check(&shape, call, Counts::Pairs(sizes), seed)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fixed_order(shape in shapes(40), call in calls(&[Operation::Reduce, Operation::Allreduce, Operation::Scan,
        Operation::Exscan, Operation::ReduceScatterBlock]), seed in any::<u64>()) {
        let call = Call { fixed: true, commutative: false, ..call };
        let n = units(&call) % 8;
        check(&shape, call, Counts::Equal(n), seed)?;
    }

    #[test]
    fn fixed_order_of_unequal_blocks(shape in shapes(24), call in calls(&[Operation::ReduceScatter]),
        sizes in proptest::collection::vec(0u64..4, 24), seed in any::<u64>()) {
        let call = Call { fixed: true, ..call };
        let sizes = sizes[..shape.size() as usize].to_vec();
        check(&shape, call, Counts::Each(sizes), seed)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn between_groups(shape in shapes(24), low in any::<u32>(), call in calls(&[Operation::Barrier, Operation::Bcast,
        Operation::Reduce, Operation::Gather, Operation::Gatherv, Operation::Scatter, Operation::Scatterv,
        Operation::Allgather, Operation::Allgatherv, Operation::Alltoall, Operation::Alltoallv, Operation::Allreduce,
        Operation::ReduceScatter, Operation::ReduceScatterBlock]),
        units in proptest::collection::vec(0u64..5, 24), seed in any::<u64>()) {
        prop_assume!(shape.size() > 1);
        let low = 1 + low % (shape.size() - 1);
        let call = Call { root: call.root % shape.size(), in_place: false, ..call };
        let case = Groups { shape, low, call, units };
        case.check(seed).map_err(|fault| TestCaseError::fail(format!("{case:#?}\n{fault}")))?;
    }

    #[test]
    fn between_groups_at_two_sites(low in 1u32..12, high in 1u32..12, machines in proptest::collection::vec(0u32..3, 24),
        call in calls(&[Operation::Alltoall, Operation::Allgather, Operation::Allreduce]),
        units in proptest::collection::vec(0u64..5, 24), seed in any::<u64>()) {
        let levels = [Level::WideArea, Level::LocalArea, Level::Node];
        let shape = Arc::new(Shape::from_colours(&levels, low + high, |rank, depth| match depth {
            0 => u32::from(rank >= low),
            _ => machines[rank as usize],
        }));
        let call = Call { root: 0, in_place: false, ..call };
        let case = Groups { shape, low, call, units };
        case.check(seed).map_err(|fault| TestCaseError::fail(format!("{case:#?}\n{fault}")))?;
    }

    #[test]
    fn neighbourhoods(shape in shapes(24), each in any::<bool>(), units in 0u64..4,
        edges in proptest::collection::vec((0u32..24, 0u32..24), 0..120), seed in any::<u64>()) {
        let p = shape.size();
        let operation = if each { Operation::NeighborAlltoallv } else { Operation::NeighborAllgatherv };
        let size = |i: usize, from: u32| if each { (units + i as u64) % 4 } else { u64::from(from) % 3 };
        let edges = edges.iter().enumerate().map(|(i, (a, b))| (a % p, b % p, size(i, a % p))).collect();
        let case = Graph { shape, edges, operation };
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
        let shape = Arc::new(Shape::flat(size, level));
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
                    ..Case::new(&shape, operation, units)
                };
                case.check(u64::from(size))
                    .unwrap_or_else(|fault| panic!("{operation:?}, {size} at {level}: {fault}"));
            }
        }
    }
}
