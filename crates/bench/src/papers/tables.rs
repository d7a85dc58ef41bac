// SPDX-License-Identifier: Apache-2.0
//! The tables of PACX-MPI (Gabriel, Resch, Ruehle, 1999): II to V.
//!
//! Between two partitions of their Cray T3E a message cost 3.5 ms of a network node, one after the other, and next to
//! no way. Here that is a link without latency whose rate gives a message of 1 KiB 3.5 ms of line time.

use std::time::Duration;

use serde_json::{Value, json};

use super::bound::Depends;
use super::grid::Grid;
use super::lab::{Field, Lab};
use super::section::{Section, ms, none};
use super::times::{Repetition, Test, Times};
use crate::error::Error;
use crate::plot::{Axis, Lines, Series, Unit};
use crate::samples::Spread;

/// Bytes of all messages.
pub(super) const BYTES: usize = 1024;
/// Bits per second: 1168 bytes (1 KiB with the headers of MPI, TLS, TCP, IP, Ethernet) in 3.5 ms.
const RATE: u64 = 2_670_000;
/// What such a message takes of the line, seconds.
const LINE_TIME: f64 = 0.0035;
/// One way from Stuttgart to Pittsburgh.
const OCEAN: Duration = Duration::from_millis(70);
/// Ranks on both machines, and in milliseconds PACX-MPI's broadcast, the tree's, the reduction of both.
const TABLE_2: [(usize, usize, [f64; 4]); 6] = [
    (32, 32, [3.74, 3.91, 9.6, 9.7]),
    (16, 48, [3.73, 7.60, 10.7, 14.4]),
    (8, 56, [3.66, 11.6, 10.7, 18.6]),
    (4, 60, [3.70, 14.7, 10.2, 23.2]),
    (2, 62, [3.71, 18.5, 9.76, 27.4]),
    (1, 63, [3.72, 21.5, 10.3, 31.2]),
];
/// Reduction of PACX-MPI and of the tree for the same splits over the ocean.
const TABLE_3: [[f64; 2]; 6] = [
    [146.8, 148.5],
    [146.0, 151.8],
    [145.8, 155.5],
    [145.8, 160.5],
    [146.0, 163.3],
    [146.3, 168.0],
];
/// Machines, broadcast of PACX-MPI and of the tree with 96 ranks.
const TABLE_4: [(usize, [f64; 2]); 3] = [(2, [3.77, 4.11]), (3, [4.58, 25.4]), (4, [8.68, 8.04])];
/// Senders, and the receiver's time by way of the daemon and directly.
const TABLE_5: [(usize, [f64; 2]); 4] = [
    (16, [73.0, 56.2]),
    (20, [90.3, 70.2]),
    (24, [107.1, 82.5]),
    (28, [123.9, 95.3]),
];

/// How links differ from one without latency on which a message takes 3.5 ms.
#[derive(Clone, Copy, Debug)]
struct Link {
    one_way: Duration,
    /// A message takes so many times 3.5 ms.
    times: u32,
}

/// As in the paper.
const FAITHFUL: Link = Link {
    one_way: Duration::ZERO,
    times: 1,
};
/// Ten times the paper's: 64 ranks that share two processors take a millisecond or two by themselves.
const TENFOLD: Link = Link {
    one_way: Duration::ZERO,
    times: 10,
};
const OVER_THE_OCEAN: Link = Link {
    one_way: OCEAN,
    times: 1,
};

/// Tests of the first library with the names of their columns; those without a tree run with every library.
type Columns = Vec<(&'static str, &'static str)>;

/// A measured row of a table: its first cells, then for each column the repetitions.
struct Row {
    grid: Grid,
    title: String,
    /// Column name, test, repetitions.
    cells: Vec<(String, Test, Vec<Repetition>)>,
    paper: Vec<f64>,
}

impl Row {
    /// Least of the series of greatest times over the ranks: the paper's measure.
    fn least(&self, column: &str) -> Option<f64> {
        let (_, test, repetitions) = self.cells.iter().find(|(name, _, _)| name == column)?;
        let time = |r: &Repetition| match Depends::of(&test.name, test.root) {
            // The line is busy with the messages of others meanwhile: a rank that begins late may cost nothing.
            Depends::To(_) if !test.name.starts_with("reduce") => r.time(),
            depends => r.fair(&self.grid, depends),
        };
        repetitions.iter().map(time).min_by(f64::total_cmp)
    }
}

pub(super) fn table2(lab: &Lab) -> Result<Section, Error> {
    let columns = vec![
        ("bcast", "Bcast"),
        ("bcast/machine", "Bcast by machine (PACX-MPI's)"),
        ("bcast/binomial", "Bcast binomial"),
        ("reduce", "Reduce"),
        ("reduce/machine", "Reduce by machine (PACX-MPI's)"),
        ("reduce/binomial", "Reduce binomial"),
    ];
    let rows = TABLE_2.map(|(a, b, paper)| (vec![a, b], paper.to_vec()));
    let mut section = Section::new("PACX-MPI, table II: 64 ranks on two machines in six splits");
    section.texts.push(format!(
        "1 KiB; {}. Their measure: the greatest time over the ranks, the least of the series.",
        model(TENFOLD)
    ));
    let measured = measure(lab, &mut section, &rows, TENFOLD, &columns)?;
    let paper = [
        "paper: PACX Bcast",
        "paper: tree Bcast",
        "paper: PACX Reduce",
        "paper: tree Reduce",
    ];
    report(&mut section, lab, &measured, &columns, &paper, "ranks on machine 1 + 2");
    flat(&mut section, &measured, "Bcast", "2.2 % in the paper");
    flat(&mut section, &measured, "Reduce", "11 % in the paper");
    not_above(
        &mut section,
        &measured,
        "Bcast",
        &["Bcast by machine (PACX-MPI's)", "Bcast binomial"],
    );
    not_above(
        &mut section,
        &measured,
        "Reduce",
        &["Reduce by machine (PACX-MPI's)", "Reduce binomial"],
    );
    Ok(section)
}

pub(super) fn table3(lab: &Lab) -> Result<Section, Error> {
    let columns = vec![
        ("reduce", "Reduce"),
        ("reduce/machine", "Reduce by machine (PACX-MPI's)"),
        ("reduce/binomial", "Reduce binomial"),
    ];
    let mut rows = Vec::new();
    for ((a, b, _), paper) in TABLE_2.iter().zip(TABLE_3) {
        rows.push((vec![*a, *b], paper.to_vec()));
    }
    let mut section = Section::new("PACX-MPI, table III: the same splits over the ocean");
    section.texts.push(format!(
        "Reduce, 1 KiB; {}. The paper pays the ocean twice for each message (header, then data); one crossing is {:.1} ms.",
        model(OVER_THE_OCEAN),
        OCEAN.as_secs_f64() * 1e3 + 3.5
    ));
    let measured = measure(lab, &mut section, &rows, OVER_THE_OCEAN, &columns)?;
    let paper = ["paper: PACX Reduce", "paper: tree Reduce"];
    report(&mut section, lab, &measured, &columns, &paper, "ranks on machine 1 + 2");
    flat(&mut section, &measured, "Reduce", "0.7 % in the paper");
    not_above(
        &mut section,
        &measured,
        "Reduce",
        &["Reduce by machine (PACX-MPI's)", "Reduce binomial"],
    );
    Ok(section)
}

pub(super) fn table4(lab: &Lab) -> Result<Section, Error> {
    let columns = vec![
        ("bcast", "Bcast"),
        ("bcast/machine", "Bcast by machine (PACX-MPI's)"),
        ("bcast/binomial", "Bcast binomial"),
    ];
    let row = |(machines, paper): (usize, [f64; 2])| (equal_blocks(machines), paper.to_vec());
    let mut section = Section::new("PACX-MPI, table IV: 96 ranks on two, three and four machines");
    section.texts.push(format!(
        "Bcast, 1 KiB; {}, for each pair of machines a link of its own. Ranks are placed in equal blocks, machine by machine; the \
         paper's counts of a tree's external messages (1, 7, 3) do not come out of such blocks, so its 25.4 ms have no match.",
        model(TENFOLD)
    ));
    let measured = measure(lab, &mut section, &TABLE_4.map(row), TENFOLD, &columns)?;
    let paper = ["paper: PACX Bcast", "paper: tree Bcast"];
    report(&mut section, lab, &measured, &columns, &paper, "ranks on each machine");
    not_above(
        &mut section,
        &measured,
        "Bcast",
        &["Bcast by machine (PACX-MPI's)", "Bcast binomial"],
    );
    Ok(section)
}

/// The placements of tables II, III and IV.
pub(super) fn placements(table: u32) -> Vec<Grid> {
    let split = |link| move |(a, b, _): (usize, usize, [f64; 4])| machines(&[a, b], link);
    match table {
        2 => TABLE_2.map(split(TENFOLD)).to_vec(),
        3 => TABLE_2.map(split(OVER_THE_OCEAN)).to_vec(),
        _ => TABLE_4
            .map(|(count, _)| machines(&equal_blocks(count), TENFOLD))
            .to_vec(),
    }
}

/// 96 ranks on so many of four machines.
fn equal_blocks(machines: usize) -> Vec<usize> {
    (0..4).map(|m| if m < machines { 96 / machines } else { 0 }).collect()
}

pub(super) fn table5(lab: &Lab) -> Result<Section, Error> {
    let columns = vec![("incast", "messages"), ("gather", "MPI_Gather")];
    let rows = TABLE_5.map(|(senders, paper)| (vec![1, senders], paper.to_vec()));
    let mut section = Section::new("PACX-MPI, table V: many to one");
    section.texts.push(format!(
        "One receiver on machine 1, all senders on machine 2, 1 KiB each; {}. Messages: every sender sends its own over its own \
         connection, as the paper's direct communication; MPI_Gather bundles them. Time until the receiver has all.",
        model(FAITHFUL)
    ));
    let measured = measure(lab, &mut section, &rows, FAITHFUL, &columns)?;
    report(
        &mut section,
        lab,
        &measured,
        &columns,
        &["paper: daemon", "paper: direct"],
        "receiver + senders",
    );
    let quotient = |row: &Row| Some(row.least("MPI_Gather")? / row.least("messages")?);
    let quotients: Vec<f64> = measured.iter().filter_map(quotient).collect();
    let shown: Vec<String> = quotients.iter().map(|q| format!("{q:.2}")).collect();
    section.promise(
        "bundled by one process at most 1.05 x direct messages (the paper's daemon: 1.29 to 1.30 x)",
        shown.join(", "),
        quotients.len() == measured.len() && quotients.iter().all(|q| *q <= 1.05),
    );
    Ok(section)
}

fn model(link: Link) -> String {
    let rate = RATE as f64 / f64::from(link.times) / 1e6;
    let line = LINE_TIME * 1e3 * f64::from(link.times);
    let scaled = match link.times {
        1 => "",
        _ => {
            ", ten times the paper's so that ranks that share processors do not blur it; the paper's times stand beside ours ten times as long"
        }
    };
    format!(
        "links of {rate:.3} Mbit/s (1 KiB with its headers takes {line} ms of the line{scaled}) and {} ms one way",
        link.one_way.as_millis()
    )
}

/// Ranks on each of the machines m, n, o, p, each a site of its own.
fn machines(ranks: &[usize], link: Link) -> Grid {
    let sites: Vec<(&str, &[usize])> = ["m", "n", "o", "p"]
        .into_iter()
        .zip(ranks)
        .map(|(name, ranks)| (name, std::slice::from_ref(ranks)))
        .collect();
    let rate = RATE / u64::from(link.times);
    Grid::new(&sites, link.one_way * 2, rate).line_time(LINE_TIME * f64::from(link.times))
}

fn measure(
    lab: &Lab,
    section: &mut Section,
    rows: &[(Vec<usize>, Vec<f64>)],
    link: Link,
    columns: &Columns,
) -> Result<Vec<Row>, Error> {
    let mut field = Field::default();
    let mut measured = Vec::new();
    for (ranks, paper) in rows {
        let grid = machines(ranks, link);
        let title: Vec<String> = ranks.iter().filter(|r| **r > 0).map(usize::to_string).collect();
        section.texts.push(format!("Placement: {}.", grid.describe()));
        let mut cells = Vec::new();
        for (number, peer) in lab.peers.iter().enumerate() {
            let own = |(test, _): &&(&str, &str)| number == 0 || !test.contains('/');
            let mine: Vec<_> = columns.iter().filter(own).collect();
            let tests: Vec<Test> = mine.iter().map(|(test, _)| Test::new(test, 0, BYTES)).collect();
            let times: Times = field.collectives(lab, &grid, peer, &tests)?;
            for ((_, title), test) in mine.iter().zip(tests) {
                let name = if number == 0 {
                    (*title).to_owned()
                } else {
                    format!("{title}, {}", peer.name)
                };
                let repetitions = times.get(&test).cloned().unwrap_or_default();
                cells.push((name, test, repetitions));
            }
        }
        measured.push(Row {
            grid,
            title: title.join(" + "),
            cells,
            paper: paper.iter().map(|ms| ms * f64::from(link.times)).collect(),
        });
    }
    section.notes = field.end();
    Ok(measured)
}

fn report(section: &mut Section, lab: &Lab, rows: &[Row], columns: &Columns, paper: &[&str], what: &str) {
    let names: Vec<String> = rows
        .first()
        .map_or(Vec::new(), |r| r.cells.iter().map(|(n, _, _)| n.clone()).collect());
    let mut head = vec![what];
    head.extend(names.iter().map(String::as_str));
    head.extend(paper);
    let cells = |row: &Row| {
        let mut cells = vec![row.title.clone()];
        cells.extend(names.iter().map(|name| row.least(name).map_or_else(none, ms)));
        cells.extend(row.paper.iter().map(|value| ms(value / 1e3)));
        cells
    };
    section.table(
        &format!(
            "Milliseconds; the greatest over the ranks, the least of {} undisturbed repetitions and the disturbed ones; trees are messages of {}",
            lab.repetitions,
            lab.peers.first().map_or("", |peer| peer.name.as_str())
        ),
        &head,
        rows.iter().map(cells).collect(),
    );
    section.charts = charts(&section.title, rows, &names, paper, what);
    let data = |row: &Row| {
        let columns: serde_json::Map<_, _> = row
            .cells
            .iter()
            .map(|(name, _, r)| (name.clone(), json!(r.iter().map(Repetition::time).collect::<Vec<_>>())))
            .collect();
        json!({ "ranks": row.title, "raw_seconds": columns, "paper_ms": row.paper })
    };
    section.data = json!({ "rows": rows.iter().map(data).collect::<Vec<Value>>(), "tests": columns });
}

/// A chart for each operation: one point for each row, in their order; the paper's values are hollow, in the colours of
/// the shapes that it measured.
fn charts(title: &str, rows: &[Row], names: &[String], paper: &[&str], what: &str) -> Vec<String> {
    let operations = ["Bcast", "Reduce"]
        .into_iter()
        .filter(|op| names.iter().any(|name| name.starts_with(op)));
    let mut operations: Vec<&str> = operations.collect();
    if operations.is_empty() {
        operations.push("");
    }
    let chart = |operation: &str| {
        let measured = |name: &String| {
            let values = rows
                .iter()
                .enumerate()
                .filter_map(|(n, row)| Some((n, row.least(name)?)));
            Series::new(name, values.map(point).collect())
        };
        let mut series: Vec<Series<(f64, Spread)>> = names
            .iter()
            .filter(|name| name.starts_with(operation))
            .map(measured)
            .collect();
        let columns = paper.iter().enumerate().filter(|(_, name)| name.contains(operation));
        for (place, (column, name)) in columns.enumerate() {
            let values = rows
                .iter()
                .enumerate()
                .filter_map(|(n, row)| Some((n, row.paper.get(column)? / 1e3)));
            series.push(
                Series::new(name, values.map(point).collect())
                    .colour(place + 1)
                    .hollow(),
            );
        }
        let title = if operation.is_empty() {
            title.to_owned()
        } else {
            format!("{operation}. {title}")
        };
        let chart = Lines {
            title,
            x: Axis::linear(&format!("row of the table ({what})"), Unit::Count),
            y: Axis::linear("time", Unit::Seconds),
            series,
        };
        chart.html()
    };
    operations.into_iter().map(chart).collect()
}

/// A value of a row, as a point.
fn point((number, seconds): (usize, f64)) -> (f64, Spread) {
    let spread = Spread {
        median: seconds,
        min: seconds,
        max: seconds,
    };
    #[expect(clippy::cast_precision_loss, reason = "numbers of rows")]
    let x = (number + 1) as f64;
    (x, spread)
}

/// The times of a column differ by at most 3 % over the rows.
fn flat(section: &mut Section, rows: &[Row], column: &str, paper: &str) {
    let values: Vec<f64> = rows.iter().filter_map(|row| row.least(column)).collect();
    let Some(spread) = Spread::of(&values) else { return };
    let percent = (spread.max / spread.min - 1.0) * 100.0;
    section.promise(
        format!("{column}: flat within 3 % over the splits ({paper})"),
        format!("{percent:.1} %, {} to {} ms", ms(spread.min), ms(spread.max)),
        percent <= 3.0 && values.len() == rows.len(),
    );
}

/// In no row above the best of the shapes; within 2 %, what the least of a series moves by.
fn not_above(section: &mut Section, rows: &[Row], column: &str, shapes: &[&str]) {
    let quotient = |row: &Row| {
        let best = shapes
            .iter()
            .filter_map(|shape| row.least(shape))
            .min_by(f64::total_cmp)?;
        Some(row.least(column)? / best)
    };
    let quotients: Vec<f64> = rows.iter().filter_map(quotient).collect();
    let shown: Vec<String> = quotients.iter().map(|q| format!("{q:.3}")).collect();
    section.promise(
        format!("{column}: in no row above the better of both shapes"),
        format!("our time / it by row: {}", shown.join(", ")),
        quotients.len() == rows.len() && quotients.iter().all(|q| *q <= 1.02),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(own: f64, tree: f64) -> Row {
        let repetition = |end| Repetition {
            begins: vec![0.0, 0.0],
            ends: vec![0.0, end],
        };
        let cell = |name: &str, test: &str, end: f64| {
            let repetitions = vec![repetition(end * 2.0), repetition(end)];
            (name.to_owned(), Test::new(test, 0, BYTES), repetitions)
        };
        Row {
            grid: machines(&[1, 1], FAITHFUL),
            title: "1 + 1".to_owned(),
            cells: vec![cell("Bcast", "bcast", own), cell("tree", "bcast/binomial", tree)],
            paper: vec![1.0],
        }
    }

    #[test]
    fn the_least_of_the_series_counts() {
        assert_eq!(row(0.003, 0.005).least("tree"), Some(0.005));
        assert_eq!(row(0.003, 0.005).least("other"), None);
    }

    #[test]
    fn promises_look_at_every_row() {
        let judged = |rows: &[Row]| {
            let mut section = Section::new("t");
            flat(&mut section, rows, "Bcast", "");
            not_above(&mut section, rows, "Bcast", &["tree"]);
            section.verdicts.iter().map(|v| v.met).collect::<Vec<_>>()
        };
        assert_eq!(judged(&[row(0.0035, 0.004), row(0.00358, 0.02)]), [true, true]);
        assert_eq!(judged(&[row(0.0035, 0.0034), row(0.0037, 0.02)]), [false, false]);
    }

    #[test]
    fn placements_of_table_4_have_96_ranks() {
        for ranks in [[48, 48, 0, 0], [32, 32, 32, 0], [24, 24, 24, 24]] {
            let grid = machines(&ranks, FAITHFUL);
            assert_eq!((grid.ranks(), grid.sites()), (96, 4));
            assert_eq!(grid.spots().len(), 96);
        }
        assert_eq!(machines(&[48, 48, 0, 0], FAITHFUL).places(), "48/48");
    }
}
