// SPDX-License-Identifier: Apache-2.0
//! The least times that any algorithm can need: by latency, and by the capacity of cuts between sites.

use super::grid::Grid;

/// Share of a link's rate that is payload of TCP: 1448 of 1538 bytes of each packet on the line.
pub(super) const PAYLOAD_SHARE: f64 = 1448.0 / 1538.0;

/// Whose results depend on whose data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depends {
    /// Everybody's on everybody's.
    All,
    /// Everybody's on the root's.
    From(usize),
    /// The root's on everybody's.
    To(usize),
    /// On those of lower ranks.
    Lower,
}

impl Depends {
    /// Of an operation with such a name.
    pub(super) fn of(operation: &str, root: usize) -> Self {
        match blocking(operation) {
            "bcast" | "scatter" | "scatterv" => Self::From(root),
            "reduce" | "gather" | "gatherv" | "incast" => Self::To(root),
            "scan" | "exscan" => Self::Lower,
            _ => Self::All,
        }
    }

    fn needs(self, from: usize, to: usize) -> bool {
        match self {
            Self::All => from != to,
            Self::From(root) => from == root && to != root,
            Self::To(root) => to == root && from != root,
            Self::Lower => from < to,
        }
    }
}

/// The blocking form of an operation that is named as in MPI, without the algorithm that a test may name behind it
/// (`bcast/binomial`): no algorithm is quicker than the operation allows.
fn blocking(operation: &str) -> &str {
    let name = operation.split('/').next().unwrap_or(operation);
    match name.strip_prefix('i') {
        Some(plain) if name != "incast" => plain,
        _ => name,
    }
}

/// When the last rank can be done at the earliest, seconds after the start: the greatest latency between two ranks of
/// which one needs the other's data. `begins` says how late each rank began; nothing leaves it before.
pub(super) fn latency(grid: &Grid, depends: Depends, relay: bool, begins: &[f64]) -> f64 {
    let (spots, least) = (grid.spots(), grid.latencies(relay));
    let mut bound: f64 = 0.0;
    for (from, a) in spots.iter().enumerate() {
        for (to, b) in spots.iter().enumerate() {
            if depends.needs(from, to) {
                let begin = begins.get(from).copied().unwrap_or(0.0);
                bound = bound.max(begin + least[a.machine][b.machine]);
            }
        }
    }
    bound
}

/// A bound by bandwidth, and how it comes about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bandwidth {
    pub(super) seconds: f64,
    pub(super) why: String,
}

/// When the last byte can have crossed at the earliest. `bytes` as `bench/collectives.c` takes them. Every set of sites
/// is a cut; a reduction to all besides needs every element to be sent 2 (sites - 1) times: sites - 1 times until it
/// is the sum of all, sites - 1 times until all have it.
pub(super) fn bandwidth(grid: &Grid, operation: &str, root: usize, bytes: f64) -> Bandwidth {
    let mut worst = Bandwidth {
        seconds: 0.0,
        why: "nothing crosses".to_owned(),
    };
    let mut offer = |crossing: f64, capacity: f64, what: &str| {
        let seconds = crossing * 8.0 / capacity;
        if seconds > worst.seconds * (1.0 + 1e-9) {
            worst = Bandwidth {
                seconds,
                why: format!("{what}: {} over {:.2} Mbit/s", mebibytes(crossing), capacity / 1e6),
            };
        }
    };
    let sites = grid.sites();
    for set in 1..(1usize << sites) - 1 {
        let inside = |site: usize| set >> site & 1 == 1;
        let crossing = crossing(grid, operation, root, bytes, &inside);
        let capacity = capacity(grid, &|a, b| inside(a) && !inside(b));
        let names: Vec<&str> = (0..sites).filter(|&s| inside(s)).map(|s| grid.site_name(s)).collect();
        offer(crossing, capacity, &format!("out of {{{}}}", names.join(", ")));
    }
    if blocking(operation) == "allreduce" {
        let crossing = 2.0 * (sites - 1) as f64 * bytes;
        offer(
            crossing,
            capacity(grid, &|_, _| true),
            "all links, each element 2 (sites - 1) times",
        );
    }
    worst
}

/// Bits per second of payload over the chosen directions of links.
fn capacity(grid: &Grid, chosen: &dyn Fn(usize, usize) -> bool) -> f64 {
    let all = 0..grid.sites();
    let pairs = all.clone().flat_map(|a| all.clone().map(move |b| (a, b)));
    let rates = pairs
        .filter(|&(a, b)| a != b && chosen(a, b))
        .map(|(a, b)| grid.rate(a, b));
    rates
        .map(|rate| rate.map_or(f64::INFINITY, |rate| rate as f64 * PAYLOAD_SHARE))
        .sum()
}

/// Bytes that must leave the sites that are `inside`, whoever carries them.
fn crossing(grid: &Grid, operation: &str, root: usize, bytes: f64, inside: &dyn Fn(usize) -> bool) -> f64 {
    let ranks_in = (0..grid.sites())
        .filter(|&s| inside(s))
        .map(|s| grid.ranks_at(s))
        .sum::<usize>();
    let (ranks_in, ranks_out) = (ranks_in as f64, (grid.ranks() - ranks_in) as f64);
    let root_inside = grid.spots().get(root).is_some_and(|spot| inside(spot.site));
    match blocking(operation) {
        "bcast" if root_inside => bytes,
        "scatter" if root_inside => bytes * ranks_out,
        "reduce" if !root_inside => bytes,
        "gather" if !root_inside => bytes * ranks_in,
        "allreduce" => bytes,
        "allgather" => bytes * ranks_in,
        "alltoall" => bytes * ranks_in * ranks_out,
        "reduce_scatter" | "reduce_scatter_block" => bytes * ranks_out,
        _ => 0.0,
    }
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.2} MiB", bytes / 1_048_576.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn three() -> Grid {
        let ms = Duration::from_millis;
        let sites: [(&str, &[usize]); 3] = [("a", &[4, 4]), ("b", &[4, 4]), ("c", &[4, 4])];
        Grid::new(&sites, ms(20), 100_000_000)
            .between("b", "c", ms(40))
            .between("a", "c", ms(75))
            .local(ms(1))
    }

    fn ms(grid: &Grid, operation: &str, root: usize, relay: bool) -> f64 {
        let seconds = latency(grid, Depends::of(operation, root), relay, &[]);
        (seconds * 1e6).round() / 1e3
    }

    #[test]
    fn latency_bounds_of_three_sites() {
        let grid = three();
        for operation in [
            "barrier",
            "iallreduce",
            "alltoallv",
            "reduce_scatter",
            "scan",
            "iexscan",
        ] {
            assert_eq!(
                (ms(&grid, operation, 0, true), ms(&grid, operation, 0, false)),
                (30.0, 37.5),
                "{operation}"
            );
        }
        for operation in ["bcast", "igather", "scatterv", "reduce", "incast"] {
            assert_eq!(
                (ms(&grid, operation, 0, true), ms(&grid, operation, 0, false)),
                (30.0, 37.5),
                "{operation}"
            );
            assert_eq!(
                (ms(&grid, operation, 8, true), ms(&grid, operation, 12, false)),
                (20.0, 20.0),
                "{operation}"
            );
        }
    }

    #[test]
    fn a_rank_that_begins_late_moves_the_bound_only_where_it_matters() {
        let grid = three();
        let mut begins = vec![0.0; 24];
        begins[0] = 0.005;
        let late = |operation, root| latency(&grid, Depends::of(operation, root), true, &begins);
        assert!((late("bcast", 0) - 0.035).abs() < 1e-9);
        assert!((late("bcast", 8) - 0.020).abs() < 1e-9);
        assert!((late("barrier", 0) - 0.035).abs() < 1e-9);
        begins[0] = 0.0;
        begins[23] = 0.005;
        let late = |operation, root| latency(&grid, Depends::of(operation, root), true, &begins);
        assert!((late("scan", 0) - 0.030).abs() < 1e-9, "nobody waits for the last rank");
    }

    #[test]
    fn bandwidth_bounds_of_three_sites() {
        let grid = three();
        let n = 16.0 * 1_048_576.0;
        let line = n * 8.0 / (1e8 * PAYLOAD_SHARE);
        let check = |operation, bytes, shares: f64| {
            let bound = bandwidth(&grid, operation, 0, bytes);
            assert!((bound.seconds / line - shares).abs() < 1e-9, "{operation}: {bound:?}");
        };
        check("bcast", n, 0.5);
        check("reduce", n, 0.5);
        check("allreduce", n, 2.0 / 3.0);
        check("iallgather", n / 24.0, 1.0 / 3.0);
        // From site to site 8 x 8 blocks of n/24.
        check("alltoall", n / 24.0, 64.0 / 24.0);
        check("barrier", 0.0, 0.0);
        assert_eq!(
            bandwidth(&grid, "bcast", 0, n).why,
            "out of {a}: 16.00 MiB over 188.30 Mbit/s"
        );
    }
}
