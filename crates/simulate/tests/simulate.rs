// SPDX-License-Identifier: Apache-2.0
//! The simulator: times computed by hand, bounds of latency and bandwidth, and the checker's counts for random worlds.

#[path = "../../schedule/tests/seeded/mod.rs"]
mod seeded;

use isthmus_schedule::{Blocks, Call, Network, Operation, Overrides, Steps, explain, steps_together};
use isthmus_simulate::check::{Case, Counts};
use isthmus_simulate::{Kind, Limits, Outcome, Stopped, simulate};
use isthmus_topology::{Curve, Level, Link, Links, Topology};
use proptest::prelude::*;
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

const MS: u64 = 1_000_000;

/// Sites of machines of processes, ranks in order.
fn grid(sites: u32, machines: u32, processes: u32) -> Topology {
    let per_site = machines * processes;
    Topology::from_clusters((0..sites * per_site).map(|r| [r / per_site, r / processes, r / processes]))
}

/// Wide area: latency 1000 ns, 1 byte/ns, overheads 10 and 20 ns. Node: 100 ns, 10 bytes/ns, 1 and 2 ns.
fn small_links() -> Links {
    let link = |latency, rate: u64, send, receive| Link {
        latency,
        gap: Curve::rate(rate),
        send: Curve::constant(send),
        receive: Curve::constant(receive),
    };
    let (slow, fast) = (link(1000, 1_000_000_000, 10, 20), link(100, 10_000_000_000, 1, 2));
    Links::alike([slow.clone(), slow.clone(), slow, fast.clone(), fast])
}

/// One-way latencies and nothing else.
fn latencies(wide: u64, local: u64) -> Links {
    let link = |latency| Link {
        latency,
        ..Link::default()
    };
    Links::alike([link(wide), link(local), link(0), link(0), link(0)])
}

fn network_of(topology: &Topology, links: &Links) -> Arc<Network> {
    Network::of_world(topology, Arc::new(links.clone()), Arc::default())
}

fn run(call: &Call, topology: &Topology, links: &Links) -> Outcome {
    simulate(call, topology, &network_of(topology, links), Limits::default())
        .unwrap_or_else(|stopped| panic!("{call:?}: {stopped}"))
}

#[test]
fn steps_of_a_machines_own_mpi_begin_when_all_have_come() {
    // Ranks 0 to 3: a job over two nodes; rank 4: elsewhere.
    let places = [[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1], [1, 1, 2]];
    let topology = Topology::from_clusters(places).with_vendor_jobs(|machine| machine == 0);
    let mut links = small_links();
    links.copy = Curve::rate(1_000_000_000);
    let time = |operation, bytes, root| {
        let call = Call {
            nodes: true,
            root,
            ..Call::new(operation, bytes)
        };
        let rules = Overrides::parse("*@vendor=together").unwrap();
        let network = Network::of_world(&topology, Arc::new(links.clone()), Arc::new(rules));
        let steps = steps_together(&call, &network, true);
        assert_eq!(steps, Steps::Jobs, "{operation:?}");
        let told = explain(&call, &network);
        let taken: Vec<_> = told.iter().filter(|candidate| candidate.chosen).collect();
        assert!(taken.len() == 1 && taken[0].natively, "{operation:?}");
        let outcome = simulate(&call, &topology, network.of_steps(steps), Limits::default()).unwrap();
        let counted = &outcome.crossings.messages;
        assert_eq!([Level::Vendor, Level::Node].map(|level| counted[level.index()]), [0, 0]);
        (outcome.finished, taken[0].total)
    };
    // A message of 32 bytes between two nodes: 1 + 3 + 100 + 2 ns. In a node: 100 ns, and 32 ns to write and to read.
    let inside = (1 + 3 + 100 + 2) + (100 + 2 * 32);
    // Over the wide area: 10 + 32 + 1000 + 20 ns.
    let (finished, cost) = time(Operation::Bcast, 32, 4);
    let last = 1062 + inside;
    assert_eq!((finished, cost), (vec![last, last, last, last, 42], last));
    // What each node has of blocks, 64 bytes, passes between them: 1 + 6 + 100 + 2 ns; 128 are written and read. Then
    // they leave together.
    let (finished, _) = time(Operation::Gather, 32, 4);
    let gathered = (1 + 6 + 100 + 2) + (100 + 2 * 128);
    assert_eq!(finished[1..4], [gathered; 3]);
    assert_eq!(finished[4], gathered + 10 + 128 + 1000 + 20);
}

/// A window of 400 bytes: 400 in the first round, 800 after 2000 ns, which is more than the rest.
#[test]
fn a_new_connection_by_hand() {
    let cold = Limits {
        window: Some(400),
        ..Limits::default()
    };
    let (topology, links) = (grid(2, 1, 1), small_links());
    let time = |bytes, limits| {
        let call = Call::new(Operation::Bcast, bytes);
        simulate(&call, &topology, &network_of(&topology, &links), limits)
            .expect("an outcome")
            .time()
    };
    // Leaves at 10; the first 400 bytes are acknowledged at 2010, the other 600 take 600 and 1000 under way, busy 20.
    assert_eq!(time(1000, cold), 2010 + 600 + 1000 + 20);
    assert_eq!(time(1000, Limits::default()), 2030);
    assert_eq!(time(400, cold), time(400, Limits::default()));
    // Two more rounds of 800 and 1600 bytes, acknowledged at 4010.
    assert_eq!(time(2000, cold), 4010 + 800 + 1000 + 20);
}

/// What a first window of TCP does not hold goes through several leaders, who have one each; that costs nothing where
/// windows are open.
#[test]
fn idle_connections_share_a_message() {
    let wide = Link::simple(20 * MS, 12_500_000, 10_000);
    let near = Link::simple(500, 5_000_000_000, 300);
    let local = Link::simple(MS / 2, 125_000_000, 5_000);
    let links = Links::alike([wide, local, near.clone(), near.clone(), near]);
    let idle = Limits {
        window: Some(10 * 1448),
        ..Limits::default()
    };
    let two_sites = Topology::from_clusters((0..48).map(|r| [u32::from(r >= 16), r / 16, r / 16]));
    for topology in [two_sites, grid(3, 2, 4)] {
        let time = |operation, kib: u64, said: &str, limits| {
            let overrides = Overrides::parse(said).expect("an override");
            let network = Network::of_world(&topology, Arc::new(links.clone()), Arc::new(overrides));
            let call = Call::new(operation, kib << 10);
            simulate(&call, &topology, &network, limits).expect("an outcome").time()
        };
        for operation in [Operation::Bcast, Operation::Reduce] {
            for kib in [16, 24, 64] {
                let tree = format!("{}=tree", operation.name());
                let (open, first) = (
                    time(operation, kib, "", Limits::default()),
                    time(operation, kib, "", idle),
                );
                assert!(
                    first <= open + open / 20,
                    "{operation:?} of {kib} KiB: {first} and {open}"
                );
                assert!(open <= time(operation, kib, &tree, Limits::default()) * 17 / 16);
                assert!(time(operation, kib, &tree, idle) > 2 * first);
            }
            // More than they hold: few connections open sooner.
            assert_eq!(
                time(operation, 256, "", idle),
                time(operation, 256, &format!("{}=tree", operation.name()), idle)
            );
        }
    }
}

#[test]
fn two_processes_by_hand() {
    let outcome = run(&Call::new(Operation::Bcast, 1000), &grid(2, 1, 1), &small_links());
    // Busy 10, on the link 1000, under way 1000, busy 20. The root is done when the link has taken all.
    assert_eq!(outcome.finished, [1010, 2030]);
    let path: Vec<_> = outcome
        .critical_path()
        .iter()
        .map(|r| (r.kind, r.rank, r.begin, r.end))
        .collect();
    assert_eq!(
        path,
        [
            (Kind::Send, 0, 0, 10),
            (Kind::Link, 0, 10, 2010),
            (Kind::Receive, 1, 2010, 2030)
        ]
    );
    assert_eq!((outcome.links.len(), outcome.links[0].busy), (1, 1000));
}

#[test]
fn three_processes_by_hand() {
    // Three sites: the second send begins when the first leaves the process; each has a link of its own.
    let outcome = run(&Call::new(Operation::Bcast, 1000), &grid(3, 1, 1), &small_links());
    assert_eq!(outcome.finished.iter().sum::<u64>(), 1020 + 2030 + 2040);
    // A site alone and a site with two: the leader receives until 2030, and is busy for 1 ns; 100 ns on the link, 100
    // under way, busy for 2.
    let topology = Topology::from_clusters([[0, 0, 0], [1, 1, 1], [1, 1, 1]]);
    let outcome = run(&Call::new(Operation::Bcast, 1000), &topology, &small_links());
    assert_eq!(outcome.finished, [1010, 2131, 2233]);
}

#[test]
fn messages_wait_for_a_link_that_they_share() {
    // Blocks too large to go through leaders: four messages each way between the sites.
    let outcome = run(&Call::new(Operation::Alltoall, 10_000), &grid(2, 1, 2), &small_links());
    let wide: Vec<_> = outcome.links.iter().filter(|l| l.level == Level::WideArea).collect();
    assert_eq!(wide.len(), 2);
    for link in wide {
        assert_eq!((link.messages, link.bytes, link.busy), (4, 40_000, 40_000));
    }
    assert!(outcome.time() >= 40_000 + 1000, "{}", outcome.time());
    assert!(outcome.time() <= 40_000 + 1000 + 100, "{}", outcome.time());
}

#[test]
fn latency_bounds_over_three_sites() {
    let topology = grid(3, 2, 4);
    let time = |operation, root| {
        let call = Call {
            root,
            ..Call::new(operation, 8)
        };
        run(&call, &topology, &latencies(20 * MS, MS)).time()
    };
    for root in 0..24 {
        // One wide trip and, in the other sites, one between machines.
        assert_eq!(time(Operation::Bcast, root), 21 * MS, "root {root}");
        assert_eq!(time(Operation::Reduce, root), 21 * MS, "root {root}");
    }
    assert_eq!(time(Operation::Barrier, 0), 22 * MS);
    assert_eq!(time(Operation::Allreduce, 0), 22 * MS);
}

#[test]
fn a_pair_of_sites_with_a_longer_way_is_gone_around() {
    let mut links = latencies(20 * MS, MS);
    links.set_pair(
        2,
        0,
        Link {
            latency: 75 * MS,
            ..Link::default()
        },
    );
    // Through the site between them it is nearer.
    let bcast = |root| Call {
        root,
        ..Call::new(Operation::Bcast, 8)
    };
    assert_eq!(run(&bcast(0), &grid(3, 2, 4), &links).time(), 41 * MS);
    links.set_pair(
        0,
        2,
        Link {
            latency: 30 * MS,
            ..Link::default()
        },
    );
    assert_eq!(run(&bcast(0), &grid(3, 2, 4), &links).time(), 31 * MS);
}

#[test]
fn long_messages_fill_the_link() {
    // 16 MiB at 100 Mbit/s: half of it, 671 ms, on each of the root's links and on from there, in pieces that follow
    // each other: 40 ms under way, and the last piece is on a link twice.
    let mut links = latencies(20 * MS, 0);
    links.set_level(
        Level::WideArea,
        Link {
            latency: 20 * MS,
            gap: Curve::rate(12_500_000),
            ..Link::default()
        },
    );
    let outcome = run(&Call::new(Operation::Bcast, 16 << 20), &grid(3, 2, 4), &links);
    let bound = 671_088_640 + 40 * MS;
    // Pieces are rounded down to whole nanoseconds.
    assert!(
        outcome.time() + 1024 >= bound && outcome.time() <= bound + bound / 32,
        "{}",
        outcome.time()
    );
}

#[test]
fn pieces_that_keep_in_step_do_not_wait_for_latencies() {
    // 16 MiB at 1 Gbit/s. Half of it on each link, combined on the way: two trips. Or a third to and a third from each
    // other site on each link, in both directions: links are busy from the first moment on, and the last piece needs
    // one trip.
    let mut links = latencies(20 * MS, 0);
    let wide = Link {
        latency: 20 * MS,
        gap: Curve::rate(125_000_000),
        ..Link::default()
    };
    links.set_level(Level::WideArea, wide);
    for (operation, bytes, trips) in [
        (Operation::Reduce, 8 << 20, 2),
        (Operation::Allreduce, (16 << 20) * 2 / 3, 1),
    ] {
        // Steps of a node are in the order of pieces, whatever their shares.
        let call = Call {
            nodes: true,
            ..Call::new(operation, 16 << 20)
        };
        let time = run(&call, &grid(3, 2, 4), &links).time();
        let bound = bytes * 8 + trips * 20 * MS;
        // Pieces are rounded down to whole nanoseconds.
        assert!(
            time + 1024 >= bound && time <= bound + bound / 8,
            "{operation:?}: {time}, {bound}"
        );
    }
}

#[test]
fn limits_end_a_simulation_or_its_records() {
    let (call, topology, links) = (Call::new(Operation::Allreduce, 8), grid(3, 2, 4), small_links());
    let all = run(&call, &topology, &links);
    let few = Limits {
        records: 10,
        ..Limits::default()
    };
    let outcome = simulate(&call, &topology, &network_of(&topology, &links), few).unwrap();
    assert!(outcome.records_dropped && outcome.critical_path().is_empty());
    assert_eq!(outcome.finished, all.finished);
    let none = Limits {
        events: 10,
        ..Limits::default()
    };
    assert_eq!(
        simulate(&call, &topology, &network_of(&topology, &links), none),
        Err(Stopped::TooLong { events: 10 })
    );
}

fn worlds() -> impl Strategy<Value = Topology> {
    prop::collection::vec((0u32..4, 0u32..3, 0u32..2), 1..30).prop_map(|places| {
        Topology::from_clusters(places.into_iter().map(|(s, m, n)| [s, 3 * s + m, 6 * s + 2 * m + n]))
    })
}

proptest! {
    #![proptest_config(seeded::cases(96))]

    #[test]
    fn every_process_completes_and_crossings_are_the_checkers(
        topology in worlds(),
        operation in prop::sample::select(&OPERATIONS[..]),
        units in prop::sample::select(&[0u64, 1, 7, 600, 70_000][..]),
        root in 0u32..30,
        commutative in any::<bool>(),
    ) {
        let rooted = matches!(operation, Operation::Bcast | Operation::Reduce | Operation::Gather | Operation::Scatter);
        let root = if rooted { root % topology.size() } else { 0 };
        let call = Call { root, commutative, ..Call::new(operation, units) };
        let outcome = run(&call, &topology, &small_links());
        prop_assert_eq!(outcome.finished.len() as u32, topology.size());
        prop_assert_eq!(&outcome, &run(&call, &topology, &small_links()));
        // The path has no holes and explains the whole time.
        let path = outcome.critical_path();
        prop_assert_eq!(path.iter().map(|r| r.end - r.begin).sum::<u64>(), outcome.time());
        prop_assert!(path.windows(2).all(|w| w[0].end == w[1].begin));
        if units <= 600 {
            let network = network_of(&topology, &small_links());
            let case = Case { call, ..Case::new(&network, operation, units) };
            let report = case.check(1).map_err(|f| TestCaseError::fail(f.to_string()))?;
            prop_assert_eq!(outcome.crossings, report.data);
        }
    }
}

proptest! {
    #![proptest_config(seeded::cases(48))]

    #[test]
    fn unequal_blocks_cross_as_in_the_checker_after_their_counts(
        topology in worlds(),
        sizes in prop::collection::vec(0u64..50, 30),
        root in 0u32..30,
        gathers in any::<bool>(),
    ) {
        let root = root % topology.size();
        let operation = if gathers { Operation::Gatherv } else { Operation::Scatterv };
        let sizes: Vec<u64> = sizes.into_iter().take(topology.size() as usize).collect();
        let call = Call { root, blocks: Blocks::known(sizes.iter().copied()), ..Call::new(operation, 0) };
        let network = Network::of_world(&topology, Arc::new(small_links()), Arc::default());
        let outcome = simulate(&call, &topology, &network, Limits::default()).unwrap();
        let equal = Case::new(&network, operation, 0);
        let case = Case { call: Call { root, ..Call::new(operation, 0) }, counts: Counts::Each(sizes), ..equal };
        let report = case.check(1).map_err(|f| TestCaseError::fail(f.to_string()))?;
        let both = |i: usize| report.data.messages[i] + report.counts.messages[i];
        for level in 0..5 {
            prop_assert_eq!(outcome.crossings.messages[level], both(level));
        }
    }
}
