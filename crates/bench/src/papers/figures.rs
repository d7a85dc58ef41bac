// SPDX-License-Identifier: Apache-2.0
//! The multilevel paper (Karonis, de Supinski, Foster, Gropp, Lusk, Lacour, 2002): figures 1 and 8.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::grid::Grid;
use super::lab::{Field, Lab};
use super::section::{Section, ms};
use super::times::{Roots, roots};
use crate::error::Error;
use crate::plot::{Axis, Lines, Series, Unit};
use crate::program::Program;
use crate::samples::Spread;

/// Trees of `bench/trees.h` and what they stand for.
const TREES: [(&str, &str); 4] = [
    ("binomial", "binomial tree"),
    ("machine", "two levels, by machine"),
    ("site", "two levels, by site"),
    ("levels", "the paper's multilevel tree"),
];
/// The trees that the paper compares with.
const RIVALS: [&str; 3] = ["binomial", "machine", "site"];
const OURS: &str = "isthmus";

/// Who broadcast (a library's MPI_Bcast, or a tree of messages of the first library), by size.
type Curves = Vec<(String, String, BTreeMap<usize, Roots>)>;

/// Ten processes at SDSC, two times five at NCSA.
pub(super) fn figure1(lab: &Lab) -> Result<Section, Error> {
    let ms = Duration::from_millis;
    let sites: [(&str, &[usize]); 2] = [("sdsc", &[10]), ("ncsa", &[5, 5])];
    let grid = Grid::new(&sites, ms(40), 100_000_000).local(ms(1));
    let mut section = Section::new("Figure 1: 20 processes on three machines at two sites");
    section.texts.push(format!(
        "{}. The paper, for a root at SDSC: by machine 2 messages cross the wide area; by site 1, and several the local \
         network of NCSA; multilevel 1 and 1. Every rank is the root in turn here.",
        grid.describe()
    ));
    let curves = measure(lab, &grid, &[1024], &mut section)?;
    judge_messages(&mut section, &grid, &curves, 1024);
    Ok(section)
}

/// Sixteen processes on each of three machines.
pub(super) fn grid8() -> Grid {
    let sites: [(&str, &[usize]); 2] = [("sdsc", &[16]), ("anl", &[16, 16])];
    Grid::new(&sites, Duration::from_millis(40), 100_000_000).local(Duration::from_millis(1))
}

/// Sizes of the broadcasts of figure 8.
pub(super) const SIZES: [usize; 5] = [1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// The loop of figure 7.
pub(super) fn figure8(lab: &Lab) -> Result<Section, Error> {
    let grid = grid8();
    let mut section = Section::new("Figure 8: broadcasts of 48 processes, every rank root in turn");
    section.texts.push(format!(
        "{}. For each size every rank is root once; after each broadcast all acknowledge to rank 0 and wait for its word (the \
         paper's figure 7). The paper gives curves only: multilevel lowest, binomial highest. The trees are made of \
         MPI_Send and MPI_Recv of the same library (bench/trees.h), so they differ from MPI_Bcast in their shape alone; for each root they \
         and MPI_Bcast are measured in turns.",
        grid.describe()
    ));
    let curves = measure(lab, &grid, &SIZES, &mut section)?;
    judge_messages(&mut section, &grid, &curves, 1024);
    judge_times(&mut section, &curves, &SIZES);
    section.charts.push(by_size(&curves));
    section.charts.push(by_root(&curves, 1024));
    Ok(section)
}

fn measure(lab: &Lab, grid: &Grid, sizes: &[usize], section: &mut Section) -> Result<Curves, Error> {
    let mut field = Field::default();
    let mut curves = Curves::new();
    let places = grid.places();
    for (number, peer) in lab.peers.iter().enumerate() {
        let mut arguments = vec!["-p".to_owned(), places.clone()];
        for size in sizes {
            arguments.push(format!("library:{size}"));
            // The trees run once, over the first library.
            let trees = TREES.iter().filter(|_| number == 0);
            arguments.extend(trees.map(|(tree, _)| format!("{tree}:{size}")));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = field.run(grid, peer, Program::Roots, &arguments, lab.patience)?;
        let seen = roots(&output);
        let of = |shape: &str| {
            let mine = seen.iter().filter(|((name, _), _)| name == shape);
            mine.map(|((_, bytes), roots)| (*bytes, roots.clone()))
                .collect::<BTreeMap<_, _>>()
        };
        curves.push((peer.name.clone(), format!("MPI_Bcast of {}", peer.name), of("library")));
        if number == 0 {
            let trees = TREES
                .iter()
                .map(|(tree, title)| ((*tree).to_owned(), (*title).to_owned(), of(tree)));
            curves.extend(trees);
        }
    }
    section.notes = field.end();
    section.table(
        "Milliseconds for one root: with the acknowledgement (as the paper), broadcast alone (mean over roots); messages for each \
         broadcast: mean over roots [least-greatest]",
        &["broadcast", "bytes", "with acknowledgement", "broadcast", "wide area", "local area"],
        curves.iter().flat_map(|(_, title, sizes)| sizes.iter().map(|(b, r)| row(title, *b, r))).collect(),
    );
    section.data = Value::Array(curves.iter().map(data).collect());
    Ok(curves)
}

fn row(title: &str, bytes: usize, roots: &Roots) -> Vec<String> {
    let messages = |counts: &[f64]| match Spread::of(counts) {
        Some(s) if s.min >= 0.0 => format!("{:.2} [{}-{}]", mean(counts), s.min, s.max),
        _ => "not counted".to_owned(),
    };
    vec![
        title.to_owned(),
        bytes.to_string(),
        ms(roots.per_root),
        ms(mean(&roots.broadcasts)),
        messages(&roots.wide),
        messages(&roots.local),
    ]
}

fn data((name, _, sizes): &(String, String, BTreeMap<usize, Roots>)) -> Value {
    let one = |(bytes, roots): (&usize, &Roots)| {
        json!({
            "bytes": bytes, "seconds_with_acknowledgement": roots.per_root, "seconds": roots.broadcasts,
            "wide": roots.wide, "local": roots.local,
        })
    };
    json!({ "broadcast": name, "sizes": sizes.iter().map(one).collect::<Vec<_>>() })
}

fn find<'a>(curves: &'a Curves, name: &str) -> Option<&'a BTreeMap<usize, Roots>> {
    curves.iter().find(|(n, _, _)| n == name).map(|(_, _, sizes)| sizes)
}

fn judge_messages(section: &mut Section, grid: &Grid, curves: &Curves, bytes: usize) {
    let Some(ours) = find(curves, OURS).and_then(|sizes| sizes.get(&bytes)) else {
        return;
    };
    let exact = |counts: &[f64]| counts.iter().filter(|&&n| (n - 1.0).abs() < 0.5).count();
    let both = ours.wide.iter().zip(&ours.local);
    let good = both
        .filter(|(wide, local)| exact(&[**wide]) + exact(&[**local]) == 2)
        .count();
    section.promise(
        "exactly 1 wide-area and 1 local-area message for each broadcast, by the counters",
        format!("{good} of {} roots", grid.ranks()),
        good == grid.ranks(),
    );
}

/// In every size not slower than the paper's rivals and the peers, within what a repetition differs by.
fn judge_times(section: &mut Section, curves: &Curves, sizes: &[usize]) {
    let Some(ours) = find(curves, OURS) else { return };
    for (name, title, theirs) in curves.iter().filter(|(name, _, _)| name != OURS && name != "levels") {
        let ratio = |size: &usize| Some(mean(&theirs.get(size)?.broadcasts) / mean(&ours.get(size)?.broadcasts));
        let ratios: Vec<f64> = sizes.iter().filter_map(ratio).collect();
        let Some(spread) = Spread::of(&ratios) else { continue };
        let shown: Vec<String> = ratios.iter().map(|r| format!("{r:.2}")).collect();
        // 2 %: what the mean over all roots moves by from run to run.
        let limit = if RIVALS.contains(&name.as_str()) { 0.98 } else { 1.0 };
        section.promise(
            format!("not slower than {title} in any size (quotient at least {limit})"),
            format!("its time / ours by size: {}", shown.join(", ")),
            spread.min >= limit,
        );
    }
}

fn by_size(curves: &Curves) -> String {
    let point = |(bytes, roots): (&usize, &Roots)| {
        let spread = Spread {
            median: roots.per_root,
            min: roots.per_root,
            max: roots.per_root,
        };
        #[expect(clippy::cast_precision_loss, reason = "sizes of messages")]
        let x = *bytes as f64;
        (x, spread)
    };
    let series = |(_, title, sizes): &(String, String, BTreeMap<usize, Roots>)| {
        Series::new(title, sizes.iter().map(point).collect())
    };
    let chart = Lines {
        title: "Broadcast and acknowledgement, mean over all roots".to_owned(),
        x: Axis::log("size", Unit::Bytes),
        y: Axis::log("time for one root", Unit::Seconds),
        series: curves.iter().map(series).collect(),
    };
    chart.html()
}

fn by_root(curves: &Curves, bytes: usize) -> String {
    let series = |(_, title, sizes): &(String, String, BTreeMap<usize, Roots>)| {
        let broadcasts = &sizes.get(&bytes)?.broadcasts;
        let point = |(root, seconds): (usize, &f64)| {
            let spread = Spread {
                median: *seconds,
                min: *seconds,
                max: *seconds,
            };
            #[expect(clippy::cast_precision_loss, reason = "numbers of ranks")]
            let x = root as f64;
            (x, spread)
        };
        Some(Series::new(title, broadcasts.iter().enumerate().map(point).collect()))
    };
    let chart = Lines {
        title: format!("Broadcast of {bytes} bytes alone, by root"),
        x: Axis::linear("root", Unit::Count),
        y: Axis::linear("time until the last rank is done", Unit::Seconds),
        series: curves.iter().filter_map(series).collect(),
    };
    chart.html()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "numbers of ranks")]
    let count = values.len().max(1) as f64;
    values.iter().sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_too_many_is_noticed() {
        let grid = Grid::new(&[("a", &[2]), ("b", &[1])], Duration::ZERO, 1);
        let judged = |wide: Vec<f64>| {
            let roots = Roots {
                per_root: 1.0,
                broadcasts: vec![1.0; 3],
                local: vec![1.0; 3],
                wide,
            };
            let curves = vec![(OURS.to_owned(), String::new(), BTreeMap::from([(1024, roots)]))];
            let mut section = Section::new("t");
            judge_messages(&mut section, &grid, &curves, 1024);
            section.verdicts[0].met
        };
        assert!(judged(vec![1.0; 3]));
        assert!(!judged(vec![1.0, 1.0, 2.0]));
        assert!(!judged(vec![-1.0; 3]));
    }
}
