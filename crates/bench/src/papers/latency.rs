// SPDX-License-Identifier: Apache-2.0
//! Short collectives against the latency that no algorithm can avoid.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::bound::{Depends, latency};
use super::grid::Grid;
use super::lab::{Field, Lab};
use super::section::{Section, ms, none, spread_ms};
use super::times::{Repetition, Test, Times};
use crate::error::Error;
use crate::peers::Peer;
use crate::plot::{Bars, Series, Unit};
use crate::samples::Spread;

const BYTES: usize = 8;
const ROOTED: [&str; 6] = ["bcast", "reduce", "gather", "gatherv", "scatter", "scatterv"];
const OTHERS: [&str; 11] = [
    "barrier",
    "allreduce",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "scan",
    "exscan",
    "reduce_scatter",
    "reduce_scatter_block",
];

/// Three sites of two machines; the way from a to c is shorter by way of b.
pub(super) fn three_sites(ranks_per_machine: usize) -> Grid {
    let ms = Duration::from_millis;
    let machines: &[usize] = &[ranks_per_machine; 2];
    let sites = [("a", machines), ("b", machines), ("c", machines)];
    Grid::new(&sites, ms(20), 100_000_000)
        .between("b", "c", ms(40))
        .between("a", "c", ms(75))
        .local(ms(1))
}

/// First rank of the first site, one in the middle of the second site's second machine, the last of all.
pub(super) fn some_roots(grid: &Grid) -> [usize; 3] {
    let (ranks, each) = (grid.ranks(), grid.ranks() / 6);
    [0, 3 * each + each / 3, ranks - 1]
}

/// Blocking forms, then nonblocking ones.
fn tests(roots: [usize; 3]) -> Vec<Test> {
    let mut tests = Vec::new();
    for form in ["", "i"] {
        for name in OTHERS {
            tests.push(Test::new(&format!("{form}{name}"), 0, BYTES));
        }
        for name in ROOTED {
            tests.extend(roots.map(|root| Test::new(&format!("{form}{name}"), root, BYTES)));
        }
    }
    tests
}

pub(super) fn run(lab: &Lab) -> Result<Section, Error> {
    let grid = three_sites(lab.ranks_per_machine);
    let tests = tests(some_roots(&grid));
    let mut section = Section::new("Short collectives against the latency bound");
    section.texts.push(format!(
        "{} ranks, {BYTES} bytes, {}. The bound is the greatest one-way latency between two ranks of which one needs the \
         other's data: strict where messages may be relayed by other sites (a-b-c takes 30 ms, a-c 37.5 ms), direct where \
         they may not. Promise: within 1.10 x the strict bound + 1 ms. Times are free of what ranks that began late have \
         moved the bound by ({} ranks wake on few processors); the raw ones stand beside them.",
        grid.ranks(),
        grid.describe(),
        grid.ranks()
    ));
    let mut field = Field::default();
    let mut all: Vec<(&Peer, Times)> = Vec::new();
    for peer in &lab.peers {
        all.push((peer, field.collectives(lab, &grid, peer, &tests)?));
    }
    section.notes = field.end();
    let rows: Vec<Row> = tests.iter().map(|test| Row::new(&grid, test, &all)).collect();
    fill(&mut section, &grid, &rows, &lab.peers);
    Ok(section)
}

/// One test with every library.
struct Row {
    test: Test,
    strict: f64,
    direct: f64,
    /// By library, in their order.
    fair: Vec<Option<Spread>>,
    /// Of the first library.
    raw: Option<Spread>,
    lateness: Option<Spread>,
    /// Of the first library: when the last rank of each machine was done, median.
    machines: Vec<f64>,
}

impl Row {
    fn new(grid: &Grid, test: &Test, all: &[(&Peer, Times)]) -> Self {
        let depends = Depends::of(&test.name, test.root);
        let of = |times: &Times| times.get(test).cloned().unwrap_or_default();
        let fair = |(_, times): &(&Peer, Times)| {
            let values: Vec<f64> = of(times).iter().map(|r| r.fair(grid, depends)).collect();
            Spread::of(&values)
        };
        let first = all.first().map(|(_, times)| of(times)).unwrap_or_default();
        let spread = |value: &dyn Fn(&Repetition) -> f64| Spread::of(&first.iter().map(value).collect::<Vec<_>>());
        Self {
            test: test.clone(),
            strict: latency(grid, depends, true, &[]),
            direct: latency(grid, depends, false, &[]),
            fair: all.iter().map(fair).collect(),
            raw: spread(&Repetition::time),
            lateness: spread(&Repetition::lateness),
            machines: by_machine(grid, &first),
        }
    }

    fn limit(&self) -> f64 {
        self.strict * 1.1 + 0.001
    }

    fn met(&self) -> Option<bool> {
        Some(self.fair.first()?.as_ref()?.median <= self.limit())
    }

    fn met_direct(&self) -> Option<bool> {
        Some(self.fair.first()?.as_ref()?.median <= self.direct * 1.1 + 0.001)
    }
}

/// When the last rank of each machine was done: the median of the repetitions, seconds.
fn by_machine(grid: &Grid, repetitions: &[Repetition]) -> Vec<f64> {
    let mut last: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for repetition in repetitions {
        let mut ends: BTreeMap<usize, f64> = BTreeMap::new();
        for (spot, end) in grid.spots().iter().zip(&repetition.ends) {
            let machine = ends.entry(spot.machine).or_default();
            *machine = machine.max(*end);
        }
        for (machine, end) in ends {
            last.entry(machine).or_default().push(end);
        }
    }
    last.values()
        .filter_map(|ends| Spread::of(ends))
        .map(|spread| spread.median)
        .collect()
}

fn fill(section: &mut Section, grid: &Grid, rows: &[Row], peers: &[Peer]) {
    let measured: Vec<&Row> = rows.iter().filter(|row| row.raw.is_some()).collect();
    let count = |met: &dyn Fn(&Row) -> Option<bool>| measured.iter().filter(|row| met(row) == Some(true)).count();
    let within = count(&Row::met);
    section.promise(
        "every operation within 1.10 x the strict bound + 1 ms",
        format!("{within} of {}", rows.len()),
        within == rows.len(),
    );
    let raw = count(&|row| Some(row.raw?.median <= row.limit()));
    section.promise(
        "the same by raw times, late ranks included",
        format!("{raw} of {}", rows.len()),
        raw == rows.len(),
    );
    let direct = count(&Row::met_direct);
    section.promise(
        "(without relaying) within 1.10 x the direct bound + 1 ms",
        format!("{direct} of {}", rows.len()),
        direct == rows.len(),
    );
    compare(section, rows, peers);
    let first = peers.first().map_or("", |peer| peer.name.as_str());
    section.table(
        "Median [least-greatest] of the repetitions, milliseconds; ! misses the promise",
        &[
            "operation",
            first,
            "limit",
            "strict bound",
            "direct bound",
            "raw",
            "last begin",
        ],
        rows.iter().map(times_row).collect(),
    );
    let hosts: Vec<String> = grid.hosts().into_iter().map(|h| h.host).collect();
    let mut head = vec!["operation"];
    head.extend(hosts.iter().map(String::as_str));
    let machine = |row: &Row| {
        std::iter::once(row.test.label())
            .chain(row.machines.iter().map(|s| ms(*s)))
            .collect()
    };
    section.table(
        "Where the time goes: when the last rank of each machine was done, milliseconds after the agreed start",
        &head,
        measured.iter().map(|row| machine(row)).collect(),
    );
    // The nonblocking forms differ little: the tables have them.
    let blocking = measured.iter().copied().filter(|row| !row.test.name.starts_with('i'));
    section.charts.push(chart(&blocking.collect::<Vec<_>>(), peers));
    section.data = Value::Array(rows.iter().map(|row| data(row, peers)).collect());
}

fn times_row(row: &Row) -> Vec<String> {
    let own = spread_ms(row.fair.first().copied().flatten());
    let own = if row.met() == Some(true) {
        own
    } else {
        format!("!{own}")
    };
    let median = |s: Option<Spread>| s.map_or_else(none, |s| ms(s.median));
    vec![
        row.test.label(),
        own,
        ms(row.limit()),
        ms(row.strict),
        ms(row.direct),
        median(row.raw),
        median(row.lateness),
    ]
}

/// Ours beside the peers'.
fn compare(section: &mut Section, rows: &[Row], peers: &[Peer]) {
    for (number, peer) in peers.iter().enumerate().skip(1) {
        let both: Vec<(&Row, Spread, Spread)> = rows
            .iter()
            .filter_map(|row| Some((row, row.fair[0]?, row.fair[number]?)))
            .collect();
        let ratios: Vec<f64> = both.iter().map(|(_, ours, its)| its.median / ours.median).collect();
        let Some(spread) = Spread::of(&ratios) else { continue };
        section.promise(
            format!("never slower than {}", peer.name),
            format!(
                "its time / ours: {:.2} [{:.2}-{:.2}] over {} operations",
                spread.median,
                spread.min,
                spread.max,
                ratios.len()
            ),
            spread.min >= 1.0,
        );
        // Where both are at the limit of the links the medians are in this order or in that, by chance.
        let behind = both.iter().filter(|(_, ours, its)| ours.min > its.max);
        let behind: Vec<String> = behind.map(|(row, ..)| row.test.label()).collect();
        let told = match behind.is_empty() {
            true => "in no operation is its slowest repetition before our quickest".to_owned(),
            false => format!("its slowest repetition is before our quickest in {}", behind.join("; ")),
        };
        section.promise(
            format!("not slower than {} within the spread of the repetitions", peer.name),
            told,
            behind.is_empty(),
        );
    }
    if peers.len() < 2 {
        return;
    }
    let cells = |row: &Row| {
        let mut cells = vec![row.test.label(), spread_ms(row.fair[0])];
        for theirs in &row.fair[1..] {
            let ratio = row.fair[0].zip(*theirs).map(|(a, b)| b.median / a.median);
            let mark = if ratio.is_some_and(|r| r < 1.0) { "!" } else { "" };
            let ratio = ratio.map_or(String::new(), |r| format!(" x{r:.2}"));
            cells.push(format!("{mark}{}{ratio}", spread_ms(*theirs)));
        }
        cells
    };
    let mut head = vec!["operation"];
    head.extend(peers.iter().map(|peer| peer.name.as_str()));
    section.table(
        "Beside the peers over the same links, milliseconds; x: their median / ours",
        &head,
        rows.iter().map(cells).collect(),
    );
}

fn chart(rows: &[&Row], peers: &[Peer]) -> String {
    let bound = |row: &&Row| {
        Some(Spread {
            median: row.strict,
            min: row.strict,
            max: row.strict,
        })
    };
    let mut series: Vec<Series<Option<Spread>>> = peers
        .iter()
        .enumerate()
        .map(|(number, peer)| Series::new(&peer.name, rows.iter().map(|row| row.fair[number]).collect()))
        .collect();
    series.push(Series::new("latency bound", rows.iter().map(bound).collect()).hollow());
    let chart = Bars {
        title: "Completion of short blocking collectives over three sites, until the last rank is done".to_owned(),
        groups: rows.iter().map(|row| row.test.label()).collect(),
        label: "time".to_owned(),
        unit: Unit::Seconds,
        series,
    };
    chart.html()
}

fn data(row: &Row, peers: &[Peer]) -> Value {
    let times: serde_json::Map<_, _> = peers
        .iter()
        .zip(&row.fair)
        .map(|(peer, fair)| (peer.name.clone(), json!(fair)))
        .collect();
    json!({
        "operation": row.test.name, "root": row.test.root, "bytes": row.test.bytes, "seconds": times, "raw": row.raw,
        "last_begin": row.lateness, "strict_bound": row.strict, "direct_bound": row.direct, "limit": row.limit(),
        "met": row.met(), "last_of_machines": row.machines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_each_machine_counts() {
        let grid = Grid::new(&[("a", &[2]), ("b", &[1])], Duration::ZERO, 1);
        let repetition = Repetition {
            begins: vec![0.0; 3],
            ends: vec![3.0, 1.0, 2.0],
        };
        assert_eq!(by_machine(&grid, &[repetition]), [3.0, 2.0]);
    }

    #[test]
    fn roots_are_at_every_site() {
        assert_eq!(some_roots(&three_sites(4)), [0, 13, 23]);
        assert_eq!(some_roots(&three_sites(1)), [0, 3, 5]);
    }

    #[test]
    fn a_row_without_times_is_not_met() {
        let row = Row::new(&three_sites(4), &Test::new("barrier", 0, 8), &[]);
        assert_eq!((row.met(), times_row(&row)[1].as_str()), (None, "!-"));
        assert!((row.limit() - 0.034).abs() < 1e-9);
    }
}
