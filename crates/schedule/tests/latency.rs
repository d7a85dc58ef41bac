// SPDX-License-Identifier: Apache-2.0
//! Short messages between sites whose links are unlike take no longer than the latencies that no algorithm can avoid,
//! nearly.
//!
//! Three sites of two machines of four processes; 10, 20 and 37.5 ms one way between the sites, so that the way between
//! two of them is quickest through the third; 0.5 ms between the machines of a site.

use isthmus_schedule::{Blocks, Call, Network, Operation};
use isthmus_simulate::check::{Case, Counts};
use isthmus_simulate::{Limits, simulate};
use isthmus_topology::{Level, Link, Links, Topology};
use std::sync::Arc;

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const PROCESSES: u32 = 24;

/// Site and machine of a rank: `order` says which of the sites comes first, second, third.
struct Grid {
    order: [u32; 3],
    /// Ranks go to sites in turn, not site by site.
    dealt: bool,
}

impl Grid {
    fn all() -> impl Iterator<Item = Self> {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        orders
            .into_iter()
            .flat_map(|order| [false, true].map(|dealt| Self { order, dealt }))
    }

    fn site(&self, rank: u32) -> u32 {
        let number = if self.dealt { rank % 3 } else { rank / 8 };
        self.order[number as usize]
    }

    fn machine(&self, rank: u32) -> u32 {
        2 * self.site(rank) + if self.dealt { rank / 3 % 2 } else { rank / 4 % 2 }
    }

    fn topology(&self) -> Topology {
        Topology::from_clusters((0..PROCESSES).map(|r| [self.site(r), self.machine(r), self.machine(r)]))
    }

    /// Site 1 is in the middle.
    fn links(&self) -> Links {
        let link = |latency, overhead| Link::simple(latency, 12_500_000, overhead);
        let mut links = Links::alike([
            link(37_500 * US, 10 * US),
            Link::simple(500 * US, 125_000_000, 10 * US),
            Link::simple(300, 5_000_000_000, 200),
            Link::simple(300, 5_000_000_000, 200),
            Link::simple(300, 5_000_000_000, 200),
        ]);
        links.set_pair(0, 1, link(10 * MS, 10 * US));
        links.set_pair(1, 2, link(20 * MS, 10 * US));
        links.set_pair(0, 2, link(37_500 * US, 10 * US));
        links
    }

    /// The least time in which anything can come from one process to another, if computing takes none.
    fn way(&self, from: u32, to: u32) -> u64 {
        match self.site(from).abs_diff(self.site(to)) {
            0 if self.machine(from) == self.machine(to) => 0,
            0 => 500 * US,
            2 => 30 * MS,
            _ if self.site(from) + self.site(to) == 1 => 10 * MS,
            _ => 20 * MS,
        }
    }

    /// What no algorithm can avoid.
    fn bound(&self, call: &Call) -> u64 {
        use Operation as O;
        let pairs = (0..PROCESSES).flat_map(|a| (0..PROCESSES).map(move |b| (a, b)));
        let matters = |&(a, b): &(u32, u32)| match call.operation {
            O::Bcast | O::Scatter | O::Scatterv => a == call.root,
            O::Reduce | O::Gather | O::Gatherv => b == call.root,
            O::Scan | O::Exscan => a < b,
            _ => true,
        };
        pairs.filter(matters).map(|(a, b)| self.way(a, b)).max().unwrap_or(0)
    }
}

/// Fails where a call takes more than 1.1 times the bound and 1 ms.
fn check(grid: &Grid, network: &Arc<Network>, topology: &Topology, call: &Call) {
    let time = simulate(call, topology, network, Limits::default())
        .expect("an end")
        .time();
    let (bound, what) = (grid.bound(call), (grid.order, grid.dealt, call.operation, call.root));
    assert!(time >= bound, "{what:?} takes {time} ns, less than can be");
    assert!(
        time <= bound + bound / 10 + MS,
        "{what:?} takes {time} ns, at least {bound} are needed"
    );
}

#[test]
fn short_messages_take_hardly_more_than_the_latency_that_cannot_be_avoided() {
    use Operation as O;
    for grid in Grid::all() {
        let topology = grid.topology();
        let network = Network::of_world(&topology, Arc::new(grid.links()), Arc::default());
        for operation in [O::Bcast, O::Reduce, O::Gather, O::Scatter] {
            for root in 0..PROCESSES {
                let call = Call {
                    root,
                    ..Call::new(operation, 8)
                };
                check(&grid, &network, &topology, &call);
            }
        }
        for operation in [O::Gatherv, O::Scatterv] {
            for root in 0..PROCESSES {
                let blocks = Blocks::known((0..PROCESSES).map(|rank| u64::from(rank % 5)));
                let call = Call {
                    root,
                    blocks,
                    ..Call::new(operation, 0)
                };
                check(&grid, &network, &topology, &call);
            }
        }
        for operation in [
            O::Barrier,
            O::Allreduce,
            O::Allgather,
            O::Alltoall,
            O::Scan,
            O::Exscan,
            O::ReduceScatterBlock,
        ] {
            check(&grid, &network, &topology, &Call::new(operation, 8));
        }
        for operation in [O::Alltoallv, O::Alltoallw, O::Allgatherv, O::ReduceScatter] {
            for smallest in [0, 1, 8] {
                let blocks = Blocks::known((0..PROCESSES).map(|rank| smallest + u64::from(rank % 5)));
                let call = Call {
                    blocks,
                    ..Call::new(operation, 0)
                };
                check(&grid, &network, &topology, &call);
            }
        }
    }
}

#[test]
fn the_fixed_order_takes_no_longer() {
    use Operation as O;
    for grid in Grid::all() {
        let topology = grid.topology();
        let network = Network::of_world(&topology, Arc::new(grid.links()), Arc::default());
        for (operation, root) in [
            (O::Reduce, 0),
            (O::Reduce, 23),
            (O::Allreduce, 0),
            (O::Scan, 0),
            (O::Exscan, 0),
            (O::ReduceScatterBlock, 0),
        ] {
            let call = Call {
                root,
                fixed: true,
                ..Call::new(operation, 8)
            };
            check(&grid, &network, &topology, &call);
        }
    }
}

/// Bytes between the two far sites, and over all links between sites, of a call with blocks of so many bytes each.
fn between_far_sites(grid: &Grid, operation: Operation, bytes: u64) -> (u64, u64) {
    let topology = grid.topology();
    let network = Network::of_world(&topology, Arc::new(grid.links()), Arc::default());
    let root = (0..PROCESSES)
        .find(|&rank| grid.site(rank) == 0)
        .expect("a process at site 0");
    let call = Call {
        root,
        blocks: Blocks::known((0..PROCESSES).map(|_| bytes)),
        ..Call::new(operation, 0)
    };
    let outcome = simulate(&call, &topology, &network, Limits::default()).expect("an end");
    let wide = outcome.links.iter().filter(|link| link.level == Level::WideArea);
    wide.fold((0, 0), |(far, all), link| match link.from.abs_diff(link.to) {
        2 => (far + link.bytes, all + link.bytes),
        _ => (far, all + link.bytes),
    })
}

#[test]
fn short_unequal_blocks_are_handed_on_and_long_ones_go_straight() {
    for grid in Grid::all() {
        for operation in [Operation::Gatherv, Operation::Scatterv] {
            let site = |bytes| 8 * bytes;
            // From site 2 over two links, from site 1 over one. Sizes go to those who hand blocks on or, of a scatterv,
            // do not know their own site's.
            let counts = match operation {
                Operation::Gatherv => site(8),
                _ => 3 * site(8),
            };
            assert_eq!(
                between_far_sites(&grid, operation, 8),
                (0, 3 * site(8) + counts),
                "{operation:?}"
            );
            let long = 1 << 20;
            assert_eq!(
                between_far_sites(&grid, operation, long),
                (site(long), 2 * site(long) + counts),
                "{operation:?}"
            );
        }
    }
}

#[test]
fn short_blocks_of_alltoallv_are_handed_on_without_lengths_ahead() {
    const WIDE: usize = Level::WideArea.index();
    for grid in Grid::all() {
        for seed in 0..8 {
            let mut links = grid.links();
            links.processors = 2 + 2 * (seed as u32 % 2);
            let network = Network::of_world(&grid.topology(), Arc::new(links), Arc::default());
            let sizes = (0..24).map(|i| (0..24).map(|j| (i / 4 + j / 3 + seed) % 3).collect());
            let case = Case {
                network: Arc::clone(&network),
                call: Call::new(Operation::Alltoallv, 0),
                counts: Counts::Pairs(sizes.collect()),
            };
            let report = case
                .check(seed)
                .unwrap_or_else(|fault| panic!("{:?}: {fault}", grid.order));
            // Both ways between the far sites through the middle one.
            let crossed = (report.data.messages[WIDE], report.counts.messages[WIDE]);
            assert_eq!(crossed, (6 + 2, 0), "{:?}, dealt {}", grid.order, grid.dealt);
        }
    }
}
