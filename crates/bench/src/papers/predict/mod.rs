// SPDX-License-Identifier: Apache-2.0
//! What the simulator says of collective operations, beside what they take over the emulated grid.

mod model;

use serde_json::{Value, json};

use self::model::{Model, Trips};
use super::bandwidth;
use super::bound::Depends;
use super::grid::Grid;
use super::lab::{Field, Lab};
use super::latency::{some_roots, three_sites};
use super::section::{Section, ms, none, spread_ms};
use super::times::{Repetition, Test};
use crate::error::Error;
use crate::peers::{Peer, Program};
use crate::plot::{Axis, Bars, Series, Unit};
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
    compare(lab, "Short collectives: simulated and measured", &tests)
}

/// Collectives with buffers of 16 MiB.
pub(super) fn long(lab: &Lab) -> Result<Section, Error> {
    let tests = bandwidth::tests(&three_sites(lab.ranks_per_machine));
    compare(lab, "Long collectives: simulated and measured", &tests)
}

/// One test.
struct Row {
    test: Test,
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

fn compare(lab: &Lab, title: &str, tests: &[Test]) -> Result<Section, Error> {
    let Some(peer) = lab.peers.iter().find(|peer| peer.name == "isthmus") else {
        return Err(Error::Unknown {
            kind: "library",
            name: "isthmus".to_owned(),
            known: "the simulator runs its plans alone; see --mpi and --bin".to_owned(),
        });
    };
    let grid = three_sites(lab.ranks_per_machine);
    let mut field = Field::default();
    let (inside, between) = probes(lab, &mut field, peer)?;
    let pins = model::pins(&grid, &inside, &between);
    let model = Model::new(&grid, &pins)?;
    let times = field.collectives(lab, &grid, &peer.pinned(&pins)?, tests)?;
    let mut section = Section::new(title);
    section.notes = field.end();
    let mut rows = Vec::new();
    for test in tests {
        let depends = Depends::of(&test.name, test.root);
        let fair = |repetition: &Repetition| repetition.fair(&grid, depends);
        let values: Vec<f64> = times.get(test).into_iter().flatten().map(fair).collect();
        #[expect(clippy::cast_precision_loss, reason = "a time")]
        let predicted = model.predict(test)?.time() as f64 / 1e9;
        rows.push(Row {
            test: test.clone(),
            predicted,
            measured: Spread::of(&values),
        });
    }
    describe(&mut section, &grid, &inside, &between);
    fill(&mut section, title, &rows);
    Ok(section)
}

/// Half round trips inside a host, and between two hosts of a site, over the same testbed.
fn probes(lab: &Lab, field: &mut Field, peer: &Peer) -> Result<(Trips, Trips), Error> {
    let mut trips = |ranks: [usize; 2]| -> Result<Trips, Error> {
        let grid = three_sites(lab.ranks_per_machine).with_ranks(&[&ranks, &[0, 0], &[0, 0]]);
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
    Ok((trips([2, 0])?, trips([1, 1])?))
}

fn describe(section: &mut Section, grid: &Grid, inside: &Trips, between: &Trips) {
    let told = |trips: &Trips| {
        let told = trips.iter().map(|(bytes, s)| format!("{bytes}: {:.1}", s * 1e6));
        told.collect::<Vec<_>>().join(", ")
    };
    section.texts.push(format!(
        "24 ranks, {}. Measured: this library over the testbed, until the last rank is done. Simulated: the plans that the \
         library runs, in virtual time. Both are told the same of the links: latencies and rates of the testbed, and what messages \
         cost besides from half round trips, microseconds by size: {} inside a host; {} between hosts of a site. Promise: within {:.0} %.",
        grid.describe(),
        told(inside),
        told(between),
        TOLERANCE * 100.0
    ));
}

fn fill(section: &mut Section, title: &str, rows: &[Row]) {
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
        vec![row.test.label(), spread_ms(row.measured), ms(row.predicted), ratio]
    };
    section.table(
        "Median [least-greatest], milliseconds; ! misses the promise",
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
        title: title.to_owned(),
        groups: rows.iter().map(|row| row.test.label()).collect(),
        axis: Axis::linear("time until the last rank is done", Unit::Seconds),
        series: vec![
            Series::new("measured", rows.iter().map(|row| row.measured).collect()).colour(0),
            Series::new("simulated", rows.iter().map(predicted).collect())
                .colour(1)
                .hollow(),
        ],
    };
    section.charts.push(chart.svg());
    let data = |row: &Row| {
        json!({
            "operation": row.test.name, "root": row.test.root, "bytes": row.test.bytes, "measured": row.measured,
            "simulated": row.predicted, "ratio": row.ratio(), "met": row.met(),
        })
    };
    section.data = Value::Array(rows.iter().map(data).collect());
}
