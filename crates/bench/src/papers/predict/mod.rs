// SPDX-License-Identifier: Apache-2.0
//! What the simulator says of collective operations, beside what they take over the emulated grid: those of the bounds,
//! and the papers'.

mod model;

use serde_json::{Value, json};

use self::model::{Model, Probes, Trips};
use super::bandwidth;
use super::bound::Depends;
use super::figures::{self, mean};
use super::grid::Grid;
use super::lab::{Field, Lab};
use super::latency::{some_roots, three_sites};
use super::section::{Section, ms, none, spread_ms};
use super::tables;
use super::times::{Repetition, Test, roots};
use crate::error::Error;
use crate::peers::Peer;
use crate::plot::{Bars, Series, Unit};
use crate::program::Program;
use crate::samples::{Sample, Spread};

/// By how much prediction and measurement may differ.
const TOLERANCE: f64 = 0.15;
/// Sizes of the probes' messages.
const PROBES: [u64; 5] = [8, 4096, 32768, 131_072, 1 << 20];
const ROOTED: [&str; 4] = ["bcast", "reduce", "gather", "scatter"];
const OTHERS: [&str; 7] = [
    "barrier",
    "allreduce",
    "allgather",
    "alltoall",
    "scan",
    "exscan",
    "reduce_scatter",
];

/// Collectives of a few bytes.
pub(super) fn short(lab: &Lab) -> Result<Section, Error> {
    let grid = three_sites(lab.ranks_per_machine);
    let mut tests: Vec<Test> = OTHERS.iter().map(|name| Test::new(name, 0, 8)).collect();
    for name in ROOTED {
        tests.extend(some_roots(&grid).map(|root| Test::new(name, root, 8)));
    }
    compare(
        lab,
        "Short collectives: simulated and measured",
        &[Case::plain(grid, tests)],
    )
}

/// Collectives with buffers of 16 MiB.
pub(super) fn long(lab: &Lab) -> Result<Section, Error> {
    let grid = three_sites(lab.ranks_per_machine);
    let tests = bandwidth::tests(&grid);
    compare(
        lab,
        "Long collectives: simulated and measured",
        &[Case::plain(grid, tests)],
    )
}

/// Bcast and Reduce of tables II and III, Bcast of table IV.
pub(super) fn table(lab: &Lab, number: u32) -> Result<Section, Error> {
    let (roman, operations): (&str, &[&str]) = match number {
        2 => ("II", &["bcast", "reduce"]),
        3 => ("III", &["reduce"]),
        _ => ("IV", &["bcast"]),
    };
    let case = |grid: Grid| Case {
        name: grid.places().replace('/', " + "),
        tests: operations
            .iter()
            .map(|name| Test::new(name, 0, tables::BYTES))
            .collect(),
        grid,
    };
    let cases: Vec<Case> = tables::placements(number).into_iter().map(case).collect();
    compare(lab, &format!("PACX-MPI, table {roman}: simulated and measured"), &cases)
}

/// The broadcasts of figure 8, the mean over all roots.
pub(super) fn figure8(lab: &Lab) -> Result<Section, Error> {
    let (peer, mut field, grid) = (ours(lab)?, Field::default(), figures::grid8());
    let probes = probes(lab, &mut field, peer)?;
    let pins = model::pins(&grid, &probes);
    let model = Model::new(&grid, &pins)?;
    let idle = model.clone().with_windows_after(0);
    let mut arguments = vec!["-p".to_owned(), grid.places()];
    arguments.extend(figures::SIZES.iter().map(|size| format!("library:{size}")));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = field.run(&grid, &peer.pinned(&pins)?, Program::Roots, &arguments, lab.patience)?;
    let measured = roots(&output);
    let mut section = Section::new("Figure 8: broadcasts, simulated and measured");
    section.notes = field.end();
    let (mut rows, mut by_root) = (Vec::new(), Vec::new());
    for size in figures::SIZES {
        let busy = model.clone().with_windows_after(size);
        let all = (0..grid.ranks()).map(|root| {
            let model = if (1..grid.ranks_at(0)).contains(&root) {
                &idle
            } else {
                &busy
            };
            model.predict(&Test::new("bcast", root, size))
        });
        let all: Vec<f64> = all.collect::<Result<_, _>>()?;
        let times = measured.get(&("library".to_owned(), size));
        let spread = times.and_then(|times| {
            Some(Spread {
                median: mean(&times.broadcasts),
                ..Spread::of(&times.broadcasts)?
            })
        });
        by_root.push(json!({ "bytes": size, "measured": times.map(|times| &times.broadcasts), "simulated": all }));
        rows.push(Row {
            label: format!("bcast, {size} bytes"),
            predicted: mean(&all),
            measured: spread,
        });
    }
    describe(&mut section, &[&grid], &probes);
    section.texts.push(
        "The mean over the roots. Before it is measured every size passes once. All acknowledge to rank 0, whose connections are never idle: \
         what passes on them before an acknowledgement has grown by one message. The others of rank 0's site use theirs once in each round of \
         roots: TCP lets ten packets pass on a connection that was idle before the first of them is acknowledged, and twice as many in each \
         round trip after it. The simulator does the same."
            .to_owned(),
    );
    fill(&mut section, &rows, "Mean over roots");
    section.data = json!({ "means": section.data, "by_root": by_root });
    Ok(section)
}

/// Tests on one grid.
struct Case {
    /// Begins the names of its rows.
    name: String,
    grid: Grid,
    tests: Vec<Test>,
}

impl Case {
    fn plain(grid: Grid, tests: Vec<Test>) -> Self {
        let name = String::new();
        Self { name, grid, tests }
    }

    fn label(&self, test: &Test) -> String {
        match self.name.as_str() {
            "" => test.label(),
            name => format!("{}, {name}", test.name),
        }
    }
}

/// One test.
struct Row {
    label: String,
    predicted: f64,
    measured: Option<Spread>,
}

impl Row {
    /// Predicted over measured.
    fn ratio(&self) -> Option<f64> {
        Some(self.predicted / self.measured?.median)
    }

    fn met(&self) -> bool {
        self.ratio().is_some_and(|ratio| (ratio - 1.0).abs() <= TOLERANCE)
    }
}

/// The library whose plans the simulator runs.
fn ours(lab: &Lab) -> Result<&Peer, Error> {
    let peer = lab.peers.iter().find(|peer| peer.name == "isthmus");
    peer.ok_or_else(|| Error::Unknown {
        kind: "library",
        name: "isthmus".to_owned(),
        known: "the simulator runs its plans alone; see --mpi and --bin".to_owned(),
    })
}

fn compare(lab: &Lab, title: &str, cases: &[Case]) -> Result<Section, Error> {
    let peer = ours(lab)?;
    let mut field = Field::default();
    let probes = probes(lab, &mut field, peer)?;
    let mut rows = Vec::new();
    for case in cases {
        let pins = model::pins(&case.grid, &probes);
        let model = Model::new(&case.grid, &pins)?;
        let times = field.collectives(lab, &case.grid, &peer.pinned(&pins)?, &case.tests)?;
        for test in &case.tests {
            let depends = Depends::of(&test.name, test.root);
            let fair = |repetition: &Repetition| repetition.fair(&case.grid, depends);
            let values: Vec<f64> = times.get(test).into_iter().flatten().map(fair).collect();
            rows.push(Row {
                label: case.label(test),
                predicted: model.predict(test)?,
                measured: Spread::of(&values),
            });
        }
    }
    let mut section = Section::new(title);
    section.notes = field.end();
    let grids: Vec<&Grid> = cases.iter().map(|case| &case.grid).collect();
    describe(&mut section, &grids, &probes);
    fill(&mut section, &rows, "Median");
    Ok(section)
}

/// Half round trips inside a host, and between two hosts of a site, over the testbed of the bounds.
fn probes(lab: &Lab, field: &mut Field, peer: &Peer) -> Result<Probes, Error> {
    let grid = three_sites(lab.ranks_per_machine);
    let mut trips = |ranks: [usize; 2]| -> Result<Trips, Error> {
        let grid = grid.clone().with_ranks(&[&ranks, &[0, 0], &[0, 0]]);
        let tests: Vec<String> = PROBES.iter().map(|bytes| format!("latency:{bytes}")).collect();
        let mut arguments = vec!["-t", "0.5"];
        arguments.extend(tests.iter().map(String::as_str));
        let output = field.run(&grid, peer, Program::Messages, &arguments, lab.patience)?;
        let samples = output.lines().filter_map(Sample::parse);
        let trips: Trips = samples.map(|sample| (sample.bytes, sample.value / 1e6)).collect();
        match trips.len() == PROBES.len() {
            true => Ok(trips),
            false => Err(Error::Run {
                what: "probe".to_owned(),
                said: format!("no results in: {output}"),
            }),
        }
    };
    Ok(Probes {
        inside: trips([2, 0])?,
        between: trips([1, 1])?,
        latency: grid.local_latency(),
    })
}

fn describe(section: &mut Section, grids: &[&Grid], probes: &Probes) {
    let told = |trips: &Trips| {
        let told = trips.iter().map(|(bytes, s)| format!("{bytes}: {:.1}", s * 1e6));
        told.collect::<Vec<_>>().join(", ")
    };
    for grid in grids {
        section
            .texts
            .push(format!("{} ranks, {}.", grid.ranks(), grid.describe()));
    }
    section.texts.push(format!(
        "Measured: this library over the testbed, until the last rank is done. Simulated: the plans that the library runs, in \
         virtual time. Both are told the same of the links: latencies and rates of the testbed, and what messages \
         cost besides from half round trips, microseconds by size: {} inside a host; {} between hosts of a site. Promise: within {:.0} %.",
        told(&probes.inside),
        told(&probes.between),
        TOLERANCE * 100.0
    ));
}

/// `middle`: what a row's value is.
fn fill(section: &mut Section, rows: &[Row], middle: &str) {
    let within = rows.iter().filter(|row| row.met()).count();
    let worst = rows.iter().filter_map(Row::ratio).fold(1.0, |worst: f64, ratio| {
        if (ratio - 1.0).abs() > (worst - 1.0).abs() {
            ratio
        } else {
            worst
        }
    });
    section.promise(
        format!("simulated within {:.0} % of measured", TOLERANCE * 100.0),
        format!("{within} of {}, the worst {worst:.2}", rows.len()),
        within == rows.len(),
    );
    let cells = |row: &Row| {
        let mark = if row.met() { "" } else { "!" };
        let ratio = row.ratio().map_or_else(none, |ratio| format!("{mark}{ratio:.3}"));
        vec![row.label.clone(), spread_ms(row.measured), ms(row.predicted), ratio]
    };
    section.table(
        &format!("{middle} [least-greatest], milliseconds; ! misses the promise"),
        &["operation", "measured", "simulated", "simulated / measured"],
        rows.iter().map(cells).collect(),
    );
    let predicted = |row: &Row| {
        Some(Spread {
            median: row.predicted,
            min: row.predicted,
            max: row.predicted,
        })
    };
    let chart = Bars {
        title: section.title.clone(),
        groups: rows.iter().map(|row| row.label.clone()).collect(),
        label: "time until the last rank is done".to_owned(),
        unit: Unit::Seconds,
        series: vec![
            Series::new("measured", rows.iter().map(|row| row.measured).collect()).colour(0),
            Series::new("simulated", rows.iter().map(predicted).collect())
                .colour(1)
                .hollow(),
        ],
    };
    section.charts.push(chart.html());
    let data = |row: &Row| {
        json!({
            "operation": row.label, "measured": row.measured, "simulated": row.predicted, "ratio": row.ratio(),
            "met": row.met(),
        })
    };
    section.data = Value::Array(rows.iter().map(data).collect());
}
