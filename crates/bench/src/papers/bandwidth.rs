// SPDX-License-Identifier: Apache-2.0
//! Long collectives against the capacity of the links between the sites.

use serde_json::{Value, json};

use super::bound::{Bandwidth, Depends, PAYLOAD_SHARE, bandwidth, latency};
use super::grid::Grid;
use super::lab::{Field, Lab};
use super::latency::{some_roots, three_sites};
use super::section::{Section, ms, none, spread_ms};
use super::times::{Repetition, Test, Times};
use crate::error::Error;
use crate::peers::Peer;
use crate::plot::{Bars, Series, Unit};
use crate::samples::Spread;

/// Length of the buffer of every rank: what it sends to all, gets from all or reduces.
const TOTAL: usize = 16 << 20;

pub(super) fn tests(grid: &Grid) -> Vec<Test> {
    let block = TOTAL / grid.ranks() / 8 * 8;
    let mut tests = Vec::new();
    for root in some_roots(grid) {
        tests.push(Test::new("bcast", root, TOTAL));
        tests.push(Test::new("reduce", root, TOTAL));
    }
    tests.push(Test::new("allreduce", 0, TOTAL));
    tests.push(Test::new("allgather", 0, block));
    tests.push(Test::new("alltoall", 0, block));
    tests
}

/// One test with every library.
struct Row {
    test: Test,
    bound: Bandwidth,
    latency: f64,
    times: Vec<Option<Spread>>,
}

impl Row {
    fn limit(&self) -> f64 {
        self.bound.seconds * 1.15
    }

    fn met(&self) -> bool {
        self.times
            .first()
            .copied()
            .flatten()
            .is_some_and(|t| t.median <= self.limit())
    }
}

pub(super) fn run(lab: &Lab) -> Result<Section, Error> {
    let grid = three_sites(lab.ranks_per_machine);
    let mut section = Section::new("Long collectives against the bandwidth bound");
    section.texts.push(format!(
        "{} ranks with buffers of 16 MiB, {}. The bound: for every set of sites the bytes that must leave it, over the capacity of \
         all links that leave it; {:.2} % of a rate is payload of TCP. For Allreduce also all links together, as every element \
         crosses 2 (sites - 1) times. Promise: within 1.15 x this bound, latency included.",
        grid.ranks(),
        grid.describe(),
        PAYLOAD_SHARE * 100.0
    ));
    let tests = tests(&grid);
    let mut field = Field::default();
    let mut all: Vec<(&Peer, Times)> = Vec::new();
    for peer in &lab.peers {
        all.push((peer, field.collectives(lab, &grid, peer, &tests)?));
    }
    section.notes = field.end();
    let row = |test: &Test| {
        #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
        let bytes = test.bytes as f64;
        let times = |(_, times): &(&Peer, Times)| {
            let repetitions = times.get(test)?;
            Spread::of(&repetitions.iter().map(Repetition::time).collect::<Vec<_>>())
        };
        Row {
            test: test.clone(),
            bound: bandwidth(&grid, &test.name, test.root, bytes),
            latency: latency(&grid, Depends::of(&test.name, test.root), true, &[]),
            times: all.iter().map(times).collect(),
        }
    };
    let rows: Vec<Row> = tests.iter().map(row).collect();
    fill(&mut section, &rows, &lab.peers);
    Ok(section)
}

fn fill(section: &mut Section, rows: &[Row], peers: &[Peer]) {
    let within = rows.iter().filter(|row| row.met()).count();
    section.promise(
        "every operation within 1.15 x the bandwidth bound",
        format!("{within} of {}", rows.len()),
        within == rows.len(),
    );
    let mut head = vec!["operation", "bound", "latency", "limit"];
    head.extend(peers.iter().map(|peer| peer.name.as_str()));
    head.push("first / bound");
    head.push("the bound");
    let cells = |row: &Row| {
        let mut cells = vec![
            row.test.label(),
            ms(row.bound.seconds),
            ms(row.latency),
            ms(row.limit()),
        ];
        for (number, times) in row.times.iter().enumerate() {
            let mark = if number == 0 && !row.met() { "!" } else { "" };
            cells.push(format!("{mark}{}", spread_ms(*times)));
        }
        let own = row.times.first().copied().flatten();
        cells.push(own.map_or_else(none, |own| format!("{:.2}", own.median / row.bound.seconds)));
        cells.push(row.bound.why.clone());
        cells
    };
    section.table(
        "Median [least-greatest], milliseconds; ! misses the promise",
        &head,
        rows.iter().map(cells).collect(),
    );
    let mut series: Vec<Series<Option<Spread>>> = peers
        .iter()
        .enumerate()
        .map(|(number, peer)| Series::new(&peer.name, rows.iter().map(|row| row.times[number]).collect()))
        .collect();
    let bound = |row: &Row| {
        Some(Spread {
            median: row.bound.seconds,
            min: row.bound.seconds,
            max: row.bound.seconds,
        })
    };
    series.push(Series::new("bandwidth bound", rows.iter().map(bound).collect()).hollow());
    let chart = Bars {
        title: "Completion of collectives with buffers of 16 MiB, 100 Mbit/s between three sites".to_owned(),
        groups: rows.iter().map(|row| row.test.label()).collect(),
        label: "time".to_owned(),
        unit: Unit::Seconds,
        series,
    };
    section.charts.push(chart.html());
    let data = |row: &Row| {
        let times: serde_json::Map<_, _> = peers
            .iter()
            .zip(&row.times)
            .map(|(p, t)| (p.name.clone(), json!(t)))
            .collect();
        json!({
            "operation": row.test.name, "root": row.test.root, "bytes": row.test.bytes, "seconds": times,
            "bound": row.bound.seconds, "why": row.bound.why, "limit": row.limit(), "met": row.met(),
        })
    };
    section.data = Value::Array(rows.iter().map(data).collect());
}
